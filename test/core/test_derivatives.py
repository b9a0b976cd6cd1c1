"""A, B and the contracted Hessian are the derivatives of the step itself, for every integrator on
every system.

A and B agree to 1e-9 of the largest entry of their row (rows have different units), plus the
round-off of the differences where a whole row is tiny, as of the side displacement by the inputs,
which is of third order in h.
"""

import numpy as np
import pytest
from cases import OWN_DERIVATIVES, PAIRS, discrete, random_point, registered
from differences import hessian, jacobian
from energy_cases import ENERGY

from nh_control.discrete.results import Linearization

H = 0.1
SEEDS = range(3)
SPACING, SPACING_2 = 0.02, 0.05
FINER = {
    "car": ("gonzalez",),
    "roller_racer": ("gonzalez_r",),
    "rolling_ball": ("gonzalez_r",),
    "": ("gonzalez_f",),
}
"""Methods, by the start of their names, whose steps bend so much on a system, or on any, that the
differences need a tenth of the spacing.
"""
SELDOM = ("exact-0.3", "truncated-0.5")
ON_SLEIGH = ("rdp-exp-exact-0.5", "rdp-ccsk-truncated-0.3")


def seldom(system, method):
    """RDP with the exact tangent off the middle, or with a truncated one at it, and most of it on
    the second system.
    """
    second = system == "sleigh" and method.startswith("rdp") and method not in ON_SLEIGH
    return second or method.endswith(SELDOM)


def covered(case):
    """The case, exhaustive where a smaller one has its claim: the larger systems of methods that
    have tests of their own, and the second body in space with constraints.
    """
    system, method, _ = case.values
    own = method in (*ENERGY, *OWN_DERIVATIVES) and system in ("snakeboard", "anything")
    repeated = own or system == "rolling_ball"
    return pytest.param(*case.values, marks=pytest.mark.exhaustive) if repeated else case


MARKS = {0: (), 1: pytest.mark.slow, 2: pytest.mark.exhaustive}
"""By the seed, of the pairs that are not seldom."""
CASES = [
    pytest.param(
        *pair, seed, marks=pytest.mark.slow if seed == 0 and seldom(*pair) else MARKS[seed]
    )
    for pair in PAIRS
    for seed in SEEDS
] + [  # Itoh and Abe's, which takes long, has test_energy_preserving
    covered(case) for case in registered(0, slow=(*OWN_DERIVATIVES, "itoh_abe"))
]


def spacings(system, method):
    """Those of first and of second differences."""
    if method.startswith((*FINER.get(system, ()), *FINER[""])):
        return SPACING / 10, SPACING_2 / 10
    return SPACING, SPACING_2


def local_step(dsys, x, u, x1):
    """The step in local coordinates about (x, u), as a function of (dx, du)."""
    return lambda w: dsys.local(x1, dsys.step(dsys.retract(x, w[: dsys.ndx]), u + w[dsys.ndx :]))


@pytest.mark.parametrize("system, method, seed", CASES)
def test_linearization_is_the_derivative_of_the_step(system, method, seed):
    dsys = discrete(system, method, H)
    x, u = random_point(dsys, np.random.default_rng(seed))
    lin = dsys.linearize(x, u)
    assert isinstance(lin, Linearization) and np.array_equal(lin.x1, dsys.step(x, u))
    spacing, _ = spacings(system, method)
    expected = jacobian(local_step(dsys, x, u, lin.x1), dsys.ndx + dsys.nu, spacing)
    round_off = 8 * np.finfo(float).eps * max(1.0, np.abs(x).max()) / spacing
    for got, want in ((lin.A, expected[:, : dsys.ndx]), (lin.B, expected[:, dsys.ndx :])):
        row = np.abs(want).max(axis=1, keepdims=True, initial=0.0)
        assert (np.abs(got - want) <= 1e-9 * row + round_off).all()


@pytest.mark.parametrize("system, method, seed", CASES)
def test_hessian_is_the_second_derivative_of_the_contracted_step(system, method, seed):
    dsys, rng = discrete(system, method, H), np.random.default_rng(100 + seed)
    x, u = random_point(dsys, rng)
    lam = rng.normal(size=dsys.ndx)
    step = local_step(dsys, x, u, dsys.step(x, u))
    _, spacing = spacings(system, method)
    expected = hessian(lambda w: lam @ step(w), dsys.ndx + dsys.nu, spacing)
    got = dsys.hessian(x, u, lam)
    assert np.abs(got - got.T).max() <= 1e-12 * np.abs(got).max()
    assert np.abs(got - expected).max() <= 1e-6 * np.abs(expected).max()


@pytest.mark.parametrize("system, method", [("pendulum", "midpoint"), ("snakeboard", "dla")])
def test_linearization_unpacks_and_becomes_a_state_space(system, method):
    dsys = discrete(system, method, H)
    x, u = random_point(dsys, np.random.default_rng(7))
    lin = dsys.linearize(x, u)
    a, b = lin
    assert (
        a is lin.A
        and b is lin.B
        and a.shape == (dsys.ndx, dsys.ndx)
        and b.shape == (dsys.ndx, dsys.nu)
    )
    model = lin.to_ss()
    assert (
        model.dt == H
        and np.array_equal(model.A, a)
        and np.array_equal(model.B, b)
        and np.array_equal(model.C, np.eye(dsys.ndx))
    )
