"""A, B and the contracted Hessian are the derivatives of the step, for methods that the laws of
test/laws leave out: reduced d'Alembert-Pontryagin and one-sided forcing.

A and B agree to 1e-9 of the largest entry of their row (rows have different units), plus the
round-off of the differences where a whole row is tiny, as of the side displacement by the inputs,
which is of third order in h.
"""

import numpy as np
import pytest
from cases import PAIRS, discrete, random_point
from differences import hessian, jacobian

H = 0.1
SPACING, SPACING_2 = 0.02, 0.05
ON_SLEIGH = ("dla-left", "rdp-exp-exact-0.5", "rdp-ccsk-truncated-0.3")
CASES = [
    pytest.param(
        *(system, method),
        marks=pytest.mark.slow
        if method.endswith(("exact-0.3", "truncated-0.5"))
        or (system == "sleigh" and method not in ON_SLEIGH)
        else (),
    )
    for system, method in PAIRS
    if method not in ("midpoint", "dla")
]


@pytest.mark.parametrize("system, method", CASES)
def test_linearization_and_hessian_are_the_derivatives_of_the_step(system, method):
    dsys, rng = discrete(system, method, H), np.random.default_rng(100)
    x, u = random_point(dsys, rng)
    lin, lam, n = dsys.linearize(x, u), rng.normal(size=dsys.ndx), dsys.ndx
    assert np.array_equal(lin.x1, dsys.step(x, u))
    step = lambda w: dsys.local(lin.x1, dsys.step(dsys.retract(x, w[:n]), u + w[n:]))
    expected = jacobian(step, n + dsys.nu, SPACING)
    round_off = 8 * np.finfo(float).eps * max(1.0, np.abs(x).max()) / SPACING
    for got, want in ((lin.A, expected[:, :n]), (lin.B, expected[:, n:])):
        row = np.abs(want).max(axis=1, keepdims=True, initial=0.0)
        assert (np.abs(got - want) <= 1e-9 * row + round_off).all()
    bend = hessian(lambda w: lam @ step(w), n + dsys.nu, SPACING_2)
    assert np.abs(dsys.hessian(x, u, lam) - bend).max() <= 1e-6 * np.abs(bend).max()


@pytest.mark.parametrize("system, method", [("pendulum", "midpoint"), ("snakeboard", "dla")])
def test_linearization_unpacks_and_becomes_a_state_space(system, method):
    dsys = discrete(system, method, H)
    lin = dsys.linearize(*random_point(dsys, np.random.default_rng(7)))
    a, b = lin
    assert a is lin.A and b is lin.B
    assert a.shape == (dsys.ndx, dsys.ndx) and b.shape == (dsys.ndx, dsys.nu)
    model = lin.to_ss()
    assert model.dt == H
    for got, want in ((model.A, a), (model.B, b), (model.C, np.eye(dsys.ndx))):
        assert np.array_equal(got, want)
