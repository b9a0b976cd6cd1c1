"""Pinocchio's model of a URDF, to compare ours with."""

from pathlib import Path

import numpy as np
import pinocchio


class Reference:
    """Pinocchio's model of a URDF with its mimic joints still free, in the coordinates of ours:
    `v_pin = basis @ v`. Joints that ours has not, because they move no mass, stay at 0.
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
            name = self.ours.frames[0].coordinate if name == "root_joint" else name
            if name in self.frames:
                yield joint, name

    def configuration(self, q) -> np.ndarray:
        out = pinocchio.neutral(self.model)
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
