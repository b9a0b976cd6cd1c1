"""Intervals in which something acts on a run: gusts, and faults of sensors and actuators that come
or go.
"""

from __future__ import annotations

from dataclasses import dataclass

from nh_control.scenarios import Gust, PlantOptions

DISTURBANCE, FAULT = "#cfe3f3", "#fbe0c4"
"""Colors of the intervals: of cold and of warm light, which color-blind people can distinguish."""


@dataclass(frozen=True)
class Interval:
    """A time from `start` to `stop` (s) that figures and plots shade, with the reason."""

    start: float
    stop: float
    label: str
    color: str = DISTURBANCE


def intervals(options: PlantOptions, end: float) -> tuple[Interval, ...]:
    """Gusts, and faults that do not last for the whole run, of a run that ends at `end` (s)."""
    acting = [
        (one.signal, f"gust on {one.target}", DISTURBANCE)
        for one in options.disturbances
        if isinstance(one.signal, Gust)
    ] + [
        (one.effect, f"{one.kind} of {one.target}", FAULT)
        for one in options.faults
        if one.effect.start or one.effect.duration
    ]
    return tuple(
        Interval(what.start, min(end, what.start + (what.duration or end)), label, color)
        for what, label, color in acting
        if what.start < end
    )
