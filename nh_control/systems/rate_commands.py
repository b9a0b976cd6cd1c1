"""Quadrotors whose flight controllers follow commanded body rates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from nh_control.geometry.rotations import SO3
from nh_control.geometry.spaces import Product
from nh_control.mechanics.system import System
from nh_control.systems.rotors import craft_prefixes

RATES = ("roll_rate", "pitch_rate", "yaw_rate")


def angular_velocity_columns(system: System) -> list[int]:
    """Indices at which the attitudes' body angular velocities (3 each) begin in a velocity."""
    space, columns, start = system.space, [], 0
    for factor in space.factors if isinstance(space, Product) else (space,):
        if isinstance(factor, SO3):
            columns.append(start)
        start += factor.nw
    return columns


def with_rate_commands(system: System, time_constant: float, largest_rate: float) -> System:
    """The system with a first-order rate loop on each of its quadrotors.

    The inputs are the thrust (N) and the commanded rates r (rad/s, in the body's axes) of each
    quadrotor. The torque is `M = J (r - omega) / tau + omega x J omega`, so
    `tau omega' = r - omega`. J contains the parameters Jx, Jy, Jz. tau is the `time_constant` (s),
    and rates are at most `largest_rate`. Raises ValueError for a system whose inputs are not
    thrusts and torques.
    """
    if not (0 < time_constant < np.inf and 0 < largest_rate < np.inf):
        raise ValueError(
            f"{system.name}: the time constant and the largest rate of the rate loop must be "
            f"positive and finite, got {time_constant} s and {largest_rate} rad/s"
        )
    prefixes, columns = craft_prefixes(system), angular_velocity_columns(system)
    if len(columns) != len(prefixes) or system.force is None:
        raise ValueError(
            f"{system.name}: expected an attitude for each of {len(prefixes)} quadrotors, got "
            f"{len(columns)}"
        )
    under_wrenches, wrench_limits = system.force, system.input_limits

    def force(q: ca.SX, v: ca.SX, u: ca.SX, params: Any) -> ca.SX:
        inertia, wrenches = ca.vertcat(params.Jx, params.Jy, params.Jz), []
        for i, column in enumerate(columns):
            omega, command = v[column : column + 3], u[4 * i : 4 * i + 4]
            # M = J (r - omega) / tau + omega x J omega
            turning = inertia * (command[1:] - omega) / time_constant
            wrenches += [command[0], turning + ca.cross(omega, inertia * omega)]
        return ca.SX(under_wrenches(q, v, ca.vertcat(*wrenches), params))

    def limits(params: Any) -> np.ndarray:
        bounds = np.array(wrench_limits(params) if callable(wrench_limits) else wrench_limits)
        for i in range(len(prefixes)):
            # thrusts keep their limits, and rates replace torques
            bounds[4 * i + 1 : 4 * i + 4] = [-largest_rate, largest_rate]
        return bounds

    return replace(
        system,
        name=f"{system.name}_rates",
        inputs=tuple(f"{prefix}{name}" for prefix in prefixes for name in ("thrust", *RATES)),
        input_units=("N", "rad/s", "rad/s", "rad/s") * len(prefixes),
        force=force,
        input_limits=limits,
    )
