"""Over DDS, at trackers in processes of their own: wrong measurements of hardware, goals,
trajectories, and goals of actions where their types are installed.
"""

import importlib
import itertools

import numpy as np
import pytest
from test_nodes_fuzz import SEED, Right, refusals

STATES, GOALS = 3_000, 200
"""States, goals and trajectories that are thrown at nodes."""
HARDWARE = {"source": "hardware", "hardware.armed": True, "hardware.compensate_delay": False}
FLIGHT = {"scenario": "quadrotor_payload", "reference": "hover"}
PLANT = {**FLIGHT, "on_finish": "continue", "lockstep": True, "speed_factor": 4.0}
ACTIONS = [
    ("nav2_msgs", "NavigateToPose", "navigate_to_pose"),
    ("control_msgs", "FollowJointTrajectory", "follow_joint_trajectory"),
]


def counted(report, what):
    """What was refused by kind, which is all that was refused."""
    found = {kind: int(n) for kind, n in refusals(report, f"{what} refused: ").items()}
    assert sum(found.values()) == int(report[f"{what}_refused"])
    return found


class Thrower:
    """Publishes messages by topic, a share of them made wrong."""

    def __init__(self, probe, share):
        from fuzzing import Fuzzer

        self._probe, self._share, self._publishers = probe, share, {}
        self.fuzzer = Fuzzer(SEED)

    def throw(self, messages):
        """Publish, once each topic is heard."""
        for topic, message in messages.items():
            if topic not in self._publishers:
                publisher = self._probe.node.create_publisher(type(message), topic, 10)
                self._probe.wait(publisher.get_subscription_count, f"listener of {topic}")
                self._publishers[topic] = publisher
            wrong = self.fuzzer.chance(self._share)
            self._publishers[topic].publish(self.fuzzer.wrong(message) if wrong else message)


def measured(right, k, at=None):
    """The messages of a measurement."""
    return {name: m for name, m in right.states(k, at).items() if "reference" not in name}


@pytest.mark.slow
def test_no_measurement_harms_a_tracker_of_hardware(nodes, probe):
    from fuzzing import numbers
    from std_srvs.srv import SetBool, Trigger

    tracker, right = nodes.start("tracker", HARDWARE), Right("snakeboard")
    probe.wait_publishers("joint_commands")
    arm = probe.node.create_client(SetBool, "/tracker/arm")
    start = probe.node.create_client(Trigger, "/tracker/start")
    thrower, undisturbed = Thrower(probe, 0.3), Thrower(probe, 0.0)
    for k in range(STATES):
        thrower.throw(measured(right, k))
        if thrower.fuzzer.chance(0.01):
            arm.call_async(SetBool.Request(data=thrower.fuzzer.chance(0.7)))
            start.call_async(Trigger.Request())
            probe.spin(0.02)
    steps = itertools.count(STATES)

    def refused():
        """Whether the tracker says so; how much of the flood it has taken is left to chance."""
        thrower.throw(measured(right, next(steps)))
        messages = measured(right, next(steps))
        messages["joint_states"].position = [np.nan for _ in messages["joint_states"].position]
        undisturbed.throw(messages)
        report = probe.values("tracker")
        return report and {"wrong length", "not finite"} <= counted(report, "states").keys()

    probe.wait(refused, "refusals")
    probe.commands.clear()
    steps = itertools.count()

    def answers():  # the first states are of a time long ago, which disarms
        undisturbed.throw(measured(right, next(steps), at=0))  # where the reference is held
        arm.call_async(SetBool.Request(data=True))
        probe.spin(0.01)
        return len(probe.commands) > 20

    probe.wait(answers, "commands")
    assert all(np.isfinite(list(numbers(command))).all() for command in probe.commands)
    assert tracker.process.poll() is None


@pytest.mark.slow
def test_no_goal_trajectory_or_goal_of_an_action_harms_a_flight(nodes, probe):
    from fuzzing import numbers

    running = [nodes.start("tracker", FLIGHT), nodes.start("plant", PLANT)]
    right, thrower = Right(FLIGHT["scenario"]), Thrower(probe, 0.9)
    probe.wait(lambda: len(probe.bodies) > 20, "flight")
    clients = action_clients(probe)

    def throw():
        messages = right.goals(0)
        for message in messages.values():  # taken for "now"
            message.header.stamp.sec = message.header.stamp.nanosec = 0
        thrower.throw(messages)

    for k in range(GOALS):
        throw()
        for client, request in clients:
            client.send_goal_async(thrower.fuzzer.wrong(request))
        if k % 20 == 0:
            probe.spin(0.05)

    def refused():
        """Whether the tracker says so; how much of the flood it has taken is left to chance."""
        throw()
        report = probe.values("tracker")
        return report and {"wrong names", "wrong frame"} <= counted(report, "goals").keys()

    probe.wait(refused, "refusals")
    undisturbed = Thrower(probe, 0.0)

    def accepted():
        return int(probe.values("tracker")["goals_accepted"])

    before = accepted()

    def follows():
        undisturbed.throw({"goal": right.goals(0)["goal"]})
        probe.spin(1.0)
        return accepted() > before

    probe.wait(follows, "goal")
    assert all(np.isfinite(list(numbers(m))).all() for m in (*probe.bodies, *probe.commands))
    assert all(node.process.poll() is None for node in running)
    assert probe.values()["mode"] == "running"


def action_clients(probe):
    """Clients of the actions whose types are installed, each with a right request."""
    from rclpy.action import ActionClient

    found = []
    for package, name, topic in ACTIONS:
        try:
            kind = getattr(importlib.import_module(f"{package}.action"), name)
        except ImportError:
            continue
        client, request = ActionClient(probe.node, kind, topic), kind.Goal()
        pose = getattr(request, "pose", None)
        header = request.multi_dof_trajectory.header if pose is None else pose.header
        header.frame_id = "odom"
        probe.wait(client.server_is_ready, f"action {topic}")
        found.append((client, request))
    return found
