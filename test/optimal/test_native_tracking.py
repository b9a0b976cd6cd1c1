"""Closed loops of an `MpcTracker` in native code: the same as from Python, to the bit."""

from functools import cache, partial

import casadi as ca
import numpy as np
import pytest
import test_mpc
from masses import mass
from test_mpc import OFF, WEIGHTS, upright

import nh_control as nh
from nh_control.control import closed_loop
from nh_control.control.optimal.mpc import MpcTracker
from nh_control.control.trackers import LateMpc
from nh_control.scenarios import MpcOptions, get, mpc_tracker
from nh_control.systems import cart_pole

STEPS = 60
tracker = partial(test_mpc.tracker, horizon_s=0.4)
SHAKEN = 2.0 * np.sin(np.arange(STEPS))[:, None]


def force_limit():
    """Soft, of the force and the estimated one."""
    return nh.Constraint("both", lambda x, u, w: u[0] + w[0], -7, 7, weight=10.0, disturbed=True)


@cache
def pushed():
    """The cart-pole with a push in x from outside, at half the model's step."""
    system = cart_pole()
    return nh.midpoint(
        nh.System(
            name="pushed_cart_pole",
            space=system.space,
            parameters=system.parameters,
            lagrangian=system.lagrangian,
            inputs=("force", "push"),
            force=lambda q, v, u, p: ca.vertcat(u[0] + u[1], 0),
        ),
        0.01,
    )


def runs(monkeypatch, plant, tracker, x0=OFF, push=SHAKEN, steps=STEPS, **options):
    """Loops in native code and in Python, and the numbers of the steps that the first one took
    from Python.
    """
    numbers, step, loops = [], closed_loop.ClosedLoopRunner._step, []
    model = tracker.dsys
    external = push[:steps, : plant.nu - model.nu] if plant is not model else np.zeros((steps, 0))

    def counted(loop):
        numbers.append(loop.k)
        step(loop)

    for native in (True, False):
        record = closed_loop.LoopRecord.empty(plant, model, steps)
        loop = closed_loop.ClosedLoopRunner(
            plant, tracker, x0, record, external, **options, native=native
        )
        with monkeypatch.context() as patched:
            if native:
                patched.setattr(closed_loop.ClosedLoopRunner, "_step", counted)
            loop.run()
        loops.append((record, loop._memory))
    return *loops, numbers


def assert_same(one, other):
    (record, memory), (expected, wanted) = one, other
    for name in ("states", "errors", "inputs", "saturated", "plant_states", "before"):
        np.testing.assert_array_equal(getattr(record, name), getattr(expected, name), name)
    for name in ("k", "age", "late", "failures", "outdated"):
        assert getattr(memory, name) == getattr(wanted, name), name
    for name in ("disturbance", "predicted", "gains"):
        np.testing.assert_array_equal(getattr(memory, name), getattr(wanted, name), name)
    assert memory.arrays.keys() == wanted.arrays.keys()
    for name in wanted.arrays:
        np.testing.assert_array_equal(memory.arrays[name], wanted.arrays[name], name)


def test_native_loops_give_the_same_bits_as_python(monkeypatch):
    """Limits, a soft constraint of the estimated force, a plant that is pushed and has another
    step; Python takes the first step, for which there is no plan.
    """
    mpc = tracker(disturbance_gain=0.5, constraints=[force_limit()])
    native, python, from_python = runs(monkeypatch, pushed(), mpc, substeps=2)
    assert_same(native, python)
    assert from_python == [0]
    record, memory = native
    assert record.saturated.any() and not record.saturated.all()
    assert memory.k == STEPS - 1 and memory.failures == 0
    assert np.abs(memory.disturbance).max() > 1e-4


def test_a_step_without_a_plan_is_taken_by_python_and_counted(monkeypatch):
    """A model that ends at x = 1, beyond which the plant is pushed: LQR commands there."""

    model = nh.midpoint(mass(("force",), end=1.0), 0.1)
    plant = nh.midpoint(mass(("force", "push"), end=10.0), 0.1)
    x0, push = np.array([0.8, 0.0]), np.zeros((STEPS, 1))
    push[20:24] = 4.0
    rest = nh.Trajectory(0.1, np.tile(x0, (STEPS + 1, 1)), np.zeros((STEPS, 1)))
    mpc = nh.MpcTracker(model, rest, np.eye(2), np.eye(1), horizon_s=1.0, hold=True)
    native, python, from_python = runs(monkeypatch, plant, mpc, x0, push)
    assert_same(native, python)
    assert native[0].states[:, 0].max() > 1
    assert 0 < native[1].failures < len(from_python) < STEPS - 20 and from_python[0] == 0


def test_a_loop_goes_on_natively_after_steps_from_python(monkeypatch):
    mpc, natively = tracker(disturbance_gain=0.5), closed_loop.ClosedLoopRunner._natively

    def in_turns(loop):
        steps, turns = natively(loop), iter(range(10**6))
        return lambda end: next(turns) % 2 == 0 and steps(min(end, loop.k + 3))

    monkeypatch.setattr(closed_loop.ClosedLoopRunner, "_natively", in_turns)
    native, python, from_python = runs(monkeypatch, pushed(), mpc, substeps=2)
    assert_same(native, python)
    assert 10 < len(from_python) < STEPS / 2


def test_plans_that_are_late_by_choice_are_late_in_loops(monkeypatch):
    """Its command is another one than that of its base class."""
    dsys, rest = upright()
    late = LateMpc(
        *(dsys, rest, *WEIGHTS), **dict(horizon_s=0.4, hold=True), is_late=lambda k: k % 3 == 1
    )
    native, python, from_python = runs(monkeypatch, dsys, late)
    assert_same(native, python)
    assert native[1].late == STEPS // 3 and len(from_python) == STEPS


@pytest.mark.slow
def test_prescribed_coordinates_and_holonomic_constraints(monkeypatch):
    """A marionette at rest, pulled by its strings; states are compared with the impulses of its
    constraints.
    """
    scenario = get("marionette")
    model = scenario.model()
    reference = scenario.reference(model, "step")
    mpc = mpc_tracker(scenario, model, reference, MpcOptions(horizon_s=4 * model.h), True)
    assert isinstance(mpc, MpcTracker) and mpc.fallback.law.impulses is not None
    x0 = scenario.perturb(model, reference.states[0], scenario.perturbation)
    native, python, _ = runs(monkeypatch, model, mpc, x0, steps=12)
    assert_same(native, python)
    assert native[1].failures < 12
