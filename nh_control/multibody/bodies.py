"""Rigid bodies, with their mass, center of mass and inertia tensor in a frame."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from nh_control.multibody.frame_motion import three_numbers
from nh_control.numerics.expressions import Vector

TRIANGLE_TOLERANCE = 1e-6
"""Maximum relative amount by which, in rounded data, the largest principal inertia may exceed the
sum of the other two.
"""


@dataclass(frozen=True)
class Body:
    """A rigid body on a frame, with its `mass` (kg), `center` of mass (3, m) and `inertia`
    (kg m^2) about the center of mass, in the frame's axes.

    `inertia` is a (3, 3) tensor or the three principal inertias (Jx, Jy, Jz). A body without
    inertia is a point mass. Raises ValueError unless the mass is positive, the tensor is symmetric
    and positive definite, and each principal inertia is at most the sum of the other two, as it is
    for every mass distribution. `accept_any_inertia` skips the last two checks and accepts an
    inertia without mass. Use it for data that are known to be wrong and for parts of a body.
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
        """The body's inertia in `frame`. `position` (3) and `rotation` (3, 3) are the pose of the
        body's frame in `frame`.
        """
        return SpatialInertia(
            frame,
            self.mass,
            # J' = R J R^T about the center of mass c' = r + R c
            position + rotation @ self.center,
            rotation @ np.array(self.inertia) @ rotation.T,
        )


@dataclass(frozen=True)
class SpatialInertia:
    """Mass (kg), center of mass (3, m) and inertia about the center of mass (3, 3, kg m^2) of all
    bodies that move with a frame, in the frame's axes.
    """

    frame: str
    mass: float
    center: np.ndarray
    inertia: np.ndarray

    def scaled(self, factor: float) -> SpatialInertia:
        """The inertia with the mass and the tensor multiplied by a factor."""
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
    """The reason why an inertia tensor (3, 3) is impossible, or "" if it is possible. It is
    impossible if a principal value is at most `least` times the largest one, or if the largest one
    exceeds the sum of the other two.
    """
    principal = np.linalg.eigvalsh(tensor)
    if principal[0] <= least * principal[2]:
        return (
            f"must be positive definite, but its principal values are {principal.tolist()}; omit "
            "it for a point mass"
        )
    # every mass distribution satisfies J3 <= J1 + J2, written here as 2 J3 <= J1 + J2 + J3
    if 2 * principal[2] > (1 + TRIANGLE_TOLERANCE) * principal.sum():
        return (
            f"violates the triangle inequality: no body has the principal values "
            f"{principal.tolist()}, because the largest exceeds the sum of the others; "
            "is it about the center of mass?"
        )
    return ""
