"""Time intervals of gusts and of temporary sensor and actuator faults in a run."""

from __future__ import annotations

from dataclasses import dataclass

from nh_control.scenarios import Gust, PlantOptions

DISTURBANCE, FAULT = "#cfe3f3", "#fbe0c4"
"""Colors of the intervals: a cold and a warm color, which color-blind people can distinguish."""


@dataclass(frozen=True)
class Interval:
    """An interval from `start` to `stop` (s) that is shaded in figures, with the reason."""

    start: float
    stop: float
    label: str
    color: str = DISTURBANCE


def intervals(options: PlantOptions, end: float) -> tuple[Interval, ...]:
    """Return the intervals of gusts and temporary faults in a run that ends at `end` (s)."""
    acting = [
        (disturbance.signal, f"gust on {disturbance.target}", DISTURBANCE)
        for disturbance in options.disturbances
        if isinstance(disturbance.signal, Gust)
    ] + [
        (fault.effect, f"{fault.kind} of {fault.target}", FAULT)
        for fault in options.faults
        if fault.effect.start or fault.effect.duration
    ]
    return tuple(
        Interval(what.start, min(end, what.start + (what.duration or end)), label, color)
        for what, label, color in acting
        if what.start < end
    )
