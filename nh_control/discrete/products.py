"""Products with the derivative of a step, without its matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np


class Products(Protocol):
    """Products with the derivative [A B] of a step."""

    ndx: int
    """Number of rows, and of columns of A."""
    nu: int
    """Number of columns of B."""

    def forward(self, vectors: np.ndarray) -> np.ndarray:
        """[A B] times `vectors` (ndx + nu, k)."""

    def transposed(self, vectors: np.ndarray) -> np.ndarray:
        """[A B]^T times `vectors` (ndx, k)."""


class ComposedProducts:
    """Products with the derivative of a composition, from those of its substeps."""

    def __init__(self, substeps: Sequence[Products]):
        self._substeps = substeps
        self.ndx, self.nu = substeps[0].ndx, substeps[0].nu

    def forward(self, vectors: np.ndarray) -> np.ndarray:
        """[A B] times `vectors` (ndx + nu, k): `dx_{i+1} = A_i dx_i + B_i du`."""
        dx, du = vectors[: self.ndx], vectors[self.ndx :]
        for substep in self._substeps:
            dx = substep.forward(np.vstack([dx, du]))
        return dx

    def transposed(self, vectors: np.ndarray) -> np.ndarray:
        """[A B]^T times `vectors` (ndx, k): `lam_i = A_i^T lam_{i+1}`, and the sum of
        `B_i^T lam_{i+1}`.
        """
        lam, by_u = vectors, np.zeros((self.nu, vectors.shape[1]))
        for substep in reversed(self._substeps):
            both = substep.transposed(lam)
            lam, by_u = both[: self.ndx], by_u + both[self.ndx :]
        return np.vstack([lam, by_u])
