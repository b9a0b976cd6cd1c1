"""Functions for native code: generated C, or CasADi's virtual machine, which compiles nothing."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from nh_control.numerics.library import library

EVALUATE = "_ZN6casadi21_function_buffer_evalEPv"
"""CasADi's entry point behind `Function.buffer()`, `casadi::_function_buffer_eval(void *)`."""


class FunctionData(ctypes.Structure):
    """`struct function` of function.h; `kept` must live as long as native code calls it."""

    _fields_ = [("call", ctypes.c_void_p), ("self", ctypes.c_void_p)]
    kept: Any = None

    def use_compiled(self, address: int) -> None:
        """Let all copies of this virtual function call the compiled routine at `address`, which
        computes the same bits, from their next call on.
        """
        self.kept.record.compiled = address


class _VirtualFunctionData(ctypes.Structure):
    """`struct virtual_function` of virtual_machine.c."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("compiled", "evaluate", "buffer")),
        *((name, ctypes.c_longlong) for name in ("n_in", "n_out")),
        *((name, ctypes.c_void_p) for name in ("sizes", "arrays")),
    ]


class _Kept(NamedTuple):
    """What a virtual function refers to."""

    function: ca.Function
    buffer: Any
    arrays: list[np.ndarray]
    sizes: np.ndarray
    places: np.ndarray
    record: _VirtualFunctionData


def virtual_function(f: ca.Function) -> FunctionData:
    """A function for native code of one thread that the virtual machine evaluates; outputs of f
    are dense and stored row by row, see `generated_c.by_rows`.
    """
    buffer: Any = f.buffer()[0]  # CasADi's type hints ask for sizes, which a memoryview has
    ins, outs = range(f.n_in()), range(f.n_out())
    sizes = [f.numel_in(k) for k in ins] + [f.numel_out(k) for k in outs]
    arrays = [np.zeros(max(size, 1)) for size in sizes]
    for k in ins:
        buffer.set_arg(k, arrays[k][: sizes[k]].data)
    for k in outs:
        buffer.set_res(k, arrays[f.n_in() + k][: f.numel_out(k)].data)
    numbers = np.array(sizes, dtype=np.int64)
    places = np.array([array.ctypes.data for array in arrays], dtype=np.uint64)
    record = _VirtualFunctionData(
        *(None, _evaluate(), _address(buffer), f.n_in(), f.n_out()),
        *(numbers.ctypes.data, places.ctypes.data),
    )
    data = FunctionData(routine(library(), "nh_virtual"), ctypes.addressof(record))
    data.kept = _Kept(f, buffer, arrays, numbers, places, record)
    return data


def routine(loaded: ctypes.CDLL, name: str) -> int:
    """The address of a routine of a library."""
    return ctypes.cast(loaded[name], ctypes.c_void_p).value or 0


@cache
def _evaluate() -> int:
    """The address of EVALUATE; raises OSError where CasADi has none."""
    for path in sorted(Path(ca.__file__).parent.glob("libcasadi.so*")):
        try:
            return routine(ctypes.CDLL(str(path)), EVALUATE)
        except AttributeError:
            continue
    raise OSError(
        f"CasADi {version('casadi')} does not export {EVALUATE}, by which native code calls its "
        "virtual machine: install a version that setup.py allows, casadi >= 3.6"
    )


def _address(buffer: Any) -> int:
    """The address of a `casadi.FunctionBuffer`."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer(buffer._self(), None))
