"""Robots as their makers describe them, in packages on PyPI: mass matrix, gravity and forward
dynamics against Pinocchio.
"""

from pathlib import Path

import numpy as np
import pytest
from urdf_robots import EVERY_JOINT, ROBOTS, robot_file

from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.multibody import Robot, load_urdf

pinocchio = pytest.importorskip(
    "pinocchio", reason="needs the package pin, see the extra urdf-test"
)
from pinocchio_reference import Reference  # noqa: E402


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", ROBOTS)
def test_dynamics_are_those_of_pinocchio(name, base):
    compare(robot_file(name), base)


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_every_type_of_joint_is_that_of_pinocchio(base, tmp_path):
    path = tmp_path / "every_joint.urdf"
    path.write_text(EVERY_JOINT)
    compare(path, base)


@pytest.mark.parametrize(
    "name, base",
    [
        pytest.param(name, base, marks=pytest.mark.slow if name == "jvrc1" else ())
        for name in ROBOTS
        for base in ("fixed", "floating")
    ],
)
def test_a_robot_s_kinematics_and_inverse_dynamics_are_those_of_pinocchio(name, base):
    path = robot_file(name)
    robot = Robot(model := load_urdf(path, base))
    reference, space, rng = Reference(path, base, model), model.space, np.random.default_rng(4)
    pin, data, b = reference.model, reference.data, reference.basis
    damping = np.zeros(space.nw)
    for damper in model.elements:
        damping[model.tree.scalar_indices(damper.coordinate)[1]] += damper.damping
    for _ in range(3):
        q = np.asarray(space.retract(space.origin, rng.uniform(-1.5, 1.5, space.nv)))
        v, a = rng.normal(size=(2, space.nw))
        at = reference.configuration(q)
        pinocchio.computeJointJacobians(pin, data, at)
        pinocchio.updateFramePlacements(pin, data)
        for frame in robot.frame_names[1:]:
            number = pin.getFrameId(frame)
            rotation, position = robot.frame_pose(q, frame)
            np.testing.assert_allclose(rotation, data.oMf[number].rotation, atol=1e-12)
            np.testing.assert_allclose(position, data.oMf[number].translation, atol=1e-12)
            for axes, kind in (("world", "LOCAL_WORLD_ALIGNED"), ("body", "LOCAL")):
                jacobian = pinocchio.getFrameJacobian(
                    pin, data, number, getattr(pinocchio.ReferenceFrame, kind)
                )
                expected = np.roll(jacobian, 3, axis=0) @ b  # (linear, angular) there
                found = robot.frame_jacobian(q, frame, axes)
                np.testing.assert_allclose(found, expected, atol=1e-12)
        mass, gravity, _ = reference.terms(q, v)
        force = b.T @ pinocchio.rnea(pin, data, at, b @ v, b @ a) + damping * v
        for found, expected in (
            (robot.mass_matrix(q), mass),
            (robot.gravity(q), gravity),
            (robot.inverse_dynamics(q, v, a), force),
        ):
            size = np.abs(expected).max()
            np.testing.assert_allclose(found, expected, atol=1e-12 * size)


def compare(path: Path, base: str) -> None:
    """Mass matrix, gravity and accelerations at random states."""
    model = load_urdf(path, base)
    equations, reference = ContinuousSystem(model.system), Reference(path, base, model)
    space, rng = model.space, np.random.default_rng(9)
    damping = np.zeros(space.nw)
    for damper in model.elements:
        damping[model.tree.scalar_indices(damper.coordinate)[1]] += damper.damping
    for _ in range(5):
        q, v, u = (
            space.retract(space.origin, rng.uniform(-1.5, 1.5, space.nv)),
            rng.normal(size=space.nw),
            rng.normal(size=model.system.nu),
        )
        mass, gravity, _ = reference.terms(q, v)
        np.testing.assert_allclose(
            equations.mass_matrix(q), mass, rtol=0, atol=1e-10 * np.abs(mass).max()
        )
        np.testing.assert_allclose(
            -equations.potential_force(q), gravity, rtol=0, atol=1e-10 * np.abs(gravity).max()
        )
        force = -damping * v
        for entry, value in zip(model.inputs, u):
            force[model.tree.scalar_indices(entry.coordinate)[1]] += value
        expected = reference.acceleration(q, v, force)
        np.testing.assert_allclose(
            equations.acceleration(q, v, u), expected, rtol=0, atol=1e-10 * np.abs(expected).max()
        )
