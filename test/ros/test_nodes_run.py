"""Runs over DDS: in lock-step as in one process, in real time at their rate."""

from functools import partial

import numpy as np
import pytest
from fuzzing import numbers
from geometry_msgs.msg import PoseStamped, TwistStamped
from nav_msgs.msg import Path
from nav_msgs.msg import Path as Poses
from node_processes import LOCKSTEP
from probe import by_step, latched, time_ns
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState, MultiDOFJointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger
from test_goals import goal, trajectory
from trajectory_msgs.msg import MultiDOFJointTrajectory
from visualization_msgs.msg import MarkerArray

from nh_control import scenarios
from nh_control.ros.messages.state_codecs import codecs
from nh_control.runs.build import build
from nh_control.runs.settings import RunSettings
from nh_control.scenarios.driven_joints import joint_efforts

SNAKEBOARD = {"perturb": {"position": 0.1, "heading": 0.1, "momentum": 0.1}}
VEHICLE = {"perturb": {"position": 0.1, "heading": 0.1}}
FAULTS = [
    *("noise=0.001,seed=1", "velocities:noise=0.01", "delay=0.014", "jitter=0.02"),
    *("dropout=0.2", "phi:bias=0.01,start=0.5", "rotor_torque:lag=0.02"),
    *("commands:dropout=0.1", "dead_band=0.05", "steer_torque:stuck,start=1,duration=0.2"),
]
WIND = [
    "payload:gust:1,-2,0.5,start=0.5,duration=1",
    "quad1:noise:0.3,0.3,0.3,0.1,0.1,0.1,correlation=0.2,seed=5",
]
RUNS = {
    "joints and a planar body": (100, SNAKEBOARD),
    "late plans": (
        60,
        {"scenario": "cart_pole", "perturb": {"angle": 0.3}, "controller": "mpc"}
        | {"mpc": {"late": 0.7}},
    ),
    "another plant": (
        100,
        SNAKEBOARD | {"plant": {"integrator": "rdp_exp", "substeps": 4, "parameters": {"m": 1.1}}},
    ),
    "another model and an integral": (
        200,
        SNAKEBOARD
        | {"integrator": "rdp_cay", "integral": True}
        | {"plant": {"integrator": "midpoint", "parameters": {"m": 1.1}}},
    ),
    "faults": (200, SNAKEBOARD | {"fault": FAULTS}),
    "a planar body alone": (100, VEHICLE | {"scenario": "chaplygin_sleigh"}),
    "wheels that slide": (100, VEHICLE | {"scenario": "wet_car"}),
    "joints and an attitude": (
        100,
        {"scenario": "satellite", "integrator": "rkmk4"}
        | {"perturb": {"attitude": 0.3, "rate": 0.01}}
        | {"plant": {"integrator": "midpoint", "substeps": 4}},
    ),
    "joints that are moved at will": (
        100,
        {"scenario": "marionette", "perturb": {"heading": 0.1, "position": 0.05}},
    ),
    "bodies in the wind": (
        200,
        {"scenario": "quadrotor_payload", "reference": "hover", "disturb": WIND}
        | {"perturb": {"position": 0.2, "swing": 0.3, "tilt": 0.5, "seed": 3}}
        | {"plant": {"substeps": 2, "parameters": {"payload_mass": 0.5, "lengths": [0.65, 0.75]}}},
    ),
    "a robot of a file": (100, {"scenario": "urdf", "perturb": {"angle": 0.2}}),
}
BY_DEFAULT = ("joints and a planar body", "late plans")


def flat(settings, prefix=""):
    found = {}
    for name, value in settings.items():
        inner = isinstance(value, dict)
        found |= flat(value, f"{prefix}{name}.") if inner else {prefix + name: value}
    return found


