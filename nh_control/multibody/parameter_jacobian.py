"""Derivatives of the tree kernel's coefficients with respect to a model's parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from nh_control.multibody.bodies import Body
from nh_control.multibody.elements import JointSpring
from nh_control.multibody.frames import WORLD, Frame
from nh_control.multibody.joint_inertia import moments
from nh_control.multibody.kernel_layout import NONE, PARAMETER_DERIVATIVE, JointQuantity
from nh_control.multibody.model import Multibody
from nh_control.multibody.parameters import ENTRIES
from nh_control.multibody.tree_model import TreeModel

BY_RATE = {
    "damping": JointQuantity.BY_DAMPING,
    "friction": JointQuantity.BY_FRICTION,
    "friction_velocity": JointQuantity.BY_FRICTION_VELOCITY,
}
"""Joint constants that the kernel reads without conversion."""


class Slope(NamedTuple):
    """Derivative of one joint coefficient."""

    joint: int
    quantity: int
    value: float


@dataclass(frozen=True)
class ParameterJacobian:
    """Derivatives of the joints' coefficients with respect to every parameter of `model`, at the
    parameter values in `nominal`.
    """

    model: Multibody
    nominal: Multibody

    def packed(self) -> np.ndarray:
        """The derivatives packed as records of type `struct parameter_derivative`, as doubles
        (n, 3).
        """
        rows, parameter = [], 0
        for name in self.model.parameters:
            for slopes in self._of(name):
                rows += [_record(parameter, slope) for slope in slopes]
                parameter += 1
        end = _record(NONE, Slope(0, 0, 0.0))
        return np.array([*rows, end], PARAMETER_DERIVATIVE.dtype).view(float).reshape(-1, 3)

    def _of(self, name: str) -> Iterator[list[Slope]]:
        """The derivatives with respect to each entry of a parameter."""
        parts, index, field = self.model.constants.locations[name]
        if not parts:
            yield [slope for body in self.nominal.bodies for slope in self._by_scale(body)]
            return
        part: Any = getattr(self.nominal, parts)[index]
        if isinstance(part, Frame):
            yield from (self._by_placement(part, unit) for unit in np.eye(3))
        elif isinstance(part, Body):
            yield from self._by_body(part, field)
        else:
            joint = self._coordinates[part.coordinate]
            if field in BY_RATE:
                yield [Slope(joint, BY_RATE[field], 1.0)]
            elif isinstance(part, JointSpring) and field == "stiffness":
                yield [
                    # rest force = stiffness * rest
                    Slope(joint, JointQuantity.BY_STIFFNESS, 1.0),
                    Slope(joint, JointQuantity.BY_REST_FORCE, part.rest),
                ]
            else:
                yield [Slope(joint, JointQuantity.BY_REST_FORCE, part.stiffness)]

    @cached_property
    def _data(self) -> TreeModel:
        return TreeModel(self.nominal)

    @cached_property
    def _joints(self) -> dict[str, int]:
        return {frame.name: i for i, frame in enumerate(self._data.frames)}

    @cached_property
    def _coordinates(self) -> dict[str, int]:
        frames = enumerate(self._data.frames)
        return {frame.coordinate: i for i, frame in frames if not frame.mimic}

    def _by_body(self, body: Body, field: str) -> Iterator[list[Slope]]:
        anchor, _, rotation = self.nominal.tree.anchors[body.frame]
        arm, scale = self._arm(body), self.nominal.mass_scale
        if field == "mass":
            # J = m (d.d 1 - d d^T), linear in m
            lever = arm @ arm * np.eye(3) - np.outer(arm, arm)
            yield self._moments(anchor, scale, scale * arm, scale * lever)
        elif field == "center":
            for unit in np.eye(3):
                yield self._by_arm(body, rotation @ unit)
        else:
            for i, j in ENTRIES:
                tensor = np.zeros((3, 3))
                tensor[i, j] = tensor[j, i] = scale
                yield self._moments(anchor, 0.0, np.zeros(3), rotation @ tensor @ rotation.T)

    def _by_scale(self, body: Body) -> list[Slope]:
        """Derivatives, with respect to the scale of all masses, of the coefficients that depend on
        one body.
        """
        anchor, position, rotation = self.nominal.tree.anchors[body.frame]
        part = body.inertia_in(anchor, position, rotation)
        mass, first, inertia = moments(part, np.eye(3))
        return self._moments(anchor, mass, first, inertia)

    def _by_placement(self, frame: Frame, unit: np.ndarray) -> list[Slope]:
        """Derivatives with respect to the position of a frame. They are the derivatives of the
        coefficients of its joint or, if the frame is fixed, of everything that is fixed to it.
        """
        anchor, _, rotation = self.nominal.tree.anchors[frame.parent]
        direction = rotation @ unit
        if not frame.is_fixed:
            return self._position(frame.name, anchor, direction)
        slopes = []
        for body in self.nominal.bodies:
            if frame.name in self._fixed(body.frame):
                slopes += self._by_arm(body, direction)
        for moving in self._data.frames:
            if frame.name in self._fixed(moving.parent):
                slopes += self._position(moving.name, anchor, direction)
        return slopes

    def _fixed(self, name: str) -> list[str]:
        """The frame and the frames that it is fixed to, back to a moving frame."""
        names, frames = [], self.nominal.tree.frames
        while name != WORLD and frames[name].is_fixed:
            names.append(name)
            name = frames[name].parent
        return names

    def _arm(self, body: Body) -> np.ndarray:
        """Vector from the joint to the center of mass, in the joint's frame."""
        _, origin, rotation = self.nominal.tree.anchors[body.frame]
        return origin + rotation @ np.array(body.center)

    def _by_arm(self, body: Body, direction: np.ndarray) -> list[Slope]:
        arm = self._arm(body)
        # dJ / m = 2 d.e 1 - e d^T - d e^T for a change e of the arm d
        turned = (
            2 * arm @ direction * np.eye(3) - np.outer(direction, arm) - np.outer(arm, direction)
        )
        anchor, mass = (
            self.nominal.tree.anchors[body.frame][0],
            self.nominal.mass_scale * body.mass,
        )
        return self._moments(anchor, 0.0, mass * direction, mass * turned)

    def _moments(
        self, anchor: str, mass: float, first: np.ndarray, inertia: np.ndarray
    ) -> list[Slope]:
        """Derivatives of a moving frame's mass, first moment and inertia about its origin."""
        if anchor == WORLD:
            return []
        # in the kernel's axes A, they are A^T c and A^T J A
        axes_of_kernel, joint = self._data.axes[anchor], self._joints[anchor]
        turned = axes_of_kernel.T @ inertia @ axes_of_kernel
        values = [mass, *(axes_of_kernel.T @ first), *(turned[i, j] for i, j in ENTRIES)]
        return [
            Slope(joint, JointQuantity.BY_MASS + k, value)
            for k, value in enumerate(values)
            if value
        ]

    def _position(self, name: str, anchor: str, direction: np.ndarray) -> list[Slope]:
        moved, joint = self._data.axes[anchor].T @ direction, self._joints[name]
        return [
            Slope(joint, JointQuantity.BY_POSITION + k, value)
            for k, value in enumerate(moved)
            if value
        ]


def _record(parameter: int, slope: Slope) -> np.ndarray:
    return PARAMETER_DERIVATIVE.record(
        parameter=parameter, joint=slope.joint, quantity=slope.quantity, value=slope.value
    )
