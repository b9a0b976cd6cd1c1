"""Modes of a linear system that no input reaches, or that no weight or measurement sees: the test
of Popov, Belevitch and Hautus in natural sizes, so that units, masses and the step do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from nh_control.discrete.system import DiscreteSystem

NEGLIGIBLE = 1e-10
"""An input reaches a direction, and a weight sees it, by more than this part of the largest motion
in a step, in natural sizes; rounding gives 1e-12 of it at most.
"""

MARGINAL = 1e-6
"""A mode decays or grows if the modulus of its eigenvalue differs from 1 by more than this part of
the fastest mode's motion in a step.
"""

SLOWEST = 1e-4
"""Smallest motion in a step, in natural sizes: that of slower systems is lost in the rounding of
`A - I`.
"""

LOCKED = 1e-13
"""Speed, relative to that of the fastest coordinate, of a coordinate that cannot move."""

PARALLEL = 1e-3
"""Distance between unit left eigenvectors that count as one: those of a multiple eigenvalue, which
rounding splits.
"""


class NotStabilizable(ValueError):
    """The linearization has modes that neither decay nor are controllable; `directions` (d, n) are
    their unit left eigenvectors over the n coordinates that are not excluded.
    """

    def __init__(self, message: str, modes: Sequence[Mode]):
        super().__init__(message)
        self.directions = np.array([mode.vector for mode in modes])


class NotDetectable(NotStabilizable):
    """A weight or a measurement does not see modes that must be seen, so that no stationary gain
    stabilizes them or their estimate; `directions` (d, n) are their unit right eigenvectors.
    """


@dataclass(frozen=True)
class Mode:
    """An eigenvalue with the eigenvector that names it, of unit length, and the parts (n) of the
    coordinates in it in natural sizes, the largest 1.
    """

    value: complex
    vector: np.ndarray
    parts: np.ndarray

    def named(self, names: Sequence[str]) -> str:
        """Its combination of coordinates, those with at least 1e-3 of the largest part."""
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
    """Raises the error if there are modes: the problem, the modes by the names of coordinates, and
    the remedy, where {} stands for one coordinate of each mode.
    """
    if modes:
        text = "; ".join(mode.named(names) for mode in modes)
        raise error(f"{problem}: {text}. {remedy.format(main_coordinates(modes, names))}.", modes)


def main_coordinates(modes: Sequence[Mode], names: Sequence[str]) -> tuple[str, ...]:
    """One coordinate for each mode, that with its largest part of those that are left."""
    chosen: list[int] = []
    for mode in modes:
        left = np.where(np.isin(range(len(names)), chosen), 0.0, mode.parts)
        chosen.append(int(np.argmax(left)))
    return tuple(names[i] for i in sorted(chosen))


def natural_sizes(dsys: DiscreteSystem, A: np.ndarray) -> np.ndarray:
    """Sizes (ndx) of the local coordinates, with which `A_ij s_j / s_i` has no units: momenta of
    unit energy, `sqrt(m_ii)` with `nominal_masses` m, coordinates by their way at these momenta in
    the time in which forces change them as much, and others by what moves them and what they move.
    """
    n, nv, masses = len(A), dsys.system.space.nv, np.abs(dsys.nominal_masses)
    F, sizes = A - np.eye(n), np.zeros(n)
    q, rho = slice(nv), slice(nv, nv + len(masses))
    sizes[rho] = np.sqrt(masses)
    # ways in a step; a coordinate that cannot move gets the longest of them
    way = np.linalg.norm(F[q, rho] * sizes[rho], axis=1)
    longest = way.max(initial=0.0)
    if longest > 0:
        sizes[q] = np.where(way > LOCKED * longest, way, longest)
        scaled = F[rho] * sizes / np.where(sizes[rho] > 0, sizes[rho], 1.0)[:, None]
        # (motion in a step)^2 by potential forces, motion in a step by velocity-dependent ones
        by_forces, by_damping = np.linalg.norm(scaled[:, q], 2), np.linalg.norm(scaled[:, rho], 2)
        sizes[q] /= max(np.sqrt(by_forces), by_damping, SLOWEST)
    _complete(sizes, np.abs(F))
    return sizes


def _complete(sizes: np.ndarray, F: np.ndarray) -> None:
    """Sets the sizes that are 0: the geometric mean of `max_j F_ij s_j` and `1 / max_j F_ji / s_j`
    over the known ones, or the one of them that there is, or 1.
    """
    while not (known := sizes > 0).all():
        moved = (F[:, known] * sizes[known]).max(axis=1, initial=0.0)
        moves = (F[known] / sizes[known, None]).max(axis=0, initial=0.0)
        linked = np.flatnonzero(~known & (moved + moves > 0))
        for i in linked:
            a, b = moved[i], moves[i]
            sizes[i] = np.sqrt(a / b) if a and b else a or 1 / b
        if not len(linked):
            sizes[~known] = 1.0


def uncontrollable_modes(A: np.ndarray, B: np.ndarray, sizes: np.ndarray) -> list[Mode]:
    """Modes of A (n, n) that no input of B (n, m), or B (n, m, N) at N times, reaches, and that do
    not decay: left eigenvectors `w A = value w, w B = 0`.
    """
    return _modes(A, B, sizes, growing=True)


def unobservable_modes(
    A: np.ndarray, C: np.ndarray, sizes: np.ndarray, growing: bool
) -> list[Mode]:
    """Modes of A (n, n) that C (p, n), or C (N, p, n) at N times, does not see, and that do not
    decay, nor grow unless `growing`: right eigenvectors `A v = value v, C v = 0`.
    """
    return _modes(A.T, C.T, 1 / sizes, growing)


def _modes(A: np.ndarray, B: np.ndarray, sizes: np.ndarray, growing: bool) -> list[Mode]:
    F, G, negligible = scale(A, B, sizes)
    n, values = len(F), np.linalg.eigvals(F)
    decay = MARGINAL * np.abs(values).max(initial=0.0)
    span, found = np.zeros((n, 0)), list[Mode]()
    # eigenvalue 0 of F, 1 of A, first: rounding splits it where it is multiple
    for value in (0.0, *values):
        growth = np.abs(1 + value) - 1
        if value.imag < 0 or growth < -decay or (growth > decay and not growing):
            continue
        left, sigma, _ = np.linalg.svd(np.hstack([F - value * np.eye(n), G]))
        for w in _echelon(left.T[sigma <= negligible].conj()):
            new = w - span @ (span.conj().T @ w)
            if (size := np.linalg.norm(new)) > PARALLEL * np.linalg.norm(w):
                span = np.column_stack([span, new / size])
                found.append(_mode(1 + value, w, sizes))
    return found


def _echelon(rows: np.ndarray) -> np.ndarray:
    """The rows (d, n) as combinations that have a coordinate of their own each, with 1 there."""
    if not len(rows):
        return rows
    chosen = qr(rows, mode="r", pivoting=True)[1][: len(rows)]
    return np.linalg.solve(rows[:, chosen], rows)


def _mode(value: complex, w: np.ndarray, sizes: np.ndarray) -> Mode:
    w = w / w[np.argmax(np.abs(w))]
    if np.isreal(value):
        w = w.real
    vector = w / sizes
    return Mode(value, vector / np.linalg.norm(vector), np.abs(w))


def scale(A: np.ndarray, B: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """`F = S^{-1} (A - I) S` and `G = S^{-1} B` as (n, m N), S = diag(sizes), every input scaled
    so that its largest column is as long as the norm of F, 1 for `F = 0`; and the size of
    singular values of [F, G] that are negligible.
    """
    F, G = (A - np.eye(len(A))) * sizes / sizes[:, None], B.reshape(len(B), B.shape[1], -1)
    G, norm = G / sizes[:, None, None], float(np.linalg.norm(F, 2)) or 1.0
    lengths = np.linalg.norm(G, axis=0).max(axis=-1, initial=0.0)
    G *= (norm / np.where(lengths > 0, lengths, 1.0))[:, None]
    G = G.reshape(len(B), -1)
    if G.shape[1] > len(G):  # many times: as many columns as rows say the same
        G = qr(G.T, mode="r")[0][: len(G)].T
    return F, G, NEGLIGIBLE * norm


def outputs_of(Q: np.ndarray) -> np.ndarray:
    """Independent rows C (p, n) that see what a weight Q (n, n) sees, `C x = 0` where `Q x = 0`,
    one per coordinate of a diagonal weight.
    """
    lengths = np.sqrt(np.maximum(np.diag(Q), 0.0))
    seen = np.flatnonzero(lengths > 0)
    correlations = Q[np.ix_(seen, seen)] / np.outer(lengths[seen], lengths[seen])
    values, vectors = np.linalg.eigh(correlations)
    C = np.zeros((np.count_nonzero(values > NEGLIGIBLE), len(Q)))
    C[:, seen] = vectors[:, values > NEGLIGIBLE].T * lengths[seen]
    return C
