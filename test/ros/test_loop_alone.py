"""The plant's loop in the tests' own thread, by a clock that passes as they want: what it waits
for, for how long, and what of it counts as a missed deadline.
"""

import types

import numpy as np
import pytest
from loop_outputs import loop_output
from test_simulation_loop import CLOCK, START, Breakable, H

from nh_control.integrators import midpoint
from nh_control.loop import simulation_loop
from nh_control.loop.clocks import Pacer
from nh_control.loop.command_validator import CommandNames, CommandValidator
from nh_control.loop.plant_faults import PlantFaults
from nh_control.loop.simulated_plant import SimulatedPlant
from nh_control.loop.simulation_loop import Mode, Options, Refused, SimulationLoop
from nh_control.scenarios.fault import parse
from nh_control.systems import pendulum

DSYS = midpoint(pendulum(), H)


class Script:
    """An inbox with what is to happen `at` its times; time passes while it waits."""

    def __init__(self):
        self.now, self.end, self.events, self.closed = 0.0, 0.0, [], False

    def at(self, time_s, action):
        """What happens at a time, in the order in which it was said."""
        self.events.append((time_s, action))
        self.events.sort(key=lambda event: event[0])

    def serve(self, timeout_s):
        """The next event, or none in this time; closed at the end."""
        until = self.now + timeout_s
        if self.events and self.events[0][0] <= until:
            time_s, action = self.events.pop(0)
            self.now = max(self.now, time_s)
            action()
        else:
            self.now = until
        self.closed = self.now >= self.end


class Alone:
    """A loop with what it `published`, (time, step), and the modes that it told of. A controller
    answers every new state after `delay_s`, but no one while it is `away` (from, to).
    """

    def __init__(self, script, faults, dsys=DSYS, speed=1.0, fallback="zero", timeout_steps=1,
                 lockstep=False, wait=True, last_step=10**6, delay_s=1e-3, away=(0.0, 0.0),
                 **conditions):  # fmt: skip
        self.script, self.delay_s, self.away = script, delay_s, away
        self.published, self.told = [], []
        faulty = PlantFaults(DSYS, [parse(text) for text in faults])
        self.plant = SimulatedPlant(dsys, START, faults=faulty)
        validator = CommandValidator(
            CommandNames(("torque",)), dsys.system.input_bounds, CLOCK, timeout_steps, fallback
        )
        self.output = loop_output(
            self._publish, lambda: self.told.append(self.loop.mode), **conditions
        )
        self.pacer = Pacer(H, speed, clock=lambda: self.script.now)
        self.loop = SimulationLoop(
            self.plant, validator, self.pacer, Options(lockstep, wait, last_step), self.script,
            self.output,
        )  # fmt: skip

    def _publish(self):
        self.published.append((round(self.script.now, 6), self.plant.step))
        if not self.away[0] <= self.script.now < self.away[1]:
            stamp = CLOCK.stamp(self.plant.measured_step)
            value = 0.1 * self.plant.measured_step
            self.script.at(
                self.script.now + self.delay_s,
                lambda: self.loop.command(("torque",), (value,), stamp),
            )

    def run(self, until_s):
        """On to this time."""
        self.script.end, self.script.closed = until_s, False
        self.loop.run()

    @property
    def missed(self):
        return self.pacer.statistics().missed


@pytest.fixture
def made(monkeypatch):
    """Return f(options) -> Alone; the loop's time is that of its script."""

    def make(*faults, **how):
        script = Script()
        clock = types.SimpleNamespace(monotonic=lambda: script.now)
        monkeypatch.setattr(simulation_loop, "time", clock)
        return Alone(script, faults, **how)

    return make


def test_an_awaited_state_is_published_ten_times_a_second(made):
    alone = made(lockstep=True, away=(0.0, 9.0))
    alone.run(0.35)
    assert alone.published == [(0.0, 0), (0.1, 0), (0.2, 0), (0.3, 0)]


@pytest.mark.parametrize("away", [(0.0, 60.0), (0.505, 60.0)])
@pytest.mark.parametrize("lockstep", [True, False])
def test_no_deadline_is_missed_while_there_is_no_controller(made, lockstep, away):
    """Whether it is awaited for the first time or once more; without lock-step the first only."""
    alone = made(lockstep=lockstep, away=away, timeout_steps=10**4)
    alone.run(60.5)
    assert alone.missed == 0
    waited = lockstep or not away[0]
    assert alone.plant.step == pytest.approx((away[0] + 0.5 if waited else 60.5) / H, abs=2)


def test_a_controller_that_is_slow_makes_the_plant_miss_deadlines(made):
    alone = made(lockstep=True, delay_s=0.035)
    alone.run(1.0)
    assert alone.plant.step == pytest.approx(1.0 / 0.035, abs=2)
    assert alone.missed == pytest.approx(2 * alone.plant.step, abs=3)


@pytest.mark.parametrize("request_", ["reset", "reset_state"])
def test_a_run_that_starts_again_waits_for_its_first_command_again(made, request_):
    alone = made(timeout_steps=10**4)
    alone.script.at(0.1005, getattr(alone.loop, request_))
    alone.away = (0.1, 60.0)
    alone.run(59.0)
    assert alone.plant.step == alone.loop.start_step and alone.loop.awaiting
    assert (alone.loop.start_step > 5) == (request_ == "reset_state")
    alone.run(60.5)
    assert alone.plant.step > 40 and alone.missed == 0


def test_a_run_that_begins_long_after_the_last_one_has_missed_nothing(made):
    alone = made(wait=False, last_step=5)
    alone.script.at(60.0, alone.loop.reset)
    alone.run(60.5)
    assert alone.missed == 0 and alone.plant.step == 5 and alone.loop.reason == "5 steps done"
    alone.loop.reset_state()
    alone.run(61.0)
    assert (alone.plant.step, alone.loop.reason) == (11, "5 steps done")


