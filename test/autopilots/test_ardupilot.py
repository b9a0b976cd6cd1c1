"""ArduPilot's JSON interface against a peer that follows its public description: servo packets
byte by byte, frames and signs, and lock-step with lost packets. No ArduPilot runs here.
"""

import json
import select
import socket
import struct
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from mavlink_peer import (
    COMMAND,
    EXTRA,
    HEARTBEAT,
    LAYOUTS,
    POSITION_TARGET,
    check_position_target,
    packed,
    unpacked,
)
from simulated_controller import SAMPLE, SETPOINT, flown

from nh_control.autopilots import ardupilot
from nh_control.autopilots.ardupilot import ArduPilot, channels, state_frame
from nh_control.autopilots.autopilot import AutopilotFailed, Setpoint, Waypoint

MAGIC = b"\x1a\x48"  # 18458


class Peer(threading.Thread):
    """A simulator that sends servo packets and waits for a frame after each; a fraction of both is
    lost. The first pulse says from which frame it was computed: 1000 + 1000 x roll rate.
    """

    def __init__(self, address, lost=0.0, seed=0):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self._address, self._lost, self._draw = address, lost, np.random.default_rng(seed)
        self.frames, self.count, self.ended = [], 0, threading.Event()
        self.pulses = [1000] * 4

    def run(self):
        self.transmit()
        while not self.ended.is_set():
            if not select.select([self.socket], [], [], 0.02)[0]:
                if not self.frames:
                    self.transmit()
                continue
            data = self.socket.recv(4096)
            if self._draw.random() < self._lost:
                continue
            assert data.startswith(b"\n{") and data.endswith(b"}\n")
            frame = json.loads(data)
            self.frames.append(frame)
            self.count += 1
            self.pulses = [round(1000 + 1000 * frame["imu"]["gyro"][0]), 1200, 1300, 1400]
            if self._draw.random() >= self._lost:
                self.transmit()

    def transmit(self):
        rest = [1500] * 12
        packet = MAGIC + b"\x90\x01" + self.count.to_bytes(4, "little")
        packet += b"".join(pulse.to_bytes(2, "little") for pulse in (*self.pulses, *rest))
        assert len(packet) == 40
        self.socket.sendto(packet, self._address)


@contextmanager
def connected(guided=False, **options):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    one, peer = ArduPilot(port=port, guided=guided), Peer(("127.0.0.1", port), **options)
    peer.start()
    try:
        one.start()
        yield one, peer
    finally:
        peer.ended.set()
        peer.join()
        one.close()
        peer.socket.close()


def test_every_answer_is_of_its_own_sample():
    with connected() as (one, peer):
        answers = flown(one, 100)
        np.testing.assert_allclose(answers, 0.01 * (np.arange(100) % 50), atol=1e-9)
        np.testing.assert_allclose(one.motors[1:], [0.2, 0.3, 0.4])
        assert (one.link.lost, one.resent) == (0, 0)
        times = [frame["timestamp"] for frame in peer.frames]
        np.testing.assert_allclose(times, 0.004 * np.arange(100))


def test_lock_step_with_a_tenth_of_the_packets_lost(monkeypatch):
    """A lost frame or servo packet is made up for by sending the frame again, with its time."""
    monkeypatch.setattr(ardupilot, "WAIT_S", 0.01)
    monkeypatch.setattr(ardupilot, "TRIES", 1000)
    with connected(lost=0.1, seed=5) as (one, peer):
        answers = flown(one, 200)
        assert one.resent > 20 and one.link.lost == 0
        np.testing.assert_allclose(answers, 0.01 * (np.arange(200) % 50), atol=1e-9)
        times = [frame["timestamp"] for frame in peer.frames]
        assert sorted(times) == times and len(set(times)) == 200


def test_an_answer_that_comes_late_is_not_that_of_the_next_sample():
    """A frame that was sent twice is answered twice; the second answer is dropped."""
    with connected() as (one, _):
        flown(one, 3)
        one._transmit()  # the same frame again
        assert select.select([one._socket], [], [], 60.0)[0]  # the second answer has come
        one.send(replace(SAMPLE, angular_velocity=np.array([0.77, 0, 0])), SETPOINT, True)
        np.testing.assert_allclose(one.receive()[0], 0.77)


def test_frames_of_the_json():
    """North-east-down and forward-right-down; the nose points east."""
    frame = json.loads(state_frame(SAMPLE, SETPOINT, True))
    assert frame["timestamp"] == 1.25
    assert frame["imu"]["gyro"] == [0.1, -0.2, -0.3]
    assert frame["imu"]["accel_body"] == [1.0, -2.0, -9.0]
    assert frame["position"] == [20.0, 10.0, -30.0]
    assert frame["velocity"] == [2.0, 1.0, -3.0]
    np.testing.assert_allclose(frame["quaternion"], [np.sqrt(0.5), 0, 0, np.sqrt(0.5)], atol=1e-9)
    assert frame["rc"]["rc_5"] == 1900


