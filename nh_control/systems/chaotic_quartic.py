"""A fully chaotic nonholonomic system with a quartic potential [celledoni2016 4.1]."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import Rn
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.system import System


@dataclass(frozen=True)
class ChaoticQuarticParameters(Parameters):
    """The number of pairs of coordinates. All other parameters are 1."""

    n: int = parameter(3, "", "number of pairs (w, z), at least 2", at_least=2)


def chaotic_quartic(
    parameters: ChaoticQuarticParameters = ChaoticQuarticParameters(),
) -> System:
    """A particle in R^(2n + 1), q = (x, w_1 ... w_n, z_1 ... z_n), dimensionless,
    `L = |v|^2 / 2 - (|q|^2 + z_1^2 z_2^2 + sum_i w_i^2 z_i^2) / 2`, `x' + sum_i w_i z_i' = 0`
    [celledoni2016 (19), (20)], after McLachlan and Perlmutter (2006).

    The basis is d/dw_i, d/dz_i - w_i d/dx as in (21). There, y_i is printed instead of w_i
    (corrected). There are no inputs.
    """
    n = parameters.n
    w, z = slice(1, n + 1), slice(n + 1, 2 * n + 1)

    def potential(q: ca.SX) -> ca.SX:
        return (ca.sumsqr(q) + (q[z][0] * q[z][1]) ** 2 + ca.sumsqr(q[w] * q[z])) / 2

    def distribution(q: ca.SX, _: ChaoticQuarticParameters) -> ca.SX:
        # d/dw_i, and d/dz_i - w_i d/dx
        return ca.vertcat(ca.horzcat(ca.SX(1, n), -q[w].T), ca.SX.eye(2 * n))

    return System(
        name=f"chaotic_quartic_{n}",
        space=Rn("x", *(f"{name}_{i + 1}" for name in "wz" for i in range(n))),
        lagrangian=lambda q, v, params: ca.sumsqr(v) / 2 - potential(q),
        velocity_constraint=lambda q, params: ca.horzcat(1, ca.SX(1, n), q[w].T),
        distribution=distribution,
        parameters=parameters,
    )


def random_start(
    rng: np.random.Generator, energy: float = 3.06, n: int = 3
) -> tuple[np.ndarray, np.ndarray]:
    """A random configuration and admissible velocity (2n + 1 each) with the given energy.
    [celledoni2016 4.1.3] uses 3.06 for n = 3.

    The coordinates and the velocity are normally distributed. The velocity is projected onto the
    constraint and scaled. A configuration whose potential exceeds the energy is drawn again.
    Raises ValueError unless the energy is positive.
    """
    if not energy > 0:
        raise ValueError(f"chaotic_quartic: the energy must be positive, got {energy}")
    while True:
        q, v = rng.normal(size=(2, 2 * n + 1))
        w, z = q[1 : n + 1], q[n + 1 :]
        potential = (q @ q + (z[0] * z[1]) ** 2 + np.sum((w * z) ** 2)) / 2
        if potential < energy:
            constraint = np.concatenate([[1.0], np.zeros(n), w])
            # v - a (a . v) / |a|^2, scaled so that |v|^2 / 2 = energy - V
            v -= constraint * (constraint @ v) / (constraint @ constraint)
            return q, v * np.sqrt(2 * (energy - potential) / (v @ v))
