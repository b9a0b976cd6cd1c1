"""The name of the command, its exit codes, and usage errors."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nh_control.scenarios import Scenario

PROGRAM = "nh_control"
FAILED, USAGE, INTERRUPTED = 1, 2, 130
"""Exit codes: the run stopped early; wrong usage; interrupted by the user. 0 means done."""


class CannotWrite(Exception):
    """The results cannot be written; the message names the file and the reason."""


class NoAnswer(Exception):
    """No node answers; the message says which one."""


class UsageError(Exception):
    """The command cannot do what was requested; the message names the remedy."""


def find_scenario(name: str, args: argparse.Namespace | None = None) -> Scenario:
    """Return the scenario with the given name, file or module, and with the robot in a command's
    arguments. Raises UsageError.
    """
    from nh_control import scenarios
    from nh_control.runs.settings import ORIGIN

    with usage_errors():
        # ORIGIN[0] is the scenario itself
        robot = {} if args is None else {key: getattr(args, key) for key in ORIGIN[1:]}
        return scenarios.get(name, **robot)


@contextmanager
def writing(folder: str | Path) -> Iterator[None]:
    """Raise CannotWrite if a file in the folder cannot be written, for example on a full disk."""
    try:
        yield
    except OSError as error:
        raise CannotWrite(f"cannot write the results to {folder}/: {error}") from error


@contextmanager
def usage_errors(file: str = "", files: bool = True) -> Iterator[None]:
    """Raise UsageError for input that cannot be used or prepared, and with `files` also for files
    that cannot be read.

    If an error occurs inside the user's `file`, the message contains the line.
    """
    from nh_control.discrete.results import StepFailed
    from nh_control.scenarios.user_code import located

    try:
        with located(file):
            yield
    except (ValueError, StepFailed, OSError) as error:
        if isinstance(error, OSError) and not files:
            raise
        raise UsageError(str(error)) from error
