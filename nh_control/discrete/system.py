"""Discrete-time mechanical systems `x1 = f(x, u)` given by a residual and a read-out, with
everything else derived from these two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from nh_control.discrete.engine import Engine, Workspace
from nh_control.discrete.equations import StepEquations
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry.spaces import Space
from nh_control.mechanics.lagrangian import inertia
from nh_control.mechanics.system import System
from nh_control.numerics import newton as newton_method
from nh_control.numerics.compiled import Functions


@dataclass(frozen=True)
class Method:
    """An integrator: `r(q, rho, u, z) = 0` fixes the n_z unknowns z, then
    `(q1, rho1) = g(q, rho, u, z)`; Newton starts at z = 0.

    Unknowns are mean velocities and impulses: for a kinetic energy quadratic in v the first
    iteration finds them to first order in h.
    `multipliers` are the places in z of the multipliers of holonomic constraints (impulses); the
    rows of r at the same places are the constraints. Both functions take `gradients` as a last
    argument, `gradients(q, v) = (dL/dq, dL/dv)`, and use the Lagrangian in no other way.
    """

    name: str
    n_z: int
    residual: Callable[[ca.SX, ca.SX, ca.SX, ca.SX, Callable], ca.SX]
    readout: Callable[[ca.SX, ca.SX, ca.SX, ca.SX, Callable], tuple[ca.SX, ca.SX]]
    multipliers: range = range(0)


@dataclass(frozen=True)
class Conditioning:
    """Condition numbers of a step's equations: of r_z (`jacobian`); of its part M = D2 D1 Ld
    without constraints and multipliers (`mass`); of Dh(q1) M^{-1} Dh(q0)^T (`constraint`), 1
    without holonomic constraints [johnson2014 VII]. Infinite where a matrix is singular.

    A step that turns a constraint by a right angle makes a single one singular, too: the last
    counts from the lengths of Dh in the metric of M, if these are larger.
    """

    jacobian: float
    mass: float
    constraint: float

    @classmethod
    def of(cls, r_z: np.ndarray, multipliers: range) -> Conditioning:
        """From r_z (n_z, n_z) and the places of the multipliers."""
        m, n = list(multipliers), [i for i in range(len(r_z)) if i not in multipliers]
        mass, toward, impulse = r_z[np.ix_(n, n)], r_z[np.ix_(m, n)], r_z[np.ix_(n, m)]
        inner = _condition(mass)
        if not m or inner == np.inf:
            return cls(_condition(r_z), inner, inner if m else 1.0)
        after, before = (
            np.sqrt(np.abs(np.sum(end * np.linalg.solve(mass, end), axis=0)))
            for end in (toward.T, impulse)
        )
        return cls(
            _condition(r_z),
            inner,
            _condition(toward @ np.linalg.solve(mass, impulse), (after * before).max()),
        )


def _condition(a: np.ndarray, size: float = 0.0) -> float:
    """Largest singular value, at least `size`, over the smallest."""
    if not np.isfinite(a).all():
        return np.inf
    values = np.linalg.svd(a, compute_uv=False)
    return (
        float(max(size, values[0]) / values[-1] if values[-1] > 0 else np.inf)
        if len(values)
        else 1.0
    )


class StepFailed(RuntimeError):
    """A step's equations could not be solved; carries reason, residual, relative error,
    iterations, the condition number of r_z and `conditioning` (both of the last Jacobian that was
    evaluated), and step and time where known."""

    def __init__(
        self, system, h, reason, residual, error, iterations, conditioning: Conditioning, step=None
    ):
        self.reason, self.residual, self.error = reason, residual, error
        self.iterations, self.condition, self.conditioning, self.step = (
            iterations,
            conditioning.jacobian,
            conditioning,
            step,
        )
        self.time = None if step is None else step * h
        self._about = (system, h, reason, residual, error, iterations, conditioning)
        where = "" if step is None else f" at step {step} (t = {step * h:g} s)"
        super().__init__(
            f"{system}{where}: {reason}: residual {residual:.1e} (relative {error:.1e}, "
            f"tolerance {newton_method.TARGET:.0e}) after {iterations} Newton "
            f"iterations, condition number {conditioning.jacobian:.1e} (M "
            f"{conditioning.mass:.1e}, Dh M^-1 Dh^T {conditioning.constraint:.1e}), h = "
            f"{h:g}; "
            "reduce h, or keep away from the singular configuration"
        )

    def at(self, step: int) -> StepFailed:
        """The same failure with the step's number."""
        return StepFailed(*self._about, step=step)


