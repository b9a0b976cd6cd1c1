"""What a configuration space is: how a tangent vector moves a configuration, and which tangent
vector joins two configurations.
"""

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
    """One step d from q0: its end `q1` (nq), its middle (nq), the mean velocity times the step `w`
    (nw) at the middle, and the derivatives (nq + nw, nv) of (middle, w) along trivialized
    variations of q0 and of q1."""

    q1: ca.SX
    middle: ca.SX
    w: ca.SX
    j0: ca.SX
    j1: ca.SX


class Space(ABC):
    """A configuration manifold with a retraction `q1 = retract(q0, d)` and its inverse
    `d = local(q0, q1)`.

    Configurations are stored with `nq` numbers named `names`, tangent vectors d with `nv` numbers
    named `tangent_names`: plain coordinates for Rn, the body frame for a Lie group, an orthonormal
    frame at q0 for a sphere. `retract(q, 0) = q`, `local(q, retract(q, d)) = d`. Both take CasADi
    expressions (and return one) or arrays (and return an array). Velocities and momenta are stored
    with `nw` numbers named
    `velocity_names`, in a form that is smooth on the whole manifold: `v = frame(q) d`; except on
    spheres nw = nv and the frame is the identity.
    """

    names: tuple[str, ...]
    velocity_names: tuple[str, ...]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.names)})"

    @property
    def nq(self) -> int:
        """Numbers that store a configuration."""
        return len(self.names)

    @property
    def nv(self) -> int:
        """Dimension of the manifold."""
        return len(self.tangent_names)

    @property
    def nw(self) -> int:
        """Numbers that store a velocity."""
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
        """Derivatives of `local(q0, q1)` at `q1 = retract(q0, d)` along trivialized variations of
        q0 and of q1, (nv, nv) each.

        Unless a space knows better they are derived for a Lie group, where they do not depend on
        q0.
        """
        return self._local_jacobians(ca.SX(self.origin), d)

    def _local_jacobians(self, q0: ca.SX, d: ca.SX) -> tuple[ca.SX, ca.SX]:
        e, d_ = ca.SX.sym("e", self.nv), ca.SX.sym("d", self.nv)
        end = self._retract(q0, d_)
        moved = self._local(self._retract(q0, e), end), self._local(q0, self._retract(end, e))
        slopes = [ca.jacobian(m, e) for m in moved]
        at, here = ca.vertcat(e, d_), ca.vertcat(ca.SX.zeros(self.nv), d)
        return ca.substitute(slopes[0], at, here), ca.substitute(slopes[1], at, here)

    def step_geometry(self, q0: ca.SX, d: ca.SX) -> StepGeometry:
        """Geometry of the step d from q0; unless a space knows better `w = d`."""
        j0, j1 = self.local_jacobians(q0, d)
        e = ca.SX.sym("e", self.nv)
        moved = self._middle(self._retract(q0, e), d + j0 @ e), self._middle(q0, d + j1 @ e)
        m0, m1 = (ca.substitute(ca.jacobian(m, e), e, ca.SX.zeros(self.nv)) for m in moved)
        return StepGeometry(
            self._retract(q0, d), self._middle(q0, d), d, ca.vertcat(m0, j0), ca.vertcat(m1, j1)
        )

    def _middle(self, q0: ca.SX, d: ca.SX) -> ca.SX:
        """Middle of the step d from q0; it must be the middle of the way back, too: here for
        retractions whose curves `retract(q0, t d)` are geodesics.
        """
        return self._retract(q0, d / 2)

    def frame(self, q: ca.SX) -> ca.SX:
        """Velocities of the unit local coordinates at q, (nw, nv), orthonormal columns."""
        return ca.SX.eye(self.nv)

    def transport(self, q0: ca.SX, q1: ca.SX, w: ca.SX) -> ca.SX:
        """The stored velocity or momentum w (nw) at q0 carried to q1."""
        return w

    @overload
    def retract(self, q: ca.SX, d: ca.SX) -> ca.SX: ...

    @overload
    def retract(self, q: Vector, d: Vector) -> np.ndarray: ...

    def retract(self, q: Any, d: Any) -> Any:
        """Configuration reached from `q` (nq) along the tangent vector `d` (nv); (N, nq) where
        one of them, or both, are tables, (N, nq) and (N, nv).
        """
        if _symbolic(q, d):
            return self._retract(q, d)
        return _evaluate(self._functions["retract"], (q, self.nq), (d, self.nv))

    @overload
    def local(self, q0: ca.SX, q1: ca.SX) -> ca.SX: ...

    @overload
    def local(self, q0: Vector, q1: Vector) -> np.ndarray: ...

    def local(self, q0: Any, q1: Any) -> Any:
        """Tangent vector (nv) whose retraction from `q0` (nq) gives `q1` (nq); (N, nv) where one
        of them, or both, are tables (N, nq).
        """
        if _symbolic(q0, q1):
            return self._local(q0, q1)
        return _evaluate(self._functions["local"], (q0, self.nq), (q1, self.nq))

    def velocity(self, q0: Vector, q1: Vector) -> np.ndarray:
        """Velocity (nw) at `q0` (nq) of the way to `q1` (nq) in unit time,
        `frame(q0) local(q0, q1)`.
        """
        return _evaluate(self._functions["velocity"], (q0, self.nq), (q1, self.nq))

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
    """A function of vectors, or of the rows of tables, in one call; a vector goes with every
    row.
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
        raise ValueError(f"{function.name()}: tables must have as many rows, got {sorted(rows)}")
    if 0 in rows:  # CasADi would take no columns for a zero
        return np.empty((0, function.size1_out(0)))
    return np.asarray(function(*arrays)).T
