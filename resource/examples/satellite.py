"""A satellite that turns by three reaction wheels, its attitude on SO(3).

nh_control simulate satellite.py
nh_control simulate satellite.py --disturb satellite:constant:0,0,0,0.002,0,0.001
nh_control run satellite.py --reference stare --perturb-attitude 1.0 --perturb-seed 4
ros2 launch nh_control scenario.launch.py scenario:=$PWD/satellite.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from transforms3d.quaternions import quat2mat

from nh_control.geometry import quaternion
from nh_control.geometry.rotations import SO3
from nh_control.geometry.spaces import Product, Rn
from nh_control.integrators import midpoint
from nh_control.mechanics.system import System
from nh_control.scenarios import (
    BodyState,
    Joint,
    Parameters,
    Scenario,
    error_seed,
    initial_error,
    on_body,
    parameter,
)
from nh_control.scenarios.perturbation import Seeded
from nh_control.scenarios.visual_model import BLUE, ORANGE, STEEL, Pose, Shape, VisualModel

WORLD = "inertial"
AXES = "xyz"


@dataclass(frozen=True)
class SatelliteParameters(Parameters):
    """A body with a wheel about each of its principal axes."""

    Jx: float = parameter(2.0, "kg m^2", "inertia with the wheels at rest in it")
    Jy: float = parameter(1.6, "kg m^2", "the same about y")
    Jz: float = parameter(1.2, "kg m^2", "the same about z")
    wheel: float = parameter(0.02, "kg m^2", "inertia of a wheel about its axle")
    torque_limit: float = parameter(0.2, "N m", "of a wheel's motor")


def satellite(parameters: SatelliteParameters) -> System:
    """q = (attitude, wheel angles), v = (angular velocity in the body's axes, wheel rates).

    A motor turns its wheel one way and the body the other: together they keep their momentum.
    """

    def lagrangian(q, v, p):
        body = ca.dot(ca.vertcat(p.Jx, p.Jy, p.Jz), v[:3] ** 2)
        return (body + p.wheel * ca.sumsqr(v[3:])) / 2 + p.wheel * ca.dot(v[:3], v[3:])

    return System(
        name="satellite",
        space=Product(SO3(), Rn(*(f"wheel_{c}" for c in AXES))),
        lagrangian=lagrangian,
        inputs=tuple(f"torque_{c}" for c in AXES),
        input_units=("N m",) * 3,
        input_limits=lambda p: p.torque_limit * np.array([[-1.0, 1.0]] * 3),
        force=lambda q, v, u, p: ca.vertcat(ca.SX.zeros(3), u),
        parameters=parameters,
    )


def slew(model):
    """From rest to rest by about two radians in 20 s, around x and z together; then 10 s still."""
    duration, still = 20.0, 10.0
    t = model.h * (np.arange(round(duration / model.h)) + 0.5)
    pulse = -0.08 * np.outer(np.sin(2 * np.pi * t / duration), [0.6, 0.0, 0.35])
    return model.simulate(rest(model), np.vstack([pulse, np.zeros((round(still / model.h), 3))]))


def stare(model):
    """The same attitude for 30 s."""
    return model.simulate(rest(model), np.zeros((round(30.0 / model.h), 3)))


def rest(model):
    """The state at rest with the axes of the world."""
    return model.state(model.system.space.origin, np.zeros(6))


@dataclass(frozen=True)
class SatellitePerturbation(Seeded):
    """How the start differs from the reference's: options `--perturb-attitude`, and so on."""

    attitude: float = initial_error("rad", "turn about an axis: (1, 1, 1), or one that is drawn")
    rate: float = initial_error("rad/s", "rate of the body about that axis")
    seed: int = error_seed()


def perturbed(model, x, error: SatellitePerturbation):
    """The state x turned and turning, the wheels still in the body."""
    draw = np.random.default_rng(max(error.seed, 0))
    axis = np.ones(3) if error.seed < 0 else draw.normal(size=3)
    axis /= np.linalg.norm(axis)
    turned = model.retract(x, [*(2 * np.tan(error.attitude / 2) * axis), *np.zeros(9)])
    q, v = model.configuration(turned), model.velocity(turned)
    return model.state(q, v + [*(error.rate * axis), 0.0, 0.0, 0.0])


def to_bodies(_: SatelliteParameters, q: np.ndarray, v: np.ndarray) -> tuple[BodyState, ...]:
    """The satellite as ROS shows it; its joints, the wheels, follow by themselves."""
    return (BodyState("satellite", WORLD, np.zeros(3), q[:4], np.zeros(3), v[:3]),)


def from_bodies(bodies: Sequence[BodyState]) -> tuple[np.ndarray, np.ndarray]:
    """Attitude and angular velocity of the satellite."""
    (body,) = bodies
    attitude = np.divide(body.quaternion_wxyz, np.linalg.norm(body.quaternion_wxyz))
    return attitude, np.asarray(body.angular_velocity_body)


def poses(_: SatelliteParameters, q: np.ndarray) -> dict[str, Pose]:
    """The satellite, and its wheels with z along their axles."""
    body = Pose(np.zeros(3), quat2mat(q[:4]))
    onto = {"x": (np.pi / 2, (0.0, 1.0, 0.0)), "y": (-np.pi / 2, (1.0, 0.0, 0.0)), "z": (0.0,)}
    wheels = {}
    for i, c in enumerate(AXES):
        at = tuple(0.35 * np.eye(3)[i])
        wheels[f"wheel_{c}"] = body.turned(onto[c][0], at, *onto[c][1:]).turned(q[4 + i], (0,) * 3)
    return {"satellite": body, **wheels}


def visual(_: SatelliteParameters) -> VisualModel:
    """A box with two solar panels, and the wheels with a spoke each."""
    shapes = [
        Shape("box", (0.6, 0.6, 0.6), STEEL, "satellite", opacity=0.6),
        Shape("box", (0.4, 1.4, 0.02), BLUE, "satellite", (0.0, 1.1, 0.0)),
        Shape("box", (0.4, 1.4, 0.02), BLUE, "satellite", (0.0, -1.1, 0.0)),
    ]
    for c in AXES:
        shapes.append(Shape("cylinder", (0.3, 0.3, 0.06), ORANGE, f"wheel_{c}"))
        shapes.append(Shape("box", (0.28, 0.03, 0.08), STEEL, f"wheel_{c}"))
    return VisualModel(WORLD, poses, tuple(shapes))


# the cost of errors of the attitude (rad), of the wheels' angles, and of all momenta
Q = np.diag([1.0] * 3 + [0.0] * 3 + [2.0] * 3 + [0.0] * 3)

SATELLITE = Scenario(
    name="satellite",
    title="A satellite with three reaction wheels",
    parameters=SatelliteParameters(),
    make_system=satellite,
    integrators={"midpoint": midpoint},
    references={"slew": slew, "stare": stare},
    weights=(Q, 40.0 * np.eye(3), 10 * Q),
    perturbation=SatellitePerturbation(attitude=0.3),
    perturb=perturbed,
    to_bodies=to_bodies,
    from_bodies=from_bodies,
    joints=tuple(Joint(f"wheel_{c}_joint", f"wheel_{c}") for c in AXES),
    external=lambda system: (
        on_body(
            system.space,
            "satellite",
            lambda q, p: (ca.SX.zeros(3), quaternion.matrix(q[:4])),
            "torque in the axes of the world; a force at its centre does nothing",
        ),
    ),
    visual=visual,
    step_s=0.02,
)
