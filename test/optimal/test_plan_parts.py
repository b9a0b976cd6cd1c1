"""Parts of plans on which no optimum depends: first multipliers and which inputs are saturated."""

import numpy as np

from nh_control.control.optimal.elastic import put_on_central_path
from nh_control.control.optimal.plan import saturated


def test_inputs_within_a_thousandth_of_their_range_of_a_limit_are_saturated():
    """Of a range without an end it is 1e-3."""
    bounds = np.array([[-1.0, -np.inf, 2.0], [3.0, 5.0, np.inf]])
    assert saturated(np.array([-0.997, 4.9995, 2.0005]), bounds).tolist() == [True] * 3
    assert saturated(np.array([2.997, 4.9995, 9.0]), bounds).tolist() == [True, True, False]
    assert not saturated(np.array([-0.995, 4.9985, 2.0015]), bounds).any()


def test_soft_rows_start_on_their_central_path():
    """`s - t = c` and `s lam = t (weight - lam) = mu`; hard rows and absent ones stay."""

    class Arrays(dict):
        array = dict.__getitem__

    c, mu = np.array([[0.3, -0.2, 0.1], [-1.0, 0.5, -0.4]]), 0.02
    s, lam = np.ones((2, 3)), np.full((2, 3), 0.5)
    s[1, 2] = 0.0  # there is no such row at this node
    weight, soft = np.array([np.inf, 5.0, 2.0]), np.array([[0, 1, 1], [0, 1, 0]], dtype=bool)
    put_on_central_path(Arrays(weight=weight, c=c, s=s, lam=lam), mu)
    t = mu / (np.broadcast_to(weight, c.shape) - lam)
    np.testing.assert_allclose((s - t)[soft], c[soft], atol=1e-14)
    np.testing.assert_allclose((s * lam)[soft], mu, rtol=1e-14)
    assert (s > 0)[soft].all() and (t > 0)[soft].all() and (lam[~soft] == 0.5).all()
