"""Weights of linear-quadratic problems: of states by name, in configuration and velocity, or in
local coordinates; and of inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.spaces import Space

StateWeight: TypeAlias = ArrayLike | Mapping[str, float]
"""Weight of a state: a matrix (ndx, ndx) in its local coordinates; a matrix (nv + nw, nv + nw), or
its diagonal, on changes of configuration and velocity; or the diagonal by their names, such as
`{"x": 10, "theta": 5, "x_dot": 1}`, where others have no weight.
"""


def weight_names(dsys: DiscreteSystem) -> tuple[str, ...]:
    """Names of the changes of configuration (nv) and velocity (nw)."""
    return *dsys.system.space.tangent_names, *dsys.system.space.velocity_names


def state_weights(
    dsys: DiscreteSystem, name: str, Q: StateWeight, states: ArrayLike
) -> np.ndarray:
    """The weight Q, called `name` in errors, in the local coordinates about states (N, nx): (N,
    ndx, ndx).

    A weight on changes of configuration and velocity becomes `T^T Q T`, T = diag(1, dv/drho) at
    each state. Further numbers in a method's state have no weight. Where the momenta have no basis
    that is the same at all configurations, see `ConstrainedStates`, a weight in local coordinates
    has no meaning. Raises ValueError for such a weight, another shape or name, and unless it is
    finite, symmetric and positive semidefinite.
    """
    states = np.atleast_2d(np.asarray(states, dtype=float))
    if (local := _local(dsys, Q)) is not None:
        weight = checked_weight(name, local, dsys.ndx)
        return np.broadcast_to(weight, (len(states), *weight.shape))
    weight = checked_weight(name, _matrix(dsys, name, Q), None)
    return np.array([_in_local_coordinates(dsys, weight, x) for x in states])


def _in_local_coordinates(dsys: DiscreteSystem, weight: np.ndarray, x: np.ndarray) -> np.ndarray:
    """`T^T weight T` (ndx, ndx) about a state x (nx)."""
    n = dsys.system.space.nv
    T = np.zeros((len(weight), dsys.ndx))
    T[:n, :n], T[n:, n:] = np.eye(n), velocities_by_momenta(dsys, x)
    product = T.T @ weight @ T
    return (product + product.T) / 2


def is_local(dsys: DiscreteSystem, Q: StateWeight) -> bool:
    """Whether a weight is one of local coordinates."""
    return _local(dsys, Q) is not None


def _local(dsys: DiscreteSystem, Q: StateWeight) -> np.ndarray | None:
    """A weight of local coordinates as an array, None for another one."""
    if isinstance(Q, Mapping) or _has_changing_basis(dsys):
        return None
    weight = np.asarray(Q, dtype=float)
    if weight.shape in {(dsys.ndx, dsys.ndx), ()}:
        return weight
    return weight if weight.ndim == 2 != _physical(dsys, weight.shape) else None


def _has_changing_basis(dsys: DiscreteSystem) -> bool:
    basis = dsys.system.mechanics.default_basis
    return basis is not None and not basis.is_constant


def with_memory(dsys: DiscreteSystem, Q: StateWeight) -> StateWeight:
    """A weight of a system's states, for a method whose states have further numbers: these have no
    weight in local coordinates.
    """
    n = len(dsys.method.memory)
    is_matrix = not isinstance(Q, Mapping) and np.shape(Q) == (dsys.ndx - n,) * 2
    return np.pad(np.asarray(Q), (0, n)) if is_matrix else Q


def weighted_coordinates(space: Space, Q: StateWeight) -> np.ndarray:
    """The mask (nv) of the coordinates of the configuration that have a weight."""
    if isinstance(Q, Mapping):
        return np.array([Q.get(name, 0.0) > 0 for name in space.tangent_names])
    return (np.diag(Q) if np.ndim(Q) == 2 else np.asarray(Q))[: space.nv] > 0


def _physical(dsys: DiscreteSystem, shape: tuple[int, ...]) -> int:
    """The number of dimensions of a weight on configuration and velocity, 0 for another shape."""
    n = len(weight_names(dsys))
    return len(shape) if shape in {(n,), (n, n)} else 0


def weight_matrix(dsys: DiscreteSystem, name: str, Q: StateWeight) -> np.ndarray:
    """A weight as a matrix: in local coordinates, or on configuration and velocity."""
    local = _local(dsys, Q)
    return _matrix(dsys, name, Q) if local is None else local


def _matrix(dsys: DiscreteSystem, name: str, Q: StateWeight) -> np.ndarray:
    """A weight on configuration and velocity as a matrix."""
    names = weight_names(dsys)
    if isinstance(Q, Mapping):
        if unknown := [key for key in Q if key not in names]:
            raise ValueError(
                f"{dsys}: no configuration or velocity {unknown} for the weight {name}, choose of "
                f"{list(names)}"
            )
        return np.diag([float(Q.get(key, 0.0)) for key in names])
    shape = np.shape(Q)
    if not _physical(dsys, shape):
        n, why = len(names), ""
        if _has_changing_basis(dsys):
            why = "; local coordinates of the momenta change their meaning along a motion"
        raise ValueError(
            f"{dsys}: the weight {name} must be given by name, or have shape ({n}, {n}) or "
            f"({n},), for changes of {list(names)}, got {shape}{why}"
        )
    return np.diag(np.asarray(Q, dtype=float)) if len(shape) == 1 else np.asarray(Q, dtype=float)


def checked_weight(name: str, value: ArrayLike, n: int | None) -> np.ndarray:
    """The weight as an array (n, n), of any n for None, from a number for n = 1; raises ValueError
    unless it is finite, symmetric and positive semidefinite.
    """
    value = np.asarray(value, dtype=float)
    if n == 1 and not value.ndim:
        value = value.reshape(1, 1)
    n = len(value) if n is None else n
    if value.shape != (n, n) or not np.isfinite(value).all() or not np.allclose(value, value.T):
        raise ValueError(
            f"{name} must be a finite symmetric ({n}, {n}) matrix, got shape {value.shape}"
        )
    if np.linalg.eigvalsh(value).min() < -1e-9 * np.abs(value).max():
        raise ValueError(
            f"{name} must be positive semidefinite, its smallest eigenvalue is "
            f"{np.linalg.eigvalsh(value).min():.1e}"
        )
    return value


def checked_weights(
    dsys: DiscreteSystem,
    states: ArrayLike,
    Q: StateWeight,
    R: ArrayLike,
    Qf: StateWeight | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(Q, R, Qf) for states (N, nx): Q (N, ndx, ndx) and R (nu, nu), and Qf (ndx, ndx) at the last
    state, Q there if not given. Raises ValueError as `state_weights` does, unless R is positive
    definite, and for a system without inputs.
    """
    if not dsys.nu:
        raise ValueError(f"{dsys}: a system without inputs has no feedback gains")
    R = checked_weight("R", R, dsys.nu)
    if np.linalg.eigvalsh(R).min() <= 0:
        raise ValueError(
            f"{dsys}: R must be positive definite, its smallest eigenvalue is "
            f"{np.linalg.eigvalsh(R).min():.1e}"
        )
    each = state_weights(dsys, "Q", Q, states)
    if Qf is None:
        return each, R, each[-1]
    if not isinstance(Qf, Mapping) and np.shape(Qf) == (dsys.ndx, dsys.ndx):  # a cost to go
        return each, R, checked_weight("Qf", Qf, dsys.ndx)
    last = np.atleast_2d(np.asarray(states))[-1:]
    return each, R, state_weights(dsys, "Qf", Qf, last)[0]


def velocity_weights(dsys: DiscreteSystem, q: ArrayLike, Q: StateWeight) -> np.ndarray:
    """The weight (ndx, ndx) on local coordinates that equals the weight Q on configuration and
    velocity, see `state_weights`, at rest at the configuration q (nq). At rest v does not depend
    on dq, so this is exact. Raises ValueError for another shape of Q or q.
    """
    rest = dsys.state(q, np.zeros(dsys.system.space.nw))
    return _in_local_coordinates(dsys, _matrix(dsys, "Q", Q), rest)


def velocities_by_momenta(dsys: DiscreteSystem, x: ArrayLike) -> np.ndarray:
    """Derivatives (nw, ndx - nv) of the velocity at a state x (nx) by the momenta, and by further
    numbers of a method's state: `X (X^T M X)^{-1}`.
    """
    # v is linear in rho: column i is the change of velocity by the unit vector e_i
    v, units = dsys.velocity(x), np.eye(dsys.ndx)[dsys.system.space.nv :]
    return np.array([dsys.velocity(dsys.retract(x, unit)) - v for unit in units]).T
