"""Damping: inputs that bring a motion to rest as far as the actuators permit."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem

DAMPING_S = 0.2
"""Default time constant of the damping."""
REACHED = 1e-9
"""A combination of inputs counts as having no effect if its effect is below this fraction of the
largest effect.
"""


def damping_input(
    dsys: DiscreteSystem, x: ArrayLike, time_s: float, external: int = 0
) -> np.ndarray:
    """The input (nu) within the limits that brings the momenta to zero in about `time_s`, as far
    as the inputs can affect the momenta. The last `external` inputs are external forces and stay
    0.

    `u = (h / time_s) argmin_w |rho + B w|^2` in the metric of the kinetic energy, where B is the
    Jacobian of the momenta after a step with respect to the inputs; prescribed coordinates do not
    move. Raises ValueError if the time is not positive, and StepFailed if no step is possible.
    """
    if not time_s > 0:
        raise ValueError(f"damping needs a time > 0, got {time_s} s")
    n, nv = dsys.system.nrho, dsys.system.space.nv
    idle, forces = dsys.idle(x), dsys.system.nu - external
    rest = dsys.measured_state(dsys.configuration(x), np.zeros(dsys.system.space.nw))
    # least squares in the energy metric: |e|_G = |root e| with G = root^T root
    root = np.linalg.cholesky(_energy_metric(dsys, rest, slice(nv, nv + n))).T
    B = dsys.linearize(x, idle).B[nv : nv + n, :forces]
    # momenta relative to rest at the same configuration
    rho = dsys.local(rest, x)[nv : nv + n]
    stop = np.linalg.lstsq(root @ B, root @ rho, rcond=REACHED)[0]
    u = idle.copy()
    # this step removes a fraction h / time_s of the momenta
    u[:forces] -= min(1.0, dsys.h / time_s) * stop
    limits = dsys.system.input_bounds
    return np.clip(u, limits[:, 0], limits[:, 1])


def damping_or_idle(
    dsys: DiscreteSystem, x: ArrayLike, time_s: float = DAMPING_S, external: int = 0
) -> np.ndarray:
    """The result of `damping_input` or, if no step from the state x (nx) is possible, inputs (nu)
    that apply no force and hold the prescribed coordinates.
    """
    try:
        return damping_input(dsys, x, time_s, external)
    except (StepFailed, np.linalg.LinAlgError):
        return dsys.idle(x)


def _energy_metric(dsys: DiscreteSystem, rest: np.ndarray, momenta: slice) -> np.ndarray:
    """Matrix G (nrho, nrho) of the kinetic energy `e^T G e / 2` of momenta e in local coordinates
    about a state of rest. Polarization yields `G_ij = E(e_i + e_j) - E(e_i) - E(e_j)`.
    """
    units = np.eye(dsys.ndx)[momenta]
    sums = (units[:, None] + units).reshape(-1, dsys.ndx)
    states = [dsys.retract(rest, dx) for dx in (*units, *sums)]
    energies = dsys.energies(np.array(states)) - dsys.energy(rest)
    alone, both = energies[: len(units)], energies[len(units) :].reshape(len(units), -1)
    return both - alone[:, None] - alone
