"""Random trees, stepped by the linear-time kernel and by generated equations."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from differences import jacobian

from nh_control.integrators import midpoint
from nh_control.multibody import (
    Body,
    Coincident,
    Distance,
    JointConstraint,
    JointDamper,
    JointFriction,
    JointInput,
    JointSpring,
    Mimic,
    Multibody,
    Point,
    PointOnPlane,
    Wrench,
    fixed,
    floating,
    planar,
    prismatic,
    revolute,
    spherical,
)
from nh_control.multibody.contact_grounds import Plane
from nh_control.multibody.contact_shapes import Ellipsoid, Sphere
from nh_control.multibody.tree_engine import TreeEngine
from nh_control.multibody.wheels import RollingWheel, Skate

SCALAR = (revolute, prismatic)
JOINTS = (
    *(lambda *a, make=make, **k: make(*a, "x", **k) for make in (revolute, prismatic, planar)),
    *(lambda *a, r=r, **k: spherical(*a, retraction=r, **k) for r in ("exp", "cay")),
    *(
        lambda *a, r=r, s=s, **k: floating(*a, retraction=r, space=s, **k)
        for r in ("exp", "cay")
        for s in ("SE3", "SO3xR3")
    ),
)


def rotation(rng):
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    return q * np.linalg.det(q) * np.sign(np.linalg.det(r)) ** 2


def body(frame, rng):
    return Body(frame, rng.uniform(0.5, 2), rng.normal(size=3) / 5, rng.uniform(0.1, 0.15, 3))


def random_tree(kinds, rng, prescribed=()):
    """Return a tree with joints of these kinds (numbers of JOINTS); joints with one coordinate
    have springs, dampers and inputs, and a fixed frame in the middle has a body.
    """
    frames, bodies, elements, inputs = [], [], [], []
    for i, kind in enumerate(kinds):
        name, parent = f"b{i}", "world" if i == 0 else f"b{rng.integers(i)}"
        placed = {"position": rng.normal(size=3) / 3, "rotation": rotation(rng)}
        if i and rng.random() < 0.3:
            frames.append(fixed(f"f{i}", parent, **placed))
            bodies.append(body(f"f{i}", rng))
            parent = f"f{i}"
        if kind < 2:
            frames.append(SCALAR[kind](name, parent, rng.normal(size=3), **placed))
            elements += [JointSpring(name, 3.0, 0.2), JointSpring(name, 1.0)]
            elements += [JointDamper(name, 0.3), JointFriction(name, 0.2, 0.4)]
            if name not in prescribed:
                inputs.append(JointInput(name))
        else:
            frames.append(JOINTS[kind](name, parent, **placed))
        bodies.append(body(name, rng))
    return Multibody("tree", frames, bodies, elements, inputs, prescribed=prescribed)


def with_followers(model, count, rng):
    """Return the model with additional joints that follow some of its coordinates; each carries
    another joint.
    """
    frames, bodies = list(model.frames), list(model.bodies)
    for k in range(count):
        parent = rng.choice(["world", *(frame.name for frame in frames)])
        mimic = Mimic(str(rng.choice(model.tree.scalars)), rng.normal(), rng.normal())
        placed = {"position": rng.normal(size=3) / 3, "rotation": rotation(rng)}
        make = SCALAR[rng.integers(2)]
        frames.append(make(f"m{k}", str(parent), rng.normal(size=3), mimic=mimic, **placed))
        frames.append(
            revolute(f"c{k}", f"m{k}", rng.normal(size=3), position=rng.normal(size=3) / 3)
        )
        bodies += [body(f"m{k}", rng), body(f"c{k}", rng)]
    return replace(model, frames=frames, bodies=bodies)


def with_wrenches(model, count, rng):
    """Return the model with wrenches on points of some frames, before and after other inputs."""
    names = [frame.name for frame in model.frames]
    points = (Point(str(rng.choice(names)), rng.normal(size=3) / 3) for _ in range(count))
    ways = "body", "world"
    wrenches = [Wrench(f"w{k}", point, ways[k % 2]) for k, point in enumerate(points)]
    return replace(model, inputs=[*wrenches[:1], *model.inputs, *wrenches[1:]])


def with_wheels(model, q, count, rng):
    """Return the model with wheels, balls and skates on random frames that touch their grounds,
    inclined planes at rest, sliding or turning, at q.
    """
    wheels = []
    for number in range(count):
        frame = str(rng.choice([frame.name for frame in model.frames if not frame.is_fixed]))
        at, normal = Point(frame, rng.normal(size=3) / 3), rng.normal(size=3)
        normal /= np.linalg.norm(normal)
        velocity = np.cross(normal, rng.normal(size=3)) * rng.integers(2)
        turns = {"turn_rate": rng.normal() * rng.integers(2), "center": rng.normal(size=3)}
        shape = (
            {"shape": Sphere(0.2)},
            {"radius": 0.3, "axis": rng.normal(size=3), "rounding": 0.1},
            {"shape": Ellipsoid((0.3, 0.2, 0.4)), "slips": "sideways"},
        )
        kind = rng.integers(4)

        def wheel(height, kind=kind, at=at, name=f"w{number}"):
            ground = Plane(normal, height, velocity, **turns)
            where = {"at": at, "ground": ground, "name": name}
            return Skate(**where) if kind == 3 else RollingWheel(**where, **shape[kind])

        k = model.kinematics(ca.SX(q), ca.SX(model.space.nw, 1))
        wheels.append(wheel(float(wheel(0.0).touch(k).gap)))
    return replace(model, wheels=wheels)


KINDS = (
    "string",
    "reeled",
    "plane",
    "coincident",
    "universal",
    "cylindrical",
    "planar",
    "helical",
)
"""Constraints that close loops."""


def satisfied(kind, number, model, q, rng):
    """A constraint of this kind between points of random frames, or of the world, that holds at
    q; a point of b is where it must be.
    """
    names = [frame.name for frame in model.frames]
    b = str(rng.choice(names))
    a = Point(str(rng.choice(["world", *(n for n in names if n != b)])), rng.normal(size=3) / 3)
    name, place = f"c{number}", model.poses(q)
    turn_a, turn_b = place[a.frame].rotation, place[b].rotation
    met = Point(b, turn_b.T @ (model.point(q, a) - place[b].position))
    if kind == "string":
        return Distance(name, a, b, np.linalg.norm(model.point(q, a) - place[b].position))
    if kind == "reeled":
        return Distance(name, a, b, f"length{number}")
    if kind == "plane":
        return PointOnPlane(name, met, a, rng.normal(size=3))
    if kind == "coincident":
        return Coincident(name, a, met, "zx")
    ways = {"axis": rng.normal(size=3), "second_axis": rng.normal(size=3)}
    if kind == "helical":
        ways["pitch"] = rng.uniform(0.1, 0.5)
    return JointConstraint(name, kind, a, met, rotation=turn_a.T @ turn_b, **ways)


def constrained_model(free, constraints, rng):
    """The model under random constraints (of KINDS), and a configuration that satisfies them."""
    q = free.space.retract(free.space.origin, rng.normal(size=free.space.nv))
    held = [satisfied(kind, i, free, q, rng) for i, kind in enumerate(constraints)]
    ends = [c for c in held if isinstance(c, Distance) and isinstance(c.length, str)]
    lengths = [c.length for c in ends]
    model = replace(free, constraints=held, prescribed=[*free.prescribed, *lengths])
    reeled = [np.linalg.norm(free.point(q, c.a) - free.point(q, c.b)) for c in ends]
    return model, np.concatenate([q, reeled])


def by_equations(system, h=0.02, forcing="symmetric"):
    """Return the discrete system by generated equations: a copy is no longer known as a tree."""
    generated = midpoint(replace(system), h, forcing)
    assert not isinstance(generated.engine, TreeEngine)
    return generated


def both_ways(model, h=0.02, forcing="symmetric"):
    """Return the same discrete system by the kernel, and by generated equations."""
    tree = midpoint(model.system, h, forcing)
    assert isinstance(tree.engine, TreeEngine)
    return tree, by_equations(model.system, h, forcing)


def not_worth_compiling(dsys, *functions):
    """Return the system with all generated functions in CasADi's virtual machine; the kernel is
    unchanged.
    """
    _ = dsys.engine, dsys._functions.code.node_functions
    for name in ("state", *functions):
        getattr(dsys._functions.code, name)
    return dsys


def random_motion(dsys, rng):
    """Return a state and an input."""
    space = not_worth_compiling(dsys).system.space
    q = space.retract(space.origin, rng.normal(size=space.nv))
    held = space.nq - len(dsys.system.prescribed)
    x = dsys.measured_state(q, rng.normal(size=space.nw))
    return x, np.concatenate([rng.normal(size=dsys.system.nu), q[held:] + 0.01])


def assert_derivatives(dsys, x, u, rng, spacing):
    """Compare A and B along three random directions with differences of steps."""
    linear, n = not_worth_compiling(dsys).linearize(x, u), dsys.ndx

    def moved(w):
        return dsys.local(linear.x1, dsys.step(dsys.retract(x, w[:n]), u + w[n:]))

    columns = rng.normal(size=(n + len(u), 3))
    found = jacobian(lambda s: moved(columns @ s), 3, spacing)
    np.testing.assert_allclose(
        np.hstack([linear.A, linear.B]) @ columns, found, rtol=0, atol=1e-8 * np.abs(found).max()
    )


def assert_the_same(tree, generated, rng):
    """Compare the kernel and generated equations at a random motion."""
    assert_the_same_at(tree, generated, *random_motion(generated, rng))


def assert_the_same_at(tree, generated, x, u):
    """Compare steps, derivatives, multipliers, conditions and energies. Round-off enters a step by
    the condition number of its equations.
    """
    expected, wanted = generated.step(x, u), generated.conditioning(x, u)
    near, size = max(1e-12, np.finfo(float).eps * wanted.jacobian), max(1.0, np.abs(x).max())
    np.testing.assert_allclose(tree.step(x, u), expected, rtol=0, atol=near * size)
    np.testing.assert_allclose(
        tree.unknowns(x, u), generated.unknowns(x, u), rtol=0, atol=10 * near * size
    )
    ours, theirs = tree.linearize(x, u), generated.linearize(x, u)
    for part in ("A", "B", "multipliers", "multipliers_x", "multipliers_u"):
        a, b = getattr(ours, part), getattr(theirs, part)
        of = theirs.multipliers_x if part.startswith("m") else b
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-10 * np.abs(of).max(initial=0.0))
    found = tree.conditioning(x, u)
    for part in ("jacobian", "mass", "constraint"):  # close to 1, several eigenvalues are the same
        assert getattr(found, part) == pytest.approx(getattr(wanted, part), rel=1e-5, abs=1e-3)
    np.testing.assert_allclose(tree.velocity(x), generated.velocity(x), rtol=0, atol=1e-11 * size)
    assert tree.energy(x) == pytest.approx(generated.energy(x), rel=1e-11, abs=1e-11)
