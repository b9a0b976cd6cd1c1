"""The rotors of multirotors. Their thrusts follow motor commands and drive a system of
quadrotors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.mechanics.actuators import with_actuators
from nh_control.mechanics.system import System
from nh_control.systems.rotor_mixing import allocation_matrix

T = TypeVar("T", ca.SX, np.ndarray)
WRENCH = ("thrust", "torque_x", "torque_y", "torque_z")
QUADROTOR_WRENCH = ("thrust", "roll_torque", "pitch_torque", "yaw_torque")
"""Suffixes of the names of the inputs that the rotors generate."""


@dataclass(frozen=True)
class Airframe:
    """The rotors of a multirotor. Rotor i is at `positions[i]` = (x, y) in m, with x forward and y
    left. It turns clockwise as seen from above if `clockwise[i]` is true. Its motor receives a
    command u_i in [0, 1].

    `tau f_i' = F_i(u) - f_i`,
    `F_i(u) = e_i f_max ((1 - c) u_i + c u_i^2) (1 - s sum f / (n f_max))` with the thrusts f (n)
    in N, the quadratic fraction c of the thrust `curve`, the battery's `sag` s and the
    `effectiveness` e_i. Each rotor exerts the torque `drag_ratio f_i` on the body, opposite to its
    rotation. The rotors' inertia is neglected.
    """

    positions: Sequence[Sequence[float]]
    clockwise: Sequence[bool] = (False, False, True, True)
    max_thrust: float = 6.0
    """Maximum thrust f_max of a rotor in N."""
    curve: float = 0.6
    time_constant: float = 0.03
    """tau in s."""
    drag_ratio: float = 0.016
    """Ratio of drag torque to thrust, in m."""
    sag: float = 0.0
    effectiveness: Sequence[float] = (1.0, 1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        sizes = len(self.positions), len(self.clockwise), len(self.effectiveness)
        if len(set(sizes)) != 1 or np.shape(self.positions) != (sizes[0], 2):
            raise ValueError(
                f"Airframe: expected positions (x, y), a turning direction and an effectiveness "
                f"for each rotor, got shape {np.shape(self.positions)} and {sizes[1:]} entries"
            )
        for name in ("max_thrust", "time_constant", "drag_ratio"):
            if not 0 < getattr(self, name) < np.inf:
                raise ValueError(
                    f"Airframe: {name} must be positive and finite, got {getattr(self, name)}"
                )
        if not (0 <= self.curve <= 1 and 0 <= self.sag < 1):
            raise ValueError(
                f"Airframe: curve must lie in [0, 1] and sag in [0, 1), got {self.curve} and "
                f"{self.sag}"
            )
        if not all(0 < e <= 1 for e in self.effectiveness):
            raise ValueError(
                f"Airframe: effectiveness must lie in (0, 1], got {tuple(self.effectiveness)}"
            )
        if np.linalg.matrix_rank(self.matrix) < 4:
            raise ValueError(
                f"Airframe: rotors at {self.positions}, clockwise {self.clockwise}, cannot turn "
                f"the body about all axes"
            )

    @staticmethod
    def x(arm: float = 0.226, **values: Any) -> Airframe:
        """Rotors at the distance `arm` (m) from the center, in the order front right, rear left,
        front left, rear right. ArduPilot, PX4 and Betaflight's simulator packets use this order.
        """
        a = arm / np.sqrt(2)
        return Airframe(((a, -a), (-a, a), (a, a), (-a, -a)), **values)

    @staticmethod
    def plus(arm: float = 0.226, **values: Any) -> Airframe:
        """Rotors at the distance `arm` (m) from the center, in the order right, left, front, rear.
        ArduPilot and PX4 use this order.
        """
        return Airframe(((0.0, -arm), (0.0, arm), (arm, 0.0), (-arm, 0.0)), **values)

    def weakened(self, rotor: int, share: float) -> Airframe:
        """The same airframe with one rotor, counted from 0, reduced to the given share of its
        thrust.
        """
        effectiveness = list(self.effectiveness)
        effectiveness[rotor] = share
        return replace(self, effectiveness=tuple(effectiveness))

    @property
    def n(self) -> int:
        """Number of rotors."""
        return len(self.positions)

    @cached_property
    def matrix(self) -> np.ndarray:
        """Matrix (4, n) from the thrusts to (thrust, torque_x, torque_y, torque_z)."""
        return allocation_matrix(np.array(self.positions), self.clockwise, self.drag_ratio)

    def targets(self, f: T, u: T) -> T:
        """The thrusts F (n), in N, that the thrusts f (n) approach under the commands u (n)."""
        # the battery's voltage sags with the total thrust
        droop = 1 - self.sag * sum(f[i] for i in range(self.n)) / (self.n * self.max_thrust)
        scale = np.array(self.effectiveness) * self.max_thrust
        curve = (1 - self.curve) * u + self.curve * u**2
        return (ca.DM(scale) if isinstance(u, ca.SX) else scale) * curve * droop

    def advance(self, f: np.ndarray, u: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
        """Thrusts (n) after h s with constant commands u (n), and their means over this time. The
        solution is exact for the initial sag.
        """
        # f(t) = F + (f - F) exp(-t / tau) has the mean F + (f - F) (1 - exp(-h / tau)) tau / h
        away, decay = f - (reached := self.targets(f, u)), np.exp(-h / self.time_constant)
        return reached + away * decay, reached + away * (1 - decay) * self.time_constant / h

    def commands(self, wrench: ArrayLike) -> np.ndarray:
        """Commands (n) that maintain (thrust, torques) (4) with minimum thrusts, clipped to the
        rotors' range.
        """
        # least squares gives the minimum thrusts for this wrench
        f = np.linalg.pinv(self.matrix) @ np.asarray(wrench, dtype=float)
        droop = 1 - self.sag * f.sum() / (self.n * self.max_thrust)
        part = f / (np.array(self.effectiveness) * self.max_thrust * droop)
        return np.clip(self.command_of(np.clip(part, 0.0, None)), 0.0, 1.0)

    def command_of(self, part: ArrayLike) -> np.ndarray:
        """The commands u with `(1 - c) u + c u^2 = part`, where `part` is a fraction of the
        maximum thrust.
        """
        part, c = np.asarray(part, dtype=float), self.curve
        # this form of the quadratic's root avoids cancellation and is also valid for c = 0
        return 2 * part / (1 - c + np.sqrt((1 - c) ** 2 + 4 * c * part))


def craft_prefixes(system: System) -> list[str]:
    """Prefixes of the inputs of a system's quadrotors, for example [""] or ["quad1_", "quad2_"].
    The inputs must be the thrust and three torques of each quadrotor. Raises ValueError for other
    inputs.
    """
    names, prefixes = list(system.inputs), []
    for i in range(0, len(names), 4):
        prefix = names[i].removesuffix("thrust")
        expected = [[prefix + name for name in wrench] for wrench in (WRENCH, QUADROTOR_WRENCH)]
        if names[i : i + 4] not in expected:
            raise ValueError(
                f"{system.name}: rotors need a thrust and three torques for each quadrotor, as "
                f"{WRENCH}, got the inputs {system.inputs}"
            )
        prefixes.append(prefix)
    if not prefixes:
        raise ValueError(f"{system.name}: rotors need inputs, the system has none")
    return prefixes


def with_rotors(system: System, airframe: Airframe) -> System:
    """The system with the rotors of an airframe on each of its quadrotors.

    The inputs are motor commands in [0, 1], `motor1`, ... The rotor thrusts are first-order
    coordinates in N, `rotor1_thrust`, ... Both kinds of names follow a prefix such as `quad1_`.
    `Airframe` contains the equations. Raises ValueError for a system whose inputs are not thrusts
    and torques.
    """
    prefixes, n = craft_prefixes(system), airframe.n
    matrix = ca.DM(airframe.matrix)

    def of_crafts(w: ca.SX) -> list[ca.SX]:
        return [w[n * i : n * (i + 1)] for i in range(len(prefixes))]

    def rate(q: ca.SX, v: ca.SX, w: ca.SX, u: ca.SX, *params: Any) -> ca.SX:
        pairs = zip(of_crafts(w), of_crafts(u))
        return ca.vertcat(
            *((airframe.targets(f, c) - f) / airframe.time_constant for f, c in pairs)
        )

    return with_actuators(
        system,
        [f"{prefix}rotor{i + 1}_thrust" for prefix in prefixes for i in range(n)],
        rate,
        lambda q, v, w, u, *params: ca.vertcat(*(matrix @ f for f in of_crafts(w))),
        [f"{prefix}motor{i + 1}" for prefix in prefixes for i in range(n)],
        state_units=["N"] * (n * len(prefixes)),
        input_units=[""] * (n * len(prefixes)),
        input_limits=np.tile([0.0, 1.0], (n * len(prefixes), 1)),
    )