def test_a_run_that_begins_long_after_its_plant_was_made_has_missed_nothing(made):
    alone = made(wait=False, placed=lambda: placed.append(list(alone.published)))
    placed = []
    alone.script.now = 60.0
    alone.run(60.5)
    assert alone.missed == 0 and alone.plant.step == pytest.approx(50, abs=1)
    assert placed == [[]]  # where the reference starts is known before there is a state


def test_time_that_is_reset_is_that_of_the_reference_too(made):
    alone = made(wait=False, last_step=5)
    alone.run(0.2)
    alone.loop.reset_state()
    alone.run(0.4)
    alone.loop.reset_time()
    assert (alone.plant.step, alone.loop.start_step) == (0, 0)
    alone.run(0.6)
    assert (alone.plant.step, alone.loop.mode) == (5, Mode.FINISHED)


def test_steps_by_request_have_the_pace_of_a_run(made):
    alone = made(wait=False)
    alone.script.at(0.1005, alone.loop.pause)
    alone.script.at(60.0, lambda: alone.loop.step(4))
    alone.run(60.015)
    assert alone.loop.reason == "4 steps by request" and alone.loop.mode is Mode.RUNNING
    assert alone.plant.step == 12
    alone.run(61.0)
    assert alone.plant.step == 14 and alone.loop.mode is Mode.PAUSED and alone.missed == 0


def test_while_measurements_are_lost_lock_step_holds_the_last_command(made):
    """Those of steps 2, 3 and 4, to which there is no answer."""
    alone = made("dropout=1,start=0.015,duration=0.03", lockstep=True, speed=0.0)
    states = []
    keep = lambda: states.append((alone.plant.step, alone.plant.state))  # noqa: E731
    alone.output.publish = lambda: (alone._publish(), keep())
    alone.loop.options = Options(True, True, 7)
    alone.run(0.5)
    x, expected = START, [(0, START)]
    for k, torque in enumerate([0.0, 0.1, 0.1, 0.1, 0.1, 0.5, 0.6]):
        x = DSYS.step(x, [torque])
        expected.append((k + 1, x))
    found = dict(states)
    assert all(np.array_equal(found[k], x) for k, x in expected) and len(found) == 8
    assert alone.loop.validator.fallback_steps == 0


def test_a_single_step_needs_no_answer_to_what_was_lost(made):
    alone = made("dropout=1,start=0.005", lockstep=True)
    alone.script.at(0.0205, alone.loop.pause)
    alone.run(0.03)
    step = alone.plant.step
    assert step > 0 and alone.plant.measured_step == 0
    alone.loop.step()
    assert alone.plant.step == step + 1


def test_a_step_that_no_command_answers_is_refused_and_its_state_shown_again(made):
    alone = made(lockstep=True, away=(0.0, 9.0))
    alone.loop.pause()
    shown = len(alone.published)
    with pytest.raises(Refused, match="no command answers step 0"):
        alone.loop.step()
    assert alone.published[shown:] == [(0.0, 0)]


def test_a_step_by_request_that_fails_says_why(made):
    alone = made(dsys=Breakable(DSYS), wait=False)
    alone.loop.pause()
    alone.loop.command(("torque",), (13.0,), CLOCK.stamp(0))
    with pytest.raises(Refused, match="step 0 failed.*no luck"):
        alone.loop.step()
    assert alone.loop.mode is Mode.FAILED


def test_steps_by_request_end_where_one_fails(made):
    alone, told = made(dsys=Breakable(DSYS), wait=False, delay_s=1.0), []
    alone.loop.pause()
    alone.script.at(0.015, lambda: alone.loop.command(("torque",), (13.0,), CLOCK.stamp(2)))
    alone.loop.step(9, lambda steps, over: told.append((steps, over)))
    alone.run(0.5)
    assert alone.loop.mode is Mode.FAILED and told == [(1, False), (2, False), (2, True)]


def test_a_state_that_is_not_finite_fails_like_a_step(made):
    class Endless(Breakable):
        def solve(self, x, u):
            return DSYS.solve(x, u)._replace(x1=x + (np.inf if u[0] == 13 else 0.0))

    alone = made(dsys=Endless(DSYS), wait=False)
    alone.loop.command(("torque",), (13.0,), CLOCK.stamp(0))
    alone.run(0.5)
    assert alone.loop.mode is Mode.FAILED and "not finite" in alone.loop.reason
    assert np.array_equal(alone.plant.state, START)


def test_pauses_have_the_reason_of_the_last_request_and_a_reset_changes_none(made):
    alone = made(wait=False, fallback="stop", away=(0.0, 9.0))
    alone.run(0.5)
    reason = "no command for 1 steps, fallback is stop"
    assert (alone.loop.mode, alone.loop.reason) == (Mode.PAUSED, reason)
    alone.loop.pause()
    alone.loop.reset()
    assert (alone.loop.mode, alone.loop.reason) == (Mode.PAUSED, reason)
    alone.loop.stop()
    assert alone.loop.reason == "stopped by request"
    alone.loop.pause()
    alone.loop.pause()
    assert alone.loop.reason == "by request"


def test_it_is_told_when_all_have_come_that_were_waited_for(made):
    present = []
    alone = made(wait=False, last_step=3, missing=lambda: "" if present else "the probe")
    alone.script.at(0.25, lambda: present.append(True))
    alone.run(0.2)
    assert alone.told == [] and alone.loop.awaited == "the probe"
    assert alone.loop.awaited_s == pytest.approx(0.2)
    alone.run(1.0)
    assert alone.told == [Mode.RUNNING, Mode.FINISHED] and alone.loop.awaited_s == 0.0