@dataclass(frozen=True)
class Linearization:
    """`local(x1, f(retract(x, dx), u + du)) = A dx + B du` to first order: A (ndx, ndx), B (ndx,
    nu), x1 = f(x, u), step h in s.

    The m multipliers of holonomic constraints change by `multipliers_x dx + multipliers_u du`, (m,
    ndx) and (m, nu).
    """

    A: np.ndarray
    B: np.ndarray
    x1: np.ndarray
    h: float
    multipliers: np.ndarray
    multipliers_x: np.ndarray
    multipliers_u: np.ndarray

    def __iter__(self):
        return iter((self.A, self.B))

    def to_ss(self):
        """The linearization as a discrete-time `control.StateSpace` with all states as outputs."""
        import control

        n, m = self.B.shape
        return control.ss(self.A, self.B, np.eye(n), np.zeros((n, m)), self.h)


class DiscreteSystem:
    """A mechanical system under an integrator with step `h` (s): `step`, exact `linearize` and
    `hessian`.

    A state x (nx) is (q, rho), configuration and discrete momenta at the same node; small changes
    dx (ndx) are in the local coordinates of `state_space`.
    `step` and the others are pure functions. Raises ValueError for h <= 0 or not finite.
    """

    def __init__(
        self,
        system: System,
        h: float,
        method: Method,
        step_space: Space | None = None,
        alpha: float = 0.5,
    ):
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
    inputs = property(
        lambda self: self.system.inputs + self.system.prescribed,
        doc="Names of the inputs: forces, then prescribed coordinates' next values.",
    )

    def step(self, x, u=()) -> np.ndarray:
        """Next state x1 (nx) from state x (nx) and input u (nu); raises StepFailed, and ValueError
        for a wrong shape or a value that is not finite.
        """
        return self._run(self._engine.step, x, u).x1.copy()

    def unknowns(self, x, u=()) -> np.ndarray:
        """The unknowns z (n_z) that solve the step's residual at x (nx), u (nu); raises as `step`
        does.
        """
        return self._run(self._engine.step, x, u).z.copy()

    def linearize(self, x, u=()) -> Linearization:
        """Exact first derivatives of the step:
        `dz = -r_z^{-1} r_(x,u);  [A B] = g_(x,u) + g_z dz`, by the implicit function theorem.
        """
        work, n, m = self._run(self._engine.linearize, x, u), self._ndx, self._multipliers
        a, b, x1, c, d = (
            work.ab[:, :n].copy(),
            work.ab[:, n:].copy(),
            work.x1.copy(),
            work.dz[m, :n].copy(),
            work.dz[m, n:].copy(),
        )
        return Linearization(a, b, x1, self.h, work.z[m].copy(), c, d)

    def hessian(self, x, u, lam, multiplier_adjoint=None) -> np.ndarray:
        """Second derivative of `lam . local(x1, f(retract(x, dx), u + du))` at zero over (dx, du),
        (ndx + nu, ndx + nu), for an adjoint lam (ndx); with a multiplier_adjoint nu (m) that of
        the sum with `nu . multipliers`.

        `mu = r_z^{-T} (g_z^T lam + E nu);  H = P^T hess(lam . g - mu . r) P,  P = [I; dz]`, E the
        places of the multipliers in z.
        """
        work, m = self._engine.work, self._multipliers
        _assign(work.lam, lam, self, "adjoint")
        work.nu[:] = 0
        if multiplier_adjoint is not None:
            _assign(work.nu[m], multiplier_adjoint, self, "multiplier adjoint")
        return self._run(self._engine.hessian, x, u).hessian.copy()

    def multipliers(self, x, u=()) -> np.ndarray:
        """Multipliers (m) of the holonomic constraints, impulses at q0:
        `-Dh(q0)^T multipliers / h` is the constraints' force there [johnson2014 (28)].

        A first step from a momentum M v, which knows of no force before, has half of it.
        """
        return self._run(self._engine.step, x, u).z[self._multipliers].copy()

    def conditioning(self, x, u=()) -> Conditioning:
        """Condition numbers of the equations of the step from x under u, at its solution; a step
        that fails has them in its StepFailed.
        """
        return Conditioning.of(
            self._run(self._engine.linearize, x, u).r_z, self.method.multipliers
        )

    def prepare(self) -> DiscreteSystem:
        """Compile or load everything at once, which the first calls would do otherwise; returns
        this system.
        """
        for function in (self._engine.hessian, self._state, self._inertia):
            del function  # made when it is asked for, and kept
        return self

    def simulate(self, x0, inputs, name: str = "") -> Trajectory:
        """Trajectory from x0 (nx) under the inputs (N, nu), or under a number N of steps for a
        system without inputs; raises StepFailed with the step.
        """
        inputs = (
            np.zeros((inputs, 0)) if isinstance(inputs, int) else np.asarray(inputs, dtype=float)
        )
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
        """State (nx) of configuration q (nq) and velocity v (nw); the part of v outside the
        velocity constraints is dropped, orthogonally in the mass metric."""
        return self._state("state", q, v)[0][:, 0]

    def configuration(self, x) -> np.ndarray:
        """Configuration q (nq) of a state."""
        return np.array(x, dtype=float)[: self.system.space.nq]

    def velocity(self, x) -> np.ndarray:
        """Physical velocity at the node, `v = X (X^T M X)^{-1} rho`, with that of the prescribed
        coordinates, (nw).
        """
        mass, momentum, basis, prescribed = self._inertia("inertia", x)
        return (basis @ newton_method.solve(mass, momentum) + prescribed)[:, 0]

    def constraint_impulses(self, x) -> np.ndarray:
        """The part mu (n_holonomic) of a state's momentum `p = M v + Dh^T mu` that neither its
        velocity nor its next step depends on.
        """
        mass, momentum, _, _ = self._inertia("inertia", x)
        return newton_method.solve(mass, momentum)[self.system.n_rho :, 0]

    def with_constraint_impulses(self, x, mu) -> np.ndarray:
        """The state of the same configuration and velocity with mu (n_holonomic) in its
        momentum.
        """
        mass, _, basis, _ = self._inertia("inertia", x)
        n, x1 = self.system.n_rho, np.array(x, dtype=float)
        x1[self.system.space.nq :] += (
            basis[:, :n] @ mass[:n, n:] @ (mu - self.constraint_impulses(x))
        )
        return x1

    def idle(self, x) -> np.ndarray:
        """Input (nu) of no forces that leaves the prescribed coordinates where they are in state
        x.
        """
        held = len(self.system.prescribed)
        return np.concatenate(
            [np.zeros(self.system.nu), self.configuration(x)[self.system.space.nq - held :]]
        )

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
        """Discrete velocity constraint over a step, `A(q_alpha) local(q0, q1)`, (m), in the
        retraction of the method.
        """
        return self._state("constraint", x0, x1)[0][:, 0]

    def state_from_configurations(self, q0, q1, u=(), iterations: int = 20) -> np.ndarray:
        """State at q1 whose step from q0 under u came closest to the configuration q1:
        Gauss-Newton on rho0 with the exact linearization.

        For configurations that a step joins the result is exact to round-off. Raises StepFailed,
        and ValueError if the iteration does not settle.
        """
        n = self.system.space.nv
        q1 = np.asarray(q1, dtype=float)
        x0 = self.state(q0, self.system.space.velocity(q0, q1) / self.h)
        for _ in range(iterations):
            lin = self.linearize(x0, u)
            target = np.concatenate([q1, lin.x1[len(q1) :]])
            change = np.linalg.lstsq(lin.A[:n, n:], self.local(lin.x1, target)[:n], rcond=None)[0]
            x0 = self.retract(x0, np.concatenate([np.zeros(n), change]))
            if np.max(np.abs(change), initial=0.0) <= 1e-12 * (
                1 + np.max(np.abs(x0[len(q1) :]), initial=0.0)
            ):
                x1 = self.step(x0, u)
                return np.concatenate([q1, x1[len(q1) :]])
        raise ValueError(
            f"{self}: no momentum found that joins the configurations {np.asarray(q0).tolist()} "
            f"and {q1.tolist()} in one step"
        )

    def _run(self, routine: Callable[[Workspace], int], x, u) -> Workspace:
        work = self._engine.work
        _assign(work.x, x, self, "state")
        _assign(work.u, u, self, "input")
        status = routine(work)
        if status:
            raise self._failure(status, work)
        return work

    def _failure(self, status: int, work: Workspace) -> Exception:
        if not (np.isfinite(work.x).all() and np.isfinite(work.u).all()):
            return ValueError(
                f"{self}: state and input must be finite, got x = {work.x.tolist()}, u = "
                f"{work.u.tolist()}"
            )
        iterations, error, residual = work.info
        conditioning = Conditioning.of(work.r_z, self.method.multipliers)
        return StepFailed(
            str(self),
            self.h,
            newton_method.REASONS[status],
            residual,
            error,
            int(iterations),
            conditioning,
        )

    @cached_property
    def _engine(self) -> Engine:
        return Engine(StepEquations(self.system, self.method, str(self)))

    @cached_property
    def _ndx(self) -> int:
        return self.ndx

    @cached_property
    def _multipliers(self) -> slice:
        places = self.method.multipliers
        return slice(places.start, places.stop)

    @cached_property
    def _inertia(self) -> Functions:
        return Functions(f"{self.system.name}_inertia", [inertia(self.system)])

    @cached_property
    def _state(self) -> Functions:
        s = self.system
        x, x1, dx = ca.SX.sym("x", self.nx), ca.SX.sym("x1", self.nx), ca.SX.sym("dx", self.ndx)
        q, q1, v = x[: s.space.nq], x1[: s.space.nq], ca.SX.sym("v", s.space.nw)
        d = self._step_space.local(q, q1)
        middle = self._step_space.retract(q, self._alpha * d)
        return Functions(
            f"{s.name}_state",
            [
                ca.Function("state", [q, v], [ca.vertcat(q, s.momentum(q, v))], ["q", "v"], ["x"]),
                ca.Function("energy", [q, v], [s.energy(q, v)], ["q", "v"], ["energy"]),
                ca.Function(
                    "local", [x, x1], [self.state_space.local(x, x1)], ["x0", "x1"], ["dx"]
                ),
                ca.Function(
                    "retract", [x, dx], [self.state_space.retract(x, dx)], ["x", "dx"], ["x1"]
                ),
                ca.Function(
                    "constraint",
                    [x, x1],
                    [s.constraint_matrix(middle) @ s.space.frame(q) @ d],
                    ["x0", "x1"],
                    ["residual"],
                ),
            ],
        )


def _assign(array: np.ndarray, value, where, what: str) -> None:
    if (value.shape if type(value) is np.ndarray else np.shape(value)) != array.shape:
        raise ValueError(f"{where}: {what} must have shape {array.shape}, got {np.shape(value)}")
    array[...] = value
