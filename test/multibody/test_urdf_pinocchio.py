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


def assert_kinematics(robot, reference, q):
    """Poses and Jacobians of all frames."""
    pin, data = reference.model, reference.data
    pinocchio.computeJointJacobians(pin, data, reference.configuration(q))
    pinocchio.updateFramePlacements(pin, data)
    for frame in robot.frame_names[1:]:
        number = pin.getFrameId(frame)
        rotation, position = robot.frame_pose(q, frame)
        np.testing.assert_allclose(rotation, data.oMf[number].rotation, atol=1e-12)
        np.testing.assert_allclose(position, data.oMf[number].translation, atol=1e-12)
        for axes, kind in (("world", "LOCAL_WORLD_ALIGNED"), ("body", "LOCAL")):
            axes_there = getattr(pinocchio.ReferenceFrame, kind)
            jacobian = pinocchio.getFrameJacobian(pin, data, number, axes_there)
            expected = np.roll(jacobian, 3, axis=0) @ reference.basis  # (linear, angular) there
            np.testing.assert_allclose(robot.frame_jacobian(q, frame, axes), expected, atol=1e-12)


def mass_pairs(robot, reference, q):
    """Total mass, center of mass and its Jacobian."""
    pin, data, at = reference.model, reference.data, reference.configuration(q)
    center = pinocchio.centerOfMass(pin, data, at).copy()
    jacobian = pinocchio.jacobianCenterOfMass(pin, data, at) @ reference.basis
    return [
        (robot.total_mass, data.mass[0]),
        (robot.center_of_mass(q), center),
        (robot.center_of_mass_jacobian(q), jacobian),
    ]


def assert_close(pairs, near):
    for found, expected in pairs:
        atol = near * np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


def assert_the_same(path: Path, base: str, inverse: bool) -> None:
    """At random states; kinematics and inverse dynamics of a robot without friction."""
    robot = Robot(model := load_urdf(path, base))
    equations, reference = ContinuousSystem(model.system), Reference(path, base, model)
    space, rng, b = model.space, np.random.default_rng(9), reference.basis
    damping = np.zeros(space.nw)
    for damper in model.elements:
        damping[model.tree.scalar_indices(damper.coordinate)[1]] += damper.damping
    for _ in range(4):
        q = np.asarray(space.retract(space.origin, rng.uniform(-1.5, 1.5, space.nv)))
        v, a = rng.normal(size=(2, space.nw))
        u = rng.normal(size=model.system.nu)
        mass, gravity, bias = reference.terms(q, v)
        force = -damping * v
        for entry, value in zip(model.inputs, u):
            force[model.tree.scalar_indices(entry.coordinate)[1]] += value
        pairs = [
            (equations.mass_matrix(q), mass),
            (-equations.potential_force(q), gravity),
            (equations.acceleration(q, v, u), reference.acceleration(q, v, force)),
        ]
        if inverse:
            at = reference.configuration(q)
            forces = b.T @ pinocchio.rnea(reference.model, reference.data, at, b @ v, b @ a)
            own = [
                (robot.mass_matrix(q), mass),
                (robot.gravity(q), gravity),
                (robot.inverse_dynamics(q, v, a), forces + damping * v),
                *mass_pairs(robot, reference, q),
            ]
            if len(robot.joint_names) < 10:  # others take long to differentiate
                own.append((gravity + robot.coriolis_forces(q, v), bias))
            found = robot.forward_dynamics(q, v, force + damping * v)
            pairs.append((found, reference.acceleration(q, v, force)))
            assert_close(own, 1e-12)
            assert_kinematics(robot, reference, q)
        assert_close(pairs, 1e-10)


QUICK = "ur5e", "robotiq_2f_85"


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(n, marks=pytest.mark.slow) for n in ROBOTS if n not in QUICK)]
)
def test_robots_have_the_kinematics_and_dynamics_of_pinocchio(name, base):
    assert_the_same(robot_file(name), base, inverse=True)


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_every_type_of_joint_is_that_of_pinocchio(base, tmp_path):
    path = tmp_path / "every_joint.urdf"
    path.write_text(EVERY_JOINT)
    assert_the_same(path, base, inverse=False)
