"""The snake scenario: serpenoid gaits of a snake robot on passive wheels, tracked by LQR with the
torques of its joints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import casadi as ca
import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.integrators import nonholonomic_midpoint
from nh_control.scenarios.driving import perturbed, smoothstep
from nh_control.scenarios.limits import SafetyLimits
from nh_control.scenarios.perturbation import PlanarPerturbation
from nh_control.scenarios.scenario import Body, Joint, MonitoredOutput, Scenario
from nh_control.scenarios.snake_visual import visual_model
from nh_control.scenarios.vehicle_guidance import rest_to_rest
from nh_control.systems.snake import (
    JOINTS,
    WHEELED,
    SnakeParameters,
    following,
    kinematic_snake,
    snake,
)

LEAST_SPREAD = 0.1
"""Least difference (rad) between the largest and the smallest angle of the joints; torques on a
straight snake, or one along an arc of a circle, do not push it forwards.
"""
LEAST_DETERMINANT = 0.2
"""Least determinant of the rows of three wheels, see `independence`."""
WAVES_BEFORE, STEPS_PER_WAVE = 3, 400
"""Waves along which the links follow the head before a gait starts."""
CORRECTIONS, REACHED, DIFFERENCE = 5, 1e-10, 1e-5
"""Of the torques (N m) of a step: largest number, error of the rates, steps of differences."""


@dataclass(frozen=True)
class Gait:
    """The head's way along a serpenoid curve [hirose1993], of the heading `theta(s) = swing sin(2
    pi s / wave) + turn s` at the arc length s: `waves` of the length `wave` (m), from rest to rest
    in `duration` s. `swing` is in rad, the mean curvature `turn` in 1/m. The links follow on
    their wheels, so that all joints are functions of s, and their motion determines that of the
    snake.
    """

    swing: float
    wave: float
    waves: int
    duration: float
    turn: float = 0.0

    def curvature(self, s: float) -> float:
        """`theta'(s)` in 1/m."""
        k = 2 * np.pi / self.wave
        return self.swing * k * np.cos(k * s) + self.turn

    def along(self, t: float) -> tuple[float, float]:
        """Arc length (m) and speed (m/s) at time t."""
        length = self.waves * self.wave
        part = float(smoothstep(ca.SX(t / self.duration)))
        return length * part, length * rest_to_rest(t, self.duration)

    def start(self, l: float) -> np.ndarray:
        """Configuration (8) at s = 0 of a snake with links of length l (m), which has come along
        the curve. Raises ValueError if it comes close to a shape in which torques do not push it
        forwards.
        """
        q, ds, spread = np.zeros(3 + len(JOINTS)), self.wave / STEPS_PER_WAVE, np.inf
        for i in range(-WAVES_BEFORE * STEPS_PER_WAVE, 0):
            q[3:] += ds * following(l, q, 1.0, self.curvature((i + 0.5) * ds))[3:]
            if i >= -STEPS_PER_WAVE:
                spread = min(spread, np.ptp(q[3:]))
        if spread < LEAST_SPREAD:
            raise ValueError(
                f"{self}: all joints come to the same angle within {spread:.3g} rad, less than "
                f"{LEAST_SPREAD:g}: the snake is straight or along an arc, its wheels' axles meet "
                "in one point, and torques do not push it forwards; take a larger swing"
            )
        return q

    def reference(self, dsys: DiscreteSystem) -> Trajectory:
        """The motion of a snake with the least torques that make it. Raises ValueError as `start`
        does.
        """
        q = self.start(link_length(dsys))
        states, inputs = [dsys.state(q, np.zeros(len(q)))], [np.zeros(dsys.nu)]
        for t in dsys.h * np.arange(1, round(self.duration / dsys.h) + 1):
            s, v = self.along(t)
            u = least_torques(dsys, states[-1], inputs[-1], np.array([v * self.curvature(s), v]))
            states.append(dsys.step(states[-1], u))
            inputs.append(u)
        names = dsys.state_names, dsys.inputs
        return Trajectory(dsys.h, np.array(states), np.array(inputs[1:]), *names, dsys=dsys)


@dataclass(frozen=True)
class Creep:
    """Waves of all joints about a bent shape, `phi_i(t) = bend_i + swing sin(2 pi t / period - lag
    i)`, for `periods` of `period` s. The joints determine the motion as long as the axles of the
    wheels do not meet in one point, which the bend keeps them from.
    """

    bend: tuple[float, ...]
    swing: float
    lag: float
    period: float
    periods: int

    def reference(self, dsys: DiscreteSystem) -> Trajectory:
        """The motion of `kinematic_snake` from rest to rest: waves grow and fade in a period.
        Raises ValueError if it comes close to a shape in which the axles meet.
        """
        duration, n = self.period * self.periods, len(JOINTS)

        def joints(t: float) -> np.ndarray:
            part = float(smoothstep(ca.SX(min(t, duration - t) / self.period)))
            phase = 2 * np.pi * t / self.period - self.lag * np.arange(n)
            return np.array(self.bend) + part * self.swing * np.sin(phase)

        steps = round(duration / dsys.h)
        path = np.array([joints(k * dsys.h) for k in range(steps + 1)])
        regular = independence(dsys, path)
        if np.abs(regular).min() < LEAST_DETERMINANT or np.ptp(np.sign(regular)):
            raise ValueError(
                f"{self}: the axles of the wheels meet in one point, or are parallel, at t = "
                f"{np.abs(regular).argmin() * dsys.h:.3g} s, and the joints do not determine the "
                "motion there; take a smaller swing or a larger bend"
            )
        start = dsys.state([0.0, 0.0, 0.0, *self.bend], np.zeros(3 + n))
        return dsys.simulate(start, path[1:])


