"""`nh.Robot`: Jacobians, dynamics and inverse kinematics, against differences and the equations of
motion; against Pinocchio in test_urdf_pinocchio.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from refusals import said

import nh_control as nh
from nh_control import multibody as mb
from nh_control.mechanics.continuous import ContinuousSystem

RANGE = mb.CoordinateLimits(-2.5, 2.5)


def arm(base="fixed") -> mb.Multibody:
    """Four joints on a base, with a spring, a damper and a tool."""
    root = [mb.floating("base")] if base == "floating" else [mb.fixed("base", "world")]
    frames = [
        *root,
        mb.revolute("turn", "base", axis="z", limits=RANGE),
        mb.revolute("lift", "turn", axis="y", position=(0.1, 0, 0.3), limits=RANGE),
        mb.prismatic(
            "reach", "lift", axis="x", position=(0.4, 0, 0), limits=mb.CoordinateLimits(0.0, 0.5)
        ),
        mb.revolute("wrist", "reach", axis=(0.0, 0.6, 0.8), position=(0.2, 0, 0.1), limits=RANGE),
        mb.fixed("tool", "wrist", position=(0, 0.05, 0.2)),
    ]
    joints = ["turn", "lift", "reach", "wrist"]
    inertia = np.array([[0.03, 0.004, 0.0], [0.004, 0.02, 0.001], [0.0, 0.001, 0.04]])
    return mb.Multibody(
        "arm",
        frames=frames,
        bodies=[
            mb.Body(name, mass=1.0 + i, center=(0.05, 0.02 * i, 0.1), inertia=inertia)
            for i, name in enumerate(["base", *joints])
        ],
        elements=[mb.JointDamper("lift", 0.3), mb.JointSpring("wrist", 2.0, 0.4)],
        inputs=[mb.JointInput(name) for name in joints],
    )


def state(model, seed=0):
    rng, space = np.random.default_rng(seed), model.space
    q = np.asarray(space.retract(space.origin, rng.uniform(-1, 1, space.nv)))
    return q, rng.normal(size=space.nw), rng.normal(size=space.nw)


@cache
def robot_on(base):
    return nh.Robot(arm(base))


@pytest.fixture
def robot():
    return robot_on("fixed")


def test_names_are_those_of_joints_and_frames(robot):
    assert robot.joint_names == ("turn", "lift", "reach", "wrist")
    assert robot.velocity_names == tuple(robot.model.space.velocity_names)
    assert {"world", "tool", "wrist"} <= set(robot.frame_names)


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_a_jacobian_is_the_derivative_of_the_pose(base):
    robot = robot_on(base)
    space = robot.model.space
    q, v, _ = state(robot.model)
    ends = [robot.frame_pose(space.retract(q, s * 1e-6 * v), "tool") for s in (1, -1)]
    rotation = robot.frame_pose(q, "tool").rotation
    spin = (ends[0].rotation - ends[1].rotation) / 2e-6 @ rotation.T
    omega = [spin[2, 1], spin[0, 2], spin[1, 0]]
    linear = (ends[0].position - ends[1].position) / 2e-6
    twist = robot.frame_jacobian(q, "tool") @ v
    np.testing.assert_allclose(twist, [*omega, *linear], atol=1e-8)
    body = robot.frame_jacobian(q, "tool", axes="body") @ v
    np.testing.assert_allclose(body.reshape(2, 3) @ rotation.T, twist.reshape(2, 3), atol=1e-13)
    np.testing.assert_array_equal(
        robot.frame_pose(q, "tool").position, robot.model.point(q, "tool")
    )


def test_inverse_dynamics_give_the_inputs_of_an_acceleration(robot):
    """The equations of motion, with spring and damper, accelerate so under them."""
    q, v, a = state(robot.model)
    force = robot.inverse_dynamics(q, v, a)
    equations = ContinuousSystem(robot.model.system)
    np.testing.assert_allclose(equations.acceleration(q, v, force), a, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(robot.mass_matrix(q), equations.mass_matrix(q), atol=1e-14)


def test_inverse_dynamics_of_a_flying_robot_are_those_of_its_equations_of_motion():
    """The base has no inputs: an acceleration under inputs asks for no forces of it."""
    model = arm("floating")
    robot, (q, v, _) = nh.Robot(model), state(model)
    u = np.array([0.3, -2.0, 1.0, 0.2])
    a = ContinuousSystem(model.system).acceleration(q, v, u)
    places = [robot.velocity_names.index(name) for name in model.space.velocity_names[-4:]]
    expected = np.zeros(model.space.nw)
    expected[places] = u
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, a), expected, atol=1e-10)


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_forward_dynamics_undo_inverse_dynamics(base):
    robot = robot_on(base)
    states = [state(robot.model, seed) for seed in (0, 1)]
    q, v, a = (np.array(column) for column in zip(*states))
    forces = robot.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(robot.forward_dynamics(q, v, forces), a, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(
        robot.forward_dynamics(q[0], v[0], forces[0]), a[0], rtol=1e-10, atol=1e-10
    )


def test_coriolis_forces_change_the_kinetic_energy_by_no_more_than_its_rate(robot):
    """`v . c(q, v) = v^T M' v / 2` along the motion, and c is quadratic in v."""
    q, v, _ = state(robot.model)
    ahead, behind = (robot.mass_matrix(q + sign * 1e-6 * v) for sign in (1, -1))
    forces = robot.coriolis_forces(q, v)
    assert v @ forces == pytest.approx(v @ (ahead - behind) @ v / 4e-6, rel=1e-7)
    np.testing.assert_allclose(robot.coriolis_forces(q, 2 * v), 4 * forces, rtol=1e-12)


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_the_center_of_mass_carries_the_weight(base):
    """Its Jacobian is the derivative of its place, and m g J is what gravity asks for."""
    robot = robot_on(base)
    q, v, _ = state(robot.model)
    moving = robot.model.bodies[base == "fixed" :]
    places = np.array([robot.model.point(q, mb.Point(b.frame, b.center)) for b in moving])
    masses = np.array([b.mass for b in moving])
    total = masses.sum()
    assert robot.total_mass == pytest.approx(total)
    np.testing.assert_allclose(robot.center_of_mass(q), masses @ places / total, atol=1e-13)
    space, J = robot.model.space, robot.center_of_mass_jacobian(q)
    ends = [robot.center_of_mass(space.retract(q, s * 1e-6 * v)) for s in (1, -1)]
    np.testing.assert_allclose(J @ v, (ends[0] - ends[1]) / 2e-6, atol=1e-8)
    np.testing.assert_allclose(robot.gravity(q), total * 9.81 * J[2], atol=1e-10)


def test_gravity_is_the_slope_of_the_weights_energy(robot):
    q, _, _ = state(robot.model)

    def energy(at):
        points = (mb.Point(b.frame, b.center) for b in robot.model.bodies)
        heights = [robot.model.point(at, point)[2] for point in points]
        return 9.81 * np.dot([b.mass for b in robot.model.bodies], heights)

    slope = [(energy(q + d) - energy(q - d)) / 2e-6 for d in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(robot.gravity(q), slope, atol=1e-7)
    spring = robot.inverse_dynamics(q, np.zeros(4), np.zeros(4)) - robot.gravity(q)
    np.testing.assert_allclose(spring, [0, 0, 0, 2.0 * (q[3] - 0.4)], atol=1e-12)


def test_a_table_gives_a_table(robot):
    rows = [state(robot.model, seed) for seed in range(3)]
    q, v, a = (np.array(part) for part in zip(*rows))
    for i, row in enumerate(rows):
        one, table = robot.frame_pose(row[0], "tool"), robot.frame_pose(q, "tool")
        np.testing.assert_array_equal(table.rotation[i], one.rotation)
        np.testing.assert_array_equal(table.position[i], one.position)
        for function, table, one in (
            (robot.mass_matrix, (q,), row[:1]),
            (robot.gravity, (q,), row[:1]),
            (robot.inverse_dynamics, (q, v, a), row),
            (lambda q: robot.frame_jacobian(q, "wrist"), (q,), row[:1]),
        ):
            np.testing.assert_array_equal(function(*table)[i], function(*one))


@pytest.mark.parametrize("seed", range(5))
def test_a_pose_within_reach_is_found_within_the_ranges(robot, seed):
    goal = np.random.default_rng(seed).uniform([-2, -2, 0.05, -2], [2, 2, 0.45, 2])
    rotation, position = robot.frame_pose(goal, "tool")
    q = robot.inverse_kinematics("tool", position, rotation)
    reached = robot.frame_pose(q, "tool")
    np.testing.assert_allclose(reached.position, position, atol=1e-8)
    np.testing.assert_allclose(reached.rotation, rotation, atol=1e-8)
    assert (q >= [-2.5, -2.5, 0, -2.5]).all() and (q <= [2.5, 2.5, 0.5, 2.5]).all()
    near = robot.inverse_kinematics("tool", position, start=q)
    np.testing.assert_allclose(near, q, atol=1e-7)


def test_coordinates_that_are_fixed_stay(robot):
    goal = np.array([0.3, -0.4, 0.2, 0.5])
    position = robot.frame_pose(goal, "tool").position
    start = goal + [0.0, 0.2, 0.1, 0.1]
    q = robot.inverse_kinematics("tool", position, start=start, fixed=["turn"])
    assert q[0] == goal[0]
    np.testing.assert_allclose(robot.frame_pose(q, "tool").position, position, atol=1e-8)


def test_a_pose_out_of_reach_gives_the_nearest_configuration(robot):
    with pytest.raises(mb.NoSolution, match="tool to the pose.*misses it by") as failed:
        robot.inverse_kinematics("tool", [5.0, 0.0, 0.0], starts=3)
    q, distance = failed.value.q, failed.value.distance_m
    found = np.linalg.norm(robot.frame_pose(q, "tool").position - [5.0, 0, 0])
    assert found == pytest.approx(distance) and failed.value.angle_rad == 0.0
    assert 3 < distance < 4.5


WRONG = [
    lambda r: r.frame_pose(np.zeros(3), "tool"),
    lambda r: r.frame_pose(np.zeros(4), "hand"),
    lambda r: r.frame_jacobian(np.zeros(4), "tool", axes="local"),
    lambda r: r.inverse_dynamics(np.zeros((2, 4)), np.zeros(4), np.zeros(4)),
    lambda r: r.inverse_kinematics("tool", [0, 0]),
    lambda r: r.inverse_kinematics("tool", [0, 0, 0], 2 * np.eye(3)),
    lambda r: r.inverse_kinematics("tool", [0, 0, 0], fixed=["elbow"]),
]


def test_calls_that_cannot_be_answered_say_what_is_expected(robot, snapshot):
    assert said(WRONG, lambda call: call(robot)) == snapshot


def test_closed_loops_are_refused():
    rod = mb.Distance("rod", mb.Point("tool"), mb.Point("base"), 0.5)
    closed = replace(arm(), name="closed", constraints=[rod])
    with pytest.raises(ValueError, match="closed has constraints"):
        nh.Robot(closed)
