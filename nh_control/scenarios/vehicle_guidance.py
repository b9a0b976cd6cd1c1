"""Vehicle references for velocity commands and goals, starting from any state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.joint_reference import InfeasibleTrajectory
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory

CORRECTIONS = 3
"""Number of Newton corrections of the inputs in a step. Each correction reduces the momentum error
by a factor of order h^2.
"""
REACHED = 1e-14
"""Relative momentum error below which no correction is needed."""
LONGEST_S = 300.0
"""Maximum duration (s) of a reference."""
LIMIT_EXCESS = 1e-6
"""Tolerated relative excess over an input limit."""


@dataclass(frozen=True)
class Maneuver:
    """A part of a motion. `rates(t)` returns the rates (2) of a drive for t from 0 to
    `duration_s`.
    """

    duration_s: float
    rates: Callable[[float], np.ndarray]


@dataclass(frozen=True)
class Drive:
    """The motion of a vehicle with two inputs. Two rates determine the vehicle's velocity: the
    forward speed, and the yaw rate or steering rate.

    - `speeds` (m/s and rad/s) and `accelerations` bound the rates and their derivatives.
    - `rates(v)` returns the rates that correspond to a velocity v (nw).
    - `aim(parameters, q, command)` returns the rates for a command (forward speed in m/s, yaw rate
      in rad/s) at configuration q (nq).
    - `velocity(parameters, q, rates)` returns the velocity (nw) with the given rates.
    - `maneuvers(drive, parameters, q, goal)` returns the maneuvers from rest at q to rest with the
      body at `goal` (theta, x, y). It raises InfeasibleTrajectory if it does not find any.
    """

    speeds: tuple[float, float]
    accelerations: tuple[float, float]
    rates: Callable[[np.ndarray], np.ndarray]
    aim: Callable[[Any, np.ndarray, np.ndarray], np.ndarray]
    velocity: Callable[[Any, np.ndarray, np.ndarray], np.ndarray]
    maneuvers: Callable[[Drive, Any, np.ndarray, np.ndarray], Sequence[Maneuver]]

    def duration(self, changes: ArrayLike) -> float:
        """The shortest duration T (s) in which the integrals of the rates can change by `changes`
        (2) along `rest_to_rest` within the limits. The maximum rate of `rest_to_rest` is
        35/16 / T, and its maximum acceleration is 7.513 / T^2.
        """
        size = np.abs(np.asarray(changes, dtype=float))
        by_speed = 35 / 16 * size / self.speeds
        by_acceleration = np.sqrt(7.5132 * size / self.accelerations)
        return float(max(by_speed.max(), by_acceleration.max()))


def rest_to_rest(t: float, duration_s: float) -> float:
    """The rate of a change by 1 in T = `duration_s`, which is `140 s^3 (1 - s)^3 / T` with
    s = t / T. The first three derivatives of the change vanish at both ends.
    """
    s = min(max(t / duration_s, 0.0), 1.0)
    return 140 * s**3 * (1 - s) ** 3 / duration_s


def step_to_velocity(
    dsys: DiscreteSystem,
    x: np.ndarray,
    u: np.ndarray,
    velocity: Callable[[np.ndarray], np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Make the step from state x (nx) after which the velocity is the admissible `velocity(q1)`
    (nw). Returns the final state and the input (nu) of the step. u (nu) is the initial guess for
    the input.

    The system must have as many inputs as momenta. Newton's method solves
    `rho1(x, u) = X(q1)^T p(q1, velocity)`.
    """
    nq, nv = dsys.system.space.nq, dsys.system.space.nv
    for _ in range(CORRECTIONS):
        step = dsys.linearize(x, u)
        reached = step.x1[:nq]
        target = dsys.state(reached, velocity(reached))[nq:]
        missing = target - step.x1[nq:]
        if np.abs(missing).max() <= REACHED * (1 + np.abs(target).max()):
            return step.x1, u
        # This simplified Newton step neglects that the target momenta depend on q1(u).
        u = u + np.linalg.solve(step.B[nv:], missing)
    return dsys.step(x, u), u


