"""The error for an unknown name."""

from __future__ import annotations

from collections.abc import Iterable


class UnknownName(ValueError):
    """A name is unknown. The message lists the valid names."""

    def __init__(self, what: str, name: str, valid: Iterable[str], hint: str = ""):
        import difflib

        valid = list(valid)
        close = difflib.get_close_matches(name, valid, n=1)
        meant = f" (did you mean {close[0]!r}?)" if close else ""
        choice = f"choose one of: {', '.join(valid)}" if valid else "there are none"
        super().__init__(f"unknown {what} {name!r}{meant}, {choice}{hint}")
