"""A ballbot: a body that balances on a rolling ball, which drives in the body turn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import casadi as ca

from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.system import System
from nh_control.multibody import (
    Body,
    JointInput,
    Kinematics,
    Multibody,
    fixed,
    prismatic,
    revolute,
    spherical,
)
from nh_control.multibody.contact_shapes import Touch
from nh_control.multibody.wheels import Rolling

BODY, CENTER = "ballbot", "center"
"""The frame of the body, at the ball's center, and that at its center of mass."""
DRIVES = {"roll_drive": "x", "pitch_drive": "y", "yaw_drive": "z"}
"""The drives and their axes, which are those of the body."""


@dataclass(frozen=True)
class BallbotParameters(Parameters):
    """Physical parameters; the ball is a hollow sphere of inertia `2/3 m r^2`."""

    m: float = parameter(2.5, "kg", "mass of the ball")
    r: float = parameter(0.12, "m", "radius of the ball")
    body_mass: float = parameter(10.0, "kg", "mass of the body")
    height: float = parameter(0.4, "m", "of the body's center of mass above the ball's center")
    J: float = parameter(0.6, "kg m^2", "inertia of the body about horizontal axes")
    Jz: float = parameter(0.12, "kg m^2", "inertia of the body about its upright axis")
    torque_limit: float = parameter(6.0, "N m", "largest torque of every drive")
    g: float = parameter(9.81, "m/s^2", "gravity")


@dataclass(frozen=True, kw_only=True)
class DrivenBall(Rolling):
    """A ball of this `radius` (m) that rolls without slipping and does not spin on the ground. Its
    angular velocity is that of its body, `at` whose frame its center is, and of all drives on it,
    `omega = omega_body + sum_i theta_i' a_i`.
    """

    radius: float

    @property
    def frames(self) -> tuple[str, ...]:
        return tuple(DRIVES)

    def touch(self, k: Kinematics) -> Touch:
        center, normal = k.position(self.point), self.ground.normal(k.position(self.point))
        body = k.angular_velocity(self.point)
        omega = body + sum((k.angular_velocity(name) - body for name in DRIVES), ca.SX(3, 1))
        arm = -self.radius * normal
        velocity = k.velocity(self.point) + ca.cross(omega, arm)
        spin = self.radius * ca.dot(omega, normal) * normal
        return Touch.on(
            self.ground, self.ground.gap(center) - self.radius, center + arm, velocity + spin
        )

    def directions(self, k: Kinematics, touch: Touch) -> ca.SX:
        return ca.vertcat(touch.tangents, touch.normal.T)


def ballbot(parameters: BallbotParameters = BallbotParameters()) -> System:
    """The ballbot as a `System` on SO(3) x R^5: attitude of the body, position of the ball and
    angles of the drives, with three rows, two of rolling and `omega_z = 0` of the ball. Inputs are
    the torques of the drives on the ball about the axes of the body, whose reactions turn the
    body: a positive pitch torque rolls the ball forwards and leans the body back.

    The ball's own attitude is left out, because nothing depends on it. In its place are the
    angles that encoders of the drives show, `omega_ball = omega + theta'` in the axes of the body.
    Three discs on the drives, each with the ball's inertia J about its axis, have the same kinetic
    energy `J |omega_ball|^2 / 2`; what they have about other axes is taken off the body.
    """
    return ballbot_model(parameters).system


@cache
def ballbot_model(parameters: BallbotParameters = BallbotParameters()) -> Multibody:
    """The tree of frames: the body turns about the ball's center, which slides at the height r
    over the ground, and the drives on the body.
    """
    p = parameters
    inertia = 2 / 3 * p.m * p.r**2
    discs = [
        Body(name, p.m / 3, inertia=[inertia * (1.0 if axis == own else 0.5) for axis in "xyz"])
        for name, own in DRIVES.items()
    ]
    rest = p.J - inertia, p.J - inertia, p.Jz - inertia
    return Multibody(
        "ballbot",
        [
            prismatic("x", axis="x", position=(0.0, 0.0, p.r)),
            prismatic("y", "x", axis="y"),
            spherical(BODY, "y", coordinate="body"),
            fixed(CENTER, BODY, (0.0, 0.0, p.height)),
            *(revolute(name, BODY, axis) for name, axis in DRIVES.items()),
        ],
        [Body(CENTER, p.body_mass, inertia=rest), *discs],
        inputs=[
            JointInput(name, p.torque_limit, f"{name.removesuffix('_drive')}_torque")
            for name in DRIVES
        ],
        wheels=[DrivenBall(at=BODY, radius=p.r, name="ball")],
        gravity=(0.0, 0.0, -p.g),
    )
