"""The configuration spaces R^n and SE(2), products of spaces, and the phase space over a space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import casadi as ca
import numpy as np

from nh_control.geometry import se2
from nh_control.geometry.space import Space as Space
from nh_control.geometry.space import StepGeometry as StepGeometry


class Rn(Space):
    """The vector space R^n with `retract(q, d) = q + d`, also for unwrapped angles. Tables and
    figures show the `units` of the coordinates: `Rn("heading", "x", units=("rad", "m"))`.
    """

    def __init__(self, *names: str, velocity_names: Sequence[str] = (), units: Sequence[str] = ()):
        if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
            raise ValueError(
                f"Rn: expected distinct coordinate names, got {names}; for example, R^2 is "
                f"Rn('x', 'y')"
            )
        self.names = tuple(names)
        if units and (isinstance(units, str) or len(units) != len(names)):
            raise ValueError(f"Rn: expected a unit for each of {names}, got units={units!r}")
        self._units = tuple(units)
        self.velocity_names = tuple(velocity_names) or tuple(f"{n}_dot" for n in self.names)
        if len(self.velocity_names) != len(self.names):
            raise ValueError(
                f"Rn: {len(self.names)} names {self.names} but {len(self.velocity_names)} "
                f"velocity names"
            )

    @property
    def units(self) -> dict[str, str]:
        return {name: unit for name, unit in zip(self.names, self._units) if unit}

    @property
    def origin(self) -> np.ndarray:
        return np.zeros(self.nq)

    def _retract(self, q: ca.SX, d: ca.SX) -> ca.SX:
        return q + d

    def _local(self, q0: ca.SX, q1: ca.SX) -> ca.SX:
        return q1 - q0

    def local_jacobians(self, q0: ca.SX, d: ca.SX) -> tuple[ca.SX, ca.SX]:
        eye = ca.SX.eye(self.nv)
        return -eye, eye

    def step_geometry(self, q0: ca.SX, d: ca.SX) -> StepGeometry:
        eye = ca.SX.eye(self.nv)
        return StepGeometry(
            q0 + d, q0 + d / 2, d, ca.vertcat(eye / 2, -eye), ca.vertcat(eye / 2, eye)
        )


class SE2(Space):
    """Planar poses (theta, x, y) with unwrapped theta. Tangent vectors are
    (rotation, forward, side) in the body frame.

    `retract(g, d) = g tau(d)`, where tau is one of `se2.RETRACTIONS`; midpoints use the
    exponential map. `local` is defined for relative rotations below 2 pi with exp, ccsk and sccsk,
    and below pi with cay.
    """

    def __init__(
        self,
        names: Sequence[str] = ("theta", "x", "y"),
        velocity_names: Sequence[str] = ("omega", "v_forward", "v_side"),
        retraction: str = "exp",
    ):
        if retraction not in se2.RETRACTIONS:
            raise ValueError(
                f"SE2: unknown retraction {retraction!r}, choose one of {sorted(se2.RETRACTIONS)}"
            )
        self.names, self.velocity_names = tuple(names), tuple(velocity_names)
        if len(self.names) != 3 or len(self.velocity_names) != 3:
            raise ValueError(
                f"SE2: needs three names and three velocity names, got {self.names} and "
                f"{self.velocity_names}"
            )
        self.retraction = se2.RETRACTIONS[retraction]

    @property
    def units(self) -> dict[str, str]:
        return dict(zip(self.names, ("rad", "m", "m")))

    @property
    def tangent_names(self) -> tuple[str, ...]:
        return self.names[0], "forward", "side"

    @property
    def origin(self) -> np.ndarray:
        return np.zeros(3)

    def _retract(self, q: ca.SX, d: ca.SX) -> ca.SX:
        return se2.compose(q, self.retraction.tau(d))

    def _local(self, q0: ca.SX, q1: ca.SX) -> ca.SX:
        return self.retraction.inverse(se2.between(q0, q1))

    def _middle(self, q0: ca.SX, d: ca.SX) -> ca.SX:
        # half of the screw motion: g0 exp(log(tau(d)) / 2)
        screw = d if self.retraction.name == "exp" else se2.log(self.retraction.tau(d))
        return se2.compose(q0, se2.exp(screw / 2))

    def local_jacobians(self, q0: ca.SX, d: ca.SX) -> tuple[ca.SX, ca.SX]:
        # d' = -dtau^{-1}_d e for g0 exp(e), d' = dtau^{-1}_d Ad_{tau(d)} e for g1 exp(e)
        dtau_inverse = self.retraction.dtau_inverse(d)
        return -dtau_inverse, dtau_inverse @ se2.adjoint(self.retraction.tau(d))


class Product(Space):
    """The Cartesian product of spaces, with their coordinates in order."""

    def __init__(self, *factors: Space):
        self.factors = factors
        self.names = tuple(n for f in factors for n in f.names)
        self.velocity_names = tuple(n for f in factors for n in f.velocity_names)
        for what, names in (("coordinate", self.names), ("velocity", self.velocity_names)):
            if len(set(names)) != len(names):
                raise ValueError(f"Product: {what} names must differ, got {names}")

    @property
    def tangent_names(self) -> tuple[str, ...]:
        return tuple(n for f in self.factors for n in f.tangent_names)

    @property
    def origin(self) -> np.ndarray:
        return np.concatenate([f.origin for f in self.factors])

    @property
    def units(self) -> dict[str, str]:
        return {name: unit for f in self.factors for name, unit in f.units.items()}

    def _split(self, q: ca.SX, d: ca.SX) -> Iterator[tuple[Space, ca.SX, ca.SX]]:
        i = j = 0
        for f in self.factors:
            yield f, q[i : i + f.nq], d[j : j + f.nv]
            i, j = i + f.nq, j + f.nv

    def _retract(self, q: ca.SX, d: ca.SX) -> ca.SX:
        return ca.vertcat(*(f._retract(qf, df) for f, qf, df in self._split(q, d)))

    def _local(self, q0: ca.SX, q1: ca.SX) -> ca.SX:
        out, i = [], 0
        for f in self.factors:
            out.append(f._local(q0[i : i + f.nq], q1[i : i + f.nq]))
            i += f.nq
        return ca.vertcat(*out)

    def local_jacobians(self, q0: ca.SX, d: ca.SX) -> tuple[ca.SX, ca.SX]:
        blocks = [f.local_jacobians(qf, df) for f, qf, df in self._split(q0, d)]
        return ca.diagcat(*(b[0] for b in blocks)), ca.diagcat(*(b[1] for b in blocks))

    def step_geometry(self, q0: ca.SX, d: ca.SX) -> StepGeometry:
        parts = [f.step_geometry(qf, df) for f, qf, df in self._split(q0, d)]
        j0 = _stack([(f.nq, p.j0) for f, p in zip(self.factors, parts)])
        j1 = _stack([(f.nq, p.j1) for f, p in zip(self.factors, parts)])
        return StepGeometry(
            ca.vertcat(*(p.q1 for p in parts)),
            ca.vertcat(*(p.middle for p in parts)),
            ca.vertcat(*(p.w for p in parts)),
            j0,
            j1,
        )

    def frame(self, q: ca.SX, near: ca.SX | None = None) -> ca.SX:
        frames, i = [], 0
        for f in self.factors:
            part = slice(i, i + f.nq)
            frames.append(f.frame(q[part], None if near is None else near[part]))
            i += f.nq
        return ca.diagcat(*frames)

    def along(self, q: ca.SX, w: ca.SX) -> ca.SX:
        out, i, j = [], 0, 0
        for f in self.factors:
            out.append(f.along(q[i : i + f.nq], w[j : j + f.nw]))
            i, j = i + f.nq, j + f.nw
        return ca.vertcat(*out)

    def transport(self, q0: ca.SX, q1: ca.SX, w: ca.SX) -> ca.SX:
        out, i, j = [], 0, 0
        for f in self.factors:
            out.append(f.transport(q0[i : i + f.nq], q1[i : i + f.nq], w[j : j + f.nw]))
            i, j = i + f.nq, j + f.nw
        return ca.vertcat(*out)


class PhaseSpace(Space):
    """The phase space of states (q, p) over a space, with momenta stored like velocities. The
    local coordinates are (dq, dp), with nv numbers each:
    `retract((q, p), (dq, dp)) = (q1, transport(q, q1, p + frame(q) dp))` with
    `q1 = retract(q, dq)`. States do not contain the momenta at the indices `dropped` (which belong
    to factors with nw = nv), and tangent vectors do not contain the coordinates at the indices
    `dropped_local`.
    """

    def __init__(
        self,
        base: Space,
        momentum_names: Sequence[str],
        local_names: Sequence[str],
        dropped: Sequence[int] = (),
        dropped_local: Sequence[int] = (),
    ):
        self.base = base
        self._stored = [i for i in range(base.nw) if i not in dropped]
        self._local_indices = [i for i in range(base.nv) if i not in dropped_local]
        stored_names = tuple(momentum_names[i] for i in self._stored)
        self.names = (*base.names, *stored_names)
        self.velocity_names = (*base.velocity_names, *(f"{n}_dot" for n in stored_names))
        self._tangent_names = (
            *base.tangent_names,
            *(local_names[i] for i in self._local_indices),
        )

    @property
    def tangent_names(self) -> tuple[str, ...]:
        return self._tangent_names

    @property
    def origin(self) -> np.ndarray:
        return np.concatenate([self.base.origin, np.zeros(len(self._stored))])

    def _retract(self, x: ca.SX, dx: ca.SX) -> ca.SX:
        # p1 = transport(q, q1, p + F dp)
        q, p = x[: self.base.nq], x[self.base.nq :]
        q1 = self.base._retract(q, dx[: self.base.nv])
        p1 = p + self._frame(q) @ dx[self.base.nv :]
        return ca.vertcat(q1, self._transport(q, q1, p1))

    def _local(self, x0: ca.SX, x1: ca.SX) -> ca.SX:
        n = self.base.nq
        # dp = frame(q0)^T (transport(q1, q0, p1) - p0)
        dp = self._transport(x1[:n], x0[:n], x1[n:]) - x0[n:]
        return ca.vertcat(self.base._local(x0[:n], x1[:n]), self._frame(x0[:n]).T @ dp)

    def _frame(self, q: ca.SX) -> ca.SX:
        return self.base.frame(q)[self._stored, self._local_indices]

    def _transport(self, q0: ca.SX, q1: ca.SX, p: ca.SX) -> ca.SX:
        # dropped momenta are zero
        full = ca.SX(self.base.nw, 1)
        full[self._stored] = p
        return self.base.transport(q0, q1, full)[self._stored]


def _stack(blocks: Sequence[tuple[int, ca.SX]]) -> ca.SX:
    """The block-diagonal matrix of the upper parts (first nq rows) of all blocks, stacked on the
    block-diagonal matrix of their lower parts.
    """
    return ca.vertcat(
        ca.diagcat(*(b[:n, :] for n, b in blocks)), ca.diagcat(*(b[n:, :] for n, b in blocks))
    )
