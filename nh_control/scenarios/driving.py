"""Shared parts of the scenarios with wheels and skates: courses, trajectories with given
velocities, initial errors.
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
"""Duration of the reference standstill."""


@dataclass(frozen=True)
class CourseRates:
    """Rates of a motion along a course at one time: `speed` (m/s, negative backwards), yaw rate
    `yaw_rate` (rad/s), `curvature` (1/m) and its derivative by time, `curvature_rate` (1/m/s).
    """

    speed: float
    yaw_rate: float
    curvature: float
    curvature_rate: float


@dataclass(frozen=True)
class Course:
    """A curve `path(s) -> (x, y)` in m, run as `s(t)` for `duration` s; both are expressions, the
    heading is along growing s.
    """

    path: Callable[[ca.SX], tuple[ca.SX, ca.SX]]
    s: Callable[[ca.SX], ca.SX]
    duration: float

    def rates(self, t: float) -> CourseRates:
        """Speed and turning at time t."""
        return CourseRates(*map(float, self._rates(t)))

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
        # curvature of a plane curve, (x' y'' - y' x'') / |(x', y')|^3
        second = ca.jacobian(slope, s)
        cross, norm = slope[0] * second[1] - slope[1] * second[0], ca.norm_2(slope)
        curvature = cross / norm**3
        rate = ca.jacobian(self.s(t), t)
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
    """From 0 to 1 with three derivatives that vanish at both ends, constant outside of [0, 1]."""
    s = ca.fmin(ca.fmax(s, 0), 1)
    return s**4 * (35 - 84 * s + 70 * s**2 - 20 * s**3)


def figure_eight(length: float, width: float, duration: float) -> Course:
    """A figure of eight (Gerono's lemniscate) of these sizes (m), once through from rest to rest
    in its middle.
    """
    return Course(
        lambda s: (length / 2 * ca.sin(s), width / 2 * ca.sin(2 * s)),
        lambda t: 2 * np.pi * smoothstep(t / duration),
        duration,
    )


def slalom(speed: float, amplitude: float, wavelength: float, waves: int) -> Course:
    """Waves about a straight line, at about this speed (m/s)."""
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
    """The trajectory from configuration q (nq) with the admissible velocity `velocity(t, q)` (nw)
    at every node, and its inputs; it is simulated, so it is discretely feasible.

    For systems with as many inputs as momenta, see `step_to_velocity`.
    """
    steps = round(duration / dsys.h)
    states, inputs = np.empty((steps + 1, dsys.nx)), np.zeros((steps, dsys.nu))
    states[0] = dsys.state(q, velocity(0.0, q))
    for k in range(steps):
        wanted = partial(velocity, (k + 1) * dsys.h)
        states[k + 1], inputs[k] = step_to_velocity(dsys, states[k], inputs[max(k - 1, 0)], wanted)
    return Trajectory(dsys.h, states, inputs, dsys.state_names, dsys.inputs, dsys=dsys)


def standstill(dsys: DiscreteSystem) -> Trajectory:
    """At rest at the origin, for runs by velocity commands and goals."""
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
    """The trajectory from configuration q (nq) along a course; `velocity(parameters, forward,
    yaw_rate)` is the system's velocity (nw) at a forward speed (m/s) and a yaw rate (rad/s).
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
    """State x (nx) with the body whose `heading` this is moved and turned, and every momentum
    scaled.
    """
    nv, n = model.system.space.nv, model.system.nrho
    theta = model.system.space.tangent_names.index(heading)
    direction, signs = perturbation.draw_direction_and_signs(1 + n)
    change, momenta = np.zeros(nv), np.ones(model.ndx)
    change[theta] = signs[0] * perturbation.heading
    change[theta + 1 : theta + 3] = perturbation.position * direction
    momenta[nv : nv + n] = signs[1:]
    return perturb_state(model, x, change, perturbation.momentum, momenta)
