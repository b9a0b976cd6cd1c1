"""The command `nh_control` lists and explains scenarios, writes a new scenario, and simulates
scenarios in this process or as ROS 2 nodes, with figures, a table and files.

Exit codes: 0 done, 1 the run stopped early (the finished part is saved), 2 wrong usage, 130
interrupted. Results go to stdout, progress to stderr.
"""

from __future__ import annotations

import gc
import os
import select
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from nh_control.runs.fork_server import ForkServer

COLLECTED = 100_000
"""Number of new objects after which Python searches for garbage."""


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


def _server_of_nodes(words: list[str]) -> AbstractContextManager[ForkServer | None]:
    """Return the server that forks the nodes of `run`. It starts before the scenario is imported,
    because its imports take as long as the preparation of the run.
    """
    if words[:1] != ["run"] or not words[1:] or {"-h", "--help"} & {*words}:
        return nullcontext()
    from nh_control.runs.fork_server import node_server

    return node_server()


def _main(argv: list[str] | None) -> int:
    interruption = Interruption()
    # imports and expressions create many objects, which stay: searching them for garbage takes a
    # tenth of a command
    gc.set_threshold(COLLECTED)
    try:
        with interruption:
            words = list(sys.argv[1:] if argv is None else argv)
            with _server_of_nodes(words) as server:
                # slow import: Ctrl-C must work during it
                from nh_control.command import arguments

                args = arguments.parse(words)
                args.interruption, args.server = interruption, server
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
