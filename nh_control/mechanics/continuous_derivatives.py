"""Derivatives of the continuous equations of motion by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import Space
from nh_control.mechanics.motion_terms import (
    admissible_coordinates,
    admissible_velocity,
    moving,
)
from nh_control.mechanics.system import System
from nh_control.numerics import newton

if TYPE_CHECKING:
    from control import StateSpace


@dataclass(frozen=True)
class ContinuousLinearization:
    """The linearization `d(dx)/dt = A dx + B du` with A (ndx, ndx) and B (ndx, nu). `states` names
    the local coordinates of a state (q, s), and `inputs` the inputs.

    The `multipliers` (m) of the velocity constraints and then of the holonomic constraints change
    by `multipliers_x dx + multipliers_u du`, with matrices (m, ndx) and (m, nu).
    """

    A: np.ndarray
    B: np.ndarray
    multipliers: np.ndarray
    multipliers_x: np.ndarray
    multipliers_u: np.ndarray
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    name: str

    def __repr__(self) -> str:
        return f"ContinuousLinearization({self.name}, A {self.A.shape}, B {self.B.shape})"

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.A, self.B))

    def to_ss(self) -> StateSpace:
        """The linearization as a continuous-time `control.StateSpace` with all states as outputs;
        raises ImportError if the package `control` is missing.
        """
        from control import ss  # imported here because it takes a second and may be missing

        n, m = self.B.shape
        return ss(
            self.A,
            self.B,
            np.eye(n),
            np.zeros((n, m)),
            states=list(self.states),
            inputs=list(self.inputs),
            outputs=list(self.states),
            name=self.name,
        )


class ContinuousDerivatives:
    """Derivatives of the residual `r = K z - b` of the equations of motion with z = (y', lam)
    (nz), and of the rate g of a change of the state, at `retract(x, dx)` for states x = (q, s)
    (see `ContinuousSystem.linearize`). `motion` is the function
    (K, b, frame, frame_rate)(q, v, u).
    """

    def __init__(self, system: System, motion: ca.Function, space: Space):
        self._system, self._motion, self._space = system, motion, space
        self._forces = ca.SX.sym("u", system.nu + len(system.prescribed))
        self._x, self._dx = ca.SX.sym("x", self._space.nq), ca.SX.sym("dx", self._space.nv)

    def state(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The state (nx) with the given configuration and velocity."""
        return np.asarray(self._state(q, v))[:, 0]

    def velocity(self, x: np.ndarray) -> np.ndarray:
        """The velocity (nw) of a state, without the rates of first-order coordinates."""
        return np.asarray(self._velocity(x))[:, 0]

    def linearize(
        self, x: np.ndarray, u: np.ndarray, inputs: tuple[str, ...]
    ) -> ContinuousLinearization:
        """A, B and the derivatives of the multipliers at a state."""
        # [A B] = g_w + g_z dz, with dz = (dy', dlam)
        n, z = self._space.nv, self._solution(x, u)
        dz, values = self._first(x, u, z)
        AB = values["g_w"] + values["g_z"] @ dz
        m, lam = slice(self._system.space.nv, None), dz[self._system.space.nv :]
        return ContinuousLinearization(
            A=AB[:, :n],
            B=AB[:, n:],
            multipliers=z[m],
            multipliers_x=lam[:, :n],
            multipliers_u=lam[:, n:],
            states=self._space.tangent_names,
            inputs=inputs,
            name=self._system.name,
        )

    def hessian(
        self, x: np.ndarray, u: np.ndarray, lam: np.ndarray, multiplier_adjoint: np.ndarray
    ) -> np.ndarray:
        """The second derivative of `lam . g` plus the multipliers' part with respect to (dx,
        u).
        """
        z = self._solution(x, u)
        dz, values = self._first(x, u, z)
        # mu = r_z^{-T} (g_z^T lam + lam_z)
        slope = values["g_z"].T @ lam
        slope[self._system.space.nv :] += multiplier_adjoint
        mu = newton.solve(values["r_z"].T, slope, self._system.n_redundant)
        # H = P^T hess(lam . g - mu . r) P with P = [1; dz]
        full = np.asarray(self._second(x, u, z, values["x_rate"], lam, mu))
        along = np.vstack([np.eye(dz.shape[1]), dz])
        hessian = along.T @ full @ along
        return (hessian + hessian.T) / 2

    def _solution(self, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """The solution z (nz) of the equations of motion at a state."""
        matrix, right = map(np.asarray, self._equations(x, u))
        return newton.solve(matrix, right, self._system.n_redundant)[:, 0]

    def _first(
        self, x: np.ndarray, u: np.ndarray, z: np.ndarray
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """dz (nz, ndx + nu), and the first derivatives of r and g."""
        x_rate = self._rate(x, u, z)
        outputs = self._slopes(x, u, z, x_rate)
        values = dict(zip(("r_w", "r_z", "g_w", "g_z"), map(np.asarray, outputs)))
        dz = -newton.solve(values["r_z"], values["r_w"], self._system.n_redundant)
        return dz, values | {"x_rate": x_rate}

    @cached_property
    def _state(self) -> ca.Function:
        system, (q, v, _) = self._system, self._system.symbols
        s = admissible_coordinates(system, q, v)
        stored = system.mechanics.store(q, s, system.prescribed_part(v))
        return ca.Function("state", [q, v], self._dense(ca.vertcat(q, stored), q=q))

    @cached_property
    def _velocity(self) -> ca.Function:
        return ca.Function("velocity", [self._x], self._dense(self._velocity_at(self._x)))

    @cached_property
    def _z(self) -> ca.SX:
        n, system = self._system.space.nv, self._system
        m = system.n_velocity_constraints + system.n_holonomic_constraints
        return ca.SX.sym("z", n + m)

    @cached_property
    def _equations(self) -> ca.Function:
        """The function of a state and the inputs that returns `K, b`."""
        values = self._dense(*self._at(self._x)[2:4])
        return ca.Function("equations", [self._x, self._forces], values)

    @cached_property
    def _rate(self) -> ca.Function:
        """The function of a state, the inputs and z that returns x'."""
        arguments = [self._x, self._forces, self._z]
        return ca.Function("rate", arguments, self._dense(self._rate_at(self._x)))

    @cached_property
    def _varied(self) -> tuple[list[ca.SX], ca.SX, ca.SX]:
        """The arguments (x, u, z, x_rate) and the expressions r and g, in which dx is free."""
        x, x_rate = self._x, ca.SX.sym("x_rate", self._x.shape[0])
        moved = self._space.retract(x, self._dx)
        matrix, right = self._at(moved)[2:4]
        # g = D_1 local(x, x_e) x' + D_2 local(x, x_e) f(x_e, u)
        a, b = ca.SX.sym("a", x.shape[0]), ca.SX.sym("b", x.shape[0])
        local, between = self._space.local(a, b), ca.vertcat(a, b)
        rate = ca.jtimes(local, between, ca.vertcat(x_rate, self._rate_at(moved)))
        rate = ca.substitute(rate, between, ca.vertcat(x, moved))
        residual, rate = self._dense(matrix @ self._z - right, rate)
        return [x, self._forces, self._z, x_rate], residual, rate

    @cached_property
    def _slopes(self) -> ca.Function:
        arguments, residual, rate = self._varied
        w = ca.vertcat(self._dx, self._forces)
        slopes = [ca.jacobian(value, by) for value in (residual, rate) for by in (w, self._z)]
        at_zero = ca.substitute(slopes, [self._dx], [ca.SX.zeros(self._dx.shape[0])])
        return ca.Function("slopes", arguments, [ca.densify(s) for s in at_zero], {"cse": True})

    @cached_property
    def _second(self) -> ca.Function:
        arguments, residual, rate = self._varied
        lam, mu = ca.SX.sym("lam", rate.shape[0]), ca.SX.sym("mu", residual.shape[0])
        w = ca.vertcat(self._dx, self._forces, self._z)
        second = ca.hessian(ca.dot(lam, rate) - ca.dot(mu, residual), w)[0]
        at_zero = ca.substitute(second, self._dx, ca.SX.zeros(self._dx.shape[0]))
        return ca.Function("second", [*arguments, lam, mu], [ca.densify(at_zero)], {"cse": True})

    def _dense(self, *expressions: ca.SX, q: ca.SX | None = None) -> list[ca.SX]:
        """Dense expressions with the basis signs for q, by default the state's q."""
        q = self._x[: self._system.space.nq] if q is None else q
        mechanics = self._system.mechanics
        return [ca.densify(e) for e in mechanics.at_signs(expressions, q)]

    def _at(self, x: ca.SX) -> list[ca.SX]:
        """q, v, K, b, frame and frame_rate as expressions in a state x."""
        q = x[: self._system.space.nq]
        v = self._system.with_rates(q, self._velocity_at(x), self._forces[: self._system.nu])
        return [q, v, *self._motion.call([q, v, self._forces])]

    def _velocity_at(self, x: ca.SX) -> ca.SX:
        """The velocity (nw) as an expression in a state x, with zero rates for first-order
        coordinates.
        """
        system, space = self._system, self._system.space
        q, stored = x[: space.nq], x[space.nq :]
        s, prescribed = system.mechanics.reduce(q, stored), system.prescribed_part(stored)
        return space.frame(q) @ admissible_velocity(system, q, s, prescribed)

    def _rate_at(self, x: ca.SX) -> ca.SX:
        """The rate (nx) of a state x as an expression in x."""
        system, space = self._system, self._system.space
        # v' = frame y' + frame_rate
        q, v, _, _, frame, frame_rate = self._at(x)
        v_rate = frame @ self._z[: space.nv] + frame_rate
        q_rate = moving(system, q, space.frame(q).T @ v)
        # s' = ds/dq q' + ds/dv v', for the coordinates s(q, v) of the stored velocity
        q_, v_, _ = system.symbols
        phase = ca.vertcat(q_, v_)
        stored_rate = ca.jtimes(self._state(q_, v_)[space.nq :], phase, ca.vertcat(q_rate, v_rate))
        return ca.vertcat(q_rate, ca.substitute(stored_rate, phase, ca.vertcat(q, v)))
