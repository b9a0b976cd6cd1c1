"""Contacts of the collision elements of a URDF."""

import numpy as np
import pytest
from refusals import refusal
from urdf_robots import robot_file

import nh_control as nh
from nh_control.multibody import Point

INERTIAL = (
    '<inertial><mass value="1"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" '
    'izz="0.01"/></inertial>'
)


def collision(geometry, origin=""):
    return f"<collision>{origin}<geometry>{geometry}</geometry></collision>"


def one_link(*collisions):
    content = INERTIAL + "".join(collisions)
    return f'<robot name="robot"><link name="base">{content}</link></robot>'


def loaded(*collisions, **options):
    options = {"contacts": "collision", **options}
    return nh.load_urdf(one_link(*collisions), "floating", space="SO3xR3", **options)


ORIGIN = '<origin xyz="0.1 0.2 0.3" rpy="1.5707963267948966 0 0"/>'
SHAPES = {
    '<sphere radius="0.1"/>': nh.Sphere(0.1),
    '<cylinder radius="0.1" length="0.3"/>': nh.Cylinder(0.1, 0.3, (0, -1, 0)),
    '<capsule radius="0.1" length="0.3"/>': nh.Capsule(0.1, 0.3, (0, -1, 0)),
    '<box size="0.1 0.2 0.3"/>': nh.BoxCorners(
        (0.1, 0.2, 0.3), ((1, 0, 0), (0, 0, -1), (0, 1, 0))
    ),
}


@pytest.mark.parametrize("geometry", SHAPES)
def test_shapes_are_those_of_the_file_turned_and_placed(geometry):
    ground = nh.Plane(height=-1.0)
    model = loaded(collision(geometry, ORIGIN), friction=0.3, restitution=0.2, ground=ground)
    (contact,) = model.contacts
    assert (contact.name, contact.friction, contact.restitution) == ("base", 0.3, 0.2)
    assert contact.point == Point("base", (0.1, 0.2, 0.3)) and contact.ground == ground
    wanted, got = SHAPES[geometry], contact.shape
    assert type(got) is type(wanted)
    for field, value in vars(wanted).items():
        assert getattr(got, field) == pytest.approx(np.array(value), abs=1e-15)


def test_several_collisions_of_a_link_are_numbered():
    model = loaded(*(collision(geometry) for geometry in SHAPES))
    assert [contact.name for contact in model.contacts] == [f"base_{i}" for i in range(1, 5)]
    assert len(model.system.contacts) == 1 + 2 + 2 + 8


def test_what_cannot_touch_is_refused_by_name(snapshot):
    mesh = collision('<mesh filename="a.stl"/>')
    told = [refusal(lambda: loaded(mesh, contacts=one)) for one in ("all", ["foot"], "collision")]
    told.append(refusal(lambda: loaded(contacts=["base"])))
    turns = np.eye(2), -np.eye(3)
    assert told + [refusal(lambda: nh.BoxCorners((1, 1, 1), turn)) for turn in turns] == snapshot


@pytest.mark.slow
def test_a_cylinder_rolls_on_its_rims_at_two_thirds_of_the_speed_that_slid():
    """Of a solid cylinder, `m r^2 / 2` about its axis: v = 2 v_0 / 3."""
    inertial = INERTIAL.replace('iyy="0.01"', 'iyy="0.005"')
    text = one_link(collision('<cylinder radius="0.1" length="0.2"/>', ORIGIN)).replace(
        INERTIAL, inertial
    )
    text = text.replace('xyz="0.1 0.2 0.3" ', "")
    model = nh.load_urdf(text, "floating", space="SO3xR3", contacts="collision", friction=0.5)
    dsys = nh.midpoint(model, 0.01)
    start = dsys.state([1, 0, 0, 0, 0, 0, 0.1 + 1e-9], [0, 0, 0, 1, 0, 0])
    v = dsys.simulate(start, steps=50).velocities[-1]
    assert v[[1, 3]] == pytest.approx([20 / 3, 2 / 3], rel=1e-6)


def test_upkie_touches_the_ground_with_its_tires():
    tires = ["left_wheel_tire", "right_wheel_tire"]
    model = nh.load_urdf(robot_file("upkie"), "floating", contacts=tires)
    assert [c.name for c in model.system.contacts] == [f"{t}_{i}" for t in tires for i in (1, 2)]
    q = model.configuration()
    lowest = [model.point(q, tire)[2] - 0.05 for tire in tires]
    gaps = [float(contact.gap(q)) for contact in model.system.contacts]
    assert gaps == pytest.approx(np.repeat(lowest, 2), abs=1e-12)
