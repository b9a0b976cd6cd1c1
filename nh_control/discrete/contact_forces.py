"""The forces of contacts and grips in a step, with their gaps, slips and margins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.method import ContactUnknowns, StepSymbols
from nh_control.discrete.system import DiscreteSystem
from nh_control.mechanics.contact_rows import ContactRows
from nh_control.mechanics.system import System

SLIDES = 0.005
"""Margin of the friction cone below which a contact counts as sliding. A contact that sticks with
this margin creeps a hundred times as fast as with half of its friction.
"""
_COLUMNS = {
    "normal": slice(0, 1),
    "friction": slice(1, 3),
    "gap": slice(3, 4),
    "slip": slice(4, 6),
    "margin": slice(6, 7),
    "position": slice(7, 10),
    "force": slice(10, 13),
}
_WIDTH = 13


class ContactForce(NamedTuple):
    """Mean force of a contact over a step: along the normal (N, 0 of a grip) and along its k
    tangents (k, N), the `gap` (m) at the step's end (NaN of a grip), the `slip` (k, m/s) and the
    margin of its friction cone, `1 - |friction| / bound`: 0 where it slides, NaN without friction.
    The `position` (3, m) of the contact at the step's start and the `force` (3, N) there in the
    world's axes are NaN for contacts that declare no `place`.
    """

    normal: float
    friction: np.ndarray
    gap: float
    slip: np.ndarray
    margin: float
    position: np.ndarray
    force: np.ndarray

    @property
    def slides(self) -> bool:
        """Whether friction is at its bound."""
        return self.margin < SLIDES


@dataclass(frozen=True)
class ContactTable:
    """The contacts `names` (n) over N steps: normal forces (N, n), friction (N, n, 2) along the
    tangents, gaps (N, n), slips (N, n, 2), margins (N, n), positions and forces (N, n, 3) in the
    world, as in `ContactForce`; unused tangents have zeros.
    """

    names: tuple[str, ...]
    normal: np.ndarray
    friction: np.ndarray
    gap: np.ndarray
    slip: np.ndarray
    margin: np.ndarray
    position: np.ndarray
    force: np.ndarray

    @property
    def slides(self) -> np.ndarray:
        """Which contacts slide in which steps, (N, n)."""
        return self.margin < SLIDES

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The columns by their names in results, `contact_normal`, ..."""
        columns = {f"contact_{name}": getattr(self, name) for name in _COLUMNS}
        return {"contact_names": np.array(self.names), **columns}


class ContactReadout:
    """Reads the contacts of a discrete system's steps. Raises ValueError for a system without
    contacts and grips.
    """

    def __init__(self, dsys: DiscreteSystem):
        contacts = dsys.method.contacts
        if contacts is None:
            raise ValueError(f"{dsys}: the system declares no contacts and no grips")
        self.dsys, self._contacts = dsys, contacts
        self._rows = ContactRows(dsys.system.mechanics)
        self.names = self._rows.names

    def __repr__(self) -> str:
        return f"ContactReadout({self.dsys}, {self.names})"

    def __call__(self, x: ArrayLike, u: ArrayLike = ()) -> dict[str, ContactForce]:
        """Contacts of the step from x (nx) under u (nu), by name; raises as `step` does."""
        return self.solved(x, u, self.dsys.unknowns(x, u))

    def solved(self, x: ArrayLike, u: ArrayLike, z: ArrayLike) -> dict[str, ContactForce]:
        """Contacts by name of the step from x (nx) under u (nu) that the unknowns z (nz) solve."""
        table = self._table(*(np.reshape(row, (1, -1)) for row in (x, u, z)))
        fields = [getattr(table, name)[0] for name in _COLUMNS]
        return {
            name: self._one(block.k, *(column[i] for column in fields))
            for i, (name, block) in enumerate(zip(self.names, self._contacts.blocks))
        }

    def table(self, states: ArrayLike, inputs: ArrayLike) -> ContactTable:
        """Contacts of the steps from states (N, nx) under inputs (N, nu); raises as `step`."""
        dsys, x, u = self.dsys, np.asarray(states, float), np.asarray(inputs, float)
        z = np.reshape([dsys.unknowns(*row) for row in zip(x, u)], (len(x), dsys.method.nz))
        return self._table(x, u, z)

    def _table(self, x: np.ndarray, u: np.ndarray, z: np.ndarray) -> ContactTable:
        """Contacts of the steps from states x (N, nx) under u (N, nu) that z (N, nz) solve."""
        dsys = self.dsys
        arguments = (x.T, u.T, z.T, np.full((1, len(x)), dsys.h))
        p = np.tile(dsys.system.parameter_values[:, None], len(x))
        shape = len(x), len(self.names), _WIDTH
        rows = (
            np.asarray(self._read(*arguments, p)).T.reshape(shape) if len(x) else np.empty(shape)
        )
        columns = {
            name: rows[:, :, place.start] if place.stop == place.start + 1 else rows[:, :, place]
            for name, place in _COLUMNS.items()
        }
        return ContactTable(self.names, **columns)

    def velocities(self, states: ArrayLike, inputs: ArrayLike) -> np.ndarray:
        """Velocities (N, nw) of the momenta `p + J^T x / 2` at states (N, nx), with half of the
        impulses x at the first nodes of the steps under inputs (N, nu). Raises as `step` does.

        A state has the momentum before the impulse: at rest, its `velocity` is the velocity after
        half a step of free fall, while this velocity is zero. Without contact both are the same.
        """
        dsys, u = self.dsys, np.asarray(inputs, float)
        halfway, first = np.array(states, dtype=float), self._contacts.first
        n, nq = self._rows.n_impulses, dsys.system.space.nq
        for x, row in zip(halfway, u):
            impulses = dsys.unknowns(x, row)[first : first + n]
            made = self._impulse(x[:nq], impulses, dsys.system.parameter_values)
            momenta = x[nq : nq + dsys.system.nrho]
            momenta += np.asarray(made)[:, 0] / 2
        return np.reshape([dsys.velocity(x) for x in halfway], (len(u), dsys.system.space.nw))

    @cached_property
    def _impulse(self) -> ca.Function:
        """The change of the momenta, J^T x (nrho), by impulses x at q."""
        system = self.dsys.system
        q, x = ca.SX.sym("q", system.space.nq), ca.SX.sym("x", self._rows.n_impulses)
        made = ca.densify(self._rows.impulse(q, x))
        return ca.Function("impulse", [q, x, system.parameter_symbols], [made])

    def _one(self, k: int, *columns: np.ndarray) -> ContactForce:
        normal, friction, gap, slip, margin, position, force = columns
        numbers = float(normal), friction[:k], float(gap), slip[:k], float(margin)
        return ContactForce(*numbers, position, force)

    @cached_property
    def _read(self) -> ca.Function:
        """All columns (_WIDTH n) of a step, as a function of x, u, z, h and the parameters."""
        dsys, system, rows = self.dsys, self.dsys.system, self._rows
        sizes = {"x": dsys.nx, "u": dsys.nu, "z": dsys.method.nz, "h": 1}
        x, u, z, h = symbols = [ca.SX.sym(name, n) for name, n in sizes.items()]
        nq, p = system.space.nq, system.parameter_symbols
        step = StepSymbols(x[:nq], x[nq:], u, z, h, system.mechanics.gradients)
        q1, _ = dsys.method.readout(step)
        blocks = zip(
            _forces(self._contacts, step), ca.vertsplit(rows.gaps(q1)), rows.places(x[:nq])
        )
        made = [_columns(force, gap, place) for force, gap, place in blocks]
        return ca.Function("contacts", [*symbols, p], [ca.densify(ca.vertcat(*made))])


