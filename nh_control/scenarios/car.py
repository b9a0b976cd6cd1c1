"""The car scenario: parallel parking, a lane change and a figure of eight. LQR tracks these
motions with torques on the rear axle and on the steering.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import casadi as ca
import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.scenarios.car_visual import visual_model
from nh_control.scenarios.constraints import OBSTACLES
from nh_control.scenarios.driving import (
    INTEGRATORS,
    Course,
    figure_eight,
    perturbed,
    smoothstep,
    standstill,
    trajectory_with_velocity,
)
from nh_control.scenarios.limits import SafetyLimits
from nh_control.scenarios.obstacles import clear_of
from nh_control.scenarios.perturbation import PlanarPerturbation
from nh_control.scenarios.scenario import Joint, PlanarBody, Scenario
from nh_control.scenarios.vehicle_drives import steering_drive
from nh_control.scenarios.visual_model import STEEL, Shape
from nh_control.scenarios.wheeled_base import SteeredBase
from nh_control.systems import CarParameters, car

BACK_S, FORTH_S, GAP_M, ASIDE_M, FORTH_M = 9.0, 4.0, 8.0, 2.5, 0.8
"""For `parking`: durations (s) of the backward and the forward motion, length and width (m) of the
backward path, and length (m) of the forward path.
"""
LANE_M, CHANGE_M, SPEED = 3.5, 45.0, 12.0
"""For `lane_change`: width (m), length (m) and speed (m/s)."""

PARKING = Course(
    lambda s: (s, ASIDE_M * smoothstep((s - FORTH_M) / (GAP_M - FORTH_M))),
    lambda t: GAP_M * (1 - smoothstep(t / BACK_S)) + FORTH_M * smoothstep((t - BACK_S) / FORTH_S),
    BACK_S + FORTH_S,
)
COURSES = {
    "parking": PARKING,
    "lane_change": Course(
        lambda s: (s, LANE_M * smoothstep((s - SPEED) / CHANGE_M)),
        lambda t: SPEED * t,
        (CHANGE_M + 2 * SPEED) / SPEED,
    ),
    "figure_eight": figure_eight(length=60.0, width=30.0, duration=60.0),
}


PARKED = (((6.45, 0.0), 1.75), ((8.3, 0.0), 1.75), ((-1.7, 0.0), 1.75), ((-3.6, 0.0), 1.75))
"""Circles ((x, y), radius) in m around two parked cars. The midpoints of both axles stay
outside.
"""
PARKED_SHAPES = tuple(
    Shape("box", (4.0, 1.7, 1.2), STEEL, OBSTACLES, (x, 0.0, 0.6)) for x in (7.6, -2.9)
)


def axles(parameters: CarParameters) -> list[Callable[[ca.SX], ca.SX]]:
    """Functions that return the midpoints (m) of the two axles at q."""

    def front(q: ca.SX) -> ca.SX:
        return q[3:5] + parameters.l * ca.vertcat(ca.cos(q[2]), ca.sin(q[2]))

    return [lambda q: q[3:5], front]


def course_trajectory(course: Course, dsys: DiscreteSystem) -> Trajectory:
    """The motion in which the rear axle follows a course. The steering angle follows from the
    curvature of the course, `tan(delta) = l curvature`.
    """
    parameters = dsys.system.parameters

    def velocity_at(t: float, q: np.ndarray) -> np.ndarray:
        rates = course.rates(t)
        # d/dt arctan(l kappa) = l kappa' / (1 + (l kappa)^2).
        steering = (
            parameters.l * rates.curvature_rate / (1 + (parameters.l * rates.curvature) ** 2)
        )
        return np.array(
            [
                rates.speed / parameters.r,
                steering,
                np.tan(q[1]) / parameters.l * rates.speed,
                rates.speed,
                0.0,
            ]
        )

    delta = np.arctan(parameters.l * course.rates(0.0).curvature)
    return trajectory_with_velocity(
        dsys, np.array([0.0, delta, *course.start]), velocity_at, course.duration
    )


_Q = np.diag([0.0, 1.0, 10.0, 5.0, 5.0, 0.05, 2e-6])
DRIVE = steering_drive(2.5, 0.3, steering=(0.6, 0.6, 3.0), speed=15.0, acceleration=2.0)

CAR = Scenario(
    name="car",
    title="Car tracking a maneuver",
    parameters=CarParameters(),
    make_system=car,
    nodes={"fallback": "damp"},  # a rolling vehicle keeps moving without forces
    integrators=INTEGRATORS,
    meanings={
        "parking": "backward into a gap at the side, and forward to its middle",
        "lane_change": "into the next lane at constant speed",
        "figure_eight": "a figure of eight of 60 m x 30 m in 60 s",
        "tight_parking": "the parking maneuver between two parked cars, for predictive control",
    },
    references={
        **{name: partial(course_trajectory, course) for name, course in COURSES.items()},
        "tight_parking": partial(course_trajectory, PARKING),
        "standstill": standstill,
    },
    weights=(_Q, np.diag([1e-6, 1e-3]), 10 * _Q),
    perturbation=PlanarPerturbation(position=0.3, heading=0.05, momentum=0.1),
    perturb=perturbed,
    joints=(Joint("rear_wheels_joint", "wheel"), Joint("steering_joint", "delta")),
    body=PlanarBody("base_link", "odom"),
    visual=visual_model,
    drive=DRIVE,
    base=lambda parameters: SteeredBase(
        "rear_wheels_joint", "steering_joint", parameters.r, parameters.l
    ),
    step_s=0.02,
    limits=SafetyLimits(ranges=("steering_joint:-1.5:1.5",)),
    constraints={
        "parked_cars": clear_of(
            axles(CarParameters()), PARKED, 1e2, ("tight_parking",), PARKED_SHAPES
        )
    },
    horizon_s=2.0,
)
