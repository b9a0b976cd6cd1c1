"""PX4's simulator interface: MAVLink HIL messages over TCP, and offboard setpoints over UDP. The
code follows the public description of the interface, but it has not been tested with a running
PX4.
"""

from __future__ import annotations

import select
import socket
import time
from typing import Any

import numpy as np

from nh_control.autopilots.autopilot import AutopilotFailed, Link, Sample, Setpoint
from nh_control.autopilots.frames import attitude_to_ned, to_frd, to_ned
from nh_control.autopilots.mavlink import (
    COMPONENT,
    POSITION_S,
    SYSTEM,
    VEHICLE,
    Vehicle,
    command,
    dialect,
    position_target,
)

PORT, OFFBOARD_PORT = 4560, 14540
"""Ports of the first instance: TCP for the simulator, and UDP for offboard setpoints."""
ALL_SENSORS = 0x1FFF
GPS_S, TRUTH_S, ARM_AGAIN_S = 0.1, 0.02, 0.5
"""Simulated times between GPS messages, between messages with the true state, and between commands
to arm.
"""
RATES_AND_THRUST = 0b10000000
"""Type mask of SET_ATTITUDE_TARGET that ignores the attitude."""
OFFBOARD_MODE = 6
START_S, WAIT_S = 60.0, 0.05
GAUSS = 1e4
"""Number of gauss in one tesla."""


