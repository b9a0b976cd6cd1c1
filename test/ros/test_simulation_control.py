"""Time and state of the plant's loop under control, without ROS: steps, resets, other states."""

import numpy as np
import pytest
from test_simulation_loop import START, Loop

from nh_control.integrators import midpoint
from nh_control.loop.simulation_loop import Mode, Options, Refused
from nh_control.systems import pendulum


@pytest.fixture
def loop():
    """Return f(options) -> Loop; all end."""
    loops = []

    def make(**options):
        loops.append(Loop(midpoint(pendulum(), 0.005), **options))
        return loops[-1]

    yield make
    for made in loops:
        made.close()


def finished(loop, **options):
    """A run of ten steps that is over."""
    run = loop(wait_for_tracker=False, last_step=10, **options)
    run.wait_mode(Mode.FINISHED)
    return run


def test_steps_are_counted_and_reported_and_end_paused(loop):
    run, told = loop(wait_for_tracker=False), []
    run.inbox.call(run.loop.pause)
    at = run.plant.step
    run.inbox.call(lambda: run.loop.step(5, lambda made, over: told.append((made, over))))
    run.wait(lambda: told and told[-1][1])
    assert told == [(1, False), (2, False), (3, False), (4, False), (5, True)]
    assert run.plant.step == at + 5 and run.loop.mode is Mode.PAUSED


@pytest.mark.parametrize(
    ("request_", "mode"),
    [
        ("pause", Mode.PAUSED),
        ("resume", Mode.RUNNING),
        ("reset", Mode.PAUSED),
        ("stop", Mode.PAUSED),
    ],
)
def test_steps_end_early_by_another_request_and_say_so(loop, request_, mode):
    run, told = loop(lockstep=True), []
    run.answer(0)
    run.wait(lambda: run.plant.step == 1)
    run.inbox.call(run.loop.pause)
    run.answer(1)
    run.inbox.call(lambda: run.loop.step(5, lambda made, over: told.append((made, over))))
    assert told == [(1, False)] and run.loop.mode is Mode.RUNNING  # awaits the next command
    with pytest.raises(Refused, match="pause it first"):
        run.inbox.call(lambda: run.loop.step(5))
    run.inbox.call(getattr(run.loop, request_))
    assert told == [(1, False), (1, True)]
    assert run.loop.mode is mode


def test_the_last_step_of_a_run_ends_the_steps_that_were_asked_for(loop):
    run, told = loop(wait_for_tracker=False, last_step=10_000), []
    run.inbox.call(run.loop.pause)
    left = 10_000 - run.plant.step
    run.loop.options = Options(False, False, run.plant.step + 3)
    run.inbox.call(lambda: run.loop.step(left, lambda made, over: told.append((made, over))))
    run.wait_mode(Mode.FINISHED)
    assert told[-1] == (3, True)


def test_a_reset_of_the_state_goes_on_in_time_and_runs_as_long_again(loop):
    run = finished(loop)
    first = dict(run.published)
    run.published.clear()
    run.inbox.call(run.loop.reset_state)
    run.wait(lambda: run.published[-1:] and run.published[-1][0] == 21)
    assert run.loop.start_step == 11
    again = dict(run.published)
    assert sorted(again) == list(range(11, 22))
    assert all(np.array_equal(again[11 + k], first[k]) for k in range(11))


def test_a_reset_of_time_keeps_the_state(loop):
    run = finished(loop)
    last = run.plant.state
    run.published.clear()
    run.inbox.call(run.loop.reset_time)
    run.wait(lambda: run.published)
    assert run.published[0][0] == 0 and np.array_equal(run.published[0][1], last)
    assert run.loop.start_step == 0


def test_a_state_is_set_at_the_next_step(loop):
    run = loop(lockstep=True)
    other = np.array([0.5, -0.1])
    run.inbox.call(lambda: run.loop.set_state(other))
    assert run.plant.step == 1 and np.array_equal(run.plant.state, other)
    assert run.plant.constraint_residual == 0.0
    assert run.loop.start_step == 0  # the reference goes on, too
    run.answer(0)  # of the state before: not for this one
    assert run.plant.step == 1
    run.answer(1)
    run.wait(lambda: run.plant.step == 2)
    for wrong in ([0.5], [np.nan, 0.0]):
        with pytest.raises(ValueError, match="expected a state of 2 finite numbers"):
            run.inbox.call(lambda: run.loop.set_state(np.array(wrong)))
    assert run.plant.step == 2


def test_a_stopped_plant_waits_at_its_start(loop):
    run = finished(loop)
    run.inbox.call(run.loop.stop)
    assert (run.loop.mode, run.loop.reason) == (Mode.PAUSED, "stopped by request")
    assert run.plant.step == 0 and np.array_equal(run.plant.state, START)
    run.inbox.call(run.loop.resume)
    run.wait_mode(Mode.FINISHED)


def test_it_is_told_where_the_reference_starts_before_the_state_is_published(loop):
    runs, told = [], []
    placed = lambda: runs and told.append((runs[0].loop.start_step, runs[0].published[-1][0]))  # noqa: E731
    runs.append(finished(loop, placed=placed))
    runs[0].inbox.call(runs[0].loop.reset_state)
    assert told == [(11, 10)]
