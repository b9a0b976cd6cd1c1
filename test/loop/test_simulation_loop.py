"""What the plant's loop waits for, which deadlines it misses, and what requests do."""

import numpy as np
import pytest
from scripted_loop import ALWAYS, CLOCK, HALVED, LIGHT, NEVER, START, TOO_MUCH, H, period

from nh_control.loop.command_validator import Fallback
from nh_control.loop.plant_report import PlantReport
from nh_control.loop.simulation_loop import Mode, Options, Refused

# Steps and what they wait for --------------------------------------------------------------------


def test_lockstep_makes_one_step_per_answer(scripted):
    run = scripted(lockstep=True, speed=0.0, last_step=20)
    run.run(1.0)
    x = START
    for k in range(21):
        np.testing.assert_array_equal(run.states[k], x)
        x = period(x, 0.1 * k)
    assert [step for _, step in run.shown] == list(range(21))
    assert run.phase == ("finished", "20 steps done") and run.told == [Mode.FINISHED]


def test_an_awaited_state_is_published_ten_times_a_second(scripted):
    run = scripted(lockstep=True, away=ALWAYS)
    run.at(0.33, lambda: run.answer(0))
    run.run(0.36)
    assert run.shown == [(0.0, 0), (0.1, 0), (0.2, 0), (0.3, 0), (0.34, 1)]
    assert run.loop.awaited_s == pytest.approx(0.02)  # since the new state, not the first one


def test_a_free_run_waits_for_the_first_answer_only(scripted):
    run = scripted(last_step=50, timeout_steps=5, away=ALWAYS)
    run.run(0.05)
    assert run.plant.step == 0 and run.loop.awaiting
    run.answer(0)
    run.run(1.0)
    assert run.phase == ("finished", "50 steps done")
    assert run.loop.validator.fallback_steps == 45


def test_an_answer_that_came_while_the_thread_was_busy_counts_for_the_step(scripted):
    run = scripted(away=ALWAYS, wait=False, timeout_steps=5, fallback="hold", strict=False)

    def report():  # past the deadline
        run.now += 1.1 * H

    run.at(0.001, lambda: run.answer(0, 0.5))
    run.at(0.011, report)
    run.at(0.012, lambda: run.answer(1, 0.75))
    run.run(0.0705)
    assert [run.inputs[k] for k in range(6)] == [0.0, 0.5, 0.75, 0.75, 0.75, 0.75]
    assert run.loop.validator.held_steps == 4


def test_what_comes_without_end_does_not_keep_a_step_from_being_made(scripted):
    run, came = scripted(away=ALWAYS, wait=False), []

    def flood():
        came.append(run.plant.step)
        assert came.count(came[-1]) <= 1100, "the step is put off again and again"
        run.now += 1e-3 * H
        run.at(run.now, flood)

    run.at(0.0, flood)
    run.run(5.5 * H)
    assert run.plant.step == 5


def test_a_request_that_comes_with_the_deadline_is_carried_out_before_the_step(scripted):
    run = scripted(away=ALWAYS, wait=False)

    def late():
        run.now += 2 * H
        run.at(run.now, run.loop.pause)

    run.at(0.0, late)
    run.run(0.1)
    assert run.loop.mode is Mode.PAUSED and run.plant.step == 0


def test_the_start_waits_for_subscribers_and_an_answer_from_before_they_came_is_used(scripted):
    run = scripted(last_step=3, lockstep=True)
    run.present = False
    run.at(0.25, lambda: setattr(run, "present", True))
    run.run(0.2)
    assert run.told == [] and run.loop.awaited == "the probe" and run.plant.step == 0
    assert run.loop.awaited_s == pytest.approx(0.2) and run.loop.validator.answers(0)
    run.run(1.0)
    assert run.told == [Mode.RUNNING, Mode.FINISHED] and run.loop.awaited_s == 0.0
    assert run.loop.awaited == "" and run.shown[-4:-2] == [(0.3, 0), (0.31, 1)]


