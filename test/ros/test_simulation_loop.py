"""The plant's loop without ROS: a queue for the inbox, a pendulum for the plant."""

import queue
import threading
import time

import numpy as np
import pytest
from loop_outputs import loop_output

from nh_control.discrete.results import Conditioning, StepFailed
from nh_control.integrators import midpoint
from nh_control.loop.clocks import Pacer, StepClock
from nh_control.loop.command_validator import CommandNames, CommandValidator
from nh_control.loop.plant_report import OutputMonitor, PlantReport
from nh_control.loop.simulated_plant import SimulatedPlant
from nh_control.loop.simulation_loop import Mode, Options, Refused, SimulationLoop
from nh_control.mechanics.external_forces import on_coordinates, with_external_forces
from nh_control.scenarios import Disturbance, Gust, MonitoredOutput
from nh_control.scenarios.disturbance import DisturbanceForces
from nh_control.systems import pendulum

H = 0.01
CLOCK = StepClock(H)
START = np.array([0.2, 0.5])
UNWATCHED = OutputMonitor(None, None)


@pytest.fixture(scope="module")
def dsys():
    return midpoint(pendulum(), H / 2)


class Breakable:
    """A discrete system whose step fails under a torque of 13."""

    def __init__(self, dsys):
        self._dsys = dsys

    def __getattr__(self, name):
        return getattr(self._dsys, name)

    def solve(self, x, u):
        """The step, or its failure."""
        if u[0] == 13:
            raise StepFailed(
                str(self._dsys), self._dsys.h, "no luck", 1.0, 1.0, 25, Conditioning(1e9, 1.0, 1.0)
            )
        return self._dsys.solve(x, u)


class QueueInbox:
    """An inbox on a queue."""

    def __init__(self):
        self._queue = queue.SimpleQueue()
        self.closed = False

    def serve(self, timeout_s):
        try:
            request = self._queue.get(timeout=timeout_s)
        except queue.Empty:
            return False
        request()
        return True

    def close(self):
        """End the loop."""
        self.closed = True
        self._queue.put(lambda: None)

    def call(self, request):
        """Run in the loop's thread; returns what it returns or raises."""
        answer = queue.SimpleQueue()

        def run():
            try:
                answer.put((request(), None))
            except Exception as error:
                answer.put((None, error))

        self._queue.put(run)
        result, error = answer.get(timeout=60)
        if error is not None:
            raise error
        return result


class Loop:
    """A loop in its thread; `published` are (step, state)."""

    def __init__(
        self,
        dsys,
        lockstep=False,
        wait_for_tracker=True,
        last_step=1000,
        speed=0.0,
        timeout_steps=5,
        fallback="zero",
        **conditions,
    ):
        self.published, self.changes = [], []
        self.inbox = QueueInbox()
        self.plant = SimulatedPlant(dsys, START, substeps=2)
        validator = CommandValidator(
            CommandNames(("torque",)), dsys.system.input_bounds, CLOCK, timeout_steps, fallback
        )
        options = Options(lockstep, wait_for_tracker, last_step)
        show = lambda: self.published.append((self.plant.step, self.plant.state))  # noqa: E731
        change = lambda: self.changes.append(self.loop.mode)  # noqa: E731
        self.loop = SimulationLoop(
            self.plant,
            validator,
            Pacer(H, speed),
            options,
            self.inbox,
            loop_output(show, change, **conditions),
        )
        self.thread = threading.Thread(target=self.loop.run, daemon=True)
        self.thread.start()

    def answer(self, step, value=0.0, names=("torque",)):
        self.inbox.call(lambda: self.loop.command(names, (value,), CLOCK.stamp(step)))

    def wait(self, condition):
        deadline = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < deadline, (self.loop.mode, self.plant.step)
            time.sleep(0.001)

    def wait_mode(self, mode):
        """Wait until the loop has told of the change to this mode, with its reason."""
        self.wait(lambda: self.changes[-1:] == [mode])

    def close(self):
        self.inbox.close()
        self.thread.join(10)


@pytest.fixture
def loop(dsys):
    loops = []

    def make(**options):
        loops.append(Loop(dsys, **options))
        return loops[-1]

    yield make
    for made in loops:
        made.close()


def test_lockstep_makes_one_step_per_answer(loop, dsys):
    run = loop(lockstep=True, last_step=20)
    x = START
    for k in range(20):
        run.wait(lambda k=k: run.published[-1][0] == k)
        assert run.plant.step == k and np.array_equal(run.published[-1][1], x)
        run.answer(k, 0.1 * k)
        for _ in range(2):
            x = dsys.step(x, [0.1 * k])
    run.wait_mode(Mode.FINISHED)
    assert run.plant.step == 20 and np.array_equal(run.plant.state, x)


