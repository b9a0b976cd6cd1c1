"""Rigid bodies: mass, centre of mass and inertia tensor in a frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nh_control.multibody.motion import three_numbers
from nh_control.numerics.expressions import Vector

TRIANGLE_TOLERANCE = 1e-6
"""Part of the largest principal inertia by which it may exceed the sum of the others: data are
rounded.
"""


@dataclass(frozen=True)
class Body:
    """A rigid body on a frame: `mass` (kg), `center` of mass (3, m) and `inertia` (kg m^2) about
    it, in the frame's axes.

    `inertia` is a (3, 3) tensor or the three principal inertias (Jx, Jy, Jz); without it the body
    is a point mass. Raises ValueError for a mass that is not positive, a tensor that is not
    symmetric and positive definite, and a principal inertia above the sum of the others, which no
    distribution of mass has;
    `accept_any_inertia` leaves out the last two checks, for data that are known to be wrong.
    """

    frame: str
    mass: float
    center: Vector = (0.0, 0.0, 0.0)
    inertia: ArrayLike | None = None
    accept_any_inertia: bool = False

    def __post_init__(self) -> None:
        if not (np.isfinite(self.mass) and self.mass > 0):
            raise ValueError(
                f"body on {self.frame!r}: mass must be positive and finite, got {self.mass}"
            )
        inertia = (
            np.zeros((3, 3))
            if self.inertia is None
            else _tensor(self.inertia, self.frame, self.accept_any_inertia)
        )
        object.__setattr__(
            self, "center", three_numbers(self.center, f"body on {self.frame!r}: center")
        )
        object.__setattr__(self, "inertia", tuple(map(tuple, inertia.tolist())))

    def moved(self, frame: str, at: np.ndarray, rotation: np.ndarray) -> SpatialInertia:
        """The same body in a frame in which its own stands at `at` (3), turned by `rotation` (3,
        3).
        """
        return SpatialInertia(
            frame,
            self.mass,
            at + rotation @ self.center,
            rotation @ np.array(self.inertia) @ rotation.T,
        )


@dataclass(frozen=True)
class SpatialInertia:
    """Mass, centre (3) and inertia about it (3, 3) of all bodies that move with a frame."""

    frame: str
    mass: float
    center: np.ndarray
    inertia: np.ndarray

    def __add__(self, other: SpatialInertia) -> SpatialInertia:
        mass = self.mass + other.mass
        center = (self.mass * self.center + other.mass * other.center) / mass
        parts = [
            part.inertia + part.mass * (d @ d * np.eye(3) - np.outer(d, d))
            for part in (self, other)
            for d in [part.center - center]
        ]
        return SpatialInertia(self.frame, mass, center, np.sum(parts, axis=0))


def _tensor(inertia: ArrayLike, frame: str, accept_any: bool) -> np.ndarray:
    values = np.array(inertia, dtype=float)
    tensor = np.diag(values) if values.shape == (3,) else values
    where = f"body on {frame!r}: inertia"
    if (
        tensor.shape != (3, 3)
        or not np.isfinite(tensor).all()
        or not np.allclose(tensor, tensor.T, rtol=0, atol=1e-12 * np.abs(tensor).max())
    ):
        raise ValueError(
            f"{where} must be three finite numbers or a symmetric (3, 3) tensor, got "
            f"{values.tolist()}"
        )
    if accept_any:
        return tensor
    principal = np.linalg.eigvalsh(tensor)
    if principal[0] <= 0:
        raise ValueError(
            f"{where} must be positive definite, its principal values are {principal.tolist()}; "
            f"leave it out for a point mass"
        )
    if 2 * principal[2] > (1 + TRIANGLE_TOLERANCE) * principal.sum():
        raise ValueError(
            f"{where} violates the triangle inequality: no body has the principal values "
            f"{principal.tolist()}, the largest above the sum of the others; "
            "is it about the centre of mass?"
        )
    return tensor
