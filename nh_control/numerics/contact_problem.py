"""The equations for contacts with Coulomb friction, which `native/contact_problem.h` solves.

    w = G x + b
    normal:    x_n w_n = kappa,                     x_n, w_n > 0
    friction:  (beta, g) o (psi, s) = (kappa, 0),   beta > |g|,  psi > |s|

x contains the impulses (N s), and w the velocities (m/s) conjugate to them. A contact has one
normal pair (x_n, w_n) or none, and k = 0, 1 or 2 tangents with the friction impulse g in x and the
slip velocity s in w. `beta = mu x_n` (Coulomb) or a constant bound (N s), and
`(beta, g) o (psi, s) = (beta psi + g . s, beta s + psi g)`. Therefore, friction is opposite to the
slip velocity and, for kappa = 0, dissipates as much energy as possible. Slip does not push bodies
apart. kappa (J) is the height of the barrier: a contact at rest under the impulse x_n opens at the
speed `kappa / x_n`, and a sticking contact with the load t = |g| / beta creeps at the speed
`kappa t / (beta (1 - t^2))`.

Far from the central path, each iteration solves the linearization in the scaling W with
`W (beta, g) = W^{-1} (psi, s) = l`, in which both are equal [nesterov1998]. The target is a
fraction of the mean product. Near the path, each iteration solves the linearization of the
unscaled equations, which converges quadratically. Predictions as in Mehrotra's method run into the
boundary if impulses are redundant. Of 300 random problems, 23 were not solved with predictions,
and three without. These three had kappa <= 1e-10 at about 10 m/s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Block(NamedTuple):
    """The rows for a contact: the row for its normal (-1 for none), the first row for its k
    tangents, and the index of its psi (-1 without tangents).
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
    """The consecutive blocks for contacts. Each shape says whether the contact has a normal, and
    how many tangents it has.
    """
    result, row, psi = list[Block](), 0, 0
    for has_normal, k in shapes:
        result.append(Block(row if has_normal else -1, row + has_normal, k, psi if k else -1))
        row, psi = row + has_normal + k, psi + (k > 0)
    return tuple(result)


def impulse_count(blocks: Sequence[Block]) -> int:
    """The number of impulses x."""
    return sum(block.rows for block in blocks)


def slip_count(blocks: Sequence[Block]) -> int:
    """The number of slip bounds psi, one for each contact with tangents."""
    return sum(block.k > 0 for block in blocks)
