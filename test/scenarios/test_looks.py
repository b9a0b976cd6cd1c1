"""What scenarios look like is where their models say: frames move with the coordinates, shapes
have the sizes and sides that they stand for.
"""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from transforms3d.quaternions import quat2mat

import nh_control as nh
from nh_control import scenarios, systems
from nh_control.figures.scene import visual_scene
from nh_control.scenarios import (
    car_visual,
    chaotic_quartic_visual,
    chaplygin_sleigh_visual,
    differential_drive_visual,
    gearbox_visual,
    pendulum_visual,
    quadrotor_payload_visual,
    roller_racer_visual,
    rolling_ball_visual,
    rolling_disk_visual,
    satellite_visual,
    snakeboard_visual,
    suslov_visual,
)
from nh_control.scenarios.default_visual import STICK_M, system_visual

GROUND = {
    "snakeboard": (snakeboard_visual, systems.SnakeboardParameters, "board", 2),
    "car": (car_visual, systems.CarParameters, "body", 2),
    "drive": (differential_drive_visual, systems.DifferentialDriveParameters, "body", 2),
    "sleigh": (chaplygin_sleigh_visual, systems.ChaplyginSleighParameters, "body", 0),
    "disk": (rolling_disk_visual, systems.RollingDiskParameters, "contact", 1),
    "racer": (roller_racer_visual, systems.RollerRacerParameters, "seat", 1),
}
"""Module, parameters, and the frame that theta, x, y move, with the place of theta in q."""
SIZE = {
    "snakeboard": ("l",),
    "car": ("l", "r"),
    "drive": ("b", "r"),
    "sleigh": ("a",),
    "disk": ("r",),
    "racer": ("d1", "d2"),
}
"""The lengths that all of the look scales with."""
N_Q = {"snakeboard": 5, "car": 5, "drive": 5, "sleigh": 3, "disk": 4, "racer": 4}


def seen(module, parameters, q):
    return visual_scene(module.visual_model(parameters), parameters, np.asarray(q, dtype=float))


def turned_about(axis, frame, other):
    """Angle by which a frame is turned about an axis of its own against another."""
    turn = frame.rotation.T @ other.rotation
    axis = np.array(axis)
    np.testing.assert_allclose(turn @ axis, axis, atol=1e-12)
    skew = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
    return np.arctan2(axis @ skew / 2, (np.trace(turn) - 1) / 2)


def listed(poses):
    """Positions and axes of frames, in lines."""

    def numbers(values):
        return " ".join(f"{round(float(v), 8) + 0.0:.9g}" for v in np.ravel(values))

    return "\n".join(
        f"{name}: {numbers(pose.position)} | {numbers(pose.rotation)}"
        for name, pose in poses.items()
    )


OTHERS = {
    "pendulum": (pendulum_visual, systems.PendulumParameters(l=0.8)),
    "suslov": (suslov_visual, systems.SuslovParameters()),
    "ball": (rolling_ball_visual, systems.RollingBallParameters(r=0.3)),
    "beads": (chaotic_quartic_visual, systems.ChaoticQuarticParameters(n=2)),
    "gearbox": (gearbox_visual, systems.GearboxParameters()),
    "satellite": (satellite_visual, systems.SatelliteParameters()),
    "payload": (quadrotor_payload_visual, systems.QuadrotorPayloadParameters()),
}


@pytest.mark.parametrize("name", [*GROUND, *OTHERS])
def test_frames_are_where_the_coordinates_put_them(name, snapshot):
    """At other ones each; quaternions and directions are not normalized for this."""
    module, p = (GROUND[name][0], GROUND[name][1]()) if name in GROUND else OTHERS[name]
    visual = module.visual_model(p)
    q = np.linspace(0.2, 0.9, len(visual.poses.coordinates))
    assert listed(visual.poses(p, q)) == snapshot
    assert {shape.frame for shape in visual.shapes} <= {*visual.poses(p, q)}


@pytest.mark.parametrize("name", GROUND)
def test_looks_scale_with_the_lengths_of_the_model(name):
    module, make, _, _ = GROUND[name]
    one = make()
    double = replace(one, **{length: 2 * getattr(one, length) for length in SIZE[name]})
    q = np.zeros(N_Q[name])
    np.testing.assert_allclose(
        seen(module, double, q).points, 2 * seen(module, one, q).points, atol=1e-12
    )


@pytest.mark.parametrize("name", GROUND)
def test_vehicles_are_alike_on_both_sides_and_stand_on_the_ground(name):
    """Straight ahead; spokes of wheels and disks aside, which their turning moves."""
    module, make, _, _ = GROUND[name]
    points = seen(module, make(), np.zeros(N_Q[name])).points.round(9) + 0.0
    mirrored = points * [1, -1, 1] + 0.0
    assert {tuple(point) for point in mirrored} == {tuple(point) for point in points}
    assert points[:, 2].min() == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "axis"),
    [
        ("snakeboard", [0.0, 0.0, 1.0]),
        ("differential_drive", [0.0, 1.0, 0.0]),
        ("rolling_disk", [0.0, 1.0, 0.0]),
        ("satellite", [0.0, 0.0, 1.0]),
    ],
)
def test_joints_turn_the_frames_that_they_are_called_after(name, axis):
    """By their coordinates, with their signs, as their names say to those who command them."""
    scenario = scenarios.get(name)
    space = scenario.make_system(scenario.parameters).space
    visual = scenario.visual_model()
    for joint in scenario.joints:
        q = space.origin.copy()
        q[space.names.index(joint.coordinate)] += 0.3
        still, moved = (visual.poses(scenario.parameters, at) for at in (space.origin, q))
        frame = joint.name.removesuffix("_joint")
        turned = turned_about(axis, still[frame], moved[frame])
        assert turned == pytest.approx(0.3 * joint.sign), joint.name
    car = {joint.name: joint.coordinate for joint in scenarios.get("car").joints}
    assert car == {"rear_wheels_joint": "wheel", "steering_joint": "delta"}


