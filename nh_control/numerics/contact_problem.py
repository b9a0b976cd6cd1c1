"""Impulses of contacts with Coulomb friction on their central path, by a primal-dual interior
point in Nesterov and Todd's scaling; `native/contact_problem.h` is its compiled twin.

    w = G x + b
    normal:    x_n w_n = kappa,                     x_n, w_n > 0
    friction:  (beta, g) o (psi, s) = (kappa, 0),   beta > |g|,  psi > |s|

x are impulses (N s), w the velocities (m/s) that go with them, contact by contact: one normal pair
(x_n, w_n), or none, and k = 0, 1 or 2 tangents, g of x and the slip s of w. `beta = mu x_n`
(Coulomb) or a given bound (N s), and `(beta, g) o (psi, s) = (beta psi + g . s, beta s + psi g)`.
So friction is opposite to the slip and dissipates the most, exactly for kappa = 0, and slip does
not push bodies apart. kappa (J) is the height of the barrier: a contact at rest under the impulse
x_n opens with `kappa / x_n`, one that sticks at the load t = |g| / beta creeps at
`kappa t / (beta (1 - t^2))`.

Far from the central path each iteration solves the linearization in the scaling W with
`W (beta, g) = W^{-1} (psi, s) = l`, in which both are alike [nesterov1998], towards a part of the
mean product; near it, that of the equations as they are, which ends quadratically. Predictions, as
in Mehrotra's method, run into the boundary where impulses are redundant: of 300 random
problems 23 were not solved with them, three, of kappa <= 1e-10 at some 10 m/s, without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nh_control.numerics.newton import solve

MOST_ITERATIONS = 100
CLOSE = 1e-4
"""Relative distance from the central path at which the iteration ends; Newton's method on the
equations of the whole step follows.
"""
ROUND_OFF = 3e-14
"""Part of the largest product `beta psi` that its round-off may reach."""
FEASIBLE = 1e-11
"""Error of w = G x + b, relative to the largest velocity, at which the iteration ends."""
CENTERING = 0.3
"""Part of the mean product that an iteration aims at."""
LEAST_SPEED = 0.01
"""Least opening velocity of a start, relative to the largest closing one."""
NEAR = 100.0
"""Multiple of kappa below which all products are near the central path."""
BACK = 0.95
"""Part of the way to the boundary that a step takes."""
SHORT = 0.2
"""Step below which a guess is no good, and an iteration near the path is followed by one in the
scaling.
"""
FLOOR = 1e-15
"""Least `(beta^2 - |g|^2) / beta^2` that round-off leaves."""


class Block(NamedTuple):
    """Rows of one contact: that of its normal, -1 for none, the first of its k tangents, and the
    place of its psi, -1 without tangents.
    """

    normal: int
    tangent: int
    k: int
    psi: int

    @property
    def rows(self) -> int:
        """Number of rows."""
        return (self.normal >= 0) + self.k


def blocks(shapes: Sequence[tuple[bool, int]]) -> tuple[Block, ...]:
    """The rows, one after another, of contacts: whether each has a normal, and its tangents."""
    result, row, psi = list[Block](), 0, 0
    for has_normal, k in shapes:
        result.append(Block(row if has_normal else -1, row + has_normal, k, psi if k else -1))
        row, psi = row + has_normal + k, psi + (k > 0)
    return tuple(result)


def impulse_count(blocks: Sequence[Block]) -> int:
    """Number of impulses x."""
    return sum(block.rows for block in blocks)


def slip_count(blocks: Sequence[Block]) -> int:
    """Number of slip bounds psi: one for each contact with tangents."""
    return sum(block.k > 0 for block in blocks)


class Impulses:
    """Impulses x (n), velocities w (n) and slip bounds psi (one for each contact with tangents): a
    guess where they are `known`, after `find` the solution.
    """

    def __init__(self, blocks: Sequence[Block]):
        self.blocks = blocks
        n = impulse_count(blocks)
        self.x, self.w = np.zeros(n), np.zeros(n)
        self.psi = np.zeros(slip_count(blocks))
        self.known = False

    def find(
        self, G: np.ndarray, b: np.ndarray, mu: np.ndarray, bound: np.ndarray, kappa: float
    ) -> bool:
        """Whether the problem of G (n, n), b (n), and mu and bound (N s) of every contact has been
        solved: from the guess, from near the central path, or from far inside of the cones.
        """
        problem, at = _Problem(self.blocks, G, b, mu, bound, kappa), (self.x, self.w, self.psi)
        if not (np.isfinite(G).all() and np.isfinite(b).all()):
            self.known = False
            return False
        self.known = self.known and problem.iterate(*at, warm=True)
        for start in (problem.near_path, problem.far_inside):
            if not self.known:
                start(*at)
                self.known = problem.iterate(*at, warm=False)
        return self.known


class _Line(NamedTuple):
    """A linearized pair, `dv = c - D du`; its first row is `u . dv + v . du = goal - u . v`."""

    c: np.ndarray
    D: np.ndarray
    goal: float


class _Cone:
    """A pair of vectors (1 + k) in the interior of a second-order cone, `u = (beta, g)` and
    `v = (psi, s)`, or of positive numbers, of the contact of this number.
    """

    def __init__(self, contact: int, is_normal: bool, u: np.ndarray, v: np.ndarray):
        self.contact, self.is_normal, self.u, self.v = contact, is_normal, u, v

    def scaled(self, goal: float) -> _Line:
        """The linearization of u o v = (goal, 0) in the scaling: `D = W^2`,
        `c = W (l^{-1} o (goal, 0)) - v`.
        """
        det_u, det_v = _determinant(self.u), _determinant(self.v)
        unit_u, unit_v = self.u / np.sqrt(det_u), self.v / np.sqrt(det_v)
        mirrored = np.append(unit_u[0], -unit_u[1:])
        # the scaling point a with |a| = 1: (2 a a^T - J) unit_u = unit_v
        a = (unit_v + mirrored) / np.sqrt(2 * (1 + unit_u @ unit_v))
        W = np.eye(len(a)) + np.outer(a, a) / (1 + a[0])
        W[0], W[:, 0] = a, a
        W *= (det_v / det_u) ** 0.25
        l = W @ self.u  # noqa: E741  (the letter of the literature is lambda)
        unit = np.eye(len(a))[0]
        return _Line(W @ _quotient(l, goal * unit) - self.v, W @ W, goal)

    def line(self, goal: float) -> _Line:
        """The linearization as it is, `u o dv + v o du = (goal, 0) - u o v`."""
        unit = np.eye(len(self.u))
        c = _quotient(self.u, goal * unit[0] - _product(self.u, self.v))
        return _Line(
            c, np.column_stack([_quotient(self.u, _product(self.v, e)) for e in unit]), goal
        )


class _Problem:
    """A contact problem."""

    def __init__(
        self,
        blocks: Sequence[Block],
        G: np.ndarray,
        b: np.ndarray,
        mu: np.ndarray,
        bound: np.ndarray,
        kappa: float,
    ):
        self.blocks, self.G, self.b, self.mu, self.bound = blocks, G, b, mu, bound
        self.kappa, self.speed = kappa, float(np.abs(b).max(initial=0.0)) + 1e-9

    def iterate(self, x: np.ndarray, w: np.ndarray, psi: np.ndarray, warm: bool) -> bool:
        """Whether the iteration, in place, from inside of all cones ends at the solution; from a
        guess, which is `warm`, it gives up early.
        """
        short = False
        for _ in range(MOST_ITERATIONS):
            error, cones = w - self.G @ x - self.b, self._cones(x, w, psi)
            if self._is_solved(cones, error, w):
                return True
            products = [cone.u @ cone.v for cone in cones]
            if max(products) <= NEAR * self.kappa and not short:
                lines = [cone.line(self.kappa) for cone in cones]
            else:
                goal = max(self.kappa, CENTERING * sum(products) / len(products))
                lines = [cone.scaled(goal) for cone in cones]
            step, dx, dw, dpsi = self._direction(cones, lines, error)
            if not np.isfinite(dx).all() or (warm and step < SHORT):
                return False
            short = step < SHORT and not short
            x += step * dx
            w += step * dw
            psi += step * dpsi
        return False

    def far_inside(self, x: np.ndarray, w: np.ndarray, psi: np.ndarray) -> None:
        """A start inside of all cones, of the size of all velocities without impulses: it takes
        more iterations, and ends where those from near the path stall at the edge of a cone.
        """
        x[:], w[:], psi[:] = 0.0, 0.0, self.speed
        for n in (block.normal for block in self.blocks if block.normal >= 0):
            w[n] = max(abs(self.b[n]), LEAST_SPEED * self.speed)
            x[n] = w[n] / self.G[n, n]

    def near_path(self, x: np.ndarray, w: np.ndarray, psi: np.ndarray) -> None:
        """A start inside of all cones, near the central path of the size of the closing contacts:
        there w is the velocity without impulses, and x would stop it alone.
        """
        x[:], w[:] = 0.0, 0.0
        normals = [block.normal for block in self.blocks if block.normal >= 0]
        least = LEAST_SPEED * max((-self.b[n] for n in normals), default=0.0) + 1e-9
        height = self.kappa
        for n in normals:
            w[n] = max(abs(self.b[n]), least)
            if self.b[n] <= 0:
                x[n] = w[n] / self.G[n, n]
                height = max(height, x[n] * w[n])
        for i, (n, t, k, j) in enumerate(self.blocks):
            if n >= 0 and self.b[n] > 0:
                x[n] = height / w[n]
            if k:
                beta = self.mu[i] * x[n] if n >= 0 else self.bound[i]
                slip = float(np.linalg.norm(self.b[t : t + k]))
                psi[j] = max(slip, height / beta if beta > 0 else 0.0, 1e-9)

    def _cones(self, x: np.ndarray, w: np.ndarray, psi: np.ndarray) -> list[_Cone]:
        cones = []
        for i, (n, t, k, j) in enumerate(self.blocks):
            if n >= 0:
                cones.append(_Cone(i, True, x[n : n + 1], w[n : n + 1]))
            if k:
                beta = self.mu[i] * x[n] if n >= 0 else self.bound[i]
                pair = np.append(beta, x[t : t + k]), np.append(psi[j], w[t : t + k])
                cones.append(_Cone(i, False, *pair))
        return cones

    def _is_solved(self, cones: Sequence[_Cone], error: np.ndarray, w: np.ndarray) -> bool:
        """Whether all pairs are on the central path, and w = G x + b, to what numbers can tell."""
        largest = float(np.abs(w).max(initial=0.0)) + self.speed
        if np.abs(error).max(initial=0.0) > FEASIBLE * largest:
            return False
        round_off = ROUND_OFF * max((float(c.u[0] * c.v[0]) for c in cones), default=0.0)
        allowed = max(CLOSE * self.kappa, round_off)
        return all(_off_path(cone, self.kappa) <= allowed for cone in cones)

    def _direction(
        self, cones: Sequence[_Cone], lines: Sequence[_Line], error: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """The longest step and the directions dx, dw, dpsi that solve
        `G dx - dw = w - G x - b` with `dw = c - D dx` of all cones.
        """
        n = len(self.b)
        D, c = np.zeros((n, n)), np.zeros(n)
        for cone, line in zip(cones, lines):
            normal, t, k, _ = self.blocks[cone.contact]
            if cone.is_normal:
                D[normal, normal], c[normal] = line.D[0, 0], line.c[0]
                continue
            rows = slice(t, t + k)
            D[rows, rows], c[rows] = line.D[1:, 1:], line.c[1:]
            if normal >= 0:  # beta = mu x_n
                D[rows, normal] = self.mu[cone.contact] * line.D[1:, 0]
        dx = equilibrated(self.G + D, error + c)
        # not c - D dx, whose terms are as large as psi^2 / kappa: w = G x + b stays exact
        dw = self.G @ dx - error
        step, dpsi = 1.0, np.zeros(slip_count(self.blocks))
        for cone, line in zip(cones, lines):
            du, dv = self._pair(cone, line.goal, dx, dw)
            step = min(step, BACK * _room(cone.u, du), BACK * _room(cone.v, dv))
            if not cone.is_normal:
                dpsi[self.blocks[cone.contact].psi] = dv[0]
        return step, dx, dw, dpsi

    def _pair(
        self, cone: _Cone, goal: float, dx: np.ndarray, dw: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(du, dv) of the directions dx, dw; dpsi follows from a line's first row."""
        n, t, k, _ = self.blocks[cone.contact]
        if cone.is_normal:
            return dx[[n]], dw[[n]]
        dbeta = self.mu[cone.contact] * dx[n] if n >= 0 else 0.0
        du, dv = np.append(dbeta, dx[t : t + k]), np.append(0.0, dw[t : t + k])
        dv[0] = (goal - cone.u @ cone.v - cone.v @ du - cone.u @ dv) / cone.u[0]
        return du, dv


