"""Diagnostics of the tracker."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping

import numpy as np

from nh_control.control import Command
from nh_control.discrete.system import DiscreteSystem
from nh_control.loop.error_bounds import ErrorBounds
from nh_control.loop.reference_sequence import ReferenceLeg
from nh_control.loop.reports import Refusal, Report
from nh_control.scenarios import Scenario
from nh_control.scenarios.error_metrics import error_parts

TOGETHER = 50
"""Number of errors that are evaluated together, which is faster."""


class TrackerReport:
    """Collects the events between two reports on a tracker with the model `dsys`. If the tracking
    error exceeds the `bounds`, the tracker counts as failed.
    """

    def __init__(
        self, scenario: Scenario, dsys: DiscreteSystem, bounds: ErrorBounds | None = None
    ):
        self._scenario, self._dsys = scenario, dsys
        self._bounds = bounds or ErrorBounds(scenario.tracked(dsys.system.space))
        self._step, self._approximated, self._saturated = -1, 0, 0
        self._limited = np.zeros(dsys.nu, dtype=int)
        self._accepted_goals = 0
        self._refusals = {"states": Counter[Refusal](), "goals": Counter[Refusal]()}
        self._error = np.zeros(dsys.ndx)
        self._parts: tuple[np.ndarray, np.ndarray] | None = None
        self.last: tuple[np.ndarray, Command] | None = None
        """The target (nx) and the command for the last state."""
        self._trouble, self._state, self._planning = "", "", ""
        self._more: dict[str, object] = {}
        self._news: dict[str, str] = {}
        self._leg: ReferenceLeg | None = None
        self._clear()

    def _clear(self) -> None:
        self._since, self._busy_s, self._slowest_s = time.monotonic(), 0.0, 0.0
        self._answers, self._refused, self._goal, self._clipped = 0, 0, "", 0
        self._ages_s: list[float] = []
        self._largest, self._errors = 0.0, list[np.ndarray]()

    def accept_goal(self) -> None:
        """Note that a goal or trajectory is followed."""
        self._accepted_goals += 1

    def refuse_goal(self, kind: Refusal, reason: str) -> None:
        """Note that a goal or trajectory is refused."""
        self._refusals["goals"][kind] += 1
        self._goal = reason

    def set_status(self, values: Mapping[str, object], state: str) -> None:
        """Set additional values and a warning for all reports from now on."""
        self._more.update(values)
        self._state = state

    def set_planning(self, values: Mapping[str, object], trouble: str) -> None:
        """Set a predictive tracker's additional values, and a warning about the time since the
        last report.
        """
        self._more.update(values)
        self._planning = trouble

    def refuse_state(self, kind: Refusal, reason: str) -> None:
        """Note that a state could not be used."""
        self._refusals["states"][kind] += 1
        self._refused += 1
        self._trouble = reason
        self._news.setdefault(f"state refused, {kind.value}", reason)

    def set_leg(self, leg: ReferenceLeg) -> None:
        """Set the leg that the last command belongs to."""
        self._leg = leg

    def add_command(
        self, step: int, x: np.ndarray, target: np.ndarray, command: Command, approximated: int
    ) -> None:
        """Note a command for a step, with the state x (nx) and the target (nx). `approximated` is
        the number of momenta so far that are not exact.
        """
        self._step, self._error, self._approximated = step, command.error, approximated
        # errors have no meaning after a final state that is not held
        if not self._is_over:
            self._errors.append(command.error)
            if len(self._errors) == TOGETHER:
                self._evaluate()
        self._parts = x, target
        self.last = target, command
        if command.saturated.any():
            self._saturated += 1
            self._clipped += 1
            self._limited += command.saturated

    def _evaluate(self) -> None:
        """Update the largest error since the last report."""
        if self._errors:
            sizes, self._errors = self._bounds.size(np.array(self._errors)), []
            self._largest = max(self._largest, float(sizes.max()))

    @property
    def state(self) -> np.ndarray | None:
        """The last state (nx) for which a command was computed."""
        return None if self._parts is None else self._parts[0]

    def add_response_time(self, seconds: float) -> None:
        """Note the time (s) from the arrival of a state to the publication of its command."""
        self._answers += 1
        self._busy_s += seconds
        self._slowest_s = max(self._slowest_s, seconds)

    def add_state_age(self, seconds: float) -> None:
        """Note the age (s) of an answered state."""
        self._ages_s.append(seconds)

    def make(self) -> Report:
        """Return a report on the time since the last report."""
        self._evaluate()
        elapsed = time.monotonic() - self._since
        values = {
            "step": self._step,
            "rate_hz": self._answers / elapsed if elapsed > 0 else 0.0,
            "response_mean_us": self._busy_s / max(1, self._answers) * 1e6,
            "response_max_us": self._slowest_s * 1e6,
            **self._age(),
            **self._reference(),
            "error_norm": float(np.linalg.norm(self._error)),
            "error_largest": self._largest,
            "error_bound_warning": self._bounds.warning,
            "error_bound_error": self._bounds.error,
            **self._error_parts(),
            **{
                f"error: {name}": float(value)
                for name, value in zip(self._dsys.state_space.tangent_names, self._error)
            },
            "steps_saturated": self._saturated,
            **{
                f"steps_saturated: {name}": int(count)
                for name, count in zip(self._dsys.inputs, self._limited)
                if count
            },
            "goals_accepted": self._accepted_goals,
            "goals_refused": self._refusals["goals"].total(),
            "states_refused": self._refusals["states"].total(),
            **{
                f"{what} refused: {kind.value}": count
                for what, counts in self._refusals.items()
                for kind, count in counts.items()
            },
            "momenta_approximated": self._approximated,
            **self._more,
        }
        level, message = self._judge()
        self._clear()
        return Report(level, message, values, dict(self._news))

    def _age(self) -> dict[str, float]:
        """Return the ages of the states since the last report; empty without states."""
        if not self._ages_s:
            return {}
        ages_ms = np.array(self._ages_s) * 1e3
        return {
            "state_age_ms": float(ages_ms[-1]),
            "state_age_mean_ms": float(ages_ms.mean()),
            "state_age_p99_ms": float(np.percentile(ages_ms, 99)),
            "state_age_max_ms": float(ages_ms.max()),
        }

    def _reference(self) -> dict[str, object]:
        """Return the name of the reference and the time that remains."""
        if self._leg is None:
            return {}
        name = self._leg.tracker.reference.name
        return {"reference": name, "reference_left_s": 0.0 - self._past_s}  # no -0.0

    @property
    def _past_s(self) -> float:
        """Time (s) since the reference ended; negative while it is running."""
        return 0.0 if self._leg is None else (self._step - self._leg.end) * self._dsys.h

    @property
    def _is_over(self) -> bool:
        """Whether the reference has ended and its final state is not held, so that errors have no
        meaning.
        """
        return self._leg is not None and self._past_s > 0 and not self._leg.tracker.hold

    def _error_parts(self) -> dict[str, float]:
        """Return the sizes of the parts of the last configuration error that have a physical
        meaning.
        """
        if self._parts is None:
            return {}
        q, target = (self._dsys.configuration(x)[None] for x in self._parts)
        parts = error_parts(self._scenario, self._dsys.system.space, q, target)
        return {f"error of {part.name} ({part.unit})": float(part.values[0]) for part in parts}

    def _judge(self) -> tuple[str, str]:
        # the most serious problem comes first
        if self._state:
            return "warn", self._state
        if self._refused:
            return "error", f"{self._refused} states refused, the last one: {self._trouble}"
        if not self._answers:
            return "warn", "no new states" if self._step >= 0 else "waiting for states"
        level, beyond = self._bounds.judge(self._largest)
        if beyond:
            return level, beyond
        if self._goal:
            return "warn", self._goal
        if self._planning:
            return "warn", self._planning
        return self._judge_end()

    def _judge_end(self) -> tuple[str, str]:
        past_s = self._past_s
        if self._leg is None or past_s <= 0:
            return "ok", "tracking"
        ended = f"the reference ended {past_s:.3g} s ago"
        if self._is_over:
            return "warn", f"{ended} and is not held: no forces"
        if self._clipped:
            clipped = f"{self._clipped} of {self._answers} commands saturated"
            return "warn", f"{ended}, its last state is held, {clipped}"
        return "ok", f"tracking: {ended}, its last state is held"
