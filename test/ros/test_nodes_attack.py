"""What goes wrong between processes: one is killed and comes back, two do the same work, none
does, somebody talks ten times too fast, or sends anything at all.
"""

import itertools

import numpy as np
import pytest
from test_nodes_fuzz import SEED, Right

LOCKSTEP = {"lockstep": True, "speed_factor": 0.0}
REAL_TIME = {"wait_for_tracker": False, "on_finish": "stay", "wait_for": "[probe]"}
SENT, KINDS = 100_000, 300
"""Messages that are thrown at nodes, and how many different wrong ones there are on each topic."""


def steps(probe):
    """The plant's step by its last report."""
    return int(probe.values().get("step", 0))


@pytest.mark.slow
@pytest.mark.usefixtures("udp")
def test_a_plant_that_is_killed_comes_back_and_the_tracker_follows_it_from_the_start(nodes, probe):
    from probe import by_step, states

    from nh_control import scenarios

    h, given = scenarios.get("snakeboard").step_s, {"duration_s": 1.0, "perturb.position": 0.1}
    given |= {**LOCKSTEP, "wait_for": "[probe]"}
    tracker = nodes.start("tracker")
    killed = nodes.start("plant", {**given, "speed_factor": 0.5})
    probe.wait_step(30, h)
    killed.kill()
    begun = by_step(probe.joint_states, h)
    probe.clear()
    nodes.start("plant", given)
    probe.wait_step(100, h)
    again = states(probe, h)
    assert len(again) == 101 and tracker.process.poll() is None
    for k in range(20):  # the successor repeats what the killed one did
        np.testing.assert_array_equal(begun[k].position, again[k][:3])


@pytest.mark.slow
def test_two_trackers_at_once_do_what_one_does(nodes, probe):
    nodes.start("tracker")
    nodes.start("tracker", None, "-r", "__node:=second")
    probe.wait(lambda: probe.node.count_publishers("joint_commands") == 3, "two trackers")
    nodes.start("plant", {**LOCKSTEP, "duration_s": 3.0})
    probe.wait_mode("finished")
    # the answer to the last state, which no step takes, may be told or not
    assert probe.values()["commands_accepted"] in ("300", "301")
    assert probe.values()["fallback_steps"] == "0"
    assert "rejected: second, different answer to a state" not in probe.values()


@pytest.mark.slow
def test_of_two_trackers_that_differ_the_second_answer_is_refused(nodes, probe):
    nodes.start("tracker", {"reference": "parking"})
    nodes.start("tracker", {"reference": "turning"}, "-r", "__node:=second")
    probe.wait(lambda: probe.node.count_publishers("joint_commands") == 3, "two trackers")
    plant = nodes.start("plant", {**LOCKSTEP, "speed_factor": 1.0, "on_finish": "continue"})
    probe.wait(lambda: int(probe.values().get("commands_rejected", 0)) > 0, "refusal")
    probe.wait(lambda: probe.joint_states, "state")
    assert np.isfinite(probe.joint_states[-1].position).all()
    assert plant.process.poll() is None


@pytest.mark.slow
def test_without_a_tracker_the_fallback_brings_the_plant_to_rest(nodes, probe):
    nodes.start("plant", {**REAL_TIME, "fallback": "damp", "speed_factor": 4.0})
    probe.wait(lambda: steps(probe) > 400, "steps")
    assert int(probe.values()["fallback_steps"]) >= steps(probe) - 1
    rest = lambda: np.abs(probe.joint_states[-1].velocity).max() < 1e-2  # noqa: E731
    probe.wait(rest, "rest")
    assert "steps with the fallback (damp)" in probe.message()


