"""Elimination of dependent velocities by means of the velocity constraints."""

from __future__ import annotations

from functools import cached_property

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import Product
from nh_control.mechanics.lagrangian_system import LagrangianSystem
from nh_control.numerics.independent_columns import independent_columns


class Elimination:
    """Dependent velocities of `A(q) v = b(q)` as functions of the independent ones. Indices refer
    to local coordinates; first-order coordinates and then prescribed coordinates are the last of
    them. Velocities on spheres are never dependent, because their bases rotate.
    """

    def __init__(self, system: LagrangianSystem):
        self._system, self._space = system, system.space
        self._free = system.space.nv - len(system.prescribed)
        self._moving = self._free - len(system.first_order)

    @property
    def on_spheres(self) -> bool:
        """Whether stored velocities have more numbers than local coordinates."""
        return self._space.nw != self._space.nv

    @cached_property
    def dependent(self) -> tuple[int, ...]:
        """The indices of the dependent velocities, which the system declares or pivoting chooses
        at the nominal configuration. Raises ValueError if the constraints determine fewer
        velocities.
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
                f"determine {system.n_velocity_constraints} of "
                f"the velocities {[space.tangent_names[i] for i in choice]} at q = "
                f"{nominal.tolist()}: drop dependent rows, choose other velocities by "
                "`dependent`, or set `nominal` to a configuration where they do"
            )
        places = independent_columns(matrix, system.n_velocity_constraints)
        return tuple(sorted(choice[i] for i in places))

    @cached_property
    def independent(self) -> list[int]:
        """The indices of the independent velocities, without first-order and prescribed
        coordinates.
        """
        return [i for i in range(self._moving) if i not in self.dependent]

    @cached_property
    def without_momentum(self) -> tuple[int, ...]:
        """The indices of the velocities without a momentum in the state, which are dependent
        velocities and those of first-order coordinates.
        """
        return (*self.dependent, *range(self._moving, self._free))

    @property
    def dropped(self) -> tuple[int, ...]:
        """The indices of `without_momentum` among the stored velocities."""
        return tuple(self._flat[i] for i in self.without_momentum)

    def tangents(self, q: ca.SX, frame: ca.SX | None = None) -> ca.SX:
        """A basis Y (nv, nrho) of the virtual velocities in local coordinates, `A frame Y = 0`,
        with a column for every independent velocity. By default, `frame` (nw, nv) is the space's
        frame.
        """
        # rows for independent velocities: 1; for dependent ones: -A_d^{-1} A_i
        y = ca.SX(self._space.nv, len(self.independent))
        y[self.independent, :] = ca.SX.eye(len(self.independent))
        if self.dependent:
            a, dependent = self._matrix(q, frame), list(self.dependent)
            y[dependent, :] = -ca.solve(a[:, dependent], a[:, self.independent])
        return y

    def particular(self, q: ca.SX, prescribed_velocity: ca.SX) -> ca.SX:
        """A velocity c (nv) in local coordinates that satisfies `A frame c = b`. It has the given
        prescribed velocities, and all other independent velocities are zero.
        """
        c = ca.SX(self._space.nv, 1)
        c[self._free :] = prescribed_velocity
        moving = self._system.prescribed or self._system.velocity_drift is not None
        if self.dependent and moving:
            # A_d c_d = b - A c_prescribed
            a, dependent = self._matrix(q), list(self.dependent)
            c[dependent] = ca.solve(a[:, dependent], self._system.drift(q) - a @ c)
        return ca.densify(c)

    def stored_frame(self, q: ca.SX, frame: ca.SX | None = None) -> ca.SX:
        """The stored momenta (stored, nrho + prescribed) for unit components in a `frame`
        (nw, nv), by default the space's frame.
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
        """The local coordinates that are also stored velocities, with their indices among the
        stored velocities.
        """
        space = self._space
        flat: dict[int, int] = {}
        local = stored = 0
        for factor in space.factors if isinstance(space, Product) else (space,):
            if factor.nv == factor.nw:
                flat |= {local + i: stored + i for i in range(factor.nv)}
            local, stored = local + factor.nv, stored + factor.nw
        return flat


def dependent_rows(a: np.ndarray, tolerance: float | None = None) -> list[int]:
    """The rows of a matrix that depend linearly on previous rows, within a `tolerance` relative to
    the largest singular value (by default round-off). Columns and rows are divided by their
    largest entry, so their units do not matter.
    """
    for axis in (0, 1):
        largest = np.abs(a).max(axis=axis, keepdims=True, initial=0.0)
        a = a / np.where(largest > 0, largest, 1.0)
    # row k is dependent if the first k + 1 rows have the same rank as the first k rows
    values = (np.linalg.svd(a[:k], compute_uv=False) for k in range(1, len(a) + 1))
    least = max(a.shape) * np.finfo(float).eps if tolerance is None else tolerance
    ranks = [int((each > least * each.max(initial=0.0)).sum()) for each in values]
    return [k for k, rank in enumerate(ranks) if rank == (ranks[k - 1] if k else 0)]
