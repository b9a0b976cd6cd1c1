"""The differential drive scenario: courses from rest to rest and a slalom. LQR tracks these
motions with torques on the wheels.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.scenarios.differential_drive_visual import visual_model
from nh_control.scenarios.driving import (
    INTEGRATORS,
    Course,
    figure_eight,
    perturbed,
    slalom,
    standstill,
    trajectory_along_course,
    trajectory_with_velocity,
)
from nh_control.scenarios.perturbation import PlanarPerturbation
from nh_control.scenarios.scenario import Joint, PlanarBody, Scenario
from nh_control.scenarios.vehicle_drives import turning_drive
from nh_control.scenarios.wheeled_base import DifferentialBase
from nh_control.systems import DifferentialDriveParameters, differential_drive

COURSES = {
    "figure_eight": figure_eight(length=4.0, width=2.0, duration=20.0),
    "slalom": slalom(speed=0.8, amplitude=0.3, wavelength=2.0, waves=3),
}
LEG_S, WAY, TURN = 3.0, 1.5, np.pi
"""For `delivery`: duration (s) of each of the three parts, distance (m), and angle of the turn
(rad).
"""


def velocity(
    parameters: DifferentialDriveParameters, forward: float, yaw_rate: float
) -> np.ndarray:
    """The velocity (5) of a drive with the speed `forward` (m/s) and the given yaw rate
    (rad/s).
    """
    # The wheels roll: r phi' = v - b omega (left) and r phi' = v + b omega (right).
    side = parameters.b * yaw_rate
    wheels = (forward - side) / parameters.r, (forward + side) / parameters.r
    return np.array([*wheels, yaw_rate, forward, 0.0])


def course_trajectory(course: Course, dsys: DiscreteSystem) -> Trajectory:
    """The motion in which the midpoint of the axle follows a course."""
    return trajectory_along_course(dsys, course, velocity, np.array([0.0, 0.0, *course.start]))


def delivery(dsys: DiscreteSystem) -> Trajectory:
    """Straight ahead, a turn on the spot, and the same path back, each from rest to rest."""

    def rate(t: float, leg: int) -> float:
        """The derivative (1/s) of `smoothstep` during a leg."""
        s = min(max(t / LEG_S - leg, 0.0), 1.0)
        return 140 * s**3 * (1 - s) ** 3 / LEG_S

    def velocity_at(t: float, q: np.ndarray) -> np.ndarray:
        forward = WAY * (rate(t, 0) + rate(t, 2))
        return velocity(dsys.system.parameters, forward, TURN * rate(t, 1))

    return trajectory_with_velocity(dsys, np.zeros(5), velocity_at, 3 * LEG_S)


_Q = np.diag([0.0, 0.0, 5.0, 20.0, 20.0, 5.0, 0.02])
DRIVE = turning_drive(velocity, speeds=(1.0, 2.0), accelerations=(1.0, 2.0))

DIFFERENTIAL_DRIVE = Scenario(
    name="differential_drive",
    title="Differential drive tracking a course",
    parameters=DifferentialDriveParameters(),
    make_system=differential_drive,
    nodes={"fallback": "damp"},  # a rolling vehicle keeps moving without forces
    integrators=INTEGRATORS,
    meanings={
        "figure_eight": "a figure of eight of 4 m x 2 m in 20 s",
        "slalom": "three waves at 0.8 m/s",
    },
    references={
        **{name: partial(course_trajectory, course) for name, course in COURSES.items()},
        "delivery": delivery,
        "standstill": standstill,
    },
    weights=(_Q, np.eye(2), 10 * _Q),
    perturbation=PlanarPerturbation(position=0.1, heading=0.1, momentum=0.1),
    perturb=perturbed,
    joints=(Joint("left_wheel_joint", "left"), Joint("right_wheel_joint", "right")),
    body=PlanarBody("base_link", "odom"),
    visual=visual_model,
    drive=DRIVE,
    base=lambda parameters: DifferentialBase(
        "left_wheel_joint", "right_wheel_joint", parameters.r, 2 * parameters.b
    ),
)
