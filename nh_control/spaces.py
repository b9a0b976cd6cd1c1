"""Configuration spaces: how a tangent vector moves a configuration, and which tangent vector joins two configurations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property

import casadi as ca
import numpy as np

from nh_control import se2


class Space(ABC):
    """A configuration manifold with a retraction `q1 = retract(q0, d)` and its inverse `d = local(q0, q1)`.

    Configurations are stored with `nq` numbers named `names`; tangent vectors have `nv` numbers named `velocity_names`, in
    the space's trivialization: plain coordinates for Rn, the body frame for a Lie group. `retract(q, 0) = q`,
    `local(q, retract(q, d)) = d`. Both take CasADi expressions (and return one) or arrays (and return an array).
    """

    names: tuple[str, ...]
    velocity_names: tuple[str, ...]

    @property
    def nq(self) -> int:
        """Numbers that store a configuration."""
        return len(self.names)

    @property
    def nv(self) -> int:
        """Dimension of the manifold."""
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

    @abstractmethod
    def local_jacobians(self, q0: ca.SX, d: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Derivatives of `local(q0, q1)` at `q1 = retract(q0, d)` along trivialized variations of q0 and of q1, (nv, nv) each."""

    def retract(self, q, d):
        """Configuration reached from `q` (nq) along the tangent vector `d` (nv)."""
        if _symbolic(q, d):
            return self._retract(q, d)
        return _evaluate(self._functions["retract"], (q, self.nq), (d, self.nv))

    def local(self, q0, q1):
        """Tangent vector (nv) whose retraction from `q0` (nq) gives `q1` (nq)."""
        if _symbolic(q0, q1):
            return self._local(q0, q1)
        return _evaluate(self._functions["local"], (q0, self.nq), (q1, self.nq))

    @cached_property
    def _functions(self) -> dict[str, ca.Function]:
        q, q1, d = ca.SX.sym("q", self.nq), ca.SX.sym("q1", self.nq), ca.SX.sym("d", self.nv)
        return {
            "retract": ca.Function("retract", [q, d], [self._retract(q, d)]),
            "local": ca.Function("local", [q, q1], [self._local(q, q1)]),
        }


def _symbolic(*args) -> bool:
    return any(isinstance(a, (ca.SX, ca.MX)) for a in args)


def _evaluate(function: ca.Function, *args) -> np.ndarray:
    arrays = []
    for i, (value, size) in enumerate(args):
        value = np.asarray(value, dtype=float)
        if value.shape != (size,):
            raise ValueError(f"{function.name()}: argument {i + 1} must have shape ({size},), got {value.shape}")
        arrays.append(value)
    return np.asarray(function(*arrays)).reshape(-1)


class Rn(Space):
    """The vector space R^n: `retract(q, d) = q + d`; angles that count turns live here too."""

    def __init__(self, *names: str, velocity_names: Sequence[str] = ()):
        self.names = tuple(names)
        self.velocity_names = tuple(velocity_names) or tuple(f"{n}_dot" for n in names)
        if len(self.velocity_names) != len(self.names):
            raise ValueError(f"Rn: {len(self.names)} names {self.names} but {len(self.velocity_names)} velocity names")

    @property
    def origin(self) -> np.ndarray:
        return np.zeros(self.nq)

    def _retract(self, q, d):
        return q + d

    def _local(self, q0, q1):
        return q1 - q0

    def local_jacobians(self, q0, d):
        eye = ca.SX.eye(self.nv)
        return -eye, eye


class SE2(Space):
    """Planar poses (theta, x, y), theta unwrapped; tangent vectors are body-frame (rotation, forward, side).

    `retract(g, d) = g tau(d)` with tau one of `se2.RETRACTIONS`; linearizations and midpoints use the exponential.
    Local coordinates reach poses up to |rotation| < 2 pi for exp, ccsk and sccsk and < pi for cay.
    """

    def __init__(
        self,
        names: Sequence[str] = ("theta", "x", "y"),
        velocity_names: Sequence[str] = ("omega", "v_forward", "v_side"),
        retraction: str = "exp",
    ):
        if retraction not in se2.RETRACTIONS:
            raise ValueError(f"SE2: unknown retraction {retraction!r}, choose one of {sorted(se2.RETRACTIONS)}")
        self.names, self.velocity_names = tuple(names), tuple(velocity_names)
        if len(self.names) != 3 or len(self.velocity_names) != 3:
            raise ValueError(f"SE2: needs three names and three velocity names, got {self.names} and {self.velocity_names}")
        self.retraction = se2.RETRACTIONS[retraction]

    @property
    def tangent_names(self) -> tuple[str, ...]:
        return self.names[0], "forward", "side"

    @property
    def origin(self) -> np.ndarray:
        return np.zeros(3)

    def _retract(self, q, d):
        return se2.compose(q, self.retraction.tau(d))

    def _local(self, q0, q1):
        return self.retraction.inverse(se2.between(q0, q1))

    def local_jacobians(self, q0, d):
        dtau_inverse = self.retraction.dtau_inverse(d)
        return -dtau_inverse, dtau_inverse @ se2.adjoint(self.retraction.tau(d))


class Product(Space):
    """Cartesian product of spaces, coordinates concatenated in order."""

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

    def _split(self, q, d):
        i = j = 0
        for f in self.factors:
            yield f, q[i : i + f.nq], d[j : j + f.nv]
            i, j = i + f.nq, j + f.nv

    def _retract(self, q, d):
        return ca.vertcat(*(f._retract(qf, df) for f, qf, df in self._split(q, d)))

    def _local(self, q0, q1):
        out, i = [], 0
        for f in self.factors:
            out.append(f._local(q0[i : i + f.nq], q1[i : i + f.nq]))
            i += f.nq
        return ca.vertcat(*out)

    def local_jacobians(self, q0, d):
        blocks = [f.local_jacobians(qf, df) for f, qf, df in self._split(q0, d)]
        return ca.diagcat(*(b[0] for b in blocks)), ca.diagcat(*(b[1] for b in blocks))
