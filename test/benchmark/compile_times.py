"""Processor time until the functions of systems that are declared by a Lagrangian are compiled,
without a cache, and the time of their steps; a table.

    python test/benchmark/compile_times.py [NAMES]

Rows: a car with n trailers, a planar chain of n links in relative angles, a ballbot (two bodies on
SO(3), three omniwheels). "python" is the derivation of the expressions and the generation of C.
"""

import os
import resource
import sys
import tempfile
import time
from functools import partial

import casadi as ca
import numpy as np
from chain_scaling import revolute_chain, timed
from sizes import sized

import nh_control as nh
from nh_control.geometry.rotations import SO3
from nh_control.geometry.spaces import Product, Rn
from nh_control.mechanics.system import System
from nh_control.numerics.compiled import wait_for_compiler


def trailers(n: int) -> System:
    """A car at (x, y) with the angle phi of its front wheels, and n trailers of 1 m."""

    def axles(q, v):
        p, w = q[:2], v[:2]
        yield p, w
        for i in range(4, 4 + n):
            along = ca.vertcat(ca.cos(q[i]), ca.sin(q[i]))
            p, w = p - along, w - v[i] * ca.vertcat(-along[1], along[0])
            yield p, w

    def lagrangian(q, v):
        energy = 0.05 * (v[2] + v[3]) ** 2 / 2
        for i, (_, w) in enumerate(axles(q, v)):
            across = ca.vertcat(-ca.sin(q[3 + i]), ca.cos(q[3 + i]))
            mass = 2.0 if i == 0 else 1.0
            energy += mass * ca.sumsqr(w + 0.2 * across * v[3 + i]) / 2 + 0.1 * v[3 + i] ** 2 / 2
        return energy

    def wheels(q):
        v = ca.SX.sym("v", 4 + n)
        rates, front = [w for _, w in axles(q, v)], q[2] + q[3]
        nose = rates[0] + 0.8 * v[3] * ca.vertcat(-ca.sin(q[3]), ca.cos(q[3]))
        rows = [
            ca.cos(angle) * w[1] - ca.sin(angle) * w[0]
            for angle, w in zip((front, *ca.vertsplit(q[3:])), (nose, *rates))
        ]
        return ca.jacobian(ca.vertcat(*rows), v)

    def force(q, v, u):
        push = u[0] * ca.vertcat(ca.cos(q[3]), ca.sin(q[3]))
        return ca.vertcat(push, u[1], ca.SX(n + 1, 1))

    names = ("x", "y", "phi", *(f"theta_{i}" for i in range(n + 1)))
    return System(
        f"trailers_{n}",
        Rn(*names),
        lagrangian,
        ("push", "steer"),
        force,
        velocity_constraint=wheels,
    )


RADIUS, WHEEL, HEIGHT = 0.1, 0.05, 0.5


def rotation(w: ca.SX) -> ca.SX:
    """The rotation matrix of a unit quaternion."""
    x, s = w[1:], w[0]
    return (s**2 - ca.sumsqr(x)) * ca.SX.eye(3) + 2 * x @ x.T + 2 * s * ca.skew(x)


def ballbot() -> System:
    """A ball that rolls, and a body on three omniwheels that roll on it."""
    angles = 2 * np.pi / 3 * np.arange(3)
    out = [np.array([np.cos(a), np.sin(a), 1.0]) / np.sqrt(2) for a in angles]
    across = [np.array([-np.sin(a), np.cos(a), 0.0]) for a in angles]

    def lagrangian(q, v):
        body, turn, middle = rotation(q[4:8]), v[3:6], ca.vertcat(v[6:8], 0)
        energy = 2.0 * ca.sumsqr(middle) / 2 + 0.01 * ca.sumsqr(v[:3]) / 2
        energy += ca.dot(ca.DM([0.3, 0.3, 0.1]), turn**2) / 2
        parts = [(10.0, np.array([0, 0, HEIGHT]))]
        parts += [(0.3, (RADIUS + WHEEL) * place) for place in out]
        for mass, place in parts:
            w = middle + body @ ca.cross(turn, ca.DM(place))
            energy += mass * (ca.sumsqr(w) / 2 - 9.81 * (body @ ca.DM(place))[2])
        for k in range(3):
            axis = ca.DM(np.cross(out[k], across[k]))
            energy += 0.001 * ca.sumsqr(turn + axis * v[8 + k]) / 2
        return energy

    def rolling(q):
        v, body = ca.SX.sym("v", 11), rotation(q[4:8])
        ball, slip = rotation(q[:4]) @ v[:3], rotation(q[:4]) @ v[:3] - body @ v[3:6]
        rows = [v[6] - RADIUS * ball[1], v[7] + RADIUS * ball[0]]
        for k in range(3):
            at, along = RADIUS * (body @ ca.DM(out[k])), body @ ca.DM(across[k])
            rows.append(ca.dot(ca.cross(slip, at), along) - WHEEL * v[8 + k])
        return ca.jacobian(ca.vertcat(*rows), v)

    space = Product(SO3("ball"), SO3("body"), Rn("x", "y", *(f"wheel_{k}" for k in range(3))))
    torques = tuple(f"torque_{k}" for k in range(3))
    force = lambda q, v, u: ca.vertcat(ca.SX(8, 1), u)  # noqa: E731
    return System("ballbot", space, lagrangian, torques, force, velocity_constraint=rolling)


SYSTEMS = {
    **{f"trailers_{n}": partial(trailers, n) for n in sized((4, 8), (1,))},
    **{f"chain_{n}": partial(revolute_chain, n) for n in sized((16,), (2,))},
    **sized({"ballbot": ballbot}, {}),
}


def seconds(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def measure(name: str) -> None:
    """Print one row of the table."""
    own, compiler = seconds(resource.RUSAGE_SELF), seconds(resource.RUSAGE_CHILDREN)
    system = SYSTEMS[name]()
    make = nh.nonholonomic_midpoint if system.n_velocity_constraints else nh.midpoint
    dsys = make(system, 0.001).prepare()
    own = seconds(resource.RUSAGE_SELF) - own
    compiler = seconds(resource.RUSAGE_CHILDREN) - compiler
    v = np.zeros(system.space.nw)
    v[-2:] = 0.1
    x = dsys.measured_state(system.nominal_configuration, v)
    states, u = dsys.simulate(x, np.zeros((sized(200, 5), dsys.nu))).states, np.zeros(dsys.nu)
    calls = (lambda x: dsys.step(x, u)), (lambda x: dsys.linearize(x, u))
    steps, linearizations = (np.median(timed(call, states)) for call in calls)
    print(f"{name:12} {own:8.1f} {compiler:10.1f} {steps:9.1f} {linearizations:15.1f}", flush=True)


def main() -> None:
    start = time.perf_counter()
    print(f"{'system':12} {'python s':>8} {'compiler s':>10} {'step us':>9} {'step, A, B us':>15}")
    for name in sys.argv[1:] or SYSTEMS:
        measure(name)
    wait_for_compiler()
    print(f"all in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:
        os.environ["NH_CONTROL_CACHE"] = cache
        main()
