"""Wheels, balls and skates of a `Multibody`; random ones are under all laws (test/laws)."""

import re
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from random_trees import assert_the_same_at

import nh_control as nh
from nh_control.multibody import Body, JointInput, Point, fixed, floating, planar, revolute
from nh_control.multibody.tree_engine import TreeEngine

BALL = Body("ball", 2.0, inertia=0.4 * 2.0 * 0.1**2 * np.eye(3))


def ball(ground=nh.Plane(), **wheel):
    wheel = {"shape": nh.Sphere(0.1)} | wheel
    rolling = nh.RollingWheel(at="ball", ground=ground, **wheel)
    return nh.Multibody("ball", [floating("ball", space="SO3xR3")], [BALL], wheels=[rolling])


def cart(**wheels):
    """A chassis on two wheels with radius 0.3 of one axle and a caster."""
    frames = [
        floating("chassis"),
        *(revolute(side, "chassis", "y", position=(0, y, 0)) for side, y in SIDES.items()),
        fixed("caster", "chassis", position=(0.5, 0, -0.2)),
    ]
    bodies = [Body("chassis", 20.0, (0.1, 0, 0.2), (1.0, 1.5, 2.0))]
    bodies += [Body(side, 1.0, inertia=(0.03, 0.05, 0.03)) for side in SIDES]
    rolling = [nh.RollingWheel(at=side, radius=0.3, **wheels.get(side, {})) for side in SIDES]
    rolling.append(nh.RollingWheel(at="caster", shape=nh.Sphere(0.1), slips="all"))
    inputs = [JointInput(side) for side in SIDES]
    return nh.Multibody("cart", frames, bodies, inputs=inputs, wheels=rolling)


SIDES = {"left": 0.4, "right": -0.4}
ONE_SIDE = {"right": {"slips": "sideways"}}


def snake():
    frames = [planar("l0"), *(revolute(f"l{i}", f"l{i - 1}", position=(1, 0, 0)) for i in (1, 2))]
    bodies = [Body(f"l{i}", 1.0, (0.5, 0, 0), (0.01, 0.08, 0.08)) for i in range(3)]
    skates = [nh.Skate(at=Point(f"l{i}", (0.5, 0, 0))) for i in range(3)]
    return nh.Multibody("snake", frames, bodies, prescribed=("l1", "l2"), wheels=skates)


def test_a_ball_on_a_turntable_moves_in_a_circle_at_two_sevenths_of_its_rate():
    """The center moves with `v' = 2/7 rate z x v` for every start [neimark1972]."""
    rate, h = 3.0, 0.001
    model = ball(nh.Plane(turn_rate=rate, center=(0.2, 0.1, 0.0)))
    dsys = nh.nonholonomic_midpoint(model, h)
    q = model.configuration({"ball_x": 0.5, "ball_z": 0.1})
    x = dsys.state(q, model.velocity({"ball_v_x": 0.3, "ball_omega_z": 1.0}))
    states = dsys.simulate(x, 1000).states
    v = np.array([dsys.velocity(state)[3:5] for state in states])
    turned = np.unwrap(np.arctan2(v[:, 1], v[:, 0]))
    np.testing.assert_allclose(np.diff(turned) / h, 2 / 7 * rate, rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(v, axis=1), np.linalg.norm(v[0]), rtol=1e-9)
    height = [dsys.configuration(state)[6] for state in states]
    np.testing.assert_allclose(height, 0.1, rtol=1e-13)


def test_a_ball_follows_a_height_field():
    model = ball(nh.HeightField(lambda x, y: 0.1 * ca.sin(x) + 0.05 * y))
    dsys = nh.nonholonomic_midpoint(model, 0.005)
    q = model.configuration({"ball_z": 0.1 * np.sqrt(1 + 0.1**2 + 0.05**2)})
    v = model.velocity({"ball_v_y": 1.0, "ball_v_z": 0.05, "ball_omega_x": -10.0})
    x = dsys.simulate(dsys.state(q, v), 100).states[-1]
    np.testing.assert_allclose(
        model.constraint_residuals(dsys.configuration(x))["ball"], 0, atol=1e-14
    )
    assert dsys.energy(x) == pytest.approx(dsys.energy(dsys.state(q, v)), rel=1e-3)


