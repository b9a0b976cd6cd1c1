"""Rigid bodies: mass, center of mass and inertia tensor in a frame."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from nh_control.multibody.frame_motion import three_numbers
from nh_control.numerics.expressions import Vector

TRIANGLE_TOLERANCE = 1e-6
"""Relative excess of the largest principal inertia over the sum of the others that is accepted,
because data are rounded.
"""


@dataclass(frozen=True)
class Body:
    """A rigid body on a frame: `mass` (kg), `center` of mass (3, m) and `inertia` (kg m^2) about
    the center of mass, in the frame's axes.

    `inertia` is a (3, 3) tensor or the three principal inertias (Jx, Jy, Jz); a body without
    inertia is a point mass. Raises ValueError unless the mass is positive and the tensor is
    symmetric, positive definite and has no principal inertia above the sum of the other two (no
    distribution of mass has that). `accept_any_inertia` skips the last two checks, and accepts an
    inertia without mass, for data that are known to be wrong and for parts of a body.
    """

    frame: str
    mass: float
    center: Vector = (0.0, 0.0, 0.0)
    inertia: ArrayLike | None = None
    accept_any_inertia: bool = False

    def __post_init__(self) -> None:
        massless = self.mass == 0 and self.accept_any_inertia
        if not (np.isfinite(self.mass) and (self.mass > 0 or massless)):
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

    def inertia_in(self, frame: str, position: np.ndarray, rotation: np.ndarray) -> SpatialInertia:
        """The body's inertia in `frame`, where the body's own frame has the given position (3) and
        rotation (3, 3).
        """
        return SpatialInertia(
            frame,
            self.mass,
            position + rotation @ self.center,
            rotation @ np.array(self.inertia) @ rotation.T,
        )


@dataclass(frozen=True)
class SpatialInertia:
    """Mass (kg), center of mass (3, m) and inertia about the center (3, 3, kg m^2) of all bodies
    that move with a frame, in its axes.
    """

    frame: str
    mass: float
    center: np.ndarray
    inertia: np.ndarray

    def scaled(self, factor: float) -> SpatialInertia:
        """Mass and inertia times a factor."""
        return replace(self, mass=factor * self.mass, inertia=factor * self.inertia)

    def __add__(self, other: SpatialInertia) -> SpatialInertia:
        mass = self.mass + other.mass
        center = (self.mass * self.center + other.mass * other.center) / (mass or 1.0)
        # parallel axis theorem: J + m (d.d 1 - d d^T) about the common center
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
    if not accept_any and (problem := inertia_problem(tensor)):
        raise ValueError(f"{where} {problem}")
    return tensor


def inertia_problem(tensor: np.ndarray, least: float = 0.0) -> str:
    """Why no body has an inertia tensor (3, 3), "" if one has: a principal value is not above
    `least` times the largest, or the largest is above the sum of the others.
    """
    principal = np.linalg.eigvalsh(tensor)
    if principal[0] <= least * principal[2]:
        return (
            f"must be positive definite, its principal values are {principal.tolist()}; leave it "
            "out for a point mass"
        )
    if 2 * principal[2] > (1 + TRIANGLE_TOLERANCE) * principal.sum():
        return (
            f"violates the triangle inequality: no body has the principal values "
            f"{principal.tolist()}, the largest above the sum of the others; "
            "is it about the center of mass?"
        )
    return ""
