"""Forces, gaps, slip velocities and friction margins of the contacts and grips in a step."""

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
"""Friction margin below which a contact counts as sliding. A sticking contact with this margin
creeps a hundred times as fast as a contact that uses half of its friction bound.
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
    """The mean force of a contact over a step, along its normal (N; 0 for a grip) and its k
    tangents (k, N), the `gap` (m) at the end of the step (NaN for a grip), the `slip` velocity (k,
    m/s) and the friction margin `1 - |friction| / bound`. The margin is 0 for a sliding contact
    and NaN without friction.

    The contact's `position` (3, m) at the beginning of the step and the `force` (3, N) at this
    position are in world axes. They are NaN for contacts that declare no `place`.
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
        """Whether the friction reaches its bound."""
        return self.margin < SLIDES


@dataclass(frozen=True)
class ContactTable:
    """Results for the contacts `names` (n) over N steps (see `ContactForce`): normal forces
    (N, n), friction (N, n, 2) along the tangents, gaps (N, n), slip velocities (N, n, 2), friction
    margins (N, n), positions and forces (N, n, 3) in world axes. The entries for unused tangents
    are zero.
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
        """Whether each contact slides in each step (N, n)."""
        return self.margin < SLIDES

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The columns by their names in result files: `contact_normal`, ..."""
        columns = {f"contact_{name}": getattr(self, name) for name in _COLUMNS}
        return {"contact_names": np.array(self.names), **columns}

    def contact(self, step: int, i: int, k: int) -> ContactForce:
        """Contact i, which has k tangents, in a step."""
        return ContactForce(
            normal=float(self.normal[step, i]),
            friction=self.friction[step, i, :k],
            gap=float(self.gap[step, i]),
            slip=self.slip[step, i, :k],
            margin=float(self.margin[step, i]),
            position=self.position[step, i],
            force=self.force[step, i],
        )


