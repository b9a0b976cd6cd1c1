"""Functions shared by scenarios with wheels and skates: courses, trajectories with prescribed
velocities, and initial errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import casadi as ca
import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.integrators import nonholonomic_midpoint, rdp
from nh_control.integrators.registry import Make
from nh_control.scenarios.perturbation import PlanarPerturbation, perturb_state
from nh_control.scenarios.vehicle_guidance import step_to_velocity

INTEGRATORS: dict[str, Make] = {
    "midpoint": nonholonomic_midpoint,
    "rdp_exp": partial(rdp, retraction="exp"),
    "rdp_cay": partial(rdp, retraction="cay"),
}
STANDSTILL_S = 1.0
"""Duration (s) of the reference `standstill`."""


@dataclass(frozen=True)
class CourseRates:
    """Rates of a motion along a course at a given time: `speed` (m/s, negative when moving
    backward), `yaw_rate` (rad/s), `curvature` (1/m) and its time derivative `curvature_rate`
    (1/m/s).
    """

    speed: float
    yaw_rate: float
    curvature: float
    curvature_rate: float


@dataclass(frozen=True)
class Course:
    """A curve `path(s) -> (x, y)` (m) that is traversed for `duration` s, with the parameter
    `s(t)` at time t. Both functions return expressions. The heading points in the direction of
    increasing s.
    """

    path: Callable[[ca.SX], tuple[ca.SX, ca.SX]]
    s: Callable[[ca.SX], ca.SX]
    duration: float

    def rates(self, t: float) -> CourseRates:
        """The speed, yaw rate and curvature at time t (s)."""
        speed, yaw_rate, curvature, curvature_rate = map(float, self._rates(t))
        return CourseRates(speed, yaw_rate, curvature, curvature_rate)

    @property
    def start(self) -> np.ndarray:
        """Pose (theta, x, y) at t = 0."""
        return np.asarray(self._pose(0.0))[:, 0]

    @cached_property
    def _pose(self) -> ca.Function:
        t, s, point, slope = self._symbols
        heading = ca.atan2(slope[1], slope[0])
        return ca.Function("pose", [t], [ca.substitute(ca.vertcat(heading, point), s, self.s(t))])

    @cached_property
    def _rates(self) -> ca.Function:
        t, s, _, slope = self._symbols
        # The curvature of a plane curve is kappa = (x' y'' - y' x'') / |(x', y')|^3.
        second = ca.jacobian(slope, s)
        cross, norm = slope[0] * second[1] - slope[1] * second[0], ca.norm_2(slope)
        curvature = cross / norm**3
        rate = ca.jacobian(self.s(t), t)
        # Derivatives with respect to s, which become rates when multiplied by ds/dt.
        along = [norm, cross / norm**2, curvature, ca.jacobian(curvature, s)]
        speed, yaw_rate, curvature, curvature_rate = ca.substitute(along, [s], [self.s(t)])
        return ca.Function(
            "rates", [t], [speed * rate, yaw_rate * rate, curvature, curvature_rate * rate]
        )

    @cached_property
    def _symbols(self) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
        t, s = ca.SX.sym("t"), ca.SX.sym("s")
        point = ca.vertcat(*self.path(s))
        return t, s, point, ca.jacobian(point, s)


def smoothstep(s: ca.SX) -> ca.SX:
    """A step from 0 to 1 whose first three derivatives vanish at 0 and 1. It is constant outside
    [0, 1].
    """
    s = ca.fmin(ca.fmax(s, 0), 1)
    return s**4 * (35 - 84 * s + 70 * s**2 - 20 * s**3)


def figure_eight(length: float, width: float, duration: float) -> Course:
    """A figure of eight (Gerono's lemniscate) with the given length and width (m). It is traversed
    once and starts and ends at rest at the center.
    """
    return Course(
        lambda s: (length / 2 * ca.sin(s), width / 2 * ca.sin(2 * s)),
        lambda t: 2 * np.pi * smoothstep(t / duration),
        duration,
    )


def slalom(speed: float, amplitude: float, wavelength: float, waves: int) -> Course:
    """Sine waves around a straight line, traversed at approximately the given speed (m/s)."""
    return Course(
        lambda s: (s, amplitude * ca.sin(2 * np.pi * s / wavelength)),
        lambda t: speed * t,
        waves * wavelength / speed,
    )


def trajectory_with_velocity(
    dsys: DiscreteSystem,
    q: np.ndarray,
    velocity: Callable[[float, np.ndarray], np.ndarray],
    duration: float,
) -> Trajectory:
    """The trajectory that starts at configuration q (nq) and has the admissible velocity
    `velocity(t, q)` (nw) at each node, including its inputs. It is a motion of the discrete
    system.

    The system must have as many inputs as momenta (see `step_to_velocity`).
    """
    steps = round(duration / dsys.h)
    states, inputs = np.empty((steps + 1, dsys.nx)), np.zeros((steps, dsys.nu))
    states[0] = dsys.state(q, velocity(0.0, q))
    for k in range(steps):
        # Each step solves for the inputs, starting from the inputs in the previous step.
        target = partial(velocity, (k + 1) * dsys.h)
        states[k + 1], inputs[k] = step_to_velocity(dsys, states[k], inputs[max(k - 1, 0)], target)
    return Trajectory(dsys.h, states, inputs, dsys.state_names, dsys.inputs, dsys=dsys)


def standstill(dsys: DiscreteSystem) -> Trajectory:
    """The vehicle rests at the origin, for runs with velocity commands and goals."""
    rest = np.zeros(dsys.system.space.nw)
    return trajectory_with_velocity(
        dsys, dsys.system.space.origin, lambda t, q: rest, STANDSTILL_S
    )


def trajectory_along_course(
    dsys: DiscreteSystem,
    course: Course,
    velocity: Callable[[Any, float, float], np.ndarray],
    q: np.ndarray,
) -> Trajectory:
    """The trajectory that starts at configuration q (nq) and follows a course.
    `velocity(parameters, forward, yaw_rate)` returns the system's velocity (nw) for a forward
    speed (m/s) and a yaw rate (rad/s).
    """

    def along_course(t: float, _: np.ndarray) -> np.ndarray:
        rates = course.rates(t)
        return velocity(dsys.system.parameters, rates.speed, rates.yaw_rate)

    return trajectory_with_velocity(dsys, q, along_course, course.duration)


def perturbed(
    model: DiscreteSystem,
    x: np.ndarray,
    perturbation: PlanarPerturbation,
    heading: str = "theta",
) -> np.ndarray:
    """The state x (nx) with the body displaced and rotated, and all momenta scaled. `heading` is
    the name of the body's heading. In the tangent space, the body's position comes directly after
    the heading.
    """
    nv, n = model.system.space.nv, model.system.nrho
    theta = model.system.space.tangent_names.index(heading)
    direction, signs = perturbation.draw_direction_and_signs(1 + n)
    change, momenta = np.zeros(nv), np.ones(model.ndx)
    change[theta] = signs[0] * perturbation.heading
    change[theta + 1 : theta + 3] = perturbation.position * direction
    momenta[nv : nv + n] = signs[1:]
    return perturb_state(model, x, change, perturbation.momentum, momenta)
