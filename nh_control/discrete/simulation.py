"""Whole trajectories: the inputs of all steps, and the steps in one native call."""

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
"""Steps of one native call, between which Python sees interrupts."""

_SIMULATE = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.POINTER(StepperData),
    *(ctypes.POINTER(ctypes.c_longlong), ctypes.c_longlong, ctypes.c_longlong),
    *(ctypes.c_void_p, ctypes.c_void_p),
)
"""A function type whose calls let other threads run; calls of `ctypes.PyDLL` do not."""


def input_rows(where: Any, inputs: ArrayLike | int, steps: int | None, every: int) -> np.ndarray:
    """Inputs (N, nu) of the discrete system `where`, each held for `every` steps. They are given
    as a table, as one input (nu) for all `steps`, or, without inputs, as the number of steps. A
    single input may be given as (N) or as a number.

    Raises ValueError for a wrong shape or number.
    """
    if every < 1:
        raise ValueError(f"{where}: every must be at least 1, got {every}")
    if isinstance(inputs, int | np.integer):
        if steps is not None:
            raise ValueError(f"{where}: the number of steps is given twice, {inputs} and {steps}")
        steps, inputs = int(inputs), ()
    u = np.array(inputs, dtype=float, order="C")  # as native code reads it
    wanted = (where.nu,) if steps is not None else ("N", where.nu)
    if where.nu == 1 and u.ndim == len(wanted) - 1:
        u = u[..., None]
    if u.ndim != len(wanted) or u.shape[-1] != where.nu:
        shape = f"({', '.join(map(str, wanted))}{',' if len(wanted) == 1 else ''})"
        how = "one for all steps, " if steps is not None else ""
        raise ValueError(f"{where}: inputs must have shape {shape}, {how}got {u.shape}")
    if steps is None:
        return u
    if steps < 0 or steps % every:
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
    """Write the states after inputs (N, nu), each held for `every` steps, into table[1:] from
    the state table[0] by `simulate(work, inputs, every, states)`; `step(x, u)` takes over where
    that fails. Returns the number of steps, and the error that ended them.
    """
    row = 0
    while row < len(inputs):
        work.x[:] = table[row]
        _, done = simulate(work, inputs[row:], every, table[row + 1 :])
        row += done // every
        if row < len(inputs):  # a step that failed may have a solution from another start
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
    """The state after `count` steps under one input, the first of number `first`."""
    for k in range(first, first + count):
        try:
            x = step(x, u)
        except StepFailed as failure:
            raise failure.at_step(k) from None
    return x


def simulate(
    stepper: StepperData, inputs: np.ndarray, every: int, states: np.ndarray
) -> tuple[int, int]:
    """A status and the number of steps from stepper.x under inputs (N, nu), each held for `every`
    steps, whose states (N, nx) are written.
    """
    done, routine = ctypes.c_longlong(0), _routine()
    for end in _ends(every * len(inputs)):
        status = routine(stepper, done, end, every, inputs.ctypes.data, states.ctypes.data)
        if status != newton.CONVERGED:
            return status, done.value
    return newton.CONVERGED, done.value


@cache
def _routine() -> Any:
    return _SIMULATE(("nh_simulate", library()))


def _ends(steps: int) -> Iterator[int]:
    yield from range(CHUNK, steps, CHUNK)
    yield steps
