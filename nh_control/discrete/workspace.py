"""The arrays in which a step is computed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.system_data import SystemData

Shapes = dict[str, tuple[int, ...] | np.ndarray | Callable[[], ctypes.Structure]]
"""Shapes of a workspace's arrays, arrays themselves that all threads read, and what makes the
functions of one thread.
"""


class Workspace:
    """One thread's arrays by name, and `list`, the addresses of all of them in their order."""

    x: np.ndarray
    u: np.ndarray
    p: np.ndarray
    z: np.ndarray
    x1: np.ndarray
    warm: np.ndarray
    sizes: np.ndarray
    info: np.ndarray
    r_z: np.ndarray
    factors: np.ndarray
    pivots: np.ndarray
    dz: np.ndarray
    ab: np.ndarray
    g_z: np.ndarray
    lam: np.ndarray
    lam_z: np.ndarray
    mu: np.ndarray
    full: np.ndarray
    g: np.ndarray
    half: np.ndarray
    hessian: np.ndarray
    system: SystemData
    room: np.ndarray
    jacobians: np.ndarray
    stepper: Any
    """The step for native loops, once it is used."""
    generated: Workspace | None
    """The same arrays with the functions of a generated engine, once it is used."""

    def __init__(self, shapes: Shapes):
        self.stepper = self.generated = None
        addresses = list[int]()
        for name, shape in shapes.items():
            if callable(shape):
                data = self.__dict__[name] = shape()
                addresses.append(ctypes.addressof(data))
            else:
                array = shape if isinstance(shape, np.ndarray) else np.zeros(shape)
                self.__dict__[name] = array
                addresses.append(array.ctypes.data)
        self.list = (ctypes.c_void_p * len(addresses))(*addresses)


def assign(array: np.ndarray, value: ArrayLike, where: object, what: str) -> None:
    """Write a value into an array of the same shape; raises ValueError for another one."""
    shape = value.shape if type(value) is np.ndarray else np.shape(value)
    if shape != array.shape and (shape or array.shape != (1,)):  # a number will do for one
        raise ValueError(f"{where}: {what} must have shape {array.shape}, got {np.shape(value)}")
    array[...] = value
