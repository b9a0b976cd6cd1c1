"""The functions of joints that turn on SO(3), on their own or with a position beside the turn,
without the detours of general ones: derivatives of a step's rows stay short.
"""

from __future__ import annotations

from functools import cached_property

import casadi as ca

from nh_control.geometry import quaternion
from nh_control.geometry.rotations import ROTATION_RETRACTIONS, normalize
from nh_control.multibody.frames import Floating, Joint, Spherical
from nh_control.multibody.joint_functions import Changes, JointFunctions


def functions_of(joint: Joint) -> JointFunctions:
    """What the kernel knows of a joint."""
    if isinstance(joint, Spherical):
        return RotationJointFunctions(joint, joint.retraction)
    if isinstance(joint, Floating) and joint.configuration_space == "SO3xR3":
        return RotationJointFunctions(joint, joint.retraction)
    return JointFunctions(joint)


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
    def _way(self) -> ca.SX:
        return self._h * self._z[:3]

    @cached_property
    def _turned(self) -> ca.SX:
        """Quaternion of the step."""
        return self._retraction.tau(self._way)

    @cached_property
    def _half(self) -> ca.SX:
        """Rotation (3, 3) from the start to the middle."""
        return quaternion.matrix(normalize(ca.vertcat(1 + self._turned[0], self._turned[1:])))

    @cached_property
    def _turn(self) -> ca.SX:
        """Rotation (3, 3) in the middle."""
        return quaternion.matrix(normalize(self._q[:4])) @ self._half

    @property
    def _moves(self) -> bool:
        return self._z.shape[0] == 6

    @cached_property
    def _linear(self) -> ca.SX:
        return self._turn.T @ self._z[3:] if self._moves else ca.SX(3, 1)

    @cached_property
    def _middle(self) -> list[ca.SX]:
        at = self._q[4:] + self._h / 2 * self._z[3:] if self._moves else ca.SX(3, 1)
        return [self._turn, at, ca.vertcat(self._z[:3], self._linear)]

    def _with(
        self, turns: ca.SX, rates: ca.SX, shift: float | ca.SX, way: float | ca.SX
    ) -> Changes:
        """Changes from the turns (3, 3) of the middle, the rates' (3, 3), and those of the
        position and of the way h v along themselves. All divide by h, which is not the same as a
        product with 1 / h: momenta would be lost at every step.
        """
        if not self._moves:
            return ca.vertcat(turns, ca.SX(3, 3)), ca.vertcat(rates, ca.SX(3, 3))
        back, lever = self._turn.T, quaternion.hat(self._linear) @ turns
        Z = ca.diagcat(turns, shift * back)
        return Z, ca.blockcat([[rates, ca.SX(3, 3)], [lever, way * back / self._h]])

    @cached_property
    def _turns(self) -> tuple[ca.SX, ca.SX]:
        """Zw0 and Zw1."""
        lever = quaternion.hat(self._turned[1:] / (1 + self._turned[0]))
        return (ca.SX.eye(3) - lever) / 2, (ca.SX.eye(3) + lever) / 2

    @cached_property
    def _rates(self) -> tuple[ca.SX, ca.SX]:
        """Sw of the start and of the end."""
        inverse = self._retraction.dtau_inverse
        return -inverse(self._way) / self._h, inverse(-self._way) / self._h

    @cached_property
    def _before(self) -> Changes:
        return self._with(self._turns[0], self._rates[0], 0.5, -1)

    @cached_property
    def _after(self) -> Changes:
        return self._with(self._turns[1], self._rates[1], 0.5, 1)

    @cached_property
    def _end_turns(self) -> ca.SX:
        """Turn (3, 3) of the end by omega."""
        w, v = self._turned[0], self._turned[1:]
        slope = ca.jacobian(self._turned, self._z[:3])
        return 2 * (w * slope[1:, :] - v @ slope[0, :] - quaternion.hat(v) @ slope[1:, :])

    @cached_property
    def _along(self) -> Changes:
        turns = self._turns[1] @ self._end_turns
        return self._with(turns, ca.SX.eye(3), self._h / 2, self._h)

    @cached_property
    def _from_start(self) -> Changes:
        return self._with(self._half.T, ca.SX(3, 3), 1.0, 0)

    def _bends(self) -> list[ca.SX]:
        mu, b, h = self._mu, self._b, self._h
        arm = mu[:3] + ca.cross(b[3:], self._linear)
        fixed = ca.SX.sym("arm", 3)
        found = []
        for turns, rates, sign in zip(self._turns, self._rates, (-1, 1)):
            own = ca.jacobian(turns.T @ fixed + rates.T @ b[:3], self._z[:3])
            carried = turns.T @ quaternion.hat(b[3:])
            pushed = -self._turn @ quaternion.hat(mu[3:] / 2 + sign * b[3:] / h)
            for (moved, spun), itself in (
                (self._along, ca.substitute(own, fixed, arm)),
                (self._from_start, ca.SX(3, 3)),
            ):
                turned = moved[:3, :3]
                if not self._moves:
                    found.append(itself)
                    continue
                rows = ca.horzcat(itself, ca.SX(3, 3)) + carried @ spun[3:, :]
                found.append(ca.vertcat(rows, ca.horzcat(pushed @ turned, ca.SX(3, 3))))
        return found

    @cached_property
    def _ends(self) -> list[ca.SX]:
        back = quaternion.matrix(self._turned).T
        if not self._moves:
            return [self._end_turns, back]
        eye = ca.SX.eye(3)
        return [ca.diagcat(self._end_turns, self._h * eye), ca.diagcat(back, eye)]
