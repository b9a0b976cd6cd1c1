"""Closed loops in native code and from Python: the same to the bit."""

from dataclasses import dataclass, replace
from functools import cache

import casadi as ca
import numpy as np
import pytest

import nh_control as nh
from nh_control.control import LqrTracker, closed_loop
from nh_control.control.damping import DAMPING_S
from nh_control.control.feedback_law import matrix_vector_product
from nh_control.discrete.plant_steps import advance
from nh_control.integrators import INTEGRATORS
from nh_control.mechanics.lagrangian import inertia
from nh_control.runs import simulation
from nh_control.runs.experiment import Experiment
from nh_control.scenarios import PlanarPerturbation, PlantOptions, Scenario
from nh_control.scenarios.disturbance import parse
from nh_control.scenarios.marionette import MARIONETTE
from nh_control.scenarios.quadrotor_payload import QUADROTOR_PAYLOAD, PayloadPerturbation
from nh_control.scenarios.snakeboard import SNAKEBOARD

FAR = PayloadPerturbation(0.5, seed=3, swing=np.pi / 6, tilt=np.pi / 3)
GUST = (parse("payload:gust:2,0,0,start=0.2,duration=1"),)


def two_seconds(dsys):
    """The beginning of the reference at rest."""
    whole = QUADROTOR_PAYLOAD.reference(dsys, "hover")
    return replace(whole, states=whole.states[:201], inputs=whole.inputs[:200])


HOVER = replace(QUADROTOR_PAYLOAD, references={"hover": two_seconds})


def hover(**more):
    return Experiment.make(HOVER, "hover", perturbation=FAR, **more)


@dataclass(frozen=True)
class SwingParameters(nh.Parameters):
    mass: float = nh.parameter(1.0, "kg", "mass")


def swing(p):
    """A mass on a rod of 1 m under a point that moves at will, pushed sideways."""
    return nh.System(
        name="swing",
        space=nh.Rn("x", "z", "point"),
        prescribed=("point",),
        parameters=p,
        lagrangian=lambda q, v, p: p.mass * ((v[0] ** 2 + v[1] ** 2) / 2 - 9.81 * q[1]),
        holonomic_constraint=lambda q, p: ((q[0] - q[2]) ** 2 + q[1] ** 2 - 1) / 2,
        inputs=("push",),
        force=lambda q, v, u, p: ca.vertcat(u[0], 0, 0),
        nominal=(0.0, -1.0, 0.0),
    )


def to_and_fro(dsys):
    point = 0.1 * (1 - np.cos(np.linspace(0, 2 * np.pi, 101)))[1:]
    inputs = np.stack([0.1 * np.ones(100), point], axis=1)
    return dsys.simulate(dsys.state([0.0, -1.0, 0.0], np.zeros(3)), inputs)


SWING = Scenario(
    name="swing",
    title="A mass on a rod",
    parameters=SwingParameters(),
    make_system=swing,
    integrators={"midpoint": nh.midpoint},
    references={"to_and_fro": to_and_fro},
    weights=(np.eye(6), np.diag([0.1, 10.0]), None),
    step_s=0.02,
)

CASES = {
    "saturated, past the end": lambda: hover(duration_s=2.5),
    "another mass, a gust, two substeps, disturbance estimate": lambda: hover(
        options=PlantOptions(substeps=2, parameters={"payload_mass": 0.52}, disturbances=GUST),
        integral=True,
        duration_s=2.0,
    ),
    "velocity constraints, a composition": lambda: Experiment.make(
        SNAKEBOARD,
        "parking",
        options=PlantOptions(integrator="nonholonomic_midpoint_order4", substeps=2),
        integral=True,
    ),
    "prescribed coordinates, holonomic constraints": lambda: Experiment.make(
        SWING, options=PlantOptions(substeps=3, parameters={"mass": 0.9}), integral=True
    ),
    "a marionette": lambda: Experiment.make(
        MARIONETTE,
        "step",
        options=PlantOptions(substeps=2, parameters={"pelvis": 9.0}),
        perturbation=PlanarPerturbation(0.01, 0.01, 0.0),
        integral=True,
        duration_s=0.3,
    ),
}
QUICK = [name for name in CASES if name != "a marionette"]