def test_the_awaited_state_is_published_again(loop):
    run = loop(lockstep=True)
    run.wait(lambda: len(run.published) >= 3)
    assert {step for step, _ in run.published} == {0}
    answered = time.monotonic()
    run.answer(0)
    run.wait(lambda: run.published[-1][0] == 1)
    awaited_s = run.inbox.call(lambda: run.loop.awaited_s)
    assert awaited_s <= time.monotonic() - answered  # since the new state, not the first one


def test_free_run_waits_for_the_first_answer_only(loop):
    run = loop(last_step=50)
    time.sleep(0.05)
    assert run.plant.step == 0
    run.answer(0)
    run.wait_mode(Mode.FINISHED)
    assert run.plant.step == 50
    assert run.loop.validator.fallback_steps == 45


class Script:
    """An inbox to which one thing comes after the other, some `after` a step was shown, and the
    clock of who serves it.
    """

    def __init__(self):
        self.events, self.after, self.closed, self.now = [], {}, False, 0.0

    def serve(self, timeout_s):
        """The next event; without one, the time passes."""
        if self.events:
            self.events.pop(0)()
            return True
        self.now += timeout_s
        return False

    def late(self, seconds):
        """What keeps the thread for so long."""
        self.now += seconds


@pytest.fixture
def scripted(dsys):
    """A paced loop of five steps in this thread, and its script; no state is answered unless the
    script does.
    """
    script, steps = Script(), []
    plant = SimulatedPlant(dsys, START, substeps=2)
    names = CommandNames(("torque",))
    validator = CommandValidator(names, dsys.system.input_bounds, CLOCK, 5, "hold", strict=False)

    def show():
        steps.append((plant.step, plant.inputs.tolist()))
        script.events += script.after.pop(plant.step, [])
        script.closed = plant.step == 5

    pacer = Pacer(H, clock=lambda: script.now)
    options = Options(False, False, 1000)
    loop = SimulationLoop(plant, validator, pacer, options, script, loop_output(show))
    script.answer = lambda step, value: loop.command(("torque",), (value,), CLOCK.stamp(step))
    script.loop, script.steps = loop, steps
    return script


def test_an_answer_that_came_while_the_thread_was_busy_counts_for_the_step(scripted):
    report = lambda: scripted.late(1.1 * H)  # noqa: E731  (past the deadline)
    scripted.after[0] = [lambda: scripted.answer(0, 0.5)]
    scripted.after[1] = [report, lambda: scripted.answer(1, 0.75)]
    scripted.loop.run()
    assert scripted.steps == [
        (0, [0.0]),
        (1, [0.5]),
        (2, [0.75]),
        *((k, [0.75]) for k in (3, 4, 5)),
    ]
    assert scripted.loop.validator.held_steps == 3


def test_what_comes_without_end_does_not_keep_a_step_from_being_made(scripted):
    came = []

    def flood():
        came.append(scripted.loop.plant.step)
        assert came.count(came[-1]) <= 1100, "the step is put off again and again"
        scripted.late(1e-3 * H)
        scripted.events.append(flood)

    scripted.events = [flood]
    scripted.loop.run()
    assert scripted.steps[-1][0] == 5


def test_a_request_that_comes_with_the_deadline_is_carried_out_before_the_step(scripted):
    def pause():
        scripted.late(2 * H)
        scripted.events.append(scripted.loop.pause)
        scripted.events.append(lambda: setattr(scripted, "closed", True))

    scripted.events = [pause]
    scripted.loop.run()
    assert scripted.loop.mode is Mode.PAUSED and scripted.loop.plant.step == 0


def test_the_start_waits_for_subscribers(loop):
    present = []
    run = loop(
        wait_for_tracker=False,
        last_step=5,
        missing=lambda: "" if present else "the probe to subscribe",
    )
    run.wait(lambda: len(run.published) >= 2)
    assert run.plant.step == 0 and run.loop.awaited == "the probe to subscribe"
    present.append(True)
    run.wait_mode(Mode.FINISHED)
    assert run.loop.awaited == ""


def test_an_answer_from_before_all_have_come_is_used(loop, dsys):
    present = []
    run = loop(lockstep=True, missing=lambda: "" if present else "the probe to subscribe")
    run.answer(0, 0.1)
    assert run.loop.validator.answers(0) and run.plant.step == 0
    present.append(True)
    run.wait(lambda: run.published[-1][0] == 1)
    assert np.array_equal(run.plant.state, dsys.step(dsys.step(START, [0.1]), [0.1]))


