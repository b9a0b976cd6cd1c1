"""Elimination of dependent velocities by the velocity constraints."""

from __future__ import annotations

from functools import cached_property

import casadi as ca
import numpy as np
from scipy.linalg import qr

from nh_control.geometry.spaces import Product
from nh_control.mechanics.lagrangian_system import LagrangianSystem


class Elimination:
    """Dependent velocities of `A(q) v = b(q)` as functions of the independent ones. Places are
    indices of local coordinates; first-order and then prescribed coordinates are the last.

    Velocities on spheres are never dependent, because their bases turn.
    """

    def __init__(self, system: LagrangianSystem):
        self._system, self._space = system, system.space
        self._free = system.space.nv - len(system.prescribed)
        self._moving = self._free - len(system.first_order)

    @property
    def on_spheres(self) -> bool:
        """Whether velocities are stored in more numbers than they have local coordinates."""
        return self._space.nw != self._space.nv

    @cached_property
    def dependent(self) -> tuple[int, ...]:
        """Places of the dependent velocities: those the system names, or else chosen at its
        nominal configuration by pivoting. Raises ValueError where the constraints fix fewer.
        """
        system, space = self._system, self._space
        if not system.n_velocity_constraints:
            return ()
        if system.dependent is not None:
            return system.dependent
        choice = [i for i in self._flat if i < self._moving]
        nominal = system.nominal_configuration
        matrix = system.value(self._matrix(system.symbols[0])[:, choice], nominal)
        if not np.isfinite(matrix).all() or dependent_rows(matrix):
            raise ValueError(
                f"{system.name}: the {system.n_velocity_constraints} velocity constraints do not "
                f"fix {system.n_velocity_constraints} of "
                f"the velocities {[space.tangent_names[i] for i in choice]} at q = "
                f"{nominal.tolist()}: drop dependent ones, choose others by `dependent`, or give "
                "another configuration, `nominal`, where they do"
            )
        _, _, pivots = qr(matrix, pivoting=True)
        return tuple(sorted(choice[int(i)] for i in pivots[: system.n_velocity_constraints]))

    @cached_property
    def independent(self) -> list[int]:
        """Places of the other velocities, without first-order and prescribed coordinates."""
        return [i for i in range(self._moving) if i not in self.dependent]

    @cached_property
    def without_momentum(self) -> tuple[int, ...]:
        """Places of the velocities without momentum in a state: dependent ones, and first-order
        coordinates.
        """
        return (*self.dependent, *range(self._moving, self._free))

    @property
    def dropped(self) -> tuple[int, ...]:
        """Places of `without_momentum` among the stored velocities."""
        return tuple(self._flat[i] for i in self.without_momentum)

    def tangents(self, q: ca.SX, frame: ca.SX | None = None) -> ca.SX:
        """A basis Y of the virtual velocities in local coordinates, `A frame Y = 0`, (nv, nrho):
        one for every independent velocity. `frame` (nw, nv) is that of the space by default.
        """
        y = ca.SX(self._space.nv, len(self.independent))
        y[self.independent, :] = ca.SX.eye(len(self.independent))
        if self.dependent:
            a, dependent = self._matrix(q, frame), list(self.dependent)
            y[dependent, :] = -ca.solve(a[:, dependent], a[:, self.independent])
        return y

    def particular(self, q: ca.SX, prescribed_velocity: ca.SX) -> ca.SX:
        """A velocity c (nv) in local coordinates with `A frame c = b`: prescribed velocities are
        kept, the other independent ones are zero.
        """
        c = ca.SX(self._space.nv, 1)
        c[self._free :] = prescribed_velocity
        moving = self._system.prescribed or self._system.velocity_drift is not None
        if self.dependent and moving:
            a, dependent = self._matrix(q), list(self.dependent)
            c[dependent] = ca.solve(a[:, dependent], self._system.drift(q) - a @ c)
        return ca.densify(c)

    def stored_frame(self, q: ca.SX, frame: ca.SX | None = None) -> ca.SX:
        """Stored momenta of unit components in a `frame` (nw, nv), by default the space's,
        (stored, nrho + prescribed).
        """
        rows = [i for i in range(self._space.nw) if i not in self.dropped]
        columns = [i for i in range(self._space.nv) if i not in self.without_momentum]
        return (self._space.frame(q) if frame is None else frame)[rows, columns]

    def _matrix(self, q: ca.SX, frame: ca.SX | None = None) -> ca.SX:
        return self._system.constraint_matrix(q) @ (
            self._space.frame(q) if frame is None else frame
        )

    @cached_property
    def _flat(self) -> dict[int, int]:
        """Local coordinates that are stored velocities as well, and their places among these."""
        space = self._space
        flat: dict[int, int] = {}
        local = stored = 0
        for factor in space.factors if isinstance(space, Product) else (space,):
            if factor.nv == factor.nw:
                flat |= {local + i: stored + i for i in range(factor.nv)}
            local, stored = local + factor.nv, stored + factor.nw
        return flat


def dependent_rows(a: np.ndarray, tolerance: float | None = None) -> list[int]:
    """Rows of a matrix that follow from those before them, to a `tolerance` relative to the
    largest singular value (None: to round-off). Columns and rows are divided by their largest
    number, so that their units do not matter.
    """
    for axis in (0, 1):
        largest = np.abs(a).max(axis=axis, keepdims=True, initial=0.0)
        a = a / np.where(largest > 0, largest, 1.0)
    values = (np.linalg.svd(a[:k], compute_uv=False) for k in range(1, len(a) + 1))
    least = max(a.shape) * np.finfo(float).eps if tolerance is None else tolerance
    ranks = [int((each > least * each.max(initial=0.0)).sum()) for each in values]
    return [k for k, rank in enumerate(ranks) if rank == (ranks[k - 1] if k else 0)]
