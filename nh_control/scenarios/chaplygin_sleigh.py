"""The Chaplygin sleigh scenario: courses that the skate follows, and a free motion in which the
sleigh turns around. LQR tracks these motions with a yaw torque and a thrust.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.scenarios.chaplygin_sleigh_visual import visual_model
from nh_control.scenarios.driving import (
    INTEGRATORS,
    Course,
    figure_eight,
    perturbed,
    slalom,
    standstill,
    trajectory_along_course,
)
from nh_control.scenarios.perturbation import PlanarPerturbation
from nh_control.scenarios.scenario import PlanarBody, Scenario
from nh_control.scenarios.vehicle_drives import turning_drive
from nh_control.systems import ChaplyginSleighParameters, chaplygin_sleigh

COURSES = {
    "figure_eight": figure_eight(length=16.0, width=8.0, duration=24.0),
    "slalom": slalom(speed=2.0, amplitude=0.6, wavelength=8.0, waves=3),
}
BACKWARDS, SPIN, TURN_ROUND_S = 1.0, 0.02, 24.0
"""For `turn_round`: initial backward speed (m/s) and yaw rate (rad/s), and duration (s)."""


def velocity(parameters: ChaplyginSleighParameters, forward: float, yaw_rate: float) -> np.ndarray:
    """The velocity (3) of the center of mass if the skate has the speed `forward` (m/s) and the
    given yaw rate (rad/s).
    """
    return np.array([yaw_rate, forward, parameters.a * yaw_rate])


def course_trajectory(course: Course, dsys: DiscreteSystem) -> Trajectory:
    """The motion in which the skate follows a course."""
    a, (theta, x, y) = dsys.system.parameters.a, course.start
    # The configuration describes the center of mass, which is a distance a in front of the skate.
    center = np.array([theta, x + a * np.cos(theta), y + a * np.sin(theta)])
    return trajectory_along_course(dsys, course, velocity, center)


def turn_round(dsys: DiscreteSystem) -> Trajectory:
    """A free motion that starts near the unstable one with the skate ahead. The sleigh turns until
    the skate is behind [celledoni2016 Fig. 3].
    """
    start = dsys.state(np.zeros(3), velocity(dsys.system.parameters, -BACKWARDS, SPIN))
    return dsys.simulate(start, np.zeros((round(TURN_ROUND_S / dsys.h), 2)))


_Q = np.diag([5.0, 5.0, 5.0, 1.0, 1.0])
DRIVE = turning_drive(velocity, (2.0, 1.0), (1.0, 1.0), ahead=lambda parameters: parameters.a)

CHAPLYGIN_SLEIGH = Scenario(
    name="chaplygin_sleigh",
    title="Chaplygin sleigh tracking a course",
    parameters=ChaplyginSleighParameters(),
    make_system=chaplygin_sleigh,
    nodes={"fallback": "damp"},  # a sliding vehicle keeps moving without forces
    integrators=INTEGRATORS,
    meanings={
        "figure_eight": "the skate along a figure of eight of 16 m x 8 m in 24 s",
        "slalom": "the skate along three waves at 2 m/s",
        "turn_round": "a free motion with the skate ahead, in which the sleigh turns round",
    },
    references={
        **{name: partial(course_trajectory, course) for name, course in COURSES.items()},
        "turn_round": turn_round,
        "standstill": standstill,
    },
    weights=(_Q, 0.1 * np.eye(2), 10 * _Q),
    perturbation=PlanarPerturbation(position=0.3, heading=0.1, momentum=0.1),
    perturb=perturbed,
    body=PlanarBody("base_link", "odom"),
    visual=visual_model,
    drive=DRIVE,
    step_s=0.02,
)