@pytest.mark.slow
def test_commands_ten_times_as_fast_as_steps_are_taken_one_after_the_other(nodes, probe):
    from builtin_interfaces.msg import Time

    at_rest = {"reference": "parking_optimal", "command_timeout_steps": 1000}
    nodes.start("plant", {**REAL_TIME, **at_rest})
    sent = itertools.count(1)

    def send():
        for _ in range(10):
            probe.command(Time(), (1e-6 * next(sent), 0.0))
        probe.spin(1e-2)
        return steps(probe) > 150 and int(probe.values()["commands_accepted"]) >= 150

    probe.wait(send, "steps and commands")
    assert probe.values()["commands_rejected"] == "0"
    assert np.isfinite(probe.joint_states[-1].position).all()


@pytest.mark.slow
def test_a_hundred_thousand_wrong_messages_end_no_node(nodes, probe):
    from fuzzing import Fuzzer, numbers
    from probe import Probe
    from visualization_msgs.msg import MarkerArray

    from nh_control.loop.command_validator import Rejection

    started = [nodes.start(name) for name in ("tracker", "display")]
    started.append(nodes.start("plant", {**REAL_TIME, "fallback": "damp"}))
    markers = probe.listen(MarkerArray, "markers")
    probe.wait(lambda: steps(probe) > 20 and markers, "steps and markers")
    bombard(probe, Fuzzer(SEED))
    late = Probe(probe.node.context.get_domain_id())  # has heard nothing of it
    try:
        seen = [late.joint_states, late.commands, late.listen(MarkerArray, "markers")]
        # on a machine that is too busy to answer in time the board runs into its singularity
        late.wait(lambda: late.node.count_publishers("joint_states") > 0, "discovery")
        assert probe.call("reset").success and probe.call("pause", False).success
        late.wait(lambda: all(len(received) > 20 for received in seen), "messages")
    finally:
        late.close()
    assert all(np.isfinite(list(numbers(m))).all() for received in seen for m in received)
    assert all(node.process.poll() is None for node in started)
    rejected = {key for key in probe.values() if key.startswith("rejected: ")}
    assert len(rejected) >= len(Rejection) - 2, probe.values()
    assert any(key.startswith("states refused: ") for key in probe.values("tracker"))


def bombard(probe, fuzzer):
    """Throw wrong messages at all that listen, and call services with wrong values."""
    from rcl_interfaces.srv import SetParameters
    from rclpy.impl.implementation_singleton import rclpy_implementation
    from rclpy.parameter import Parameter
    from rclpy.serialization import serialize_message

    RCLError = rclpy_implementation.RCLError
    right = Right("snakeboard")
    publishers, wrong = [], []
    for k in range(KINDS):
        stamp = round(1e9 * fuzzer.pick([0.0, 0.01 * k, 1.79e9]))
        messages = right.states(k) | right.command(stamp)
        if not publishers:
            publishers = [probe.node.create_publisher(type(m), t, 10) for t, m in messages.items()]
        wrong.append([serialize_message(fuzzer.wrong(m)) for m in messages.values()])
    client = probe.node.create_client(SetParameters, "/plant/set_parameters")
    values = [float("nan"), -1.0, "fast", True, [1.0, 2.0], 10**15, 1.0]
    for count in range(0, SENT, len(publishers)):
        for publisher, data in zip(publishers, fuzzer.pick(wrong)):
            try:
                publisher.publish(data)
            except RCLError:  # the middleware gives up where nodes on a busy machine are behind
                probe.spin(0.1)
        if count % 10_000 < len(publishers):
            probe.spin(0.05)
            name = fuzzer.pick(["speed_factor", "lockstep", "no_such", ""])
            change = Parameter(name, value=fuzzer.pick(values)).to_parameter_msg()
            client.call_async(SetParameters.Request(parameters=[change]))
            probe.call("pause", fuzzer.chance(0.5))
            probe.call(fuzzer.pick(["reset", "step", "reset_state", "load_state"]))
    speed = Parameter("speed_factor", value=0.2).to_parameter_msg()
    probe.ask(client, SetParameters.Request(parameters=[speed]))
