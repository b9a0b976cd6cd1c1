"""Configuration spaces with a retraction from tangent vectors to configurations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import casadi as ca
import numpy as np

from nh_control.numerics.expressions import Vector


@dataclass(frozen=True)
class StepGeometry:
    """The geometry of the step d from q0: its end `q1` (nq), its midpoint `middle` (nq) and its
    displacement `w` (nw). The mean velocity in a step of size h is `w / h`, which is a velocity at
    the midpoint. `j0` and `j1` (nq + nw, nv) are the Jacobians of (middle, w) along trivialized
    variations of q0 and of q1. The discrete momenta of `Ld = h L(middle, w / h)` are `-j0^T dL`
    and `j1^T dL`.
    """

    q1: ca.SX
    middle: ca.SX
    w: ca.SX
    j0: ca.SX
    j1: ca.SX


class Space(ABC):
    """A configuration manifold with a retraction `q1 = retract(q0, d)` and its inverse
    `d = local(q0, q1)`: `retract(q, 0) = q` and `local(q, retract(q, d)) = d`.

    A configuration is stored as `nq` numbers with the names `names`. A tangent vector d has `nv`
    numbers with the names `tangent_names`: coordinates on Rn, components in the body frame on a
    Lie group, or components in an orthonormal frame at q0 on a sphere. Velocities and momenta are
    stored as `nw` numbers with the names `velocity_names`, `v = frame(q) d`, and are smooth on the
    whole manifold. Except on spheres, nw = nv and the frame is the identity. `retract` and `local`
    accept CasADi expressions and return an expression, or accept arrays and return an array.
    """

    names: tuple[str, ...]
    velocity_names: tuple[str, ...]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.names)})"

    @property
    def nq(self) -> int:
        """The number of stored numbers per configuration."""
        return len(self.names)

    @property
    def nv(self) -> int:
        """Dimension of the manifold."""
        return len(self.tangent_names)

    @property
    def nw(self) -> int:
        """The number of stored numbers per velocity."""
        return len(self.velocity_names)

    @property
    def tangent_names(self) -> tuple[str, ...]:
        """Names of the nv local coordinates `local(q0, q1)`."""
        return self.names

    @property
    def units(self) -> dict[str, str]:
        """The units of the coordinates, by name, as far as they are known."""
        return {}

    @property
    @abstractmethod
    def origin(self) -> np.ndarray:
        """A configuration (nq) that serves as the origin of the space."""

    @abstractmethod
    def _retract(self, q: ca.SX, d: ca.SX) -> ca.SX: ...

    @abstractmethod
    def _local(self, q0: ca.SX, q1: ca.SX) -> ca.SX: ...

    def local_jacobians(self, q0: ca.SX, d: ca.SX) -> tuple[ca.SX, ca.SX]:
        """The Jacobians (nv, nv) of `local(q0, q1)` at `q1 = retract(q0, d)` along trivialized
        variations of q0 and of q1. The default implementation differentiates at the origin,
        because on a Lie group, the Jacobians do not depend on q0.
        """
        return self._local_jacobians(ca.SX(self.origin), d)

    def _local_jacobians(self, q0: ca.SX, d: ca.SX) -> tuple[ca.SX, ca.SX]:
        e, d_ = ca.SX.sym("e", self.nv), ca.SX.sym("d", self.nv)
        end = self._retract(q0, d_)
        # local(retract(q0, e), q1) and local(q0, retract(q1, e)), differentiated at e = 0
        varied = self._local(self._retract(q0, e), end), self._local(q0, self._retract(end, e))
        j0, j1 = (ca.jacobian(local, e) for local in varied)
        symbols, values = ca.vertcat(e, d_), ca.vertcat(ca.SX.zeros(self.nv), d)
        return ca.substitute(j0, symbols, values), ca.substitute(j1, symbols, values)

    def step_geometry(self, q0: ca.SX, d: ca.SX) -> StepGeometry:
        """The geometry of the step d from q0, by default with `w = d`."""
        j0, j1 = self.local_jacobians(q0, d)
        e = ca.SX.sym("e", self.nv)
        # a variation e of q0 or q1 changes d by j0 e or j1 e, and thus the midpoint
        varied = self._middle(self._retract(q0, e), d + j0 @ e), self._middle(q0, d + j1 @ e)
        m0, m1 = (ca.substitute(ca.jacobian(m, e), e, ca.SX.zeros(self.nv)) for m in varied)
        return StepGeometry(
            self._retract(q0, d), self._middle(q0, d), d, ca.vertcat(m0, j0), ca.vertcat(m1, j1)
        )

    def _middle(self, q0: ca.SX, d: ca.SX) -> ca.SX:
        """The midpoint of the step d from q0, which is also the midpoint of the reverse step. The
        default implementation is for retractions whose curves `retract(q0, t d)` are geodesics.
        """
        return self._retract(q0, d / 2)

    def frame(self, q: ca.SX, near: ca.SX | None = None) -> ca.SX:
        """The matrix F(q) (nw, nv) with orthonormal columns that maps a tangent vector d to the
        velocity `v = F d`. Frames `near` a configuration (nq) are smooth functions of q near that
        configuration.
        """
        return ca.SX.eye(self.nv)

    def along(self, q: ca.SX, w: ca.SX) -> ca.SX:
        """The configuration (nq) that is reached from q along the stored velocity w (nw) in unit
        time, `along(q, frame(q) d) = retract(q, d)`.
        """
        return self._retract(q, w)

    def transport(self, q0: ca.SX, q1: ca.SX, w: ca.SX) -> ca.SX:
        """The parallel transport of a stored velocity or momentum w (nw) from q0 to q1."""
        return w

    @overload
    def retract(self, q: ca.SX, d: ca.SX) -> ca.SX: ...

    @overload
    def retract(self, q: Vector, d: Vector) -> np.ndarray: ...

    def retract(self, q: Any, d: Any) -> Any:
        """The configuration (nq) that is reached from `q` (nq) along the tangent vector `d` (nv),
        or (N, nq) if one or both are tables (N, nq) and (N, nv).
        """
        if _symbolic(q, d):
            return self._retract(q, d)
        return _evaluate(self._functions["retract"], (q, self.nq), (d, self.nv))

    @overload
    def local(self, q0: ca.SX, q1: ca.SX) -> ca.SX: ...

    @overload
    def local(self, q0: Vector, q1: Vector) -> np.ndarray: ...

    def local(self, q0: Any, q1: Any) -> Any:
        """The tangent vector (nv) with `retract(q0, local(q0, q1)) = q1`, or (N, nv) if one or
        both configurations are tables (N, nq).
        """
        if _symbolic(q0, q1):
            return self._local(q0, q1)
        return _evaluate(self._functions["local"], (q0, self.nq), (q1, self.nq))

    def velocity(self, q0: Vector, q1: Vector) -> np.ndarray:
        """The velocity `frame(q0) local(q0, q1)` (nw) at `q0` (nq) that leads to `q1` (nq) in unit
        time.
        """
        return _evaluate(self._functions["velocity"], (q0, self.nq), (q1, self.nq))

    @cached_property
    def coordinate_change(self) -> ca.Function:
        """The Jacobian `C(q0, q1) = d local(q0, retract(q1, d)) / dd` (nv, nv), at d = 0, for the
        change from local coordinates about q1 to those about q0.
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


def rotation_hint(names: Sequence[str], size: int) -> str:
    """A hint, beginning with a semicolon, if `size` numbers for a configuration with these names
    may contain three numbers for each rotation, such as Euler angles; otherwise "".
    """
    # one number fewer for each rotation: three angles
    rotations = sum(name.endswith("qw") for name in names)
    if not rotations or size != len(names) - rotations:
        return ""
    return (
        "; a rotation is a unit quaternion (qw, qx, qy, qz), not Euler angles: np.roll("
        "scipy.spatial.transform.Rotation.from_euler('xyz', angles).as_quat(), 1) converts them"
    )


def _symbolic(*args: object) -> bool:
    return any(isinstance(a, (ca.SX, ca.MX)) for a in args)


def _evaluate(function: ca.Function, *args: tuple[Vector, int]) -> np.ndarray:
    """The value of the function for vectors, or its values for the rows of tables (N, n) in one
    call. A vector is used for every row.
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
    if 0 in rows:  # CasADi reads a matrix without columns as the number 0
        return np.empty((0, function.size1_out(0)))
    return np.asarray(function(*arrays)).T
