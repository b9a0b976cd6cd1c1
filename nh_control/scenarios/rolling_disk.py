"""The rolling disk scenario: courses of an upright disk. LQR tracks these courses with torques
about the disk's axle and about the vertical.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
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
from nh_control.scenarios.rolling_disk_visual import visual_model
from nh_control.scenarios.scenario import Joint, PlanarBody, Scenario
from nh_control.scenarios.vehicle_drives import turning_drive
from nh_control.systems import RollingDiskParameters, rolling_disk

COURSES = {
    "figure_eight": figure_eight(length=6.0, width=3.0, duration=20.0),
    "slalom": slalom(speed=1.5, amplitude=0.5, wavelength=4.0, waves=3),
}
SPEED, RADIUS, ROUNDS = 1.5, 2.0, 2
"""For `circle`: speed (m/s), radius (m) and number of rounds."""


def velocity(parameters: RollingDiskParameters, forward: float, yaw_rate: float) -> np.ndarray:
    """The velocity (4) of a disk with the speed `forward` (m/s) and the given yaw rate (rad/s)."""
    return np.array([forward / parameters.r, yaw_rate, forward, 0.0])


def course_trajectory(course: Course, dsys: DiscreteSystem) -> Trajectory:
    """The motion in which the contact point follows a course."""
    return trajectory_along_course(dsys, course, velocity, np.array([0.0, *course.start]))


def circle(dsys: DiscreteSystem) -> Trajectory:
    """A free motion. Without torques both momenta are constant, so the disk rolls in a circle."""
    yaw_rate = SPEED / RADIUS
    start = dsys.state(np.zeros(4), velocity(dsys.system.parameters, SPEED, yaw_rate))
    steps = round(ROUNDS * 2 * np.pi / yaw_rate / dsys.h)
    return dsys.simulate(start, np.zeros((steps, 2)))


_Q = np.diag([0.0, 5.0, 20.0, 20.0, 1.0, 200.0])
DRIVE = turning_drive(velocity, speeds=(2.0, 2.0), accelerations=(1.0, 2.0))

ROLLING_DISK = Scenario(
    name="rolling_disk",
    title="Rolling disk tracking a course",
    parameters=RollingDiskParameters(),
    make_system=rolling_disk,
    nodes={"fallback": "damp"},  # a rolling disk keeps moving without forces
    integrators=INTEGRATORS,
    meanings={
        "figure_eight": "a figure of eight of 6 m x 3 m in 20 s",
        "slalom": "three waves at 1.5 m/s",
    },
    references={
        **{name: partial(course_trajectory, course) for name, course in COURSES.items()},
        "circle": circle,
        "standstill": standstill,
    },
    weights=(_Q, np.diag([1.0, 10.0]), 10 * _Q),
    perturbation=PlanarPerturbation(position=0.2, heading=0.1, momentum=0.1),
    perturb=perturbed,
    joints=(Joint("disk_joint", "phi"),),
    body=PlanarBody("base_link", "odom"),
    visual=visual_model,
    drive=DRIVE,
    step_s=0.005,
)