def link_length(dsys: DiscreteSystem) -> float:
    """Length (m) of the links of a model."""
    system: Any = dsys.system
    return -float(system.model.frames[-1].position[0])


def independence(dsys: DiscreteSystem, path: np.ndarray) -> np.ndarray:
    """Determinants (N) of the wheels' rows by the head's velocity along angles of the joints
    (N, 5), lengths in those of a link.
    """
    symbol, l = dsys.system.symbols[0], link_length(dsys)
    by_head = ca.densify(dsys.system.constraint_matrix(symbol)[:, :3])
    rows = ca.Function("rows", [symbol], [by_head])
    return np.array([np.linalg.det(np.asarray(rows([0, 0, 0, *q])) / [l, 1, 1]) for q in path])


def least_torques(
    dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray, wanted: np.ndarray
) -> np.ndarray:
    """The least torques (5) with which the head turns and goes on as `wanted` (rad/s, m/s) after a
    step from state x (nx), by Newton's method with differences at the guess u (5).
    """

    def rates(torques: np.ndarray) -> np.ndarray:
        return dsys.velocity(dsys.step(x, torques))[:2]

    now = rates(u)
    slope = np.column_stack([(rates(u + d) - now) / DIFFERENCE for d in DIFFERENCE * np.eye(5)])
    inverse = np.linalg.pinv(slope)
    for _ in range(CORRECTIONS):
        if np.abs(wanted - now).max() <= REACHED:
            break
        u = inverse @ (slope @ u + wanted - now)
        now = rates(u)
    return u


GAITS = {
    "serpentine": Gait(swing=0.7, wave=0.9, waves=4, duration=12.0),
    "turning": Gait(swing=0.7, wave=0.9, waves=4, duration=12.0, turn=0.5),
}


CREEP = Creep(bend=(0.5, 0.5, 0.0, -0.5, -0.5), swing=0.3, lag=-np.pi / 3, period=4.0, periods=6)


def spread(
    parameters: SnakeParameters,
    q: np.ndarray,
    v: np.ndarray,
    u: np.ndarray,
    external: Mapping[str, Any],
) -> np.ndarray:
    """Difference (rad) between the largest and the smallest angle of the joints, (1)."""
    return np.array([np.ptp(q[3:])])


_Q = np.diag([10.0, 20.0, 20.0, *(1.0,) * len(JOINTS), 1.0, 1.0, 1.0, *(0.1,) * len(JOINTS)])

SNAKE = Scenario(
    name="snake",
    title="Snake robot on passive wheels tracking a gait",
    parameters=SnakeParameters(),
    make_system=snake,
    nodes={"fallback": "damp"},  # what rolls goes on without forces
    integrators={"midpoint": nonholonomic_midpoint},
    references={name: gait.reference for name, gait in GAITS.items()},
    weights=(_Q, np.eye(len(JOINTS)), 10 * _Q),
    perturbation=PlanarPerturbation(position=0.05, heading=0.1, momentum=0.1),
    perturb=partial(perturbed, heading="head_theta"),
    joints=tuple(Joint(name, name) for name in JOINTS),
    body=Body("base_link", "odom", ("head_theta", "head_x", "head_y")),
    monitor=MonitoredOutput(
        *("shape", ("spread",), "rad", spread),
        minimum=LEAST_SPREAD / 2,
        warning="a straight snake or an arc, which torques do not push forwards",
    ),
    visual=visual_model,
    limits=SafetyLimits(ranges=tuple(f"{name}:-1.8:1.8" for name in JOINTS)),
)

_POSE = np.diag([10.0, 20.0, 20.0, *(1.0,) * len(JOINTS), *(0.0,) * (3 + len(JOINTS))])

SNAKE_KINEMATIC = replace(
    SNAKE,
    name="snake_kinematic",
    title="Snake robot with prescribed joints creeping",
    make_system=kinematic_snake,
    references={"creep": CREEP.reference},
    weights=(_POSE, 20 * np.eye(len(JOINTS)), 10 * _POSE),
    monitor=None,
    visual=partial(visual_model, wheeled=WHEELED),
    step_s=0.02,
)
