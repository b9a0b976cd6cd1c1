"""Numbers that are none inside native code: pivots, sizes, residuals, Jacobians, states, domains
and slopes that are NaN or infinite end in an error or do no harm.
"""

import ctypes
from itertools import product

import casadi as ca
import numpy as np
import pytest
from tiers import needs_compiler, with_compiler

from nh_control.discrete.native_text import native_text
from nh_control.discrete.results import StepFailed
from nh_control.geometry.spaces import Rn
from nh_control.integrators import midpoint
from nh_control.mechanics.system import System
from nh_control.numerics import compiled, newton

NEEDS_COMPILER = needs_compiler()
NONE = (np.nan, np.inf, -np.inf)
N = 3

# --- pivots --------------------------------------------------------------------------------------

ALGEBRA = """
int test_factor(double *a, int *pivots) { return factor(0, a, pivots); }
void test_substitute(const double *a, const int *pivots, double *b)
{
    substitute(0, a, pivots, b);
}
void test_transposed(const double *a, const int *pivots, double *b)
{
    substitute_transposed(0, a, pivots, b);
}
void test_rows(const double *a, const int *pivots, double *b) { substitute_rows(0, a, pivots, b); }
"""


@pytest.fixture(scope="module")
def algebra():
    text = native_text({"N_Z": N, "N_COLUMNS": 2}, ["x"], "linear_algebra.h")
    with with_compiler():
        return compiled.Native("algebra", [], text + ALGEBRA).wait()


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


# --- velocities and impulses ---------------------------------------------------------------------


def factors(algebra, a):
    """Whether a is refused, its factors and pivots."""
    a, pivots = np.array(a, dtype=float, order="C"), np.zeros(N, dtype=np.int32)
    return algebra["test_factor"](pointer(a), pointer(pivots)), a, pivots


@NEEDS_COMPILER
@pytest.mark.parametrize("seed", range(5))
def test_regular_matrices_are_solved_with_pivots(algebra, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(N, N)), rng.normal(size=(N, 2))
    a[0, 0] = 0.0 if seed % 2 else 1e-30  # no pivot, or a bad one
    refused, lu, pivots = factors(algebra, a)
    assert not refused
    for routine, right, expected in (
        ("test_substitute", b[:, 0].copy(), np.linalg.solve(a, b[:, 0])),
        ("test_transposed", b[:, 0].copy(), np.linalg.solve(a.T, b[:, 0])),
        ("test_rows", b.copy(), np.linalg.solve(a, b)),
    ):
        algebra[routine](pointer(lu), pointer(pivots), pointer(right))
        np.testing.assert_allclose(right, expected, rtol=1e-12)


@NEEDS_COMPILER
@pytest.mark.parametrize("value", NONE)
@pytest.mark.parametrize("place", range(N * N))
def test_a_matrix_with_an_entry_that_is_no_number_is_refused(algebra, place, value):
    a = np.random.default_rng(3).normal(size=(N, N))
    assert not factors(algebra, a)[0]
    a.flat[place] = value
    assert factors(algebra, a)[0]


# --- Newton's iteration --------------------------------------------------------------------------

