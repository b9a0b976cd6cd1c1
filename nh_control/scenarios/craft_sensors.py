"""Sensors of a flight controller: outputs of its craft's system with noise, bias, rate and
delay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from nh_control.geometry import quaternion
from nh_control.mechanics.imu import Imu
from nh_control.mechanics.outputs import Output
from nh_control.mechanics.system import System
from nh_control.numerics.expressions import Graph
from nh_control.scenarios.flight import Craft
from nh_control.scenarios.sensor import Sensor

EARTH_RADIUS = 6371000.0
SEA_LEVEL = 101325.0
GRAVITY = 9.81


@dataclass(frozen=True)
class Place:
    """The location of the world's origin: latitude and longitude in rad, altitude in m, and the
    local magnetic field in T (north, east, down).
    """

    latitude: float = np.radians(47.397742)
    longitude: float = np.radians(8.545594)
    altitude: float = 488.0
    field: tuple[float, float, float] = (21.5e-6, 1.1e-6, 43.0e-6)

    @property
    def field_up(self) -> tuple[float, float, float]:
        """The magnetic field (T) in world axes (east, north, up)."""
        north, east, down = self.field
        return east, north, -down

    def pressure(self, z: Graph) -> Graph:
        """The pressure (Pa) in the standard atmosphere at a height z (m) above the origin."""
        # In the standard atmosphere below 11 km, p = p0 (1 - L h / T0)^(g M / (R L)).
        return SEA_LEVEL * (1 - 2.25577e-5 * (self.altitude + z)) ** 5.25588

    def geodetic(self, position: Graph) -> tuple[Graph, Graph, Graph]:
        """Latitude (rad), longitude (rad) and altitude (m) of a position (3) near the origin, on a
        spherical earth. The error is below 1e-7 times the distance plus the squared distance
        divided by the radius.
        """
        north = position[1] / EARTH_RADIUS
        east = position[0] / (EARTH_RADIUS * np.cos(self.latitude))
        return self.latitude + north, self.longitude + east, self.altitude + position[2]


@dataclass(frozen=True)
class SensorErrors:
    """Standard deviations of the sensor noise, and constant biases of an IMU. If the factor in
    `sensors` is 0, there is no noise.
    """

    gyroscope: float = 0.005
    """rad/s"""
    accelerometer: float = 0.05
    """m/s^2"""
    gyroscope_bias: tuple[float, float, float] = (0.0, 0.0, 0.0)
    accelerometer_bias: tuple[float, float, float] = (0.0, 0.0, 0.0)
    barometer: float = 1.0
    """Pa"""
    magnetometer: float = 2e-7
    """T"""
    gps_position: float = 0.3
    """m"""
    gps_velocity: float = 0.05
    """m/s"""
    gps_delay_s: float = 0.1

    def sensors(self, craft: str, factor: float = 1.0) -> tuple[Sensor, ...]:
        """The sensors of a craft. The IMU is sampled in every step, and the other sensors are
        sampled at their own rates.
        """
        imu = (*[self.gyroscope * factor] * 3, *[self.accelerometer * factor] * 3)
        biases = (*self.gyroscope_bias, *self.accelerometer_bias)
        # The position noise in m corresponds to an angle sigma / R.
        angle = self.gps_position * factor / EARTH_RADIUS
        gps = (angle, angle, self.gps_position * factor, *[self.gps_velocity * factor] * 3)
        named = {name: f"{craft}_{name}" for name in ("imu", "barometer", "magnetometer", "gps")}
        delay_s = self.gps_delay_s if factor else 0.0
        return (
            Sensor(named["imu"], named["imu"], imu, biases),
            Sensor(named["barometer"], named["barometer"], self.barometer * factor, rate_hz=50.0),
            Sensor(
                named["magnetometer"],
                named["magnetometer"],
                self.magnetometer * factor,
                rate_hz=50.0,
            ),
            Sensor(named["gps"], named["gps"], gps, rate_hz=10.0, delay_s=delay_s),
        )


def with_craft_sensors(system: System, crafts: Sequence[Craft], place: Place = Place()) -> System:
    """The system with an output for each sensor of each craft: `<craft>_imu` (6),
    `<craft>_barometer`, `<craft>_magnetometer` (3) and `<craft>_gps` (6: latitude, longitude,
    altitude and velocity).
    """
    outputs: list[Output] = []
    for craft in crafts:
        outputs += [
            Imu(
                f"{craft.name}_imu",
                pose=lambda q, parameters, c=craft: (
                    c.position(q, parameters),
                    quaternion.matrix(c.attitude(q)),
                ),
                gravity=GRAVITY,
            ),
            Output(
                f"{craft.name}_barometer",
                lambda q, v, u, parameters, c=craft: place.pressure(c.position(q, parameters)[2]),
                units="Pa",
            ),
            Output(
                f"{craft.name}_magnetometer",
                lambda q, v, u, parameters, c=craft: quaternion.rotate_back(
                    c.attitude(q), ca.SX(ca.DM(place.field_up))
                ),
                components=("x", "y", "z"),
                units="T",
            ),
            Output(
                f"{craft.name}_gps",
                lambda q, v, u, parameters, c=craft: ca.vertcat(
                    *place.geodetic(c.position(q, parameters)), c.velocity(q, v, parameters)
                ),
                components=("latitude", "longitude", "altitude", "east", "north", "up"),
                units=("rad", "rad", "m", "m/s", "m/s", "m/s"),
            ),
        ]
    return replace(system, outputs=(*system.outputs, *outputs))
