"""The functions for spherical joints and for floating joints on SO3xR3. The derivatives have
closed forms that are shorter than the general derivatives in `joint_functions`.
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
    """The functions of a joint that the kernel calls."""
    if isinstance(joint, Spherical) or (
        isinstance(joint, Floating) and joint.configuration_space == "SO3xR3"
    ):
        return tuple(RotationJointFunctions(joint, joint.retraction))
    return tuple(JointFunctions(joint))


class RotationJointFunctions(JointFunctions):
    """Functions for spherical joints and for floating joints on SO3xR3.

    The quaternion of the step is tau(h omega) = (w, v). With a = v / (1 + w), half the step is the
    rotation along (1, a). For every retraction, the derivatives of the midpoint rotation with
    respect to the initial and final rotations are `Zw0 = (I - hat(a)) / 2` and
    `Zw1 = (I + hat(a)) / 2`. With the midpoint rotation R, the linear twist `y = R^T v` and the
    derivatives Sw of omega with respect to the initial or final rotation,
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
        """Rotation (3, 3) from the beginning to the middle of the step."""
        w, v = self._step_quaternion[0], self._step_quaternion[1:]
        # half the rotation (w, v) has the quaternion (1 + w, v) / |(1 + w, v)|
        return quaternion.matrix(normalize(ca.vertcat(1 + w, v)))

    @cached_property
    def _rotation(self) -> ca.SX:
        """Rotation (3, 3) at the middle of the step."""
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
        """Combine the changes of the midpoint rotation (3, 3), the angular velocity (3, 3), the
        position, and h v. The last two are multiples of the identity. Divisions by h must not
        become products with 1 / h, because their round-off would change the momentum in every
        step.
        """
        if not self._has_position:
            return ca.vertcat(turns, ca.SX(3, 3)), ca.vertcat(rates, ca.SX(3, 3))
        # y = R^T v changes by hat(y) times the rotation, in the body's frame
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
        """Sw with respect to the initial and the final rotation."""
        inverse = self._retraction.dtau_inverse
        # right and left trivialized derivatives of tau^-1 in h omega = tau^-1(q0^-1 q1)
        return -inverse(self._rotation_vector) / self._h, inverse(-self._rotation_vector) / self._h

    @cached_property
    def _by_start(self) -> Changes:
        return self._with(self._turn_jacobians[0], self._twist_jacobians[0], 0.5, -1)

    @cached_property
    def _by_end(self) -> Changes:
        return self._with(self._turn_jacobians[1], self._twist_jacobians[1], 0.5, 1)

    @cached_property
    def _end_jacobian(self) -> ca.SX:
        """Derivative (3, 3) of the final rotation with respect to omega, in the final body
        frame.
        """
        w, v = self._step_quaternion[0], self._step_quaternion[1:]
        slope = ca.jacobian(self._step_quaternion, self._z[:3])
        # the vector part of 2 conj(q) dq for q = (w, v) is 2 (w dv - v dw - v x dv)
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
        # kw = Zw^T (mu_w + b_v x y) + Sw^T b_w; `direct` holds the factor after Zw^T fixed
        arm = mu[:3] + ca.cross(b[3:], self._linear)
        fixed = ca.SX.sym("arm", 3)
        blocks = []
        for turns, rates, sign in zip(self._turn_jacobians, self._twist_jacobians, (-1, 1)):
            direct = ca.jacobian(turns.T @ fixed + rates.T @ b[:3], self._z[:3])
            carried = turns.T @ quaternion.hat(b[3:])
            pushed = -self._rotation @ quaternion.hat(mu[3:] / 2 + sign * b[3:] / h)
            for (moved, spun), itself in (
                (self._by_z, ca.substitute(direct, fixed, arm)),
                (self._from_start, ca.SX(3, 3)),
            ):
                turned = moved[:3, :3]
                if not self._has_position:
                    blocks.append(itself)
                    continue
                rows = ca.horzcat(itself, ca.SX(3, 3)) + carried @ spun[3:, :]
                # kv = R (mu_v / 2 -+ b_v / h): dR x = -R hat(x) dtheta
                blocks.append(ca.vertcat(rows, ca.horzcat(pushed @ turned, ca.SX(3, 3))))
        return blocks

    @cached_property
    def _end_jacobians(self) -> list[ca.SX]:
        back = quaternion.matrix(self._step_quaternion).T
        if not self._has_position:
            return [self._end_jacobian, back]
        eye = ca.SX.eye(3)
        return [ca.diagcat(self._end_jacobian, self._h * eye), ca.diagcat(back, eye)]