PLACES = ("sizes", "first residual", "first Jacobian", "residual", "Jacobian", "state", "domain")
EQUATIONS = """
#include <string.h>

static int bad_place = -1, bad_call, bad_entry, seen[7];
static double bad_value;

void spoil(int place, int call, int entry, double value)
{
    bad_place = place;
    bad_call = call;
    bad_entry = entry;
    bad_value = value;
    memset(seen, 0, sizeof seen);
}

static void out(int place, double *values)
{
    if (place == bad_place && ++seen[place] == bad_call) values[bad_entry] = bad_value;
}

static void balance(const double *x, const double *z, double *r, double *J)
{
    r[0] = z[0] * z[0] * z[0] + 2 * z[0] + z[1] - x[0];
    r[1] = atan(z[1]) + z[1] / 10 - z[0] / 10 - x[1];
    if (!J) return;
    J[0] = 3 * z[0] * z[0] + 2;
    J[1] = 1;
    J[2] = -0.1;
    J[3] = 1 / (1 + z[1] * z[1]) + 0.1;
}

static void call_start(const double *x, const double *u, const double *p, double *s, double *r, double *J)
{
    const double zero[2] = {0, 0};
    balance(x, zero, r, J);
    s[0] = fabs(x[0]);
    s[1] = fabs(x[1]);
    out(0, s);
    out(1, r);
    out(2, J);
}

static void call_residual(const double *x, const double *u, const double *z, const double *p, double *r)
{
    balance(x, z, r, 0);
    out(3, r);
}

static void call_jacobian(const double *x, const double *u, const double *z, const double *p, double *J)
{
    double r[2];
    balance(x, z, r, J);
    out(4, J);
}

static void call_readout(const double *x, const double *u, const double *z, const double *p, double *x1, double *domain)
{
    memcpy(x1, z, 2 * sizeof *z);
    domain[0] = domain[1] = 1;
    out(5, x1);
    out(6, domain);
}

static void call_terms(const double *x, const double *u, const double *z, const double *p, double *s)
{
    s[0] = s[1] = 0;
}
"""  # noqa: E501
ARRAYS = {"x": 2, "u": 1, "p": 1, "z": 2, "x1": 2, "warm": 1, "sizes": 2, "info": 3}
ARRAYS |= {"r_z": 4, "factors": 4, "pivots": 2, "room": 40}
AT = np.array([40.0, 1.7])
"""Steps from here need the line search and new Jacobians."""
FAULTS = [
    *((place, 1, entry) for place in (0, 1, 5) for entry in range(2)),
    *((2, 1, entry) for entry in range(4)),
    *((3, call, entry) for call in range(1, 5) for entry in range(2)),
    *((4, call, entry) for call in range(1, 4) for entry in range(4)),
]


class Stepping:
    """nh_newton_step around EQUATIONS."""

    def __init__(self):
        sizes = {"N_X": 2, "N_U": 1, "N_Z": 2, "N_COLUMNS": 1, "N_DOMAIN": 2, "N_TURNS": 0}
        text = EQUATIONS + native_text(sizes, ARRAYS, "newton_step.c")
        with with_compiler():
            library = compiled.Native("spoilt", [], text).wait()
        self._step, self._spoil = library["nh_newton_step"], library["spoil"]
        self._spoil.argtypes = [ctypes.c_int] * 3 + [ctypes.c_double]

    def native(self, place=-1, call=1, entry=0, value=0.0):
        """Status, z and x1 of a step, one number of which is spoilt."""
        arrays = {name: np.zeros(n) for name, n in ARRAYS.items()}
        arrays["x"][:] = AT
        places = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays.values()))
        self._spoil(place, call, entry, value)
        self.info = arrays["info"]
        return self._step(places), arrays["z"], arrays["x1"]


def balance(z):
    return np.array(
        [z[0] ** 3 + 2 * z[0] + z[1] - AT[0], np.arctan(z[1]) + (z[1] - z[0]) / 10 - AT[1]]
    )


@pytest.fixture(scope="module")
def stepping():
    return Stepping()


@pytest.fixture(scope="module")
def root(stepping):
    status, z, x1 = stepping.native()
    assert status == newton.CONVERGED and np.array_equal(z, x1)
    assert np.abs(balance(z)).max() <= 1e-13
    return z


@NEEDS_COMPILER
@pytest.mark.parametrize("value", NONE)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f"{PLACES[f[0]]} {f[1]}, entry {f[2]}")
def test_a_step_with_a_number_that_is_none_is_right_or_fails(stepping, root, fault, value):
    """The sizes do not matter for the solution, and what is seen once on the way is gone around;
    what the iteration starts with and what a step gives must be numbers.
    """
    status, z, x1 = stepping.native(*fault, value)
    place = PLACES[fault[0]]
    if status == newton.CONVERGED:
        np.testing.assert_allclose(z, root, rtol=1e-12)
        assert np.array_equal(z, x1)
    if place in ("sizes", "residual"):
        assert status == newton.CONVERGED
    if place in ("first residual", "first Jacobian", "state"):
        assert status == newton.NOT_FINITE
    assert status in (newton.CONVERGED, newton.NOT_FINITE, newton.SINGULAR)


