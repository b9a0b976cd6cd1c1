"""Spheres and capsules of two bodies against each other, and ellipsoids on the ground."""

import numpy as np
import pytest
from bodies import body
from differences import jacobian
from scipy.spatial.transform import Rotation

import nh_control as nh
from nh_control.multibody import Body, floating

BODIES = {"a": (1.0, (0.004, 0.005, 0.006)), "b": (2.0, (0.010, 0.008, 0.009))}
ROUND = {
    "two spheres": (nh.Sphere(0.1), nh.Sphere(0.12)),
    "a capsule and a sphere": (nh.Capsule(0.05, 0.2), nh.Sphere(0.12)),
    "a sphere and a capsule": (nh.Sphere(0.1), nh.Capsule(0.06, 0.3, axis="x")),
    "two capsules": (nh.Capsule(0.05, 0.2), nh.Capsule(0.06, 0.3, axis="x")),
}


def pair(shapes, friction=0.5, restitution=0.0, h=0.005, smoothing=1e-8):
    """Two bodies in free space."""
    surface = nh.BodySurface("b", shapes[1])
    model = nh.Multibody(
        "pair",
        [floating(name, space="SO3xR3") for name in BODIES],
        [Body(name, mass, inertia=inertia) for name, (mass, inertia) in BODIES.items()],
        gravity=(0, 0, 0),
        contacts=[nh.Contact("a", shapes[0], friction, restitution, surface)],
        smoothing=smoothing,
    )
    return nh.midpoint(model, h)


def approaching(dsys, rng):
    """The state of two bodies that turn at random and fly towards each other at 1.3 m/s."""
    q = np.array([1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0.5, 0, 0])
    turned, off = rng.normal(size=(2, 3)), 0.03 * rng.normal(size=(2, 3))
    q = dsys.system.space.retract(q, np.hstack([turned, off]).reshape(-1))
    v = 2 * rng.normal(size=(2, 6))
    v[:, 3:] = [[1, 0, 0], [-0.3, 0, 0]]
    return dsys.state(q, v.reshape(-1))


def momenta(run):
    """Linear and angular momenta (N, 6) about the origin."""
    total = np.zeros((len(run.states), 6))
    for i, (mass, inertia) in enumerate(BODIES.values()):
        q, v = run.states[:, 7 * i : 7 * i + 7], run.velocities[:, 6 * i : 6 * i + 6]
        spin = Rotation.from_quat(q[:, [1, 2, 3, 0]]).apply(v[:, :3] * inertia)
        total += np.hstack([mass * v[:, 3:], spin + np.cross(q[:, 4:], mass * v[:, 3:])])
    return total


@pytest.mark.parametrize(
    "shapes",
    [*list(ROUND)[1:2], *(pytest.param(n, marks=pytest.mark.slow) for n in list(ROUND)[2:])],
)
def test_a_collision_in_free_space_keeps_the_momenta(shapes):
    dsys, rng, hits = pair(ROUND[shapes]), np.random.default_rng(0), 0
    for _ in range(5):
        run = dsys.simulate(approaching(dsys, rng), steps=100)
        table = nh.ContactReadout(dsys).table(run.states[:-1], np.zeros((100, 0)))
        hits += table.normal.max() > 1 and np.abs(table.friction).max() > 0.01
        assert table.gap.min() > 0
        assert np.ptp(momenta(run), axis=0).max() < 1e-12
        assert run.energies[-1] < run.energies[0]
    assert hits == 5


def test_the_gap_is_the_distance_between_surfaces():
    """Of two rods that cross at right angles, that touch end to end, and side by side."""
    gaps = pair(ROUND["two capsules"]).system.contacts
    # a along z, b along x
    for place, distance in (((0, 0.3, 0), 0.3), ((0, 0.3, 0.2), np.hypot(0.3, 0.1))):
        q = np.array([1, 0, 0, 0, *place, 1, 0, 0, 0, 0, 0, 0])
        least = min(float(contact.gap(q)) for contact in gaps)
        assert least == pytest.approx(distance - 0.11, abs=1e-12)
    half = np.sqrt(0.5)
    beside = np.array([half, 0, half, 0, 0, 0.2, 0, 1, 0, 0, 0, 0, 0, 0])  # a along x, too
    ends = [float(contact.gap(beside)) for contact in gaps[1:3]]  # both of a
    assert ends == pytest.approx([0.09, 0.09], abs=1e-12)


@pytest.mark.slow
def test_a_is_the_derivative_through_a_contact_of_two_bodies():
    dsys = pair(ROUND["a capsule and a sphere"], smoothing=1e-4)
    q = [1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0.172, 0, 0.02]
    x = dsys.state(q, [1, 2, 1, 1, 0, 0, 0, 1, 0, -0.5, 0, 0.1])
    lin = dsys.linearize(x)
    expected = jacobian(lambda dx: dsys.local(lin.x1, dsys.step(dsys.retract(x, dx))), 24, 2e-6)
    assert np.abs(lin.A - expected).max() < 1e-6 * np.abs(expected).max()


@pytest.mark.slow
def test_a_flat_ellipsoid_falls_onto_its_side():
    dsys = body(nh.Ellipsoid((0.1, 0.1, 0.05)), inertia=(0.0026, 0.0026, 0.005), h=0.005)
    tilt = [np.cos(0.7), np.sin(0.7), 0, 0]
    run = dsys.simulate(dsys.state([*tilt, 0, 0, 0.12], np.zeros(6)), steps=400)
    upright = Rotation.from_quat(run.states[:, [1, 2, 3, 0]]).as_matrix()[:, 2, 2]
    assert upright[0] < 0.2 and upright[-100:].max() > 0.99
    assert run.states[:, 6].min() > 0.05 - 1e-9 and run.energies[-1] < run.energies[0]
