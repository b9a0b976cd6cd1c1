"""A ballbot, which is a body that balances on a rolling ball. Drives in the body turn the ball."""

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
"""The body's frame at the ball's center, and the frame at the body's center of mass."""
DRIVES = {"roll_drive": "x", "pitch_drive": "y", "yaw_drive": "z"}
"""The drives, and their axes in the body."""


@dataclass(frozen=True)
class BallbotParameters(Parameters):
    """Physical parameters. The ball is a hollow sphere with the inertia `2/3 m r^2`."""

    m: float = parameter(2.5, "kg", "mass of the ball")
    r: float = parameter(0.12, "m", "radius of the ball")
    body_mass: float = parameter(10.0, "kg", "mass of the body")
    height: float = parameter(0.4, "m", "height of the body's center of mass above the ball's")
    J: float = parameter(0.6, "kg m^2", "inertia of the body about horizontal axes")
    Jz: float = parameter(0.12, "kg m^2", "inertia of the body about its upright axis")
    torque_limit: float = parameter(6.0, "N m", "largest torque of every drive")
    g: float = parameter(9.81, "m/s^2", "gravity")


@dataclass(frozen=True, kw_only=True)
class DrivenBall(Rolling):
    """A ball with the given `radius` (m) that rolls without slipping and does not spin on the
    ground. Its center is the origin of the body's frame `at`. Its angular velocity is the sum of
    the body's angular velocity and the rates of all drives on the body,
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
        # the normal velocity at the touch is zero, so this component carries the spin r omega . n
        spin = self.radius * ca.dot(omega, normal) * normal
        return Touch.on(
            self.ground, self.ground.gap(center) - self.radius, center + arm, velocity + spin
        )

    def directions(self, k: Kinematics, touch: Touch) -> ca.SX:
        # two rows for rolling, and a row for the spin in the normal direction
        return ca.vertcat(touch.tangents, touch.normal.T)


def ballbot(parameters: BallbotParameters = BallbotParameters()) -> System:
    """The ballbot as a `System` on SO(3) x R^5, with the attitude of the body, the position of the
    ball and the angles of the drives. It has two velocity constraints for rolling, and the
    constraint `omega_z = 0` for the ball. The inputs are the torques that the drives exert on the
    ball about the body's axes. Their reactions turn the body, so a positive pitch torque rolls the
    ball forward and leans the body backward.

    The configuration does not contain the attitude of the ball, because nothing depends on it.
    Instead, it contains the angles theta that the drives' encoders measure, with
    `omega_ball = omega + theta'` in the body's axes. The ball's rotation is modeled by three discs
    on the drives. Each disc has the ball's inertia J about its axis, so the kinetic energy is also
    `J |omega_ball|^2 / 2`. The discs' inertia about other axes is subtracted from the body.
    """
    return ballbot_model(parameters).system


@cache
def ballbot_model(parameters: BallbotParameters = BallbotParameters()) -> Multibody:
    """The tree of frames. The ball's center slides at the height r above the ground, the body
    turns about the ball's center, and the drives turn on the body.
    """

    inertia = 2 / 3 * parameters.m * parameters.r**2
    discs = [
        Body(
            name, parameters.m / 3, inertia=[inertia * (1.0 if c == axis else 0.5) for c in "xyz"]
        )
        for name, axis in DRIVES.items()
    ]
    # about each axis, the two other discs have the inertia J / 2 each
    rest = parameters.J - inertia, parameters.J - inertia, parameters.Jz - inertia
    return Multibody(
        "ballbot",
        [
            prismatic("x", axis="x", position=(0.0, 0.0, parameters.r)),
            prismatic("y", "x", axis="y"),
            spherical(BODY, "y", coordinate="body"),
            fixed(CENTER, BODY, (0.0, 0.0, parameters.height)),
            *(revolute(name, BODY, axis) for name, axis in DRIVES.items()),
        ],
        [Body(CENTER, parameters.body_mass, inertia=rest), *discs],
        inputs=[
            JointInput(name, parameters.torque_limit, f"{name.removesuffix('_drive')}_torque")
            for name in DRIVES
        ],
        wheels=[DrivenBall(at=BODY, radius=parameters.r, name="ball")],
        gravity=(0.0, 0.0, -parameters.g),
    )
