"""Columns that QR factorization with column pivoting takes first."""

import numpy as np
import pytest
from scipy.linalg import qr

from nh_control.numerics.independent_columns import independent_columns


@pytest.mark.parametrize("dtype", [float, complex])
def test_they_are_the_pivots_of_lapack(dtype):
    draw = np.random.default_rng(1)
    for rows, columns in draw.integers(1, 9, (200, 2)):
        a = draw.normal(size=(rows, columns)).astype(dtype)
        if dtype is complex:
            a += 1j * draw.normal(size=a.shape)
        count = min(rows, columns)
        assert independent_columns(a, count) == list(qr(a, pivoting=True)[2][:count])


def test_columns_in_the_span_of_others_come_last():
    a = np.array([[1, 2, 0, 0], [2, 4, 0, 1]])
    assert independent_columns(a, 4) == [1, 3, 0, 2]
