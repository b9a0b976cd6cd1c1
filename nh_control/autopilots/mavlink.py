"""MAVLink messages that PX4 and ArduPilot share: position setpoints, commands, and a vehicle's
status. They follow the public description of MAVLink 2.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from nh_control.autopilots.autopilot import AutopilotFailed, Waypoint
from nh_control.autopilots.frames import to_ned

SYSTEM, COMPONENT = 255, 190
"""System and component numbers of this program, which acts as a ground station."""
VEHICLE = 1, 1
"""System and component numbers of the flight controller."""
POSITION_VELOCITY_YAW = 0b100111000000
"""Type mask of SET_POSITION_TARGET_LOCAL_NED that ignores accelerations and the yaw rate."""
POSITION_S = 0.02
"""Simulated time between position setpoints."""
WARNING = 4
"""Texts of this severity or higher are reasons against arming."""


def dialect() -> ModuleType:
    """pymavlink's MAVLink messages. Raises AutopilotFailed if pymavlink is not installed."""
    try:
        from pymavlink.dialects.v20 import common
    except ModuleNotFoundError as missing:
        raise AutopilotFailed(
            "MAVLink messages require pymavlink: pip install 'nh_control[px4]'"
        ) from missing
    return common


def position_target(m: ModuleType, time_s: float, waypoint: Waypoint) -> Any:
    """SET_POSITION_TARGET_LOCAL_NED for a waypoint: position, velocity and yaw. The yaw is 0 to
    the north and positive to the right. The frame's origin is the vehicle's position at power-on.
    """
    yaw = np.pi / 2 - waypoint.yaw  # from east to the left -> from north to the right
    x, y, z = to_ned(waypoint.position)
    vx, vy, vz = to_ned(waypoint.velocity)
    system, component = VEHICLE
    return m.MAVLink_set_position_target_local_ned_message(
        time_boot_ms=round(time_s * 1e3),
        target_system=system,
        target_component=component,
        coordinate_frame=m.MAV_FRAME_LOCAL_NED,
        type_mask=POSITION_VELOCITY_YAW,
        x=x,
        y=y,
        z=z,
        vx=vx,
        vy=vy,
        vz=vz,
        afx=0.0,
        afy=0.0,
        afz=0.0,
        yaw=np.arctan2(np.sin(yaw), np.cos(yaw)),
        yaw_rate=0.0,
    )


def command(m: ModuleType, number: int, *values: float) -> Any:
    """COMMAND_LONG for a command with its first parameters. The other parameters are 0."""
    system, component = VEHICLE
    padded = (*values, *[0.0] * (7 - len(values)))
    parameters = {f"param{i + 1}": value for i, value in enumerate(padded)}
    return m.MAVLink_command_long_message(
        target_system=system,
        target_component=component,
        command=number,
        confirmation=0,
        **parameters,
    )


class Vehicle:
    """A vehicle's status according to its MAVLink messages: whether it is `armed`, whether it
    `is_heard`, and its last `refusal`, the reason against arming.
    """

    def __init__(self, m: ModuleType):
        self._m, self._parser = m, m.MAVLink(None, SYSTEM, COMPONENT)
        self._parser.robust_parsing = True
        self.armed, self.refusal, self.is_heard = False, "no heartbeat yet", False

    def hear(self, data: bytes) -> None:
        """Read bytes from the vehicle's messages."""
        # the parser keeps incomplete messages until the next bytes arrive
        for message in self._parser.parse_buffer(data) or []:
            if message.get_type() == "HEARTBEAT":
                if not self.is_heard:
                    self.is_heard, self.refusal = True, ""
                self.armed = bool(message.base_mode & self._m.MAV_MODE_FLAG_SAFETY_ARMED)
            elif message.get_type() == "STATUSTEXT" and message.severity <= WARNING:
                self.refusal = message.text
