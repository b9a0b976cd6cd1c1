"""Measurements by an inertial measurement unit (IMU) that moves with a system."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca

from nh_control.mechanics.lagrangian_system import LagrangianSystem
from nh_control.mechanics.outputs import Output
from nh_control.mechanics.reduced import velocity_rate
from nh_control.mechanics.system import System
from nh_control.numerics.expressions import as_expression

RATES = tuple(f"angular_velocity_{axis}" for axis in "xyz")
ACCELERATIONS = tuple(f"linear_acceleration_{axis}" for axis in "xyz")


@dataclass(frozen=True)
class Imu(Output):
    """An output (6) with the angular velocity (rad/s) from a gyroscope and the specific force
    (m/s^2) from an accelerometer, `omega = vee(R^T R')` and `a = R^T (x'' + gravity e_z)`, in
    sensor axes. At rest, a points upward.

    `pose(q)`, or `pose(q, p)` for a system with parameters, returns the position x (3) in m and
    the rotation R (3, 3) from sensor axes to world axes. x'' follows from the equations of motion
    under the acting inputs, including external forces. Raises ValueError for prescribed
    coordinates, whose accelerations are not known.
    """

    pose: Callable[..., tuple[Any, Any]] | None = None
    gravity: float = 9.81
    components: tuple[str, ...] = RATES + ACCELERATIONS
    units: tuple[str, ...] | str = ("rad/s",) * 3 + ("m/s^2",) * 3

    def of(self, system: LagrangianSystem, q: ca.SX, v: ca.SX, u: ca.SX) -> ca.SX:
        """The values (6) for symbolic q, v and u."""
        if not isinstance(system, System):
            raise TypeError(f"output {self.name} needs a System, got {system!r}")
        space = system.space
        configuration, w = ca.SX.sym("q", space.nq), ca.SX.sym("w", space.nw)
        e, rest = ca.SX.sym("e", space.nv), ca.SX.zeros(space.nv)
        if ca.depends_on(
            self._flat_pose(system, configuration), system.first_order_part(configuration)
        ):
            raise ValueError(
                f"{system.name}: the pose of the output {self.name} depends on first-order "
                f"coordinates {system.first_order}, whose accelerations are not known"
            )
        # x' and R' at a configuration with velocity w
        moved = self._flat_pose(system, space.retract(configuration, e))
        rate = ca.substitute(ca.jtimes(moved, e, space.frame(configuration).T @ w), e, rest)
        # x'' = d x'/dq q' + d x'/dw v'
        # first-order coordinates move with their rates
        full = system.with_rates(q, v, u)
        along = ca.substitute(rate[:3], configuration, space.retract(q, e))
        by_q = ca.jtimes(along, e, space.frame(q).T @ full)
        by_v = ca.jtimes(rate[:3], w, velocity_rate(system, q, v, u))
        turning = ca.reshape(rate[3:], 3, 3)
        by_q, by_v, turning = ca.substitute(
            [by_q, by_v, turning], [e, configuration, w], [rest, q, full]
        )
        rotation = ca.reshape(self._flat_pose(system, q)[3:], 3, 3)
        # R^T R' is skew-symmetric
        skew = rotation.T @ turning
        omega = ca.vertcat(skew[2, 1], skew[0, 2], skew[1, 0])
        specific = rotation.T @ (by_q + by_v + ca.DM([0, 0, self.gravity]))
        return ca.densify(ca.vertcat(omega, specific))

    def _flat_pose(self, system: System, q: ca.SX) -> ca.SX:
        """The position, then the columns of the rotation (12)."""
        pose = self.pose
        if pose is None:
            raise ValueError(f"output {self.name} has no pose(q)")

        def flat(*point: Any) -> ca.SX:
            position, rotation = pose(*point)
            return ca.vertcat(as_expression(position), ca.vec(ca.densify(as_expression(rotation))))

        flattened = system.evaluated(flat, q)
        if flattened.shape != (12, 1):
            raise ValueError(
                f"{system.name}: pose of the output {self.name} must be a position (3) and a "
                f"rotation (3, 3)"
            )
        return flattened

    def behind(self, nq: int, nw: int, inputs: Callable[..., ca.SX]) -> Imu:
        pose = self.pose
        if pose is None:
            return self
        return replace(self, pose=lambda q, *p: pose(q[:nq], *p))
