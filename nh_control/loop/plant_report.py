"""The plant's report on its state, with monitored outputs and rotations."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Protocol, TypeAlias, TypeVar

import numpy as np

from nh_control.discrete.contact_forces import ContactForce
from nh_control.geometry.spaces import Space
from nh_control.loop.clocks import PacingStatistics
from nh_control.loop.reports import PendingReport, Report
from nh_control.loop.simulated_plant import SimulatedPlant
from nh_control.loop.simulation_loop import Mode, SimulationLoop
from nh_control.mechanics import states
from nh_control.scenarios import MonitoredOutput

T = TypeVar("T")

AWAIT_WARNING_S = 1.0


class Monitor(Protocol):
    """A monitored quantity. `report` returns its values and a warning, which is "" if there is
    none.
    """

    def report(self) -> tuple[Mapping[str, object], str]: ...


class PlantReport:
    """Reports on a loop. Rates and warnings refer to the time since the last report. The `tables`
    are monitors that evaluate many steps together when a report is completed.
    """

    def __init__(
        self,
        loop: SimulationLoop,
        monitors: Sequence[Monitor] = (),
        tables: Sequence[Monitor] = (),
    ):
        self._loop, self._monitors, self._tables = loop, monitors, tables
        self._time, self._steps = time.monotonic(), 0
        self._trouble = (0, 0, 0)
        self._energy = loop.plant.dsys.energy(loop.plant.initial)

    def begin(self) -> PendingReport:
        """Begin a report on the present state. Call this method in the loop's thread or after the
        loop has ended. Completing the report takes as long as several steps, and does not use the
        loop.
        """
        loop, plant, validator = self._loop, self._loop.plant, self._loop.validator
        pacing = loop.pacer.statistics()
        rate_hz = self._rate(pacing.steps)
        values = {
            "mode": loop.mode.value,
            "step": plant.step,
            "time_s": loop.pacer.period_s * plant.step,
            "rate_hz": rate_hz,
            "real_time_factor": rate_hz * loop.pacer.period_s,
            "speed_factor": loop.pacer.speed_factor,
            "missed_steps": pacing.missed,
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
            **plant.faults.report(),
        }
        examples = validator.examples.items()
        news = {f"command rejected, {reason.value}": text for reason, text in examples}
        level, message = self._judge()
        begun = Report(level, message, values, news)
        reported = [monitor.report() for monitor in self._monitors]
        troubles = self._count_troubles(pacing.missed)
        # a step replaces the plant's arrays, so a shallow copy stays in the present state
        present = copy(plant)
        return PendingReport(partial(self._complete, begun, present, pacing, troubles, reported))

    def _complete(
        self,
        begun: Report,
        plant: SimulatedPlant,
        pacing: PacingStatistics,
        troubles: Sequence[str],
        reported: Sequence[tuple[Mapping[str, object], str]],
    ) -> Report:
        reported = [*(table.report() for table in self._tables), *reported]
        p50, p90, p99 = pacing.jitter_percentiles_s
        energy = plant.energy
        values = {
            **begun.values,
            "energy_J": energy,
            "energy_change_J": energy - self._energy,
            "constraint_residual": plant.constraint_residual,
            "jitter_mean_us": pacing.jitter_mean_s * 1e6,
            "jitter_p50_us": p50 * 1e6,
            "jitter_p90_us": p90 * 1e6,
            "jitter_p99_us": p99 * 1e6,
            "jitter_max_us": pacing.jitter_max_s * 1e6,
            **{name: value for values, _ in reported for name, value in values.items()},
        }
        warnings = [*troubles, *(text for _, text in reported if text)]
        if begun.level != "ok" or not warnings:
            return replace(begun, values=values)
        message = f"{', '.join(warnings)} since the last report; {begun.message}"
        return replace(begun, level="warn", message=message, values=values)

    def _judge(self) -> tuple[str, str]:
        loop = self._loop
        if loop.mode is Mode.FAILED:
            return "error", f"{loop.mode.value}: {loop.reason}"
        if loop.awaited_s > AWAIT_WARNING_S:
            return "warn", f"waiting for {loop.awaited_s:.0f} s for {loop.awaited}"
        return "ok", loop.mode.value + (f": {loop.reason}" if loop.reason else "")

    def _count_troubles(self, missed: int) -> list[str]:
        validator, before = self._loop.validator, self._trouble
        self._trouble = (validator.rejected.total(), validator.fallback_steps, missed)
        # the counters are totals for the run, so warn only about increases since the last report
        rejected, fallback, missed = (now - then for now, then in zip(self._trouble, before))
        troubles = [
            (rejected, "commands rejected"),
            (fallback, f"steps with the fallback ({validator.fallback.value})"),
            (missed, "steps missed"),
        ]
        return [f"{count} {what}" for count, what in troubles if count]

    def _rate(self, steps: int) -> float:
        now = time.monotonic()
        elapsed, taken = now - self._time, steps - self._steps
        self._time, self._steps = now, steps
        return taken / elapsed if elapsed > 0 else 0.0


class OutputMonitor:
    """Values of the scenario's monitor after each step, if the scenario has one, and their minima
    since the last report. `observe` only stores the step, and `report`, which another thread may
    call, evaluates all stored steps. This takes longer than a step but less time per step.
    """

    def __init__(self, monitor: MonitoredOutput | None, parameters: object):
        self._monitor, self._parameters = monitor, parameters
        self._step = 0
        # a deque is thread-safe: one thread appends to it, and another takes from it
        self._rows: deque[_Row] = deque()
        self._last = np.empty((0, 0))

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
        if self._monitor is not None and not repeated:
            self._rows.append((q, v, u, external))

    def report(self) -> tuple[dict[str, float], str]:
        """Return, by name, the present values and the smallest values since the last report. Also
        returns a warning about values that were too low, or "".
        """
        monitor, rows = self._monitor, _taken(self._rows)
        if monitor is None:
            return {}, ""
        # without new steps, only the present values
        table = self._last
        if rows:
            table = np.concatenate([self._table(monitor, part) for part in _parts(rows)])
        if not len(table):
            return {}, ""
        self._last, lowest = table[-1:], table.min(axis=0)
        values = {
            f"{prefix}{monitor.title} {name} ({monitor.unit})": float(value)
            for prefix, row in (("", table[-1]), ("lowest ", lowest))
            for name, value in zip(monitor.names, row)
        }
        # steps in which at least one value is too low
        low_steps = int((table <= monitor.minimum).any(axis=1).sum()) if rows else 0
        low = ", ".join(monitor.low(lowest))
        return values, f"{low_steps} steps with {monitor.warning} ({low})" if low_steps else ""

    def _table(self, monitor: MonitoredOutput, rows: Sequence[_Row]) -> np.ndarray:
        """The monitor's values (len(rows), n) for rows with equal names of external forces."""
        if not monitor.takes_tables:
            return np.array([monitor.values(self._parameters, *row) for row in rows])
        q, v, u = (np.array(column) for column in list(zip(*rows))[:3])
        external = {name: np.array([row[3][name] for row in rows]) for name in rows[0][3]}
        return np.asarray(monitor.values(self._parameters, q, v, u, external))