def test_subscribers_that_come_after_the_end_get_the_last_state_once(scripted):
    run = scripted(wait=False, last_step=5)
    run.at(0.52, lambda: setattr(run, "late", True))
    run.run(1.0)
    assert run.shown[6:] == [(0.52, 5)] and len(run.states) == 6


# Deadlines ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("away", [(0.0, 60.0), (0.505, 60.0)])
@pytest.mark.parametrize("lockstep", [True, False])
def test_no_deadline_is_missed_while_there_is_no_controller(scripted, lockstep, away):
    """Whether it is awaited for the first time or once more; without lock-step the first only."""
    run = scripted(lockstep=lockstep, away=away, timeout_steps=10**4)
    run.run(60.5)
    assert run.missed == 0
    waited = lockstep or not away[0]
    assert run.plant.step == pytest.approx((away[0] + 0.5 if waited else 60.5) / H, abs=2)


def test_a_controller_that_is_slow_makes_the_plant_miss_deadlines(scripted):
    run = scripted(lockstep=True, delay_s=0.035)
    run.run(1.0)
    assert run.plant.step == pytest.approx(1.0 / 0.035, abs=2)
    assert run.missed == pytest.approx(2 * run.plant.step, abs=3)


@pytest.mark.parametrize("request_", ["reset", "reset_state"])
def test_a_run_that_starts_again_waits_for_its_first_command_again(scripted, request_):
    run = scripted(timeout_steps=10**4)
    run.at(0.1005, getattr(run.loop, request_))
    run.away = (0.1, 60.0)
    run.run(59.0)
    assert run.plant.step == run.loop.start_step and run.loop.awaiting
    assert (run.loop.start_step > 5) == (request_ == "reset_state")
    run.run(60.5)
    assert run.plant.step > 40 and run.missed == 0


def test_a_run_that_begins_long_after_its_plant_was_made_or_another_run_has_missed_nothing(
    scripted,
):
    run = scripted(wait=False, last_step=5)
    run.now = 60.0
    run.at(120.0, run.loop.reset)
    run.run(120.5)
    assert run.missed == 0 and run.phase == ("finished", "5 steps done")
    assert run.plant.step == 5
    run.loop.reset_state()
    run.run(121.0)
    assert run.plant.step == 11 and run.phase == ("finished", "5 steps done")


# Lost measurements -------------------------------------------------------------------------------


def test_while_measurements_are_lost_lock_step_holds_the_last_command(scripted):
    """Those of steps 2, 3 and 4, to which there is no answer."""
    lost = "dropout=1,start=0.015,duration=0.03"
    run = scripted(lost, lockstep=True, speed=0.0, last_step=7)
    run.run(0.5)
    x = START
    for k, torque in enumerate([0.0, 0.1, 0.1, 0.1, 0.1, 0.5, 0.6]):
        x = period(x, torque)
        np.testing.assert_array_equal(run.states[k + 1], x)
    assert len(run.states) == 8 and run.loop.validator.fallback_steps == 0


# Pauses and requested steps ----------------------------------------------------------------------


def test_a_run_is_paused_stepped_resumed_and_reset(scripted):
    run = scripted(wait=False)
    run.run(0.045)
    with pytest.raises(Refused, match="cannot take a single step: .* running; pause it first"):
        run.loop.step()
    run.loop.pause()
    run.run(10.0)
    assert run.plant.step == 4 and run.loop.mode is Mode.PAUSED
    run.loop.resume()
    assert run.loop.paused_s == pytest.approx(9.955)
    run.run(10.045)
    run.loop.pause()
    assert run.plant.step == 8 and run.pacer.statistics().jitter_max_s < 1e-6
    run.loop.step()
    assert run.plant.step == 9
    run.loop.reset()
    assert (run.plant.step, run.loop.mode, run.shown[-1][1]) == (0, Mode.PAUSED, 0)
    run.run(10.05)
    run.loop.resume()
    assert run.loop.paused_s == 0.0  # of a run that has not begun
    run.run(10.1)
    assert run.plant.step > 3


