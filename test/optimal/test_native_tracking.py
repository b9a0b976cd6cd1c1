"""Closed loops of an `MpcTracker` in native code: the same as from Python, to the bit."""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
import test_mpc
from optimal_cases import mass
from test_mpc import OFF, WEIGHTS, upright

import nh_control as nh
from nh_control.control import closed_loop
from nh_control.control.optimal.mpc import MpcTracker
from nh_control.control.trackers import LateMpc, is_late, linear
from nh_control.loop.reference_sequence import ReferenceLeg, ReferenceSequence
from nh_control.mechanics.external_forces import on_coordinates, with_external_forces
from nh_control.scenarios import MpcOptions, constraints_along, get, mpc_tracker
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
    along = [one for one in on_coordinates(system.space) if one.name == "x"]
    return nh.midpoint(with_external_forces(system, along), 0.01)


def runs(monkeypatch, plant, tracker, x0=OFF, push=SHAKEN, steps=STEPS, **options):
    """Loops in native code and in Python, and the steps that the first one took from Python."""
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
    """Of a plant that is pushed at another step; Python takes the first one, without a plan."""
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
    """A marionette pulled by its strings, with the impulses of its constraints."""
    scenario = get("marionette")
    model = scenario.model()
    reference = scenario.reference(model, "step")
    mpc = mpc_tracker(scenario, model, reference, MpcOptions(horizon_s=4 * model.h), True)
    assert isinstance(mpc, MpcTracker) and mpc.fallback.law.impulses is not None
    x0 = scenario.perturb(model, reference.states[0], scenario.perturbation)
    native, python, _ = runs(monkeypatch, model, mpc, x0, steps=12)
    assert_same(native, python)
    assert native[1].failures < 12


# Late plans --------------------------------------------------------------------------------------


SCENARIO = get("cart_pole")


@cache
def model():
    """The cart-pole at rest on top, for 120 steps of 0.02 s."""
    dsys = SCENARIO.model(step_s=0.02)
    states = np.tile([0.0, np.pi, 0.0, 0.0], (121, 1))
    return dsys, nh.Trajectory(dsys.h, states, np.zeros((120, 1)), dsys.state_names, dsys.inputs)


def late_tracker(**options):
    return mpc_tracker(SCENARIO, *model(), MpcOptions(**{"horizon_s": 0.4} | options))


START = np.array([0.2, np.pi + 0.1, 0.1, 0.0])


def errors(late):
    """Errors of a pushed run with a share of its plans late, and how many were."""
    dsys, mpc, x, memory = model()[0], late_tracker(late=late, seed=4), START, None
    found = []
    for k in range(100):
        command = mpc.command(k, x, memory)
        x, memory = dsys.step(x, command.u + 0.3 * np.sin(k)), command.memory
        found.append(command.error)
    assert memory.late == sum(is_late(mpc, k) for k in range(1, 100))
    return np.array(found), memory.late


def test_with_plans_that_are_late_the_error_hardly_grows():
    on_time, late, later = (errors(share) for share in (0.0, 0.3, 0.7))
    assert on_time[1] == 0 and 20 < late[1] < 40 and 60 < later[1] < 80
    sizes = [np.linalg.norm(found[:, :2]) for found, _ in (on_time, late, later)]
    assert sizes[1] < 1.1 * sizes[0] and sizes[2] < 1.1 * sizes[0]
    again = errors(0.3)
    np.testing.assert_array_equal(again[0], late[0])


def test_a_plan_goes_on_in_the_next_leg_and_weights_and_reference_can_change():
    dsys, rest = model()
    mpc, moved = late_tracker(), replace(rest, states=rest.states + [0.05, 0, 0, 0])
    sequence = ReferenceSequence(mpc)
    memory = None
    for k in range(3):
        memory = sequence.command(k, START, memory).memory
    sequence.add(ReferenceLeg(3, mpc.with_reference(moved)))
    warm = sequence.command(3, START, memory)
    assert warm.memory.k == 3 and not np.array_equal(
        warm.memory.states, sequence.command(3, START).memory.states
    )
    assert warm.u == pytest.approx(sequence.command(3, START).u, abs=0.3)
    assert sequence.command(4, START, warm.memory).memory.k == 4
    heavier = mpc.with_weights({0: 100.0}, {})
    assert linear(heavier).diagonal_weights[0][0] == pytest.approx(100.0)
    assert abs(heavier.command(0, START).u - mpc.command(0, START).u) > 0.5
    assert type(heavier) is MpcTracker and heavier.hold
    np.testing.assert_array_equal(heavier.limits, linear(heavier).limits)
    late = late_tracker(late=0.5, seed=1)
    for other in (late.with_weights({0: 100.0}, {}), late.with_reference(moved)):
        assert isinstance(other, LateMpc)
        assert [is_late(other, k) for k in range(9)] == [is_late(late, k) for k in range(9)]


def test_options_are_checked():
    for words, options in (
        ("horizon", {"horizon_s": -1.0}),
        ("iteration", {"iterations": 0}),
        ("share", {"late": 1.5}),
        ("roof", {"constraints": ("roof",)}),
    ):
        with pytest.raises(ValueError, match=words):
            late_tracker(**{"horizon_s": 0.4} | options)
    assert MpcOptions.of({"late": 0.5, "constraints": ["track"]}).constraints == ("track",)
    assert constraints_along(SCENARIO, model()[0], "swing_up", ()) == ()
