"""Controllers in a user's file or module, named `path/to/file.py:NAME` or `module:NAME`."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.controller import ControllerFailed, ControllerTracker, WrongCommand
from nh_control.control.reference_tracker import Command
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.scenarios.names import UnknownName
from nh_control.scenarios.user_code import UserCodeError, load_file, load_module, located


def resolved(name: str) -> str:
    """The name with the absolute path of the file, so that other processes can use it."""
    place, _, attribute = name.rpartition(":")
    if place.endswith(".py"):
        place = str(Path(place).expanduser().resolve())
    return f"{place}:{attribute}"


def find(name: str) -> tuple[Any, str]:
    """The object with the given `resolved` name, and its file.

    This runs the user's code. Raises UserCodeError, which contains the file and line of an error
    in the code; OSError for a file that cannot be read; and UnknownName.
    """
    place, _, attribute = name.rpartition(":")
    module = load_file(Path(place)) if place.endswith(".py") else load_module(place)
    file = getattr(module, "__file__", None) or place
    if not hasattr(module, attribute):
        raise UnknownName(f"controller in {file}", attribute, _controllers(module))
    return getattr(module, attribute), file


def user_tracker(
    name: str, model: DiscreteSystem, reference: Trajectory, hold: bool
) -> ControllerTracker:
    """A tracker with the controller that has the given `resolved` name. It follows a reference of
    the model unless the controller has `targets`. Raises the same errors as `find`, and
    UserCodeError if the object is not a controller.
    """
    controller, file = find(name)
    try:
        with located(file):
            return _UserTracker(file, model, controller, reference, hold=hold)
    except TypeError as error:
        raise UserCodeError(f"{file}: {error}") from error


def _controllers(module: ModuleType) -> list[str]:
    """The names in a module that may be controllers."""
    return [
        name
        for name, value in vars(module).items()
        if callable(getattr(value, "command", None))
        or (callable(value) and getattr(value, "__module__", "") == module.__name__)
    ]


class _UserTracker(ControllerTracker):
    """A tracker with a controller from a file. An error in the file stops the run and reports the
    line.
    """

    def __init__(
        self,
        file: str,
        dsys: DiscreteSystem,
        controller: Any,
        reference: Trajectory,
        hold: bool,
    ):
        self._file = file
        super().__init__(dsys, controller, reference, hold=hold)

    def command(self, k: int, x: ArrayLike, memory: Any = None) -> Command:
        """The command in step k at state x (nx). Raises ControllerFailed."""
        try:
            with located(self._file):
                return super().command(k, x, memory)
        except (WrongCommand, ValueError) as error:
            text = str(error) if isinstance(error, UserCodeError) else f"{self._file}: {error}"
            raise ControllerFailed(text, k) from error


class _External:
    """A placeholder for a controller in another process."""

    def command(self, k: int, x: np.ndarray) -> np.ndarray:
        """Raise ValueError, because an external controller only answers messages."""
        raise ValueError(
            "an external controller answers the messages of nodes: use `nh_control run`, or name "
            "a controller in Python, path/to/file.py:NAME"
        )


def external_tracker(
    model: DiscreteSystem, reference: Trajectory, hold: bool
) -> ControllerTracker:
    """The tracker for a run with commands from another process. It provides targets, errors and
    limits.
    """
    return ControllerTracker(model, _External(), reference, hold=hold)
