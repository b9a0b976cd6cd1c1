"""The linearization of a step as linear operators, without its matrices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from nh_control.discrete.products import Products
from nh_control.discrete.results import Linearization


class _Block(LinearOperator):
    """A or B: the given columns of [A B]."""

    def __init__(self, products: Products, columns: slice):
        super().__init__(float, (products.ndx, columns.stop - columns.start))
        self._products, self._columns = products, columns

    def _matmat(self, v: np.ndarray) -> np.ndarray:
        if np.iscomplexobj(v):
            return self._matmat(v.real) + 1j * self._matmat(v.imag)
        vectors = np.zeros((self._products.ndx + self._products.nu, v.shape[1]))
        vectors[self._columns] = v
        return self._products.forward(vectors)

    def _rmatmat(self, w: np.ndarray) -> np.ndarray:
        if np.iscomplexobj(w):
            return self._rmatmat(w.real) + 1j * self._rmatmat(w.imag)
        return self._products.transposed(w)[self._columns]

    def _matvec(self, v: np.ndarray) -> np.ndarray:
        return self._matmat(v.reshape(-1, 1))

    def _rmatvec(self, w: np.ndarray) -> np.ndarray:
        return self._rmatmat(w.reshape(-1, 1))


@dataclass(frozen=True)
class LinearizationOperators:
    """The linearization `local(x1, f(retract(x, dx), u + du)) = A dx + B du` with operators A
    (ndx, ndx) and B (ndx, nu), x1 = f(x, u) and the step h (s). It unpacks as `A, B`.
    """

    A: LinearOperator
    B: LinearOperator
    x1: np.ndarray
    h: float

    @classmethod
    def of_products(cls, products: Products, x1: np.ndarray, h: float) -> LinearizationOperators:
        """The operators that call `products`."""
        n, m = products.ndx, products.nu
        return cls(_Block(products, slice(0, n)), _Block(products, slice(n, n + m)), x1, h)

    @classmethod
    def of_matrices(cls, linear: Linearization) -> LinearizationOperators:
        """The operators that multiply by dense matrices."""
        return cls(aslinearoperator(linear.A), aslinearoperator(linear.B), linear.x1, linear.h)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.A, self.B))
