"""What contacts are declared as, and what is refused, by name and with the remedy."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from bodies import ball, body, box, point
from refusals import refusal

import nh_control as nh
from nh_control.integrators import INTEGRATORS
from nh_control.multibody import Body, Point, floating


def constraint(**options):
    return nh.UnilateralConstraint("floor", **{"gap": lambda q: q[1], **options})


def touched(**options):
    """A point whose floor has these options."""
    contacts = (constraint(**options),)
    return nh.System("p", nh.Rn("x", "z"), lambda q, v: ca.sumsqr(v) / 2, contacts=contacts)


def gripped(*grips):
    return replace(nh.systems.snakeboard(), grips=grips)


def model(*contacts):
    bodies = [Body("a", 1.0, inertia=(1, 1, 1))]
    return nh.Multibody("two", [floating("a")], bodies, contacts=contacts)


PENDULUM = nh.midpoint(nh.systems.pendulum(), 0.01)
BALL = nh.Sphere(0.1)
OTHERS = [name for name in INTEGRATORS if name not in ("midpoint", "nonholonomic_midpoint")]
REFUSED = [
    lambda: constraint(friction=-1.0),
    lambda: constraint(friction=float("nan")),
    lambda: constraint(restitution=1.5),
    lambda: constraint(friction=0.5),
    lambda: touched(gap=lambda q: q),
    lambda: touched(point=lambda q: q.T, friction=0.1),
    lambda: touched(slip=lambda q: ca.SX(1, 3), friction=0.1),
    *(lambda rows=rows: nh.Grip(rows, 1.0, 0.5) for rows in ((), (0, 1, 2), (0, 0), (-1,))),
    lambda: gripped(nh.Grip((2,), 1.0, 0.5)),
    lambda: gripped(nh.Grip((0,), 1.0, 0.5), nh.Grip((0, 1), 1.0, 0.5)),
    *(lambda size=size: point(0.1, 0.5).with_smoothing(size) for size in (0.0, -1.0, np.inf)),
    lambda: INTEGRATORS["rk4"].make(ball().system, 0.01),
    lambda: ball().composed([1.5, -0.5], "back"),
    lambda: nh.contact_forces(PENDULUM, PENDULUM.state([0.1], [0]), [0]),
    lambda: nh.Sphere(0.0),
    lambda: nh.BoxCorners((1, -1, 1)),
    lambda: nh.Plane(surface_velocity=(0, 0, 1)),
    lambda: nh.Contact("body", shape="mesh.stl"),
    lambda: body(BALL, friction=-0.1),
    lambda: model(nh.Contact("b", BALL)),
    lambda: model(nh.Contact("a", BALL), nh.Contact("a", nh.Corner())),
    lambda: nh.BodySurface("b", nh.Disc(0.1)),
    lambda: nh.Contact("a", nh.Corner(), ground=nh.BodySurface("b", BALL)),
    lambda: model(nh.Contact("a", BALL, ground=nh.BodySurface(Point("c", (0, 0, 0.1)), BALL))),
]


def test_what_cannot_touch_is_refused(snapshot):
    assert [refusal(call) for call in REFUSED] == snapshot


@pytest.mark.parametrize("name", OTHERS)
def test_other_methods_take_no_contacts(name):
    with pytest.raises(ValueError, match="contacts"):
        INTEGRATORS[name](ball().system, 0.01)


def test_a_ball_rolls_down_a_tilted_plane_and_its_height_field():
    slope, ends = 0.3, []
    tilted = nh.Plane((-np.sin(slope), 0, np.cos(slope)))
    for ground in (tilted, nh.HeightField(lambda x, y: np.tan(slope) * x)):
        dsys = body(nh.Sphere(0.1), friction=1.0, ground=ground)
        start = 0.1 * np.array([-np.sin(slope), 0, np.cos(slope)]) * (1 + 1e-7)
        x = dsys.state([1, 0, 0, 0, *start], np.zeros(6))
        ends.append(dsys.simulate(x, steps=50).states[-1, 4:7])
    moved = 9.81 * np.sin(slope) * 5 / 14 * 0.5**2
    for end in ends:
        assert np.linalg.norm(end - start) == pytest.approx(moved, rel=1e-4)


def test_friction_and_restitution_of_a_model_are_parameters_by_name():
    dsys = box(parameters=("body_friction", "body_restitution"))
    assert dsys.parameter_names == ("body_friction", "body_restitution", "smoothing", "h")
    changed = dsys.with_parameters(body_friction=0.2).with_smoothing(1e-6)
    assert changed.parameter_values == pytest.approx([0.2, 0, 1e-6, 0.01])
    with pytest.raises(ValueError, match="friction must be"):
        dsys.with_parameters(body_friction=-0.2)


def test_a_contact_of_a_model_bounces_from_the_speed_that_it_declares():
    contact = nh.Contact("a", BALL, restitution=0.5, bounce_speed=0.3)
    assert [touch.bounce_speed for touch in model(contact).system.contacts] == [0.3]
