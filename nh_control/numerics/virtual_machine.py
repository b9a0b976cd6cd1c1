"""Functions for native code: generated C code, or CasADi's virtual machine if there is no compiled
code.
"""

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
"""CasADi's function behind `Function.buffer()`, `casadi::_function_buffer_eval(void *)`."""


class FunctionData(ctypes.Structure):
    """`struct function` of function.h. `references` must live as long as native code calls the
    function.
    """

    _fields_ = [("call", ctypes.c_void_p), ("self", ctypes.c_void_p)]
    references: Any = None

    def use_compiled(self, address: int) -> None:
        """Let all copies of this virtual function call the compiled routine at `address`,
        beginning with the next call. The compiled routine computes the same bits.
        """
        self.references.record.compiled = address


class _VirtualFunctionData(ctypes.Structure):
    """`struct virtual_function` of virtual_machine.c."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("compiled", "evaluate", "buffer")),
        *((name, ctypes.c_longlong) for name in ("n_in", "n_out")),
        *((name, ctypes.c_void_p) for name in ("sizes", "arrays")),
    ]


class _References(NamedTuple):
    """The objects to which a virtual function refers."""

    function: ca.Function
    buffer: Any
    arrays: list[np.ndarray]
    sizes: np.ndarray
    places: np.ndarray
    record: _VirtualFunctionData


def virtual_function(f: ca.Function) -> FunctionData:
    """A function for native code in one thread that the virtual machine evaluates. The outputs of
    f must be dense and stored row by row (see `generated_c.by_rows`).
    """
    buffer: Any = f.buffer()[0]  # CasADi's type hints require sizes, which a memoryview has
    ins, outs = range(f.n_in()), range(f.n_out())
    sizes = [f.numel_in(k) for k in ins] + [f.numel_out(k) for k in outs]
    arrays = [np.zeros(max(size, 1)) for size in sizes]
    for k in ins:
        buffer.set_arg(k, arrays[k][: sizes[k]].data)
    for k in outs:
        buffer.set_res(k, arrays[f.n_in() + k][: f.numel_out(k)].data)
    # native code copies arguments into these arrays, and results out of them
    numbers = np.array(sizes, dtype=np.int64)
    places = np.array([array.ctypes.data for array in arrays], dtype=np.uint64)
    record = _VirtualFunctionData(
        compiled=None,
        evaluate=_evaluate(),
        buffer=_address(buffer),
        n_in=f.n_in(),
        n_out=f.n_out(),
        sizes=numbers.ctypes.data,
        arrays=places.ctypes.data,
    )
    data = FunctionData(routine(library(), "nh_virtual"), ctypes.addressof(record))
    data.references = _References(f, buffer, arrays, numbers, places, record)
    return data


def routine(loaded: ctypes.CDLL, name: str) -> int:
    """The address of a routine in a library."""
    return ctypes.cast(loaded[name], ctypes.c_void_p).value or 0


@cache
def _evaluate() -> int:
    """The address of EVALUATE; raises OSError if CasADi does not export it."""
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
