"""One step each from many states, on all processors."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.rollout import processors
from nh_control.discrete.native_abi import address
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.numerics.library import library

BLOCK = 256
"""Smallest number of steps for a further thread."""

_STEPS = ctypes.CFUNCTYPE(
    None,
    ctypes.c_void_p,
    ctypes.c_longlong,
    *(ctypes.c_void_p,) * 4,
)
"""A function type whose calls let other threads run."""


def step_all(
    dsys: DiscreteSystem, x: ArrayLike, u: ArrayLike
) -> tuple[np.ndarray, dict[int, Exception]]:
    """The states (N, nx) after a step from each of the states x (N, nx) under the inputs u (N,
    nu), and the errors of failed steps by their rows, whose states are NaN. The results equal
    `DiscreteSystem.step` to the bit. Raises ValueError for other shapes.
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
        dsys.native()  # made before there are threads
        parts = (np.array_split(a, count) for a in (states, inputs, after, statuses))
        list(_pool(count).map(_native_steps, [dsys] * count, *parts))
    failures: dict[int, Exception] = {}
    for row in np.flatnonzero(statuses):  # one that failed may have a solution from another start
        try:
            after[row] = dsys.step(states[row], inputs[row])
        except (StepFailed, ValueError) as failure:
            after[row], failures[int(row)] = np.nan, failure
    return after, failures


def _native_steps(
    dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray, x1: np.ndarray, statuses: np.ndarray
) -> None:
    """Steps of the rows, with this thread's arrays."""
    native = dsys.native()
    arrays = (address(array) for array in (x, u, x1, statuses))
    _STEPS(("nh_steps", library()))(ctypes.byref(native.stepper), len(x), *arrays)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that stay, with their arrays."""
    return ThreadPoolExecutor(threads)
