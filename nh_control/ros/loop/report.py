"""What a node says about itself, before it is a message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Report:
    """`level` is "ok", "warn" or "error"; `values` are readable pairs; `news` are to be logged,
    of every kind the first one.
    """

    level: str
    message: str
    values: Mapping[str, object]
    news: Mapping[str, str] = field(default_factory=dict)