class Heard:
    """All states and commands of a run of `steps`."""

    def __init__(self, probe, steps, settings, space=""):
        self.probe, self.steps, self.faulty = probe, steps, "fault" in settings
        scenario = scenarios.of_origin(RunSettings.of(settings).to_dict())
        self.h = scenario.step_s
        settings = settings | {"duration_s": steps * self.h}
        self.experiment = build(RunSettings.of(settings))
        self.settings = settings | {"perturb": self.experiment.settings.perturb}
        parameters = self.experiment.plant.system.parameters
        model = self.experiment.model
        self.codecs = codecs(scenario, model, parameters=parameters, prefix=space, efforts=True)
        self.efforts = joint_efforts(
            scenario.joints, self.experiment.plant.system, model.system.nu
        )
        self.expected = self.experiment.run(by_messages=True).trajectory
        prefix = f"/{space}ground_truth/" if self.faulty else f"/{space}"
        self.commands = probe.listen(JointState, f"/{space}joint_commands")
        self.topics = {
            topic: probe.listen(type(template.message), prefix + topic)
            for codec in self.codecs
            for topic, template in codec.outgoing
        }

    def wait(self):
        last = [(heard, self.steps) for heard in self.topics.values()]
        for heard, step in (*last, (self.commands, self.steps - 1)):
            self.probe.wait(lambda heard=heard, step=step: step in by_step(heard, self.h), "last")

    def compare(self):
        """Messages of every step are those of the run in this process."""
        heard = {topic: by_step(messages, self.h) for topic, messages in self.topics.items()}
        assert all(sorted(one) == list(range(self.steps + 1)) for one in heard.values())
        model = self.experiment.model
        states, inputs = self.expected.states, self.expected.inputs
        applied = [self.experiment.plant.idle(self.experiment.x0), *inputs]
        for k, (x, u) in enumerate(zip(states, applied, strict=True)):
            q, v = model.configuration(x), model.velocity(x)
            for codec in self.codecs:
                codec.write(q.tolist(), v.tolist(), self.efforts(q, v, u))
                for topic, template in codec.outgoing:
                    found, message = heard[topic][k], template.message
                    assert found.header.frame_id == message.header.frame_id
                    assert names(found) == names(message)
                    found, message = list(numbers(found)), list(numbers(message))
                    np.testing.assert_allclose(found, message, rtol=1e-9, atol=1e-9)
        if not self.faulty:  # which change what is commanded
            commands = by_step(self.commands, self.h)
            found = [commands[k].effort for k in range(self.steps)]
            np.testing.assert_allclose(found, self.expected.inputs, rtol=0, atol=1e-9)
            assert tuple(commands[0].name) == model.inputs

    def again(self):
        for heard in (*self.topics.values(), self.commands):
            heard.clear()
        self.probe.reset()
        self.wait()


def names(message):
    return [getattr(message, field, "") for field in ("name", "joint_names", "child_frame_id")]


def started(nodes, run, *arguments, kinds=("tracker", "plant")):
    for name in kinds:
        given = {**flat(run.settings), **LOCKSTEP, "heard_by": "[probe]"}
        nodes.start(name, given, *arguments)


@pytest.mark.parametrize(
    "name",
    [name if name in BY_DEFAULT else pytest.param(name, marks=pytest.mark.slow) for name in RUNS],
)
def test_a_run_in_lock_step_is_the_simulation_and_so_is_it_after_a_reset(nodes, probe, name):
    run = Heard(probe, *RUNS[name])
    started(nodes, run)
    run.wait()
    run.compare()
    run.again()
    run.compare()


@pytest.mark.slow
def test_plant_and_tracker_in_one_process_make_the_same_run(nodes, probe):
    run = Heard(probe, *RUNS["joints and a planar body"])
    started(nodes, run, kinds=["composed"])
    run.wait()
    run.compare()


@pytest.mark.slow
def test_real_time_keeps_its_rate_also_where_it_changes_during_the_run(nodes, probe):
    cart = {"scenario": "cart_pole"}  # has no singularity into which late answers might steer it
    nodes.start("tracker", cart)
    given = {"wait_for": "[probe]", "on_finish": "continue", "perturb.angle": 0.1}
    nodes.start("plant", {**cart, **given})
    probe.require_rate(100, relative=0.03, seconds=2.0)
    assert not probe.set("plant", speed_factor=3.0)
    probe.wait_value("speed_factor", "3")
    probe.require_rate(300, relative=0.03, seconds=2.0)


@pytest.mark.slow
def test_a_plan_is_published_and_drawn_for_its_horizon_and_late_ones_are_counted(nodes, probe):
    plans, markers = probe.listen(Poses, "plan"), probe.listen(MarkerArray, "markers")
    numbers = probe.listen(Float64MultiArray, "controller_state/plan")
    given = {"scenario": "cart_pole", "lockstep": True}
    nodes.start("display", given)
    mpc = {"controller": "mpc", "mpc.horizon_s": 0.5, "mpc.late": 0.7}
    nodes.start("tracker", {**given, **mpc})
    probe.wait_publishers("plan", "markers", "controller_state/plan", "joint_commands")
    nodes.start("plant", {**given, **LOCKSTEP, "wait_for": "[probe, display]", "duration_s": 1.0})
    probe.wait_mode("finished")
    probe.wait(
        lambda: plans and any(plan.data[1] < 1 for plan in numbers), "a plan that nears a limit"
    )
    last = plans[-1]
    first, end = (time_ns(last.poses[i]) for i in (0, -1))
    assert plans[0].header.frame_id == "odom"
    assert first == time_ns(last) and 0.2e9 <= end - first <= 0.5e9
    assert numbers[-1].layout.dim[0].label == "solve_s,margin,plan_age_steps"
    solve_s, margin = np.transpose([plan.data[:2] for plan in numbers])
    assert solve_s.min() > 0 and margin.min() > 0 and margin.max() <= 1
    drawn = lambda: [m for array in markers for m in array.markers if m.ns == "plan"]
    assert len(probe.wait(drawn, "drawn plan")[-1].points) == 20
    probe.wait_value("step", "100", "tracker")
    counted = probe.values("tracker")
    by_plan, by_earlier = (int(counted[f"commands_by_{w}"]) for w in ("plan", "earlier_plan"))
    assert 0 < by_plan < by_earlier and float(counted["margin: track"]) > 0
    unwanted = ("commands_by_lqr", "plans_failed", "plans_outdated")
    assert [counted[name] for name in unwanted] == ["0", "0", "0"]


