"""An inverted pendulum on a wheel, as a robot that touches the ground and as one that rolls."""

import casadi as ca

import nh_control as nh

BODY, WHEEL, LENGTH, RADIUS, G = 4.5, 0.6, 0.45, 0.06, 9.81
INERTIA, SPIN = 0.12, 0.002
H = 0.005


def kinetic(v, pitch):
    """Kinetic energy of v = (x', z', wheel', pitch'), with x, z of the axle."""
    x, z, wheel, tilt = ca.vertsplit(v)
    at = x + LENGTH * ca.cos(pitch) * tilt, z - LENGTH * ca.sin(pitch) * tilt
    moving = WHEEL * (x**2 + z**2) + BODY * (at[0] ** 2 + at[1] ** 2)
    return (moving + SPIN * wheel**2 + INERTIA * tilt**2) / 2


def touching(friction=0.8, smoothing=1e-6, push=()):
    """The robot whose wheel touches the ground, q = (x, z, wheel, pitch)."""

    def lagrangian(q, v):
        height = WHEEL * q[1] + BODY * (q[1] + LENGTH * ca.cos(q[3]))
        return kinetic(v, q[3]) - G * height

    tire = nh.UnilateralConstraint(
        "tire",
        gap=lambda q: q[1] - RADIUS,
        slip=lambda q: ca.horzcat(1, 0, -RADIUS, 0),
        friction=friction,
    )
    system = nh.System(
        "balancer",
        nh.Rn("x", "z", "wheel", "pitch"),
        lagrangian,
        inputs=("torque",),
        force=lambda q, v, u: ca.vertcat(0, 0, u, -u),
        input_limits=[[-8.0, 8.0]],
        contacts=(tire,),
        smoothing=smoothing,
    )
    return nh.midpoint(system, H)


def rolling():
    """The robot whose wheel always rolls, q = (wheel, pitch)."""

    def lagrangian(q, v):
        moved = ca.vertcat(RADIUS * v[0], 0, v[0], v[1])
        return kinetic(moved, q[1]) - G * BODY * LENGTH * ca.cos(q[1])

    space = nh.Rn("wheel", "pitch")
    system = nh.System("rolls", space, lagrangian, ("torque",), lambda q, v, u: ca.vertcat(u, -u))
    return nh.midpoint(system, H)
