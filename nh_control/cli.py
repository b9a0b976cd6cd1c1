"""The command `nh_control` lists and explains scenarios, writes a new scenario, and simulates
scenarios in this process or as ROS 2 nodes, with figures, a table and files.

Exit codes: 0 done, 1 the run stopped early (the finished part is saved), 2 wrong usage, 130
interrupted. Results go to stdout, progress to stderr.
"""

from __future__ import annotations

import os
import select
import sys

from nh_control.command.interruption import Interruption
from nh_control.command.usage import (
    FAILED,
    INTERRUPTED,
    PROGRAM,
    USAGE,
    CannotWrite,
    NoAnswer,
    UsageError,
)


def main(argv: list[str] | None = None) -> int:
    """Run the command. Returns the exit code, which is 1 if the reader of stdout has exited
    (`| head`).
    """
    try:
        try:
            return _main(argv)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        if not _reader_has_ended():
            raise
        # Python flushes stdout again at exit, which must not fail
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def _reader_has_ended() -> bool:
    """Whether stdout is a pipe that nobody reads any more."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)  # errors and hang-ups are reported even with mask 0
    return bool(poll.poll(0))


def _main(argv: list[str] | None) -> int:
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
        if isinstance(error, CannotWrite | NoAnswer):
            print(f"{PROGRAM}: error: {error}", file=sys.stderr)
            return FAILED
        raise
