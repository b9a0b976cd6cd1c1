"""Configuration spaces: a retraction from tangent vectors to configurations, and its inverse."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import casadi as ca
import numpy as np

from nh_control.numerics.expressions import Vector


@dataclass(frozen=True)
class StepGeometry:
    """The step d from q0: its end `q1` (nq), its `middle` (nq) and its displacement `w` (nw). The
    mean velocity of a step of size h is `w / h`; it is a velocity at the middle. `j0` and `j1`
    (nq + nw, nv) are the Jacobians of (middle, w) along trivialized variations of q0 and of q1.

    With them the discrete momenta of `Ld = h L(middle, w / h)` are `-j0^T dL`, `j1^T dL`.
    """

    q1: ca.SX
    middle: ca.SX
    w: ca.SX
    j0: ca.SX
    j1: ca.SX


class Space(ABC):
    """A configuration manifold with a retraction `q1 = retract(q0, d)` and its inverse
    `d = local(q0, q1)`: `retract(q, 0) = q`, `local(q, retract(q, d)) = d`.

    A configuration is stored as `nq` numbers named `names`. A tangent vector d has `nv` numbers
    named `tangent_names`: coordinates of Rn, components in the body frame of a Lie group, or in an
    orthonormal frame at q0 on a sphere. Velocities and momenta are stored as `nw` numbers named
    `velocity_names`, smooth on the whole manifold: `v = frame(q) d`. Except on spheres nw = nv and
    the frame is the identity. `retract` and `local` take CasADi expressions (and return one) or
    arrays (and return an array).
    """

    names: tuple[str, ...]
    velocity_names: tuple[str, ...]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.names)})"

    @property
    def nq(self) -> int:
        """Number of stored numbers of a configuration."""
        return len(self.names)

    @property
    def nv(self) -> int:
        """Dimension of the manifold."""
        return len(self.tangent_names)

    @property
    def nw(self) -> int:
        """Number of stored numbers of a velocity."""
        return len(self.velocity_names)

    @property
    def tangent_names(self) -> tuple[str, ...]:
        """Names of the nv local coordinates, `local(q0, q1)`."""
        return self.names

    @property
    @abstractmethod
    def origin(self) -> np.ndarray:
        """A configuration of the space, shape (nq,)."""

    @abstractmethod
    def _retract(self, q: ca.SX, d: ca.SX) -> ca.SX: ...

    @abstractmethod
    def _local(self, q0: ca.SX, q1: ca.SX) -> ca.SX: ...

    def local_jacobians(self, q0: ca.SX, d: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Jacobians of `local(q0, q1)` at `q1 = retract(q0, d)` along trivialized variations of q0
        and of q1, (nv, nv) each.

        The default differentiates at the origin: on a Lie group they do not depend on q0.
        """
        return self._local_jacobians(ca.SX(self.origin), d)

    def _local_jacobians(self, q0: ca.SX, d: ca.SX) -> tuple[ca.SX, ca.SX]:
        e, d_ = ca.SX.sym("e", self.nv), ca.SX.sym("d", self.nv)
        end = self._retract(q0, d_)
        varied = self._local(self._retract(q0, e), end), self._local(q0, self._retract(end, e))
        j0, j1 = (ca.jacobian(local, e) for local in varied)
        symbols, values = ca.vertcat(e, d_), ca.vertcat(ca.SX.zeros(self.nv), d)
        return ca.substitute(j0, symbols, values), ca.substitute(j1, symbols, values)

    def step_geometry(self, q0: ca.SX, d: ca.SX) -> StepGeometry:
        """Geometry of the step d from q0; the default has `w = d`."""
        j0, j1 = self.local_jacobians(q0, d)
        e = ca.SX.sym("e", self.nv)
        # a variation e of q0 or q1 changes d by j0 e or j1 e, and with it the middle
        varied = self._middle(self._retract(q0, e), d + j0 @ e), self._middle(q0, d + j1 @ e)
        m0, m1 = (ca.substitute(ca.jacobian(m, e), e, ca.SX.zeros(self.nv)) for m in varied)
        return StepGeometry(
            self._retract(q0, d), self._middle(q0, d), d, ca.vertcat(m0, j0), ca.vertcat(m1, j1)
        )

    def _middle(self, q0: ca.SX, d: ca.SX) -> ca.SX:
        """Middle of the step d from q0; the step back has the same middle. The default is for
        retractions whose curves `retract(q0, t d)` are geodesics.
        """
        return self._retract(q0, d / 2)

    def frame(self, q: ca.SX, near: ca.SX | None = None) -> ca.SX:
        """Matrix F(q) (nw, nv) of the velocity `v = F d` of a tangent vector d; its columns are
        orthonormal. Frames `near` a configuration (nq) are smooth in q about it.
        """
        return ca.SX.eye(self.nv)

    def along(self, q: ca.SX, w: ca.SX) -> ca.SX:
        """Configuration (nq) reached from q along the stored velocity w (nw) in unit time,
        `along(q, frame(q) d) = retract(q, d)`.
        """
        return self._retract(q, w)

    def transport(self, q0: ca.SX, q1: ca.SX, w: ca.SX) -> ca.SX:
        """Parallel transport of a stored velocity or momentum w (nw) from q0 to q1."""
        return w

    @overload
    def retract(self, q: ca.SX, d: ca.SX) -> ca.SX: ...

    @overload
    def retract(self, q: Vector, d: Vector) -> np.ndarray: ...

    def retract(self, q: Any, d: Any) -> Any:
        """Configuration (nq) reached from `q` (nq) along the tangent vector `d` (nv). With tables
        (N, nq) or (N, nv) for one or both of them the result is (N, nq).
        """
        if _symbolic(q, d):
            return self._retract(q, d)
        return _evaluate(self._functions["retract"], (q, self.nq), (d, self.nv))

    @overload
    def local(self, q0: ca.SX, q1: ca.SX) -> ca.SX: ...

    @overload
    def local(self, q0: Vector, q1: Vector) -> np.ndarray: ...

    def local(self, q0: Any, q1: Any) -> Any:
        """Tangent vector (nv) with `retract(q0, local(q0, q1)) = q1`. With tables (N, nq) for one
        or both of them the result is (N, nv).
        """
        if _symbolic(q0, q1):
            return self._local(q0, q1)
        return _evaluate(self._functions["local"], (q0, self.nq), (q1, self.nq))

    def velocity(self, q0: Vector, q1: Vector) -> np.ndarray:
        """Velocity (nw) at `q0` (nq) that leads to `q1` (nq) in unit time,
        `frame(q0) local(q0, q1)`.
        """
        return _evaluate(self._functions["velocity"], (q0, self.nq), (q1, self.nq))

    @cached_property
    def coordinate_change(self) -> ca.Function:
        """`C(q0, q1) = d local(q0, retract(q1, d)) / dd` (nv, nv) at d = 0: from local coordinates
        about q1 to those about q0.
        """
        q0, q1, d = ca.SX.sym("q0", self.nq), ca.SX.sym("q1", self.nq), ca.SX.sym("d", self.nv)
        slope = ca.jacobian(self._local(q0, self._retract(q1, d)), d)
        at_rest = ca.substitute(slope, d, ca.SX.zeros(self.nv))
        return ca.Function("coordinate_change", [q0, q1], [at_rest])

    @cached_property
    def _functions(self) -> dict[str, ca.Function]:
        q, q1, d = ca.SX.sym("q", self.nq), ca.SX.sym("q1", self.nq), ca.SX.sym("d", self.nv)
        return {
            "retract": ca.Function("retract", [q, d], [self._retract(q, d)]),
            "local": ca.Function("local", [q, q1], [self._local(q, q1)]),
            "velocity": ca.Function("velocity", [q, q1], [self.frame(q) @ self._local(q, q1)]),
        }


def _symbolic(*args: object) -> bool:
    return any(isinstance(a, (ca.SX, ca.MX)) for a in args)


def _evaluate(function: ca.Function, *args: tuple[Vector, int]) -> np.ndarray:
    """The function of vectors, or row by row of tables (N, n) in one call; a vector is used for
    every row.
    """
    arrays, rows = [], set()
    for i, (value, size) in enumerate(args):
        value = np.asarray(value, dtype=float)
        if value.ndim not in (1, 2) or value.shape[-1] != size:
            raise ValueError(
                f"{function.name()}: argument {i + 1} must have shape ({size},) or (N, {size}), "
                f"got {value.shape}"
            )
        rows |= {len(value)} if value.ndim == 2 else set()
        arrays.append(value.T)
    if not rows:
        return np.asarray(function(*arrays)).reshape(-1)
    if len(rows) > 1:
        raise ValueError(
            f"{function.name()}: tables must have equally many rows, got {sorted(rows)}"
        )
    if 0 in rows:  # CasADi takes a matrix of no columns for the number 0
        return np.empty((0, function.size1_out(0)))
    return np.asarray(function(*arrays)).T
