"""Discrete linear-quadratic regulators (LQR) in the local coordinates of a system's state space.

The cost is `sum_k dx_k^T Q dx_k + du_k^T R du_k` with `dx_k = local(x_d,k, x_k)`. The optimal
input is `u = u_d - K dx`, `K = (R + B^T P' B)^{-1} B^T P' A` [johnson2014 (36), gain corrected].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.modes import NotDetectable as NotDetectable
from nh_control.control.modes import NotStabilizable as NotStabilizable
from nh_control.control.modes import (
    natural_sizes,
    outputs_of,
    require_none,
    uncontrollable_modes,
    unobservable_modes,
)
from nh_control.control.stance import Stance
from nh_control.control.stationary import (
    StationaryGain,
    change_coordinates,
    change_weight,
    decoupling_transform,
    stationary,
)
from nh_control.control.weights import StateWeight, checked_weights
from nh_control.control.weights import velocity_weights as velocity_weights
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory

FEASIBLE = 1e-6
"""Maximum gap between the result of a step and the next state, in local coordinates, in a
trajectory that counts as feasible.
"""


Stage: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
"""A Riccati map (A, G, H), `P -> H + A^T P (I + G P)^{-1} A`."""


@dataclass(frozen=True)
class Gains:
    """The feedback gains K (N, nu, ndx) for the N steps of a reference, and the cost matrices P
    (N + 1, ndx, ndx).
    """

    K: np.ndarray
    P: np.ndarray

    def __repr__(self) -> str:
        return f"Gains({len(self.K)} steps, K {self.K.shape}, P {self.P.shape})"


def linearize_along(
    dsys: DiscreteSystem, trajectory: Trajectory, gap: float = FEASIBLE
) -> tuple[np.ndarray, np.ndarray]:
    """A (N, ndx, ndx) and B (N, ndx, nu) at every step of the trajectory.

    All steps are linearized in one native call (`DiscreteSystem.linearize_steps`).

    Raises ValueError if the states, the inputs or the step size of the trajectory are not those of
    the system, or if a step misses the next state by more than `gap`. Raises StepFailed if a step
    fails.
    """
    if (
        trajectory.states.shape[1] != dsys.nx
        or trajectory.inputs.shape[1] != dsys.nu
        or not isclose(trajectory.h, dsys.h, rel_tol=1e-12, abs_tol=1e-8)
    ):
        raise ValueError(
            f"{dsys}: trajectory {trajectory.name!r} has {trajectory.states.shape[1]} states, "
            f"{trajectory.inputs.shape[1]} inputs, h = {trajectory.h:g}; "
            f"expected {dsys.nx}, {dsys.nu}, {dsys.h:g}"
        )
    A, B, x1 = dsys.linearize_steps(trajectory.states[:-1], trajectory.inputs)
    if gap < np.inf:
        _require_feasible(dsys, trajectory, x1, gap)
    return A, B


def _require_feasible(
    dsys: DiscreteSystem, trajectory: Trajectory, x1: np.ndarray, gap: float
) -> None:
    """Raise ValueError if a state x1 (N, nx) after a step misses the next state of the trajectory
    by more than `gap`.
    """
    following = trajectory.states[1:]
    if np.array_equal(x1, following):
        return
    others = np.flatnonzero((x1 != following).any(axis=1))
    misses = np.abs(dsys.local(x1[others], following[others])).max(axis=1, initial=0.0)
    if (far := misses > gap).any():
        k = far.argmax()
        raise ValueError(
            f"{dsys}: trajectory {trajectory.name!r} is not feasible: step {others[k]} misses the "
            f"next state by {misses[k]:.1e}"
        )


def finite_horizon(
    dsys: DiscreteSystem,
    trajectory: Trajectory,
    Q: StateWeight,
    R: ArrayLike,
    Qf: StateWeight | None = None,
    gap: float = FEASIBLE,
    stance: bool = False,
) -> Gains:
    """Time-varying LQR about a trajectory that is feasible up to `gap`.

    The Riccati recursion `P = Q + A^T P' (A - B K)` [johnson2014 (36)] runs backward from P_N = Qf
    (by default Q). Q and Qf are weights of the state (see `weights.StateWeight`); R is (nu, nu).
    With `stance`, A and B are projected by `Stance`, so the gains act only in the directions that
    contacts leave free. Raises ValueError as `linearize_along`, `checked_weights` and `Stance` do.
    """
    Q, R, Qf = checked_weights(dsys, trajectory.states, Q, R, Qf)
    A, B = linearize_along(dsys, trajectory, gap)
    if stance:
        A, B = Stance(dsys).project(trajectory.states[:-1], trajectory.inputs, A, B)
    return riccati(A, B, Q, R, Qf)


def riccati(
    A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray, P_end: np.ndarray
) -> Gains:
    """Backward Riccati recursion from P_N = P_end [johnson2014 (36)] for A (N, n, n), B (N, n, m)
    and Q (n, n) or (N, n, n). Every P is symmetrized.
    """
    steps, n, m = B.shape
    Q = np.broadcast_to(Q, (steps, n, n)) if Q.ndim == 2 else Q
    K, P = np.empty((steps, m, n)), np.empty((steps + 1, n, n))
    P[steps] = P_end
    for k in reversed(range(steps)):
        # gain: K = (R + B^T P' B)^{-1} B^T P' A
        pb = P[k + 1] @ B[k]
        K[k] = np.linalg.solve(R + B[k].T @ pb, pb.T @ A[k])
        # cost to go: P = Q + A^T P' (A - B K)
        cost = Q[k] + A[k].T @ P[k + 1] @ (A[k] - B[k] @ K[k])
        P[k] = (cost + cost.T) / 2
    return Gains(K, P)


def infinite_horizon(
    dsys: DiscreteSystem,
    x: ArrayLike,
    u: ArrayLike,
    Q: StateWeight,
    R: ArrayLike,
    drift: float = 1e-8,
    excluded: Sequence[str] = (),
    stance: bool = False,
) -> StationaryGain:
    """Stationary LQR about an equilibrium x = f(x, u) with x (nx) and u (nu). Q is a weight of the
    state (see `weights.StateWeight`); R is (nu, nu). The impulses of holonomic constraints in x
    may differ from the impulses under u.

    The tangent coordinates named in `excluded` are not stabilized. Exclude coordinates that no
    input influences (a conserved momentum) and coordinates with values that do not matter (the
    angles of wheels). The gain for the other coordinates still uses them as a known signal. With
    `stance`, the gain acts only in the directions that contacts leave free, as in
    `finite_horizon`. Raises NotStabilizable with the directions that no input reaches,
    NotDetectable with the directions on the unit circle that Q does not weight, and ValueError for
    an unknown name, or if a step moves the other coordinates by more than `drift`.
    """
    (weight,), R, _ = checked_weights(dsys, x, Q, R)
    stabilized = stabilized_coordinates(dsys, excluded)
    if isinstance(dsys, DiscreteSystem):  # other systems have no impulses
        x = dsys.with_impulses_of_step(x, u)
    lin = dsys.linearize(x, u)
    motion = np.abs(dsys.local(np.asarray(x, float), lin.x1)[stabilized]).max()
    if motion > drift:
        raise ValueError(
            f"{dsys}: x is not an equilibrium under u: one step moves it by {motion:.1e}"
        )
    A_x, B_x = lin
    if stance:
        (A_x,), (B_x,) = Stance(dsys).project(
            np.asarray(x)[None], np.asarray(u)[None], lin.A[None], lin.B[None]
        )
    # in the coordinates T, the excluded coordinates do not depend on the stabilized ones
    names, sizes = dsys.state_space.tangent_names, natural_sizes(dsys, lin.A)
    T = decoupling_transform(A_x, B_x, stabilized, sizes)
    A, B = change_coordinates(A_x, B_x, T)
    block = np.ix_(stabilized, stabilized)
    C = outputs_of(change_weight(weight, T)[block])
    _require_solvable(
        dsys, A[block], B[stabilized], C, sizes[stabilized], [names[i] for i in stabilized]
    )
    return stationary(A_x, B_x, weight, R, stabilized, T, sizes)


def stabilized_coordinates(dsys: DiscreteSystem, excluded: Sequence[str]) -> list[int]:
    """The indices of the tangent coordinates that are not named in `excluded`. Raises ValueError
    for an unknown name.
    """
    names = dsys.state_space.tangent_names
    unknown = [name for name in excluded if name not in names]
    if unknown or isinstance(excluded, str):
        raise ValueError(f"{dsys}: cannot exclude {excluded!r}, choose from {list(names)}")
    return [i for i, name in enumerate(names) if name not in excluded]


def periodic(dsys: DiscreteSystem, trajectory: Trajectory, Q: StateWeight, R: ArrayLike) -> Gains:
    """Periodic LQR about one period of a motion, such as a gait, that repeats up to a symmetry of
    the dynamics. The gains stabilize the motion for all time.

    The Riccati map of a period, `P -> H + A^T P (I + G P)^{-1} A`, is composed from the maps of
    its steps. The structure-preserving doubling algorithm (Anderson 1978; Chu, Fan, Lin and Wang
    2004) iterates it to its fixed point. Raises ValueError if the linearization after the period
    differs from the linearization before it, NotStabilizable for modes that no input reaches, and
    NotDetectable for modes that Q does not weight.
    """
    Q, R, _ = checked_weights(dsys, trajectory.states, Q, R)
    A, B = linearize_along(dsys, trajectory)
    again = dsys.linearize(trajectory.states[-1], trajectory.inputs[0])
    gap = max(np.abs(again.A - A[0]).max(), np.abs(again.B - B[0]).max())
    if gap > 1e-6:
        raise ValueError(
            f"{dsys}: trajectory {trajectory.name!r} is not periodic: the linearization after "
            f"the period differs by {gap:.1e}"
        )
    # over the period: the transition matrix, the reachable directions, the weighted outputs
    transition = np.eye(dsys.ndx)
    reach, outputs = np.zeros((dsys.ndx, dsys.nu, 0)), []
    for a, b, q in zip(A, B, Q):
        outputs.append(outputs_of(q) @ transition)
        transition = a @ transition
        # columns A_N-1 ... A_k+1 B_k for all k so far
        reach = np.dstack([np.einsum("ij,jkl->ikl", a, reach), b])
    sizes = natural_sizes(dsys, transition)
    names = dsys.state_space.tangent_names
    _require_solvable(dsys, transition, reach, np.array(outputs), sizes, names, " over one period")
    # in natural sizes, the Riccati map of step k has (A, G, H) = (A_k, B_k R^{-1} B_k^T, Q)
    A, B, Q = A * sizes / sizes[:, None], B / sizes[:, None], Q * np.outer(sizes, sizes)
    stage = [(a, b @ np.linalg.solve(R, b.T), q) for a, b, q in zip(A, B, Q)]
    period = stage[0]
    for nxt in stage[1:]:
        period = _compose(period, nxt)
    # doubling: the map covers 1, 2, 4, ... periods, and its H converges to the fixed point
    for _ in range(60):
        doubled = _compose(period, period)
        change = np.abs(doubled[2] - period[2]).max()
        period = doubled
        if change <= 1e-12 * np.abs(period[2]).max():
            break
    gains = riccati(A, B, Q, R, period[2])
    defect = np.abs(gains.P[0] - gains.P[-1]).max() / np.abs(gains.P[0]).max()
    if not defect <= 1e-6:
        raise np.linalg.LinAlgError(
            f"{dsys}: the periodic Riccati iteration did not converge: relative defect "
            f"{defect:.1e} over one period"
        )
    return Gains(gains.K / sizes, gains.P / np.outer(sizes, sizes))


def _compose(first: Stage, second: Stage) -> Stage:
    """The Riccati map (A, G, H) of two successive stages:
    `A = A2 W^{-1} A1, G = G2 + A2 W^{-1} G1 A2^T, H = H1 + A1^T H2 W^{-1} A1` with
    `W = I + G1 H2`.
    """
    a1, g1, h1 = first
    a2, g2, h2 = second
    w = np.eye(len(a1)) + g1 @ h2
    wa, wg = np.linalg.solve(w, a1), np.linalg.solve(w, g1)
    g, h = g2 + a2 @ wg @ a2.T, h1 + a1.T @ h2 @ wa
    return a2 @ wa, (g + g.T) / 2, (h + h.T) / 2


def _require_solvable(
    dsys: DiscreteSystem,
    A: np.ndarray,
    B: np.ndarray,
    C: np.ndarray,
    sizes: np.ndarray,
    names: Sequence[str],
    over: str = "",
) -> None:
    """Raise NotStabilizable if A has modes that neither decay nor are reached by an input of B,
    and NotDetectable if A has modes on the unit circle that no row of C observes.
    """
    remedy = "" if over else "exclude coordinates from the problem, `excluded={}`"
    require_none(
        NotStabilizable,
        uncontrollable_modes(A, B, sizes),
        names,
        f"{dsys}: the linearization{over} is not stabilizable; no input influences",
        "Linearize about a moving reference" + (remedy and ", or " + remedy),
    )
    require_none(
        NotDetectable,
        unobservable_modes(A, C, sizes, growing=False),
        names,
        f"{dsys}: the weight Q is zero for modes of the linearization{over} that do not decay",
        "Assign weights to these coordinates" + (remedy and ", or " + remedy),
    )
