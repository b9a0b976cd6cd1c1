"""Conversion between the thrust and torques of a quadrotor and the speeds of its four rotors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from nh_control.mechanics.parameters import Parameters, parameter

LAYOUTS = {"plus": 0.0, "x": np.pi / 4}
"""Angle (rad) from body x to the arm of rotor 1, counterclockwise as seen from above. The other
arms follow every 90 degrees.
"""


def allocation_matrix(
    positions: np.ndarray, clockwise: Sequence[bool], drag_ratio: float
) -> np.ndarray:
    """Matrix (4, n) from the thrusts f of rotors at positions (n, 2) in m to (thrust, torque_x,
    torque_y, torque_z) = `(sum f, sum y f, -sum x f, drag_ratio sum +-f)`. The sign is + for
    rotors that turn `clockwise` (n) as seen from above.
    """
    x, y = np.asarray(positions, dtype=float).T
    return np.array([np.ones(len(x)), y, -x, drag_ratio * np.where(clockwise, 1.0, -1.0)])


@dataclass(frozen=True)
class RotorMixing(Parameters):
    """Rotors at the distance `arm` (m) from the center. Each rotor has the thrust
    `thrust_coefficient * speed^2` (N, rad/s) up to `max_speed`, and a drag torque of `drag_ratio`
    (m) times its thrust.

    Rotors 1 ... 4 are arranged counterclockwise from the front (`layout` "plus") or the front left
    (`layout` "x"). Rotors 1 and 3 turn clockwise as seen from above, so their drag turns the body
    counterclockwise. In the body frame, x is forward, y is left and z is up.
    """

    arm: float = parameter(0.315, "m", "distance of the rotors from the center")
    thrust_coefficient: float = parameter(8.5e-6, "N s^2/rad^2", "thrust over squared speed")
    drag_ratio: float = parameter(0.016, "m", "drag torque over thrust")
    max_speed: float = parameter(940.0, "rad/s", "largest speed of a rotor")
    layout: str = "x"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layout not in LAYOUTS:
            raise ValueError(
                f"RotorMixing: unknown layout {self.layout!r}, choose one of {sorted(LAYOUTS)}"
            )

    @property
    def max_thrust(self) -> float:
        """Maximum thrust of one rotor in N."""
        return self.thrust_coefficient * self.max_speed**2

    @cached_property
    def matrix(self) -> np.ndarray:
        """Matrix (4, 4) from rotor thrusts to (thrust, torques) (see `allocation_matrix`)."""
        angles = LAYOUTS[self.layout] + np.pi / 2 * np.arange(4)
        positions = self.arm * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return allocation_matrix(positions, (True, False, True, False), self.drag_ratio)

    def wrench(self, speeds: ArrayLike) -> np.ndarray:
        """Thrust (N) and body torques (N m), (4), for rotor speeds (4) in rad/s."""
        return self.matrix @ (self.thrust_coefficient * np.square(speeds))

    def speeds(self, wrench: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Rotor speeds (4) in rad/s for thrust and torques (4), limited to the rotors' range, and
        flags (4) that tell which rotors are limited.
        """
        required = np.linalg.solve(self.matrix, np.asarray(wrench, dtype=float))
        # rotors cannot reverse their thrust
        possible = np.clip(required, 0.0, self.max_thrust)
        limited = ~np.isclose(possible, required, rtol=0.0, atol=1e-12 * self.max_thrust)
        return np.sqrt(possible / self.thrust_coefficient), limited
