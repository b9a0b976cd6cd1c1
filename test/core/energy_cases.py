"""Systems in which nothing is special, for the energy-preserving and the variational methods, and
their accurate motions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry import quaternion
from nh_control.geometry.chart import trivialized_jacobian
from nh_control.geometry.rotations import S2, SO3
from nh_control.geometry.spaces import Product, Rn, Space
from nh_control.integrators import INTEGRATORS
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.system import System

H = 0.1
ENERGY = (
    "mean_value",
    "gonzalez",
    "gonzalez_kinetic",
    "itoh_abe",
    "itoh_abe_symmetrized",
    "gonzalez_r",
    "gonzalez_r_differences",
    "gonzalez_f",
    "energy_collocation_4",
    "energy_collocation_6",
)
VARIATIONAL = ("variational_gauss_4", "variational_gauss_6")


@dataclass(frozen=True)
class Forces(Parameters):
    """Sizes of damping, of constant forces and of terms linear in v: a method is built once for
    all of them.
    """

    damping: float = parameter(0.0, at_least=0.0)
    constant: float = parameter(1.0, at_least=0.0)
    field: float = parameter(0.3, at_least=0.0)


def generic(damping: float = 0.0) -> System:
    """Four coordinates, two constraints; mass matrix, constraints and potential depend on all of
    them, and a term linear in v turns the motion like a magnetic field.
    """

    def lagrangian(q, v, p):
        b = ca.vertcat(ca.sin(q[2]), ca.cos(q[3]), q[0] / 2, ca.sin(q[1]))
        weights = ca.DM([2.0, 1.5, 1.0, 1.2])
        kinetic = (ca.dot(weights, v**2) + 0.4 * ca.dot(b, v) ** 2) / 2
        field = p.field * (q[0] * v[1] - q[2] ** 2 * v[3])
        potential = ca.sumsqr(q) / 2 + 0.3 * (q[0] * q[2]) ** 2 + ca.cos(2 * q[1]) * q[3] / 2
        return kinetic + field - potential

    def constraint(q, p):
        return ca.vertcat(
            ca.horzcat(1 + 0.2 * ca.sin(q[2]), 0.3 * q[3], ca.cos(q[2]), ca.sin(q[3]) / 2),
            ca.horzcat(0.1 * q[0], 1, q[2] / 2, -ca.cos(q[3])),
        )

    return System(
        name="generic",
        space=Rn("a", "b", "c", "d"),
        lagrangian=lagrangian,
        velocity_constraint=constraint,
        inputs=("u_1", "u_2"),
        force=lambda q, v, u, p: (
            ca.vertcat(u, p.constant * ca.DM([0.2, 0.1])) - p.damping * ca.DM([2, 1, 3, 1]) * v
        ),
        parameters=Forces(damping),
    )


def turning(constrained: bool = True, damping: float = 0.0, retraction: str = "cay") -> System:
    """A body about a fixed point in a field, with a constraint on its velocity that depends on its
    orientation.
    """
    inertia = ca.DM(np.diag([1.0, 1.7, 2.3]) + 0.1)

    def potential(q):
        up = quaternion.rotate(q, ca.DM([0.3, -0.2, 0.9]))[2]
        side = quaternion.rotate(q, ca.DM([1.0, 0.2, -0.4]))[0]
        return 2 * up + side**2 / 2

    def constraint(q, p):
        r = quaternion.matrix(q)
        return ca.horzcat(0.4 + 0.3 * r[0, 1], 0.3 + 0.3 * r[2, 0], 1)

    return System(
        name="suslov" if constrained else "body",
        space=SO3(retraction=retraction),
        lagrangian=lambda q, v, p: ca.dot(v, inertia @ v) / 2 - potential(q),
        velocity_constraint=constraint if constrained else None,
        inputs=("u_1", "u_2"),
        force=lambda q, v, u, p: ca.vertcat(u, 0.15 * p.constant) - p.damping * v,
        parameters=Forces(damping),
    )


def double_pendulum(damping: float = 0.0) -> System:
    """Two joints without constraints."""

    def lagrangian(q, v, p):
        coupling = v[0] * v[1] * ca.cos(q[0] - q[1])
        return v[0] ** 2 + v[1] ** 2 / 2 + coupling + 2 * ca.cos(q[0]) + ca.cos(q[1])

    return System(
        name="double_pendulum",
        space=Rn("one", "two"),
        lagrangian=lagrangian,
        inputs=("u_1", "u_2"),
        force=lambda q, v, u, p: u - p.damping * v,
        parameters=Forces(damping),
    )


def hung(damping: float = 0.0, constrained: bool = True, retraction: str = "cay") -> System:
    """A cart and a direction that are coupled in the kinetic energy, in a term linear in v, and
    by a constraint on both velocities.
    """

    def lagrangian(q, v, p):
        kinetic = (2 * v[0] ** 2 + 1.5 * v[1] ** 2 + ca.sumsqr(v[2:])) / 2 + 0.4 * v[0] * v[3]
        field = p.field * (q[2] * v[1] - q[0] * v[3])
        potential = 2 * q[4] + q[0] ** 2 / 2 + 0.3 * q[0] * q[2] * q[3] + ca.sin(q[1]) * q[3]
        return kinetic + field - potential

    def constraint(q, p):
        return ca.horzcat(1 + 0.2 * q[2], 0.3 * q[3], 0.2, -0.1 * q[0], 0.3 * q[4])

    return System(
        name="hung" if constrained else "swinging",
        space=Product(Rn("x", "y"), S2("bob_", retraction)),
        lagrangian=lagrangian,
        velocity_constraint=constraint if constrained else None,
        inputs=("u_1", "u_2"),
        force=lambda q, v, u, p: ca.vertcat(u, 0.1 * p.constant, 0, 0) - p.damping * v,
        parameters=Forces(damping),
    )


def tied(damping: float = 0.0) -> System:
    """The generic system on a surface, with one of its velocity constraints."""
    free = generic(damping)
    return replace(
        free,
        name="tied",
        velocity_constraint=lambda q, p: free.velocity_constraint(q, p)[0, :],
        holonomic_constraint=lambda q, p: (
            0.8 * q[0] ** 2 + q[1] ** 2 + q[2] ** 2 + 0.3 * q[0] * q[3] - 1
        ),
        nominal=STARTS["tied"][0],
    )


def height(q):
    """A condition on a cart and a direction."""
    return q[0] + 0.5 * q[2] * q[3] + 0.3 * q[4] ** 2 - q[1] ** 2 / 2


def bound(damping: float = 0.0) -> System:
    """The cart and the direction with both kinds of constraints."""
    return replace(
        hung(damping),
        name="bound",
        holonomic_constraint=lambda q, p: height(q),
        nominal=STARTS["bound"][0],
    )


SYSTEMS = {
    "hung": hung,
    "swinging": lambda damping=0.0: hung(damping, False, "exp"),
    "tied": tied,
    "bound": bound,
    "generic": generic,
    "suslov": turning,
    "body": lambda damping=0.0: turning(False, damping),
    "double_pendulum": double_pendulum,
}
STARTS = {
    "hung": ([0.3, -0.4, 0.6, 0.64, 0.48], [0.3, -0.4, 0.3, 0.4, 0.5]),
    "swinging": ([0.3, -0.4, 0.48, 0.6, 0.64], [0.6, -0.8, 0.5, 0.7, 0.9]),
    "tied": ([0.4, -0.3, 0.722**0.5, 0.5], [0.5, 1.0, -0.8, 0.7]),
    "bound": (
        [-height([0.0, -0.4, 0.6, 0.64, 0.48]), -0.4, 0.6, 0.64, 0.48],
        [0.3, -0.4, 0.3, 0.4, 0.5],
    ),
    "generic": ([0.4, -0.3, 0.6, 0.5], [0.5, 1.0, -0.8, 0.7]),
    "suslov": ([0.9, 0.3, -0.2, 0.25], [1.2, -0.9, 0.3]),
    "body": ([0.9, 0.3, -0.2, 0.25], [1.2, -0.9, 0.7]),
    "double_pendulum": ([0.4, -0.2], [0.3, 0.5]),
}
INPUT = np.array([0.3, -0.2])


@cache
def system(name: str, damping: float = 0.0, forced: bool = True) -> System:
    """The system of a name, with inputs and constant forces or without any."""
    one = SYSTEMS[name](damping=damping)
    return one if forced else replace(one, name=f"{name}_free", inputs=(), force=None)


@cache
def _made(name: str, method: str) -> DiscreteSystem:
    return INTEGRATORS[method].make(system(name), H)


def discrete(
    name: str, method: str, h: float = H, damping: float = 0.0, forced: bool = True
) -> DiscreteSystem:
    """A system under a method of the registry, with the constant forces or without them; built
    once for all steps and forces.
    """
    one = _made(name, method).with_parameters(damping=damping, constant=float(forced))
    return one.with_step(h)


@cache
def start(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A configuration and an admissible velocity of order one."""
    q, v = map(np.array, STARTS[name])
    if isinstance(system(name).space, SO3):
        q /= np.linalg.norm(q)
    a = np.vstack([constraint(name, q), held_rows(name, q)])
    return q, v - np.linalg.pinv(a) @ a @ v


