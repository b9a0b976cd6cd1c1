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

    def allocate_workspace(self) -> np.ndarray:
        """Allocate the workspace of a step, which must exist as long as the loop runs."""
        size = library()["nh_loop_room"]
        size.restype = ctypes.c_longlong
        workspace = np.empty(size(ctypes.byref(self)))
        self.room = workspace.ctypes.data
        return workspace


STEPS = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.POINTER(LoopData),
    ctypes.POINTER(ctypes.c_longlong),
    ctypes.c_longlong,
)
"""The type of a native function that releases the interpreter lock during a call."""


@dataclass(frozen=True)
class FeedbackLaw:
    """The feedback law `u = clip(feedforward - K local(target, x) - K_d d, limits)` for the N
    steps of a reference.

    Shapes: `targets` (N + 1, nx), `feedforward` (N, nu), `K` (N, nu, ndx), `K_d` (N, nu, nrho) and
    `limits` (nu, 2). `K_d` is None if no disturbance d is estimated; `gain` is the gain of the
    estimator. `impulses` (N + 1, n_holonomic_constraints) are the constraint impulses of the
    targets, or None if there are no holonomic constraints.

    If `hold` is true, the last gain and the last target remain in use after the last step.
    Otherwise, forces are zero and prescribed coordinates do not move. Damping after the end of the
    reference is not part of this law.
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
        # the inputs of a reference are not clipped
        free = np.tile([-np.inf, np.inf], (len(self.limits), 1))
        return replace(self, K=np.zeros_like(self.K), K_d=None, limits=free, hold=False)

    def data(self, model: DiscreteSystem, native: NativeSystem) -> LawData:
        """The law for native loops."""
        arrays = self.targets, self.feedforward, self.K, self.K_d, self.impulses, self.limits
        buffers = [None if a is None else np.ascontiguousarray(a, dtype=float) for a in arrays]
        targets, feedforward, K, K_d, impulses, limits = (
            None if a is None else address(a) for a in buffers
        )
        data = LawData(
            local=native.local,
            retract=native.retract,
            targets=targets,
            feedforward=feedforward,
            K=K,
            K_d=K_d,
            impulses=impulses,
            limits=limits,
            length=len(self.feedforward),
            hold=self.hold,
            ndx=model.ndx,
            nv=model.system.space.nv,
            n_disturbance=model.system.nrho,
            gain=self.gain,
        )
        data.buffers = buffers  # the arrays must exist as long as their addresses are used
        return data


def matrix_vector_product(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The product `a x` (m) of a (m, n) and x (n). Terms are added in the order of their indices,
    as in native loops, so not even the last bit of the result depends on the BLAS library.
    """
    return np.add.accumulate(a * x, axis=1)[:, -1] if len(x) else np.zeros(len(a))


def native_steps() -> Any:
    """The native function nh_closed_loop; other threads can run during a call."""
    return STEPS(("nh_closed_loop", library()))
