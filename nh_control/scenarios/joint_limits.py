"""The limits of a scenario's joints, as in URDF: range, speed and effort."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from nh_control.mechanics.system import System
from nh_control.multibody.model import MultibodySystem
from nh_control.scenarios.driven_joints import driven_joints
from nh_control.scenarios.limits import Range
from nh_control.scenarios.scenario import Scenario
from nh_control.scenarios.shown import Joint
from nh_control.scenarios.wheeled_base import DifferentialBase, SteeredBase

TURN = 2 * math.pi
"""Range (rad) that is assumed for the reachable speed of joints without position limits."""


@dataclass(frozen=True)
class JointLimits:
    """The limits of a joint: positions (rad, m), speed and effort, which are infinite if there is
    no limit. The `inertia` (kg m^2, kg) applies to motions of this joint alone.
    """

    lower: float = -math.inf
    upper: float = math.inf
    speed: float = math.inf
    effort: float = math.inf
    inertia: float = 0.0

    @property
    def range(self) -> float:
        """The length of the range, or a full turn if the joint has no position limits."""
        length = self.upper - self.lower
        return length if math.isfinite(length) else TURN

    @property
    def reachable_speed(self) -> float:
        """The largest speed during the fastest motion across the range, from rest to rest, with
        the joint's effort limit: `sqrt(effort / inertia range)`.
        """
        return math.sqrt(self.effort / self.inertia * self.range) if self.inertia else math.inf


def joint_limits(scenario: Scenario, parameters: Any = None) -> dict[str, JointLimits]:
    """The limits of all joints, by name.

    Ranges come from the scenario's safety limits or its URDF. Effort limits come from the inputs
    that drive a single joint. Speed limits come from the URDF and from the vehicle's drive. If
    there are none, the `reachable_speed` is used.
    """
    parameters = scenario.parameters if parameters is None else parameters
    system = scenario.make_system(parameters)
    ranges = {limit.name: limit for limit in map(Range.parse, scenario.limits.ranges)}
    driven = {drive.name: drive for drive in driven_joints(scenario.joints, system, system.nu)}
    speeds, frames = _speeds(scenario, parameters), _frames(system)
    inertias = _inertias(system)
    limits = dict[str, JointLimits]()
    for joint in scenario.joints:
        limit = JointLimits()
        if joint.coordinate in frames:
            limit = _of_frame(frames[joint.coordinate], joint)
        if (known := ranges.get(joint.name)) is not None:
            limit = replace(limit, lower=known.low, upper=known.high)
        limit = replace(limit, inertia=float(inertias[joint.place(system.space)[1]]))
        if (drive := driven.get(joint.name)) is not None:
            # An input bound u becomes the effort u / gain on the joint.
            largest = float(np.abs(system.input_bounds[drive.input]).max())
            limit = replace(limit, effort=largest / abs(drive.gain))
            speed = speeds.get(joint.name, limit.reachable_speed)
            limit = replace(limit, speed=min(limit.speed, speed))
        limits[joint.name] = limit
    return limits


def _frames(system: System) -> dict[str, Any]:
    """The frames of a multibody system by coordinate. The frames contain the limits of their
    joints.
    """
    if not isinstance(system, MultibodySystem) or system.model is None:
        return {}
    return {frame.coordinate: frame for frame in system.model.frames if frame.coordinate}


def _of_frame(frame: Any, joint: Joint) -> JointLimits:
    """The limits of a joint that represents the coordinate of a frame."""
    lower, upper = sorted((joint.sign * frame.limits.lower, joint.sign * frame.limits.upper))
    return JointLimits(lower, upper, frame.limits.velocity or math.inf)


def _inertias(system: System) -> np.ndarray:
    """The diagonal (nw) of the mass matrix at the nominal configuration."""
    system = system.numeric
    q, v, _ = system.symbols
    matrix, _ = ca.hessian(system.lagrangian_at(q, v), v)
    function = ca.Function("inertias", [q, v], [ca.diag(matrix)])
    still = np.zeros(system.space.nw)
    return function(system.nominal_configuration, still).full()[:, 0]


def _speeds(scenario: Scenario, parameters: Any) -> dict[str, float]:
    """The maximum speeds of a vehicle's driven and steered joints, computed from the limits of its
    drive.
    """
    if scenario.drive is None or scenario.base is None:
        return {}
    base, (forward, turn) = scenario.base(parameters), scenario.drive.speeds
    if isinstance(base, SteeredBase):
        return {base.driven: forward / base.radius, base.steered: turn}
    if isinstance(base, DifferentialBase):
        # The outer wheel is faster: (v + omega w / 2) / r.
        side = base.separation / 2 * turn
        return dict.fromkeys((base.left, base.right), (forward + side) / base.radius)
    return {}
