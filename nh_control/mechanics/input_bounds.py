"""Validated input limits and nominal configuration of a system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nh_control.geometry.space import rotation_hint
from nh_control.geometry.spaces import Space


def input_bounds(
    owner: str,
    limits: np.ndarray | Callable[[Any], np.ndarray] | None,
    parameters: Any,
    nu: int,
    n_prescribed: int,
) -> np.ndarray:
    """The lower and upper bounds (nu + n_prescribed, 2) of the inputs, which are infinite without
    `limits`. Raises ValueError for a wrong shape, and unless every lower bound is below the upper
    one.
    """
    n = nu + n_prescribed
    free = np.tile([-np.inf, np.inf], (n, 1))
    bounds = np.array(
        free if limits is None else limits(parameters) if callable(limits) else limits, float
    )
    # prescribed coordinates are unlimited by default
    if bounds.shape == (nu, 2):
        bounds = np.vstack([bounds, free[nu:]])
    if bounds.shape != (n, 2) or not (bounds[:, 0] < bounds[:, 1]).all():
        shapes = " or ".join(f"({rows}, 2)" for rows in sorted({nu, n}))
        raise ValueError(
            f"{owner}: input_limits must be {shapes} with lower < upper, got {bounds.tolist()}"
        )
    bounds.setflags(write=False)
    return bounds


def nominal_configuration(owner: str, space: Space, nominal: Sequence[float] | None) -> np.ndarray:
    """The nominal configuration (nq), by default the origin of the space; raises ValueError for
    numbers that are not a configuration.
    """
    q = space.origin
    if nominal is not None:
        q = np.array(nominal, dtype=float)
        rest = np.zeros(space.nv)
        # q is on its manifold if retract(q, 0) = q
        if q.shape != (space.nq,) or not np.abs(space.retract(q, rest) - q).max() <= 1e-9:
            raise ValueError(
                f"{owner}: nominal must be a configuration, {space.nq} finite numbers "
                f"{space.names} on their manifold, got {nominal}"
                f"{rotation_hint(space.names, q.size)}"
            )
    q.setflags(write=False)
    return q
