"""The snake scenario: serpenoid gaits of a snake robot on passive wheels. LQR tracks these gaits
with the joint torques.
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
from nh_control.scenarios.scenario import Joint, MonitoredOutput, PlanarBody, Scenario
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
"""Minimum difference (rad) between the largest and the smallest joint angle. Torques do not push a
snake forward if it is straight or forms a circular arc.
"""
LEAST_DETERMINANT = 0.2
"""Minimum determinant of the constraint rows of three wheels (see `independence`)."""
WAVES_BEFORE, STEPS_PER_WAVE = 3, 400
"""Number of waves along which the links follow the head before a gait begins, and number of steps
in each wave.
"""
CORRECTIONS, REACHED, DIFFERENCE = 5, 1e-10, 1e-5
"""Maximum number of Newton corrections of the torques in a step, error in the rates below which
the corrections stop, and step (N m) of finite differences.
"""


@dataclass(frozen=True)
class Gait:
    """A motion from rest to rest in `duration` s, in which the head follows a serpenoid curve
    [hirose1993].

    The heading at the arc length s is `theta(s) = swing sin(2 pi s / wave) + turn s`. The curve
    consists of `waves` waves of the length `wave` (m), `swing` is in rad, and the mean curvature
    `turn` is in 1/m. The links follow on their wheels, so all joint angles are functions of s, and
    the motion of the joints determines the motion of the snake.
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
        """The arc length (m) and the speed (m/s) at time t."""
        length = self.waves * self.wave
        part = float(smoothstep(ca.SX(t / self.duration)))
        return length * part, length * rest_to_rest(t, self.duration)

    def start(self, l: float) -> np.ndarray:
        """The configuration (8) at s = 0 of a snake with links of length l (m) that has already
        moved along the curve. Raises ValueError if the snake comes close to a shape in which
        torques do not push it forward.
        """
        q, ds, spread = np.zeros(3 + len(JOINTS)), self.wave / STEPS_PER_WAVE, np.inf
        for i in range(-WAVES_BEFORE * STEPS_PER_WAVE, 0):
            # Use the curvature at the midpoint. After a few waves, the initial shape no longer
            # matters.
            q[3:] += ds * following(l, q, 1.0, self.curvature((i + 0.5) * ds))[3:]
            if i >= -STEPS_PER_WAVE:
                spread = min(spread, np.ptp(q[3:]))
        if spread < LEAST_SPREAD:
            raise ValueError(
                f"{self}: all joint angles agree within {spread:.3g} rad, less than "
                f"{LEAST_SPREAD:g}: the snake is straight or along an arc, its wheels' axles meet "
                "in one point, and torques do not push it forward; use a larger swing"
            )
        return q

    def reference(self, dsys: DiscreteSystem) -> Trajectory:
        """The motion of a snake, with the smallest torques that produce it. Raises the same errors
        as `start`.
        """
        q = self.start(link_length(dsys))
        states, inputs = [dsys.state(q, np.zeros(len(q)))], [np.zeros(dsys.nu)]
        for t in dsys.h * np.arange(1, round(self.duration / dsys.h) + 1):
            s, v = self.along(t)
            # The target rates of the head are theta' = v kappa(s) and v.
            u = least_torques(dsys, states[-1], inputs[-1], np.array([v * self.curvature(s), v]))
            states.append(dsys.step(states[-1], u))
            inputs.append(u)
        table = np.array(inputs[1:])
        return Trajectory(
            dsys.h, np.array(states), table, dsys.state_names, dsys.inputs, dsys=dsys
        )


