"""The limits of a system's inputs and its nominal configuration, checked and completed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nh_control.geometry.spaces import Space


def input_bounds(
    owner: str,
    limits: np.ndarray | Callable[[Any], np.ndarray] | None,
    parameters: Any,
    nu: int,
    n_prescribed: int,
) -> np.ndarray:
    """Lower and upper bound of every input, (nu + n_prescribed, 2), infinite where `limits` says
    nothing; raises ValueError for another shape, or bounds that are not lower < upper.
    """
    n = nu + n_prescribed
    free = np.tile([-np.inf, np.inf], (n, 1))
    bounds = np.array(
        free if limits is None else limits(parameters) if callable(limits) else limits, float
    )
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
    """The nominal configuration (nq), the space's origin where none is given; raises ValueError
    for numbers that are no configuration.
    """
    q = space.origin
    if nominal is not None:
        q = np.array(nominal, dtype=float)
        rest = np.zeros(space.nv)
        if q.shape != (space.nq,) or not np.abs(space.retract(q, rest) - q).max() <= 1e-9:
            raise ValueError(
                f"{owner}: nominal must be a configuration, {space.nq} finite numbers "
                f"{space.names} on their manifold, got {nominal}"
            )
    q.setflags(write=False)
    return q
