"""What is read from recordings without ROS is what the nodes write, to the bit."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS: install the extra 'ros'")

from nh_control import scenarios
from nh_control.ros.messages.state_codecs import codecs
from nh_control.runs.decoding import StateDecoder


@pytest.mark.parametrize("name", ["snakeboard", "quadrotor_payload", "satellite", "cart_pole"])
def test_messages_carry_states_as_is_known(name):
    scenario = scenarios.get(name)
    dsys = scenario.model()
    space = dsys.system.space
    decoder, written = StateDecoder(scenario, space), codecs(scenario, dsys)
    rng = np.random.default_rng(5)
    assert [codec.topic for codec in written] == list(decoder.topics)
    for _ in range(20):
        q = space.retract(space.origin, rng.normal(size=space.nv))
        v = rng.normal(size=space.nw)
        read = np.zeros(space.nq), np.zeros(space.nw)
        for codec in written:
            codec.write(q.tolist(), v.tolist())
            assert decoder.read(codec.topic, codec.message, *read)
        expected = decoder.carried(scenario.parameters, q, v)
        for numbers, same in zip(read, expected):
            np.testing.assert_array_equal(numbers, same)
        if name == "cart_pole":
            np.testing.assert_array_equal(np.concatenate(read), np.concatenate([q, v]))


def test_messages_without_velocities_say_so():
    scenario = scenarios.get("snakeboard")
    dsys = scenario.model()
    space = dsys.system.space
    decoder = StateDecoder(scenario, space)
    q, v = np.zeros(space.nq), np.zeros(space.nw)
    for codec in codecs(scenario, dsys, velocities=False):
        codec.write([0.1, 0.2, 0.3, 0.4, 0.5], [9.0] * 5)
        assert not decoder.read(codec.topic, codec.message, q, v)
    np.testing.assert_allclose(q, [0.1, 0.2, 0.3, 0.4, 0.5], atol=1e-15)
    assert np.isnan(v).all()


def test_a_velocity_nan_is_none_in_a_recording_as_for_a_tracker():
    scenario = scenarios.get("snakeboard")
    space = scenario.model().system.space
    decoder, written = StateDecoder(scenario, space), codecs(scenario, scenario.model())
    for codec, part, known in zip(written, (slice(0, 2), slice(2, 5)), ([1.0, 5.0], [3.0, 4.0])):
        codec.write([0.1, 0.2, 0.3, 0.4, 0.5], [1.0, 5.0, 2.0, 3.0, 4.0])
        read = np.zeros(5), np.zeros(5)
        assert decoder.read(codec.topic, codec.message, *read)
        if codec.topic == "odom":
            codec.message.twist.twist.angular.z = np.nan
        else:
            codec.message.velocity[0] = np.nan
        assert not decoder.read(codec.topic, codec.message, *read)
        online = [0.0] * 5, [np.nan] * 5
        assert not codec.read(codec.message, *online)
        np.testing.assert_array_equal(read[1][part], online[1][part])
        assert np.isnan(online[1][part][0]) and online[1][part][1] in known
