"""The command `nh_control`: it lists and explains scenarios, writes a new scenario, and simulates
one in this process or as ROS 2 nodes, with figures, a table and files.

Exit codes: 0 done, 1 the run stopped early (finished parts are saved), 2 wrong usage, 130
interrupted. Results go to stdout, progress to stderr.
"""

from __future__ import annotations

import sys

from nh_control.command.interruption import Interruption
from nh_control.command.usage import (
    FAILED,
    INTERRUPTED,
    PROGRAM,
    USAGE,
    CannotWrite,
    UsageError,
)


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    interruption = Interruption()
    try:
        with interruption:
            from nh_control.command import arguments  # slow import: Ctrl-C must work during it

            args = arguments.parse(list(sys.argv[1:] if argv is None else argv))
            args.interruption = interruption
            return args.command(args)
    except (Exception, KeyboardInterrupt) as error:
        if interruption.requested or isinstance(error, KeyboardInterrupt):
            print(f"{PROGRAM}: interrupted", file=sys.stderr)
            return INTERRUPTED
        if isinstance(error, UsageError):
            print(f"{PROGRAM}: error: {error}", file=sys.stderr)
            return USAGE
        if isinstance(error, CannotWrite):
            print(f"{PROGRAM}: error: {error}", file=sys.stderr)
            return FAILED
        raise
