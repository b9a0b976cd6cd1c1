"""The feedback law of a tracker as arrays, for closed loops in native code."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from nh_control.discrete.native_abi import MotionData, NativeSystem, StepperData, address
from nh_control.discrete.system import DiscreteSystem
from nh_control.numerics.library import library
from nh_control.numerics.virtual_machine import FunctionData


class LawData(ctypes.Structure):
    """`struct law` of closed_loop.c."""

    _fields_ = [
        *((name, FunctionData) for name in ("local", "retract")),
        *((name, ctypes.c_void_p) for name in ("targets", "feedforward", "K", "K_d")),
        *((name, ctypes.c_void_p) for name in ("impulses", "limits")),
        *((name, ctypes.c_longlong) for name in ("length", "hold", "ndx", "nv", "n_disturbance")),
        ("gain", ctypes.c_double),
        *((name, ctypes.c_void_p) for name in ("command", "keep", "controller")),
    ]


class LoopData(ctypes.Structure):
    """`struct loop` of closed_loop.c."""

    _fields_ = [
        *((name, ctypes.POINTER(StepperData)) for name in ("plant", "model")),
        *((name, ctypes.POINTER(MotionData)) for name in ("plant_motion", "model_motion")),
        ("law", ctypes.POINTER(LawData)),
        ("state", FunctionData),
        *((name, ctypes.c_void_p) for name in ("h", "no_forces", "external")),
        *((name, ctypes.c_longlong) for name in ("substeps", "n_external", "every")),
        *((name, ctypes.c_void_p) for name in ("x", "disturbance", "predicted", "stage")),
        *((name, ctypes.c_void_p) for name in ("states", "inputs", "errors")),
        *((name, ctypes.c_void_p) for name in ("plant_states", "before", "saturated", "room")),
    ]

    def make_room(self) -> np.ndarray:
        """The memory of a step, which must live as long as the loop runs."""
        size = library()["nh_loop_room"]
        size.restype = ctypes.c_longlong
        memory = np.empty(size(ctypes.byref(self)))
        self.room = memory.ctypes.data
        return memory


STEPS = ctypes.CFUNCTYPE(
    ctypes.c_int,
    *(ctypes.POINTER(LoopData), ctypes.POINTER(ctypes.c_longlong), ctypes.c_longlong),
)
"""A function type whose calls let other threads run."""


@dataclass(frozen=True)
class FeedbackLaw:
    """The law `u = clip(feedforward - K local(target, x) - K_d d, limits)` for the N steps of a
    reference.

    Shapes: `targets` (N + 1, nx), `feedforward` (N, nu), `K` (N, nu, ndx), `K_d` (N, nu, nrho) and
    `limits` (nu, 2). `K_d` is None if no disturbance d is estimated; `gain` is the estimator's.
    `impulses` (N + 1, n_holonomic_constraints) are the constraint impulses of the targets, None
    without holonomic constraints.

    After the last step, with `hold`, the last gain and target stay. Without it, forces are zero
    and prescribed coordinates stay. Damping after the end is not part of this law.
    """

    targets: np.ndarray
    feedforward: np.ndarray
    K: np.ndarray
    K_d: np.ndarray | None
    impulses: np.ndarray | None
    limits: np.ndarray
    hold: bool
    gain: float

    @cached_property
    def feedforward_alone(self) -> FeedbackLaw:
        """The law without feedback: the inputs of the reference."""
        free = np.tile([-np.inf, np.inf], (len(self.limits), 1))
        return replace(self, K=np.zeros_like(self.K), K_d=None, limits=free, hold=False)

    def data(self, model: DiscreteSystem, native: NativeSystem) -> LawData:
        """The law for native loops."""
        arrays = self.targets, self.feedforward, self.K, self.K_d, self.impulses, self.limits
        kept = [None if a is None else np.ascontiguousarray(a, dtype=float) for a in arrays]
        places = (None if a is None else address(a) for a in kept)
        sizes = len(self.feedforward), self.hold, model.ndx, model.system.space.nv
        data = LawData(native.local, native.retract, *places, *sizes, model.system.nrho, self.gain)
        data.kept = kept  # the arrays must live as long as their addresses are used
        return data


def matrix_vector_product(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """`a x` (m) for a (m, n), with sums in the order of the indices as in native loops; so the
    bits do not depend on the BLAS library.
    """
    return np.add.accumulate(a * x, axis=1)[:, -1] if len(x) else np.zeros(len(a))


def native_steps() -> Any:
    """nh_closed_loop, which lets other threads run."""
    return STEPS(("nh_closed_loop", library()))
