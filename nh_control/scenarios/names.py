"""The error for a name that is not declared."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UnknownName(ValueError):
    """A name that is not declared; the message lists the valid ones."""

    def __init__(self, what: str, name: str, valid: Iterable[str], hint: str = ""):
        valid = list(valid)
        close = difflib.get_close_matches(name, valid, n=1)
        meant = f" (did you mean {close[0]!r}?)" if close else ""
        choice = f"choose one of: {', '.join(valid)}" if valid else "there are none"
        super().__init__(f"unknown {what} {name!r}{meant}, {choice}{hint}")
