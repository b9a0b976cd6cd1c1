"""The name of the command, its exit codes, and errors of usage."""

from __future__ import annotations

PROGRAM = "nh_control"
FAILED, USAGE, INTERRUPTED = 1, 2, 130
"""The run stopped early; wrong usage; interrupted. 0: done."""


class UsageError(Exception):
    """The command cannot do what it was asked; the message names the remedy."""