def test_a_tilted_wheel_with_a_round_rim_stands_on_the_lowest_point_of_the_torus():
    wheel = nh.RollingWheel(at="ball", radius=0.4, rounding=0.1)
    tilt = 0.7
    model = replace(ball(), wheels=[wheel])
    q = model.configuration({"ball_qw": np.cos(tilt / 2), "ball_qx": np.sin(tilt / 2)})
    (gap,) = model.constraint_residuals(q)["ball"]
    assert -gap == pytest.approx(0.3 * np.cos(tilt) + 0.1)


def test_a_cart_drives_a_circle_without_leaving_its_tracks():
    model = cart(**ONE_SIDE)
    dsys = nh.nonholonomic_midpoint(model, 0.01)
    assert isinstance(dsys.engine, TreeEngine)
    x = dsys.state(model.configuration({"chassis_z": 0.3}), np.zeros(model.space.nw))
    x = dsys.simulate(x, np.tile([1.0, 2.0], (100, 1))).states[-1]
    q, v = dsys.configuration(x), dict(zip(model.space.velocity_names, dsys.velocity(x)))
    assert v["chassis_v_x"] == pytest.approx(0.15 * (v["left_dot"] + v["right_dot"]))
    assert v["chassis_omega_z"] == pytest.approx(0.3 / 0.8 * (v["right_dot"] - v["left_dot"]))
    assert max(np.abs(h).max() for h in model.constraint_residuals(q).values()) < 1e-13


def test_prescribed_joints_of_a_snake_with_three_wheels_fix_its_motion():
    model = snake()
    dsys = nh.nonholonomic_midpoint(model, 0.01)
    assert dsys.ndx == 5 + 2  # no momenta, the velocities of the prescribed joints
    t = np.arange(301) * dsys.h
    joints = 0.5 + 0.4 * np.stack([np.sin(2 * t), np.sin(2 * t + 1.5)], axis=1)
    q = model.configuration({"l1": joints[0, 0], "l2": joints[0, 1]})
    x = dsys.state(q, np.zeros(model.space.nw), joints[1])
    states = dsys.simulate(x, joints[1:]).states
    slow = nh.nonholonomic_midpoint(model, 0.02)  # the same path, whatever the time
    np.testing.assert_allclose(slow.simulate(x, joints[1:]).states[-1, :5], states[-1, :5])
    assert np.linalg.norm(states[-1, 1:3]) > 0.3


def test_a_wheel_with_a_bound_of_its_force_skids():
    def sideways_speed(**grip):
        model = cart(left=grip, right={"slips": "sideways"})
        dsys = nh.nonholonomic_midpoint(model, 0.005)
        v = model.velocity(
            {"chassis_v_x": 1.0, "chassis_v_y": 1.0, "left_dot": 3.3, "right_dot": 3.3}
        )
        x = dsys.state(model.configuration({"chassis_z": 0.3}), v)
        x = dsys.simulate(x, np.zeros((20, 2))).states[-1]
        return dict(zip(model.space.velocity_names, dsys.velocity(x)))["chassis_v_y"]

    assert abs(sideways_speed()) < 1e-12
    # friction 0.1 * 50 N slows 22 kg
    assert sideways_speed(friction=0.1, load=50.0) == pytest.approx(1 - 0.1 * 5 / 22, abs=0.01)


