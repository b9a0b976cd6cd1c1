"""Discrete-time mechanical systems `x1 = f(x, u)` given by a residual and a read-out, with everything else derived from these two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import resources

import casadi as ca
import numpy as np

from nh_control import newton as newton_method
from nh_control.compiled import Buffers, Functions, Native, lapack_pointer
from nh_control.spaces import Space
from nh_control.system import System
from nh_control.trajectory import Trajectory


@dataclass(frozen=True)
class Method:
    """An integrator: `r(q, rho, u, z) = 0` fixes the n_z unknowns z, then `(q1, rho1) = g(q, rho, u, z)`; Newton starts at z = 0.

    Unknowns are mean velocities and impulses: for a kinetic energy quadratic in v the first iteration finds them to first order in h.
    """

    name: str
    n_z: int
    residual: Callable[[ca.SX, ca.SX, ca.SX, ca.SX], ca.SX]
    readout: Callable[[ca.SX, ca.SX, ca.SX, ca.SX], tuple[ca.SX, ca.SX]]


class StepFailed(RuntimeError):
    """A step's equations could not be solved; carries reason, residual, iterations, condition number, and step and time where known."""

    def __init__(self, system, h, reason, residual, error, iterations, condition, step=None):
        self.reason, self.residual, self.error = reason, residual, error
        self.iterations, self.condition, self.step = iterations, condition, step
        self.time = None if step is None else step * h
        self._about = (system, h, reason, residual, error, iterations, condition)
        where = "" if step is None else f" at step {step} (t = {step * h:g} s)"
        super().__init__(
            f"{system}{where}: {reason}: residual {residual:.1e} (relative {error:.1e}, tolerance {newton_method.TARGET:.0e}) after {iterations} Newton "
            f"iterations, condition number {condition:.1e}, h = {h:g}; reduce h, or keep away from the singular configuration"
        )

    def at(self, step: int) -> StepFailed:
        """The same failure with the step's number."""
        return StepFailed(*self._about, step=step)


@dataclass(frozen=True)
class Linearization:
    """`local(x1, f(retract(x, dx), u + du)) = A dx + B du` to first order: A (ndx, ndx), B (ndx, nu), x1 = f(x, u), step h in s."""

    A: np.ndarray
    B: np.ndarray
    x1: np.ndarray
    h: float

    def __iter__(self):
        return iter((self.A, self.B))

    def to_ss(self):
        """The linearization as a discrete-time `control.StateSpace` with all states as outputs."""
        import control

        n, m = self.B.shape
        return control.ss(self.A, self.B, np.eye(n), np.zeros((n, m)), self.h)


