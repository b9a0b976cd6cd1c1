"""The numbers that a system declares, checked and completed: the limits of its inputs, and the
configuration at which it is judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from nh_control.mechanics.system import System


def input_bounds(system: System) -> np.ndarray:
    """Lower and upper bound of every input, (nu + prescribed, 2), infinite where `input_limits`
    says nothing; raises ValueError for another shape, or bounds that are not lower < upper.
    """
    n, given = system.nu + len(system.prescribed), system.input_limits
    free = np.tile([-np.inf, np.inf], (n, 1))
    limits = np.array(
        free if given is None else given(system.parameters) if callable(given) else given, float
    )
    if limits.shape == (system.nu, 2):
        limits = np.vstack([limits, free[system.nu :]])
    if limits.shape != (n, 2) or not (limits[:, 0] < limits[:, 1]).all():
        shapes = " or ".join(f"({rows}, 2)" for rows in sorted({system.nu, n}))
        raise ValueError(
            f"{system.name}: input_limits must be {shapes} with lower < upper, got "
            f"{limits.tolist()}"
        )
    limits.setflags(write=False)
    return limits


def nominal_configuration(system: System) -> np.ndarray:
    """`nominal` (nq), or else the space's origin; raises ValueError for numbers that are no
    configuration.
    """
    space, at = system.space, system.space.origin
    if system.nominal is not None:
        at = np.array(system.nominal, dtype=float)
        still = np.zeros(space.nv)
        if at.shape != (space.nq,) or not np.abs(space.retract(at, still) - at).max() <= 1e-9:
            raise ValueError(
                f"{system.name}: nominal must be a configuration, {space.nq} finite numbers "
                f"{space.names} on their manifold, got {system.nominal}"
            )
    at.setflags(write=False)
    return at
