"""User-defined controllers for closed loops, rollouts, runs, studies and nodes. A controller is an
object with a method `command(k, x)`, a class of such objects, or a function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.reference_tracker import Command, ReferenceTracker
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory


@runtime_checkable
class Controller(Protocol):
    """A controller, which returns the inputs for every step of a model.

    It may also have

    - `reset()`, which is called before every run; a controller with an internal state needs it;
    - `targets` (N + 1, nx), the target states at steps 0 ... N. Errors, tables and figures then
      compare the motion with the targets instead of the reference, and after step N with the last
      target.
    """

    def command(self, k: int, x: np.ndarray) -> ArrayLike:
        """The inputs u (nu) for step k, from time k h to (k + 1) h, at the model's state x (nx).
        `model.configuration(x)` and `model.velocity(x)` return the parts of the state.
        """


ControllerLike: TypeAlias = Controller | Callable[..., Any]
"""A Controller, a function `f(k, x) -> u`, or a class. The class is called with the model if its
`__init__` has an argument without a default, and otherwise without arguments.
"""

POSITIONAL = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD


class WrongCommand(TypeError):
    """A controller returned something other than the inputs for a step."""


class ControllerFailed(RuntimeError):
    """The controller's code raised an error, or did not return inputs, at a `step`."""

    def __init__(self, reason: str, step: int | None = None):
        self.reason, self.step = reason, step
        where = "" if step is None else f" at step {step}"
        super().__init__(f"the controller failed{where}: {reason}")

    def at_step(self, step: int) -> ControllerFailed:
        """The same failure with the number of the step."""
        return ControllerFailed(self.reason, step)


@dataclass(frozen=True)
class _Function:
    """A function as a Controller."""

    command: Callable[[int, np.ndarray], ArrayLike]


def as_controller(controller: ControllerLike, model: DiscreteSystem) -> Controller:
    """The object, class or function as a Controller. Raises TypeError for other arguments."""
    is_class = isinstance(controller, type)
    if isinstance(controller, type):
        required = [
            parameter
            for parameter in inspect.signature(controller).parameters.values()
            if parameter.default is parameter.empty and parameter.kind in POSITIONAL
        ]
        if len(required) > 1:
            names = ", ".join(parameter.name for parameter in required)
            raise TypeError(
                f"the class {controller.__name__} must take the model or nothing, but needs "
                f"{names}; pass an instance instead"
            )
        controller = controller(model) if required else controller()
    if callable(command := getattr(controller, "command", None)):
        _require_step_and_state(command, f"{type(controller).__name__}.command")
        return controller  # type: ignore[return-value]
    if callable(controller):
        _require_step_and_state(
            controller, getattr(controller, "__name__", type(controller).__name__)
        )
        return _Function(controller)
    if is_class:
        raise TypeError(
            f"the class {type(controller).__name__} has no method command(k, x); it must return "
            f"the {model.nu} inputs of step k at state x"
        )
    raise TypeError(
        f"{model}: expected inputs or a controller: an object with `command(k, x)`, a class of "
        f"such objects, or a function of k and x that returns the {model.nu} inputs of a step; "
        f"got {controller!r}"
    )


def _require_step_and_state(command: Callable[..., Any], name: str) -> None:
    """Raise TypeError, with the file and the line, unless `command` takes a step and a state."""
    try:
        signature = inspect.signature(command)
    except (TypeError, ValueError):  # some builtins have no signature
        return
    try:
        # a call with two positional arguments, k and x, must be possible
        signature.bind(0, None)
    except TypeError as error:
        code = getattr(command, "__code__", None)
        where = f" ({code.co_filename}, line {code.co_firstlineno})" if code else ""
        raise TypeError(
            f"{name}{where} must take step k and state x, {name.rpartition('.')[2]}(k, x), but "
            f"takes ({', '.join(signature.parameters)})"
        ) from error


@dataclass(frozen=True)
class _RunMemory:
    """The memory of a ControllerTracker during a run; None before the first command."""

    predicted: None = None