@pytest.mark.slow
def test_two_robots_in_namespaces_do_not_disturb_each_other(nodes, probe):
    names = ("robot1", "robot2")
    clocks = [probe.listen(Clock, f"/{name}/clock") for name in names]
    runs = [
        Heard(probe, 200, {"perturb": {"position": 0.1 * (i + 1)}}, f"{name}/")
        for i, name in enumerate(names)
    ]
    for name, run in zip(names, runs):
        started(nodes, run, "-r", f"__ns:=/{name}")
    for run, clock in zip(runs, clocks):
        run.wait()
        run.compare()
        probe.wait(lambda clock=clock: time_ns(clock[-1]) == 2 * 10**9, "last time")
        times = [time_ns(message) for message in clock]
        assert times == sorted(times) and set(times) == {k * 10**7 for k in range(201)}  # exactly
    assert not probe.clock  # nobody has the time of all


# Goals, trajectories and velocity commands -------------------------------------------------------


HOVER = {"scenario": "quadrotor_payload", "reference": "hover"}
PACED = {**LOCKSTEP, "speed_factor": 4.0, "on_finish": "continue"}


@pytest.mark.slow
def test_goals_and_trajectories_for_a_robot_in_a_namespace_are_followed_or_refused(nodes, probe):
    frame, tracker = "robot1/odom", "robot1/tracker"
    bodies = probe.listen(MultiDOFJointState, "/robot1/multi_dof_joint_states")
    paths = probe.listen(Path, "/robot1/reference", latched())
    for name, given in (("tracker", HOVER), ("plant", {**HOVER, **PACED})):
        nodes.start(name, given, "-r", "__ns:=/robot1")
    goals = probe.heard_publisher(PoseStamped, "/robot1/goal")
    trajectories = probe.heard_publisher(MultiDOFJointTrajectory, "/robot1/trajectory")
    way = partial(trajectory, frame=frame, joints=["robot1/payload"])
    probe.wait(lambda: len(bodies) > 150, "flight")

    def there(*place):
        def rests():
            p, v = bodies[-1].transforms[0].translation, bodies[-1].twist[0].linear
            return np.allclose([p.x, p.y, p.z, v.x, v.y, v.z], [*place, 0, 0, 0], atol=2e-3)

        probe.wait(rests, f"rest at {place}")

    for publisher, message, text in (
        (goals, goal((0.0, 0.0, 1.0)), f"in the frame 'odom'; expected '{frame}'"),
        (trajectories, way(stamp_s=0.02), "in the past: the stamp must be"),
    ):
        told = lambda text=text: text in probe.message(tracker)
        probe.send_until(told, publisher, message, text)
    there(0.0, 0.0, 1.0)
    goals.publish(goal((0.5, 0.25, 1.5), frame))
    probe.wait(lambda: bodies[-1].transforms[0].translation.x > 0.1, "motion")
    goals.publish(goal((-0.5, 0.5, 1.0), frame))  # on the way
    there(-0.5, 0.5, 1.0)
    trajectories.publish(way((3.0, 6.0), ((0.0, 0.0, 1.0), (0.5, 0.5, 1.2))))
    there(0.5, 0.5, 1.2)
    probe.wait_value("goals_accepted", "3", tracker)
    assert float(probe.values(tracker)["error of payload position (m)"]) < 1e-3
    values = probe.values("robot1/plant")
    assert (values["commands_rejected"], values["fallback_steps"]) == ("0", "0")
    reset = probe.node.create_client(Trigger, "/robot1/plant/reset")
    assert probe.ask(reset, Trigger.Request()).success
    probe.wait(lambda: len(paths) == 5, "path of the first reference")
    there(0.0, 0.0, 1.0)


@pytest.mark.slow
def test_a_vehicle_is_driven_by_velocity_commands_until_nobody_sends_any(nodes, probe):
    own = {"scenario": "differential_drive", "reference": "standstill"}
    nodes.start("tracker", own)
    nodes.start("plant", {**own, **PACED, "speed_factor": 1.0})
    commands = probe.heard_publisher(TwistStamped, "cmd_vel", 1)
    probe.wait(lambda: len(probe.odometry) > 10, "states")

    def place():
        p, v = probe.odometry[-1].pose.pose.position, probe.odometry[-1].twist.twist
        return np.array([p.x, p.y, v.linear.x, v.angular.z])

    def drive(forward, turn, until):
        command = TwistStamped()
        command.twist.linear.x, command.twist.angular.z = forward, turn
        probe.wait(lambda: commands.publish(command) or until(*place()), f"motion {forward, turn}")

    drive(0.8, 0.0, lambda x, y, forward, turn: x > 0.5)
    drive(0.4, 1.0, lambda x, y, forward, turn: y > 0.2)  # then nobody commands any more
    probe.wait(lambda: np.abs(place()[2:]).max() < 1e-6, "rest")
