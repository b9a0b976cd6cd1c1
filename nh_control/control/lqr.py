"""Discrete linear-quadratic regulators (LQR) in the local coordinates of a system's state space.

The cost is `sum_k dx_k^T Q dx_k + du_k^T R du_k` with `dx_k = local(x_d,k, x_k)`. The optimal
input is `u = u_d - K dx`, `K = (R + B^T P' B)^{-1} B^T P' A` [johnson2014 (36), gain corrected].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
"""A trajectory counts as feasible if the gap between each step and the next state is not larger
than this, in local coordinates.
"""


Stage: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
"""A Riccati map (A, G, H), `P -> H + A^T P (I + G P)^{-1} A`."""


@dataclass(frozen=True)
class Gains:
    """Feedback gains K (N, nu, ndx) for the N steps of a reference and cost matrices P (N + 1,
    ndx, ndx).
    """

    K: np.ndarray
    P: np.ndarray

    def __repr__(self) -> str:
        return f"Gains({len(self.K)} steps, K {self.K.shape}, P {self.P.shape})"


def linearize_along(
    dsys: DiscreteSystem, trajectory: Trajectory, gap: float = FEASIBLE
) -> tuple[np.ndarray, np.ndarray]:
    """A (N, ndx, ndx) and B (N, ndx, nu) at every step of the trajectory.

    Raises ValueError for a trajectory with other states, inputs or step than the system's, and for
    a step that misses the next state by more than `gap`.
    """
    if (
        trajectory.states.shape[1] != dsys.nx
        or trajectory.inputs.shape[1] != dsys.nu
        or not np.isclose(trajectory.h, dsys.h, rtol=1e-12)
    ):
        raise ValueError(
            f"{dsys}: trajectory {trajectory.name!r} has {trajectory.states.shape[1]} states, "
            f"{trajectory.inputs.shape[1]} inputs, h = {trajectory.h:g}; "
            f"expected {dsys.nx}, {dsys.nu}, {dsys.h:g}"
        )
    a, b = (
        np.empty((len(trajectory), dsys.ndx, dsys.ndx)),
        np.empty((len(trajectory), dsys.ndx, dsys.nu)),
    )
    for k, (x, u) in enumerate(zip(trajectory.states, trajectory.inputs)):
        lin = dsys.linearize(x, u)
        a[k], b[k] = lin
        if gap == np.inf or np.array_equal(lin.x1, trajectory.states[k + 1]):
            continue
        miss = np.abs(dsys.local(lin.x1, trajectory.states[k + 1])).max()
        if miss > gap:
            raise ValueError(
                f"{dsys}: trajectory {trajectory.name!r} is not feasible: step {k} misses its "
                f"next state by {miss:.1e}"
            )
    return a, b


def finite_horizon(
    dsys: DiscreteSystem,
    trajectory: Trajectory,
    Q: StateWeight,
    R: ArrayLike,
    Qf: StateWeight | None = None,
    gap: float = FEASIBLE,
    stance: bool = False,
) -> Gains:
    """Time-varying LQR about a trajectory that is feasible up to `gap`: the Riccati recursion
    `P = Q + A^T P' (A - B K)` [johnson2014 (36)] backwards from P_N = Qf (Q if not given), with
    weights Q and Qf, see `weights.StateWeight`, and R (nu, nu). With `stance` in the directions
    that contacts leave free: A and B are those that `Stance` projects.

    Raises ValueError as `linearize_along`, `checked_weights` and `Stance` do.
    """
    Q, R, Qf = checked_weights(dsys, trajectory.states, Q, R, Qf)
    A, B = linearize_along(dsys, trajectory, gap)
    if stance:
        A, B = Stance(dsys).project(trajectory.states[:-1], trajectory.inputs, A, B)
    return riccati(A, B, Q, R, Qf)


def riccati(
    A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray, P_end: np.ndarray
) -> Gains:
    """Riccati recursion backwards over A (N, n, n), B (N, n, m), Q (n, n), or one for each step,
    from P_N = P_end [johnson2014 (36)]; every P is symmetrized.
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
        p = Q[k] + A[k].T @ P[k + 1] @ (A[k] - B[k] @ K[k])
        P[k] = (p + p.T) / 2
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
    """Stationary LQR about an equilibrium x = f(x, u), x (nx), u (nu), with weights Q, see
    `weights.StateWeight`, and R (nu, nu). The impulses of holonomic constraints in x may be others
    than those under u.

    The tangent coordinates named in `excluded` are not stabilized: no input influences them (a
    conserved momentum), or their value does not matter (the angles of wheels). The gain for the
    other coordinates still uses them as a known signal. With `stance` the gain acts in the
    directions that contacts leave free, as in `finite_horizon`. Raises NotStabilizable with the
    directions that no input reaches, NotDetectable with those on the unit circle that Q does not
    see, and ValueError for an unknown name, or if a step moves the other coordinates by more than
    `drift`.
    """
    (weight,), R, _ = checked_weights(dsys, x, Q, R)
    kept = kept_coordinates(dsys, excluded)
    if isinstance(dsys, DiscreteSystem):  # any other linearization has no impulses
        x = dsys.with_impulses_of_step(x, u)
    lin = dsys.linearize(x, u)
    moved = np.abs(dsys.local(np.asarray(x, float), lin.x1)[kept]).max()
    if moved > drift:
        raise ValueError(
            f"{dsys}: x is not an equilibrium under u: one step moves it by {moved:.1e}"
        )
    A_x, B_x = lin
    if stance:
        step = (row[None] for row in (np.asarray(x), np.asarray(u), lin.A, lin.B))
        (A_x,), (B_x,) = Stance(dsys).project(*step)
    names, sizes = dsys.state_space.tangent_names, natural_sizes(dsys, lin.A)
    T = decoupling_transform(A_x, B_x, kept, sizes)
    A, B = change_coordinates(A_x, B_x, T)
    k, C = np.ix_(kept, kept), outputs_of(change_weight(weight, T)[np.ix_(kept, kept)])
    _require_solvable(dsys, A[k], B[kept], C, sizes[kept], [names[i] for i in kept])
    return stationary(A_x, B_x, weight, R, kept, T, sizes)


