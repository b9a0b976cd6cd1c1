"""LQR gains with a constant disturbance of the momenta as a state, for integral action."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag

from nh_control.control import lqr
from nh_control.control.modes import natural_sizes
from nh_control.control.stationary import decoupling_transform, stationary
from nh_control.control.weights import StateWeight, checked_weights
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory


def momenta(dsys: DiscreteSystem) -> slice:
    """The slice of the momenta in local coordinates: after the configuration, before the
    velocities of prescribed coordinates.
    """
    nv = dsys.system.space.nv
    return slice(nv, nv + dsys.system.nrho)


def disturbance_gains(
    dsys: DiscreteSystem,
    reference: Trajectory,
    Q: StateWeight,
    R: ArrayLike,
    Qf: StateWeight | None,
    kept: list[int] | None,
) -> tuple[lqr.Gains, np.ndarray]:
    """LQR gains with the disturbance as additional constant states: K (N, nu, ndx) and K_d (N, nu,
    nrho).

    If `kept` lists coordinates, the terminal cost is the cost of the stationary problem that
    stabilizes them; the disturbance and the other coordinates are autonomous there.
    """
    n, d = dsys.ndx, dsys.system.nrho
    Q, R, Qf = checked_weights(dsys, reference.states, Q, R, Qf)
    A, B = lqr.linearize_along(dsys, reference)
    steps = len(A)
    # augmented system (dx, d): dx' = A dx + B du + (0, d), d' = d
    A_d, B_d = np.zeros((steps, n + d, n + d)), np.zeros((steps, n + d, dsys.nu))
    A_d[:, :n, :n], A_d[:, momenta(dsys), n:], A_d[:, n:, n:] = A, np.eye(d), np.eye(d)
    B_d[:, :n] = B
    pad = ((0, d), (0, d))
    Q_d, terminal = np.pad(Q, ((0, 0), *pad)), np.pad(Qf, pad)
    if kept is not None:
        sizes = natural_sizes(dsys, A[-1])
        T = block_diag(decoupling_transform(A[-1], B[-1], kept, sizes), np.eye(d))
        sizes = np.append(sizes, sizes[momenta(dsys)])
        terminal = stationary(A_d[-1], B_d[-1], Q_d[-1], R, kept, T, sizes).P
    gains = lqr.riccati(A_d, B_d, Q_d, R, terminal)
    return lqr.Gains(gains.K[:, :, :n], gains.P[:, :n, :n]), gains.K[:, :, n:]