def test_steps_by_request_have_the_pace_of_a_run_are_told_and_end_paused(scripted):
    run, told = scripted(wait=False), []
    run.at(0.1005, run.loop.pause)
    run.at(60.0, lambda: run.loop.step(4, lambda made, over: told.append((made, over))))
    run.run(60.015)
    assert run.phase == ("running", "4 steps by request") and run.plant.step == 12
    run.run(61.0)
    assert run.plant.step == 14 and run.missed == 0
    assert run.phase == ("paused", "by request")
    assert told == [(1, False), (2, False), (3, False), (4, True)]


def test_a_step_that_no_command_answers_is_refused_and_its_state_shown_again(scripted):
    run = scripted(lockstep=True, away=ALWAYS)
    run.loop.pause()
    with pytest.raises(Refused, match="no command answers step 0"):
        run.loop.step()
    assert run.shown == [(0.0, 0)]
    run.answer(0)
    run.loop.step()
    assert run.plant.step == 1


@pytest.mark.parametrize(
    ("request_", "mode"),
    [("pause", "paused"), ("resume", "running"), ("reset", "paused"), ("stop", "paused"),
     ("end_steps", "paused")],
)  # fmt: skip
def test_requested_steps_end_early_by_another_request_and_say_so(scripted, request_, mode):
    run, told = scripted(lockstep=True, away=ALWAYS), []
    run.loop.pause()
    run.answer(0)
    run.loop.step(5, lambda made, over: told.append((made, over)))
    assert told == [(1, False)] and run.loop.mode is Mode.RUNNING  # awaits the next command
    with pytest.raises(Refused, match="cannot take 5 steps: .*pause it first"):
        run.loop.step(5)
    getattr(run.loop, request_)()
    assert told == [(1, False), (1, True)] and run.loop.mode.value == mode


def test_the_fallback_wait_lets_the_time_wait_for_a_controller_and_goes_on_by_itself(scripted):
    """A controller that dies and comes back changes no state, and no command is late."""
    runs = []
    for away in (NEVER, (0.1005, 5.0)):
        run = scripted(fallback="wait", strict=False, last_step=40, away=away)
        run.run(9.0)
        assert run.phase == ("finished", "40 steps done")
        runs.append(run)
    undisturbed, run = runs
    assert run.states.keys() == undisturbed.states.keys()
    for step, state in run.states.items():
        np.testing.assert_array_equal(state, undisturbed.states[step])
    validator = run.loop.validator
    assert (validator.fallback_steps, validator.rejected.total(), run.missed) == (0, 0, 0)
    (began, why, first), (ended, after, last) = run.waited
    assert "waiting for the command that answers step 10" in why
    assert "continues when the command arrives" in why
    assert (first, last) == (False, True) and 1.1 < began < 1.3 and 5.0 < ended < 5.2
    assert "the run continues at step 10" in after
    assert run.loop.waits == 1 and 4.8 < run.loop.waited_s < 5.1
    assert not undisturbed.waited and undisturbed.loop.waits == 0


def test_a_run_that_waits_is_a_warning_can_be_paused_and_takes_another_fallback(scripted):
    run = scripted(fallback="wait", timeout_steps=2, away=(0.1005, 99.0))
    run.run(3.0)
    report = PlantReport(run.loop).begin().complete()
    assert report.level == "warn" and "the command that answers step 11" in report.message
    run.loop.pause()
    run.loop.resume()
    run.run(3.5)
    assert run.plant.step == 11 and run.loop.awaiting
    run.loop.set_fallback(Fallback.HOLD)
    run.run(3.7)
    assert run.plant.step > 25