def test_a_rolling_car_turns_its_rear_wheels_as_far_as_it_goes():
    """On top of each wheel the rim is twice as fast as the axle, forwards."""
    p, step = systems.CarParameters(), 1e-6
    tree = car_visual.frame_tree(p)
    here, there = (tree(p, [s / p.r, 0.0, 0.0, s, 0.0])["rear_left"] for s in (0, step))
    top = [0.0, 0.0, p.r]
    rim = (there.position + there.rotation @ top - here.position - here.rotation @ top) / step
    np.testing.assert_allclose(rim, [2.0, 0.0, 0.0], atol=1e-5)


# --- The visual model of systems that declare none ---


def free(*names, potential=lambda q: 0, space=None):
    space = space or nh.Rn(*names)
    return nh.System(
        name="own", space=space, lagrangian=lambda q, v: ca.sumsqr(v) / 2 - potential(q)
    )


def places(system, q, units=None):
    visual = system_visual(system, units)
    found = visual.poses(None, np.asarray(q, dtype=float))
    assert {shape.frame for shape in visual.shapes} <= set(found)
    assert not visual.shapes or visual.trail in found
    return {name: pose.position for name, pose in found.items()}


def test_a_stick_stands_or_hangs_as_the_energy_says():
    """On a cart it stands where the energy is highest, a pendulum hangs where it is lowest."""
    at = places(free("x", "angle", potential=lambda q: ca.cos(q[1])), [0.5, 0.2])
    np.testing.assert_allclose(at["x"], [0.5, 0, 0])
    end = [0.5 + STICK_M * np.sin(0.2), 0, STICK_M * np.cos(0.2)]
    np.testing.assert_allclose(at["angle end"], end, atol=1e-12)
    at = places(free("angle", potential=lambda q: -ca.cos(q[0])), [0.2])
    np.testing.assert_allclose(at["angle end"], [np.sin(0.2), 0, -np.cos(0.2)], atol=1e-12)


@pytest.mark.parametrize("relative", [False, True])
def test_a_second_stick_is_relative_where_the_energy_says_so(relative):
    at = places(
        free(*("a", "b"), potential=lambda q: -2 * ca.cos(q[0]) - ca.cos(q[1] + relative * q[0])),
        [0.3, 0.4],
    )
    angle = 0.3 * relative + 0.4
    np.testing.assert_allclose(
        at["b end"] - at["a end"], [np.sin(angle), 0, -np.cos(angle)], atol=1e-12
    )


def test_coordinates_along_axes_with_one_name_are_a_point():
    at = places(free("a_x", "a_y", "a_z", "b_x", "b_z"), [1, 2, 3, 4, 5])
    np.testing.assert_allclose(at["a_z"], [1, 2, 3])
    np.testing.assert_allclose(at["b_z"], [4, 0, 5])


def test_units_say_what_slides():
    at = places(free("s", "x"), [0.3, 0.0], {"s": "m", "x": "rad"})
    np.testing.assert_allclose(at["s"], [0.3, 0, 0])
    np.testing.assert_allclose(at["x end"] - at["s"], [0, 0, -1], atol=1e-12)


def test_poses_rotations_and_directions_have_their_frames():
    attitude = np.array([0.6, 0.0, 0.8, 0.0])
    space = nh.Product(nh.Rn("x", "y", "z"), nh.SO3(), nh.S2("link_"))
    visual = system_visual(free(space=space))
    found = visual.poses(None, np.array([1, 2, 3, *attitude, 0, 0.6, -0.8]))
    np.testing.assert_allclose(found["body"].position, [1, 2, 3])
    np.testing.assert_allclose(found["body"].rotation, quat2mat(attitude))
    np.testing.assert_allclose(found["link end"].position, [1, 2.6, 2.2])
    pose = system_visual(free(space=nh.SE3())).poses(None, np.array([*attitude, 1, 2, 3]))
    np.testing.assert_allclose(pose["body"].position, [1, 2, 3])
    np.testing.assert_allclose(pose["body"].rotation, quat2mat(attitude))
    assert {shape.frame for shape in visual.shapes} == {"body", "link", "link end"}


def test_rotations_alone_are_side_by_side():
    at = places(free(space=nh.Product(nh.SO3("a_"), nh.SO3("b_"))), [1, 0, 0, 0] * 2)
    assert np.linalg.norm(at["body1"] - at["body"]) > 1


def test_what_turns_on_a_planar_body_goes_with_it():
    at = places(systems.snakeboard(), [0.1, 0.2, 0.3, 1.0, 2.0])
    assert all(np.allclose(at[name], [1, 2, 0]) for name in ("body", "psi", "phi"))


@pytest.mark.parametrize("name", ["cart_pole", "pendulum_swing_up", "urdf", "snakeboard"])
def test_scenarios_have_a_visual_model_without_their_own(name):
    scenario = replace(nh.scenarios.get(name), visual=None)
    visual = scenario.visual_model()
    space = scenario.make_system(scenario.parameters).space
    assert len(visual_scene(visual, scenario.parameters, space.origin).points)
    if name == "urdf":  # a skeleton
        assert {"sphere", "cylinder"} <= {shape.kind for shape in visual.shapes}
