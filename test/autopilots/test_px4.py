"""PX4's simulator interface against a peer that packs and reads MAVLink 2 by hand, as its public
description says: bytes, signs, lock-step, lost messages, arming. No PX4 runs here.
"""

import select
import socket
import struct
import threading
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import mavlink_peer
import numpy as np
import pytest
from mavlink_peer import ATTITUDE_TARGET, COMMAND, HEARTBEAT, POSITION_TARGET
from simulated_controller import SAMPLE, SETPOINT, flown

from nh_control.autopilots import px4
from nh_control.autopilots.autopilot import AutopilotFailed, Waypoint
from nh_control.autopilots.px4 import Px4

pytest.importorskip("pymavlink", reason="PX4's interface needs pymavlink")

ACTUATORS, SENSOR, GPS, TRUTH = 93, 107, 113, 115
EXTRA = {**mavlink_peer.EXTRA, ACTUATORS: 47, SENSOR: 108, GPS: 124, TRUTH: 4}
LAYOUTS = {  # fields in the order of the wire, larger types first
    SENSOR: struct.Struct("<Q13fIB"),
    GPS: struct.Struct("<Q3i2H4h4B"),
    TRUTH: struct.Struct("<Q7f3i8h"),
    **mavlink_peer.LAYOUTS,
}
packed, unpacked = (
    partial(mavlink_peer.packed, EXTRA),
    partial(mavlink_peer.unpacked, EXTRA, LAYOUTS),
)


class Peer(threading.Thread):
    """A vehicle that answers every HIL_SENSOR, but a lost part, with its time and its roll rate as
    the first control, and is armed by commands.
    """

    def __init__(self, port, offboard, lost=0.0):
        super().__init__(daemon=True)
        self._address, self._offboard, self._lost = ("127.0.0.1", port), offboard, lost
        self.messages, self.offboard, self.ended = [], [], threading.Event()
        self.vehicle = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.vehicle.bind(("127.0.0.1", 0))
        self.armed, self._draw = False, np.random.default_rng(2)

    def run(self):
        link, rest = socket.create_connection(self._address, 5.0), b""
        while not self.ended.is_set():
            ready, _, _ = select.select([link, self.vehicle], [], [], 0.02)
            if self.vehicle in ready:
                (message,), _ = unpacked(self.vehicle.recv(2048))
                self.offboard.append(message)
                self.armed |= message[0] == COMMAND and message[1][7:8] == (400,)
            if link in ready:
                data = link.recv(65536)
                if not data:
                    break
                messages, rest = unpacked(rest + data)
                self.messages += messages
                for number, values in messages:
                    if number == SENSOR and self._draw.random() >= self._lost:
                        link.sendall(self.answer(values))
        link.close()

    def answer(self, sensor):
        controls = [sensor[4], 0.2, 0.3, 0.4, *[0.0] * 12]
        payload = struct.pack("<QQ16fB", sensor[0], 1, *controls, 129)
        return packed(ACTUATORS, payload)

    def heartbeat(self):
        payload = struct.pack("<I5B", 0, 2, 12, 128 * self.armed, 4, 3)
        self.vehicle.sendto(packed(HEARTBEAT, payload), ("127.0.0.1", self._offboard))


