"""What the lines of faults remember, lose and count, value by value, and what a tracker behind
them is given: without closed loops.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from test_faults import MODEL, RAMP, commanded, measured, straight

from nh_control.control import Command, DisturbanceEstimate
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry.spaces import Rn
from nh_control.loop.fault_effects import FaultEffect, Tally, effects
from nh_control.loop.faults import (
    FaultLines,
    FaultOutput,
    line_outputs,
    through_actuators,
)
from nh_control.loop.plant_faults import PlantFaults
from nh_control.loop.simulated_plant import SimulatedPlant
from nh_control.runs.local_run import LocalRun
from nh_control.scenarios.fault import parse


def lines(*texts):
    return FaultLines.of([parse(text) for text in texts], MODEL)


# --- lines ---------------------------------------------------------------------------------------


def test_faults_of_velocities_leave_configurations_alone():
    states = straight(5)
    biased = np.array(measured("velocities:bias=0.1", states)) - states
    np.testing.assert_allclose(biased, np.tile([0.0] * 5 + [0.1] * 5, (5, 1)), atol=1e-15)


@pytest.mark.filterwarnings("error")
def test_numbers_that_a_fault_makes_infinite_are_lost():
    """Of commands the one before holds."""
    huge = np.full((3, 2), 1.5e308) * [[0], [1], [0]] + [1.0, 2.0]
    np.testing.assert_array_equal(commanded("commands:bias=1e308", huge)[1], [1e308, 1e308])
    assert measured("velocities:bias=1e308", np.full((1, 10), 1e308)) == [None]


def test_an_actuator_without_effort_holds_prescribed_coordinates():
    """One force and two coordinates that are moved."""
    puppet = SimpleNamespace(
        system=SimpleNamespace(space=Rn("x", "y", "z"), nu=1), nu=3, inputs=("f", "y", "z"), h=0.1
    )
    line = FaultLines.of([parse("lost,start=0.1")], puppet).commands
    moves = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    out = [output.value for output in line_outputs(line, np.zeros(3), moves)]
    np.testing.assert_array_equal(out, [[1, 2, 3], [0, 2, 3], [0, 2, 3]])


@pytest.mark.parametrize("text", ["lag=0.05", "commands:delay=0.03", "commands:dropout=0.5"])
def test_a_whole_run_goes_through_a_line_as_its_values_do_one_by_one(text):
    before, commands = np.array([5.0, -5.0]), RAMP + 1.0
    line, memory, expected = lines(text).commands, None, []
    for k, u in enumerate(commands):
        output = line.through(k, u, line.start(before) if memory is None else memory)
        memory = output.memory
        expected.append(output.value)
    found = through_actuators(lines(text), before, commands)
    np.testing.assert_array_equal(found, expected)
    assert not np.array_equal(found, commands)


# --- what they did -------------------------------------------------------------------------------


def test_the_words_of_an_effect():
    whole = FaultEffect("psi:noise", 200, 50, 30, 10, 0.0125, 0.5, 2.0)
    assert str(whole) == (
        "active 25 % of 200 steps, 30 changed, 10 lost, mean delay 12.5 ms, by 0.5 (rms), at "
        "most 2"
    )
    assert str(FaultEffect("psi:noise", 0, 0, 0, 0, 0.0, 0.0, 0.0)) == (
        "active 0 % of 0 steps, 0 changed"
    )


def test_the_counts_of_a_fault_are_those_of_its_active_steps():
    """Before step 2 it is not active; value 3 is lost, 4 goes through unchanged, and 6 was lost
    by the fault before it.
    """
    effect = SimpleNamespace(active=lambda k, h: k >= 2, age=lambda k, h, seed: 0.01 * k)
    line = SimpleNamespace(
        faults=[SimpleNamespace(effect=effect)],
        h=0.1,
        seeds=[()],
        change=lambda i, came, went: went - came,
    )
    tally, zero = Tally(line), np.zeros(2)
    went = [[9, 9], [9, 9], [-3, 1], None, [0, 0], [1, 1]]
    for k, out in enumerate(went):
        after = None if out is None else np.array(out, dtype=float)
        tally.add(k, FaultOutput(after, (zero, after), ()))
    tally.add(6, FaultOutput(None, (None, None), ()))
    (found,) = tally.effects()
    assert (found.steps, found.active, found.lost, found.changed) == (7, 4, 1, 2)
    assert found.delay_s == pytest.approx((0.02 + 0.04 + 0.05) / 3)
    assert found.rms == pytest.approx(np.sqrt((5 + 1) / 3)) and found.largest == 3.0


def test_what_faults_of_actuators_did_is_counted_along_the_run():
    """A lag remembers what went out: after a jump its changes die away."""
    x = MODEL.state(MODEL.system.space.origin, np.zeros(5))
    (found,) = effects(lines("rotor_torque:lag=0.02"), MODEL, np.array([x, x]), np.ones((50, 2)))
    changes = np.exp(-0.5 * np.arange(1, 51))
    assert found.largest == pytest.approx(changes[0])
    assert found.rms == pytest.approx(np.sqrt(np.mean(changes**2)))


# --- trackers behind them ------------------------------------------------------------------------


class Spy:
    """A tracker that gives the step as its command, and keeps the states that it sees."""

    dsys = MODEL
    _x = MODEL.state(MODEL.system.space.origin, np.zeros(5))
    reference = Trajectory(MODEL.h, np.tile(_x, (4, 1)), np.full((3, 2), 7.0))

    def __init__(self):
        self.seen = []

    def target(self, k):
        """At rest."""
        return self._x

    def error(self, k, x):
        """From the origin."""
        return MODEL.local(self._x, x)

    def command(self, k, x, memory=None):
        """(k + 1, -1)."""
        self.seen.append((k, x, memory))
        estimate = DisturbanceEstimate(np.full(3, float(k)), x)
        u = np.array([k + 1.0, -1.0])
        return Command(u, np.array([False, True]), self.error(k, x), estimate)


def run(tracker, steps, *faults, feedback=True):
    """The loop from near the origin."""
    x0 = MODEL.state([0.1, 0.2, 0.3, 0.4, 0.5], np.zeros(5))
    plant = SimulatedPlant(MODEL, x0, faults=PlantFaults(MODEL, list(map(parse, faults))))
    return LocalRun(plant, tracker, steps, feedback=feedback).run()


def test_a_tracker_sees_measurements_with_faults_and_errors_are_those_of_the_true_state():
    spy = Spy()
    loop = run(spy, 3, "psi:bias=0.25")
    true = loop.trajectory.states
    for k, x, _ in spy.seen:
        np.testing.assert_allclose(x - true[k], np.eye(len(x))[0] * 0.25, atol=1e-14)
    np.testing.assert_allclose(loop.errors, [MODEL.local(spy._x, x) for x in true], atol=1e-15)
    assert loop.saturated.tolist() == 3 * [[False, True]]


def test_without_measurements_the_command_holds_and_nothing_is_predicted():
    spy = Spy()
    loop = run(spy, 5, "dropout=1,start=0.02,duration=0.02", "commands:bias=0.5")
    assert loop.trajectory.inputs[:, 0].tolist() == [1.5, 2.5, 2.5, 2.5, 5.5]
    assert loop.commands[:, 0].tolist() == [1.0, 2.0, 2.0, 2.0, 5.0]
    assert loop.saturated[:, 1].tolist() == [True, True, False, False, True]
    first, second, third = (memory for _, _, memory in spy.seen)
    assert [k for k, *_ in spy.seen] == [0, 1, 4] and first is None
    assert second.disturbance[0] == 0.0 and np.array_equal(second.predicted, spy.seen[0][1])
    assert third.disturbance[0] == 1.0 and third.predicted is None


def test_without_feedback_the_reference_is_applied_and_nothing_after_it():
    """Lost measurements change nothing."""
    loop = run(Spy(), 5, "commands:bias=0.5", "dropout=1,start=0.01", feedback=False)
    assert loop.trajectory.inputs.tolist() == 3 * [[7.5, 7.5]] + 2 * [[0.5, 0.5]]
    assert not loop.saturated.any()