class ControllerTracker(ReferenceTracker):
    """A Controller as a tracker. Its inputs are clipped to the limits. Errors are relative to the
    controller's `targets` or, if it has none, to a reference. Without either, errors are NaN, and
    `steps` is the length of a run.

    Raises TypeError if `controller` is not a controller, and ValueError if the targets have the
    wrong shape.
    """

    def __init__(
        self,
        dsys: DiscreteSystem,
        controller: ControllerLike,
        reference: Trajectory | None = None,
        limits: ArrayLike | None = None,
        hold: bool = False,
        steps: int | None = None,
    ):
        self.controller = as_controller(controller, dsys)
        targets = getattr(self.controller, "targets", None)
        self._has_targets = reference is not None or targets is not None
        if targets is not None:
            name = "targets" if reference is None else reference.name
            reference = _along(dsys, targets, name)
        elif reference is None:
            if steps is None:
                raise ValueError(
                    f"{dsys}: a controller without `targets` does not determine the length of a "
                    "run; pass the number of steps"
                )
            space = dsys.system.space
            # without targets, the reference only stores the length of the run
            rest = dsys.state(space.origin, np.zeros(space.nw))
            reference = _along(dsys, np.tile(rest, (steps + 1, 1)), "")
        super().__init__(dsys, reference, limits, hold)

    def with_reference(self, reference: Trajectory) -> NoReturn:
        """Raise ValueError: the controller does not take another reference."""
        raise ValueError(
            f"the controller {type(self.controller).__name__} determines its own motion and "
            f"accepts no other reference, such as {reference.name!r}; use lqr or mpc, or start a "
            "new run"
        )

    def error(self, k: int, x: ArrayLike) -> np.ndarray:
        """Tracking error `local(x_d, x)` (ndx) of state x (nx) at step k; NaN without targets."""
        return super().error(k, x) if self._has_targets else np.full(self.dsys.ndx, np.nan)

    def command(self, k: int, x: ArrayLike, memory: _RunMemory | None = None) -> Command:
        """Command for step k at state x (nx). Without the `memory` of the previous command, a new
        run begins. Raises WrongCommand, ValueError for inputs that are not finite, and any error
        that the controller raises.
        """
        # without memory, this is the first command of a run
        if memory is None and callable(reset := getattr(self.controller, "reset", None)):
            reset()
        u = self._inputs(k, self.controller.command(k, np.array(x, dtype=float)))
        lower, upper = self._bounds
        return Command(
            # u at a limit counts as saturated
            u.clip(lower, upper),
            (u <= lower) | (u >= upper),
            self.error(k, x),
            _RunMemory(),
        )

    def _inputs(self, k: int, returned: Any) -> np.ndarray:
        """The inputs (nu) that a controller returned for step k."""
        dsys = self.dsys
        try:
            u = np.array(returned, dtype=float)
        except (TypeError, ValueError):
            # a shape that the check below rejects
            u = np.empty((0, 0))
        # a number is accepted for a single input
        if returned is None or u.shape not in ((dsys.nu,), () if dsys.nu == 1 else (dsys.nu,)):
            got = "None" if returned is None else f"{returned!r} of shape {np.shape(returned)}"
            raise WrongCommand(
                f"command({k}, x) must return {dsys.nu} input{'s' * (dsys.nu > 1)} "
                f"({', '.join(dsys.inputs)}), got "
                f"{got}"
            )
        if not np.isfinite(u).all():
            raise ValueError(f"command({k}, x) returned {u}, but inputs must be finite")
        return u.reshape(dsys.nu)


def _along(dsys: DiscreteSystem, targets: ArrayLike, name: str) -> Trajectory:
    """A reference with the target states and with idle inputs."""
    states = np.array(targets, dtype=float)
    if states.ndim != 2 or not len(states) or states.shape[1] != dsys.nx:
        raise ValueError(
            f"{dsys}: targets must have shape (steps + 1, {dsys.nx}), got {states.shape}"
        )
    inputs = np.tile(dsys.idle(states[0]), (len(states) - 1, 1))
    return Trajectory(dsys.h, states, inputs, dsys.state_names, dsys.inputs, name, dsys)
