"""What is stored, read and tracked has the right places in systems of every kind: with velocity
constraints, holonomic constraints, first-order and prescribed coordinates, spheres, and any of
them together.
"""

from itertools import product

import casadi as ca
import numpy as np
import pytest
from numpy import cos, sin
from tiers import with_compiler

import nh_control as nh
from nh_control.geometry.rotations import S2
from nh_control.geometry.spaces import Product

PARTS = ("skate", "gear", "motor", "clock", "bob")
KINDS = [
    tuple(part for part, there in zip(PARTS, choice) if there)
    for choice in product((False, True), repeat=len(PARTS))
]
MASSES = np.array([1.2, 1.2, 0.8, 0.3])
"""Of x, y, the heading a and the angle b of a wheel."""


def machine(kind: tuple[str, ...]) -> nh.System:
    """A body (x, y, a) with a wheel b, pushed along its heading and turned. A "skate" is a
    velocity constraint, a "gear" b = 2 a + x / 2 a holonomic one, which a "clock" (a prescribed
    coordinate) drives; a "motor" lags behind the push (first order); a "bob" is a direction.
    """
    tail = [name for part, name in (("motor", "lag"), ("clock", "t")) if part in kind]
    flat = nh.Rn("x", "y", "a", "b", *tail)
    first = 3 if "bob" in kind else 0  # numbers of the direction and of its velocity
    lag = first + 4

    def heading(q):
        return ca.cos(q[first + 2]), ca.sin(q[first + 2])

    def lagrangian(q, v):
        kinetic = ca.dot(MASSES, v[first : first + 4] ** 2) / 2
        bob = (ca.sumsqr(v[:3]) / 2 - 3 * q[2]) if "bob" in kind else 0
        return kinetic + bob - q[first + 3] ** 2 / 2

    def force(q, v, u):
        c, s = heading(q)
        push = q[lag] if "motor" in kind else u[0]
        return ca.vertcat(ca.SX(first, 1), c * push, s * push, u[1], 0, ca.SX(len(tail), 1))

    def skate(q):
        c, s = heading(q)
        return ca.horzcat(ca.SX(1, first), -s, c, 0, 0, ca.SX(1, len(tail)))

    def gear(q):
        driven = q[q.shape[0] - 1] ** 2 if "clock" in kind else 0
        return q[first + 3] - 2 * q[first + 2] - q[first] / 2 - driven

    return nh.System(
        "machine_" + "_".join(kind) if kind else "machine",
        Product(S2("bob_"), flat) if "bob" in kind else flat,
        lagrangian,
        inputs=("push", "turn"),
        force=force,
        velocity_constraint=skate if "skate" in kind else None,
        dependent=((2 if "bob" in kind else 0) + 1,) if "skate" in kind else None,
        holonomic_constraint=gear if "gear" in kind else None,
        first_order=("lag",) if "motor" in kind else (),
        first_order_rate=(lambda q, v, u: (u[0] - q[lag]) / 0.1) if "motor" in kind else None,
        prescribed=("t",) if "clock" in kind else (),
        nominal=(*(0.6, 0, -0.8) * ("bob" in kind), *np.zeros(4 + len(tail))),
    )


def motion(kind: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """A configuration and a velocity that keep all constraints."""
    a, speed, turn, time = 0.3, 0.7, 0.4, 0.2
    x, rate = 0.1, 0.9 if "clock" in kind else 0.0
    time *= "clock" in kind
    b = 2 * a + x / 2 + time**2
    q, v = [x, -0.2, a, b], [speed * cos(a), speed * sin(a), turn]
    v.append(2 * turn + v[0] / 2 + 2 * time * rate)
    if "motor" in kind:
        q, v = [*q, 0.5], [*v, 0.0]
    if "clock" in kind:
        q, v = [*q, time], [*v, rate]
    if "bob" in kind:
        q, v = [0.48, 0.36, -0.8, *q], [0.3, -0.4, 0.0, *v]
    return np.array(q), np.array(v)


def momenta(kind: tuple[str, ...], v: np.ndarray, mu: float) -> np.ndarray:
    """The stored momenta `X^T (M v + Dh^T mu)` of a motion, with the velocity of the clock."""
    first = 3 if "bob" in kind else 0
    p = MASSES * v[first : first + 4] + mu * np.array([-0.5, 0.0, -2.0, 1.0])
    if "skate" in kind:  # v_y = tan(a) v_x
        p = np.array([p[0] + np.tan(0.3) * p[1], *p[2:]])
    return np.concatenate([v[:first], p, v[len(v) - ("clock" in kind) :]])


GEARED = sorted((kind for kind in KINDS if "gear" in kind), key=lambda k: "skate" not in k)
"""With velocity constraints first."""


@pytest.mark.parametrize("kind", GEARED, ids="-".join)
def test_constraint_impulses_are_added_to_the_momenta_and_to_nothing_else(kind):
    model = nh.nonholonomic_midpoint(machine(kind), 0.01)
    q, v = motion(kind)
    x = model.measured_state(q, v)
    for mu in (0.1, -3.0):
        changed = model.with_constraint_impulses(x, [mu])
        stored = momenta(kind, v, mu)
        np.testing.assert_allclose(changed, [*q, *stored], rtol=0, atol=1e-14)
        np.testing.assert_allclose(model.velocity(changed), v, rtol=0, atol=1e-14)
        np.testing.assert_allclose(model.constraint_impulses(changed), [mu], rtol=0, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(kind) or "plain")
def test_nominal_masses_are_those_of_the_independent_velocities(kind):
    bob = [1.0, 1.0] * ("bob" in kind)
    body = [MASSES[i] for i in range(4) if not (i == 1 and "skate" in kind)]
    model = nh.nonholonomic_midpoint(machine(kind), 0.01)
    np.testing.assert_allclose(model.nominal_masses, [*bob, *body], rtol=1e-14)


@pytest.mark.parametrize(
    "kind", [("skate", "gear"), pytest.param(PARTS, marks=pytest.mark.slow)], ids="-".join
)
def test_a_closed_loop_has_the_same_bits_in_both_tiers(kind):
    """With a disturbance estimate, from a perturbed start, on a plant of two substeps."""

    def tracked():
        model = nh.nonholonomic_midpoint(machine(kind), 0.01)
        plant = model.with_step(0.005)
        q, v = motion(kind)
        inputs = np.full((20, model.nu), 0.1)
        inputs[:, 2:] = q[-1] + 0.01 * v[-1] * np.arange(1, 21)[:, None]
        reference = model.simulate(model.state(q, v), inputs)
        weights = np.eye(model.ndx), np.eye(model.nu)
        tracker = nh.LqrTracker(model, reference, *weights, disturbance_gain=0.3)
        start = plant.measured_state(q, 1.01 * v)
        plant.prepare()
        return nh.rollout(plant, [start] * 2, tracker, substeps=2)

    virtual = tracked()
    with with_compiler():
        compiled = tracked()
    assert not any(virtual.failures) and np.abs(virtual.errors[:, 1:]).max() > 1e-3
    for name in ("states", "errors", "inputs"):
        np.testing.assert_array_equal(getattr(compiled, name), getattr(virtual, name), name)
