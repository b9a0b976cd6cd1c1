"""Events of adaptive runs: functions of time and state whose zeros are located."""

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
"""g(t, x)."""
REMEDY = (
    "write it with CasADi's functions instead of those of math, or set `numeric = True` on a "
    "function that needs numbers"
)
ACCURACY = 4 * float(np.finfo(float).eps)
"""Relative accuracy, and accuracy in s, of the times of events."""


@dataclass(frozen=True)
class Event:
    """`g(t, x) = 0`; the run stops after `limit` of them.

    `direction` > 0: rising only, < 0: falling only. `numeric`: g takes numbers, not expressions.
    """

    g: UserEvent
    limit: float
    direction: float
    numeric: bool


def declared_events(events: UserEvent | Sequence[UserEvent] | None) -> list[Event]:
    """Events with the values of their attributes `terminal`, `direction` and `numeric`.

    Raises ValueError for anything but a function and for another terminal than a bool or a count.
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
    """Values (n) of the events that are not numeric, at symbols t and x.

    Raises ValueError for an event that fails for expressions, or is not one number.
    """
    values = [_expression(k, e, t, x) for k, e in enumerate(events) if not e.numeric]
    return ca.vertcat(*values) if values else ca.SX(0, 1)


def _expression(k: int, event: Event, t: ca.SX, x: ca.SX) -> ca.SX:
    try:
        value = ca.SX(event.g(t, x))
    except Exception as error:
        raise ValueError(f"event {k}: g(t, x) fails on CasADi expressions; {REMEDY}") from error
    if contains_nan(value):
        raise ValueError(f"event {k}: g(t, x) gives NaN on CasADi expressions; {REMEDY}")
    if value.numel() != 1:
        raise ValueError(f"event {k}: g(t, x) must be one number, got shape {value.shape}")
    return ca.densify(value)


@dataclass(frozen=True)
class LocatedEvent:
    """Event number `k` at the time t."""

    t: float
    k: int


def locate_events(
    interpolant: DenseOutput,
    values: np.ndarray,
    events: Sequence[Event],
    evaluate: Callable[[int, float, np.ndarray], float],
) -> list[LocatedEvent]:
    """Events on some steps in their order, from their values (steps + 1, n) at the nodes;
    `evaluate(k, t, x)` is the value of event k.
    """
    from scipy.optimize import brentq  # takes long to import

    located = []
    directions = np.array([e.direction for e in events])
    steps, numbers = np.nonzero(crossings(values[:-1], values[1:], directions))
    for i, k in zip(steps.tolist(), numbers.tolist()):
        a, b = float(interpolant.times[i]), float(interpolant.times[i + 1])
        ends = {a: float(values[i, k]), b: float(values[i + 1, k])}

        def g(t: float, k: int = k, ends: dict[float, float] = ends) -> float:
            return ends[t] if t in ends else evaluate(k, t, interpolant(t))

        located.append(LocatedEvent(float(brentq(g, a, b, xtol=ACCURACY, rtol=ACCURACY)), k))
    return sorted(
        located, key=lambda one: one.t, reverse=bool(interpolant.times[-1] < interpolant.times[0])
    )


def until_terminal(
    located: Sequence[LocatedEvent], events: Sequence[Event], counts: np.ndarray
) -> tuple[list[LocatedEvent], bool]:
    """The events up to the first that stops the run, and whether one does; the `counts` (n) of
    events continue.
    """
    for i, one in enumerate(located):
        counts[one.k] += 1
        if counts[one.k] >= events[one.k].limit:
            return list(located[: i + 1]), True
    return list(located), False
