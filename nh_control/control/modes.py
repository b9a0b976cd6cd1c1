"""Modes of a linear system that no input reaches, or that no weight or measurement observes. They
are found by the test of Popov, Belevitch and Hautus. Coordinates are scaled by natural sizes, so
the result does not depend on units, masses or the step size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.numerics.independent_columns import independent_columns

NEGLIGIBLE = 1e-10
"""Minimum effect of an input on a direction, or of a direction on a weight, that is not attributed
to rounding errors. The effect is relative to the largest motion in a step, in natural sizes;
rounding errors are at most 1e-12.
"""

MARGINAL = 1e-6
"""A mode decays or grows if the modulus of its eigenvalue differs from 1 by more than this
fraction of the motion of the fastest mode in a step.
"""

SLOWEST = 1e-4
"""Minimum motion in a step, in natural sizes. The motion of slower systems is lost in the rounding
errors of `A - I`.
"""

LOCKED = 1e-13
"""Speed, relative to the fastest coordinate, below which a coordinate counts as immovable."""

PARALLEL = 1e-3
"""Distance below which unit left eigenvectors count as equal. Rounding splits the eigenvectors of
a multiple eigenvalue.
"""


class NotStabilizable(ValueError):
    """The linearization has modes that neither decay nor are controllable. `directions` (d, n) are
    the unit left eigenvectors of these modes in the n coordinates that are not excluded.
    """

    def __init__(self, message: str, modes: Sequence[Mode]):
        super().__init__(message)
        self.directions = np.array([mode.vector for mode in modes])


class NotDetectable(NotStabilizable):
    """A weight or a measurement does not observe modes that must be observable, so no stationary
    gain stabilizes these modes or their estimates. `directions` (d, n) are the unit right
    eigenvectors of these modes.
    """


@dataclass(frozen=True)
class Mode:
    """A mode: its eigenvalue, its unit eigenvector, and the `parts` (n) of the coordinates in the
    eigenvector, in natural sizes and relative to the largest part.
    """

    value: complex
    vector: np.ndarray
    parts: np.ndarray

    def named(self, names: Sequence[str]) -> str:
        """The combination of coordinates as text, without parts that are at most 1e-3 of the
        largest.
        """
        main = int(np.argmax(self.parts))
        terms = [
            (c, name)
            for c, name, part in zip(self.vector / self.vector[main], names, self.parts)
            if part > 1e-3
        ]
        text = " + ".join(
            f"{_number(c)} {name}" if abs(c - 1) > 1e-6 else name for c, name in terms
        )
        return f"{text} (eigenvalue {_number(self.value)})"


def _number(value: complex) -> str:
    return f"{value.real:.3g}" if abs(value.imag) <= 1e-9 * abs(value) else f"{value:.3g}"


def require_none(
    error: type[NotStabilizable],
    modes: Sequence[Mode],
    names: Sequence[str],
    problem: str,
    remedy: str,
) -> None:
    """Raise the error if there are modes. The message consists of the problem, the modes in terms
    of the coordinate names, and the remedy, in which {} is replaced by one coordinate of each
    mode.
    """
    if modes:
        text = "; ".join(mode.named(names) for mode in modes)
        raise error(f"{problem}: {text}. {remedy.format(main_coordinates(modes, names))}.", modes)


def main_coordinates(modes: Sequence[Mode], names: Sequence[str]) -> tuple[str, ...]:
    """A different coordinate for each mode: among the remaining coordinates, the one with the
    largest part.
    """
    chosen: list[int] = []
    for mode in modes:
        remaining = np.where(np.isin(range(len(names)), chosen), 0.0, mode.parts)
        chosen.append(int(np.argmax(remaining)))
    return tuple(names[i] for i in sorted(chosen))


def natural_sizes(dsys: DiscreteSystem, A: np.ndarray) -> np.ndarray:
    """The sizes s (ndx) of the local coordinates, which make `A_ij s_j / s_i` dimensionless.

    The size of a momentum is its value at unit energy, `sqrt(m_ii)` with the `nominal_masses` m.
    The size of a coordinate is its change at these momenta during the time that forces need to
    change the momenta by their sizes. The sizes of other states follow from the states that move
    them and the states that they move.
    """
    n, nv, masses = len(A), dsys.system.space.nv, np.abs(dsys.nominal_masses)
    F, sizes = A - np.eye(n), np.zeros(n)
    q, rho = slice(nv), slice(nv, nv + len(masses))
    sizes[rho] = np.sqrt(masses)
    # changes in a step; a coordinate that cannot move gets the largest change
    change = np.linalg.norm(F[q, rho] * sizes[rho], axis=1)
    largest = change.max(initial=0.0)
    if largest > 0:
        sizes[q] = np.where(change > LOCKED * largest, change, largest)
        scaled = F[rho] * sizes / np.where(sizes[rho] > 0, sizes[rho], 1.0)[:, None]
        # potential forces yield (motion in a step)^2, velocity-dependent forces yield motion in a
        # step
        by_forces, by_damping = np.linalg.norm(scaled[:, q], 2), np.linalg.norm(scaled[:, rho], 2)
        # coordinates: the change at unit energy during the time scale of the forces
        sizes[q] /= max(np.sqrt(by_forces), by_damping, SLOWEST)
    _complete(sizes, np.abs(F))
    return sizes


def _complete(sizes: np.ndarray, F: np.ndarray) -> None:
    """Set each size s_i that is 0 to the geometric mean of `max_j F_ij s_j` and
    `1 / max_j F_ji / s_j` over the known sizes. If only one of these two values is available, s_i
    is set to that value, and if neither is available, to 1.
    """
    while not (known := sizes > 0).all():
        incoming = (F[:, known] * sizes[known]).max(axis=1, initial=0.0)
        outgoing = (F[known] / sizes[known, None]).max(axis=0, initial=0.0)
        linked = np.flatnonzero(~known & (incoming + outgoing > 0))
        for i in linked:
            a, b = incoming[i], outgoing[i]
            sizes[i] = np.sqrt(a / b) if a and b else a or 1 / b
        if not len(linked):
            sizes[~known] = 1.0


def uncontrollable_modes(A: np.ndarray, B: np.ndarray, sizes: np.ndarray) -> list[Mode]:
    """The modes of A (n, n) that do not decay and that no input reaches: left eigenvectors with
    `w A = value w, w B = 0`. B has the shape (n, m), or (n, m, N) at N times.
    """
    return _modes(A, B, sizes, growing=True)


def unobservable_modes(
    A: np.ndarray, C: np.ndarray, sizes: np.ndarray, growing: bool
) -> list[Mode]:
    """The modes of A (n, n) that do not decay and that C does not observe: right eigenvectors with
    `A v = value v, C v = 0`. C has the shape (m, n), or (N, m, n) at N times. Modes that grow are
    included only if `growing` is true.
    """
    return _modes(A.T, C.T, 1 / sizes, growing)


def _modes(A: np.ndarray, B: np.ndarray, sizes: np.ndarray, growing: bool) -> list[Mode]:
    F, G, negligible = scale(A, B, sizes)
    n, values = len(F), np.linalg.eigvals(F)
    decay = MARGINAL * np.abs(values).max(initial=0.0)
    span, modes = np.zeros((n, 0)), list[Mode]()
    # first test the exact eigenvalue 0 of F (1 of A), because rounding splits multiple eigenvalues
    for value in (0.0, *values):
        growth = np.abs(1 + value) - 1
        if value.imag < 0 or growth < -decay or (growth > decay and not growing):
            continue
        # test of Popov, Belevitch and Hautus: w [F - value I, G] = 0
        left, sigma, _ = np.linalg.svd(np.hstack([F - value * np.eye(n), G]))
        for w in _echelon(left.T[sigma <= negligible].conj()):
            # skip vectors that are linear combinations of the previous ones
            new = w - span @ (span.conj().T @ w)
            if (size := np.linalg.norm(new)) > PARALLEL * np.linalg.norm(w):
                span = np.column_stack([span, new / size])
                modes.append(_mode(1 + value, w, sizes))
    return modes


def _echelon(rows: np.ndarray) -> np.ndarray:
    """Combinations of the rows (d, n). Each has a coordinate that is 1 in this row and 0 in the
    others.
    """
    if not len(rows):
        return rows
    chosen = independent_columns(rows, len(rows))
    return np.linalg.solve(rows[:, chosen], rows)


def _mode(value: complex, w: np.ndarray, sizes: np.ndarray) -> Mode:
    w = w / w[np.argmax(np.abs(w))]
    if np.isreal(value):
        w = w.real
    vector = w / sizes
    return Mode(value, vector / np.linalg.norm(vector), np.abs(w))


def scale(A: np.ndarray, B: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """`F = S^{-1} (A - I) S` and `G = S^{-1} B` with shape (n, m N), where S = diag(sizes), and
    the threshold below which singular values of [F, G] are negligible.

    Each input is scaled so that its largest column has the norm of F, or 1 if `F = 0`.
    """
    F, G = (A - np.eye(len(A))) * sizes / sizes[:, None], np.atleast_3d(B)
    G, norm = G / sizes[:, None, None], float(np.linalg.norm(F, 2)) or 1.0
    lengths = np.linalg.norm(G, axis=0).max(axis=-1, initial=0.0)
    G *= (norm / np.where(lengths > 0, lengths, 1.0))[:, None]
    G = G.reshape(len(B), -1)
    if G.shape[1] > len(G):  # many columns: use the equivalent square matrix R^T, with G^T = Q R
        G = np.linalg.qr(G.T).R.T
    return F, G, NEGLIGIBLE * norm


def outputs_of(Q: np.ndarray) -> np.ndarray:
    """Independent rows C (m, n) with the kernel of a weight Q (n, n): `C x = 0` if and only if
    `Q x = 0`. A diagonal weight has one row per weighted coordinate.
    """
    lengths = np.sqrt(np.maximum(np.diag(Q), 0.0))
    weighted = np.flatnonzero(lengths > 0)
    # Q = L V diag(values) V^T L with L = diag(lengths); C has the rows of V^T L
    correlations = Q[np.ix_(weighted, weighted)] / np.outer(lengths[weighted], lengths[weighted])
    values, vectors = np.linalg.eigh(correlations)
    C = np.zeros((np.count_nonzero(values > NEGLIGIBLE), len(Q)))
    C[:, weighted] = vectors[:, values > NEGLIGIBLE].T * lengths[weighted]
    return C
