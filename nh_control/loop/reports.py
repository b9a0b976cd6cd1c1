"""Node reports, and the reasons for refusing states, goals and trajectories."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum


@dataclass(frozen=True)
class Report:
    """A report whose `level` is "ok", "warn" or "error". `values` are readable pairs. Only the
    first text of each kind in `news` should be logged.
    """

    level: str
    message: str
    values: Mapping[str, object]
    news: Mapping[str, str] = field(default_factory=dict)

    def complete(self) -> Report:
        """The report itself, because nothing is pending."""
        return self


@dataclass(frozen=True)
class PendingReport:
    """A report that the working thread has begun. `complete` computes the rest, in any thread, and
    is called once.
    """

    complete: Callable[[], Report]


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