class _Force(NamedTuple):
    """Expressions of a block: forces (N) along its normal, 0 of a grip, and its tangents (k), the
    slip (k, m/s) and the largest friction (N).
    """

    normal: ca.SX
    friction: ca.SX
    slip: ca.SX
    bound: ca.SX
    is_grip: bool


def _forces(contacts: ContactUnknowns, step: StepSymbols) -> Iterator[_Force]:
    """The forces of all blocks: impulses over h."""
    h, w = step.h, contacts.velocities(step)
    x = step.z[contacts.first : contacts.first + w.shape[0]] / h
    friction, bound = ca.vertsplit(contacts.coefficients(step), len(contacts.blocks))
    for i, (normal, t, k, _) in enumerate(contacts.blocks):
        lam = x[normal] if normal >= 0 else ca.SX(0)
        largest = friction[i] * lam + bound[i] / h
        g, s = (x[t : t + k], w[t : t + k]) if k else (ca.SX(0, 1), ca.SX(0, 1))
        yield _Force(lam, g, s, largest, normal < 0)


def _columns(force: _Force, gap: ca.SX, place: ca.SX) -> ca.SX:
    """The columns (_WIDTH) of one block."""
    k = force.friction.shape[0]
    unused = ca.SX(2 - k, 1)
    margin = 1 - ca.norm_2(force.friction) / force.bound if k else ca.SX(np.nan)
    acting = force.friction if force.is_grip else ca.vertcat(force.normal, force.friction)
    return ca.vertcat(
        *(force.normal, force.friction, unused, gap, force.slip, unused, margin),
        *(place[:, 0], place[:, 1:] @ acting),
    )


class ContactPlaces:
    """Positions (m) in the world of the contacts and grips of a system that have a place, by name,
    at configurations q (nq).
    """

    def __init__(self, system: System):
        rows, q, p = ContactRows(system.mechanics), system.symbols[0], system.parameter_symbols
        self.names = tuple(rows.placed)
        places = rows.places(q) if rows.placed else []
        positions = [ca.SX(3, 0), *(places[i][:, 0] for i in rows.placed.values())]
        self._read = ca.Function("places", [q, p], [ca.horzcat(*positions)])
        self._p = system.parameter_values

    def __call__(self, q: ArrayLike) -> dict[str, np.ndarray]:
        """Positions (3) by name."""
        return dict(zip(self.names, np.asarray(self._read(np.asarray(q, float), self._p)).T))


def contact_forces(
    dsys: DiscreteSystem, x: ArrayLike, u: ArrayLike = ()
) -> dict[str, ContactForce]:
    """Forces `impulse / h` of the step from the state x (nx) under the input u (nu), by the names
    of contacts and grips (`grip_1`, ... without a name). `ContactReadout(dsys)` reads many steps.

    They act at the step's first node, so that the first step of a body that is put down at rest
    has half of its weight. Raises ValueError for a system without contacts, and as `step` does.
    """
    return ContactReadout(dsys)(x, u)
