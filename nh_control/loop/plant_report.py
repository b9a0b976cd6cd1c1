"""The plant's report on its state, with monitored outputs and rotations."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from nh_control.discrete.contact_forces import ContactForce
from nh_control.geometry.spaces import Space
from nh_control.loop.reports import TOGETHER, Report
from nh_control.loop.simulation_loop import Mode, SimulationLoop
from nh_control.mechanics import states
from nh_control.scenarios import MonitoredOutput

AWAIT_WARNING_S = 1.0


class Monitor(Protocol):
    """A monitored quantity. `report` returns its values and a warning, which is "" if there is
    none.
    """

    def report(self) -> tuple[Mapping[str, object], str]: ...


class PlantReport:
    """Reports on a loop. Rates and warnings refer to the time since the last report."""

    def __init__(self, loop: SimulationLoop, *monitors: Monitor):
        self._loop, self._monitors = loop, monitors
        self._time, self._steps = time.monotonic(), 0
        self._trouble = (0, 0, 0)
        self._energy = loop.plant.dsys.energy(loop.plant.initial)

    def make(self) -> Report:
        """Return a report on the present state. Call this method in the loop's thread or after the
        loop has ended.
        """
        loop, plant, validator = self._loop, self._loop.plant, self._loop.validator
        pacing = loop.pacer.statistics()
        watched = [monitor.report() for monitor in self._monitors]
        level, message = self._judge(pacing.missed, [text for _, text in watched if text])
        rate_hz = self._rate(pacing.steps)
        values = {
            "mode": loop.mode.value,
            "step": plant.step,
            "time_s": loop.pacer.period_s * plant.step,
            "rate_hz": rate_hz,
            "real_time_factor": rate_hz * loop.pacer.period_s,
            "speed_factor": loop.pacer.speed_factor,
            "missed_steps": pacing.missed,
            "jitter_mean_us": pacing.jitter_mean_s * 1e6,
            "jitter_p50_us": pacing.jitter_p50_s * 1e6,
            "jitter_p90_us": pacing.jitter_p90_s * 1e6,
            "jitter_p99_us": pacing.jitter_p99_s * 1e6,
            "jitter_max_us": pacing.jitter_max_s * 1e6,
            "commands_accepted": validator.accepted,
            "command_age_steps": validator.age(plant.step),
            "commands_clipped": validator.clipped,
            **{f"clipped: {name}": count for name, count in validator.saturated.items()},
            "commands_rejected": validator.rejected.total(),
            **{f"rejected: {reason.value}": count for reason, count in validator.rejected.items()},
            "fallback": validator.fallback.value,
            "fallback_steps": validator.fallback_steps,
            "held_steps": validator.held_steps,
            "waits": loop.waits,
            "waited_s": loop.waited_s,
            "paused_s": loop.paused_s,
            "newton_iterations": plant.newton_iterations,
            "energy_J": plant.energy,
            "energy_change_J": plant.energy - self._energy,
            "constraint_residual": plant.constraint_residual,
            **{name: value for values, _ in watched for name, value in values.items()},
            **plant.faults.report(),
        }
        examples = validator.examples.items()
        news = {f"command rejected, {reason.value}": text for reason, text in examples}
        return Report(level, message, values, news)

    def _judge(self, missed: int, warnings: list[str]) -> tuple[str, str]:
        loop, validator = self._loop, self._loop.validator
        before = self._trouble
        self._trouble = (validator.rejected.total(), validator.fallback_steps, missed)
        # the counters are totals for the run, so warn only about increases since the last report
        rejected, fallback, missed = (now - then for now, then in zip(self._trouble, before))
        if loop.mode is Mode.FAILED:
            return "error", f"{loop.mode.value}: {loop.reason}"
        if loop.awaited_s > AWAIT_WARNING_S:
            return "warn", f"waiting for {loop.awaited_s:.0f} s for {loop.awaited}"
        troubles = [
            (rejected, "commands rejected"),
            (fallback, f"steps with the fallback ({validator.fallback.value})"),
            (missed, "steps missed"),
        ]
        troubles_text = [f"{count} {what}" for count, what in troubles if count] + warnings
        present = loop.mode.value + (f": {loop.reason}" if loop.reason else "")
        if troubles_text:
            return "warn", ", ".join(troubles_text) + f" since the last report; {present}"
        return "ok", present

    def _rate(self, steps: int) -> float:
        now = time.monotonic()
        elapsed, taken = now - self._time, steps - self._steps
        self._time, self._steps = now, steps
        return taken / elapsed if elapsed > 0 else 0.0


class OutputMonitor:
    """Values of the scenario's monitor after each step, if the scenario has one, and their minima
    since the last report. A monitor that accepts tables is evaluated for several steps together.
    """

    def __init__(self, monitor: MonitoredOutput | None, parameters: object):
        self._monitor, self._parameters = monitor, parameters
        self._step = 0
        self._together = TOGETHER if monitor is not None and monitor.takes_tables else 1
        self._rows: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._external: list[Mapping[str, np.ndarray]] = []
        self._values: np.ndarray | None = None
        self._clear()

    def _clear(self) -> None:
        self._lowest: np.ndarray | None = None
        self._low_steps = 0

    def observe(
        self,
        step: int,
        q: np.ndarray,
        v: np.ndarray,
        u: np.ndarray,
        external: Mapping[str, np.ndarray],
    ) -> None:
        """Add the state (q, v) at a step, with the inputs u and the external forces of the
        previous step. Step 0 and repeated steps are ignored.
        """
        repeated, self._step = step in (0, self._step), step
        if self._monitor is None or repeated:
            return
        # rows of one table need the same external forces: evaluate the earlier rows first
        if self._external and self._external[0].keys() != external.keys():
            self._evaluate(self._monitor)
        self._rows.append((q, v, u))
        self._external.append(external)
        if len(self._rows) == self._together:
            self._evaluate(self._monitor)

    def _evaluate(self, monitor: MonitoredOutput) -> None:
        """Evaluate the monitor for the steps since the last evaluation."""
        rows, forces, self._rows, self._external = self._rows, self._external, [], []
        if not monitor.takes_tables:
            ((q, v, u),), (external,) = rows, forces
            table = np.asarray(monitor.values(self._parameters, q, v, u, external))[None]
        else:
            q, v, u = (np.array(column) for column in zip(*rows))
            external = {name: np.array([row[name] for row in forces]) for name in forces[0]}
            table = monitor.values(self._parameters, q, v, u, external)
        self._values, lowest = table[-1], table.min(axis=0)
        self._lowest = lowest if self._lowest is None else np.minimum(self._lowest, lowest)
        low = (table <= monitor.minimum).any(axis=1)
        # steps in which at least one value is too low
        self._low_steps += int(low.sum())

    def report(self) -> tuple[dict[str, float], str]:
        """Return, by name, the present values and the smallest values since the last report. Also
        returns a warning about values that were too low, or "".
        """
        monitor, warning = self._monitor, ""
        if monitor is not None and self._rows:
            self._evaluate(monitor)
        if monitor is None or self._values is None:
            return {}, ""
        lowest = self._values if self._lowest is None else self._lowest
        values = {
            f"{prefix}{monitor.title} {name} ({monitor.unit})": float(value)
            for prefix, row in (("", self._values), ("lowest ", lowest))
            for name, value in zip(monitor.names, row)
        }
        if self._low_steps:
            low = ", ".join(monitor.low(lowest))
            warning = f"{self._low_steps} steps with {monitor.warning} ({low})"
        self._clear()
        return values, warning


class RotationMonitor:
    """The largest rotation in one step of `period_s` since the last report, for spaces with
    rotations, poses or directions. A step can represent only rotations of less than half a turn.
    """

    def __init__(self, space: Space, period_s: float):
        self._space, self._period_s = space, period_s
        self._has_rotations, self._largest = states.has_rotations(space), 0.0
        self._velocities: list[np.ndarray] = []

    def observe(self, v: np.ndarray) -> None:
        """Add the velocity (nw) after a step."""
        if self._has_rotations:
            self._velocities.append(v)
            if len(self._velocities) == TOGETHER:
                self._evaluate()

    def _evaluate(self) -> None:
        table, self._velocities = np.array(self._velocities), []
        angles = states.rotation_angles(self._space, table, self._period_s)
        self._largest = float(angles.max(initial=self._largest))

    def report(self) -> tuple[dict[str, float], str]:
        """Return the largest rotation since the last report, and a warning if it is half a turn or
        more, otherwise "".
        """
        if not self._has_rotations:
            return {}, ""
        if self._velocities:
            self._evaluate()
        largest, self._largest = self._largest, 0.0
        return {"turn_per_step_rad": largest}, states.rotation_problem(largest, self._period_s)


class ContactMonitor:
    """Monitors the contacts in the last step, and, since the last report, the smallest friction
    margins and the number of steps in which each contact slid.
    """

    def __init__(self) -> None:
        self._last: Mapping[str, ContactForce] = {}
        self._clear()

    def _clear(self) -> None:
        self._margins: dict[str, float] = {}
        self._sliding = Counter[str]()

    def observe(self, contacts: Mapping[str, ContactForce]) -> None:
        """Add a step's contacts, given by name."""
        self._last = contacts
        for name, contact in contacts.items():
            # an open contact has no finite margin
            if math.isfinite(contact.margin):
                self._margins[name] = min(contact.margin, self._margins.get(name, math.inf))
            self._sliding[name] += contact.slides

    def report(self) -> tuple[dict[str, object], str]:
        """Return the normal forces, gaps and friction margins, and their smallest values since the
        last report. Also returns a warning about contacts that slid, or "".
        """
        values: dict[str, object] = {}
        for name, contact in self._last.items():
            if math.isfinite(contact.gap):
                values |= {
                    f"normal force {name} (N)": contact.normal,
                    f"gap {name} (m)": contact.gap,
                }
            if math.isfinite(contact.margin):
                values[f"margin of friction {name}"] = contact.margin
        values |= {f"least margin of friction {n}": least for n, least in self._margins.items()}
        slid = {name: count for name, count in self._sliding.items() if count}
        self._clear()
        if not slid:
            return values, ""
        return values, f"{max(slid.values())} steps with sliding contacts ({', '.join(slid)})"