def test_a_short_stall_is_not_told_and_lost_measurements_do_not_count_as_one(scripted):
    lost, steps = "dropout=1,start=0.15,duration=0.2", []
    run = scripted(lost, fallback="wait", strict=False, timeout_steps=3, away=(0.1, 0.4))
    run.at(0.39, lambda: steps.append((run.plant.step, run.loop.awaiting)))
    run.run(1.2)
    assert steps == [(12, True)] and run.plant.step > 60
    assert not run.waited and run.loop.waits == 1 and run.loop.validator.fallback_steps == 0


def test_a_start_without_a_controller_is_told_after_ten_seconds(scripted):
    run = scripted(away=(0.0, 12.0), last_step=5)
    run.run(13.0)
    (began, _, _), (ended, _, _) = run.waited
    assert 10 < began < 10.3 and 12 < ended < 12.3 and run.loop.waits == 0


# Failures ----------------------------------------------------------------------------------------


def test_a_failed_step_keeps_the_last_good_state_and_a_reset_recovers(scripted):
    run = scripted(dsys=LIGHT, lockstep=True, away=(0.005, 9.0))
    run.run(0.05)
    assert run.plant.step == 1
    run.answer(1, TOO_MUCH)
    run.run(0.2)
    assert run.told == [Mode.FAILED] and "step 1 failed, the plant stays" in run.loop.reason
    assert "a value is not finite" in run.loop.reason
    np.testing.assert_array_equal(run.plant.state, run.states[1])
    report = PlantReport(run.loop).begin().complete()
    assert (report.level, report.message) == ("error", f"failed: {run.loop.reason}")
    for request in (run.loop.pause, run.loop.resume, run.loop.step):
        with pytest.raises(Refused, match="the plant is failed; reset it first"):
            request()
    state = run.plant.state
    run.loop.reset()
    run.answer(0)
    run.run(0.5)
    assert run.plant.step == 1 and np.array_equal(run.plant.state, state)


def test_a_step_by_request_that_fails_says_why_and_ends_the_steps(scripted):
    run = scripted(dsys=LIGHT, wait=False, away=ALWAYS)
    run.loop.pause()
    run.answer(0, TOO_MUCH)
    with pytest.raises(Refused, match=r"step 0 failed.*not finite"):
        run.loop.step()
    assert run.loop.mode is Mode.FAILED
    again, told = scripted(dsys=LIGHT, wait=False, away=ALWAYS), []
    again.loop.pause()
    again.at(0.015, lambda: again.answer(2, TOO_MUCH))
    again.loop.step(9, lambda steps, over: told.append((steps, over)))
    again.run(0.5)
    assert again.loop.mode is Mode.FAILED and told == [(1, False), (2, False), (2, True)]


def test_a_state_that_is_not_finite_fails_like_a_step(scripted):
    class Endless:
        """A system whose step is to infinity."""

        __getattr__ = staticmethod(lambda name: getattr(HALVED, name))

        def solve(self, x, u):
            return HALVED.solve(x, u)._replace(x1=x + np.inf)

    run = scripted(dsys=Endless(), wait=False)
    run.run(0.5)
    assert run.loop.mode is Mode.FAILED and "the next state is not finite" in run.loop.reason
    assert np.array_equal(run.plant.state, START)


# Other states and times --------------------------------------------------------------------------


def finished(scripted):
    """A run of ten steps that is over."""
    run = scripted(wait=False, last_step=10, away=ALWAYS)
    run.run(0.5)
    assert run.loop.mode is Mode.FINISHED
    return run


