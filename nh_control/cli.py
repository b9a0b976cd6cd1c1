"""The command `nh_control`: list and explain scenarios, begin one of your own, simulate one in
this process, or run it as ROS 2 nodes; figures, a table and files come out.

Exit codes: 0 done, 1 the run stopped early (what there is, is saved), 2 wrong usage, 130
interrupted. Results go to stdout, progress to stderr.
"""

from __future__ import annotations

import sys

from nh_control.command.usage import INTERRUPTED, PROGRAM, USAGE, UsageError


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    try:
        from nh_control.command import arguments  # takes long enough for a Ctrl-C

        args = arguments.parse(list(sys.argv[1:] if argv is None else argv))
        return args.command(args)
    except UsageError as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print(f"{PROGRAM}: interrupted", file=sys.stderr)
        return INTERRUPTED