@cache
def made(name):
    return CASES[name]()


def both(monkeypatch, run):
    """What native code and Python give, and how many steps the first took from Python."""
    steps, from_python = [], closed_loop.ClosedLoopRunner._step
    with monkeypatch.context() as patched:
        patched.setattr(
            closed_loop.ClosedLoopRunner,
            "_step",
            lambda loop: (steps.append(loop.k), from_python(loop)),
        )
        native = run()
    with monkeypatch.context() as patched:
        patched.setattr(closed_loop.ClosedLoopRunner, "_natively", lambda self: None)
        return native, run(), len(steps)


def assert_same(native, python):
    for name in ("states", "inputs"):
        one, other = (getattr(run.trajectory, name) for run in (native, python))
        np.testing.assert_array_equal(one, other, name)
    for name in ("errors", "saturated", "energy", "constraint"):
        np.testing.assert_array_equal(getattr(native, name), getattr(python, name), name)
    assert str(native.failure) == str(python.failure)


@pytest.mark.parametrize("name", [*QUICK, pytest.param("a marionette", marks=pytest.mark.slow)])
@pytest.mark.parametrize("feedback", (True, pytest.param(False, marks=pytest.mark.slow)))
def test_native_loops_give_the_same_bits_as_python(monkeypatch, name, feedback):
    """Python takes no step but one that fails."""
    experiment = made(name)
    native, python, from_python = both(monkeypatch, lambda: experiment.run(feedback))
    assert_same(native, python)
    assert from_python == (native.failure is not None)
    assert (native.failure is None) == (name != "velocity constraints, a composition" or feedback)
    if name.startswith("saturated"):
        assert native.saturated.any() == feedback


def test_a_loop_goes_on_natively_after_steps_from_python(monkeypatch):
    """With the memory of what was estimated and predicted, in turns of three and one."""
    experiment = made("another mass, a gust, two substeps, disturbance estimate")
    whole, natively = experiment.run(), closed_loop.ClosedLoopRunner._natively

    def in_turns(loop):
        steps, turns = natively(loop), iter(range(10**6))
        return lambda end: next(turns) % 2 == 0 and steps(min(end, loop.k + 3))

    monkeypatch.setattr(closed_loop.ClosedLoopRunner, "_natively", in_turns)
    assert_same(experiment.run(), whole)


def test_constraint_residuals_are_of_the_last_substep_before_a_state():
    """By a method that keeps the constraint elsewhere than at the middle."""
    board = SNAKEBOARD.make_system(SNAKEBOARD.parameters)
    model = INTEGRATORS["nonholonomic_midpoint"].make(board, 0.1)
    plant = INTEGRATORS["gni"].make(board, 0.05)
    start = np.zeros(5), [0.3, 0.5, 0.0, 0.0, 0.0]
    reference = model.simulate(model.state(*start), np.full((5, 2), 0.1))
    tracker, x = LqrTracker(model, reference, np.eye(8), np.eye(2)), plant.state(*start)
    run, expected = simulation.closed_loop(plant, tracker, x, 5, substeps=2), []
    for u in run.trajectory.inputs:
        before, x = advance(plant, x, u, 2)
        expected.append(plant.constraint_residual(before, x))
    np.testing.assert_array_equal(run.constraint, expected)
    assert np.abs(run.constraint).max() > 1e-9


def braked(dsys):
    """To rest, while the point moves and stays."""
    inputs = np.stack([[1.0, -1.0], [0.2, 0.2]], axis=1).repeat(5, axis=0)
    return dsys.simulate(dsys.state([0.0, 0.0], np.zeros(2)), inputs)


