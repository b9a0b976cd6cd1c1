"""The steps of an `MpcTracker` in native closed loops."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from nh_control.control.optimal.mpc import MpcTracker
from nh_control.control.optimal.plan import KEPT, Plan
from nh_control.discrete.native_abi import NativeSystem, address


class TrackingData(ctypes.Structure):
    """`struct tracking` of tracking.c."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("horizon", "table", "disturbed")),
        *((name, ctypes.c_longlong) for name in ("n_rows", "n_disturbed", "n_positions")),
        *((name, ctypes.c_longlong) for name in ("n_momenta", "iterations")),
        ("h", ctypes.c_double),
        *((name, ctypes.c_void_p) for name in (*KEPT, "K")),
    ]


class NativeTracking:
    """The memory of an `MpcTracker`, and its command, for the native loop of one thread. A step
    that needs more than a real-time iteration of the last step's plan is Python's.
    """

    def __init__(self, tracker: MpcTracker, native: NativeSystem):
        d, table = tracker.dsys, np.ascontiguousarray(tracker.parameters.table)
        self._tracker, self._plan = tracker, Plan(-1, np.zeros(d.system.nrho))
        self._d, self._predicted = np.zeros(d.system.nrho), np.zeros(d.nx)
        self._stage = np.zeros(1, dtype=np.int64)
        self.arrays = self._d, self._predicted, self._stage
        disturbed = np.array(tracker.parameters.disturbed, dtype=np.int64)
        with tracker.solver() as solver:
            self._kept = {name: np.zeros(solver.array(name).shape) for name in (*KEPT, "K")}
        self._data = TrackingData(
            *(None, address(table), address(disturbed)),
            *(len(table), len(disturbed), d.system.space.nv, d.system.nrho, tracker.iterations),
            d.h,
            *(address(array) for array in self._kept.values()),
        )
        law = replace(tracker.fallback.law, K_d=None, limits=tracker.limits)
        self.law = law.data(d, native)
        self.law.controller = ctypes.addressof(self._data)
        self._alive = table, disturbed

    @contextmanager
    def steps_from(self, memory: Any, k: int) -> Iterator[bool]:
        """A context of native steps from step k on after this memory; yields if it is possible."""
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
        self._plan, self._stage[0] = memory, 2
        self._d[:], self._predicted[:] = memory.disturbance, memory.predicted
        for name, array in (*memory.arrays.items(), ("K", memory.gains)):
            self._kept[name][...] = array
        with self._tracker.solver() as solver:
            self._data.horizon = ctypes.addressof(solver.record)
            self.law.command = solver.address("nh_ocp_command")
            self.law.keep = solver.address("nh_ocp_keep")
            solver.record.mu = solver.record.mu_end = self._tracker.barrier
            yield True
            solver.routines.check()

    def memory(self, k: int) -> Plan:
        """The memory after the step before k."""
        arrays = {name: array.copy() for name, array in self._kept.items()}
        return replace(
            self._plan,
            k=k - 1,
            disturbance=self._d.copy(),
            predicted=self._predicted.copy(),
            gains=arrays.pop("K"),
            arrays=arrays,
        )
