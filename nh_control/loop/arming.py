"""Permission to send commands to hardware, the limits and ranges that revoke it, and the inputs
that are sent after disarming.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial

import numpy as np

from nh_control.control.damping import damping_or_idle
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry.space import Space
from nh_control.scenarios import Scenario
from nh_control.scenarios.limits import Range
from nh_control.scenarios.names import UnknownName
from nh_control.scenarios.scenario import BodyState

AWAITS_START = "the reference's start is held until ~/start"
"""Status of an armed tracker that waits for the start command."""


@dataclass(frozen=True)
class ArmingLimits:
    """Limits for a run: the maximum time (s) without a usable state, the maximum tracking error
    (m, rad) in any component of the configuration, and the maximum time (s) of uninterrupted
    saturation. 0 disables a limit.
    """

    silence_s: float = 0.0
    error: float = 0.0
    saturation_s: float = 0.0

    def __post_init__(self) -> None:
        for name in ("silence_s", "error", "saturation_s"):
            value = getattr(self, name)
            if not (value >= 0 and math.isfinite(value)):
                raise ValueError(f"limit {name} must be >= 0 and finite, got {value}")


class ArmingRefused(Exception):
    """Commands must not be sent; the message contains the reason and the remedy."""


class Arming:
    """Arms only on request. Disarms on request or when a limit is exceeded; `reason` then names
    the limit. All times are in s on the same clock, 0 if unknown. If the clock jumps back, the
    measurement of durations starts again.
    """

    def __init__(self, limits: ArmingLimits, armed: bool = False):
        self.limits, self.armed = limits, armed
        self.reason = "" if armed else "not armed yet"
        self.disarmed = 0
        self._heard_at, self._free_at, self._exceeded = 0.0, 0.0, ""

    def arm(self, now_s: float) -> None:
        """Allow commands from now on. Raises ArmingRefused if tracking would disarm immediately
        because no usable state arrived within the silence limit or because the last state exceeds
        a limit.
        """
        if self.armed:
            return
        # a time in the future means that the clock has jumped back
        heard = 0.0 < self._heard_at <= now_s
        if self.limits.silence_s and not (
            heard and self._silence_s(now_s) <= self.limits.silence_s
        ):
            raise ArmingRefused(
                f"not armed: no usable state in the last {self.limits.silence_s:.3g} s; "
                "check that the robot publishes, and states_refused in /diagnostics"
            )
        if self._exceeded:
            raise ArmingRefused(
                f"not armed: {self._exceeded}; bring the robot to the start of the reference"
            )
        self.armed, self.reason = True, ""
        self._heard_at, self._free_at = now_s, 0.0

    def _silence_s(self, now_s: float) -> float:
        return now_s - self._heard_at

    def disarm(self, reason: str) -> None:
        """Forbid commands from now on."""
        if self.armed:
            self.armed, self.reason = False, reason
            self.disarmed += 1

    def obstacle(self, awaits_start: bool) -> str:
        """Return the reason why the reference is not followed, or "" if it is followed."""
        if not self.armed:
            return f"disarmed: {self.reason}"
        return AWAITS_START if awaits_start else ""

    def check_silence(self, now_s: float) -> None:
        """Disarm if no usable state has arrived for too long."""
        if not 0.0 < self._heard_at <= now_s:
            self._heard_at = now_s
        silence_s = self._silence_s(now_s)
        if self.limits.silence_s and silence_s > self.limits.silence_s:
            self.disarm(f"no usable state for {silence_s:.3g} s")

    def observe(
        self, now_s: float, error: np.ndarray, saturated: bool, violation: str = ""
    ) -> None:
        """Process the tracking error (n) of the tracked configuration when a command is computed.
        `violation` names the range that the configuration has left, if any.
        """
        self._heard_at = now_s
        largest = float(np.abs(error).max(initial=0.0))
        self._exceeded = violation
        # `not <=` instead of `>`: a NaN error must disarm
        if self.limits.error and not largest <= self.limits.error:
            beyond = f"tracking error {largest:.3g} is beyond {self.limits.error:.3g}"
            self._exceeded = violation or beyond
        # _free_at is the last time at which no input was saturated
        if not saturated or not 0.0 < self._free_at <= now_s:
            self._free_at = now_s
        if self._exceeded:
            self.disarm(self._exceeded)
        elif self.limits.saturation_s and now_s - self._free_at > self.limits.saturation_s:
            self.disarm(f"an input was saturated for {now_s - self._free_at:.3g} s")


class DisarmCommand(str, Enum):
    """The command after disarming: none, zero forces (prescribed coordinates keep their values),
    the last command, or forces that damp the motion.
    """

    NONE = "none"
    ZERO = "zero"
    HOLD = "hold"
    DAMP = "damp"


class DisarmedInputs:
    """The inputs after disarming, as `kind` specifies. They are None before the first state or
    command.
    """

    def __init__(self, dsys: DiscreteSystem, kind: DisarmCommand):
        self._dsys, self.kind = dsys, DisarmCommand(kind)
        self._state: np.ndarray | None = None
        self._input: np.ndarray | None = None

    def update(self, x: np.ndarray, sent: np.ndarray | None = None) -> None:
        """Store the last state x (nx) and, if the tracker was armed, the input (nu) that was sent
        in response.
        """
        self._state = x
        if sent is not None:
            self._input = sent

    def command(self, fresh: bool) -> np.ndarray | None:
        """Return the input (nu) for the last state. Damping requires a `fresh` state."""
        if self.kind is DisarmCommand.NONE or self._state is None:
            return None
        if self.kind is DisarmCommand.HOLD:
            return self._input
        if self.kind is DisarmCommand.DAMP and fresh:
            return damping_or_idle(self._dsys, self._state)
        # damping forces for an outdated state could drive the motion, so zero forces replace them
        return self._dsys.idle(self._state)


AUTO = "auto"
"""The setting that selects the scenario's ranges."""
FARTHER, LEAST_ERROR = 10.0, 0.5
"""Maximum ratio of a tracking error to the scenario's initial error, and the error (m, rad) that
is always allowed.
"""
UPRIGHT = "tilt"
"""The angle between the z axes of a body and its parent."""

