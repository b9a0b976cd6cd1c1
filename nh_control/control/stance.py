"""The directions of a state in which contacts allow motion. A standing robot can only be
controlled in these directions.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.weights import velocities_by_momenta
from nh_control.discrete.contact_forces import ContactReadout, ContactTable
from nh_control.discrete.system import DiscreteSystem
from nh_control.mechanics.contact_rows import ContactRows

REDUNDANT = 1e-8
"""Fraction of the largest singular value of the contact rows below which singular values belong to
redundant rows.
"""


class Stance:
    """Projections of the directions of states onto the directions that loaded, sticking contacts
    leave free.

    Let J (k, nw) be the rows of these contacts, N (nw, n) the velocities with `J N = 0`, `F^T N`
    the tangent vectors of the configuration with F = space.frame(q), and M the mass matrix. The
    projection is

        S = diag(F^T N (F^T N)^+,  M N (N^T M N)^{-1} N^T)

    so `S (0, J^T x) = 0` for all impulses x. A contact counts as loaded if its impulse changes its
    gap during a step by more than the size of the gap, `lam J_n M^{-1} J_n^T > gap / h`. Raises
    ValueError for a system without contacts, with constraints, or with prescribed coordinates.
    """

    def __init__(self, dsys: DiscreteSystem):
        system = dsys.system
        if not system.contacts:
            raise ValueError(f"{dsys}: a stance needs contacts, but the system declares none")
        if dsys.ndx != 2 * system.space.nv or system.space.nv != system.space.nw:
            raise ValueError(
                f"{dsys}: a stance needs a system whose state is (q, p), without constraints and "
                f"prescribed coordinates; got {dsys.ndx} directions of {system.space.nv} "
                f"coordinates"
            )
        self.dsys, self._readout = dsys, ContactReadout(dsys)
        q, parameters = system.symbols[0], system.parameter_symbols
        laws = ContactRows(system.mechanics).laws
        self._sizes = [1 + law.tangents(q).shape[0] for law in laws]
        self._first = [sum(self._sizes[:i]) for i in range(len(laws))]
        frame = system.space.frame(q)
        rows = ca.vertcat(*(law.rows(q) for law in laws)) @ frame.T
        self._rows = ca.Function("rows", [q, parameters], [ca.densify(rows), ca.densify(frame)])

    def projections(self, states: ArrayLike, inputs: ArrayLike) -> np.ndarray:
        """The projections S (N, ndx, ndx) for steps from the states (N, nx) under inputs (N, nu).
        Raises StepFailed.
        """
        states, inputs = np.asarray(states, dtype=float), np.asarray(inputs, dtype=float)
        # a motion at rest repeats the same step, which is evaluated only once
        steps, place = np.unique(np.hstack([states, inputs]), axis=0, return_inverse=True)
        x, u = np.split(steps, [self.dsys.nx], axis=1)
        table = self._readout.table(x, u)
        each = [self._projection(row, table, k) for k, row in enumerate(steps)]
        return np.array(each)[place.reshape(-1)]

    def project(
        self, states: ArrayLike, inputs: ArrayLike, A: np.ndarray, B: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """`S' A S` and `S' B` for A (N, ndx, ndx) and B (N, ndx, nu) at successive steps, where S'
        is the projection of the next step. Raises the errors of `projections`.
        """
        S = self.projections(states, inputs)
        # S' A S with the projection S' of the next step
        after = np.concatenate([S[1:], S[-1:]])
        return after @ A @ S, after @ B

    def _projection(self, x: np.ndarray, table: ContactTable, k: int) -> np.ndarray:
        """The projection S (ndx, ndx) at a state x, with the contacts in row k of the table."""
        from scipy.linalg import block_diag, null_space  # slow to import

        system, q = self.dsys.system, x[: self.dsys.system.space.nq]
        J, F = (np.asarray(part) for part in self._rows(q, system.parameter_values))
        inverse = velocities_by_momenta(
            self.dsys, self.dsys.state(q, np.zeros(system.space.nw))
        )  # M^{-1}
        # velocities that the contacts leave free, J N = 0
        N = null_space(J[self._holds(table, k, J, inverse)], rcond=REDUNDANT)
        tangents, momenta = F.T @ N, np.linalg.solve(inverse, N)
        return block_diag(
            tangents @ np.linalg.pinv(tangents),
            momenta @ np.linalg.solve(N.T @ momenta, N.T),
        )

    def _holds(self, table: ContactTable, k: int, J: np.ndarray, inverse: np.ndarray) -> list[int]:
        """The indices of the rows of J that are active in step k: the normals of loaded contacts,
        and the tangents of loaded contacts that stick.
        """
        h, rows = self.dsys.h, list[int]()
        for i, first in enumerate(self._first):
            # loaded: lam J_n M^{-1} J_n^T > gap / h
            response = J[first] @ inverse @ J[first]
            if h * table.normal[k, i] * response > table.gap[k, i] / h:
                last = first + (1 if table.slides[k, i] else self._sizes[i])
                rows += range(first, last)
        return rows