class ContactReadout:
    """Computes the contact forces in the steps of a discrete system. Raises ValueError for a
    system that has neither contacts nor grips.
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
        """The contacts in the step from x (nx) under u (nu), by name; raises the same errors as
        `step`.
        """
        return self.solved(x, u, self.dsys.unknowns(x, u))

    def solved(self, x: ArrayLike, u: ArrayLike, z: ArrayLike) -> dict[str, ContactForce]:
        """The contacts, by name, in the step from x (nx) under u (nu) with the solution z (nz)."""
        rows = (np.reshape(vector, (1, -1)) for vector in (x, u, z))
        x, u, z = rows
        table = self._table(x, u, z)
        return {
            name: table.contact(0, i, block.k)
            for i, (name, block) in enumerate(zip(self.names, self._contacts.blocks))
        }

    def table(self, states: ArrayLike, inputs: ArrayLike) -> ContactTable:
        """The contacts in the steps from states (N, nx) under inputs (N, nu); raises as `step`
        does.
        """
        dsys, x, u = self.dsys, np.asarray(states, float), np.asarray(inputs, float)
        solutions = [dsys.unknowns(x_k, u_k) for x_k, u_k in zip(x, u)]
        z = np.reshape(solutions, (len(x), dsys.method.nz))
        return self._table(x, u, z)

    def _table(self, x: np.ndarray, u: np.ndarray, z: np.ndarray) -> ContactTable:
        """The contacts in the steps from x (N, nx) under u (N, nu) with the solutions z
        (N, nz).
        """
        dsys = self.dsys
        h = np.full((1, len(x)), dsys.h)
        p = np.tile(dsys.system.parameter_values[:, None], len(x))
        shape = len(x), len(self.names), _WIDTH
        # one call for all steps: CasADi maps a function over the columns of its arguments
        rows = np.empty(shape)
        if len(x):
            rows = np.asarray(self._read(x.T, u.T, z.T, h, p)).T.reshape(shape)
        columns = {
            name: rows[:, :, place.start] if place.stop == place.start + 1 else rows[:, :, place]
            for name, place in _COLUMNS.items()
        }
        return ContactTable(self.names, **columns)

    def velocities(self, states: ArrayLike, inputs: ArrayLike) -> np.ndarray:
        """Velocities (N, nw) for the momenta `p + J^T x / 2` at states (N, nx), where x are the
        contact impulses at the first nodes of the steps under inputs (N, nu). Raises the same
        errors as `step`.

        A state contains the momentum before the impulse. Therefore, the `velocity` of a body that
        rests on a contact is the velocity after half a step of free fall, whereas the velocity
        computed here is zero. Without contact, both velocities are equal.
        """
        dsys, u = self.dsys, np.asarray(inputs, float)
        halfway, first = np.array(states, dtype=float), self._contacts.first
        n, nq = self._rows.n_impulses, dsys.system.space.nq
        for x, row in zip(halfway, u):
            impulses = dsys.unknowns(x, row)[first : first + n]
            change = self._impulse(x[:nq], impulses, dsys.system.parameter_values)
            # p + J^T x / 2, in place
            momenta = x[nq : nq + dsys.system.nrho]
            momenta += np.asarray(change)[:, 0] / 2
        return np.reshape([dsys.velocity(x) for x in halfway], (len(u), dsys.system.space.nw))

    @cached_property
    def _impulse(self) -> ca.Function:
        """The change J^T x (nrho) of the momenta due to impulses x at q."""
        system = self.dsys.system
        q, x = ca.SX.sym("q", system.space.nq), ca.SX.sym("x", self._rows.n_impulses)
        change = ca.densify(self._rows.impulse(q, x))
        return ca.Function("impulse", [q, x, system.parameter_symbols], [change])

    @cached_property
    def _read(self) -> ca.Function:
        """The columns (_WIDTH n) for all contacts as a function of x, u, z, h and the
        parameters.
        """
        dsys, system, rows = self.dsys, self.dsys.system, self._rows
        sizes = {"x": dsys.nx, "u": dsys.nu, "z": dsys.method.nz, "h": 1}
        x, u, z, h = symbols = [ca.SX.sym(name, n) for name, n in sizes.items()]
        nq, p = system.space.nq, system.parameter_symbols
        step = StepSymbols(x[:nq], x[nq:], u, z, h, system.mechanics.gradients)
        # gaps at the end of the step, places at the beginning
        q1, _ = dsys.method.readout(step)
        blocks = zip(
            _forces(self._contacts, step), ca.vertsplit(rows.gaps(q1)), rows.places(x[:nq])
        )
        columns = [_columns(force, gap, place) for force, gap, place in blocks]
        return ca.Function("contacts", [*symbols, p], [ca.densify(ca.vertcat(*columns))])


class _Force(NamedTuple):
    """Expressions for a block: the forces (N) along the normal (0 for a grip) and the tangents
    (k), the slip velocity (k, m/s) and the friction bound (N).
    """

    normal: ca.SX
    friction: ca.SX
    slip: ca.SX
    bound: ca.SX
    is_grip: bool


def _forces(contacts: ContactUnknowns, step: StepSymbols) -> Iterator[_Force]:
    """The forces of all blocks, which are impulses divided by h."""
    h, w = step.h, contacts.velocities(step)
    # impulses / h are mean forces
    x = step.z[contacts.first : contacts.first + w.shape[0]] / h
    # coefficients of all blocks, then their bounds
    friction, bound = ca.vertsplit(contacts.coefficients(step), len(contacts.blocks))
    for i, (normal, t, k, _) in enumerate(contacts.blocks):
        lam = x[normal] if normal >= 0 else ca.SX(0)
        # Coulomb friction and a constant bound: |g| <= mu lam + b / h
        largest = friction[i] * lam + bound[i] / h
        g, s = (x[t : t + k], w[t : t + k]) if k else (ca.SX(0, 1), ca.SX(0, 1))
        yield _Force(lam, g, s, largest, normal < 0)


def _columns(force: _Force, gap: ca.SX, place: ca.SX) -> ca.SX:
    """The columns (_WIDTH) for one block."""
    k = force.friction.shape[0]
    unused = ca.SX(2 - k, 1)
    margin = 1 - ca.norm_2(force.friction) / force.bound if k else ca.SX(np.nan)
    # components along the axes of the place: the normal, then the tangents
    acting = force.friction if force.is_grip else ca.vertcat(force.normal, force.friction)
    return ca.vertcat(
        force.normal,
        force.friction,
        unused,
        gap,
        force.slip,
        unused,
        margin,
        place[:, 0],
        place[:, 1:] @ acting,
    )


class ContactPlaces:
    """World positions (m), by name, of a system's contacts and grips that declare a place, at a
    configuration q (nq).
    """

    def __init__(self, system: System):
        rows, q, p = ContactRows(system.mechanics), system.symbols[0], system.parameter_symbols
        self.names = tuple(rows.placed)
        places = rows.places(q) if rows.placed else []
        positions = [ca.SX(3, 0), *(places[i][:, 0] for i in rows.placed.values())]
        self._read = ca.Function("places", [q, p], [ca.horzcat(*positions)])
        self._p = system.parameter_values

    def __call__(self, q: ArrayLike) -> dict[str, np.ndarray]:
        """The positions (3), by name."""
        return dict(zip(self.names, np.asarray(self._read(np.asarray(q, float), self._p)).T))


def contact_forces(
    dsys: DiscreteSystem, x: ArrayLike, u: ArrayLike = ()
) -> dict[str, ContactForce]:
    """The forces `impulse / h` in the step from the state x (nx) under the input u (nu), by the
    names of the contacts and grips (`grip_1`, ... if unnamed). For many steps, use
    `ContactReadout`.

    The impulses act at the first node of the step. Therefore, the first step of a body that is
    placed at rest shows half of the body's weight. Raises ValueError for a system without
    contacts, and the same errors as `step`.
    """
    return ContactReadout(dsys)(x, u)
