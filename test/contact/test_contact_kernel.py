"""Contacts in the linear-time kernel of trees against the generated equations of the same step."""

import re
from dataclasses import replace

import numpy as np
import pytest
from bodies import body, box

import nh_control as nh
from nh_control.multibody import (
    Body,
    Damper,
    Distance,
    JointDamper,
    JointInput,
    Mimic,
    Multibody,
    Point,
    Spring,
    Wrench,
    floating,
    planar,
    revolute,
    tree_contacts,
)
from nh_control.multibody.tree_engine import TreeEngine
from nh_control.numerics.amalgamation import NATIVE

SLAB = (0.002, 0.003, 0.0025)


def walker(*, mimic=False, h=0.005, **parts):
    """A trunk on two legs of one link with balls for feet, and a corner below the trunk."""
    left = revolute("left", "trunk", axis="y", position=(0, 0.1, 0))
    same = {"mimic": Mimic("left", ratio=-0.5)} if mimic else {}
    right = revolute("right", "trunk", axis="y", position=(0, -0.1, 0), **same)
    legs = [Body(leg, 0.5, (0, 0, -0.1), SLAB) for leg in ("left", "right")]
    feet = [
        nh.Contact(Point(leg, (0, 0, -0.2)), nh.Sphere(0.03), 0.6, name=f"{leg}_foot")
        for leg in ("left", "right")
    ]
    tail = nh.Contact(Point("trunk", (-0.3, 0, -0.15)), nh.Corner(), 0.4, name="tail")
    model = {
        "frames": [floating("trunk", space="SO3xR3"), left, right],
        "bodies": [Body("trunk", 2.0, (0.01, 0, 0.05), (0.02, 0.03, 0.025)), *legs],
        "contacts": [*feet, tail],
        "elements": [JointDamper("left", 0.05)],
        "inputs": [JointInput("left")],
        **parts,
    }
    return nh.midpoint(Multibody("walker", **model), h)


def sled(*, tip=True):
    """A body in a plane on two balls, with an arm. The tip of the arm may touch, too."""
    ground = nh.Plane(normal_axis="y")
    at = {"front": Point("sled", (0.2, -0.1, 0)), "back": Point("sled", (-0.2, -0.1, 0))}
    balls = [nh.Contact(p, nh.Sphere(0.05), 0.3, ground=ground, name=n) for n, p in at.items()]
    if tip:
        end = Point("arm", (0.3, 0, 0))
        balls.append(nh.Contact(end, nh.Sphere(0.02), 0.5, ground=ground, name="tip"))
    model = Multibody(
        "sled",
        [planar("sled"), revolute("arm", "sled", position=(0.2, 0, 0))],
        [Body("sled", 1.0, inertia=SLAB), Body("arm", 0.3, (0.15, 0, 0), SLAB)],
        contacts=balls,
        gravity=(0, -9.81, 0),
    )
    return nh.midpoint(model, 0.005)


def pair():
    """Two balls, of which one falls onto the other."""
    surface = nh.BodySurface("lower", nh.Sphere(0.1))
    contacts = [
        nh.Contact("lower", nh.Sphere(0.1), 0.5),
        nh.Contact("upper", nh.Sphere(0.1), 0.5, ground=surface, name="both"),
    ]
    frames = [floating(name, space="SO3xR3") for name in ("lower", "upper")]
    bodies = [Body(frame.name, 1.0, inertia=SLAB) for frame in frames]
    return nh.midpoint(Multibody("pair", frames, bodies, contacts=contacts), 0.005)


def standing(dsys, heights):
    """A state at rest but for a slow turn, with the floating bodies at these heights."""
    space = dsys.system.space
    q = np.array(space.origin)
    names = [i for i, name in enumerate(space.names) if name.endswith("_z")]
    q[names] = heights
    return dsys.state(q, 0.3 * np.sin(np.arange(space.nw)))


def dropped(dsys):
    """A body that turns, flies and touches soon."""
    return standing(dsys, 0.15)


