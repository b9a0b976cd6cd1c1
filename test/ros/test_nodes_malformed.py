"""Over DDS: no malformed message or request ends a node, or makes one of its services deaf."""

import numpy as np
import pytest
from attack import Attack
from fuzzing import Fuzzer, numbers
from probe import Probe
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from test_fuzz import Right

SEED = 20261
PLANT = {
    "wait_for_tracker": False,
    "reference": "parking_optimal",  # at its end the board rests
    "duration_s": 1e5,
    "on_finish": "stay",
    "fallback": "damp",
}
"""Right commands, thrown at random, may steer it out of the model's domain: it stays then."""
ALL = ("plant", "tracker", "display", "recorder", "shadow", "view")


def attacks(nodes, probe, names, folder):
    given = {"plant": PLANT, "recorder": {"output": str(folder / "recording")}}
    started = [nodes.start(name, given.get(name)) for name in names]
    right = Right("snakeboard")
    messages = {**right.states(3), **right.command(30_000_000)}
    return started, [Attack(probe, Fuzzer(SEED), name, messages) for name in names]


def assert_refused(probe, name):
    wrong = Parameter(name="scenario", value=ParameterValue(type=211))
    for kind in (SetParameters, SetParametersAtomically):
        one_by_one = kind is SetParameters
        service = "set_parameters" if one_by_one else "set_parameters_atomically"
        client = probe.node.create_client(kind, f"/{name}/{service}")
        answer = probe.ask(client, kind.Request(parameters=[wrong, wrong]))
        results = answer.results if one_by_one else [answer.result]
        assert [result.successful for result in results] == [False] * (1 + one_by_one)
        assert all("211" in result.reason for result in results)


@pytest.mark.parametrize(
    ("names", "rounds"), [(("shadow",), 20), pytest.param(ALL, 100, marks=pytest.mark.slow)]
)
def test_no_malformed_message_or_request_ends_a_node(nodes, probe, tmp_path, names, rounds):
    started, thrown = attacks(nodes, probe, names, tmp_path)
    for name, node in zip(names, started):
        assert_refused(probe, name)
        assert "is malformed: 211 is not a valid Parameter.Type" in node.log
    for _ in range(rounds):
        for attack in thrown:
            attack.throw()
        probe.spin(0.02)
        assert [node.process.poll() for node in started] == [None] * len(started)
    for attack in thrown:
        attack.forget()
        attack.answers()
        probe.wait(lambda name=attack.name: int(probe.values(name)["malformed"]), "counts")
        assert probe.values(attack.name)["callback_errors"] == "0"
    if "plant" in names:  # it goes on, with finite numbers, for one who has heard nothing of it
        late = Probe(probe.node.context.get_domain_id())
        try:
            late.wait(lambda: late.node.count_publishers("joint_states") > 0, "discovery")
            assert probe.call("reset").success and probe.call("pause", False).success
            heard = (late.joint_states, late.odometry)
            late.wait(lambda: all(len(messages) > 20 for messages in heard), "states")
        finally:
            late.close()
        assert all(np.isfinite(list(numbers(m))).all() for messages in heard for m in messages)
    assert [node.end() for node in started] == [0] * len(started)
