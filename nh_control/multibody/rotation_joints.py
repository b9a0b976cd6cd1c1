"""The functions of spherical joints, and of floating joints on SO3xR3. Their derivatives are
closed forms, shorter than the general ones of `joint_functions`.
"""

from __future__ import annotations

from functools import cache, cached_property

import casadi as ca

from nh_control.geometry import quaternion
from nh_control.geometry.rotations import ROTATION_RETRACTIONS, normalize
from nh_control.multibody.joint_functions import Changes, JointFunctions
from nh_control.multibody.joint_types import Floating, Joint, Spherical


@cache
def functions_of(joint: Joint) -> tuple[ca.Function, ...]:
    """The functions of a joint for the kernel."""
    if isinstance(joint, Spherical) or (
        isinstance(joint, Floating) and joint.configuration_space == "SO3xR3"
    ):
        return tuple(RotationJointFunctions(joint, joint.retraction))
    return tuple(JointFunctions(joint))


class RotationJointFunctions(JointFunctions):
    """Those of spherical joints, and of floating ones on SO3xR3.

    With tau(h omega) = (w, v), the quaternion of the step, and a = v / (1 + w), its half is along
    (1, a), and the middle turns by `Zw0 = (I - hat(a)) / 2` with the start, by
    `Zw1 = (I + hat(a)) / 2` with the end, whatever the retraction. With R the rotation there,
    `y = R^T v` the linear twist and Sw the derivatives of omega by start or end,
        kw = Zw^T (mu_w + b_v x y) + Sw^T b_w,   kv = R (mu_v / 2 -+ b_v / h).
    """

    def __init__(self, joint: Joint, retraction: str):
        super().__init__(joint)
        self._retraction = ROTATION_RETRACTIONS[retraction]

    @cached_property
    def _rotation_vector(self) -> ca.SX:
        return self._h * self._z[:3]

    @cached_property
    def _step_quaternion(self) -> ca.SX:
        """Quaternion of the step."""
        return self._retraction.tau(self._rotation_vector)

    @cached_property
    def _half(self) -> ca.SX:
        """Rotation (3, 3) from the start to the middle."""
        w, v = self._step_quaternion[0], self._step_quaternion[1:]
        return quaternion.matrix(normalize(ca.vertcat(1 + w, v)))

    @cached_property
    def _rotation(self) -> ca.SX:
        """Rotation (3, 3) in the middle."""
        return quaternion.matrix(normalize(self._q[:4])) @ self._half

    @property
    def _has_position(self) -> bool:
        return self._z.shape[0] == 6

    @cached_property
    def _linear(self) -> ca.SX:
        return self._rotation.T @ self._z[3:] if self._has_position else ca.SX(3, 1)

    @cached_property
    def _midpoint(self) -> list[ca.SX]:
        position = self._q[4:] + self._h / 2 * self._z[3:] if self._has_position else ca.SX(3, 1)
        return [self._rotation, position, ca.vertcat(self._z[:3], self._linear)]

    def _with(
        self, turns: ca.SX, rates: ca.SX, shift: float | ca.SX, rate: float | ca.SX
    ) -> Changes:
        """Changes from the rotations (3, 3) of the middle, the rates' (3, 3), and the changes of
        the position and of h v along themselves. Divisions by h must not become products with 1 /
        h, whose round-off would lose momentum at every step.
        """
        if not self._has_position:
            return ca.vertcat(turns, ca.SX(3, 3)), ca.vertcat(rates, ca.SX(3, 3))
        back, lever = self._rotation.T, quaternion.hat(self._linear) @ turns
        Z = ca.diagcat(turns, shift * back)
        return Z, ca.blockcat([[rates, ca.SX(3, 3)], [lever, rate * back / self._h]])

    @cached_property
    def _turn_jacobians(self) -> tuple[ca.SX, ca.SX]:
        """Zw0 and Zw1."""
        lever = quaternion.hat(self._step_quaternion[1:] / (1 + self._step_quaternion[0]))
        return (ca.SX.eye(3) - lever) / 2, (ca.SX.eye(3) + lever) / 2

    @cached_property
    def _twist_jacobians(self) -> tuple[ca.SX, ca.SX]:
        """Sw of the start and of the end."""
        inverse = self._retraction.dtau_inverse
        return -inverse(self._rotation_vector) / self._h, inverse(-self._rotation_vector) / self._h

    @cached_property
    def _by_start(self) -> Changes:
        return self._with(self._turn_jacobians[0], self._twist_jacobians[0], 0.5, -1)

    @cached_property
    def _by_end(self) -> Changes:
        return self._with(self._turn_jacobians[1], self._twist_jacobians[1], 0.5, 1)

    @cached_property
    def _end_jacobian(self) -> ca.SX:
        """Turn (3, 3) of the end by omega."""
        w, v = self._step_quaternion[0], self._step_quaternion[1:]
        slope = ca.jacobian(self._step_quaternion, self._z[:3])
        return 2 * (w * slope[1:, :] - v @ slope[0, :] - quaternion.hat(v) @ slope[1:, :])

    @cached_property
    def _by_z(self) -> Changes:
        turns = self._turn_jacobians[1] @ self._end_jacobian
        return self._with(turns, ca.SX.eye(3), self._h / 2, self._h)

    @cached_property
    def _from_start(self) -> Changes:
        return self._with(self._half.T, ca.SX(3, 3), 1.0, 0)

    def _second_derivatives(self) -> list[ca.SX]:
        mu, b, h = self._mu, self._b, self._h
        arm = mu[:3] + ca.cross(b[3:], self._linear)
        fixed = ca.SX.sym("arm", 3)
        blocks = []
        for turns, rates, sign in zip(self._turn_jacobians, self._twist_jacobians, (-1, 1)):
            own = ca.jacobian(turns.T @ fixed + rates.T @ b[:3], self._z[:3])
            carried = turns.T @ quaternion.hat(b[3:])
            pushed = -self._rotation @ quaternion.hat(mu[3:] / 2 + sign * b[3:] / h)
            for (moved, spun), itself in (
                (self._by_z, ca.substitute(own, fixed, arm)),
                (self._from_start, ca.SX(3, 3)),
            ):
                turned = moved[:3, :3]
                if not self._has_position:
                    blocks.append(itself)
                    continue
                rows = ca.horzcat(itself, ca.SX(3, 3)) + carried @ spun[3:, :]
                blocks.append(ca.vertcat(rows, ca.horzcat(pushed @ turned, ca.SX(3, 3))))
        return blocks

    @cached_property
    def _end_jacobians(self) -> list[ca.SX]:
        back = quaternion.matrix(self._step_quaternion).T
        if not self._has_position:
            return [self._end_jacobian, back]
        eye = ca.SX.eye(3)
        return [ca.diagcat(self._end_jacobian, self._h * eye), ca.diagcat(back, eye)]
