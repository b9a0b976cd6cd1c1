"""Systems with symmetries of every group of the package, which declare nothing but their shapes:
connections and bases follow.
"""

import casadi as ca

from nh_control.geometry import quaternion
from nh_control.geometry.rotations import SE3, SO3
from nh_control.geometry.spaces import SE2, Product, Rn
from nh_control.mechanics.symmetry import Symmetry
from nh_control.mechanics.system import System


def particle() -> System:
    """A particle with z' = y x' and a wind, on R x R^2: the group of translations along x and z,
    with the directions (1, y) that keep the constraint.
    """
    return System(
        name="particle",
        space=Rn("y", "x", "z"),
        lagrangian=lambda q, v: (
            (2 * v[0] ** 2 + (1 + q[0] ** 2) * v[1] ** 2 + v[2] ** 2) / 2
            + 0.3 * v[0] * v[1]
            - q[0] ** 4 / 4
        ),
        inputs=("wind",),
        force=lambda q, v, u: ca.vertcat(u, 0.5 * u, 0),
        velocity_constraint=lambda q: ca.horzcat(0, -q[0], 1),
        symmetry=Symmetry(n_shape=1),
    )


def bent_body() -> System:
    """A body on SE(3) that bends: it slides along one axis that turns with the bend, and rolls
    with its pitch.
    """
    inertia = ca.DM([[1.0, 0.1, 0.2], [0.1, 2.0, -0.3], [0.2, -0.3, 1.5]])

    def lagrangian(q, v):
        bend, omega, speed = v[0], v[1:4], v[4:7]
        body = omega.T @ inertia @ omega / 2 + (2 + ca.sin(q[0])) * ca.sumsqr(speed) / 2
        coupling = bend * (0.3 * omega[1] + 0.2 * ca.cos(q[0]) * speed[0])
        offset = 0.4 * (omega[2] * speed[1] - omega[1] * speed[2])
        return body + bend**2 + coupling + offset - q[0] ** 2

    def constraint(q):
        slides = ca.horzcat(0.3, 0, 0, 0.2, 0, 1, ca.sin(q[0]))
        return ca.vertcat(slides, ca.horzcat(-0.1 * ca.cos(q[0]), 0, -0.5, 0, 0, 0, 1))

    return System(
        name="bent_body",
        space=Product(Rn("bend"), SE3()),
        lagrangian=lagrangian,
        inputs=("torque", "thrust"),
        force=lambda q, v, u: ca.vertcat(u[0], 0, 0, 0.1 * u[0], u[1], 0, -0.1 * v[6]),
        velocity_constraint=constraint,
        symmetry=Symmetry(n_shape=1),
    )


def carriage() -> System:
    """A body of any inertia on gimbals in a sleigh: its rotation against the sleigh, on SO(3), is
    the shape. The rotation's energy of place is `0.4 R_zz`.
    """
    inertia = ca.DM([0.8, 1.0, 1.4])

    def lagrangian(q, v):
        rotation, yaw = quaternion.matrix(q[:4]), v[3] * ca.DM([0, 0, 1])
        omega = v[:3] + rotation.T @ yaw
        sleigh = (v[3] ** 2 + 2 * ca.sumsqr(v[4:])) / 2 + 0.3 * v[3] * v[5]
        return ca.dot(inertia, omega**2) / 2 + sleigh - 0.4 * rotation[2, 2]

    return System(
        name="carriage",
        space=Product(SO3(), SE2()),
        lagrangian=lagrangian,
        inputs=("torque", "thrust"),
        force=lambda q, v, u: ca.vertcat(u[0], 0, 0, 0, u[1], 0),
        velocity_constraint=lambda q: ca.horzcat(0, 0, 0, 0, 0, 1),
        symmetry=Symmetry(n_shape=4),
    )


def turning_skate() -> System:
    """A plate without inertia but for its mass, on a skate at a distance from its center that a
    servo turns all around.
    """
    return System(
        name="turning_skate",
        space=Product(Rn("angle"), SE2()),
        lagrangian=lambda q, v: (v[0] ** 2 + 2 * ca.sumsqr(v[2:])) / 2 + 0.3 * v[0] * v[2],
        inputs=("servo", "thrust"),
        force=lambda q, v, u: ca.vertcat(u[0], 0, u[1], 0),
        velocity_constraint=lambda q: ca.horzcat(0.1, 0.5, -ca.sin(q[0]), ca.cos(q[0])),
        symmetry=Symmetry(n_shape=1),
    )


def free_body() -> System:
    """A rigid body about a point without constraints."""
    return System(
        name="free_body",
        space=SO3(),
        lagrangian=lambda q, v: ca.dot(ca.DM([1.0, 2.0, 2.5]), v**2) / 2,
        inputs=("torque",),
        force=lambda q, v, u: ca.vertcat(u, 0, 0),
        symmetry=Symmetry(n_shape=0),
    )


SYSTEMS = {
    make.__name__: make for make in (particle, bent_body, carriage, turning_skate, free_body)
}