@contextmanager
def connected(monkeypatch, lost=0.0):
    sockets = [socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    port, offboard = (one.getsockname()[1] for one in sockets)
    for one in sockets:
        one.close()
    monkeypatch.setattr(px4, "OFFBOARD_PORT", offboard)
    monkeypatch.setattr(px4, "WAIT_S", 0.03)
    one, peer = Px4(port=port), Peer(port, offboard, lost)
    starting = threading.Thread(target=one.start)
    starting.start()
    while not one._server.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        pass  # until it listens
    peer.start()
    starting.join()
    try:
        yield one, peer
    finally:
        peer.ended.set()
        peer.join()
        one.close()
        peer.vehicle.close()


def test_every_answer_has_the_time_of_its_sample(monkeypatch):
    with connected(monkeypatch) as (one, peer):
        np.testing.assert_allclose(flown(one, 100), 0.01 * (np.arange(100) % 50), atol=1e-7)
        times = [values[0] for number, values in peer.messages if number == SENSOR]
        assert times == [4000 * k for k in range(100)]
        counts = [sum(number == n for number, _ in peer.messages) for n in (GPS, TRUTH)]
        assert counts == [4, 20]  # in 0.4 s


def test_lock_step_with_a_tenth_of_the_answers_lost(monkeypatch):
    """A sample without an answer is counted, and the next answer is of the next sample."""
    with connected(monkeypatch, lost=0.1) as (one, peer):
        answers = flown(one, 100)
        lost = np.isnan(answers)
        assert 3 <= lost.sum() == one.link.lost <= 20
        expected = 0.01 * (np.arange(100) % 50)
        np.testing.assert_allclose(answers[~lost], expected[~lost], atol=1e-7)


def test_an_answer_that_comes_late_is_not_that_of_the_next_sample(monkeypatch):
    with connected(monkeypatch) as (one, peer):
        flown(one, 3)
        answer = peer.answer
        late = []
        peer.answer = lambda sensor: late.append(sensor) or b""
        one.send(replace(SAMPLE, time=0.1), SETPOINT, False)
        assert one.receive() is None
        # the late answer comes together with that of the next sample, before it
        peer.answer = lambda sensor: answer(late[0]) + answer(sensor)
        rate = np.array([0.77, 0, 0])
        one.send(replace(SAMPLE, time=0.104, angular_velocity=rate), SETPOINT, False)
        np.testing.assert_allclose(one.receive()[0], 0.77, rtol=1e-6)
        peer.answer = lambda sensor: answer(late[0])
        one.send(replace(SAMPLE, time=0.108), SETPOINT, False)
        assert one.receive() is None


def test_values_of_the_messages():
    """Forward-right-down and north-east-down, gauss, hectopascals, 1e-7 degrees, centimeters."""
    one = Px4()
    data = b"".join(message.pack(one._out) for message in one.messages(SAMPLE))
    (sensor, gps, truth), rest = unpacked(data)
    assert rest == b"" and [n for n, _ in (sensor, gps, truth)] == [SENSOR, GPS, TRUTH]
    values = sensor[1]
    assert values[0] == 1250000 and values[14] == 0x1FFF
    np.testing.assert_allclose(values[1:4], [1.0, -2.0, -9.0])
    np.testing.assert_allclose(values[4:7], [0.1, -0.2, -0.3], rtol=1e-6)
    np.testing.assert_allclose(values[7:10], [0.01, -0.2, 0.4], rtol=1e-6)
    np.testing.assert_allclose(values[10], 950.0)
    degrees = [round(np.degrees(a) * 1e7) for a in (0.8, 0.1)]
    assert gps[1][1:4] == (*degrees, 500000)
    assert gps[1][6:10] == (round(np.hypot(250, 150)), 250, 150, -350)
    np.testing.assert_allclose(truth[1][1:5], [np.sqrt(0.5), 0, 0, np.sqrt(0.5)], atol=1e-6)
    assert truth[1][11:14] == (200, 100, -300)
    one.close()


def test_arming_and_setpoints(monkeypatch):
    """Without a heartbeat it refuses; then setpoints go out, and commands until it is armed."""
    with connected(monkeypatch) as (one, peer):
        assert one.refusal == "no heartbeat yet"
        peer.heartbeat()
        while one.refusal:
            pass
        for k in range(3):
            one.send(replace(SAMPLE, time=k * 0.5), SETPOINT, True)
            one.receive()
            while not peer.armed:
                pass
            peer.heartbeat()
            while not one.vehicle.armed:
                one._hear()
        kinds = [number for number, _ in peer.offboard]
        assert kinds.count(COMMAND) == 2 and kinds[0] == ATTITUDE_TARGET
        target = peer.offboard[0][1]
        np.testing.assert_allclose(target[5:9], [0.5, 0.25, -0.125, 0.5])
        assert target[11] == 0b10000000
        commands = [values for number, values in peer.offboard if number == COMMAND]
        assert [values[7] for values in commands] == [176, 400]
        assert commands[0][:2] == (1.0, 6.0) and commands[1][0] == 1.0


def test_waypoints_become_position_targets(monkeypatch):
    """North-east-down from where it was at power-on, velocities, the heading from north to the
    right; accelerations and the yaw rate are ignored.
    """
    waypoint = Waypoint(np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2, 0.3]), np.radians(30.0))
    with connected(monkeypatch) as (one, peer):
        peer.heartbeat()
        while one.refusal:
            pass
        for k in range(10):
            setpoint = replace(SETPOINT, waypoint=waypoint)
            one.send(replace(SAMPLE, time=k * 0.005), setpoint, False)
            one.receive()
        while len(peer.offboard) < 3:
            pass
    assert [number for number, _ in peer.offboard] == [POSITION_TARGET] * 3  # every 20 ms
    mavlink_peer.check_position_target(peer.offboard[0][1])


def test_a_closed_connection_is_named(monkeypatch):
    with connected(monkeypatch) as (one, peer):
        flown(one, 2)
        peer.ended.set()
        peer.join()
        flown(one, 3)
        assert "closed the connection" in one.link.ended and one.link.in_a_row >= 1


def test_no_connection_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr(px4, "START_S", 0.05)
    with pytest.raises(AutopilotFailed, match="make px4_sitl"):
        Px4(port=49011).start()