def test_receiver_channels():
    """A larger pulse rolls right, raises the nose, and turns right."""
    rate = np.radians(100.0)
    assert channels(Setpoint(0.25, np.array([rate, 0, 0])), False) == [
        1750,
        1500,
        1250,
        1500,
        1000,
    ]
    assert channels(Setpoint(0.25, np.array([0, rate, 0])), False)[1] == 1250
    assert channels(Setpoint(0.25, np.array([0, 0, rate])), False)[3] == 1250


def test_copies_and_other_packets_are_dropped_and_restarts_counted():
    with connected() as (one, peer):
        flown(one, 3)
        send = peer.socket.sendto
        copy = struct.pack("<HHI16H", 18458, 400, one._count, *[1900] * 16)
        for packet in (copy, b"\x00" * 40, copy[:20]):
            send(packet, one._address)
        assert one._next(0.05) is None
        wide = struct.pack("<HHI32H", 29569, 400, 1, *[1500] * 32)
        send(wide, one._address)
        np.testing.assert_allclose(one._next(0.05), 0.5)
        assert one.link.restarts == 1


class Mavlink(threading.Thread):
    """The MAVLink server of a vehicle: heartbeats, what it is told, arming by command."""

    def __init__(self):
        super().__init__(daemon=True)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.told, self.armed, self.ended = [], False, threading.Event()

    def run(self):
        link, _ = self.server.accept()
        rest = b""
        while not self.ended.is_set():
            beat = struct.pack("<I5B", 4, 2, 3, 128 * self.armed, 4, 3)
            link.sendall(packed(EXTRA, HEARTBEAT, beat))
            if select.select([link], [], [], 0.02)[0]:
                messages, rest = unpacked(EXTRA, LAYOUTS, rest + link.recv(65536))
                self.told += messages
                self.armed |= any(n == COMMAND and values[7] == 400 for n, values in messages)
        link.close()
        self.server.close()


def test_its_own_position_control_is_commanded_by_mavlink(monkeypatch):
    """While it is held: the mode GUIDED, arming, the take-off; then position targets."""
    pytest.importorskip("pymavlink", reason="position setpoints need pymavlink")
    vehicle = Mavlink()
    vehicle.start()
    monkeypatch.setattr(ardupilot, "MAVLINK_PORT", vehicle.server.getsockname()[1])
    waypoint = Waypoint(np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2, 0.3]), np.radians(30.0))
    held = replace(SETPOINT, waypoint=waypoint, is_held=True)

    def until(done, setpoint, armed, times=iter(0.5 * np.arange(1000))):
        while not done():
            one.send(replace(SAMPLE, time=next(times)), setpoint, armed)
            one.receive()
            time.sleep(0.02)

    with connected(guided=True) as (one, _):
        assert one.refusal == "no heartbeat yet"
        until(lambda: not one.refusal and vehicle.told, held, False)
        assert {values[7] for _, values in vehicle.told} == {176}  # DO_SET_MODE
        until(lambda: one.guidance.vehicle.armed, held, True)
        until(lambda: vehicle.told[-1][1][7:8] == (22,), held, True)  # NAV_TAKEOFF
        commands = {values[7]: values for number, values in vehicle.told if number == COMMAND}
        assert commands[176][:2] == (1.0, 4.0) and commands[400][0] == 1.0
        assert commands[22][6] == 0.5 and commands[22][8:10] == (1, 1)
        until(lambda: vehicle.told[-1][0] == POSITION_TARGET, replace(held, is_held=False), True)
        check_position_target(vehicle.told[-1][1])
        vehicle.ended.set()
        vehicle.join()
        until(lambda: one.link.ended, held, True)
        assert "closed its MAVLink connection" in one.link.ended


def test_a_vehicle_that_reads_no_messages_ends_the_connection():
    pytest.importorskip("pymavlink", reason="position setpoints need pymavlink")
    waypoint = Waypoint(np.zeros(3), np.zeros(3), 0.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        guidance = ardupilot.Guidance("ardupilot", server.getsockname())
        # small buffers are full soon
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        guidance.connect()
        guidance._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        reasons = (guidance.send(float(k), waypoint, True, False) for k in range(10**6))
        assert "stopped reading" in next(filter(None, reasons))
        guidance.close()


def test_a_missing_mavlink_port_is_refused_with_the_remedy(monkeypatch):
    pytest.importorskip("pymavlink", reason="position setpoints need pymavlink")
    monkeypatch.setattr(ardupilot, "MAVLINK_PORT", 49013)
    with (
        pytest.raises(AutopilotFailed, match=r"no MAVLink on TCP 127\.0\.0\.1:49013"),
        connected(guided=True),
    ):
        pass


def test_no_packet_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr(ardupilot, "START_S", 0.05)
    with pytest.raises(AutopilotFailed, match=r"start ArduPilot with --model JSON:127\.0\.0\.1"):
        ArduPilot(port=49010).start()