def sled(_):
    return nh.System(
        name="sled",
        space=nh.Rn("x", "point"),
        prescribed=("point",),
        lagrangian=lambda q, v: v[0] ** 2 / 2,
        inputs=("push",),
        force=lambda q, v, u: ca.vertcat(u[0], 0),
    )


def sledding(steps, **more):
    weights = np.eye(4), np.eye(2), None
    scenario = replace(
        SWING, make_system=sled, parameters=None, references={"braked": braked}, weights=weights
    )
    return Experiment.make(scenario, duration_s=steps * scenario.step_s, **more)


def test_native_loops_damp_the_motion_after_the_reference(monkeypatch):
    """Each step from Python after the end takes h / 0.2 s of the momentum away."""
    experiment = sledding(15, integral=True)
    native, python, from_python = both(monkeypatch, lambda: experiment.run(True))
    assert_same(native, python)
    assert from_python == 5 and abs(native.trajectory.inputs[9, 0] + 1.0) < 1e-3
    momenta, inputs = native.trajectory.states[10:15, 2], native.trajectory.inputs[10:]
    np.testing.assert_allclose(inputs[:, 0], -momenta / DAMPING_S, rtol=1e-9, atol=1e-12)
    assert (np.abs(momenta) > 1e-5).all() and inputs[:, 1].tolist() == 5 * [0.2]
    assert both(monkeypatch, lambda: experiment.run(False))[2] == 0


def test_a_failed_prediction_is_dropped_as_in_python(monkeypatch):
    """A model that holds up to x = 1 only, where the plant goes on."""
    space, limit = nh.Rn("x"), 1.0

    def mass(limit):
        return nh.System(
            name="limited",
            space=space,
            lagrangian=lambda q, v: v[0] ** 2 / 2,
            inputs=("push",),
            force=lambda q, v, u: u,
            domain=lambda q: limit - q[0],
        )

    model, plant = (nh.midpoint(mass(end), 0.1) for end in (limit, 10.0))
    reference = model.simulate(model.state([0.0], [0.0]), np.zeros((40, 1)))
    tracker = LqrTracker(model, reference, 0.01 * np.eye(2), [[1.0]], disturbance_gain=0.5)
    x0 = plant.state([0.5], [1.0])
    native, python, from_python = both(
        monkeypatch, lambda: simulation.closed_loop(plant, tracker, x0, 40)
    )
    assert native.failure is None and native.trajectory.states[:, 0].max() > limit
    assert 0 < from_python < 40
    assert_same(native, python)


def test_sums_do_not_depend_on_a_library():
    a, x = np.random.default_rng(0).normal(size=(3, 40)), np.linspace(-1, 1, 40)
    expected = [0.0, 0.0, 0.0]
    for j in range(40):
        expected = [e + row[j] * x[j] for e, row in zip(expected, a)]
    np.testing.assert_array_equal(matrix_vector_product(a, x), expected)
    np.testing.assert_array_equal(
        matrix_vector_product(np.zeros((2, 0)), np.zeros(0)), np.zeros(2)
    )


@pytest.mark.parametrize("name", QUICK)
def test_energies_of_a_table_equal_those_of_single_states(name):
    dsys = made(name).plant
    rng = np.random.default_rng(1)
    still = dsys.state(dsys.system.nominal_configuration, np.zeros(dsys.system.space.nw))
    x, other = (
        dsys.state_space.retract(still, 0.01 * rng.normal(size=dsys.ndx)) for _ in range(2)
    )
    nq, p = dsys.system.mechanics.state_space.nq, dsys.system.parameter_values
    (m, b, basis, c) = inertia(dsys.system)(x[:nq], p)
    m, b, basis, c = (np.array(part) for part in (m, b, basis, c))
    v = (basis @ np.linalg.solve(m, b) + c)[:, 0]
    np.testing.assert_allclose(dsys.velocity(x), v, rtol=0, atol=1e-11 * np.abs(v).max())
    each = [dsys.energy(state) for state in (x, other, x)]
    np.testing.assert_array_equal(dsys.energies([x, other, x]), each)
    assert each[0] != each[1]