def test_a_reset_of_the_state_goes_on_in_time_and_one_of_time_keeps_the_state(scripted):
    run = finished(scripted)
    run.loop.reset_state()
    assert run.placed_at == [(0, 0), (11, 11)]  # before the state is published
    run.run(1.0)
    assert run.plant.step == 21 and run.loop.start_step == 11  # it runs as long again
    for k in range(11):
        np.testing.assert_array_equal(run.states[11 + k], run.states[k])
    last = run.plant.state
    run.loop.reset_time()  # and of the reference
    assert (run.plant.step, run.loop.start_step, run.shown[-1][1]) == (0, 0, 0)
    np.testing.assert_array_equal(run.states[0], last)
    run.run(1.5)
    assert run.plant.step == 10 and run.loop.mode is Mode.FINISHED


def test_a_state_is_set_at_the_next_step(scripted):
    run, other = scripted(lockstep=True, away=ALWAYS), np.array([0.5, -0.1])
    run.loop.set_state(other)
    assert run.plant.step == 1 and np.array_equal(run.plant.state, other)
    assert run.plant.constraint_residual == 0.0
    assert run.loop.start_step == 0  # the reference goes on, too
    run.answer(0)  # of the state before: not for this one
    run.run(0.05)
    assert run.plant.step == 1
    run.answer(1)
    run.run(0.1)
    assert run.plant.step == 2
    for wrong in ([0.5], [np.nan, 0.0]):
        with pytest.raises(ValueError, match="expected a state of 2 finite numbers"):
            run.loop.set_state(np.array(wrong))
    assert run.plant.step == 2


@pytest.mark.parametrize(("start", "step"), [("reset", 0), ("reset_state", 4)])
def test_a_planned_run_begins_where_the_reference_starts_again(scripted, start, step):
    run, other = scripted(wait=False, last_step=3), np.array([-0.4, 0.1])
    run.run(0.5)
    run.loop.plan(other, 7)
    present = run.plant.state
    run.loop.set_state(present)
    assert run.loop.mode is Mode.FINISHED and run.plant.step == 4  # still the run that was
    run.loop.place(present, 3, 0)
    run.shown.clear()
    getattr(run.loop, start)()
    run.run(1.0)
    assert run.plant.step == step + 7 and run.loop.mode is Mode.FINISHED
    assert run.loop.options == Options(False, False, 7)
    assert run.shown[0][1] == step
    np.testing.assert_array_equal(run.states[step], other)
    assert run.loop.command(("torque",), (0.0,), CLOCK.stamp(step + 8)) is not None


def test_requests_are_heard_though_no_answer_is_waited_for(scripted):
    """A tracker in the same process answers while the plant publishes."""
    run = scripted(lockstep=True, speed=0.0, delay_s=0.0, last_step=50)
    run.at(0.0, run.loop.pause)
    run.run(1.0)
    assert run.loop.mode is Mode.PAUSED and run.plant.step <= 1
    run.loop.resume()
    run.run(2.0)
    assert run.loop.mode is Mode.FINISHED and run.inputs[50] == pytest.approx(4.9)


# A controller that is silent ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("controlled", "until_s", "mode"),
    [
        (True, 3.4, "running"),
        (True, 3.8, "failed"),
        (False, 1.9, "running"),
        (False, 2.3, "failed"),
    ],
)
def test_a_controller_that_never_came_is_awaited_once(scripted, controlled, until_s, mode):
    """A recorder has waited for its publisher as well."""
    run = scripted(lockstep=True, away=ALWAYS, answer_s=2.0)
    run.present, run.controlled = False, controlled
    run.at(1.5, lambda: setattr(run, "present", True))
    run.run(until_s)
    assert run.phase[0] == mode and run.plant.step == 0


def test_a_step_without_an_answer_ends_the_run_after_its_time(scripted):
    run = scripted(lockstep=True, speed=0.0, away=(0.05, 100.0), answer_s=2.0)
    run.run(15.0)
    step = run.plant.step
    assert run.phase == ("failed", f"no command answered step {step} within 2 s") and step > 0
    assert run.loop.failure is None
    ((time_s, text, over),) = run.waited  # and nothing of an answer
    assert 1.0 < time_s < 2.3 and f"the command that answers step {step}" in text and not over
