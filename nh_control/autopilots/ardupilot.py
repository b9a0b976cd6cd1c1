"""ArduPilot's JSON interface. It receives binary servo packets and sends states and receiver
channels in JSON over UDP. Position setpoints are sent as MAVLink messages over TCP. The code
follows the public descriptions of both protocols, but it has not been tested with a running
ArduPilot.
"""

from __future__ import annotations

import json
import select
import socket
import struct
from typing import Any

import numpy as np

from nh_control.autopilots.autopilot import (
    AutopilotFailed,
    Link,
    Sample,
    Setpoint,
    Waypoint,
)
from nh_control.autopilots.frames import attitude_to_ned, to_frd, to_ned
from nh_control.autopilots.mavlink import (
    COMPONENT,
    POSITION_S,
    SYSTEM,
    Vehicle,
    command,
    dialect,
    position_target,
)

PORT, NEXT_PORT = 9002, 10
"""UDP port of the first instance, and the difference between the ports of consecutive
instances.
"""
MAVLINK_PORT = 5760
"""MAVLink TCP port of the first instance. The next instance's port is NEXT_PORT higher."""
GUIDED_MODE = 4
AGAIN_S, TAKEOFF_M = 0.5, 0.5
"""Simulated time between commands for the mode, arming and takeoff, and the takeoff height above
the initial position. ArduPilot ignores setpoints until it has left the ground.
"""
SERVOS = {18458: struct.Struct("<HHI16H"), 29569: struct.Struct("<HHI32H")}
"""Layouts of servo packets by their first number. They contain the magic number, frame rate, frame
count and pulses (us).
"""
LARGEST_RATE = np.radians(200.0)
"""Rate (rad/s) at full stick. ACRO_RP_RATE and ACRO_Y_RATE must be 200."""
START_S, WAIT_S, TRIES = 30.0, 0.05, 4
"""Maximum wall times to wait for the first servo packet and for an answer, and the number of times
that an unanswered state is sent.
"""


def state_frame(sample: Sample, setpoint: Setpoint, armed: bool) -> bytes:
    """The JSON frame with a sample and the receiver channels. Channel 5 arms the craft."""
    # convert body axes to forward-right-down, and world axes to north-east-down
    frame = {
        "timestamp": sample.time,
        "imu": {
            "gyro": to_frd(sample.angular_velocity).tolist(),
            "accel_body": to_frd(sample.specific_force).tolist(),
        },
        "position": to_ned(sample.position).tolist(),
        "velocity": to_ned(sample.velocity).tolist(),
        "quaternion": attitude_to_ned(sample.attitude).tolist(),
        "rc": {f"rc_{i + 1}": pulse for i, pulse in enumerate(channels(setpoint, armed))},
    }
    return f"\n{json.dumps(frame)}\n".encode()


def channels(setpoint: Setpoint, armed: bool) -> list[int]:
    """Receiver channels in us: roll, pitch, throttle, yaw, and the arming switch. Longer pulses
    roll right, raise the nose and turn right.
    """
    # express rates as fractions of the rate at full stick
    roll, pitch, yaw = np.clip(to_frd(setpoint.rates) / LARGEST_RATE, -1.0, 1.0)
    sticks = 1500 + 500 * roll, 1500 + 500 * pitch, 1000 + 1000 * setpoint.collective
    return [*(round(stick) for stick in (*sticks, 1500 + 500 * yaw)), 1900 if armed else 1000]


class Guidance:
    """A MAVLink connection to a running ArduPilot over TCP, for waypoints in its GUIDED mode.
    While the craft is held, the connection sends the commands for the mode, arming and takeoff.
    Afterwards it sends position setpoints.
    """

    def __init__(self, name: str, address: tuple[str, int]):
        self._name, self._address, self._m = name, address, dialect()
        self._out = self._m.MAVLink(None, SYSTEM, COMPONENT)
        self.vehicle = Vehicle(self._m)
        self._socket: socket.socket | None = None
        self._due = {"commands": 0.0, "position": 0.0}

    def connect(self) -> None:
        """Connect to ArduPilot. Raises AutopilotFailed."""
        try:
            self._socket = socket.create_connection(self._address, START_S)
        except OSError as error:
            raise AutopilotFailed(
                f"{self._name}: no MAVLink on TCP {self._address[0]}:{self._address[1]} "
                f"({error}); setpoints=position needs that port free, without a ground station"
            ) from error
        self._socket.setblocking(False)

    def messages(self, time_s: float, waypoint: Waypoint, armed: bool, is_held: bool) -> list[Any]:
        """The messages to send at a given time: commands at their rate while the craft is held,
        and setpoints afterwards.
        """
        m, what = self._m, "commands" if is_held else "position"
        if time_s < self._due[what] - 1e-9:
            return []
        # the margin of 1e-9 s allows for round-off in the times
        self._due[what] = time_s + (AGAIN_S if is_held else POSITION_S)
        if not is_held:
            return [position_target(m, time_s, waypoint)]
        custom = m.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED
        sent = [command(m, m.MAV_CMD_DO_SET_MODE, custom, GUIDED_MODE)]
        if armed and not self.vehicle.armed:
            sent.append(command(m, m.MAV_CMD_COMPONENT_ARM_DISARM, 1))
        elif armed:
            # the height is the seventh parameter of this command
            sent.append(command(m, m.MAV_CMD_NAV_TAKEOFF, 0, 0, 0, 0, 0, 0, TAKEOFF_M))
        return sent

    def send(self, time_s: float, waypoint: Waypoint, armed: bool, is_held: bool) -> str:
        """Send the messages, and read those from ArduPilot. Returns the reason why the connection
        ended, or "" while it is open.
        """
        if self._socket is None:
            return "not connected"
        try:
            for message in self.messages(time_s, waypoint, armed, is_held):
                self._socket.sendall(message.pack(self._out))
            while select.select([self._socket], [], [], 0.0)[0]:
                data = self._socket.recv(65536)
                if not data:
                    return "ArduPilot has closed its MAVLink connection"
                self.vehicle.hear(data)
        except BlockingIOError:
            return "ArduPilot has stopped reading its MAVLink connection"
        except OSError as error:
            return f"ArduPilot has closed its MAVLink connection ({error})"
        return ""

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()


