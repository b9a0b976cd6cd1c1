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


class Reference:
    """Pinocchio's model of a URDF with its mimic joints still free, in the coordinates of ours:
    `v_pin = basis @ v`.
    """

    def __init__(self, path: Path, base: str, model):
        free = [pinocchio.JointModelFreeFlyer()] if base == "floating" else []
        self.model, self.ours = pinocchio.buildModelFromUrdf(str(path), *free), model
        self.data = self.model.createData()
        self.basis = np.zeros((self.model.nv, model.space.nw))
        self.frames = {frame.coordinate: frame for frame in model.frames if not frame.is_fixed}
        for joint, name in self._joints():
            frame, i = self.frames[name], joint.idx_v
            if joint.nv == 6:
                j = model.space.velocity_names.index(f"{name}_omega_x")
                self.basis[i : i + 3, j + 3 : j + 6] = self.basis[i + 3 : i + 6, j : j + 3] = (
                    np.eye(3)
                )
            elif joint.nv == 3:
                j = model.space.velocity_names.index(f"{name}_omega")
                self.basis[i : i + 3, j : j + 3] = np.roll(np.eye(3), 1, axis=1)
            else:
                followed, ratio = (
                    (frame.mimic.coordinate, frame.mimic.ratio) if frame.mimic else (name, 1.0)
                )
                self.basis[i, model.tree.scalar_indices(followed)[1]] = ratio

    def _joints(self):
        for joint, name in zip(self.model.joints[1:], list(self.model.names)[1:]):
            yield joint, self.ours.frames[0].coordinate if name == "root_joint" else name

    def configuration(self, q) -> np.ndarray:
        out = np.zeros(self.model.nq)
        for joint, name in self._joints():
            frame, i = self.frames[name], joint.idx_q
            if joint.nv == 6:
                j = self.ours.space.names.index(f"{name}_qw")
                out[i : i + 7] = [*q[j + 4 : j + 7], *q[j + 1 : j + 4], q[j]]
                continue
            if joint.nv == 3:
                j = self.ours.space.names.index(f"{name}_theta")
                theta, x, y = q[j : j + 3]
                out[i : i + 4] = [x, y, np.cos(theta), np.sin(theta)]
                continue
            mimic = frame.mimic
            angle = (
                mimic.ratio * q[self.ours.tree.scalar_indices(mimic.coordinate)[0]] + mimic.offset
                if mimic
                else q[self.ours.tree.scalar_indices(name)[0]]
            )
            out[i : i + joint.nq] = angle if joint.nq == 1 else [np.cos(angle), np.sin(angle)]
        return out

    def terms(self, q, v) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mass matrix, gravity and all forces that are neither inertial nor of actuators, in our
        coordinates.
        """
        at, b = self.configuration(q), self.basis
        mass = np.triu(pinocchio.crba(self.model, self.data, at))
        mass = mass + np.triu(mass, 1).T
        gravity = pinocchio.computeGeneralizedGravity(self.model, self.data, at)
        return (
            b.T @ mass @ b,
            b.T @ gravity,
            b.T @ pinocchio.nonLinearEffects(self.model, self.data, at, b @ v),
        )

    def acceleration(self, q, v, force) -> np.ndarray:
        """By the articulated body algorithm where no joint follows another."""
        if any(frame.mimic for frame in self.frames.values()):
            mass, _, bias = self.terms(q, v)
            return np.linalg.solve(mass, force - bias)
        return self.basis.T @ pinocchio.aba(
            self.model, self.data, self.configuration(q), self.basis @ v, self.basis @ force
        )


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
