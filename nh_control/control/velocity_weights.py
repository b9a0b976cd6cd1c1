"""LQR weights of velocities as weights of the momenta of a state."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.system import DiscreteSystem


def velocity_weights(dsys: DiscreteSystem, q: ArrayLike, Q: ArrayLike) -> np.ndarray:
    """The weight (ndx, ndx) on local coordinates (dq, drho) that equals the weight Q on (dq, v)
    near rest at the configuration q (nq). Q has shape (nv + nw, nv + nw), or (nv + nw,) for a
    diagonal.

    It is `T^T Q T,  T = diag(1, X (X^T M X)^{-1})`, because `v = X (X^T M X)^{-1} rho`. At rest v
    does not depend on dq, so this is exact. Further numbers in a method's state have no weight.
    Raises ValueError for another shape of Q or q.
    """
    space, n = dsys.system.space, dsys.system.space.nv
    size, Q = n + space.nw, np.asarray(Q, dtype=float)
    if Q.shape == (size,):
        Q = np.diag(Q)
    if Q.shape != (size, size):
        raise ValueError(
            f"{dsys}: the weight of {n} local coordinates and {space.nw} velocities must have "
            f"shape ({size}, {size}) or ({size},), got {Q.shape}"
        )
    T = np.zeros((size, dsys.ndx))
    T[:n, :n], T[n:, n:] = np.eye(n), velocities_by_momenta(dsys, q)
    weight = T.T @ Q @ T
    return (weight + weight.T) / 2


def velocities_by_momenta(dsys: DiscreteSystem, q: ArrayLike) -> np.ndarray:
    """Derivatives (nw, ndx - nv) of the velocity by the momenta, and by further numbers of a
    method's state, near rest at the configuration q (nq): `X (X^T M X)^{-1}`.
    """
    rest = dsys.state(q, np.zeros(dsys.system.space.nw))
    # v is linear in rho: column i is the velocity of the unit vector e_i
    units = np.eye(dsys.ndx)[dsys.system.space.nv :]
    return np.array([dsys.velocity(dsys.retract(rest, unit)) for unit in units]).T
