"""What the plant publishes, takes and ends with, for every parameter, without a network."""

import math
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from bench import Desk, Ended, benches, listener
from bob import BOB, STEPS, TORQUE, pushed, put_up
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState

from nh_control.loop import plant_report, simulation_loop
from nh_control.loop.command_validator import Rejection
from nh_control.loop.simulation_loop import Mode
from nh_control.ros.messages import conversions
from nh_control.ros.nodes import plant
from nh_control.ros.runtime.subscribers import DELIVERY_S

H_NS = 10**7
STANDARD = "nh_control.ros.messages.standard_control"
JOINT, TRUTH = "joint_states", "ground_truth/joint_states"


class Running:
    """A plant in this thread: `run(answer)` answers states with torques."""

    def __init__(self, make, namespace="", **parameters):
        given = {"scenario": "bob", "speed_factor": 0.0, "lockstep": True} | parameters
        self.node, self.desk, self.ended = make("plant", namespace, **given), Desk(), Ended()
        self.made = plant.Plant(self.node, self.desk, self.ended)
        self.loop, self._answered = self.made.loop, -1

    def run(self, answer=lambda k: TORQUE, turns=1000):
        """Work until the run is over, or for some turns; answers of None are not given."""
        self._left = turns

        def serve():
            self._left -= 1
            if not self._left or self.loop.mode is not Mode.RUNNING:
                self.desk.close()
                return
            stamp = conversions.nanoseconds(self.node.sent(JOINT)[-1].header.stamp)
            torque = answer(stamp // H_NS)
            if torque is not None and stamp != self._answered:
                self._answered = stamp
                self.command(torque, stamp)

        self.desk.on_serve, self.desk.closed = serve, False
        self.made.work()
        return self

    def command(self, torque, stamp):
        self.desk.give("joint_commands", JointState(name=["torque"], effort=[torque]), stamp)

    def stamps(self, topic=JOINT):
        return [conversions.nanoseconds(m.header.stamp) / H_NS for m in self.node.sent(topic)]

    def rows(self, topic=JOINT):
        return np.array([[m.position[0], *m.velocity] for m in self.node.sent(topic)])

    def report(self):
        self.desk.closed = False
        return self.node.report()


@pytest.fixture
def plants(monkeypatch):
    """Makes plants: f(**parameters), in no hurry on a busy machine."""
    put_up(monkeypatch)
    monkeypatch.setattr(simulation_loop, "REPUBLISH_S", 1e6)
    monkeypatch.setattr(plant_report, "AWAIT_WARNING_S", 1e6)
    with benches() as make:
        yield lambda *namespace, **parameters: Running(make, *namespace, **parameters)


def test_a_run_is_the_reference_s_and_ends_with_it(plants):
    run = plants(on_finish="exit")
    run.loop.pause()
    run.loop.resume()
    assert run.ended.requests == []
    run.run()
    dsys = BOB.model()
    reference = pushed(dsys)
    assert run.stamps() == list(range(STEPS + 1))
    q, v = dsys.configuration(reference.states[7]), dsys.velocity(reference.states[7])
    assert run.rows()[7] == pytest.approx([*q, *v], abs=1e-12)
    assert run.ended.requests == [(None, 0)]
    level, text, values = run.report()
    assert (level, text) == (0, f"finished: {STEPS} steps done")
    assert values["commands_accepted"] == str(STEPS) and values["commands_rejected"] == "0"
    texts = [text for level, text in run.node.logged if level == "info"]
    assert any(f"{STEPS} commands, as fast as possible, lock-step" in text for text in texts)
    assert sum("steps/s; missed steps" in text for text in texts) == 1


def test_time_comes_before_the_state_of_the_same_time_and_messages_are_kept_for_the_slow(plants):
    run = plants().run()
    clock, joint, start = (run.node.made[name] for name in ("clock", JOINT, "reference_start"))
    times = [conversions.nanoseconds(message.clock) / H_NS for message in clock.sent]
    topics = ("bob/odom", TRUTH, "multi_dof_joint_states")
    assert all(run.stamps(topic) == times for topic in (JOINT, *topics))
    assert all(before < after for before, after in zip(clock.at, joint.at))
    assert [(t.sec, t.nanosec) for t in start.sent] == [(0, 0)] and start.at[0] < clock.at[0]
    assert next(iter(run.node.made)) == "reference_start"  # found before the states
    assert start.quality.durability.name == "TRANSIENT_LOCAL"
    assert [round(wait, 1) for wait in start.waits] == [DELIVERY_S]  # also a busy tracker has it
    for topic in (JOINT, TRUTH, "clock", "multi_dof_joint_states"):
        assert run.node.made[topic].quality == 1000


@pytest.mark.parametrize(
    ("parameters", "last"),
    [
        ({}, STEPS),
        ({"duration_s": 0.05}, 5),
        ({"duration_s": 0.1, "step_s": 0.02}, 5),
        ({"on_finish": "continue"}, sys.maxsize),
        ({"reference": "hanging"}, STEPS // 2),
    ],
)
def test_a_run_is_as_long_as_asked_for_and_stays_unless_told(plants, parameters, last):
    run = plants(**parameters)
    assert run.loop.options.last_step == last
    step_s = parameters.get("step_s", 0.01)
    assert run.loop.pacer.period_s == run.loop.plant.dsys.h == step_s
    if last < 10:
        assert run.run().loop.plant.step == last and run.ended.requests == []


@pytest.mark.parametrize(
    ("on_finish", "requests"), [("stay", []), ("continue", [(None, 3)]), ("exit", [(None, 3)])]
)
def test_a_step_that_fails_is_an_error_and_an_exit_code(plants, on_finish, requests):
    light = {"plant.parameters.m": 1e-6}
    run = plants(on_finish=on_finish, **light).run(lambda k: 1e308)
    assert run.ended.requests == requests
    assert "error" in [level for level, _ in run.node.logged]
    assert run.report()[:2] == (2, f"failed: {run.loop.reason}")


@pytest.mark.parametrize(
    "other", [{}, {"plant.parameters.m": 3.0}, {"plant.parameters.l": 2.0, "plant.substeps": 3}]
)
def test_whatever_the_plant_is_it_starts_as_the_reference_moves(plants, monkeypatch, other):
    def moving(dsys):
        return dsys.simulate(dsys.state([0.3], [1.5]), np.zeros((3, 1)))

    put_up(monkeypatch, replace(BOB, references={"moving": moving}))
    assert plants(**other).run().rows()[0] == pytest.approx([0.3, 1.5], abs=1e-9)


def test_the_plant_has_the_parameters_and_the_initial_error_of_its_own(plants):
    run = plants(**{"plant.parameters.l": 2.0, "perturb.angle": 0.1, "plant.substeps": 3})
    run.run()
    for topic in ("multi_dof_joint_states", "ground_truth/multi_dof_joint_states"):
        place = run.node.sent(topic)[0].transforms[0].translation
        assert (place.x, place.z) == pytest.approx((2 * np.sin(0.4), -2 * np.cos(0.4)))
    assert run.rows()[0] == pytest.approx([0.4, 0.0])
    assert run.loop.plant.substeps == 3
    run.run()
    # g / l is half of that of the model
    fall = run.rows()[1, 1] / 0.01
    assert fall == pytest.approx((TORQUE / 2 - 9.8 * np.sin(0.4)) / 2, rel=2e-2)


def test_states_are_what_sensors_measure_and_the_truth_is_told_beside_them(plants):
    run = plants(fault=["positions:bias=0.25"], publish_velocities=False).run()
    assert run.rows().shape[1] == 1 and run.rows(TRUTH).shape[1] == 2
    assert run.rows()[:, 0] - run.rows(TRUTH)[:, 0] == pytest.approx(0.25)
    assert run.stamps(TRUTH) == run.stamps()
    assert run.node.sent("bob/odom")[0].twist.covariance[0] == -1.0


def test_time_goes_on_while_measurements_are_lost(plants):
    run = plants(fault=["dropout=1,start=0.05,duration=0.05"]).run()
    assert len(run.node.sent("clock")) == STEPS + 1
    assert 5 <= STEPS + 1 - len(run.node.sent(JOINT)) <= 6


@pytest.mark.parametrize(
    ("clock", "topic"), [("namespace", "/robot1/clock"), ("global", "/clock"), ("none", None)]
)
def test_the_clock_is_where_it_is_wanted_and_frames_begin_with_the_robot_s_name(
    plants, clock, topic
):
    run = plants("robot1", clock=clock)
    run.run(turns=3)
    for name in ("bob/odom", "multi_dof_joint_states", "ground_truth/multi_dof_joint_states"):
        assert run.node.sent(name)[0].header.frame_id == "robot1/odom"
    assert run.node.sent("bob/odom")[0].child_frame_id == "robot1/bob"
    assert run.node.sent("multi_dof_joint_states")[0].joint_names == ["bob"]
    found = [p for p in run.node.publishers if p.topic_name.endswith("clock")]
    assert [p.topic_name for p in found] == ([] if topic is None else [topic])
    other = SimpleNamespace(node_namespace="/robot2", node_name="plant")
    own = SimpleNamespace(node_namespace="/robot1", node_name="plant")
    run.node.seen_publishers = {"/clock": [own, other], "/robot1/clock": [own]}
    level, text, _ = run.report()
    assert ("/clock is also published by /robot2/plant" in text) is (clock == "global")
    assert (level == 1) is (clock == "global")
    run.node.seen_publishers = {topic: [own, own]}  # two of the same name
    assert ("is also published by /robot1/plant" in run.report()[1]) is (topic is not None)


def test_what_is_applied_without_commands_is_the_parameter_s(plants):
    """A pendulum falls, keeps its last torque, or is brought to rest."""
    ends = {}
    for fallback in ("zero", "hold", "damp"):
        run = plants(lockstep=False, fallback=fallback, command_timeout_steps=2)
        run.run(lambda k: -5.0 if k == 0 else None)
        ends[fallback] = run.rows()[-1, 1]
        values = run.report()[2]
        assert values["fallback"] == fallback and int(values["fallback_steps"]) >= STEPS - 3
    assert ends["hold"] < ends["zero"] < ends["damp"] < 0
    assert plants(lockstep=False).run(lambda k: None, turns=5).loop.plant.step == 0  # it waits
    run = plants(lockstep=False, wait_for_tracker=False, fallback="tracker").run(lambda k: None)
    run.node.call("~/reset_state")
    run.run(lambda k: None)
    dsys = BOB.model()
    q = [float(dsys.configuration(x)[0]) for x in pushed(dsys).states]
    assert run.rows()[: STEPS + 1, 0] == pytest.approx(q, abs=1e-9)
    assert run.rows()[-STEPS - 1 :, 0] == pytest.approx(q, abs=1e-9)  # from its start again
    run.desk.closed = False
    assert run.node.set_parameters([Parameter("reference", value="hanging")])[0].successful
    run.loop.reset()
    run.run(lambda k: None)
    assert np.abs(run.rows()[-1]).max() < 1e-9  # along another reference


def test_who_is_waited_for_must_hear_all_states_and_what_else_it_has_subscribed_to(plants):
    run, hears = plants(wait_for=["recorder", "viewer"]), listener("recorder")
    node, missing = run.node, run.made.output.missing
    topics = ["/joint_states", "/multi_dof_joint_states"]
    node.seen_subscriptions = dict.fromkeys(topics, [hears])
    assert missing() == "viewer to subscribe to /joint_states (parameter 'wait_for')"
    run = plants(wait_for=["recorder"])
    node, missing = run.node, run.made.output.missing
    node.seen_subscriptions = {topics[0]: [hears]}
    assert missing() == f"recorder to subscribe to {topics[1]} (parameter 'wait_for')"
    node.seen_subscriptions = dict.fromkeys([*topics, "/diagnostics"], [hears])
    for topic in ("/diagnostics", TRUTH, "clock"):
        publisher = node.made[topic]
        publisher.subscribers = 0
        node.seen_subscriptions[publisher.topic_name] = [hears]
        assert missing().startswith(f"a subscription of {publisher.topic_name} to be matched")
        publisher.subscribers = 1
    assert missing() == "new subscriptions to settle"
    run.made.output._states._complete_at -= 0.11
    assert missing() == plants().made.output.missing() == ""


def test_a_controller_is_there_once_it_publishes_commands(plants):
    run = plants()
    assert not run.made.output.has_controller()
    run.node.seen_publishers["joint_commands"] = [listener("controller")]
    assert run.made.output.has_controller()


def test_services_control_time_and_say_where_it_is(plants):
    run = plants(wait_for_tracker=False, lockstep=False)
    says = lambda name, **request: run.node.call(name, **request).message
    starts = lambda: [start.nanosec // H_NS for start in run.node.sent("reference_start")]
    assert says("~/pause", data=True) == says("~/pause", data=True) == "paused at step 0"
    run.loop.step(3)
    run.run(turns=4)
    assert says("~/reset_state") == "paused at step 4"
    assert starts()[-1] == 4 and run.stamps()[-1] == 4
    assert run.rows()[-1] == pytest.approx([0.3, 0.0])
    refused = run.node.call("~/load_state")
    assert not refused.success and "no state was saved" in refused.message
    run.loop.step(2)
    run.run(turns=4)
    assert says("~/save_state") == "paused at step 6"
    assert says("~/reset") == "paused at step 0" and starts()[-1] == 0
    assert says("~/load_state") == "paused at step 6"  # with the start of its reference
    assert starts()[-2:] == [0, 4] and run.stamps()[-1] == 6
    assert says("~/pause", data=False) == "running at step 6"


def test_states_are_kept_in_memory_and_in_a_file(plants, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    run = plants(lockstep=False, wait_for_tracker=False, state_file="~/state.json")
    succeeds = lambda name: run.node.call(name).success
    assert not succeeds("~/load_state")
    assert succeeds("~/save_state") and (tmp_path / "state.json").is_file()
    run.run(lambda k: None)
    kept = run.loop.plant.state
    assert succeeds("~/load_state") and run.loop.plant.step == 0
    run.run(lambda k: None)
    run.node.set_parameters([Parameter("state_file", value="")])
    assert run.node.call("~/save_state").message == f"finished at step {STEPS}"
    assert succeeds("~/reset") and succeeds("~/load_state")
    assert np.array_equal(run.loop.plant.state, kept) and run.loop.plant.step == STEPS
    run.node.set_parameters([Parameter("state_file", value="~/state.json")])
    assert succeeds("~/load_state") and run.loop.plant.step == 0
    gone = plants(state_file="~/nowhere/state.json").node.call("~/save_state")
    assert not gone.success and gone.message.startswith("parameter 'state_file': ")


def finished(run, coroutine):
    """What a coroutine returns that awaits steps of a run."""
    while True:
        try:
            coroutine.send(None)
        except StopIteration as end:
            return end.value
        run.run(lambda k: None, turns=8)
        run.desk.closed = False


def test_steps_by_request_are_as_many_as_the_parameter_says(plants):
    run = plants(lockstep=False, wait_for_tracker=False, step_count=4)
    refused = finished(run, run.node.call("~/step"))
    assert not refused.success
    assert "4 steps" in refused.message and refused.message.endswith("pause it first")
    run.node.call("~/pause", data=True)
    answer = finished(run, run.node.call("~/step"))
    assert answer.success and answer.message == "paused at step 4" and run.stamps()[-1] == 4
    run.loop.plant.place(run.loop.plant.state, STEPS - 2)
    answer = finished(run, run.node.call("~/step"))
    assert not answer.success
    assert answer.message == f"2 of 4 steps taken, finished at step {STEPS}"


def test_what_is_watched_is_reported_with_its_lowest_value(plants, monkeypatch):
    run = plants(disturb=["theta:constant:0.5"], duration_s=0.1)
    run.run(lambda k: -2.0 if k == 3 else 1.0)
    level, text, values = run.node.told  # at the end of the run
    assert values["load torque (N m)"] == "1" and values["lowest load torque (N m)"] == "-2"
    assert values["load wind (N m)"] == "0.5"
    assert level == 1 and "1 steps with a load that is too low (torque)" in text
    assert float(values["energy_J"]) != 0 and run.report()[0] == 0
    undisturbed = plants(duration_s=0.1).run(lambda k: -2.0 if k == 3 else 1.0)
    assert run.rows()[-1, 0] > undisturbed.rows()[-1, 0]
    lengths = lambda p, q, v, u, external: np.array([p.l, q[0]])  # of the plant
    put_up(monkeypatch, replace(BOB, monitor=replace(BOB.monitor, values=lengths)))
    run = plants(**{"plant.parameters.l": 2.0}, duration_s=0.05).run()
    assert run.report()[2]["load torque (N m)"] == "2"


def test_live_changes_reach_the_plant(plants):
    run = plants()
    set_ = lambda name, value: run.node.set_parameters([Parameter(name, value=value)])[0]
    assert set_("speed_factor", 2).successful and run.loop.pacer.speed_factor == 2.0
    assert set_("fallback", "damp").successful
    assert run.loop.validator.fallback.value == "damp"
    assert set_("reference", "hanging").successful
    run.loop.reset()
    assert run.loop.options.last_step == STEPS // 2
    assert run.rows()[-1] == pytest.approx([0.0, 0.0])
    assert set_("perturb.angle", 0.2).successful
    run.loop.reset()
    assert run.rows()[-1] == pytest.approx([0.2, 0.0])
    assert set_("fault", ["positions:bias=0.5", "velocities:bias=2"]).successful
    run.loop.reset()
    assert run.rows()[-1] == pytest.approx([0.7, 2.0])
    assert set_("fault", [""]).successful and set_("disturb", [""]).successful
    run.loop.reset()
    assert run.rows()[-1] == pytest.approx([0.2, 0.0])
    assert not set_("command_timeout_steps", 9).successful
    other = plants(**{"plant.substeps": 2, "plant.parameters.l": 2.0})
    wind = Parameter("disturb", value=["theta:constant:0.5"])
    assert other.node.set_parameters([wind])[0].successful
    dsys = other.loop.plant.dsys  # the same plant, pushed
    assert dsys.system.parameters.l == 2.0 and dsys.h == 0.005
    assert other.loop.plant.targets == ("theta",)
    run.made.close()
    assert set_("fallback", "hold").successful  # a value, but nobody cares any more
    assert run.loop.validator.fallback.value == "damp"


def test_changes_that_cannot_be_are_refused_before_anything_changes(plants):
    run = plants(scenario="snakeboard")
    plant, dsys = run.loop.plant, run.loop.plant.dsys
    fast = np.zeros(dsys.system.space.nw) + 1e200  # from here no step is possible
    plant.place(dsys.state(dsys.configuration(plant.state), fast), 0)
    for name, value, reason in (
        ("disturb", ["base_link:constant:1,0,0"], "not finite"),
        ("reference", "flying", "choose one of: parking, forward"),
    ):
        (refused,) = run.node.set_parameters([Parameter(name, value=value)])
        assert not refused.successful and reason in refused.reason
    assert plant.dsys is dsys


def test_at_the_end_the_last_report_is_sent_and_awaited(plants):
    run = plants(duration_s=0.1).run()
    before, ended = len(run.node.sent("/diagnostics")), []
    run.made._end_standard_control = lambda: ended.append(True)
    run.made.close()
    assert ended == [True] and len(run.node.sent("/diagnostics")) == before + 1
    waits = [run.node.made[topic].waits[-1] for topic in ("/diagnostics", JOINT, "bob/odom")]
    assert all(0.0 < wait <= DELIVERY_S for wait in waits)


@pytest.mark.parametrize(
    ("interface", "target"), [("position", 0.4), ("velocity", 0.2), ("position", None)]
)
def test_positions_and_velocities_of_joints_are_followed_by_an_inner_loop(
    plants, interface, target
):
    """Without a command it keeps the joints where they are."""
    servo = {"servo.bandwidth": 20.0, "plant.substeps": 2, "command_interface": interface}
    waits = target is not None
    run = plants(lockstep=False, wait_for_tracker=waits, on_finish="continue", **servo)
    message = JointState(name=["pivot"], effort=[9.0])
    if waits:
        setattr(message, interface, [target])
        run.desk.give("joint_commands", message, 0)
    run.run(answer=lambda k: None, turns=120)  # one command: it is held
    t = run.made._model.dsys.h * np.arange(len(run.rows()))
    q, v = run.rows().T
    decay = np.exp(-20.0 * t)
    if target is None:
        assert q == pytest.approx(q[0], abs=1e-9) and len(q) > 50
    elif interface == "position":
        wanted = target + (q[0] - target) * (1 + 20.0 * t) * decay
        assert np.abs(q - wanted).max() < 0.02 * abs(q[0] - target)
        assert q[-1] == pytest.approx(target, abs=1e-6)
    else:
        assert v == pytest.approx(target * (1 - decay), abs=1e-6)
    run.desk.give("joint_commands", JointState(name=["pivot"], effort=[1.0]), 0)
    assert run.made.loop.validator.examples.popitem()[1].startswith(f"got {interface} []")


def test_it_takes_what_the_hardware_interface_of_ros2_control_sends(plants):
    """All joints' names, the positions of those that are commanded, and the wall time or NaN."""
    given = {"scenario": "cart_pole", "command_interface": "position", "lockstep": False}
    run = plants(**given, on_finish="continue")
    message = JointState(name=["cart_joint", "pole_joint"], position=[float("nan")])
    for position in (float("nan"), float("nan"), 0.1):
        message.position = [position]
        run.desk.give("joint_commands", message, 1_700_000_000 * 10**9)
    run.run(answer=lambda k: None, turns=30)
    validator = run.made.loop.validator
    assert validator.accepted == 1 and sum(validator.rejected.values()) == 0
    told = [text for level, text in run.node.logged if "no controller commands" in text]
    assert len(told) == 1 and ("info", *told) in run.node.logged
    assert run.node.sent(JOINT)[-1].position[0] > 1e-3


def quintic(t):
    """From 0.3 to 0.9 in 1 s, as a joint_trajectory_controller interpolates, with its rate."""
    s = min(t, 1.0)
    return 0.3 + 0.6 * s**3 * (10 - 15 * s + 6 * s**2), 0.6 * 30 * s**2 * (1 - s) ** 2


@pytest.mark.parametrize(
    ("clock", "rates"), [("plant", ()), ("plant", (1.0,)), ("own", ()), ("own", (math.nan,))]
)
def test_a_quintic_is_followed_within_two_milliradians(plants, clock, rates):
    """At 100 Hz, with stamps of the plant's clock, or of another one, which begins at 100 s."""
    run = plants(lockstep=False, on_finish="continue", command_interface="position")
    name = ["pivot"]

    def answer(k):
        t = k * 0.01
        position, rate = quintic(t)
        velocity = [rate * factor for factor in rates]
        message = JointState(name=name, position=[position], velocity=velocity)
        stamp = k * H_NS if clock == "plant" else 100 * 10**9 + k * H_NS
        run.desk.give("joint_commands", message, stamp)

    run.run(answer=answer, turns=130)
    t = 0.01 * np.arange(len(run.rows()))
    wanted = np.array([quintic(one)[0] for one in t])
    assert t[-1] > 1.1
    assert np.abs(run.rows()[:, 0] - wanted).max() < 2e-3
    assert not run.loop.validator.rejected


def test_the_bandwidth_of_the_inner_loop_changes_while_it_runs(plants):
    run = plants(lockstep=False, on_finish="continue", command_interface="position")
    run.desk.give("joint_commands", JointState(name=["pivot"], position=[0.5]), 0)
    changed = run.node.set_parameters([Parameter("servo.bandwidth", value=5.0)])
    run.run(answer=lambda k: None, turns=60)
    t = 0.01 * np.arange(len(run.rows()))
    q = run.rows()[:, 0]
    wanted = 0.5 + (q[0] - 0.5) * (1 + 5.0 * t) * np.exp(-5.0 * t)
    assert changed[0].successful and np.abs(q - wanted).max() < 0.02 * abs(q[0] - 0.5)


def test_a_car_takes_the_speed_of_its_wheels_and_the_angle_of_its_steering(plants):
    """As a controller of bicycles commands them: each field has the joints of its interface."""
    kinds = "rear_wheels_joint:velocity,steering_joint:position"
    given = {"scenario": "car", "reference": "standstill", "command_interface": kinds}
    run = plants(**given, lockstep=False, on_finish="continue")
    names = ["rear_wheels_joint", "steering_joint"]
    message = JointState(name=names, position=[0.2], velocity=[3.0])
    run.desk.give("joint_commands", message, 1_700_000_000 * 10**9)
    run.run(answer=lambda k: None, turns=80)
    last = run.node.sent(JOINT)[-1]
    assert last.velocity[0] == pytest.approx(3.0, rel=0.02)
    assert last.position[1] == pytest.approx(0.2, abs=2e-3)
    assert run.loop.validator.accepted == 1 and not run.loop.validator.rejected


@pytest.mark.parametrize("interface", ["effort", "position"])
def test_states_tell_the_efforts_of_the_last_step(plants, interface):
    """Of the servo where targets are commanded; of nobody before the first step."""
    lockstep = interface == "effort"
    run = plants(lockstep=lockstep, on_finish="continue", command_interface=interface)
    if not lockstep:
        run.desk.give("joint_commands", JointState(name=["pivot"], position=[0.5]), 0)
    run.run(answer=(lambda k: TORQUE + k) if lockstep else (lambda k: None), turns=20)
    told = [message.effort[0] for message in run.node.sent(JOINT)]
    assert told == [message.effort[0] for message in run.node.sent(TRUTH)]
    assert told[0] == 0.0 and len(told) > 5
    if lockstep:
        assert told[1:6] == [TORQUE + k for k in range(5)]
    else:
        assert told[1] > 0.1 and told[-1] == run.loop.plant.inputs[0]


@pytest.mark.parametrize(("publishers", "rejected"), [(1, 0), (2, 1)])
def test_a_second_answer_to_a_state_is_that_of_a_second_publisher_only(
    plants, publishers, rejected
):
    run = plants(lockstep=False, on_finish="continue")
    run.node.seen_publishers = {"/joint_commands": [object()] * publishers}
    run.loop.plant.step = 1
    for torque in (0.5, 0.75):
        run.command(torque, H_NS)
    validator = run.loop.validator
    assert validator.rejected[Rejection.DUPLICATE] == validator.rejected.total() == rejected
    assert validator.values == ((0.5,) if rejected else (0.75,))


def test_the_latency_of_the_first_answer_to_every_state_is_told(plants):
    run = plants().run()
    sent = [message.data for message in run.node.sent("command_latency")]
    assert len(sent) == STEPS and all(0 < one < 60 for one in sent)
    values = run.node.told[2]
    assert 0 < float(values["latency_p50_us"]) <= float(values["latency_p99_us"])
    assert "latency_p50_us" not in run.report()[2]  # since the last report
    run = plants()
    run.node.made["command_latency"].subscribers = 0
    run.run()
    assert run.node.sent("command_latency") == []
