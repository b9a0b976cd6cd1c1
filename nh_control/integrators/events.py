"""Events in adaptive runs, defined as zeros of functions of time and state."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import casadi as ca
import numpy as np

from nh_control.integrators.adaptive_results import DenseOutput
from nh_control.numerics.adaptive import crossings
from nh_control.numerics.expressions import contains_nan

UserEvent: TypeAlias = Callable[[Any, Any], Any]
"""An event function g(t, x)."""
REMEDY = (
    "write it with CasADi's functions instead of those of math, or set `numeric = True` on a "
    "function that needs numbers"
)
ACCURACY = 4 * float(np.finfo(float).eps)
"""Relative accuracy, and absolute accuracy in s, of event times."""


@dataclass(frozen=True)
class Event:
    """The event `g(t, x) = 0`. The run stops when it has occurred `limit` times.

    If `direction` > 0, only zeros where g rises count. If `direction` < 0, only zeros where g
    falls count. If `numeric` is true, g takes numbers, not expressions.
    """

    g: UserEvent
    limit: float
    direction: float
    numeric: bool


def declared_events(events: UserEvent | Sequence[UserEvent] | None) -> list[Event]:
    """The events with the values of their attributes `terminal`, `direction` and `numeric`.

    Raises ValueError for an event that is not a function, and for a `terminal` that is neither a
    bool nor a count.
    """
    several: Sequence[Any] = [events] if callable(events) else list(events or ())
    return [_declared(k, g) for k, g in enumerate(several)]


def _declared(k: int, g: Any) -> Event:
    if not callable(g):
        raise ValueError(f"event {k}: expected a function g(t, x), got {g!r}")
    terminal, direction = getattr(g, "terminal", False), getattr(g, "direction", 0.0)
    if terminal != int(terminal) or terminal < 0:
        raise ValueError(
            f"event {k}: terminal must be True, False or a number of events, got {terminal!r}"
        )
    limit = float(terminal) if terminal else math.inf
    return Event(g, limit, float(direction), bool(getattr(g, "numeric", False)))


def event_expression(events: Sequence[Event], t: ca.SX, x: ca.SX) -> ca.SX:
    """Values (n) of the events that are not numeric, as expressions in t and x.

    Raises ValueError for an event that does not accept expressions or does not return one number.
    """
    values = [_expression(k, e, t, x) for k, e in enumerate(events) if not e.numeric]
    return ca.vertcat(*values) if values else ca.SX(0, 1)


def _expression(k: int, event: Event, t: ca.SX, x: ca.SX) -> ca.SX:
    try:
        value = ca.SX(event.g(t, x))
    except Exception as error:
        raise ValueError(f"event {k}: g(t, x) fails for CasADi expressions; {REMEDY}") from error
    if contains_nan(value):
        raise ValueError(f"event {k}: g(t, x) returns NaN for CasADi expressions; {REMEDY}")
    if value.numel() != 1:
        raise ValueError(f"event {k}: g(t, x) must be one number, got shape {value.shape}")
    return ca.densify(value)


@dataclass(frozen=True)
class LocatedEvent:
    """An occurrence of the event with the number `k` at the time t."""

    t: float
    k: int


def locate_events(
    interpolant: DenseOutput,
    values: np.ndarray,
    events: Sequence[Event],
    evaluate: Callable[[int, float, np.ndarray], float],
) -> list[LocatedEvent]:
    """The events in a number of steps, in order, from their values (steps + 1, n) at the nodes.
    `evaluate(k, t, x)` returns the value of event k.
    """
    from scipy.optimize import brentq  # slow to import

    located = []
    directions = np.array([e.direction for e in events])
    steps, numbers = np.nonzero(crossings(values[:-1], values[1:], directions))
    for i, k in zip(steps.tolist(), numbers.tolist()):
        a, b = float(interpolant.times[i]), float(interpolant.times[i + 1])
        ends = {a: float(values[i, k]), b: float(values[i + 1, k])}

        # brentq evaluates the ends of the bracket first, so use their known values
        def g(t: float, k: int = k, ends: dict[float, float] = ends) -> float:
            return ends[t] if t in ends else evaluate(k, t, interpolant(t))

        located.append(LocatedEvent(float(brentq(g, a, b, xtol=ACCURACY, rtol=ACCURACY)), k))
    backward = bool(interpolant.times[-1] < interpolant.times[0])
    return sorted(located, key=lambda event: event.t, reverse=backward)


def until_terminal(
    located: Sequence[LocatedEvent], events: Sequence[Event], counts: np.ndarray
) -> tuple[list[LocatedEvent], bool]:
    """The events up to the first one that stops the run, and whether there is such an event. The
    `counts` (n) of events are updated.
    """
    for i, event in enumerate(located):
        counts[event.k] += 1
        # SciPy's `terminal` may be the number of events to wait for
        if counts[event.k] >= events[event.k].limit:
            return list(located[: i + 1]), True
    return list(located), False
