"""The name of the command, its exit codes, and errors of usage."""

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
"""Exit codes: the run stopped early; wrong usage; the user interrupted. 0: done."""


class CannotWrite(Exception):
    """The results cannot be written; the message names the file and the reason."""


class UsageError(Exception):
    """The command cannot do what it was asked; the message names the remedy."""


def find_scenario(name: str, args: argparse.Namespace | None = None) -> Scenario:
    """Return the scenario of this name, file or module, with the robot of a command's arguments;
    raises UsageError.
    """
    from nh_control import scenarios
    from nh_control.runs.settings import ORIGIN

    with usage_errors():
        robot = {} if args is None else {key: getattr(args, key) for key in ORIGIN[1:]}
        return scenarios.get(name, **robot)


@contextmanager
def writing(folder: str | Path) -> Iterator[None]:
    """Raise CannotWrite where a file of the folder cannot be written, as on a full disk."""
    try:
        yield
    except OSError as error:
        raise CannotWrite(f"cannot write the results to {folder}/: {error}") from error


@contextmanager
def usage_errors(file: str = "", files: bool = True) -> Iterator[None]:
    """Raise UsageError for input that cannot be used or prepared, with `files` also for files that
    cannot be read.

    The message of an error inside the user's `file` says the line.
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
