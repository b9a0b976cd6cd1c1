"""LQR gains for integral action, with a constant disturbance of the momenta as an additional
state.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control import lqr
from nh_control.control.modes import natural_sizes
from nh_control.control.stationary import decoupling_transform, stationary
from nh_control.control.weights import StateWeight, checked_weights
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory


def momenta(dsys: DiscreteSystem) -> slice:
    """The slice of the momenta in local coordinates. It lies between the configuration and the
    velocities of the prescribed coordinates.
    """
    nv = dsys.system.space.nv
    return slice(nv, nv + dsys.system.nrho)


def disturbance_gains(
    dsys: DiscreteSystem,
    reference: Trajectory,
    Q: StateWeight,
    R: ArrayLike,
    Qf: StateWeight | None,
    stabilized: list[int] | None,
) -> tuple[lqr.Gains, np.ndarray]:
    """LQR gains K (N, nu, ndx) and K_d (N, nu, nrho), with the disturbance as additional constant
    states.

    If `stabilized` lists coordinates, the terminal cost is that of the stationary problem that
    stabilizes them. In this problem the disturbance and the other coordinates are autonomous.
    """
    from scipy.linalg import block_diag  # slow to import

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
    if stabilized is not None:
        sizes = natural_sizes(dsys, A[-1])
        # the disturbance is an autonomous coordinate of the stationary problem
        T = block_diag(decoupling_transform(A[-1], B[-1], stabilized, sizes), np.eye(d))
        sizes = np.append(sizes, sizes[momenta(dsys)])
        terminal = stationary(A_d[-1], B_d[-1], Q_d[-1], R, stabilized, T, sizes).P
    gains = lqr.riccati(A_d, B_d, Q_d, R, terminal)
    # split K over (dx, d) into K and K_d
    return lqr.Gains(gains.K[:, :, :n], gains.P[:, :n, :n]), gains.K[:, :, n:]
