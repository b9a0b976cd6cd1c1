"""The arrays that a step uses."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.system_data import SystemData

Shapes = dict[str, tuple[int, ...] | np.ndarray | Callable[[], ctypes.Structure]]
"""The shapes of a workspace's arrays. An entry may also be an array that all threads read, or a
function that returns a structure for one thread.
"""


class Workspace:
    """One thread's arrays by name, and the `list` of their addresses in the same order."""

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
    """The step's data for native loops, available after first use."""
    generated: Workspace | None
    """The same arrays with the functions of a generated engine, available after first use."""
    products: Any
    """The products with the derivatives of the last step by `Engine.products`."""

    def __init__(self, shapes: Shapes, structures: dict[Any, Any] | None = None):
        """Make the arrays. The workspaces of one thread may share the `structures` of functions,
        which contain no numbers between two calls, by the routines that make them.
        """
        structures = {} if structures is None else structures
        self.stepper = self.generated = self.products = None
        addresses, self._private = list[int](), list[np.ndarray]()
        for name, shape in shapes.items():
            if callable(shape):
                if shape not in structures:
                    structures[shape] = shape()
                data = self.__dict__[name] = structures[shape]
                addresses.append(ctypes.addressof(data))
            else:
                array = shape if isinstance(shape, np.ndarray) else np.zeros(shape)
                # arrays that other threads read are never reset
                if array is not shape:
                    self._private.append(array)
                self.__dict__[name] = array
                addresses.append(array.ctypes.data)
        self.list = (ctypes.c_void_p * len(addresses))(*addresses)

    def reset(self) -> None:
        """Set the arrays to zero, except for those that all threads read."""
        for array in self._private:
            array.fill(0.0)


def assign(array: np.ndarray, value: ArrayLike, where: object, what: str) -> None:
    """Write a value into an array of the same shape; raises ValueError for any other shape."""
    shape = value.shape if type(value) is np.ndarray else np.shape(value)
    if shape != array.shape and (shape or array.shape != (1,)):  # a number fits (1,)
        raise ValueError(f"{where}: {what} must have shape {array.shape}, got {np.shape(value)}")
    array[...] = value