def test_wheels_contacts_springs_and_prescribed_joints_at_once_are_the_generated_equations():
    model = cart(**ONE_SIDE)
    contact = nh.Contact(Point("chassis", (-0.5, 0.0, -0.29)), friction=0.3)
    model = replace(model, contacts=[contact], prescribed=("right",), inputs=[JointInput("left")])
    dsys = nh.nonholonomic_midpoint(model, 0.01)
    generated = nh.nonholonomic_midpoint(replace(model.system), 0.01)
    assert isinstance(dsys.engine, TreeEngine) and not isinstance(generated.engine, TreeEngine)
    rng = np.random.default_rng(0)
    q = model.configuration({"chassis_z": 0.3, "chassis_x": 1.0})
    x = dsys.step(dsys.state(q, rng.normal(size=model.space.nw)), [0.1, 0.02])
    assert_the_same_at(dsys, generated, x, np.array([0.3, 0.05]))


URDF = """<robot name="cart"><link name="base"><inertial><mass value="5"/><inertia ixx=".1"
iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>{wheels}</robot>"""
WHEEL = """<link name="{0}"><inertial><mass value="1"/><inertia ixx=".01" iyy=".01" izz=".01"
ixy="0" ixz="0" iyz="0"/></inertial><collision><origin rpy="1.5707963267948966 0 0"/><geometry>
<{1} radius=".1" length=".05"/></geometry></collision></link><joint name="{0}_joint"
type="continuous"><parent link="base"/><child link="{0}"/><axis xyz="0 1 0"/><origin xyz="{2}"/>
</joint>"""


def robot(shape="cylinder"):
    places = {"left": "0 .2 0", "right": "0 -.2 0"}
    return URDF.format(wheels="".join(WHEEL.format(n, shape, at) for n, at in places.items()))


def test_wheels_of_a_urdf_are_named_by_their_links():
    by_shape = nh.load_urdf(robot(), "floating", wheels=["left"]).wheels
    given = {"left": nh.RollingWheel(radius=0.1)}
    by_wheel = nh.load_urdf(robot(), "floating", wheels=given).wheels
    for wheels in by_shape, by_wheel:
        assert wheels[0].point == Point("left") and wheels[0].outline.radius == 0.1
        np.testing.assert_allclose(
            np.abs(wheels[0].axis if wheels is by_shape else (0, 1, 0)), (0, 1, 0), atol=1e-12
        )


REFUSALS = {
    "radius and shape": lambda: nh.RollingWheel(at="ball", radius=0.1, shape=nh.Sphere(0.1)),
    "unknown slip": lambda: nh.RollingWheel(at="ball", radius=0.1, slips="never ever"),
    "rounding": lambda: nh.RollingWheel(at="ball", radius=0.1, rounding=0.2),
    "load alone": lambda: nh.Skate(at="ball", load=3.0),
    "two places": lambda: ball(shape=nh.Capsule(0.1, 1.0)),
    "unknown frame": lambda: replace(ball(), wheels=[nh.Skate(at="bell")]),
    "two of one name": lambda: replace(ball(), wheels=[nh.Skate(at="ball")] * 2),
    "off the ground": lambda: (
        replace(snake(), wheels=[nh.RollingWheel(at="l1", radius=0.5)]).system
    ),
    "one axle": lambda: cart().system,
    "contact on a turntable": lambda: nh.Contact("ball", ground=nh.Plane(turn_rate=1.0)),
    "explicit method": lambda: nh.midpoint(ball(), 0.01),
    "urdf, unknown link": lambda: nh.load_urdf(robot(), "floating", wheels=["rear"]),
    "urdf, box": lambda: nh.load_urdf(robot("mesh"), "floating", wheels=["left"]),
    "urdf, no list": lambda: nh.load_urdf(robot(), "floating", wheels="left"),
}


def test_wrong_wheels_are_refused(snapshot):
    messages = {}
    for name, make in REFUSALS.items():
        with pytest.raises(ValueError) as refused:
            make()
        messages[name] = re.sub(r"q = \[.*?\]", "q = [...]", str(refused.value))
    assert messages == snapshot
