"""The visual model of systems that declare none."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from transforms3d.quaternions import quat2mat

import nh_control as nh
from nh_control import systems
from nh_control.figures.scene import visual_scene
from nh_control.scenarios.default_visual import STICK_M, system_visual


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