class DiscreteSystem:
    """A mechanical system under an integrator with step `h` (s): `step`, exact `linearize` and `hessian`.

    A state x (nx) is (q, rho), configuration and discrete momenta at the same node; small changes dx (ndx) are in the local coordinates of `state_space`.
    `step` and the others are pure functions. Raises ValueError for h <= 0 or not finite.
    """

    def __init__(self, system: System, h: float, method: Method, step_space: Space | None = None, alpha: float = 0.5):
        if not (np.isfinite(h) and h > 0):
            raise ValueError(f"{method.name}: step h must be positive and finite, got {h}")
        self.system, self.h, self.method = system, float(h), method
        self.state_space = system.state_space
        self._step_space, self._alpha = step_space or system.space, alpha

    def __repr__(self) -> str:
        return f"{self.system.name} by {self.method.name}, h = {self.h:g} s"

    name = property(__repr__)
    nx = property(lambda self: self.state_space.nq, doc="Numbers that store a state.")
    ndx = property(lambda self: self.state_space.nv, doc="Dimension of the state space.")
    nu = property(lambda self: len(self.inputs), doc="Number of inputs.")
    state_names = property(lambda self: self.state_space.names, doc="Names of the stored states.")
    inputs = property(lambda self: self.system.inputs + self.system.prescribed, doc="Names of the inputs: forces, then prescribed coordinates' next values.")

    def step(self, x, u=()) -> np.ndarray:
        """Next state x1 (nx) from state x (nx) and input u (nu); raises StepFailed, and ValueError for a wrong shape or a value that is not finite."""
        return self._solve(x, u)[1]

    def linearize(self, x, u=()) -> Linearization:
        """Exact first derivatives of the step: `dz = -r_z^{-1} r_(x,u);  [A B] = g_(x,u) + g_z dz`, by the implicit function theorem."""
        z, x1 = self._solve(x, u)
        derivative = self._derivative(x, u, z, x1)[0]
        return Linearization(derivative[:, : self.ndx].copy(), derivative[:, self.ndx :].copy(), x1, self.h)

    def hessian(self, x, u, lam) -> np.ndarray:
        """Second derivative of `lam . local(x1, f(retract(x, dx), u + du))` at zero over (dx, du), (ndx + nu, ndx + nu), for an adjoint lam (ndx).

        `mu = r_z^{-T} g_z^T lam;  H = P^T hess(lam . g - mu . r) P,  P = [I; dz]`.
        """
        z, x1 = self._solve(x, u)
        _, dz, r_z, g_z = self._derivative(x, u, z, x1)
        lam = np.asarray(lam, dtype=float)
        mu = newton_method.solve(r_z.T, g_z.T @ lam)
        (full,) = self._second("second", x, u, z, x1, lam, mu)
        p = np.vstack([np.eye(self.ndx + self.nu), dz])
        return p.T @ full @ p

    def simulate(self, x0, inputs, name: str = "") -> Trajectory:
        """Trajectory from x0 (nx) under the inputs (N, nu), or under a number N of steps for a system without inputs; raises StepFailed with the step."""
        inputs = np.zeros((inputs, 0)) if isinstance(inputs, int) else np.asarray(inputs, dtype=float)
        if inputs.ndim != 2 or inputs.shape[1] != self.nu:
            raise ValueError(f"{self}: inputs must have shape (N, {self.nu}), got {inputs.shape}")
        if np.shape(x0) != (self.nx,):
            raise ValueError(f"{self}: x0 must have shape ({self.nx},), got {np.shape(x0)}")
        states = np.empty((len(inputs) + 1, self.nx))
        states[0] = x0
        for k, u in enumerate(inputs):
            try:
                states[k + 1] = self.step(states[k], u)
            except StepFailed as failure:
                raise failure.at(k) from None
        return Trajectory(self.h, states, inputs, self.state_names, self.inputs, name)

    def state(self, q, v) -> np.ndarray:
        """State (nx) of configuration q (nq) and velocity v (nw); the part of v outside the velocity constraints is dropped, orthogonally in the mass metric."""
        return self._state("state", q, v)[0][:, 0]

    def configuration(self, x) -> np.ndarray:
        """Configuration q (nq) of a state."""
        return np.array(x, dtype=float)[: self.system.space.nq]

    def velocity(self, x) -> np.ndarray:
        """Physical velocity at the node, `v = X (X^T M X)^{-1} rho`, with that of the prescribed coordinates, (nw)."""
        mass, momentum, basis, prescribed = self._state("inertia", x)
        return (basis @ newton_method.solve(mass, momentum) + prescribed)[:, 0]

    def idle(self, x) -> np.ndarray:
        """Input (nu) of no forces that leaves the prescribed coordinates where they are in state x."""
        held = len(self.system.prescribed)
        return np.concatenate([np.zeros(self.system.nu), self.configuration(x)[self.system.space.nq - held :]])

    def energy(self, x) -> float:
        """Energy `v . dL/dv - L` at the node, in J."""
        return float(self._state("energy", self.configuration(x), self.velocity(x))[0][0, 0])

    def local(self, x0, x1) -> np.ndarray:
        """Tangent vector dx (ndx) from state x0 to state x1."""
        return self._state("local", x0, x1)[0][:, 0]

    def retract(self, x, dx) -> np.ndarray:
        """State reached from x along dx (ndx)."""
        return self._state("retract", x, dx)[0][:, 0]

    def constraint_residual(self, x0, x1) -> np.ndarray:
        """Discrete velocity constraint over a step, `A(q_alpha) local(q0, q1)`, (m), in the retraction of the method."""
        return self._state("constraint", x0, x1)[0][:, 0]

    def state_from_configurations(self, q0, q1, u=(), iterations: int = 20) -> np.ndarray:
        """State at q1 whose step from q0 under u came closest to the configuration q1: Gauss-Newton on rho0 with the exact linearization.

        For configurations that a step joins the result is exact to round-off. Raises StepFailed, and ValueError if the iteration does not settle.
        """
        n = self.system.space.nv
        q1 = np.asarray(q1, dtype=float)
        x0 = self.state(q0, self.system.space.velocity(q0, q1) / self.h)
        for _ in range(iterations):
            lin = self.linearize(x0, u)
            target = np.concatenate([q1, lin.x1[len(q1) :]])
            change = np.linalg.lstsq(lin.A[:n, n:], self.local(lin.x1, target)[:n], rcond=None)[0]
            x0 = self.retract(x0, np.concatenate([np.zeros(n), change]))
            if np.max(np.abs(change), initial=0.0) <= 1e-12 * (1 + np.max(np.abs(x0[len(q1) :]), initial=0.0)):
                x1 = self.step(x0, u)
                return np.concatenate([q1, x1[len(q1) :]])
        raise ValueError(f"{self}: no momentum found that joins the configurations {np.asarray(q0).tolist()} and {q1.tolist()} in one step")

    def _solve(self, x, u) -> tuple[np.ndarray, np.ndarray]:
        buffers = self._buffers.arrays
        for array, value, what in ((buffers[0], x, "state"), (buffers[1], u, "input")):
            if np.shape(value) != array.shape:
                raise ValueError(f"{self}: {what} must have shape {array.shape}, got {np.shape(value)}")
            array[...] = value
        status = self._stepper(*self._buffers.pointers)
        if status != newton_method.CONVERGED:
            raise self._failure(status, *buffers)
        return buffers[2].copy(), buffers[3].copy()

    def _failure(self, status: int, x, u, z, x1, info) -> Exception:
        if not (np.isfinite(x).all() and np.isfinite(u).all()):
            return ValueError(f"{self}: state and input must be finite, got x = {x.tolist()}, u = {u.tolist()}")
        jacobian = np.asarray(self._step_expressions[1](x, u, z)[1])
        condition = float(np.linalg.cond(jacobian)) if np.isfinite(jacobian).all() else np.inf
        return StepFailed(str(self), self.h, newton_method.REASONS[status], info[2], info[1], int(info[0]), condition)

    def _derivative(self, x, u, z, x1):
        r_z, r_w, g_w, g_z = self._first("first", x, u, z, x1)
        try:
            dz = newton_method.solve(r_z, -r_w)
        except np.linalg.LinAlgError:
            raise self._failure(newton_method.SINGULAR, *self._buffers.arrays) from None
        return g_w + g_z @ dz, dz, r_z, g_z

    @cached_property
    def _symbols(self):
        x, u = ca.SX.sym("x", self.nx), ca.SX.sym("u", self.nu)
        return x, u, ca.SX.sym("z", self.method.n_z)

    def _split(self, x):
        return x[: self.system.space.nq], x[self.system.space.nq :]

    def _residual(self, x, u, z):
        return self.method.residual(*self._split(x), u, z)

    def _readout(self, x, u, z):
        return ca.vertcat(*self.method.readout(*self._split(x), u, z))

    def _domain(self, x) -> ca.SX:
        domain = self.system.domain
        return ca.SX(0, 1) if domain is None else ca.vertcat(domain(self._split(x)[0]))

    @cached_property
    def _step_expressions(self) -> list[ca.Function]:
        x, u, z = self._symbols
        r = ca.densify(self._residual(x, u, z))
        if r.shape != z.shape:
            raise ValueError(f"{self}: the residual must have shape {z.shape}, got {r.shape}")
        r_z, w, x1 = ca.jacobian(r, z), ca.vertcat(x, u), self._readout(x, u, z)
        return [
            ca.Function("scale", [x, u, z], [ca.fabs(ca.jacobian(r, w)) @ ca.fabs(w)], ["x", "u", "z"], ["s"]),
            ca.Function("residual", [x, u, z], [r, r_z], ["x", "u", "z"], ["r", "r_z"]),
            ca.Function("readout", [x, u, z], [x1, self._domain(x1)], ["x", "u", "z"], ["x1", "domain"]),
        ]

    @cached_property
    def _step_functions(self) -> Functions:
        return Functions(f"{self.system.name}_step_functions", self._step_expressions)

    @cached_property
    def _state(self) -> Functions:
        s = self.system
        x, x1, dx = ca.SX.sym("x", self.nx), ca.SX.sym("x1", self.nx), ca.SX.sym("dx", self.ndx)
        (q, rho), (q1, _) = self._split(x), self._split(x1)
        v = ca.SX.sym("v", s.space.nw)
        d = self._step_space.local(q, q1)
        middle = self._step_space.retract(q, self._alpha * d)
        return Functions(
            f"{s.name}_state",
            [
                ca.Function("state", [q, v], [ca.vertcat(q, s.momentum(q, v))], ["q", "v"], ["x"]),
                ca.Function("inertia", [x], s.inertia(q, rho), ["x"], ["mass", "momentum", "basis", "prescribed"]),
                ca.Function("energy", [q, v], [s.energy(q, v)], ["q", "v"], ["energy"]),
                ca.Function("local", [x, x1], [self.state_space.local(x, x1)], ["x0", "x1"], ["dx"]),
                ca.Function("retract", [x, dx], [self.state_space.retract(x, dx)], ["x", "dx"], ["x1"]),
                ca.Function("constraint", [x, x1], [s.constraint_matrix(middle) @ s.space.frame(q) @ d], ["x0", "x1"], ["residual"]),
            ],
        )

    def _local_step(self):
        x, u, z = self._symbols
        dx, x1 = ca.SX.sym("dx", self.ndx), ca.SX.sym("x1", self.nx)
        moved = self.state_space.retract(x, dx)
        r, y = self._residual(moved, u, z), self.state_space.local(x1, self._readout(moved, u, z))

        def at_zero(*expressions):
            return ca.substitute(list(expressions), [dx], [ca.SX.zeros(self.ndx)])

        return x, u, z, x1, dx, r, y, at_zero

    @cached_property
    def _first(self) -> Functions:
        x, u, z, x1, dx, r, y, at_zero = self._local_step()
        w = ca.vertcat(dx, u)
        outputs = at_zero(ca.jacobian(r, z), ca.jacobian(r, w), ca.jacobian(y, w), ca.jacobian(y, z))
        names = (["x", "u", "z", "x1"], ["r_z", "r_w", "g_w", "g_z"])
        return Functions(f"{self.system.name}_first", [ca.Function("first", [x, u, z, x1], outputs, *names)])

    @cached_property
    def _second(self) -> Functions:
        x, u, z, x1, dx, r, y, at_zero = self._local_step()
        lam, mu = ca.SX.sym("lam", self.ndx), ca.SX.sym("mu", z.shape[0])
        hessian = ca.hessian(ca.dot(lam, y) - ca.dot(mu, r), ca.vertcat(dx, u, z))[0]
        names = (["x", "u", "z", "x1", "lam", "mu"], ["hessian"])
        return Functions(f"{self.system.name}_second", [ca.Function("second", [x, u, z, x1, lam, mu], at_zero(hessian), *names)])

    @cached_property
    def _buffers(self) -> Buffers:
        return Buffers([(self.nx,), (self.nu,), (self.method.n_z,), (self.nx,), (3,)])

    @cached_property
    def _stepper(self) -> Callable[..., int]:
        native = Native(f"{self.system.name}_step", self._step_expressions, self._newton_source())
        if native.library is None:
            return self._interpreted_step
        native.library.nh_set_lapack(lapack_pointer("dgesv"), lapack_pointer("dgetrs"))
        return native.library.nh_step

    def _newton_source(self) -> str:
        sizes = {"N_X": self.nx, "N_U": self.nu, "N_Z": self.method.n_z, "N_DOMAIN": self._domain(self._symbols[0]).shape[0]}
        limits = {name: getattr(newton_method, name) for name in ("TARGET", "ACCEPT", "SMALL", "MAX_ITERATIONS", "MAX_HALVINGS")}
        defines = "".join(f"#define {k} {v!r}\n" for k, v in {**sizes, **limits}.items())
        return "\n" + defines + resources.files("nh_control").joinpath("native/newton.c").read_text()

    def _interpreted_step(self, *_) -> int:
        x, u, z, x1, info = self._buffers.arrays
        call = self._step_functions
        z[:] = 0

        def residual(trial):
            r, jacobian = call("residual", x, u, trial)
            return r[:, 0], jacobian

        result = newton_method.newton(residual, call("scale", x, u, z)[0][:, 0], z)
        info[:] = result.iterations, result.error, result.residual
        if result.status != newton_method.CONVERGED:
            return result.status
        end, domain = call("readout", x, u, z)
        x1[:] = end[:, 0]
        if not np.isfinite(x1).all():
            return newton_method.NOT_FINITE
        return newton_method.CONVERGED if (domain > 0).all() else newton_method.OUTSIDE