class VehicleGuidance:
    """Plans references for a vehicle with a `drive`, from any state to rest."""

    def __init__(self, dsys: DiscreteSystem, drive: Drive):
        self.dsys, self.drive = dsys, drive

    def limited(self, accelerations: Sequence[float]) -> VehicleGuidance:
        """The same guidance with different accelerations for the rates, where 0 keeps the current
        value.
        """
        first, second = (new or old for new, old in zip(accelerations, self.drive.accelerations))
        return VehicleGuidance(self.dsys, replace(self.drive, accelerations=(first, second)))

    def with_command(self, x: ArrayLike, command: ArrayLike, hold_s: float) -> Trajectory:
        """The reference that starts at state x (nx), follows a command (2) for `hold_s` and then
        comes to rest. The command consists of a forward speed (m/s) and a yaw rate (rad/s).

        The accelerations a of the drive limit how fast the rates change, `|r1 - r| <= a h`. Raises
        InfeasibleTrajectory if the inputs do not suffice.
        """
        rates = np.asarray(command, dtype=float)
        if rates.shape != (2,) or not np.isfinite(rates).all():
            raise InfeasibleTrajectory(f"a command is two finite numbers, got {command!r}")
        _require_shorter(hold_s)
        plan = _Rollout(self.dsys, self.drive, x)
        # The tolerance avoids an additional step due to round-off.
        while plan.t < hold_s - 1e-9 * self.dsys.h:
            plan.aim(rates)
        plan.stop()
        return plan.reference("velocity command")

    def to_goal(self, x: ArrayLike, goal: ArrayLike) -> Trajectory:
        """The reference that starts at state x (nx), comes to rest, and then moves from rest to
        rest to a goal (theta, x, y).

        Raises InfeasibleTrajectory if the drive finds no maneuvers or the inputs do not suffice.
        """
        plan = _Rollout(self.dsys, self.drive, x)
        plan.stop()
        parameters = self.dsys.system.parameters
        q = self.dsys.configuration(plan.x)
        maneuvers = self.drive.maneuvers(self.drive, parameters, q, np.asarray(goal, dtype=float))
        _require_shorter(plan.t + sum(maneuver.duration_s for maneuver in maneuvers))
        for maneuver in maneuvers:
            plan.follow(maneuver)
        plan.stop()
        return plan.reference("goal")


def _require_shorter(duration_s: float) -> None:
    if not duration_s <= LONGEST_S:
        raise InfeasibleTrajectory(
            f"it would take {duration_s:.4g} s, longer than {LONGEST_S:g} s"
        )


class _Rollout:
    """The states and inputs of a reference that is built step by step."""

    def __init__(self, dsys: DiscreteSystem, drive: Drive, x: ArrayLike):
        self._dsys, self._drive, self.x = dsys, drive, np.array(x, dtype=float)
        self._rates = drive.rates(dsys.velocity(self.x))
        self._states, self._inputs = [self.x], [dsys.idle(self.x)]

    @property
    def t(self) -> float:
        """The time (s) since the first state."""
        return self._dsys.h * (len(self._states) - 1)

    def aim(self, command: np.ndarray) -> None:
        """Make a step towards a command (2)."""
        drive, q = self._drive, self._dsys.configuration(self.x)
        target = drive.aim(self._dsys.system.parameters, q, command)
        target = np.clip(target, -np.array(drive.speeds), drive.speeds)
        # |r1 - r| <= a h for both rates.
        change = self._dsys.h * np.array(drive.accelerations)
        self._step(self._rates + np.clip(target - self._rates, -change, change))

    def stop(self) -> None:
        """Come to rest and stay at rest for one step."""
        while self._rates.any():
            self.aim(np.zeros(2))
        self._step(np.zeros(2))

    def follow(self, maneuver: Maneuver) -> None:
        """Follow a maneuver for its whole duration."""
        begin = self.t
        while self.t < begin + maneuver.duration_s - 1e-9 * self._dsys.h:
            self._step(maneuver.rates(self.t + self._dsys.h - begin))

    def reference(self, name: str) -> Trajectory:
        """The reference so far. Raises InfeasibleTrajectory if inputs exceed their limits."""
        inputs, bounds = np.array(self._inputs[1:]), self._dsys.system.input_bounds
        excess = np.abs(inputs) / np.abs(bounds).max(axis=1) - 1
        if (worst := np.unravel_index(excess.argmax(), excess.shape))[0] >= 0 and (
            excess[worst] > LIMIT_EXCESS
        ):
            raise InfeasibleTrajectory(
                f"it needs {self._dsys.inputs[worst[1]]} = {inputs[worst]:.3g} at t = "
                f"{worst[0] * self._dsys.h:.3g} s, beyond {bounds[worst[1]].tolist()}; use "
                "smaller accelerations"
            )
        return Trajectory(
            self._dsys.h,
            np.array(self._states),
            inputs,
            self._dsys.state_names,
            self._dsys.inputs,
            name,
            dsys=self._dsys,
        )

    def _step(self, rates: np.ndarray) -> None:
        drive, parameters = self._drive, self._dsys.system.parameters
        # The velocity depends on the configuration after the step.
        to = lambda q: drive.velocity(parameters, q, rates)  # noqa: E731
        self.x, u = step_to_velocity(self._dsys, self.x, self._inputs[-1], to)
        self._rates = rates
        self._states.append(self.x)
        self._inputs.append(u)
