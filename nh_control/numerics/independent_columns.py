"""Independent columns of a matrix."""

from __future__ import annotations

import numpy as np


def independent_columns(matrix: np.ndarray, count: int) -> list[int]:
    """The first `count` columns that QR factorization with column pivoting selects from a real or
    complex matrix, in order. Each is the column farthest from the span of the previous ones.
    """
    rest, chosen = np.array(matrix) + 0.0, list[int]()
    for _ in range(count):
        squares = np.einsum("ij,ij->j", rest.conj(), rest).real
        squares[chosen] = -1.0  # only round-off remains in chosen columns
        k = int(np.argmax(squares))
        # project all columns onto the complement of the chosen one: A <- (I - d d^H) A
        direction = rest[:, k] / (np.sqrt(squares[k]) or 1.0)
        rest -= np.outer(direction, direction.conj() @ rest)
        chosen.append(k)
    return chosen
