"""The Chaplygin sleigh scenario: courses of its skate and its free turn,
tracked by LQR with a yaw torque and a thrust.
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
from nh_control.scenarios.scenario import Body, Scenario
from nh_control.scenarios.vehicle_drives import turning_drive
from nh_control.systems import ChaplyginSleighParameters, chaplygin_sleigh

COURSES = {
    "figure_eight": figure_eight(length=16.0, width=8.0, duration=24.0),
    "slalom": slalom(speed=2.0, amplitude=0.6, wavelength=8.0, waves=3),
}
BACKWARDS, SPIN, TURN_ROUND_S = 1.0, 0.02, 24.0
"""turn_round: its speed backwards (m/s), the turning it begins with (rad/s), its length (s)."""


def velocity(parameters: ChaplyginSleighParameters, forward: float, yaw_rate: float) -> np.ndarray:
    """Velocity (3) of the center of mass while the skate moves `forward` (m/s) and turns
    (rad/s).
    """
    return np.array([yaw_rate, forward, parameters.a * yaw_rate])


def course_trajectory(course: Course, dsys: DiscreteSystem) -> Trajectory:
    """The motion with the skate on a course."""
    a, (theta, x, y) = dsys.system.parameters.a, course.start
    center = np.array([theta, x + a * np.cos(theta), y + a * np.sin(theta)])
    return trajectory_along_course(dsys, course, velocity, center)


def turn_round(dsys: DiscreteSystem) -> Trajectory:
    """A free motion from the unstable one with the skate ahead: the sleigh turns until the skate
    is behind [celledoni2016 Fig. 3].
    """
    start = dsys.state(np.zeros(3), velocity(dsys.system.parameters, -BACKWARDS, SPIN))
    return dsys.simulate(start, np.zeros((round(TURN_ROUND_S / dsys.h), 2)))


_Q = np.diag([5.0, 5.0, 5.0, 1.0, 1.0])
DRIVE = turning_drive(velocity, (2.0, 1.0), (1.0, 1.0), ahead=lambda p: p.a)

CHAPLYGIN_SLEIGH = Scenario(
    name="chaplygin_sleigh",
    title="Chaplygin sleigh tracking a course",
    parameters=ChaplyginSleighParameters(),
    make_system=chaplygin_sleigh,
    nodes={"fallback": "damp"},  # what rolls goes on without forces
    integrators=INTEGRATORS,
    references={
        **{name: partial(course_trajectory, course) for name, course in COURSES.items()},
        "turn_round": turn_round,
        "standstill": standstill,
    },
    weights=(_Q, 0.1 * np.eye(2), 10 * _Q),
    perturbation=PlanarPerturbation(position=0.3, heading=0.1, momentum=0.1),
    perturb=perturbed,
    body=Body("base_link", "odom"),
    visual=visual_model,
    drive=DRIVE,
    step_s=0.02,
)