FEET = {"a": Point("left", (0, 0, -0.2)), "b": Point("right", (0, 0, -0.2))}
CASES = {
    "box": (box, dropped),
    "capsule": (
        lambda: body(nh.Capsule(0.05, 0.2, axis="x"), ground=nh.Plane(surface_velocity=(1, 0, 0))),
        dropped,
    ),
    "ellipsoid on hills": (
        lambda: body(
            nh.Ellipsoid((0.1, 0.15, 0.2)), ground=nh.HeightField(lambda x, y: 0.05 * x * y)
        ),
        dropped,
    ),
    "walker": (walker, lambda d: standing(d, 0.25)),
    "mimic": (lambda: walker(mimic=True), lambda d: standing(d, 0.25)),
    "prescribed": (
        lambda: walker(prescribed=["right"]),
        lambda d: standing(d, 0.25),
    ),
    "loop": (
        lambda: walker(
            constraints=[Distance("rod", FEET["a"], Point("right", (0.1, 0, -0.2)), 0.05**0.5)]
        ),
        lambda d: standing(d, 0.25),
    ),
    "springs and wrenches": (
        lambda: walker(
            elements=[
                Spring("world", Point("trunk", (0, 0, 0.1)), 30.0, 0.1),
                Damper(*FEET.values(), 2.0),
            ],
            inputs=[
                Wrench("push", Point("trunk", (0.1, 0, 0)), components=("force_x", "torque_z"))
            ],
        ),
        lambda d: standing(d, 0.25),
    ),
    "sled": (sled, lambda d: d.state([0.0, 0.0, 0.2, 0.3], [0.3, 1.0, -0.2, 0.5])),
    "sled with a free arm": (
        lambda: sled(tip=False),
        lambda d: d.state([0.0, 0.0, 0.2, 0.3], [0.3, 1.0, -0.2, 0.5]),
    ),
    "pair": (pair, lambda d: standing(d, [0.11, 0.34])),
}


COMPILED_SOON = "sled", "sled with a free arm", "capsule"
"""Cases whose generated code takes few seconds to compile."""


@pytest.mark.parametrize(
    "name",
    [
        name if name in COMPILED_SOON else pytest.param(name, marks=pytest.mark.slow)
        for name in CASES
    ],
)
def test_the_kernel_steps_and_linearizes_as_generated_code(name):
    make, start = CASES[name]
    dsys = make()
    generated = nh.midpoint(replace(dsys.system), dsys.h)
    assert isinstance(dsys.engine, TreeEngine) and not isinstance(generated.engine, TreeEngine)
    x, pressed = start(dsys), 0
    normal = dsys.method.contacts.first + dsys.method.contacts.blocks[0].normal
    for k in range(60):
        u = dsys.idle(x) + 0.002 * np.cos(k + np.arange(dsys.nu))
        own, other = dsys.linearize(x, u), generated.linearize(x, u)
        scale = np.abs(x).max()
        assert own.x1 == pytest.approx(other.x1, abs=1e-10 * scale), k
        mine, theirs = (np.hstack([one.A, one.B]) for one in (own, other))
        assert mine == pytest.approx(theirs, abs=1e-8 * np.abs(theirs).max()), k
        pressed += dsys.unknowns(x, u)[normal] > dsys.h
        x = other.x1
    assert pressed >= 1  # the first contact pushed with more than 1 N


@pytest.mark.parametrize("height", [2.0, 0.3])
def test_contacts_that_cannot_touch_push_as_those_of_generated_code(height):
    dsys = sled().with_smoothing(1e-3)
    generated = nh.midpoint(replace(dsys.system), dsys.h)
    flying = nh.midpoint(replace(dsys.system, contacts=()), dsys.h)
    x, u = dsys.state([0.0, height, 0.2, 0.3], [0.3, 1.0, -5.0, 0.5]), np.zeros(dsys.nu)
    own, other = (one.step(x, u) for one in (dsys, generated))
    assert own == pytest.approx(other, rel=1e-12, abs=1e-13)
    assert dsys.unknowns(x, u) == pytest.approx(generated.unknowns(x, u), rel=1e-9)
    assert np.abs(own - flying.step(x, u)).max() > 1e-7  # the barrier pushes at any height


def test_second_derivatives_in_contact_are_those_of_generated_code():
    make, start = CASES["sled"]
    dsys = make()
    generated = nh.midpoint(replace(dsys.system), dsys.h)
    adjoint = np.random.default_rng(0).normal(size=dsys.ndx)
    x, u = start(dsys), np.zeros(dsys.nu)
    own, other = (each.hessian(x, u, adjoint) for each in (dsys, generated))
    assert own == pytest.approx(other, abs=1e-12 * np.abs(other).max())


def test_functions_of_contacts_have_the_order_of_their_struct():
    header = NATIVE / "free_step.h"
    (struct,) = re.findall(r"struct contact_functions \{(.*?)\};", header.read_text(), re.DOTALL)
    functions = re.search(r"struct function ([\w, ]+);", struct)[1].split(", ")
    assert functions == [*tree_contacts.FUNCTIONS]
    fields = re.findall(r" \(\*(\w+)\)", struct)
    assert len(fields) == len(tree_contacts.ROUTINES)
    assert all(field in routine for field, routine in zip(fields, tree_contacts.ROUTINES))
