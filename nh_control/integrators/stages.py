"""Coefficients of Gauss and Lobatto methods, and the stages of a step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.polynomial import legendre

from nh_control.discrete.method import Gradients
from nh_control.integrators.coordinate_systems import Coordinates
from nh_control.numerics.expressions import Graph
from nh_control.numerics.quadrature import gauss, integrals


def gauss_tables(s: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights b (s) and coefficients a (s, s) of the Gauss method of order 2s."""
    c, b = gauss(s)
    return b, integrals(c, c)


def lobatto_tables(s: int) -> dict[str, np.ndarray]:
    """Weights "b" (s) and coefficients (s, s) of the Lobatto methods "A" (IIIA), "B", "C", "C*"
    and "D" with s >= 2 stages, of order 2s - 2.

    A is collocation. B and C* are the adjoint coefficients of A and C,
    `b_i a_ij + b_j a*_ji = b_i b_j`. C has `a_i1 = b_1` and is exact for polynomials of degree s -
    2. D is the mean of C and C*.
    """
    # the inner Lobatto points are the roots of P'_{s-1}
    inner = legendre.Legendre.basis(s - 1).deriv().roots() if s > 2 else []
    c = np.array([0.0, *((np.sort(inner) + 1) / 2), 1.0])
    a = integrals(c, c)
    b = a[-1]
    powers = np.arange(1, s)
    rule = np.vander(c[1:], s - 1, increasing=True).T
    # C: sum_j a_ij c_j^(k-1) = c_i^k / k for k < s, with a_i1 = b_1
    rest = c[:, None] ** powers / powers - b[0] * (powers == 1)
    coefficients = np.column_stack([np.full(s, b[0]), np.linalg.solve(rule, rest.T).T])
    other = _adjoint(b, coefficients)
    named = {"A": a, "B": _adjoint(b, a), "C": coefficients, "C*": other}
    return {"b": b, **named, "D": (coefficients + other) / 2}


def _adjoint(b: np.ndarray, a: np.ndarray) -> np.ndarray:
    # a*_ji = b_i (1 - a_ij / b_j)
    return b * (1 - a.T / b[:, None])


def weighted(weights: Iterable[float], vectors: Sequence[Graph]) -> Graph:
    """`sum_j weights_j vectors_j`."""
    rows, columns = vectors[0].shape
    zero = type(vectors[0])(rows, columns)
    return sum((float(w) * v for w, v in zip(weights, vectors) if w), zero)


@dataclass(frozen=True)
class Stages:
    """Stages `Q_i = q0 + h sum_j a_ij V_j` with their momenta P_i, forces W_i, and impulses
    `R_i = A(Q_i)^T K_i` of velocity constraints and `N_i = Dh(Q_i)^T K_i` of holonomic
    constraints, (n) each. p0 is the momentum at the node.
    """

    q: list[ca.SX]
    v: list[ca.SX]
    p: list[ca.SX]
    force: list[ca.SX]
    impulse: list[ca.SX]
    normal: list[ca.SX]
    p0: ca.SX

    def momentum(self, h: ca.SX, forces: Iterable[float], impulses: Iterable[float]) -> ca.SX:
        """`p0 + sum_j forces_j (h W_j + N_j) + sum_j impulses_j R_j`."""
        forces = list(forces)
        p = self.p0 + h * weighted(forces, self.force) + weighted(impulses, self.impulse)
        return p + weighted(forces, self.normal)


def stages(
    space: Coordinates,
    a: np.ndarray,
    gradients: Gradients,
    q: ca.SX,
    p0: ca.SX,
    u: ca.SX,
    velocities: Sequence[ca.SX],
    impulses: ca.SX,
    h: ca.SX,
    nu: ca.SX | None = None,
) -> Stages:
    """Stages from the coordinates q (n) for the rates V_i (n) and the impulses K_i of the
    constraints, stacked (s n_constraints). With nu, the velocities are `V_i - M^{-1} Dh^T nu`.
    """
    s, v = len(a), list(velocities)
    nodes = [q + h * weighted(row, v) for row in a]
    if nu is not None:
        v = [v_i - space.normal_rates(q_i, nu) for q_i, v_i in zip(nodes, v)]
    derivatives = [space.derivatives(gradients, q_i, v_i, u) for q_i, v_i in zip(nodes, v)]
    reactions, normals = [], []
    each = parts(impulses, s) if space.n_constraints else [ca.SX(0, 1)] * s
    for q_i, k in zip(nodes, each):
        rolling, normal = space.parts(k)
        reactions.append(space.reaction(q_i, ca.vertcat(rolling, ca.SX(space.n_holonomic, 1))))
        normals.append(space.normal_reaction(q_i, normal))
    momenta, forces = [p for p, _ in derivatives], [f for _, f in derivatives]
    return Stages(nodes, v, momenta, forces, reactions, normals, p0)


def parts(stacked: ca.SX, s: int) -> list[ca.SX]:
    """The s equal parts of a vector."""
    n = stacked.shape[0] // s
    return [stacked[n * i : n * (i + 1)] for i in range(s)]
