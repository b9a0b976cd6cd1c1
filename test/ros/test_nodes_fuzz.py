"""Whatever comes in, nodes live, say what they refused, and send finite numbers only."""

import copy
import math
import time

import numpy as np
import pytest

from nh_control import scenarios

SEED = 20260


class Right:
    """Right messages of a scenario along its reference."""

    def __init__(self, name):
        from nh_control.ros.messages import conversions
        from nh_control.ros.messages.state_codecs import codecs

        scenario = scenarios.get(name)
        self.dsys = scenario.model()
        self.reference = scenario.reference(self.dsys, "")
        self._codecs, self._set = codecs(scenario, self.dsys), conversions.set_time
        self._command = conversions.command_message(self.dsys.inputs)

    def states(self, k, at=None):
        """The state of step k, by topic, and as that of the reference; or one that stays at the
        reference's step `at`.
        """
        x = self.reference.states[(k if at is None else at) % len(self.reference)]
        found = {}
        for codec in self._codecs:
            codec.write(self.dsys.configuration(x).tolist(), self.dsys.velocity(x).tolist())
            self._set(codec.message.header.stamp, round(k * self.dsys.h * 1e9))
            found[codec.topic] = copy.deepcopy(codec.message)
            found[f"reference/{codec.topic}"] = found[codec.topic]
        return found

    def command(self, stamp_ns):
        """A command."""
        self._set(self._command.header.stamp, stamp_ns)
        return {"joint_commands": self._command}

    def goals(self, k):
        """A goal and a trajectory."""
        from geometry_msgs.msg import PoseStamped, Transform, Twist
        from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

        goal, trajectory = PoseStamped(), MultiDOFJointTrajectory(joint_names=["payload"])
        for message in (goal, trajectory):
            message.header.frame_id = "odom"
            self._set(message.header.stamp, round(k * self.dsys.h * 1e9))
        goal.pose.position.z = 1.5
        for second in (2, 4, 6):
            point = MultiDOFJointTrajectoryPoint(transforms=[Transform()], velocities=[Twist()])
            point.time_from_start.sec, point.transforms[0].translation.z = second, 1.0
            trajectory.points.append(point)
        return {"goal": goal, "trajectory": trajectory}


@pytest.fixture
def fuzzed(domain):
    """Makes nodes in this process."""
    from fuzzed_node import FuzzedNode

    made = []

    def make(name, **parameters):
        made.append(FuzzedNode(name, parameters, domain))
        return made[-1]

    yield make
    for node in made:
        node.end()


def refusals(report, what):
    """What was refused, by reason."""
    return {key.removeprefix(what): n for key, n in report.items() if key.startswith(what)}


def attack_plant(node, right, rounds):
    """Commands of any kind and calls of all services; returns how many commands."""
    from fuzzed_node import throw
    from fuzzing import Fuzzer

    fuzzer, loop = Fuzzer(SEED), node.component.loop

    def commands(_):
        if fuzzer.chance(0.02):
            again = [("reset",), ("reset_state",), ("save_state",), ("load_state",)]
            node.call(*fuzzer.pick([("pause", True), ("pause", False), ("pause", False), *again]))
        now = right.dsys.h * loop.plant.step
        stamps_s = [0.0, now, now, now + right.dsys.h / 3, now - 1.0, now + 1.0, time.time()]
        return right.command(round(1e9 * fuzzer.pick(stamps_s)))

    thrown = throw(node, fuzzer, rounds, commands)
    return thrown + throw_pieces(node, "joint_commands", right.command(0)["joint_commands"])


