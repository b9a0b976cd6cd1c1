"""Simulation of whole trajectories, with all steps in one native call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.native_abi import StepperData
from nh_control.discrete.results import StepFailed
from nh_control.discrete.workspace import Workspace
from nh_control.numerics import newton
from nh_control.numerics.library import library

CHUNK = 20_000
"""Number of steps in one native call. Python handles interrupts between calls."""

_SIMULATE = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.POINTER(StepperData),
    ctypes.POINTER(ctypes.c_longlong),
    ctypes.c_longlong,
    ctypes.c_longlong,
    *(ctypes.c_void_p,) * 3,
)
"""A function type that lets other threads run during a call, unlike that of `ctypes.PyDLL`."""


def input_rows(where: Any, inputs: ArrayLike | int, steps: int | None, every: int) -> np.ndarray:
    """Inputs (N, nu) for the discrete system `where`, each applied for `every` steps. `inputs` is
    a table, one input (nu) for all `steps`, or, for a system without inputs, the number of steps.
    For a system with one input, it may also be a vector (N) or a number.

    Raises ValueError for a wrong shape or number.
    """
    if every < 1:
        raise ValueError(f"{where}: every must be at least 1, got {every}")
    if isinstance(inputs, int | np.integer):
        if steps is not None:
            raise ValueError(f"{where}: the number of steps is ambiguous, {inputs} and {steps}")
        steps, inputs = int(inputs), ()
    if steps is not None and steps < 0:
        raise ValueError(f"{where}: the number of steps must be 0 or more, got {steps}")
    if steps is not None and where.nu and np.size(inputs) == 0:
        zeros = ", ".join(["0.0"] * where.nu)
        raise ValueError(
            f"{where} has {where.nu} inputs: pass one input for all {steps} steps, such as "
            f"[{zeros}], or a table ({steps}, {where.nu})"
        )
    u = np.array(inputs, dtype=float, order="C")  # in the layout that native code reads
    expected = (where.nu,) if steps is not None else ("N", where.nu)
    # vectors (N) and scalars stand for (N, 1) and (1,)
    if where.nu == 1 and u.ndim == len(expected) - 1:
        u = u[..., None]
    if u.ndim != len(expected) or u.shape[-1] != where.nu:
        shape = f"({', '.join(map(str, expected))}{',' if len(expected) == 1 else ''})"
        how = "one for all steps, " if steps is not None else ""
        raise ValueError(f"{where}: inputs must have shape {shape}, {how}got {u.shape}")
    if steps is None:
        return u
    if steps % every:
        raise ValueError(f"{where}: steps must be a multiple of every = {every}, got {steps}")
    return np.tile(u, (steps // every, 1))


def advance(
    simulate: Callable[..., tuple[int, int]],
    step: Callable[[np.ndarray, np.ndarray], np.ndarray],
    work: Workspace,
    table: np.ndarray,
    inputs: np.ndarray,
    every: int,
) -> tuple[int, StepFailed | ValueError | None]:
    """Write the states after inputs (N, nu), each applied for `every` steps from the state
    table[0], into table[1:], using `simulate(work, inputs, every, states)`. If `simulate` fails,
    `step(x, u)` takes over for one row. Returns the number of steps and, if they stopped early,
    the error.
    """
    row = 0
    while row < len(inputs):
        work.x[:] = table[row]
        _, done = simulate(work, inputs[row:], every, table[row + 1 :])
        row += done // every
        if row < len(inputs):  # another initial guess may lead to a solution
            try:
                table[row + 1] = _steps(step, table[row], inputs[row], every, row * every)
            except StepFailed as failure:
                return row * every if failure.step is None else failure.step, failure
            except ValueError as problem:
                return row * every, problem
            row += 1
    return every * len(inputs), None


def _steps(
    step: Callable[[np.ndarray, np.ndarray], np.ndarray],
    x: np.ndarray,
    u: np.ndarray,
    count: int,
    first: int,
) -> np.ndarray:
    """The state after `count` steps under one input. The first step has the number `first`."""
    for k in range(first, first + count):
        try:
            x = step(x, u)
        except StepFailed as failure:
            raise failure.at_step(k) from None
    return x


def simulate(
    stepper: StepperData,
    inputs: np.ndarray,
    every: int,
    states: np.ndarray,
    extrapolate: bool = False,
) -> tuple[int, int]:
    """Take steps from stepper.x under inputs (N, nu), each applied for `every` steps, and write
    the states (N, nx). With `extrapolate`, each step starts from the unknowns of the three before
    it. Returns a status and the number of steps.
    """
    done, routine = ctypes.c_longlong(0), _routine()
    # the unknowns of the last steps belong to this run alone
    history = np.empty((3, stepper.nz)) if extrapolate else None
    at = None if history is None else history.ctypes.data
    # run in chunks so that Python can handle signals between them
    for end in _ends(every * len(inputs)):
        status = routine(stepper, done, end, every, inputs.ctypes.data, states.ctypes.data, at)
        if status != newton.CONVERGED:
            return status, done.value
    return newton.CONVERGED, done.value


@cache
def _routine() -> Any:
    return _SIMULATE(("nh_simulate", library()))


def _ends(steps: int) -> Iterator[int]:
    yield from range(CHUNK, steps, CHUNK)
    yield steps