def test_who_comes_after_the_end_is_told_the_last_state(loop):
    late = []
    run = loop(
        wait_for_tracker=False, last_step=5, late_subscribers=lambda: bool(late) and late.pop()
    )
    run.wait_mode(Mode.FINISHED)
    published = len(run.published)
    time.sleep(0.3)
    assert len(run.published) == published
    late.append(True)
    run.wait(lambda: len(run.published) == published + 1)
    assert run.published[-1][0] == 5
    alone = loop(wait_for_tracker=False, last_step=5)
    alone.wait_mode(Mode.FINISHED)
    published = len(alone.published)
    time.sleep(0.3)
    assert len(alone.published) == published  # nobody is late unless something says so


def test_pause_step_resume_reset(loop):
    run = loop(wait_for_tracker=False, speed=1.0)
    run.wait(lambda: run.plant.step > 3)
    with pytest.raises(Refused, match="pause it first"):
        run.inbox.call(run.loop.step)
    run.inbox.call(run.loop.pause)
    step = run.plant.step
    time.sleep(0.5)
    assert run.plant.step == step and run.loop.mode is Mode.PAUSED
    run.inbox.call(run.loop.resume)
    run.wait(lambda: run.plant.step > step + 3)
    run.inbox.call(run.loop.pause)
    assert run.loop.pacer.statistics().jitter_max_s < 0.4  # the pause has made no step late
    step = run.plant.step
    run.inbox.call(run.loop.step)
    assert run.plant.step == step + 1
    run.inbox.call(run.loop.reset)
    assert run.plant.step == 0 and run.loop.mode is Mode.PAUSED and run.published[-1][0] == 0
    run.inbox.call(run.loop.resume)
    run.wait(lambda: run.plant.step > 3)


def test_single_step_in_lockstep_needs_its_answer(loop):
    run = loop(lockstep=True)
    run.inbox.call(run.loop.pause)
    with pytest.raises(Refused, match="no command answers step 0"):
        run.inbox.call(run.loop.step)
    run.answer(0)
    run.inbox.call(run.loop.step)
    assert run.plant.step == 1


def test_stop_fallback_pauses_and_resuming_awaits_an_answer(loop):
    run = loop(fallback="stop", timeout_steps=2)
    run.answer(0)
    run.wait_mode(Mode.PAUSED)
    assert run.plant.step == 2 and "fallback is stop" in run.loop.reason
    run.inbox.call(run.loop.resume)
    time.sleep(0.05)
    assert run.plant.step == 2 and run.loop.awaiting
    run.answer(2)
    run.wait(lambda: run.plant.step == 4)


def test_a_failed_step_keeps_the_last_good_state_and_reset_recovers(dsys):
    run = Loop(Breakable(dsys), lockstep=True)
    run.answer(0)
    run.wait(lambda: run.plant.step == 1)
    state = run.plant.state
    run.answer(1, 13.0)
    run.wait_mode(Mode.FAILED)
    assert (
        run.plant.step == 1 and np.array_equal(run.plant.state, state) and np.isfinite(state).all()
    )
    assert (
        "step 1 failed" in run.loop.reason
        and "no luck" in run.loop.reason
        and run.changes == [Mode.FAILED]
    )
    report = run.inbox.call(PlantReport(run.loop, UNWATCHED).make)
    assert report.level == "error" and run.loop.reason in report.message
    for request in (run.loop.pause, run.loop.resume, run.loop.step):
        with pytest.raises(Refused, match="reset it first"):
            run.inbox.call(request)
    run.inbox.call(run.loop.reset)
    run.answer(0)
    run.wait(lambda: run.plant.step == 1)
    assert np.array_equal(run.plant.state, state)
    run.close()


def test_reports_warn_about_what_is_new(loop):
    run = loop(lockstep=True)
    report = PlantReport(run.loop, UNWATCHED)
    assert run.inbox.call(report.make).level == "ok"
    run.answer(0, names=("brake",))
    made = run.inbox.call(report.make)
    assert (
        made.level == "warn"
        and "1 commands rejected" in made.message
        and made.values["rejected: wrong names"] == 1
    )
    assert run.inbox.call(report.make).level == "ok"
    time.sleep(1.1)
    made = run.inbox.call(report.make)
    assert (
        made.level == "warn"
        and "step 0" in made.message
        and "is the tracker running?" in made.message
    )


