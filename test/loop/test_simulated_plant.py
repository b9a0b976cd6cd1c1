"""The simulated plant without its loop: with faults it is that of the simulation, from wherever it
is put; it is watched over its last step only, and stays where a step fails.
"""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

import nh_control as nh
from nh_control import scenarios
from nh_control.geometry.rotations import SO3
from nh_control.integrators import midpoint
from nh_control.loop.faults import FaultLines
from nh_control.loop.plant_faults import PlantFaults
from nh_control.loop.simulated_plant import SimulatedPlant
from nh_control.mechanics.external_forces import on_coordinates, with_external_forces
from nh_control.runs.experiment import Experiment, Result
from nh_control.scenarios import PlantOptions, disturbance
from nh_control.scenarios.disturbance import DisturbanceForces
from nh_control.scenarios.fault import parse
from nh_control.systems import pendulum

SCENARIO = scenarios.get("snakeboard")
FAULTS = (
    "noise=0.001,seed=1",
    "delay=0.014",
    "dropout=0.3",
    "phi:bias=0.01,start=0.2",
    "rotor_torque:lag=0.02",
    "commands:dropout=0.2",
    "steer_torque:stuck,start=0.1,duration=0.1",
)
STEPS = 30


@cache
def experiment():
    """Of some steps, without faults."""
    return Experiment.make(SCENARIO, duration_s=STEPS * SCENARIO.step_s)


def faults(*texts):
    return PlantFaults(experiment().model, [parse(text) for text in texts])


@cache
def middle():
    """A state on the way, with velocities and constraint forces."""
    return experiment().run().trajectory.states[20]


def plant(*texts, state=None):
    e = experiment()
    return SimulatedPlant(e.plant, e.x0 if state is None else state, faults=faults(*texts))


@pytest.mark.parametrize(
    "texts", [FAULTS, FAULTS[:4], FAULTS[4:]], ids=["all", "sensors", "actuators"]
)
def test_a_plant_with_faults_is_that_of_the_simulation_and_tells_the_same_of_them(texts):
    options = PlantOptions(faults=tuple(map(parse, texts)))
    e = replace(experiment(), options=options)
    loop, mine = e.run(), plant(*texts)
    for k in range(STEPS):
        if mine.measured_step == k:
            q, v = mine.measured
            u = e.tracker.command(k, e.model.measured_state(q, v)).u
        before = loop.trajectory.inputs[k - 1] if k else [0.0, 0.0]
        np.testing.assert_allclose(mine.inputs, before, rtol=0, atol=1e-10)
        mine.advance(u)
    np.testing.assert_allclose(mine.state, loop.trajectory.states[-1], rtol=0, atol=1e-12)
    told = {f"fault {one.fault}": str(one) for one in Result(e, loop, None, 0.0).fault_effects}
    assert mine.faults.report() == told and len(told) == len(texts)


def test_faults_go_on_in_time_where_a_plant_is_put():
    mine = plant("phi:bias=0.25,start=0.05", state=middle())
    np.testing.assert_array_equal(mine.measured[0], mine.configuration)
    mine.place(middle(), 7)
    (q, v), there = mine.measured, mine.configuration
    assert mine.measured_step == 7
    np.testing.assert_allclose(q - there, 0.25 * np.eye(5)[1], atol=1e-12)
    np.testing.assert_array_equal(v, mine.velocity)


def test_the_state_in_which_a_plant_is_put_is_never_lost():
    mine = plant("dropout=1", state=middle())
    mine.advance([0.0, 0.0])
    assert mine.measured_step == 0
    mine.place(middle(), 7)
    assert mine.measured_step == 7 and np.array_equal(mine.measured[0], mine.configuration)


def test_faults_that_change_begin_with_the_present_state_and_count_anew():
    mine = plant("phi:bias=0.25", "rotor_torque:bias=0.5")
    mine.advance([1.0, 0.0])
    assert mine.inputs.tolist() == [1.5, 0.0] and mine.measured_step == 1
    texts = ["psi:bias=0.5", "rotor_torque:lag=0.01"]
    mine.change_faults(FaultLines.of([parse(text) for text in texts], mine.dsys))
    assert mine.measured_step == 1 and np.array_equal(mine.measured[0], mine.configuration)
    assert all("of 0 steps" in text for text in mine.faults.report().values())
    mine.advance([0.0, 0.0])
    assert mine.inputs[0] == pytest.approx(1.5 * np.exp(-1.0))
    found = mine.measured[0] - mine.configuration
    np.testing.assert_allclose(found, 0.5 * np.eye(5)[0], atol=1e-12)
    assert all("of 1 steps, 1 changed" in text for text in mine.faults.report().values())


def test_measurements_are_configurations_and_velocities_also_where_these_are_not_as_many():
    turning = SimpleNamespace(
        system=SimpleNamespace(space=SO3(), nu=1), nu=1, inputs=("torque",), h=0.1
    )
    made = PlantFaults(turning, [parse("velocities:bias=0.5")])
    made.start(0, np.array([1.0, 0.0, 0.0, 0.0]), np.array([1.0, 2.0, 3.0]), np.zeros(1))
    assert [part.tolist() for part in made.measured] == [[1, 0, 0, 0], [1.5, 2.5, 3.5]]