_Row: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray, Mapping[str, np.ndarray]]
"""Configuration, velocity, inputs and external forces of a step."""


def _parts(rows: Sequence[_Row]) -> list[list[_Row]]:
    """Consecutive rows with equal names of external forces, which one table can contain."""
    return [list(part) for _, part in groupby(rows, key=lambda row: row[3].keys())]


def _taken(rows: deque[T]) -> list[T]:
    """Remove and return the rows that another thread has appended."""
    return [rows.popleft() for _ in range(len(rows))]


class RotationMonitor:
    """The largest rotation in one step of `period_s` since the last report, for spaces with
    rotations, poses or directions. A step can represent only rotations of less than half a turn.
    `report`, which another thread may call, evaluates all steps since the last report.
    """

    def __init__(self, space: Space, period_s: float):
        self._space, self._period_s = space, period_s
        self._has_rotations = states.has_rotations(space)
        self._velocities: deque[np.ndarray] = deque()

    def observe(self, v: np.ndarray) -> None:
        """Add the velocity (nw) after a step."""
        if self._has_rotations:
            self._velocities.append(v)

    def report(self) -> tuple[dict[str, float], str]:
        """Return the largest rotation since the last report, and a warning if it is half a turn or
        more, otherwise "".
        """
        if not self._has_rotations:
            return {}, ""
        largest, velocities = 0.0, _taken(self._velocities)
        if velocities:
            angles = states.rotation_angles(self._space, np.array(velocities), self._period_s)
            largest = float(angles.max(initial=0.0))
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
