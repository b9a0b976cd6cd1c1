"""Whatever comes in, nodes live, say what they refused, and send finite numbers only."""

import copy
import math
import time
from importlib import import_module

import numpy as np
import pytest
from bench import Desk, Ended, benches
from fuzzing import Fuzzer, numbers
from rclpy.serialization import serialize_message
from test_goals import goal, trajectory

from nh_control import scenarios
from nh_control.loop.command_validator import Rejection
from nh_control.ros.messages import conversions
from nh_control.ros.messages.state_codecs import codecs

SEED = 20260


class Right:
    """Right messages of a scenario along its reference."""

    def __init__(self, name):
        scenario = scenarios.get(name)
        self.dsys = scenario.model()
        self.reference = scenario.reference(self.dsys, "")
        self._codecs = codecs(scenario, self.dsys)
        self._command = conversions.command_message(self.dsys.inputs)

    def states(self, k):
        """The state of step k, by topic, and as that of the reference."""
        x, found = self.reference.states[k % len(self.reference)], {}
        for codec in self._codecs:
            codec.write(self.dsys.configuration(x).tolist(), self.dsys.velocity(x).tolist())
            conversions.set_time(codec.message.header.stamp, round(k * self.dsys.h * 1e9))
            found[codec.topic] = copy.deepcopy(codec.message)
            found[f"reference/{codec.topic}"] = found[codec.topic]
        return found

    def command(self, stamp_ns):
        conversions.set_time(self._command.header.stamp, stamp_ns)
        return {"joint_commands": self._command}

    def goals(self, k):
        places, stamp_s = [(0.0, 0.0, 1.0)] * 3, k * self.dsys.h
        way = trajectory((2.0, 4.0, 6.0), places, [(0.0,) * 3] * 3, stamp_s=stamp_s)
        return {"goal": goal((0.0, 0.0, 1.5), stamp_s=stamp_s), "trajectory": way}


