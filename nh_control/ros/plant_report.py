"""What the plant says about itself: a level, one line, and values."""

from __future__ import annotations

import time

from nh_control.ros.report import Report
from nh_control.ros.stepper import Mode, Stepper
from nh_control.ros.watch import Watch

AWAIT_WARNING_S = 1.0


class PlantReport:
    """Reports on a stepper; rates and warnings are about the time since the report before."""

    def __init__(self, stepper: Stepper, watch: Watch):
        self._stepper, self._watch = stepper, watch
        self._time, self._steps = time.monotonic(), 0
        self._trouble = (0, 0, 0)

    def make(self) -> Report:
        """The report on the present moment; to be called in the stepper's thread, or after its end."""
        stepper, plant, gate = self._stepper, self._stepper.plant, self._stepper.gate
        pacing = stepper.pacer.statistics()
        watched, warning = self._watch.report()
        level, message = self._judge(pacing.missed, warning)
        values = {
            "mode": stepper.mode.value,
            "step": plant.step,
            "time_s": stepper.pacer.period_s * plant.step,
            "rate_hz": self._rate(pacing.steps),
            "speed_factor": stepper.pacer.speed_factor,
            "missed_steps": pacing.missed,
            "jitter_mean_us": pacing.jitter_mean_s * 1e6,
            "jitter_p99_us": pacing.jitter_p99_s * 1e6,
            "jitter_max_us": pacing.jitter_max_s * 1e6,
            "commands_accepted": gate.accepted,
            "commands_clipped": gate.clipped,
            "commands_rejected": gate.rejected.total(),
            **{f"rejected: {reason.value}": count for reason, count in gate.rejected.items()},
            "fallback_steps": gate.fallback_steps,
            "energy_J": plant.energy,
            "constraint_residual": plant.constraint_residual,
            **watched,
        }
        return Report(level, message, values)

    def _judge(self, missed: int, warning: str) -> tuple[str, str]:
        stepper, gate = self._stepper, self._stepper.gate
        before, self._trouble = self._trouble, (gate.rejected.total(), gate.fallback_steps, missed)
        rejected, fallback, missed = (now - then for now, then in zip(self._trouble, before))
        if stepper.mode is Mode.FAILED:
            return "error", f"paused: {stepper.reason}"
        if stepper.awaited_s > AWAIT_WARNING_S:
            return "warn", f"waiting for {stepper.awaited_s:.0f} s for {stepper.awaited}"
        troubles = [(rejected, "commands rejected"), (fallback, f"steps with the fallback ({gate.fallback.value})"), (missed, "steps missed")]
        told = [f"{count} {what}" for count, what in troubles if count] + ([warning] if warning else [])
        present = stepper.mode.value + (f": {stepper.reason}" if stepper.reason else "")
        if told:
            return "warn", ", ".join(told) + f" since the last report; {present}"
        return "ok", present

    def _rate(self, steps: int) -> float:
        now = time.monotonic()
        elapsed, taken = now - self._time, steps - self._steps
        self._time, self._steps = now, steps
        return taken / elapsed if elapsed > 0 else 0.0