def test_without_faults_what_is_measured_is_what_is_there():
    mine = plant()
    mine.advance([0.1, 0.0])
    assert mine.measured_step == 1 and np.array_equal(mine.measured[1], mine.velocity)
    bare = SimulatedPlant(experiment().plant, middle())
    bare.advance([0.1, 0.0])
    assert bare.measured_step == 1 and np.array_equal(bare.measured[0], bare.configuration)


def test_there_is_no_residual_before_the_first_step():
    """Not even that of a state which a moving belt would carry along."""
    carried = nh.System(
        "carried",
        nh.Rn("x", "y"),
        lambda q, v: ca.sumsqr(v) / 2,
        velocity_constraint=lambda q: ca.horzcat(0, 1),
        velocity_drift=lambda q: 0.3,
    )
    dsys = nh.nonholonomic_midpoint(carried, 0.1)
    mine = SimulatedPlant(dsys, dsys.state([0.0, 0.0], [1.0, 0.3]))
    assert abs(dsys.constraint_residual(mine.state, mine.state)[0]) > 0.01
    assert mine.constraint_residual == 0.0
    mine.advance([])
    assert 0.0 <= mine.constraint_residual < 1e-15


def test_residual_and_iterations_are_those_of_the_last_step():
    e = experiment()
    mine = SimulatedPlant(e.plant, middle(), substeps=3)
    assert (mine.constraint_residual, mine.newton_iterations, mine.step) == (0.0, 0, 0)
    mine.advance([0.3, 0.2])
    x1 = e.plant.step(e.plant.step(middle(), [0.3, 0.2]), [0.3, 0.2])
    x2 = e.plant.step(x1, [0.3, 0.2])
    assert np.array_equal(mine.state, x2)
    assert mine.constraint_residual == np.abs(e.plant.constraint_residual(x1, x2)).max()
    assert mine.newton_iterations == e.plant.newton_iterations(x1, np.array([0.3, 0.2])) > 0
    np.testing.assert_array_equal(mine.velocity, e.plant.velocity(x2))
    assert mine.energy == e.plant.energy(x2)
    mine.place(x1, 9)
    assert (mine.constraint_residual, mine.newton_iterations) == (0.0, 0)
    np.testing.assert_array_equal(mine.velocity, e.plant.velocity(x1))
    assert not mine.inputs.any()


def test_the_start_is_kept_whatever_becomes_of_what_it_was_given_as():
    start = middle().copy()
    mine = SimulatedPlant(experiment().plant, start)
    start += 1.0
    mine.advance([0.1, 0.1])
    mine.reset()
    assert np.array_equal(mine.state, middle())


def test_a_plant_whose_first_step_fails_is_there_and_says_so_when_it_steps():
    dsys = midpoint(pendulum(), 0.01)

    class Endless:
        def __getattr__(self, name):
            return getattr(dsys, name)

        def solve(self, x, u):
            return dsys.solve(x, u)._replace(x1=x + np.inf)

    mine = SimulatedPlant(Endless(), np.array([0.2, 0.5]))
    with pytest.raises(ArithmeticError, match="the next state is not finite"):
        mine.advance([0.0])
    assert mine.step == 0 and mine.state.tolist() == [0.2, 0.5]


def test_a_plant_that_is_pushed_elsewhere_goes_on_where_it_was():
    """By an integrator whose momenta are others for the same velocity."""
    plain = midpoint(pendulum(), 0.01)
    targets = {one.name: one for one in on_coordinates(plain.system.space)}
    pushes = disturbance.parse("theta:constant:0.3")
    forces = DisturbanceForces((pushes,), targets, 0.01)
    heavier = pendulum().with_parameters(m=2.0)
    pushed = midpoint(with_external_forces(heavier, forces.targets), 0.01)
    mine = SimulatedPlant(plain, plain.state([0.2], [0.5]))
    mine.advance([0.1])
    q, v = mine.configuration, mine.velocity
    mine.change_disturbance(pushed, forces)
    np.testing.assert_allclose((mine.configuration, mine.velocity), (q, v), atol=1e-14)
    assert mine.targets == ("theta",) and mine.newton_iterations == 0
    mine.advance([0.1])
    expected = pushed.step(pushed.state(q, v), [0.1, 0.3])
    np.testing.assert_allclose(mine.state, expected, atol=1e-14)
    assert mine.newton_iterations == pushed.newton_iterations(
        pushed.state(q, v), np.array([0.1, 0.3])
    )
    mine.reset()
    np.testing.assert_allclose(mine.velocity, [0.5], atol=1e-14)


@pytest.mark.parametrize("pushed", [False, True])
def test_damping_takes_most_of_a_motion_away_in_a_fifth_of_a_second(pushed):
    """Of a pendulum that hangs; a force from outside does not help."""
    plain = pendulum()
    targets = {one.name: one for one in on_coordinates(plain.space)}
    forces = DisturbanceForces((disturbance.parse("theta:constant:0.0"),), targets, 0.01)
    system = with_external_forces(plain, forces.targets) if pushed else plain
    dsys = midpoint(system, 0.01)
    mine = SimulatedPlant(dsys, dsys.state([0.0], [0.5]), disturbance=forces if pushed else None)
    assert mine.damping.shape == mine.idle.shape == (1,) and not mine.idle.any()
    mine.advance(mine.damping)
    assert mine.velocity[0] == pytest.approx(0.5 * (1 - 0.01 / 0.2), rel=1e-3)
