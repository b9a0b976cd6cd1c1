"""The nonholonomic connection of a system with a symmetry."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import casadi as ca

from nh_control.geometry.factors import split_space
from nh_control.geometry.space import Space
from nh_control.mechanics.constrained_states import AdmissibleBasis
from nh_control.mechanics.householder import householder
from nh_control.mechanics.lagrangian_system import LagrangianSystem
from nh_control.numerics.linear_solves import factorized


class NonholonomicConnection:
    """The connection `A = A_kin + A_sym` of a system with a symmetry at shapes r [kobilarov2010 5,
    (17)]. An admissible velocity (rdot, xi) satisfies `xi = Omega - A(r) rdot`, where Omega lies
    in S, the set of group directions that satisfy the constraints.

    Let M be the mass matrix, `A_r rdot + A_g xi = 0` the constraints at the group's identity, E
    (group, c) a basis of S, and `I = E^T M_gg E` the locked inertia. Then the constraints
    determine `A_kin rdot`, and `A_sym = E I^{-1} E^T M_gr`, so horizontal velocities (rdot, -A
    rdot) are orthogonal to S in the kinetic metric. A does not depend on the basis. It exists at
    all shapes where the rows of A_g are independent, `D + V = TQ`, and I is regular. Raises
    ValueError for systems that declare no symmetry, and for systems whose shape does not consist
    of whole factors of the space.
    """

    def __init__(self, system: LagrangianSystem):
        self._system, count = system, system.declared_symmetry.n_shape
        self.shape: Space
        self.group: Space
        try:
            self.shape, self.group = split_space(system.space, count)
        except ValueError as problem:
            raise ValueError(f"{system.name}: n_shape of symmetry {problem}") from problem

    @property
    def n_basis(self) -> int:
        """The dimension c of S."""
        return self.group.nw - self._system.n_velocity_constraints

    def at_identity(self, r: ca.SX) -> ca.SX:
        """The configuration (r, e) (nq) with the identity e of the group."""
        return ca.vertcat(r, ca.SX(self.group.origin))

    def signs(self, r: ca.SX) -> ca.SX:
        """The signs (n_velocity_constraints) for bases near a shape (see `householder`). They have
        no effect on a declared basis.
        """
        return householder(self._scaled_matrix(r))[1]

    def basis(self, r: ca.SX, signs: ca.SX | None = None) -> ca.SX:
        """The basis E(r) (group, c). It is the basis that the symmetry declares, the columns of a
        declared distribution that do not move the shape, or an orthonormal basis of the null space
        of A_g. The latter is smooth as long as the `signs` (by default those at r) are fixed.
        """
        system = self._system
        if system.declared_symmetry.basis is not None:
            return system.evaluated(system.declared_symmetry.basis, r)
        if self._places:
            columns = system.declared_basis(self.at_identity(r))[self.shape.nw :, self._places]
            return ca.sparsify(columns)
        scaled, _ = householder(self._scaled_matrix(r), signs)
        return scaled / ca.repmat(self._sizes, 1, self.n_basis)

    def connection(self, r: ca.SX, basis: ca.SX) -> ca.SX:
        """The connection A(r) (group, shape) that the symmetry declares or, by default, the
        nonholonomic one.
        """
        declared = self._system.declared_symmetry.connection
        if declared is not None:
            return self._system.evaluated(declared, r)
        return self.nonholonomic(r, basis)

    def nonholonomic(self, r: ca.SX, basis: ca.SX) -> ca.SX:
        """The connection `A = N + E I^{-1} E^T (M_gr - M_gg N)` (group, shape), with any basis E
        at r and any N that satisfies `A_g N = A_r`.
        """
        # N = A if the constraints determine all group velocities
        kinematic = self._particular(r)
        if not self.n_basis:
            return kinematic
        to_shape, inertia = self._masses(r)
        return kinematic + self._locked(r, basis)(to_shape - inertia @ kinematic)

    def symmetric(self, r: ca.SX, basis: ca.SX) -> ca.SX:
        """The mechanical connection along S, `A_sym = E I^{-1} E^T M_gr` (group, shape)."""
        return self._locked(r, basis)(self._masses(r)[0])

    def locked_inertia(self, r: ca.SX, basis: ca.SX) -> ca.SX:
        """The locked inertia `I = E^T M_gg E` (c, c)."""
        return basis.T @ self._masses(r)[1] @ basis

    def _locked(self, r: ca.SX, basis: ca.SX) -> Callable[[ca.SX], ca.SX]:
        """The function `E I^{-1} E^T p` (group), which returns the velocity in S for the group
        momenta p.
        """
        # Omega = E I^{-1} E^T p
        e = ca.sparsify(basis)
        solve = factorized(self.locked_inertia(r, e))
        return lambda momenta: e @ solve(e.T @ momenta)

    def constraint_blocks(self, r: ca.SX) -> tuple[ca.SX, ca.SX]:
        """The columns (A_r, A_g) of the constraint matrix at (r, e)."""
        a = self._system.constraint_matrix(self.at_identity(r))
        return ca.sparsify(a[:, : self.shape.nw]), ca.sparsify(a[:, self.shape.nw :])

    def _masses(self, r: ca.SX) -> tuple[ca.SX, ca.SX]:
        """The blocks M_gr and M_gg of the mass matrix at (r, e)."""
        v, n = self._system.symbols[1], self.shape.nw
        mass = ca.hessian(self._system.lagrangian_at(self.at_identity(r), v), v)[0]
        return mass[n:, :n], mass[n:, n:]

    def _particular(self, r: ca.SX) -> ca.SX:
        """The matrix N (group, shape) of smallest norm with `A_g N = A_r`."""
        shape, group = self.constraint_blocks(r)
        if not self.n_basis:
            return ca.solve(group, shape)
        # N = A_g^T (A_g A_g^T)^{-1} A_r
        return group.T @ factorized(group @ group.T)(shape)

    @cached_property
    def _places(self) -> list[int]:
        """The columns of a declared distribution that do not move the shape, if they span S."""
        if self._system.distribution is None:
            return []
        # columns with zeros in the rows for the shape
        x = self._system.declared_basis(self._system.symbols[0])
        moving = ca.sparsify(x[: self.shape.nw, :])
        places = [j for j in range(x.shape[1]) if not moving[:, j].nnz()]
        return places if len(places) == self.n_basis else []

    def _scaled_matrix(self, r: ca.SX) -> ca.SX:
        group = ca.densify(self.constraint_blocks(r)[1])
        return group / ca.repmat(self._sizes.T, group.shape[0], 1)

    @cached_property
    def _sizes(self) -> ca.SX:
        """Square roots of the group's masses, which make the basis independent of units."""
        return AdmissibleBasis(self._system).sizes[self.shape.nw :]
