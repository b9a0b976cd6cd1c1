"""Reports of the nodes, and the reasons for which they refuse states, goals and trajectories."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum


@dataclass(frozen=True)
class Report:
    """`level` is "ok", "warn" or "error"; `values` are readable pairs; `news` are to be logged,
    the first of every kind.
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
    ORIENTATION = "no unit quaternion"
    STAMP = "wrong stamp"
    MODEL = "beyond the model"
    IMPLAUSIBLE = "implausible"


def shortened(values: Sequence[object]) -> str:
    """The received value in a short form: it may have a million entries."""
    short = reprlib.Repr()
    short.maxlist, short.maxstring = 12, 60
    return short.repr(list(values))


class Unusable(ValueError):
    """A refused input: its kind, and the reason for people."""

    def __init__(self, kind: Refusal, reason: str):
        super().__init__(reason)
        self.kind = kind