class Fuzzed:
    """A node in this thread, at whose callbacks messages are thrown."""

    def __init__(self, make, name, **parameters):
        self.node, self.desk, self._posted = make(name, **parameters), Desk(), []
        self.desk.post = self._posted.append
        module = import_module(f"nh_control.ros.nodes.{name}")
        self.component = getattr(module, name.capitalize())(self.node, self.desk, Ended())
        self.works = name != "tracker"

    def receive(self, topic, message):
        self.desk.give(topic, message)
        while self._posted:
            self._posted.pop(0)()
        if self.works:  # for one turn
            self.desk.on_serve, self.desk.closed = self.desk.close, False
            self.component.work()

    def throw(self, fuzzer, rounds, right, share=0.7):
        """Throw `right(round)` by topic, a `share` made wrong; returns how many messages."""
        count = 0
        for k in range(rounds):
            for topic, message in right(k).items():
                if topic in self.desk.subscribed:
                    wrong = fuzzer.chance(share)
                    self.receive(topic, fuzzer.wrong(message) if wrong else message)
                    count += 1
        return count

    def throw_pieces(self, topic, message):
        """The first bytes of a message, which are none; returns how many pieces."""
        data = serialize_message(message)
        pieces = [b"", data[:3], data[:11], data[: len(data) // 2], b"\xff" * len(data)]
        for piece in pieces:
            self.receive(topic, piece)
        return len(pieces)

    @property
    def published(self):
        return [message for one in self.node.publishers for message in one.sent]

    def report(self, what=""):
        """Values of its report whose names begin so, by the rest."""
        values = self.component.diagnostics.report().complete().values
        return {k.removeprefix(what): n for k, n in values.items() if k.startswith(what)}


@pytest.fixture
def fuzzed():
    """Makes nodes; all that they send must be finite."""
    made = []
    with benches() as make:

        def start(name, **parameters):
            made.append(Fuzzed(make, name, **parameters))
            return made[-1]

        yield start
        for one in made:
            one.component.close()
            assert all(math.isfinite(x) for message in one.published for x in numbers(message))


PLANT = {"wait_for_tracker": False, "on_finish": "continue", "speed_factor": 0.0}


def test_no_command_harms_a_plant(fuzzed):
    node, right = fuzzed("plant", scenario="snakeboard", **PLANT), Right("snakeboard")
    fuzzer, loop = Fuzzer(SEED), node.component.loop
    node.node.seen_publishers = {"/joint_commands": [None, None]}
    requests = [("pause", {"data": True}), *2 * [("pause", {"data": False})]]
    requests += [(name, {}) for name in ("reset", "reset_state", "save_state", "load_state")]

    def commands(_):
        if fuzzer.chance(0.02):
            name, request = fuzzer.pick(requests)
            node.node.call(f"~/{name}", **request)
        now, h = right.dsys.h * loop.plant.step, right.dsys.h
        stamps_s = [0.0, now, now, now + h / 3, now - 1.0, now + 1.0, time.time()]
        return right.command(round(1e9 * fuzzer.pick(stamps_s)))

    sent = node.throw(fuzzer, 800, commands)
    sent += node.throw_pieces("joint_commands", right.command(0)["joint_commands"])
    report, counted = node.report(), node.report("rejected: ")
    assert sum(counted.values()) == report["commands_rejected"] > sent / 3
    assert 0 < report["commands_accepted"] <= sent - report["commands_rejected"]
    late = Rejection.LATE.value  # by luck
    reasons = {reason.value for reason in Rejection if reason is not Rejection.NO_COMMAND}
    assert set(counted) | {late} == reasons
    assert np.isfinite(loop.plant.state).all()


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
    node, right = fuzzed("tracker", scenario=scenario, **given), Right(scenario)
    fuzzer, hardware = Fuzzer(SEED), "source" in given

    def messages(k):
        if hardware and fuzzer.chance(0.02):
            name, request = fuzzer.pick([("~/start", {}), ("~/arm", {"data": True})])
            node.node.call(name, **request)
        return right.states(k) | (right.goals(k) if fuzzer.chance(0.1) else {})

    node.throw(fuzzer, rounds, messages, share=0.3)
    for topic, message in right.states(rounds).items():
        if topic in node.desk.subscribed and not hardware:
            before = node.report()["states refused: wrong length"]
            pieces = node.throw_pieces(topic, message)
            assert node.report()["states refused: wrong length"] == before + pieces
    counted, report = node.report("states refused: "), node.report()
    assert {"wrong length"} | (set() if hardware else {"wrong names"}) <= set(counted)
    assert sum(counted.values()) == report["states_refused"] > rounds / 20
    if "goal" in node.desk.subscribed:
        for wrong in (goal((math.nan, 0.0, 1.5)), goal(frame="x" * 10_000)):
            node.receive("goal", wrong)
        goals = node.report("goals refused: ")
        assert {"wrong frame", "not finite"} <= set(goals)
        assert sum(goals.values()) == node.report()["goals_refused"]
    # it answers right states again
    node.throw(fuzzer, 1, lambda k: right.states(rounds), share=0.0)
    if hardware:
        node.node.call("~/arm", data=True)
    before = len(node.published)
    node.throw(fuzzer, 5, lambda k: right.states(rounds + 1 + k), share=0.0)
    assert len(node.published) >= before + 5


@pytest.mark.slow
def test_nothing_harms_a_display(fuzzed):
    scenario = "quadrotor_payload"
    node, right = fuzzed("display", scenario=scenario, rate_hz=1e6), Right(scenario)
    node.throw(Fuzzer(SEED), 100, lambda k: right.states(k) | right.command(k), share=0.4)
    before_the_start = -(10**6)
    node.throw(Fuzzer(SEED), 1, lambda _: right.states(before_the_start), share=0.0)
    assert len(node.published) > 50


def test_a_plant_that_hardly_moves_is_there(fuzzed):
    node = fuzzed("plant", scenario="snakeboard", **PLANT | {"speed_factor": 1e-300})
    node.throw(Fuzzer(SEED), 5, lambda _: Right("snakeboard").command(0), share=0.0)
    assert node.report()["commands_accepted"] == 1
