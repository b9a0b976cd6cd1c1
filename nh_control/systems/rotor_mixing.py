"""Thrust and torques of a quadrotor from its four rotors, and back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from nh_control.mechanics.parameters import Parameters, parameter

LAYOUTS = {"plus": 0.0, "x": np.pi / 4}
"""Angle (rad) of rotor 1's arm from body x, counter-clockwise seen from above; the others follow
every 90 degrees.
"""


@dataclass(frozen=True)
class RotorMixing(Parameters):
    """Rotors at distance `arm` (m), each with thrust `thrust_coefficient * speed^2` (N, rad/s) up
    to `max_speed` and drag torque `drag_ratio` (m) times its thrust.

    Rotors 1 ... 4 stand counter-clockwise from the front (`layout` "plus") or the front left
    (`layout` "x"); 1 and 3 turn clockwise seen from above, so their drag turns the body
    counter-clockwise. Body frame x forward, y left, z up.
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
        """Largest thrust of one rotor in N."""
        return self.thrust_coefficient * self.max_speed**2

    @cached_property
    def matrix(self) -> np.ndarray:
        """Matrix (4, 4) from rotor thrusts f to (thrust, torque_x, torque_y, torque_z):
        `(sum f, sum y f, -sum x f, drag_ratio sum +-f)`.
        """
        angles = LAYOUTS[self.layout] + np.pi / 2 * np.arange(4)
        x, y = self.arm * np.cos(angles), self.arm * np.sin(angles)
        return np.array([np.ones(4), y, -x, self.drag_ratio * np.array([1.0, -1.0, 1.0, -1.0])])

    def wrench(self, speeds: ArrayLike) -> np.ndarray:
        """Thrust (N) and body torques (N m), (4), of rotor speeds (4) in rad/s."""
        return self.matrix @ (self.thrust_coefficient * np.square(speeds))

    def speeds(self, wrench: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Rotor speeds (4) in rad/s for thrust and torques (4), limited to what the rotors can do,
        and which rotors were limited (4).
        """
        wanted = np.linalg.solve(self.matrix, np.asarray(wrench, dtype=float))
        possible = np.clip(wanted, 0.0, self.max_thrust)
        limited = ~np.isclose(possible, wanted, rtol=0.0, atol=1e-12 * self.max_thrust)
        return np.sqrt(possible / self.thrust_coefficient), limited