def equilibrated(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solution of a y = b: rows of contacts that slide are larger by psi^2 / kappa."""
    size = np.abs(a).max(axis=1)
    if not (np.isfinite(size).all() and size.all()):
        return np.full_like(b, np.nan)
    try:
        return solve(a / size[:, None], b / size)
    except np.linalg.LinAlgError:
        return np.full_like(b, np.nan)


def _determinant(u: np.ndarray) -> float:
    """`u_0^2 - |u_1|^2`, at least what round-off leaves."""
    length = float(np.linalg.norm(u[1:]))
    return float(max((u[0] - length) * (u[0] + length), FLOOR * u[0] ** 2))


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Jordan's product `a o b = (a . b, a_0 b_1 + b_0 a_1)`."""
    return np.append(a @ b, a[0] * b[1:] + b[0] * a[1:])


def _quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The solution y of a o y = b."""
    first = (a[0] * b[0] - a[1:] @ b[1:]) / _determinant(a)
    return np.append(first, (b[1:] - first * a[1:]) / a[0])


def _off_path(cone: _Cone, kappa: float) -> float:
    """The largest entry of u o v - (kappa, 0)."""
    off = _product(cone.u, cone.v)
    off[0] -= kappa
    return float(np.abs(off).max())


def _room(u: np.ndarray, du: np.ndarray) -> float:
    """The longest step t for which u + t du stays in the cone."""
    # a t^2 + 2 b t + c = 0 on its boundary
    a = du[0] ** 2 - du[1:] @ du[1:]
    b = u[0] * du[0] - u[1:] @ du[1:]
    c = _determinant(u)
    best = -u[0] / du[0] if du[0] < 0 else np.inf
    if (inside := b * b - a * c) >= 0:
        root = -b - np.sqrt(inside) if b > 0 else -b + np.sqrt(inside)
        for upper, lower in ((root, a), (c, root)):
            if lower != 0 and upper / lower > 0:
                best = min(best, upper / lower)
    return float(best)
