"""Node reports, and the reasons for refusing states, goals and trajectories."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

TOGETHER = 50
"""Number of steps that reports evaluate together, where this is faster."""


@dataclass(frozen=True)
class Report:
    """A report whose `level` is "ok", "warn" or "error". `values` are readable pairs. Only the
    first text of each kind in `news` should be logged.
    """

    level: str
    message: str
    values: Mapping[str, object]
    news: Mapping[str, str] = field(default_factory=dict)


class Refusal(str, Enum):
    """Kinds of refusals, in words."""

    NAMES = "wrong names"
    LENGTH = "wrong length"
    FRAME = "wrong frame"
    NOT_FINITE = "not finite"
    ORIENTATION = "not a unit quaternion"
    STAMP = "wrong stamp"
    MODEL = "outside the domain of the model"
    JOIN = "cannot join"
    IMPLAUSIBLE = "implausible"


def shortened(values: Sequence[object]) -> str:
    """Return the received values in a short form, because there may be a million of them."""
    short = reprlib.Repr()
    short.maxlist, short.maxstring = 12, 60
    return short.repr(list(values))


class Unusable(ValueError):
    """An input was refused. The exception has the kind of refusal and the reason in words."""

    def __init__(self, kind: Refusal, reason: str):
        super().__init__(reason)
        self.kind = kind
