"""Steps several runs at once, one run in each lane of the processor's vectors."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from nh_control.discrete.native_abi import StepperData
from nh_control.discrete.native_text import definitions, macros
from nh_control.numerics.amalgamation import amalgamation
from nh_control.numerics.compiled import Native, compiler
from nh_control.numerics.instructions import untranslated
from nh_control.numerics.lane_code import lane_source
from nh_control.numerics.library import processor_features, releasing_library

FUNCTIONS = ("start", "residual", "jacobian", "readout")
MAX_UNKNOWNS = 64
"""Maximum number of unknowns in a step, because the matrices for all lanes are on the stack."""
LANES = 8
"""Maximum number of lanes."""
FEWEST = 3
"""Minimum number of runs for which stepping all lanes at once is faster."""
FLAGS = ("-Wno-psabi", "-fno-math-errno")
WIDE, NARROW = ("avx512f", "avx512vl", "avx512dq"), ("avx2",)
"""Features of x86-64 processors with vectors of 8 and 4 numbers."""


class Vectorization(NamedTuple):
    """The number of runs that one native call steps at once, and the reason if this number
    is 1.
    """

    lanes: int
    reason: str = ""

    def __str__(self) -> str:
        if self.lanes > 1:
            return f"{self.lanes} runs at once"
        return f"one run after another: {self.reason}"


class _Runs(ctypes.Structure):
    """`struct lane_runs` of lane_step.c."""

    _fields_ = [
        *((name, ctypes.c_longlong) for name in ("runs", "begin", "end", "every")),
        *((name, ctypes.c_longlong) for name in ("p_stride", "input_stride", "state_stride")),
        *((name, ctypes.c_void_p) for name in ("p", "inputs", "x", "states", "done")),
    ]


@dataclass(frozen=True)
class LaneTables:
    """The tables for R runs. `steps` (first, end) is the range of steps to take. Each run whose
    step count in `done` (R) equals `first` advances from x (R, nx) under inputs (R or 1, rows,
    nu), each applied for `every` steps, with the parameters p (R or 1, n). It stops at `end` or at
    a failed step. x, states (R, rows, nx) and `done` are written. Every run's part of a table is
    contiguous.
    """

    steps: tuple[int, int]
    every: int
    p: np.ndarray
    inputs: np.ndarray
    x: np.ndarray
    states: np.ndarray
    done: np.ndarray

    @property
    def data(self) -> _Runs:
        """The tables as a structure for native code."""
        # strides in numbers; 0 lets all runs share one table
        runs, (begin, end) = len(self.x), self.steps
        return _Runs(
            runs=runs,
            begin=begin,
            end=end,
            every=self.every,
            p_stride=_stride(self.p) if len(self.p) == runs else 0,
            input_stride=_stride(self.inputs) if len(self.inputs) == runs else 0,
            state_stride=_stride(self.states),
            p=self.p.ctypes.data,
            inputs=self.inputs.ctypes.data,
            x=self.x.ctypes.data,
            states=self.states.ctypes.data,
            done=self.done.ctypes.data,
        )


def _stride(table: np.ndarray) -> int:
    """The distance between consecutive runs, in numbers."""
    return table.strides[0] // table.itemsize


_SIMULATE = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(StepperData), ctypes.c_void_p, ctypes.POINTER(_Runs)
)
"""A function type that lets other threads run during a call."""


def obstacle(functions: Sequence[ca.Function], sizes: Mapping[str, int], contacts: bool) -> str:
    """The reason why steps with these functions and sizes cannot run in lanes; "" if they can."""
    if contacts:
        return "its contacts are solved by a separate iteration"
    if sizes["N_RANK"] < sizes["N_Z"]:
        return "redundant constraints need complete pivoting"
    if sizes["N_Z"] > MAX_UNKNOWNS:
        return f"a step has {sizes['N_Z']} unknowns, more than {MAX_UNKNOWNS}"
    return next(filter(None, map(untranslated, functions)), "")


class LaneCode:
    """Code that steps as many runs at once as the processor has lanes. It is compiled in the
    background. The results are bitwise equal to those of single steps.
    """

    def __init__(
        self,
        name: str,
        functions: Sequence[ca.Function],
        sizes: Mapping[str, int],
        shapes: Sequence[str],
    ):
        features = processor_features()
        # without these features, the compiler splits vectors of 4 numbers
        vectors = next((names for names in (WIDE, NARROW) if {*names} <= features), ())
        self.lanes = 8 if vectors == WIDE else 4
        headers = {
            "lane_functions.h": "",
            "lane_system.h": macros(sizes),
            "definitions.h": definitions(shapes),
        }
        text = amalgamation(["lane_step.c"], headers)
        flags = (*FLAGS, f"-DLANES={self.lanes}", *(f"-m{name}" for name in vectors))
        if vectors == WIDE:
            flags += ("-mprefer-vector-width=512",)
        self._native = Native(name, functions, text, flags, lane_source)

    @property
    def vectorization(self) -> Vectorization:
        """The number of runs that the next call steps at once."""
        if self._native.library is not None:
            return Vectorization(self.lanes)
        missing = compiler() is None
        return Vectorization(1, "there is no C compiler" if missing else "it is being compiled")

    def simulate(self, stepper: StepperData, tables: LaneTables) -> None:
        """Step the runs in the tables. Runs that cannot finish in their lane use this thread's
        stepper. Until the code is compiled, this method does nothing.
        """
        library: Any = self._native.library
        if library is not None:
            substeps = ctypes.cast(releasing_library()["nh_substeps"], ctypes.c_void_p)
            _SIMULATE(("nh_simulate_lanes", library))(stepper, substeps, tables.data)