def throw_pieces(node, topic, message):
    """The first bytes of a message, which are none; returns how many pieces."""
    from rclpy.serialization import serialize_message

    data = serialize_message(message)
    pieces = [b"", data[:3], data[:11], data[: len(data) // 2], b"\xff" * len(data)]
    for piece in pieces:
        node.receive(topic, piece)
    return len(pieces)


PLANT = {"wait_for_tracker": False, "on_finish": "continue", "speed_factor": 20.0}


def test_no_command_harms_a_plant(fuzzed):
    from nh_control.loop.command_validator import Rejection

    node, right = fuzzed("plant", scenario="snakeboard", **PLANT), Right("snakeboard")
    sent = attack_plant(node, right, 1500)
    report = node.report()
    counted = refusals(report, "rejected: ")
    assert sum(counted.values()) == report["commands_rejected"] > sent / 3
    assert 0 < report["commands_accepted"] <= sent - report["commands_rejected"]
    late = Rejection.LATE.value  # by luck
    assert set(counted) | {late} == {reason.value for reason in Rejection}
    assert np.isfinite(node.component.loop.plant.state).all()


def assert_goes_on(node, right, k, arm):
    """The tracker answers right states again."""
    from fuzzed_node import throw
    from fuzzing import Fuzzer

    def states(i):
        return right.states(k + i)

    throw(node, Fuzzer(SEED), 1, states, share=0.0)
    if arm:
        node.call("arm", True)
    before = node.node.published
    throw(node, Fuzzer(SEED), 5, lambda i: states(i + 1), share=0.0)
    assert node.node.published >= before + 5


OTHER_CLOCK = {"source": "hardware", "hardware.armed": True, "hardware.compensate_delay": False}
OTHER_CLOCK |= {"disarm.silence_s": 0.0}  # however slow the machine is
TRACKERS = [("snakeboard", {"integral": True}, 400), ("snakeboard", OTHER_CLOCK, 400)]
LONG_TRACKERS = [
    ("quadrotor_payload", {}, 60),
    ("quadrotor_payload", {**OTHER_CLOCK, "hardware.estimator": "none"}, 100),
    ("satellite", {}, 400),
]


@pytest.mark.parametrize(
    ("scenario", "given", "rounds"),
    [*TRACKERS, *(pytest.param(*case, marks=pytest.mark.slow) for case in LONG_TRACKERS)],
)
def test_no_state_or_goal_harms_a_tracker(fuzzed, scenario, given, rounds):
    from fuzzed_node import throw
    from fuzzing import Fuzzer

    node, right = fuzzed("tracker", scenario=scenario, **given), Right(scenario)
    fuzzer = Fuzzer(SEED)

    def messages(k):
        if "source" in given and fuzzer.chance(0.02):
            node.call(*fuzzer.pick([("arm", True), ("start",)]))
        return right.states(k) | (right.goals(k) if fuzzer.chance(0.1) else {})

    throw(node, fuzzer, rounds, messages, share=0.3)
    for topic, message in right.states(rounds).items():
        if topic in node.topics and "source" not in given:
            throw_pieces(node, topic, message)
            counted = node.report()["states refused: wrong length"]
            assert throw_pieces(node, topic, message) == (
                node.report()["states refused: wrong length"] - counted
            )
    if "goal" in node.topics:
        goal = right.goals(rounds)["goal"]
        goal.pose.position.x = math.nan
        node.receive("goal", goal)
        goal.header.frame_id = "x" * 10_000
        node.receive("goal", goal)
    report = node.report()
    counted = refusals(report, "states refused: ")
    expected = {"wrong length"} if "source" in given else {"wrong names"}
    assert expected | {"wrong length"} <= set(counted)
    assert sum(counted.values()) == report["states_refused"] > rounds / 20
    if "goal" in node.topics:
        goals = refusals(report, "goals refused: ")
        assert {"wrong frame", "not finite"} <= set(goals)
        assert sum(goals.values()) == report["goals_refused"]
    assert_goes_on(node, right, rounds, "source" in given)


@pytest.mark.slow
def test_nothing_harms_a_display(fuzzed):
    from fuzzed_node import throw
    from fuzzing import Fuzzer

    scenario = "quadrotor_payload"
    node, right = fuzzed("display", scenario=scenario, rate_hz=1e6), Right(scenario)
    throw(node, Fuzzer(SEED), 100, lambda k: right.states(k) | right.command(k), share=0.4)
    before_the_start = -(10**6)
    throw(node, Fuzzer(SEED), 1, lambda _: right.states(before_the_start), share=0.0)
    assert node.node.published > 50


@pytest.mark.slow
def test_a_plant_that_hardly_moves_is_there(fuzzed):
    from fuzzed_node import throw
    from fuzzing import Fuzzer

    given = {**PLANT, "speed_factor": 1e-300}
    node, right = fuzzed("plant", scenario="snakeboard", **given), Right("snakeboard")
    throw(node, Fuzzer(SEED), 5, lambda _: right.command(0), share=0.0)
    assert node.report()["commands_accepted"] == 1
