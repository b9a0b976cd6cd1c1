"""The steps of an `MpcTracker` in native closed loops."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from nh_control.control.optimal.mpc import MpcTracker
from nh_control.control.optimal.plan import PLAN_ARRAYS, Plan
from nh_control.discrete.native_abi import NativeSystem, address


class TrackingData(ctypes.Structure):
    """`struct tracking` of tracking.c."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("horizon", "table", "disturbed")),
        *((name, ctypes.c_longlong) for name in ("n_rows", "n_disturbed", "n_positions")),
        *((name, ctypes.c_longlong) for name in ("n_momenta", "iterations")),
        ("h", ctypes.c_double),
        *((name, ctypes.c_void_p) for name in (*PLAN_ARRAYS, "K")),
    ]


class NativeTracking:
    """The memory and the command of an `MpcTracker` for a native loop in one thread. A native step
    is one real-time iteration from the plan of the previous step; Python takes all other steps.
    """

    def __init__(self, tracker: MpcTracker, native: NativeSystem):
        d, table = tracker.dsys, np.ascontiguousarray(tracker.parameters.table)
        self._tracker, self._plan = tracker, Plan(-1, np.zeros(d.system.nrho))
        self._d, self._predicted = np.zeros(d.system.nrho), np.zeros(d.nx)
        self._stage = np.zeros(1, dtype=np.int64)
        self.arrays = self._d, self._predicted, self._stage
        disturbed = np.array(tracker.parameters.disturbed, dtype=np.int64)
        with tracker.solver() as solver:
            self._plan_arrays = {
                name: np.zeros(solver.array(name).shape) for name in (*PLAN_ARRAYS, "K")
            }
        self._data = TrackingData(
            table=address(table),
            disturbed=address(disturbed),
            n_rows=len(table),
            n_disturbed=len(disturbed),
            n_positions=d.system.space.nv,
            n_momenta=d.system.nrho,
            iterations=tracker.iterations,
            h=d.h,
            **{name: address(array) for name, array in self._plan_arrays.items()},
        )
        law = replace(tracker.fallback.law, K_d=None, limits=tracker.limits)
        self.law = law.data(d, native)
        self.law.controller = ctypes.addressof(self._data)
        # native code stores the addresses of these arrays
        self._alive = table, disturbed

    @contextmanager
    def steps_from(self, memory: Any, k: int) -> Iterator[bool]:
        """A context manager in which native steps continue from step k with the given memory. It
        yields whether native steps are possible.
        """
        possible = (
            isinstance(memory, Plan)
            and memory.k == k - 1
            and memory.age == 0
            and memory.predicted is not None
            and bool(memory.arrays)
        )
        if not possible:
            yield False
            return
        # stage 2: the disturbance and the predicted state are known
        self._plan, self._stage[0] = memory, 2
        self._d[:], self._predicted[:] = memory.disturbance, memory.predicted
        for name, array in (*memory.arrays.items(), ("K", memory.gains)):
            self._plan_arrays[name][...] = array
        with self._tracker.solver() as solver:
            self._data.horizon = ctypes.addressof(solver.record)
            self.law.command = solver.address("nh_ocp_command")
            self.law.keep = solver.address("nh_ocp_keep")
            solver.record.mu = solver.record.mu_end = self._tracker.barrier
            yield True
            solver.routines.check()

    def memory(self, k: int) -> Plan:
        """The memory at the end of step k - 1."""
        arrays = {name: array.copy() for name, array in self._plan_arrays.items()}
        return replace(
            self._plan,
            k=k - 1,
            disturbance=self._d.copy(),
            predicted=self._predicted.copy(),
            gains=arrays.pop("K"),
            arrays=arrays,
        )
