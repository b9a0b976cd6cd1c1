"""What a node says about itself, before it is a message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Report:
    """`level` is "ok", "warn" or "error"; `values` are readable pairs."""

    level: str
    message: str
    values: Mapping[str, object]
