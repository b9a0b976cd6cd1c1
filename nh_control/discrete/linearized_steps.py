"""Derivatives of many steps, with all steps in one native call."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.native_abi import StepperData, address
from nh_control.numerics.library import library

CHUNK = 1_000
"""Number of steps in one native call. Python handles interrupts between calls."""

_LINEARIZE_STEPS = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.POINTER(StepperData),
    ctypes.c_longlong,
    ctypes.POINTER(ctypes.c_longlong),
    ctypes.c_longlong,
    *(ctypes.c_void_p,) * 5,
)
"""A function type that lets other threads run during a call, unlike that of `ctypes.PyDLL`."""


class LinearizedSteps(NamedTuple):
    """The derivatives A (N, ndx, ndx) and B (N, ndx, nu) of N steps, and the states x1 (N, nx)
    after them.
    """

    A: np.ndarray
    B: np.ndarray
    x1: np.ndarray


def step_rows(where: Any, x: ArrayLike, u: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """States x (N, nx) and inputs u (N, nu) of the discrete system `where`, in the layout that
    native code reads. Raises ValueError for a wrong shape.
    """
    states, inputs = (np.array(table, dtype=float, order="C") for table in (x, u))
    sizes = states.shape[1:], inputs.shape[1:]
    if sizes != ((where.nx,), (where.nu,)) or len(states) != len(inputs):
        raise ValueError(
            f"{where}: expected states (N, {where.nx}) and inputs (N, {where.nu}), got shapes "
            f"{states.shape} and {inputs.shape}"
        )
    return states, inputs


def linearize_rows(
    linearize: Any,
    stepper: StepperData,
    first: int,
    x: np.ndarray,
    u: np.ndarray,
    out: LinearizedSteps,
) -> int:
    """Linearize the steps from the rows `first`, first + 1, ... of x under those of u into `out`
    by a native routine, up to the first step that fails. Returns its row, or N.
    """
    done, arrays = ctypes.c_longlong(first), [address(table) for table in (x, u, *out)]
    while done.value < len(x):
        end = min(done.value + CHUNK, len(x))
        _routine()(linearize, stepper, out.A.shape[2], done, end, *arrays)
        if done.value < end:
            break
    return done.value


@cache
def _routine() -> Any:
    return _LINEARIZE_STEPS(("nh_linearize_steps", library()))