def kept_coordinates(dsys: DiscreteSystem, excluded: Sequence[str]) -> list[int]:
    """Indices of the tangent coordinates of states that are not named in `excluded`; raises
    ValueError for an unknown name.
    """
    names = dsys.state_space.tangent_names
    unknown = [name for name in excluded if name not in names]
    if unknown or isinstance(excluded, str):
        raise ValueError(f"{dsys}: cannot exclude {excluded!r}, choose of {list(names)}")
    return [i for i, name in enumerate(names) if name not in excluded]


def periodic(dsys: DiscreteSystem, trajectory: Trajectory, Q: StateWeight, R: ArrayLike) -> Gains:
    """Periodic LQR about one period of a motion that repeats up to a symmetry of the dynamics (a
    gait): the gains stabilize it for all time.

    The Riccati map of a period, `P -> H + A^T P (I + G P)^{-1} A`, is composed from its steps and
    iterated to its fixed point by the structure-preserving doubling algorithm (Anderson 1978; Chu,
    Fan, Lin and Wang 2004). Raises ValueError if the linearization after the period differs
    from the first one, NotStabilizable for modes that no input reaches, and NotDetectable for
    those that Q does not see.
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
    # transition matrix, what inputs reach and what the weight sees over the period
    transition = np.eye(dsys.ndx)
    reach, seen = np.zeros((dsys.ndx, dsys.nu, 0)), []
    for a, b, q in zip(A, B, Q):
        seen.append(outputs_of(q) @ transition)
        transition = a @ transition
        reach = np.dstack([np.einsum("ij,jkl->ikl", a, reach), b])
    sizes = natural_sizes(dsys, transition)
    names = dsys.state_space.tangent_names
    _require_solvable(dsys, transition, reach, np.array(seen), sizes, names, " over one period")
    # in natural sizes, the Riccati map of every step has (A, G, H) = (A_k, B_k R^{-1} B_k^T, Q)
    A, B, Q = A * sizes / sizes[:, None], B / sizes[:, None], Q * np.outer(sizes, sizes)
    stage = [(a, b @ np.linalg.solve(R, b.T), q) for a, b, q in zip(A, B, Q)]
    period = stage[0]
    for nxt in stage[1:]:
        period = _compose(period, nxt)
    # doubling: the composed map stands for 1, 2, 4, ... periods; its H tends to the fixed point
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
    """The Riccati map of two stages in sequence, each (A, G, H):
    `A = A2 W^{-1} A1, G = G2 + A2 W^{-1} G1 A2^T, H = H1 + A1^T H2 W^{-1} A1`, `W = I + G1 H2`.
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
    """Raises NotStabilizable for modes of A that do not decay and that no input of B reaches, and
    NotDetectable for those on the unit circle that no row of C sees.
    """
    remedy = "" if over else "exclude coordinates from the problem, `excluded={}`"
    require_none(
        NotStabilizable,
        uncontrollable_modes(A, B, sizes),
        names,
        f"{dsys}: the linearization{over} is not stabilizable, no input influences",
        "Linearize about a moving reference" + (remedy and ", or " + remedy),
    )
    require_none(
        NotDetectable,
        unobservable_modes(A, C, sizes, growing=False),
        names,
        f"{dsys}: the weight Q does not see modes of the linearization{over} that do not decay",
        "Give these coordinates weights" + (remedy and ", or " + remedy),
    )