def test_reports_give_the_steps_per_second_since_the_last_one(loop):
    run = loop(lockstep=True)
    began = time.monotonic()
    report = PlantReport(run.loop, UNWATCHED)
    least = time.monotonic()
    for k in range(4):
        run.answer(k)
        run.wait(lambda k=k: run.published[-1][0] == k + 1)
    most = time.monotonic()
    rate = run.inbox.call(report.make).values["rate_hz"]
    assert 4 / (time.monotonic() - began) <= rate <= 4 / (most - least)
    assert run.inbox.call(report.make).values["rate_hz"] == 0.0


def test_a_disturbance_is_an_input_that_commands_do_not_reach(dsys):
    targets = {target.name: target for target in on_coordinates(dsys.system.space)}
    gust = Disturbance("theta", Gust((0.3,), start=2 * H, duration=2 * H))
    forces = DisturbanceForces((gust,), targets, H)
    plant = midpoint(with_external_forces(dsys.system, forces.targets), dsys.h)
    pushed = SimulatedPlant(plant, START, substeps=2, disturbance=forces)
    other = SimulatedPlant(dsys, START, substeps=2)
    assert len(pushed.idle) == 1 and pushed.commanded(plant.system.input_bounds).shape == (1, 2)
    for step in range(5):
        pushed.advance([0.1])
        other.advance([0.1 + (0.3 if step in (2, 3) else 0.0)])
        assert pushed.external["theta"] == (0.3 if step in (2, 3) else 0.0)
    np.testing.assert_allclose(pushed.state, other.state, atol=1e-14)
    assert pushed.inputs == [0.1]
    pushed.reset()
    assert pushed.external == {}


def test_the_lowest_values_and_those_that_are_too_low_are_told_once():
    monitor = MonitoredOutput(
        "grip",
        ("left", "right"),
        "N",
        lambda p, q, v, u, external: q + u - p,
        minimum=0.0,
        warning="a loose grip",
    )
    monitor = OutputMonitor(monitor, 1.0)
    assert monitor.report() == ({}, "")
    monitor.observe(3, np.ones(2), np.zeros(1), np.zeros(2), {})
    monitor.observe(
        0, np.zeros(2), np.zeros(1), np.zeros(2), {}
    )  # after a reset: no step was made
    assert monitor.report()[1] == "1 steps with a loose grip (left, right)"
    monitor = OutputMonitor(monitor._monitor, 1.0)
    for step, q in enumerate([(9.0, 9.0), (4.0, 3.0), (4.0, 3.0), (0.5, 2.0), (5.0, 6.0)]):
        monitor.observe(step, np.array(q), np.zeros(1), np.zeros(2), {})
    values, warning = monitor.report()
    assert values == {
        "grip left (N)": 4.0,
        "grip right (N)": 5.0,
        "lowest grip left (N)": -0.5,
        "lowest grip right (N)": 1.0,
    }
    assert warning == "1 steps with a loose grip (left)"
    assert monitor.report() == (
        {
            "grip left (N)": 4.0,
            "grip right (N)": 5.0,
            "lowest grip left (N)": 4.0,
            "lowest grip right (N)": 5.0,
        },
        "",
    )
    monitor.observe(4, np.zeros(2), np.zeros(1), np.zeros(2), {})  # the same state again
    assert monitor.report()[1] == ""


def test_the_initial_state_must_be_finite(dsys):
    with pytest.raises(ValueError, match="must be finite"):
        SimulatedPlant(dsys, np.array([np.nan, 0.0]))


@pytest.mark.parametrize(("start", "step"), [("reset", 0), ("reset_state", 4)])
def test_a_planned_run_begins_where_the_reference_starts_again(loop, start, step):
    run, other = loop(wait_for_tracker=False, last_step=3), np.array([-0.4, 0.1])
    run.wait_mode(Mode.FINISHED)
    run.inbox.call(lambda: run.loop.plan(other, 7))
    present = run.plant.state
    run.inbox.call(lambda: run.loop.set_state(present))
    assert run.loop.mode is Mode.FINISHED and run.plant.step == 4  # still the run that was
    run.inbox.call(lambda: run.loop.place(present, 3, 0))
    run.published.clear()
    run.inbox.call(getattr(run.loop, start))
    run.wait(lambda: run.plant.step == step + 7 and run.loop.mode is Mode.FINISHED)
    assert run.published[0][0] == step
    np.testing.assert_array_equal(run.published[0][1], other)
