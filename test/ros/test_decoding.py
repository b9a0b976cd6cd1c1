"""Nodes, recordings and simulations have the same bits of a state from its messages."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS: install the extra 'ros'")

from nh_control import scenarios
from nh_control.loop.wire_format import MessageStates
from nh_control.ros.messages.state_codecs import codecs
from nh_control.runs.decoding import StateDecoder


@pytest.mark.parametrize("name", scenarios.names())
def test_a_tracker_a_recording_and_a_simulation_have_the_same_state(name):
    scenario = scenarios.get(name)
    dsys = scenario.model()
    space = dsys.system.space
    decoder, shown = StateDecoder(scenario, space), codecs(scenario, dsys)
    assert [codec.topic for codec in shown] == list(decoder.topics)
    rng = np.random.default_rng(7)
    for _ in range(20):
        q = space.retract(space.origin, 3 * rng.normal(size=space.nv))
        x = dsys.measured_state(q, rng.normal(size=space.nw))
        near = space.retract(q, 9 * rng.normal(size=space.nv))
        online, recorded = ([near.copy(), np.full(space.nw, np.nan)] for _ in range(2))
        for codec in shown:
            codec.write(dsys.configuration(x).tolist(), dsys.velocity(x).tolist())
            assert codec.read(codec.message, *online)
            assert decoder.read(codec.topic, codec.message, *recorded)
        first = dsys.measured_state(near, np.zeros(space.nw))
        simulated = MessageStates(scenario, dsys, dsys, scenario.parameters, first).carried(x)
        for numbers, *others in zip(online, recorded, simulated):
            for same in others:
                np.testing.assert_array_equal(same, numbers)