@dataclass(frozen=True)
class Creep:
    """Waves of all joints around a bent shape,
    `phi_i(t) = bend_i + swing sin(2 pi t / period - lag i)`, for `periods` periods of `period` s.
    If all wheel axles met in a single point, the joints would not determine the motion. The bend
    prevents this.
    """

    bend: tuple[float, ...]
    swing: float
    lag: float
    period: float
    periods: int

    def reference(self, dsys: DiscreteSystem) -> Trajectory:
        """The motion of `kinematic_snake` from rest to rest. The waves grow and fade within a
        period. Raises ValueError if the snake comes close to a shape in which the axles meet.
        """
        duration, n = self.period * self.periods, len(JOINTS)

        def joints(t: float) -> np.ndarray:
            part = float(smoothstep(ca.SX(min(t, duration - t) / self.period)))
            phase = 2 * np.pi * t / self.period - self.lag * np.arange(n)
            return np.array(self.bend) + part * self.swing * np.sin(phase)

        steps = round(duration / dsys.h)
        path = np.array([joints(k * dsys.h) for k in range(steps + 1)])
        # The determinant must neither come close to zero nor change sign.
        regular = independence(dsys, path)
        if np.abs(regular).min() < LEAST_DETERMINANT or np.ptp(np.sign(regular)):
            raise ValueError(
                f"{self}: the axles of the wheels meet in one point, or are parallel, at t = "
                f"{np.abs(regular).argmin() * dsys.h:.3g} s, where the joints do not determine "
                "the motion; use a smaller swing or a larger bend"
            )
        start = dsys.state([0.0, 0.0, 0.0, *self.bend], np.zeros(3 + n))
        return dsys.simulate(start, path[1:])


def link_length(dsys: DiscreteSystem) -> float:
    """The length (m) of a model's links."""
    system: Any = dsys.system
    return -float(system.model.frames[-1].position[0])


def independence(dsys: DiscreteSystem, path: np.ndarray) -> np.ndarray:
    """The determinants (N) of the derivatives of the wheels' constraints with respect to the
    head's velocity, for joint angles (N, 5). Lengths are divided by the length of a link.
    """
    symbol, l = dsys.system.symbols[0], link_length(dsys)
    by_head = ca.densify(dsys.system.constraint_matrix(symbol)[:, :3])
    rows = ca.Function("rows", [symbol], [by_head])
    return np.array([np.linalg.det(np.asarray(rows([0, 0, 0, *q])) / [l, 1, 1]) for q in path])


def least_torques(
    dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray, target: np.ndarray
) -> np.ndarray:
    """The smallest torques (5) with which the head reaches the yaw rate and speed `target` (rad/s,
    m/s) in a step from state x (nx). They are computed by Newton's method, starting at the guess u
    (5), with finite differences.
    """

    def rates(torques: np.ndarray) -> np.ndarray:
        return dsys.velocity(dsys.step(x, torques))[:2]

    now = rates(u)
    slope = np.column_stack([(rates(u + d) - now) / DIFFERENCE for d in DIFFERENCE * np.eye(5)])
    inverse = np.linalg.pinv(slope)
    for _ in range(CORRECTIONS):
        if np.abs(target - now).max() <= REACHED:
            break
        # The least-norm solution of J (u1 - u) = target - rates(u) is
        # u1 = J^+ (J u + target - rates(u)).
        u = inverse @ (slope @ u + target - now)
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
    """The difference (1) in rad between the largest and the smallest joint angle."""
    return np.array([np.ptp(q[3:])])


_Q = np.diag([10.0, 20.0, 20.0, *(1.0,) * len(JOINTS), 1.0, 1.0, 1.0, *(0.1,) * len(JOINTS)])

SNAKE = Scenario(
    name="snake",
    title="Snake robot on passive wheels tracking a gait",
    parameters=SnakeParameters(),
    make_system=snake,
    nodes={"fallback": "damp"},  # a rolling snake keeps moving without forces
    integrators={"midpoint": nonholonomic_midpoint},
    meanings={
        "serpentine": "straight ahead along a serpentine curve",
        "turning": "around a bend along a serpentine curve",
    },
    references={name: gait.reference for name, gait in GAITS.items()},
    weights=(_Q, np.eye(len(JOINTS)), 10 * _Q),
    perturbation=PlanarPerturbation(position=0.05, heading=0.1, momentum=0.1),
    perturb=partial(perturbed, heading="head_theta"),
    joints=tuple(Joint(name, name) for name in JOINTS),
    body=PlanarBody("base_link", "odom", ("head_theta", "head_x", "head_y")),
    monitor=MonitoredOutput(
        "shape",
        ("spread",),
        "rad",
        spread,
        minimum=LEAST_SPREAD / 2,
        warning="a straight line or an arc, along which torques do not push the snake forward",
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
    meanings={
        "creep": "forward motion by swinging prescribed joints",
    },
    references={"creep": CREEP.reference},
    weights=(_POSE, 20 * np.eye(len(JOINTS)), 10 * _POSE),
    monitor=None,
    visual=partial(visual_model, wheeled=WHEELED),
    step_s=0.02,
)
