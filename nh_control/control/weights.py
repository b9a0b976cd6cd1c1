"""Weights of linear-quadratic problems. State weights are given by name, for changes of
configuration and velocity, or in local coordinates. Inputs have weights as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.spaces import Space

StateWeight: TypeAlias = ArrayLike | Mapping[str, float]
"""Weight of a state: a matrix (ndx, ndx) in local coordinates; a matrix (nv + nw, nv + nw), or its
diagonal, for changes of configuration and velocity; or the entries of this diagonal by name, such
as `{"x": 10, "theta": 5, "x_dot": 1}`. Entries that are not named are 0.
"""


def weight_names(dsys: DiscreteSystem) -> tuple[str, ...]:
    """The names of the changes of configuration (nv) and velocity (nw)."""
    return *dsys.system.space.tangent_names, *dsys.system.space.velocity_names


def state_weights(
    dsys: DiscreteSystem, name: str, Q: StateWeight, states: ArrayLike
) -> np.ndarray:
    """The weight Q (N, ndx, ndx) in local coordinates about states (N, nx). Error messages contain
    the `name` of the weight.

    A weight for changes of configuration and velocity becomes `T^T Q T` with T = diag(1, dv/drho)
    at each state. Additional numbers in the state of a method have no weight. If the basis of the
    momenta depends on the configuration (see `ConstrainedStates`), a weight in local coordinates
    has no meaning. Raises ValueError for such a weight, for a wrong shape, for an unknown name,
    and for a weight that is not finite, symmetric and positive semidefinite.
    """
    states = np.atleast_2d(np.asarray(states, dtype=float))
    if (local := _local(dsys, Q)) is not None:
        weight = checked_weight(name, local, dsys.ndx)
        # a weight in local coordinates is the same at all states
        return np.broadcast_to(weight, (len(states), *weight.shape))
    weight = checked_weight(name, _matrix(dsys, name, Q), None)
    return np.array([_in_local_coordinates(dsys, weight, x) for x in states])


def _in_local_coordinates(dsys: DiscreteSystem, weight: np.ndarray, x: np.ndarray) -> np.ndarray:
    """`T^T weight T` (ndx, ndx) about a state x (nx)."""
    n = dsys.system.space.nv
    T = np.zeros((len(weight), dsys.ndx))
    # (dq, dv) = T (dq, drho)
    T[:n, :n], T[n:, n:] = np.eye(n), velocities_by_momenta(dsys, x)
    product = T.T @ weight @ T
    return (product + product.T) / 2


def is_local(dsys: DiscreteSystem, Q: StateWeight) -> bool:
    """Whether a weight is in local coordinates."""
    return _local(dsys, Q) is not None


def _local(dsys: DiscreteSystem, Q: StateWeight) -> np.ndarray | None:
    """A weight in local coordinates as an array, or None for other weights."""
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
    """A weight for a system's states, extended for a method whose states contain additional
    numbers. In local coordinates, the additional numbers have no weight.
    """
    n = len(dsys.method.memory)
    is_matrix = not isinstance(Q, Mapping) and np.shape(Q) == (dsys.ndx - n,) * 2
    # zero rows and columns for the method's additional numbers
    return np.pad(np.asarray(Q), (0, n)) if is_matrix else Q


def weighted_coordinates(space: Space, Q: StateWeight) -> np.ndarray:
    """The mask (nv) of the coordinates of the configuration that have a weight."""
    if isinstance(Q, Mapping):
        return np.array([Q.get(name, 0.0) > 0 for name in space.tangent_names])
    return (np.diag(Q) if np.ndim(Q) == 2 else np.asarray(Q))[: space.nv] > 0


def _physical(dsys: DiscreteSystem, shape: tuple[int, ...]) -> int:
    """The number of dimensions of a weight for configuration and velocity; 0 for other shapes."""
    n = len(weight_names(dsys))
    return len(shape) if shape in {(n,), (n, n)} else 0


def weight_matrix(dsys: DiscreteSystem, name: str, Q: StateWeight) -> np.ndarray:
    """A weight as a matrix, in local coordinates or for configuration and velocity."""
    local = _local(dsys, Q)
    return _matrix(dsys, name, Q) if local is None else local


def _matrix(dsys: DiscreteSystem, name: str, Q: StateWeight) -> np.ndarray:
    """A weight for configuration and velocity as a matrix."""
    names = weight_names(dsys)
    if isinstance(Q, Mapping):
        if unknown := [key for key in Q if key not in names]:
            raise ValueError(
                f"{dsys}: no configuration or velocity {unknown} for the weight {name}, choose "
                f"from {list(names)}"
            )
        return np.diag([float(Q.get(key, 0.0)) for key in names])
    shape = np.shape(Q)
    if not _physical(dsys, shape):
        n, why = len(names), ""
        if _has_changing_basis(dsys):
            why = "; the meaning of local coordinates of the momenta changes along a motion"
        raise ValueError(
            f"{dsys}: the weight {name} must be a mapping of names, or have shape ({n}, {n}) or "
            f"({n},), for changes of {list(names)}, got {shape}{why}"
        )
    return np.diag(np.asarray(Q, dtype=float)) if len(shape) == 1 else np.asarray(Q, dtype=float)


def checked_weight(name: str, value: ArrayLike, n: int | None) -> np.ndarray:
    """The weight as an array (n, n). If n is None, any size is permitted. For n = 1, the weight
    may be a number. Raises ValueError unless the weight is finite, symmetric and positive
    semidefinite.
    """
    value = np.asarray(value, dtype=float)
    if n == 1 and not value.ndim:
        value = value.reshape(1, 1)
    n = len(value) if n is None else n
    if value.shape != (n, n):
        raise ValueError(
            f"{name} must be a finite symmetric ({n}, {n}) matrix, got shape {value.shape}"
        )
    if not np.isfinite(value).all():
        raise ValueError(f"{name} must be finite, got {value.tolist()}")
    if not np.allclose(value, value.T):
        i, j = np.unravel_index(np.abs(value - value.T).argmax(), value.shape)
        raise ValueError(
            f"{name} must be symmetric, but {name}[{i}, {j}] = {value[i, j]:g} and "
            f"{name}[{j}, {i}] = {value[j, i]:g}; ({name} + {name}.T) / 2 has the same cost"
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
    """(Q, R, Qf) for states (N, nx): Q (N, ndx, ndx), R (nu, nu), and Qf (ndx, ndx) at the last
    state, which is Q by default. Raises ValueError as `state_weights` does, for an R that is not
    positive definite, and for a system without inputs.
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
    if not isinstance(Qf, Mapping) and np.shape(Qf) == (dsys.ndx, dsys.ndx):  # e.g. a cost to go
        return each, R, checked_weight("Qf", Qf, dsys.ndx)
    last = np.atleast_2d(np.asarray(states))[-1:]
    return each, R, state_weights(dsys, "Qf", Qf, last)[0]


def velocity_weights(dsys: DiscreteSystem, q: ArrayLike, Q: StateWeight) -> np.ndarray:
    """The weight (ndx, ndx) in local coordinates that equals the weight Q for configuration and
    velocity (see `state_weights`) at rest at the configuration q (nq). It is exact because v does
    not depend on dq at rest. Raises ValueError if Q or q has the wrong shape.
    """
    rest = dsys.state(q, np.zeros(dsys.system.space.nw))
    return _in_local_coordinates(dsys, _matrix(dsys, "Q", Q), rest)


def velocities_by_momenta(dsys: DiscreteSystem, x: ArrayLike) -> np.ndarray:
    """The derivatives `X (X^T M X)^{-1}` (nw, ndx - nv) of the velocity at a state x (nx) with
    respect to the momenta and to the additional numbers in the state of a method.
    """
    # v is linear in rho, so column i is the change of v for the unit vector e_i
    v, units = dsys.velocity(x), np.eye(dsys.ndx)[dsys.system.space.nv :]
    return np.array([dsys.velocity(dsys.retract(x, unit)) - v for unit in units]).T