def held_rows(name: str, q) -> np.ndarray:
    """Derivatives along stored velocities of what holds at all configurations: holonomic
    constraints and lengths of directions.
    """
    one, at = system(name), ca.SX.sym("q", len(q))
    held = [one.holonomic(at)] if one.n_holonomic_constraints else []
    if isinstance(one.space, Product):
        held.append(ca.sumsqr(at[2:]) / 2)
    slope = ca.Function("slope", [at, one.parameter_symbols], [ca.jacobian(ca.vertcat(*held), at)])
    return np.asarray(slope(q, one.parameter_values)).reshape(-1, one.space.nw)


def constraint(name: str, q) -> np.ndarray:
    """A(q), (m, nv)."""
    one = system(name)
    return one.value(ca.densify(one.constraint_matrix(one.symbols[0])), q)


def embedding(space: Space) -> ca.Function:
    """Rates of the stored numbers of unit velocities, (nq, nv)."""
    q = ca.SX.sym("q", space.nq)
    return ca.Function("embedding", [q], [trivialized_jacobian(space, q, lambda q: q)])


@cache
def reference(name: str, t: float, damping: float) -> tuple[np.ndarray, np.ndarray]:
    """Configuration and velocity at the time t under INPUT, by DOP853."""
    motion, rates = ContinuousSystem(system(name, damping)), embedding(system(name).space)
    nq = system(name).space.nq

    def derivative(_, y):
        q, v = y[:nq], y[nq:]
        return np.concatenate([np.asarray(rates(q)) @ v, motion.acceleration(q, v, INPUT)])

    y0 = np.concatenate(start(name))
    run = solve_ivp(derivative, (0, t), y0, "DOP853", rtol=1e-13, atol=1e-13)
    assert run.success, run.message
    return run.y[:nq, -1], run.y[nq:, -1]


def slopes(name: str, method: str, steps: tuple[int, ...], damping: float) -> np.ndarray:
    """Orders that the errors in configuration and velocity after 1 s show."""
    q, v = reference(name, 1.0, damping)
    table = []
    for n in steps:
        dsys = discrete(name, method, 1.0 / n, damping)
        x = dsys.state(*start(name), INPUT)
        x = dsys.simulate(x, np.tile(INPUT, (n, 1))).states[-1]
        at = x[: len(q)]
        if isinstance(dsys.system.space, SO3) and at @ q < 0:
            at = -at
        table.append([np.abs(at - q).max(), np.abs(dsys.velocity(x) - v).max()])
    return -np.polyfit(np.log(steps), np.log(table), 1)[0]