class Px4:
    """A running PX4 simulator (`none_iris`) with the instance number `instance`, which connects to
    this program's TCP port. Its first four outputs are the motors of an X frame: front right, rear
    left, front left, rear right.

    Each HIL_SENSOR has the time of its sample. In lock-step, the HIL_ACTUATOR_CONTROLS that
    answers it has the same time, and older messages are dropped. Setpoints are SET_ATTITUDE_TARGET
    messages with rates and thrust, or SET_POSITION_TARGET_LOCAL_NED messages with waypoints. They
    are sent to the address that sends heartbeats.
    """

    def __init__(
        self, name: str = "px4", instance: int = 0, host: str = "127.0.0.1", port: int = 0
    ):
        self.name, self.link = name, Link()
        self._address = host, (port or PORT) + instance
        self._offboard_address = host, OFFBOARD_PORT + instance
        self._messages = dialect()
        self._server = socket.socket()
        # an earlier run's port may still be in TIME_WAIT
        self._server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._offboard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._connection: socket.socket | None = None
        self._peer: tuple[str, int] | None = None
        self._out = self._messages.MAVLink(None, SYSTEM, COMPONENT)
        self._simulator = self._messages.MAVLink(None, SYSTEM, COMPONENT)
        self._simulator.robust_parsing = True
        self.vehicle = Vehicle(self._messages)
        self._time_us, self._due = 0, {"gps": 0.0, "truth": 0.0, "arm": 0.0, "position": 0.0}
        self.motors = np.zeros(4)

    def start(self) -> None:
        """Wait for PX4 to connect. Raises AutopilotFailed."""
        try:
            self._server.bind(self._address)
            self._server.listen(1)
            self._offboard.bind(self._offboard_address)
        except OSError as error:
            self.close()
            raise AutopilotFailed(
                f"{self.name}: cannot bind {self._address} and {self._offboard_address}: {error}"
            ) from error
        self._server.settimeout(START_S)
        try:
            self._connection, _ = self._server.accept()
        except TimeoutError as error:
            self.close()
            raise AutopilotFailed(
                f"{self.name}: PX4 did not connect to {self._address} within {START_S:g} s; start "
                "it as `make px4_sitl none_iris`"
            ) from error
        # send without delay, because every sample is answered before the next one
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection.setblocking(False)
        self._offboard.setblocking(False)

    def messages(self, sample: Sample) -> list[Any]:
        """The HIL messages for a sample: the sensors and, at lower rates, the GPS and the true
        state.
        """
        m, time_us = self._messages, round(sample.time * 1e6)
        latitude, longitude = (round(np.degrees(angle) * 1e7) for angle in sample.geodetic[:2])
        altitude_mm = round(1e3 * sample.geodetic[2])
        force, rates = to_frd(sample.specific_force), to_frd(sample.angular_velocity)
        field = GAUSS * to_frd(sample.field)
        sensor = m.MAVLink_hil_sensor_message(
            time_usec=time_us,
            xacc=force[0],
            yacc=force[1],
            zacc=force[2],
            xgyro=rates[0],
            ygyro=rates[1],
            zgyro=rates[2],
            xmag=field[0],
            ymag=field[1],
            zmag=field[2],
            abs_pressure=sample.pressure / 100,  # hPa
            diff_pressure=0.0,
            # barometric formula for the standard atmosphere
            pressure_alt=44330.77 * (1 - (sample.pressure / 101325.0) ** 0.1902632),
            temperature=20.0,
            fields_updated=ALL_SENSORS,
        )
        sent = [sensor]
        if self._is_due("gps", sample.time, GPS_S):
            north, east, down = 100 * to_ned(sample.gps_velocity)  # cm/s
            course = np.degrees(np.arctan2(east, north)) % 360
            sent.append(
                m.MAVLink_hil_gps_message(
                    time_usec=time_us,
                    fix_type=3,
                    lat=latitude,
                    lon=longitude,
                    alt=altitude_mm,
                    eph=30,
                    epv=40,
                    vel=round(np.hypot(north, east)),
                    vn=round(north),
                    ve=round(east),
                    vd=round(down),
                    cog=round(100 * course) % 36000,
                    satellites_visible=12,
                )
            )
        if self._is_due("truth", sample.time, TRUTH_S):
            # int16 in mg
            acceleration = [int(np.clip(round(a), -32768, 32767)) for a in force / 9.80665 * 1000]
            velocity = [round(100 * v) for v in to_ned(sample.velocity)]
            sent.append(
                m.MAVLink_hil_state_quaternion_message(
                    time_usec=time_us,
                    attitude_quaternion=attitude_to_ned(sample.attitude).tolist(),
                    rollspeed=rates[0],
                    pitchspeed=rates[1],
                    yawspeed=rates[2],
                    lat=latitude,
                    lon=longitude,
                    alt=altitude_mm,
                    vx=velocity[0],
                    vy=velocity[1],
                    vz=velocity[2],
                    ind_airspeed=0,
                    true_airspeed=0,
                    xacc=acceleration[0],
                    yacc=acceleration[1],
                    zacc=acceleration[2],
                )
            )
        return sent

    def setpoint_messages(self, sample: Sample, setpoint: Setpoint, armed: bool) -> list[Any]:
        """The offboard messages: a setpoint and, until the vehicle is armed as requested, the
        commands for the offboard mode and for arming.
        """
        m, sent = self._messages, []
        if setpoint.waypoint is None:
            system, component = VEHICLE
            roll, pitch, yaw = to_frd(setpoint.rates)
            sent.append(
                m.MAVLink_set_attitude_target_message(
                    time_boot_ms=round(sample.time * 1e3),
                    target_system=system,
                    target_component=component,
                    type_mask=RATES_AND_THRUST,
                    q=[1.0, 0.0, 0.0, 0.0],
                    body_roll_rate=roll,
                    body_pitch_rate=pitch,
                    body_yaw_rate=yaw,
                    thrust=setpoint.collective,
                )
            )
        elif self._is_due("position", sample.time, POSITION_S):
            sent.append(position_target(m, sample.time, setpoint.waypoint))
        if armed and not self.vehicle.armed and self._is_due("arm", sample.time, ARM_AGAIN_S):
            custom = m.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED
            sent.append(command(m, m.MAV_CMD_DO_SET_MODE, custom, OFFBOARD_MODE))
            sent.append(command(m, m.MAV_CMD_COMPONENT_ARM_DISARM, 1))
        return sent

    def send(self, sample: Sample, setpoint: Setpoint, armed: bool) -> None:
        """See `Autopilot`."""
        self.link.sends()
        self._time_us = round(sample.time * 1e6)
        self._hear()
        # the address is unknown until the first heartbeat arrives
        if self._peer is not None:
            for message in self.setpoint_messages(sample, setpoint, armed):
                self._offboard.sendto(message.pack(self._out), self._peer)
        data = b"".join(message.pack(self._out) for message in self.messages(sample))
        if self._connection is None or self.link.ended:
            return
        try:
            # all bytes must be sent, but `receive` must not block
            self._connection.setblocking(True)
            self._connection.sendall(data)
            self._connection.setblocking(False)
        except OSError as error:
            self.link.ended = f"PX4 has closed the connection ({error})"

    def receive(self) -> np.ndarray | None:
        """See `Autopilot`. Returns None if no HIL_ACTUATOR_CONTROLS with the sample's time
        arrives.
        """
        values, end = None, time.perf_counter() + WAIT_S
        while values is None and not self.link.ended and self._connection is not None:
            remaining = end - time.perf_counter()
            if remaining <= 0 or not select.select([self._connection], [], [], remaining)[0]:
                break
            try:
                data = self._connection.recv(65536)
            except OSError as error:
                self.link.ended = f"PX4 has closed the connection ({error})"
                break
            if not data:
                self.link.ended = "PX4 has closed the connection"
                break
            for message in self._simulator.parse_buffer(data) or []:
                # answers to earlier samples are dropped
                if (
                    message.get_type() == "HIL_ACTUATOR_CONTROLS"
                    and message.time_usec >= self._time_us
                ):
                    values = np.clip(np.array(message.controls[:4]), 0.0, 1.0)
        if values is not None:
            self.motors = values
        self.link.received(values is not None)
        return values

    def _hear(self) -> None:
        """Read the vehicle's heartbeats and reasons against arming."""
        while True:
            try:
                data, peer = self._offboard.recvfrom(2048)
            except (BlockingIOError, ConnectionRefusedError):
                return
            self.vehicle.hear(data)
            if self.vehicle.is_heard:
                self._peer = peer

    def _is_due(self, what: str, now: float, period: float) -> bool:
        if now < self._due[what] - 1e-9:
            return False
        self._due[what] = now + period
        return True

    @property
    def refusal(self) -> str:
        """The reason why PX4 cannot be armed, as long as it has sent no heartbeat. PX4 reports
        other reasons only after a command to arm.
        """
        self._hear()
        return "" if self.vehicle.is_heard else self.vehicle.refusal

    @property
    def spinning(self) -> bool:
        """Whether PX4 is armed and its motors turn."""
        return self.vehicle.armed and bool((self.motors > 0.0).all())

    def close(self) -> None:
        """Close the connection and the ports. PX4 keeps running."""
        for connection in (self._connection, self._server, self._offboard):
            if connection is not None:
                connection.close()
