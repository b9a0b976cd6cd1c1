"""The directions of a state that contacts leave free, in which alone a robot that stands can be
controlled.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag, null_space

from nh_control.control.weights import velocities_by_momenta
from nh_control.discrete.contact_forces import ContactReadout, ContactTable
from nh_control.discrete.system import DiscreteSystem
from nh_control.mechanics.contact_rows import ContactRows

REDUNDANT = 1e-8
"""Singular value of the rows of contacts, relative to the largest, of a row that others imply."""


class Stance:
    """The projections of states' directions along contacts onto those that the contacts which
    carry a load, and stick, leave free.

    With the rows J (k, nw) of these contacts, the velocities N (nw, n) of `J N = 0`, the tangent
    vectors `F^T N` of the configuration, F = space.frame(q), and the mass matrix M:

        S = diag(F^T N (F^T N)^+,  M N (N^T M N)^{-1} N^T)

    so that `S (0, J^T x) = 0` for all impulses x. A contact carries a load where its impulse
    changes its opening by more than its gap in a step, `lam J_n M^{-1} J_n^T > gap / h`. Raises
    ValueError for a system without contacts, with constraints, or with prescribed coordinates.
    """

    def __init__(self, dsys: DiscreteSystem):
        system = dsys.system
        if not system.contacts:
            raise ValueError(f"{dsys}: a stance needs contacts, and the system declares none")
        if dsys.ndx != 2 * system.space.nv or system.space.nv != system.space.nw:
            raise ValueError(
                f"{dsys}: a stance needs a system whose state is (q, p), without constraints and "
                f"prescribed coordinates, got {dsys.ndx} directions of {system.space.nv} "
                f"coordinates"
            )
        self.dsys, self._readout = dsys, ContactReadout(dsys)
        q, p = system.symbols[0], system.parameter_symbols
        laws = ContactRows(system.mechanics).laws
        self._sizes = [1 + law.tangents(q).shape[0] for law in laws]
        self._first = [sum(self._sizes[:i]) for i in range(len(laws))]
        frame = system.space.frame(q)
        rows = ca.vertcat(*(law.rows(q) for law in laws)) @ frame.T
        self._rows = ca.Function("rows", [q, p], [ca.densify(rows), ca.densify(frame)])

    def projections(self, states: ArrayLike, inputs: ArrayLike) -> np.ndarray:
        """S (N, ndx, ndx) at the states (N, nx) of steps under inputs (N, nu); raises StepFailed
        as `step` does.
        """
        states, inputs = np.asarray(states, dtype=float), np.asarray(inputs, dtype=float)
        # at rest many steps are the same one
        steps, place = np.unique(np.hstack([states, inputs]), axis=0, return_inverse=True)
        table = self._readout.table(*np.split(steps, [self.dsys.nx], axis=1))
        each = [self._projection(x, table, k) for k, x in enumerate(steps)]
        return np.array(each)[place.reshape(-1)]

    def project(
        self, states: ArrayLike, inputs: ArrayLike, A: np.ndarray, B: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """`S' A S` and `S' B` of A (N, ndx, ndx) and B (N, ndx, nu) at successive steps, S' that
        of the next one; raises as `projections` does.
        """
        S = self.projections(states, inputs)
        after = np.concatenate([S[1:], S[-1:]])
        return after @ A @ S, after @ B

    def _projection(self, x: np.ndarray, table: ContactTable, k: int) -> np.ndarray:
        """S (ndx, ndx) at a state with the contacts of row k."""
        system, q = self.dsys.system, x[: self.dsys.system.space.nq]
        J, F = (np.asarray(part) for part in self._rows(q, system.parameter_values))
        inverse = velocities_by_momenta(
            self.dsys, self.dsys.state(q, np.zeros(system.space.nw))
        )  # M^{-1}
        N = null_space(J[self._holds(table, k, J, inverse)], rcond=REDUNDANT)
        tangents, momenta = F.T @ N, np.linalg.solve(inverse, N)
        return block_diag(
            tangents @ np.linalg.pinv(tangents),
            momenta @ np.linalg.solve(N.T @ momenta, N.T),
        )

    def _holds(self, table: ContactTable, k: int, J: np.ndarray, inverse: np.ndarray) -> list[int]:
        """The rows J that hold in step k: the normals of contacts that carry a load, and the
        tangents of those that stick.
        """
        h, rows = self.dsys.h, list[int]()
        for i, first in enumerate(self._first):
            response = J[first] @ inverse @ J[first]
            if h * table.normal[k, i] * response > table.gap[k, i] / h:
                last = first + (1 if table.slides[k, i] else self._sizes[i])
                rows += range(first, last)
        return rows
