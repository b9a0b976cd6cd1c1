"""One step from each of many states, computed on all processors."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.rollout import processors
from nh_control.discrete.lanes import LaneTables
from nh_control.discrete.native_abi import address
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.numerics.library import library

BLOCK = 256
"""Number of steps above which another thread is used."""

_STEPS = ctypes.CFUNCTYPE(
    None,
    ctypes.c_void_p,
    ctypes.c_longlong,
    *(ctypes.c_void_p,) * 4,
)
"""The type of a native function that releases the interpreter lock during a call."""


def step_all(
    dsys: DiscreteSystem, x: ArrayLike, u: ArrayLike
) -> tuple[np.ndarray, dict[int, Exception]]:
    """Step each of the states x (N, nx) under the inputs u (N, nu).

    Returns the next states (N, nx) and, by row, the exceptions of failed steps; the states of
    failed rows are NaN. The results are bitwise those of `DiscreteSystem.step`. Raises ValueError
    for wrong shapes.
    """
    states = np.array(x, dtype=float, order="C", ndmin=2)
    inputs = np.array(u, dtype=float, order="C", ndmin=2)
    if states.shape[1:] != (dsys.nx,) or inputs.shape != (len(states), dsys.nu):
        raise ValueError(
            f"{dsys}: expected states (N, {dsys.nx}) and inputs (N, {dsys.nu}), got shapes "
            f"{states.shape} and {inputs.shape}"
        )
    after, statuses = np.empty_like(states), np.ones(len(states), dtype=np.int32)
    count = min(processors(), -(-len(states) // BLOCK)) if len(states) > BLOCK else 1
    if count == 1:
        _native_steps(dsys, states, inputs, after, statuses)
    else:
        dsys.native(), dsys.vectorization  # noqa: B018  (created before the threads start)
        # contiguous slices of equal size, one per thread
        size = -(-len(states) // count)
        slices = [slice(i, i + size) for i in range(0, len(states), size)]
        parts = ([a[rows] for rows in slices] for a in (states, inputs, after, statuses))
        list(_pool(count).map(_native_steps, [dsys] * count, *parts))
    failures: dict[int, Exception] = {}
    for row in np.flatnonzero(statuses):  # `step` also tries other initial guesses
        try:
            after[row] = dsys.step(states[row], inputs[row])
        except (StepFailed, ValueError) as failure:
            after[row], failures[int(row)] = np.nan, failure
    return after, failures


def _native_steps(
    dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray, x1: np.ndarray, statuses: np.ndarray
) -> None:
    """Step the rows in this thread: several at once if there is vectorized code, and the remaining
    rows one after another.
    """
    done, parameters = np.zeros(len(x), dtype=np.int64), dsys.parameter_values[None]
    dsys.steps_in_lanes(LaneTables((0, 1), 1, parameters, u[:, None], x.copy(), x1[:, None], done))
    statuses[:] = 0
    if done.all():
        return
    rest = np.flatnonzero(done == 0)
    x_rest, u_rest, x1_rest, statuses_rest = x[rest], u[rest], x1[rest], statuses[rest]
    native = dsys.native()
    _STEPS(("nh_steps", library()))(
        ctypes.byref(native.stepper),
        len(rest),
        address(x_rest),
        address(u_rest),
        address(x1_rest),
        address(statuses_rest),
    )
    x1[rest], statuses[rest] = x1_rest, statuses_rest


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """A pool of threads, which keep their workspaces for later calls."""
    return ThreadPoolExecutor(threads)
