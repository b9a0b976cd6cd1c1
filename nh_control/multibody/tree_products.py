"""Products with the derivatives of a tree's step, in time linear in the number of bodies."""

from __future__ import annotations

import ctypes

import numpy as np

from nh_control.discrete.workspace import Shapes, Workspace
from nh_control.numerics.library import library

ARRAYS = ("x", "u", "p", "z")
"""Arrays of a step that its products read."""


class TreeProducts:
    """Products with [A B] and its transpose after a step (native/products.c). The factors are in a
    workspace of these products, so later steps do not change them.

    `shapes` are those of the step's workspace, of which this one has only a part: no dense
    matrices. `status` is one of the `newton` statuses.
    """

    def __init__(self, shapes: Shapes, step: Workspace, ndx: int, n_free: int):
        private: Shapes = {name: (0,) for name in shapes}
        private |= {name: step.__dict__[name].copy() for name in ARRAYS}
        # the model and the functions of joints, which the factorization calls, are shared
        private |= {"tree": step.__dict__["tree"], "system": lambda: step.system}
        private["memory"] = shapes["memory"]
        self._work = Workspace(private)
        self.ndx, self.nu, self._n_free = ndx, len(step.u), n_free
        self.status = library().tree_factor_products(self._work.list)

    def forward(self, vectors: np.ndarray) -> np.ndarray:
        """[A B] times `vectors` (ndx + nu, k)."""
        vectors = np.ascontiguousarray(vectors, dtype=float)
        count = vectors.shape[1]
        product, dz = np.empty((self.ndx, count)), np.empty((self._n_free, count))
        arrays = [ctypes.c_void_p(array.ctypes.data) for array in (vectors, product, dz)]
        library().tree_products(self._work.list, count, *arrays)
        return product

    def transposed(self, vectors: np.ndarray) -> np.ndarray:
        """[A B]^T times `vectors` (ndx, k)."""
        vectors = np.ascontiguousarray(vectors, dtype=float)
        count = vectors.shape[1]
        product = np.empty((self.ndx + self.nu, count))
        arrays = [ctypes.c_void_p(array.ctypes.data) for array in (vectors, product)]
        library().tree_transposed_products(self._work.list, count, *arrays)
        return product