@NEEDS_COMPILER
def test_a_step_says_how_far_it_came(stepping):
    """Iterations, the relative error and the largest residual."""
    assert stepping.native(PLACES.index("first Jacobian"), 1, 1, -22.0)[0] == newton.SINGULAR
    assert stepping.info.tolist() == [0, 1.0, AT[0]]
    assert stepping.native()[0] == newton.CONVERGED
    iterations, error, residual = stepping.info
    assert 3 < iterations <= newton.MAX_ITERATIONS and error <= 1e-10 and residual <= 1e-9


@NEEDS_COMPILER
@pytest.mark.parametrize(
    "value, inside",
    [(1e-300, True), (np.inf, True)]
    + [(value, False) for value in (0.0, -1e-300, -np.inf, np.nan)],
)
@pytest.mark.parametrize("entry", range(2))
def test_only_positive_numbers_are_inside_a_domain(stepping, entry, value, inside):
    status, _, _ = stepping.native(PLACES.index("domain"), 1, entry, value)
    assert status == (newton.CONVERGED if inside else newton.OUTSIDE)


# --- Systems -------------------------------------------------------------------------------------


@pytest.fixture
def valve():
    """A pendulum pushed by what flows through a valve: a slope that is infinite where it opens."""
    system = System(
        "valve",
        Rn("angle"),
        lambda q, v: v[0] ** 2 / 2 + 50 * ca.cos(q[0]),
        inputs=("opening",),
        force=lambda q, v, u: ca.sqrt(u - 1),
    )
    return midpoint(system, 0.1)


def test_an_infinite_slope_by_an_input_does_not_loosen_the_step(valve):
    """It made the residual's size infinite, and whatever Newton's method began with a solution."""
    x = np.array([0.5, 3.0])
    at, beside = valve.step(x, [1.0]), valve.step(x, [1.0 + 1e-14])
    np.testing.assert_allclose(at, beside, rtol=0, atol=1e-7)
    assert valve.newton_iterations(x, [1.0]) >= 3


def test_derivatives_that_are_no_numbers_are_refused(valve):
    x = np.array([0.5, 3.0])
    for derivative in (
        lambda u: valve.linearize(x, [u]),
        lambda u: valve.hessian(x, [u], [1.0, 1.0]),
    ):
        derivative(1.5)
        with pytest.raises(StepFailed, match="a value is not finite"):
            derivative(1.0)


def test_a_domain_that_is_no_number_is_left():
    cart = midpoint(
        System("cart", Rn("x"), lambda q, v: v[0] ** 2 / 2, domain=lambda q: ca.sqrt(1 - q[0])),
        0.1,
    )
    assert cart.step([0.0, 9.9])[0] == pytest.approx(0.99)
    with pytest.raises(StepFailed, match="leaves the domain"):
        cart.step([0.0, 10.1])


def test_velocities_of_singular_masses_are_refused():
    polar = midpoint(
        System(
            "polar",
            Rn("r", "angle"),
            lambda q, v: (v[0] ** 2 + (q[0] * v[1]) ** 2) / 2,
            nominal=[1.0, 0.0],
        ),
        0.1,
    )
    assert polar.velocity([0.5, 0.0, 1.0, 1.0]) == pytest.approx([1.0, 4.0])
    for refused in (polar.velocity, polar.energy, polar.energies):
        with pytest.raises(np.linalg.LinAlgError, match="singular"):
            refused([0.0, 0.0, 1.0, 1.0])
        for value, place in product(NONE, range(4)):
            with pytest.raises(ValueError, match="finite"):
                refused(np.where(np.arange(4) == place, value, 0.5))