Quantity = Callable[[np.ndarray], float]
"""A function that computes a quantity from a configuration (nq)."""


def quantities(scenario: Scenario, space: Space) -> dict[str, Quantity]:
    """Return the quantities that may have a range, by name: every joint; `<frame>.x`, `<frame>.y`
    and `<frame>.heading` of a planar body; `<frame>.x`, `.y`, `.z` and `.tilt` of bodies in space.
    """
    readers: dict[str, Quantity] = {}
    for joint in scenario.joints:
        index = space.names.index(joint.coordinate)
        readers[joint.name] = partial(_number, index, joint.sign)
    if (body := scenario.body) is not None:
        for kind, name in zip(("heading", "x", "y"), body.coordinates):
            index = space.names.index(name)
            readers[f"{body.frame}.{kind}"] = partial(_number, index, 1.0)
    if (to_bodies := scenario.to_bodies) is not None:
        bodies_of = partial(to_bodies, scenario.parameters)
        for i, state in enumerate(scenario.resting_bodies(space)):
            for kind, read in _OF_BODY.items():
                reader = partial(_body_quantity, bodies_of, i, read, space.nw)
                readers[f"{state.frame}.{kind}"] = reader
    return readers


def _number(index: int, sign: float, q: np.ndarray) -> float:
    return float(sign * q[index])


def _body_quantity(
    bodies_of: Callable[[np.ndarray, np.ndarray], Sequence[BodyState]],
    i: int,
    read: Callable[[BodyState], float],
    nw: int,
    q: np.ndarray,
) -> float:
    return read(bodies_of(q, np.zeros(nw))[i])


def _tilt(body: BodyState) -> float:
    # R_33 = cos(tilt) = 1 - 2 (x^2 + y^2), so sin(tilt/2) = sqrt(x^2 + y^2)
    _, x, y, _ = body.quaternion_wxyz
    return 2 * math.asin(min(1.0, math.hypot(x, y)))


_OF_BODY: dict[str, Callable[[BodyState], float]] = {
    "x": lambda body: float(body.position[0]),
    "y": lambda body: float(body.position[1]),
    "z": lambda body: float(body.position[2]),
    UPRIGHT: _tilt,
}


def error_limit(scenario: Scenario, dsys: DiscreteSystem, reference: Trajectory) -> float:
    """Return the tracking error (m, rad) above which a robot counts as out of control: the
    scenario's limit or, if it has none, FARTHER times the largest tracked component of its initial
    error, but at least LEAST_ERROR.
    """
    if scenario.limits.error:
        return scenario.limits.error
    x, space = reference.states[0], dsys.system.space
    error = dsys.local(x, scenario.perturb(dsys, x, scenario.perturbation))[: space.nv]
    largest = np.abs(error[scenario.tracked(space)]).max(initial=0.0)
    return max(LEAST_ERROR, FARTHER * float(largest))


class SafeRange:
    """Allowed ranges for quantities of a scenario's configurations. Raises UnknownName and
    ValueError.
    """

    def __init__(self, scenario: Scenario, space: Space, texts: Sequence[str] = ()):
        self.texts = [text for text in texts if text.strip()]
        self._ranges = list(map(Range.parse, self.texts))
        known = quantities(scenario, space) if self._ranges else {}
        for limit in self._ranges:
            if limit.name not in known:
                raise UnknownName(f"{scenario.name} quantity with a range", limit.name, known)
        self._quantities = {limit.name: known[limit.name] for limit in self._ranges}

    def violation(self, q: np.ndarray) -> str:
        """Describe the first range that a configuration (nq) has left, or return "" if it is
        within all ranges.
        """
        for limit in self._ranges:
            value = self._quantities[limit.name](q)
            if not limit.low <= value <= limit.high:
                return f"{limit.name} = {value:.4g} is not in {limit.low:g} ... {limit.high:g}"
        return ""


@dataclass(frozen=True)
class Safety:
    """The safety rules for hardware: `arming`, the inputs after disarming, the `ranges` of the
    configuration, the mask `tracked` (nv) of the errors that are limited, and whether a service
    call or the first state starts the reference.
    """

    arming: Arming
    disarmed_inputs: DisarmedInputs
    ranges: SafeRange
    tracked: np.ndarray
    starts_by_service: bool

    @property
    def limits(self) -> str:
        """The limits and ranges in words."""
        error, saturation_s = self.arming.limits.error, self.arming.limits.saturation_s
        limits = f"an error of {error:.3g}, {saturation_s:.3g} s of saturation (0: never)"
        return ", ".join((limits, *self.ranges.texts))
