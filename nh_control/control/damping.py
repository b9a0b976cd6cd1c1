"""Damping: inputs that bring a motion to rest as far as the actuators allow."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem

DAMPING_S = 0.2
"""Default time constant of the damping."""
REACHED = 1e-9
"""A combination of inputs has no effect if its effect is below this fraction of the largest one.
"""


def damping_input(
    dsys: DiscreteSystem, x: ArrayLike, time_s: float, external: int = 0
) -> np.ndarray:
    """Input (nu) within the limits that brings the momenta to zero in about `time_s`, as far as
    inputs reach them. The last `external` inputs are external forces; they stay 0.

    `u = (h / time_s) argmin_w |rho + B w|^2` in the metric of the kinetic energy, with B the
    Jacobian of the momenta by the inputs over a step; prescribed coordinates do not move. Raises
    ValueError for a time that is not positive and StepFailed if no step is possible.
    """
    if not time_s > 0:
        raise ValueError(f"damping needs a time > 0, got {time_s} s")
    n, nv = dsys.system.nrho, dsys.system.space.nv
    idle, forces = dsys.idle(x), dsys.system.nu - external
    rest = dsys.measured_state(dsys.configuration(x), np.zeros(dsys.system.space.nw))
    root = np.linalg.cholesky(_energy_metric(dsys, rest, slice(nv, nv + n))).T
    B = dsys.linearize(x, idle).B[nv : nv + n, :forces]
    rho = dsys.local(rest, x)[nv : nv + n]
    stop = np.linalg.lstsq(root @ B, root @ rho, rcond=REACHED)[0]
    u = idle.copy()
    u[:forces] -= min(1.0, dsys.h / time_s) * stop
    limits = dsys.system.input_bounds
    return np.clip(u, limits[:, 0], limits[:, 1])


def damping_or_idle(
    dsys: DiscreteSystem, x: ArrayLike, time_s: float = DAMPING_S, external: int = 0
) -> np.ndarray:
    """`damping_input`, or, at states x (nx) from which no step is possible, zero-force inputs (nu)
    that hold the prescribed coordinates.
    """
    try:
        return damping_input(dsys, x, time_s, external)
    except (StepFailed, np.linalg.LinAlgError):
        return dsys.idle(x)


def _energy_metric(dsys: DiscreteSystem, rest: np.ndarray, momenta: slice) -> np.ndarray:
    """Matrix G (nrho, nrho) of the kinetic energy `e^T G e / 2` of momenta e in local
    coordinates at a state of rest, by polarization: `G_ij = E(e_i + e_j) - E(e_i) - E(e_j)`.
    """
    units = np.eye(dsys.ndx)[momenta]
    sums = (units[:, None] + units).reshape(-1, dsys.ndx)
    states = [dsys.retract(rest, dx) for dx in (*units, *sums)]
    energies = dsys.energies(np.array(states)) - dsys.energy(rest)
    alone, both = energies[: len(units)], energies[len(units) :].reshape(len(units), -1)
    return both - alone[:, None] - alone
