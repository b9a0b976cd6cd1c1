"""Permission to command hardware: the limits and ranges that withdraw it, and the inputs that are
sent after a disarming.
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
from nh_control.scenarios.names import UnknownName
from nh_control.scenarios.scenario import BodyState

AWAITS_START = "the reference's start is held until ~/start"
"""Status of an armed tracker that waits for the command to start."""


@dataclass(frozen=True)
class Limits:
    """Limits of a run: the time (s) without a usable state, the size of the tracking error of the
    configuration (m, rad; of each number), and the time (s) of saturation without interruption. 0
    is no limit.
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
    """Commands must not be sent; the message has the reason and the remedy."""


class Arming:
    """Arming on request only; disarming on request, or by the first limit that is exceeded:
    `reason` names it. Times are in s of one clock, 0 if they are not known; if the clock goes
    back, they start again.
    """

    def __init__(self, limits: Limits, armed: bool = False):
        self.limits, self.armed = limits, armed
        self.reason = "" if armed else "not armed yet"
        self.disarmed = 0
        self._heard_at, self._free_at, self._exceeded = 0.0, 0.0, ""

    def arm(self, now_s: float) -> None:
        """Allow commands from now on. Raises ArmingRefused if tracking would disarm at once: there
        was no usable state within the limit of silence, or the last state is beyond a limit.
        """
        if self.armed:
            return
        heard = 0.0 < self._heard_at <= now_s
        if self.limits.silence_s and not (
            heard and self._silence_s(now_s) <= self.limits.silence_s
        ):
            raise ArmingRefused(
                f"not armed: no state that can be used in the last {self.limits.silence_s:.3g} s; "
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
        """The reason why the reference is not followed, "" if it is."""
        if not self.armed:
            return f"disarmed: {self.reason}"
        return AWAITS_START if awaits_start else ""

    def check_silence(self, now_s: float) -> None:
        """Disarm after too long a time without a usable state."""
        if not 0.0 < self._heard_at <= now_s:
            self._heard_at = now_s
        silence_s = self._silence_s(now_s)
        if self.limits.silence_s and silence_s > self.limits.silence_s:
            self.disarm(f"no state that can be used for {silence_s:.3g} s")

    def observe(
        self, now_s: float, error: np.ndarray, saturated: bool, violation: str = ""
    ) -> None:
        """Take the tracking error (n) of the tracked configuration of a command; `violation` names
        a range that the configuration has left, "" without one.
        """
        self._heard_at = now_s
        largest = float(np.abs(error).max(initial=0.0))
        self._exceeded = violation
        if self.limits.error and not largest <= self.limits.error:
            beyond = f"tracking error {largest:.3g} is beyond {self.limits.error:.3g}"
            self._exceeded = violation or beyond
        if not saturated or not 0.0 < self._free_at <= now_s:
            self._free_at = now_s
        if self._exceeded:
            self.disarm(self._exceeded)
        elif self.limits.saturation_s and now_s - self._free_at > self.limits.saturation_s:
            self.disarm(f"an input was saturated for {now_s - self._free_at:.3g} s")


class DisarmCommand(str, Enum):
    """The command after a disarming: none; zero forces, which keep prescribed coordinates; the
    last command; or forces that damp the motion.
    """

    NONE = "none"
    ZERO = "zero"
    HOLD = "hold"
    DAMP = "damp"


class DisarmedInputs:
    """The inputs of a kind after a disarming; None before the first state or command."""

    def __init__(self, dsys: DiscreteSystem, kind: DisarmCommand):
        self._dsys, self.kind = dsys, DisarmCommand(kind)
        self._state: np.ndarray | None = None
        self._input: np.ndarray | None = None

    def update(self, x: np.ndarray, sent: np.ndarray | None = None) -> None:
        """Take the last state x (nx), and the input (nu) that was sent for it if the tracker was
        armed.
        """
        self._state = x
        if sent is not None:
            self._input = sent

    def command(self, fresh: bool) -> np.ndarray | None:
        """Input (nu) for the last state; damping needs a `fresh` state."""
        if self.kind is DisarmCommand.NONE or self._state is None:
            return None
        if self.kind is DisarmCommand.HOLD:
            return self._input
        if self.kind is DisarmCommand.DAMP and fresh:
            return damping_or_idle(self._dsys, self._state)
        return self._dsys.idle(self._state)


AUTO = "auto"
"""Stands for the ranges of the scenario."""
SYNTAX = "NAME:LOW:HIGH"
"""The syntax of a range, in m and rad."""
FARTHER, LEAST_ERROR = 10.0, 0.5
"""How much larger than its scenario's initial error a tracking error may become, and what it may
become in any case (m, rad).
"""
UPRIGHT = "tilt"
"""The angle between a body's z axis and that of its parent."""

Quantity = Callable[[np.ndarray], float]
"""A number of a configuration (nq)."""


@dataclass(frozen=True)
class Range:
    """`low <= name <= high` in m or rad."""

    name: str
    low: float
    high: float


def parse(text: str) -> Range:
    """The range that a text stands for; raises ValueError."""
    name, *bounds = (part.strip() for part in text.split(":"))
    try:
        low, high = map(float, bounds)
    except ValueError:
        raise ValueError(
            f"a range is written {SYNTAX}, e.g. cart_joint:-1:1, got {text!r}"
        ) from None
    if not low < high:
        raise ValueError(f"the range {text!r} is empty: expected two numbers, LOW < HIGH")
    return Range(name, low, high)


def quantities(scenario: Scenario, space: Space) -> dict[str, Quantity]:
    """The quantities that may have a range, by name: every joint; `<frame>.x`, `<frame>.y` and
    `<frame>.heading` of a planar body; `<frame>.x`, `.y`, `.z` and `.tilt` of bodies in space.
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
        see = partial(to_bodies, scenario.parameters)
        for i, one in enumerate(scenario.resting_bodies(space)):
            for kind, of in _OF_BODY.items():
                readers[f"{one.frame}.{kind}"] = partial(_seen, see, i, of, space.nw)
    return readers


def _number(index: int, sign: float, q: np.ndarray) -> float:
    return float(sign * q[index])


def _seen(
    see: Callable[[np.ndarray, np.ndarray], Sequence[BodyState]],
    i: int,
    of: Callable[[BodyState], float],
    nw: int,
    q: np.ndarray,
) -> float:
    return of(see(q, np.zeros(nw))[i])


def _tilt(body: BodyState) -> float:
    _, x, y, _ = body.quaternion_wxyz
    return 2 * math.asin(min(1.0, math.hypot(x, y)))


_OF_BODY: dict[str, Callable[[BodyState], float]] = {
    "x": lambda body: float(body.position[0]),
    "y": lambda body: float(body.position[1]),
    "z": lambda body: float(body.position[2]),
    UPRIGHT: _tilt,
}


def error_limit(scenario: Scenario, dsys: DiscreteSystem, reference: Trajectory) -> float:
    """Tracking error (m, rad) above which a robot counts as out of control: the limit of the
    scenario, or FARTHER times the largest tracked number of its initial error, at least
    LEAST_ERROR.
    """
    if scenario.limits.error:
        return scenario.limits.error
    x, space = reference.states[0], dsys.system.space
    error = dsys.local(x, scenario.perturb(dsys, x, scenario.perturbation))[: space.nv]
    largest = np.abs(error[scenario.tracked(space)]).max(initial=0.0)
    return max(LEAST_ERROR, FARTHER * float(largest))


class SafeRange:
    """Ranges of quantities of a scenario's configurations; raises UnknownName, ValueError."""

    def __init__(self, scenario: Scenario, space: Space, texts: Sequence[str] = ()):
        self.texts = [text for text in texts if text.strip()]
        self._ranges = list(map(parse, self.texts))
        known = quantities(scenario, space) if self._ranges else {}
        for one in self._ranges:
            if one.name not in known:
                raise UnknownName(f"{scenario.name} quantity with a range", one.name, known)
        self._quantities = {one.name: known[one.name] for one in self._ranges}

    def violation(self, q: np.ndarray) -> str:
        """The range that a configuration (nq) has left, "" if it is in all."""
        for one in self._ranges:
            value = self._quantities[one.name](q)
            if not one.low <= value <= one.high:
                return f"{one.name} = {value:.4g} is not in {one.low:g} ... {one.high:g}"
        return ""


@dataclass(frozen=True)
class Safety:
    """The safety rules of hardware: `arming`; the inputs after a disarming; the `ranges` of the
    configuration; the mask `tracked` (nv) of the limited errors; and whether the reference starts
    by service, or with the first state.
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