class ArduPilot:
    """A running ArduPilot simulator (`--model JSON:127.0.0.1`) with the instance number
    `instance`. Its first four outputs are the motors of an X frame: front right, rear left, front
    left, rear right.

    An unanswered state is sent again with the same time. Servo packets whose frame count does not
    increase are dropped. If the count starts again, the simulator has been restarted, which
    `link.restarts` counts. With `guided`, ArduPilot's position control flies waypoints.
    """

    def __init__(
        self,
        name: str = "ardupilot",
        instance: int = 0,
        host: str = "127.0.0.1",
        port: int = 0,
        guided: bool = False,
    ):
        self.name, self.link, self.resent = name, Link(), 0
        self._address = host, (port or PORT) + NEXT_PORT * instance
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._peer: tuple[str, int] | None = None
        self._count, self._frame = -1, b""
        mavlink = host, MAVLINK_PORT + NEXT_PORT * instance
        self.guidance = Guidance(name, mavlink) if guided else None
        self.motors = np.zeros(4)

    def start(self) -> None:
        """Wait for the first servo packet. Raises AutopilotFailed."""
        try:
            self._socket.bind(self._address)
        except OSError as error:
            raise AutopilotFailed(f"{self.name}: cannot bind {self._address}: {error}") from error
        if self._next(START_S) is None:
            self.close()
            raise AutopilotFailed(
                f"{self.name}: no servo packet on {self._address} within {START_S:g} s; start "
                f"ArduPilot with --model JSON:{self._address[0]}"
            )
        if self.guidance is not None:
            self.guidance.connect()

    def send(self, sample: Sample, setpoint: Setpoint, armed: bool) -> None:
        """See `Autopilot`."""
        self.link.sends()
        # drop the additional answers to a state that was sent more than once
        while self._next(0.0) is not None:
            pass
        self._frame = state_frame(sample, setpoint, armed)
        self._transmit()
        if self.guidance is not None and setpoint.waypoint is not None and not self.link.ended:
            is_held = setpoint.is_held
            self.link.ended = self.guidance.send(sample.time, setpoint.waypoint, armed, is_held)

    def receive(self) -> np.ndarray | None:
        """See `Autopilot`. Sends the state again if no answer arrives."""
        values = self._next(WAIT_S)
        for _ in range(TRIES - 1):
            if values is not None:
                break
            self.resent += 1
            self._transmit()
            values = self._next(WAIT_S)
        if values is not None:
            self.motors = values
        self.link.received(values is not None)
        return values

    def _transmit(self) -> None:
        if self._peer is not None:
            self._socket.sendto(self._frame, self._peer)

    def _next(self, timeout_s: float) -> np.ndarray | None:
        """The motor commands from the next servo packet that is not a copy, or None if there is
        none.
        """
        while select.select([self._socket], [], [], timeout_s)[0]:
            try:
                data, peer = self._socket.recvfrom(1024)
            except ConnectionRefusedError:  # the last state was sent to a program that has exited
                return None
            layout = SERVOS.get(int.from_bytes(data[:2], "little"))
            if layout is None or len(data) != layout.size:
                continue
            _, _, count, *pulses = layout.unpack(data)
            if count == self._count and peer == self._peer:
                continue
            # the count has started again, or another program answers
            if count < self._count or self._peer not in (None, peer):
                self.link.restarts += self._count >= 0
            self._count, self._peer = count, peer
            # pulses of 1000 to 2000 us represent commands from 0 to 1
            return np.clip((np.array(pulses[:4]) - 1000.0) / 1000.0, 0.0, 1.0)
        return None

    @property
    def refusal(self) -> str:
        """The last reason against arming that MAVLink messages contained. Without MAVLink it is
        "", because servo packets contain no reasons. In this case only `spinning` shows a refusal.
        """
        return "" if self.guidance is None else self.guidance.vehicle.refusal

    @property
    def spinning(self) -> bool:
        """Whether the motors turn."""
        return bool((self.motors > 0.02).all())

    def close(self) -> None:
        """Close the sockets. The simulator keeps running."""
        self._socket.close()
        if self.guidance is not None:
            self.guidance.close()
