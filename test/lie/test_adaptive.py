"""Adaptive runs of Lie group methods: SciPy's on R^n step for step, tolerances, the manifold,
curves between steps, failures, the same run in Python and C.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import casadi as ca
import lie_cases
import numpy as np
import pytest
import scipy.integrate
import threads
from refusals import refusal
from tiers import with_compiler

import nh_control as nh
from nh_control.geometry.groups import SO3Group
from nh_control.geometry.homogeneous import LeftMultiplication, SphereAction, TranslationAction
from nh_control.integrators import lie_pairs
from nh_control.integrators.adaptive import METHODS, AdaptiveIntegrator
from nh_control.integrators.lie_tableaux import TABLES, munthe_kaas
from nh_control.mechanics.reduced import ReducedEquations
from nh_control.numerics import compiled
from nh_control.systems.rigid_body import heavy_top

SCIPY = {"rkmk54": "RK45", "rkmk853": "DOP853"}
LINE = TranslationAction("x", "v")
SECONDS = 2.0
RATES = np.array([0.5, 2.0, -1.0])


def van_der_pol(t, y):
    return [y[1], 3 * (1 - y[0] ** 2) * y[1] - y[0] + 0.3 * ca.sin(t)]


@cache
def integrator(method: str) -> AdaptiveIntegrator:
    """The method on the top."""
    return AdaptiveIntegrator(top(), method)


@cache
def top() -> nh.System:
    return heavy_top(lie_cases.MILD_TOP)


@cache
def start() -> np.ndarray:
    p = lie_cases.MILD_TOP
    q = top().space.retract(top().space.origin, np.array([0.3, -0.2, 0.5]))
    return np.concatenate([q, np.array([p.Jx, p.Jy, p.Jz]) * RATES])


@cache
def reference() -> np.ndarray:
    """The state after SECONDS by DOP853 on equations that know no group."""
    p, equations = lie_cases.MILD_TOP, ReducedEquations(top())
    w = equations.start(start()[:4], RATES)
    run = scipy.integrate.solve_ivp(
        equations.rates(), (0, SECONDS), w, "DOP853", rtol=3e-14, atol=1e-15
    )
    q, v = equations.phase(run.y[:, -1])
    return np.concatenate([q, np.array([p.Jx, p.Jy, p.Jz]) * v])


@pytest.mark.parametrize("method", SCIPY)
@pytest.mark.parametrize("span", [(0.0, 20.0), (20.0, 0.0)])
def test_on_vectors_it_is_scipys_solver_step_for_step(method, span):
    y0 = [2.0, 0.0] if span[0] == 0 else [0.2, 0.1]
    tolerances = {"rtol": 1e-7, "atol": 1e-8, "max_step": 0.9}
    run = nh.solve_ivp((LINE, van_der_pol), span, y0, method=method, **tolerances)
    numbers = lambda t, y: [float(v) for v in van_der_pol(t, y)]  # noqa: E731
    other = scipy.integrate.solve_ivp(numbers, span, y0, SCIPY[method], **tolerances)
    assert run.nfev == other.nfev and run.naccepted == len(run.t) - 1 == len(other.t) - 1
    assert run.nrejected > 0
    assert np.allclose(run.t, other.t, rtol=0, atol=1e-5)  # round-off in the errors
    assert np.allclose(run.y, other.y, rtol=0, atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_the_error_follows_the_tolerance(method):
    levels = (1e-4, 1e-6) if METHODS[method].order == 2 else (1e-5, 1e-7, 1e-9)
    errors, steps = [], []
    for tol in levels:
        run = integrator(method).solve((0, SECONDS), start(), rtol=tol, atol=tol)
        errors.append(abs(run.y[:, -1] - reference()).max())
        steps.append(run.naccepted)
    assert (np.array(errors) < 60 * np.array(levels)).all(), errors
    growth = (levels[0] / levels[-1]) ** (1 / (METHODS[method].order + 1))
    assert 0.5 * growth < steps[-1] / steps[0] < 1.5 * growth


@pytest.mark.parametrize("method", METHODS)
def test_the_estimate_is_the_embedded_methods_error(method):
    """Its order is that of the pair, and the main method's error is smaller."""
    pair, problem = METHODS[method], integrator(method).problem
    x, f, h = ca.SX.sym("x", 7), ca.SX.sym("f", 6), ca.SX.sym("h")
    p = problem.parameters
    one = lie_pairs.trial(
        pair, problem.action, lambda x: problem.field(x, [], p), x, f, h, dense=False
    )
    step = ca.Function("step", [x, f, h], [one.x1, one.errors])
    sizes, true, estimated, main = (0.16, 0.08, 0.04, 0.02), [], [], []
    fine = integrator("rkmk853")
    for size in sizes:
        x1, errors = step(start(), problem.field(start(), [], p), size)
        exact = fine.solve((0, size), start(), rtol=1e-13, atol=1e-14).y[:, -1]
        x1, e = np.asarray(x1)[:, 0], np.asarray(errors)[0]
        true.append(np.linalg.norm(x1 + e - exact))
        estimated.append(np.linalg.norm(e))
        main.append(np.linalg.norm(x1 - exact))
    effectivity = np.array(estimated) / true
    assert (abs(effectivity[-2:] - 1) < 0.15).all(), effectivity
    order = 5 if method == "rkmk853" else pair.order  # the last row's, of the first embedded one
    slope = np.polyfit(np.log(sizes), np.log(estimated), 1)[0]
    assert abs(slope - order - 1) < 0.35, slope
    assert main[-1] < 0.3 * true[-1]


@pytest.mark.parametrize("method", METHODS)
def test_curves_between_steps_stay_on_the_manifold_with_the_order_of_their_degree(method):
    """One step each, its middle and its ends."""
    sizes, errors = np.array([0.4, 0.28, 0.2, 0.14]) / (1 if method == "rkmk853" else 4), []
    one = integrator(method)
    for size in sizes:
        run = one.solve((0, size), start(), dense_output=True, rtol=1e3, atol=1e3, first_step=size)
        assert run.naccepted == 1
        times = np.linspace(0, size, 9)
        exact = integrator("rkmk853").solve(
            (0, size), start(), t_eval=times, rtol=1e-13, atol=1e-14, max_step=size / 8
        )
        points = run.sol(times)
        assert abs(np.linalg.norm(points[:4], axis=0) - 1).max() < 1e-15
        assert np.allclose(points[:, [0, -1]], run.y, rtol=0, atol=2e-15)
        errors.append(abs(points - exact.y).max())
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope > METHODS[method].degree + 1 - 0.4, (slope, errors)


def test_times_that_are_asked_for_and_one_time():
    times = np.linspace(0, SECONDS, 201)
    asked = integrator("rkmk54").solve((0, SECONDS), start(), t_eval=times, dense_output=True)
    free = integrator("rkmk54").solve((0, SECONDS), start(), dense_output=True)
    assert np.array_equal(asked.t, times)
    assert np.array_equal(asked.y, free.sol(times))
    assert np.array_equal(asked.sol(0.3), free.sol([0.3])[:, 0])
    assert free.sol.t_min == 0 and free.sol.t_max == SECONDS
    for wrong in (-0.1, SECONDS + 0.1, np.nan, [[0.1]]):
        with pytest.raises(ValueError, match="known for times from 0 to 2"):
            free.sol(wrong)


@pytest.mark.parametrize("method", ["rkmk54", "rkmk853", "cf43"])
def test_to_look_at_a_run_between_its_steps_changes_no_step(method):
    one = integrator(method)
    free = one.solve((0, SECONDS), start())
    for look in ({"dense_output": True}, {"t_eval": [0.0, 0.7, SECONDS]}):
        seen = one.solve((0, SECONDS), start(), **look)
        assert (seen.naccepted, seen.nrejected) == (free.naccepted, free.nrejected)
        assert free.naccepted > 3
        np.testing.assert_allclose(seen.y[:, -1], free.y[:, -1], rtol=0, atol=1e-12)


SWEEP = SphereAction(), lambda t, q: [ca.sin(2 * t), 0.4, q[0]]


@pytest.mark.parametrize("method, end", [("rkmk853", 3.0), ("cf43", 0.3), ("cf43", -0.2)])
def test_compiled_functions_take_the_same_steps(method, end):
    """The same bits."""
    hit = None if method == "rkmk853" or end < 0 else lambda t, x: x[1] - 0.02  # noqa: E731
    problem, x0 = (SWEEP, [0.6, 0.0, 0.8]) if method == "rkmk853" else (top(), start())

    def solve():
        integrator = AdaptiveIntegrator(problem, method, events=hit)
        integrator.solve((0, end / 100), x0, rtol=1e-7)  # all functions are asked for
        compiled.wait_for_compiler()
        return integrator.solve((0, end), x0, rtol=1e-7, dense_output=True)

    a = solve()
    with with_compiler():
        b = solve()
    times = np.linspace(0, end, 7)
    assert (a.naccepted, a.nrejected, a.nfev) == (b.naccepted, b.nrejected, b.nfev)
    np.testing.assert_array_equal(a.t, b.t)
    np.testing.assert_array_equal(a.y, b.y)
    np.testing.assert_array_equal(a.sol(times), b.sol(times))
    for mine, theirs in zip(a.t_events or [], b.t_events or [], strict=True):
        assert len(mine) > 0
        np.testing.assert_array_equal(mine, theirs)


def test_a_field_without_errors_takes_the_longest_steps():
    """Both estimates of an error are exactly zero: nothing is divided by them."""
    still = AdaptiveIntegrator((LINE, lambda t, x: ca.SX(2, 1)), "rkmk853")
    run = still.solve((0, 1e4), [0.5, -2.0], first_step=1.0)
    assert run.success and (run.y == [[0.5], [-2.0]]).all()
    assert run.naccepted == 5 and run.t == pytest.approx([0, 1, 11, 111, 1111, 1e4])


@pytest.mark.parametrize("method", ["rkmk54", "rkmk853", "cf43"])
def test_large_fields_are_called_with_the_same_result(method, monkeypatch):
    whole = integrator(method).solve((0, 0.5), start(), rtol=1e-8)
    monkeypatch.setattr("nh_control.integrators.adaptive.INLINE", 0)
    run = AdaptiveIntegrator(top(), method).solve((0, 0.5), start(), rtol=1e-8)
    assert np.allclose(run.t, whole.t) and np.allclose(run.y, whole.y, rtol=0, atol=1e-13)


def test_other_threads_run_meanwhile(monkeypatch):
    monkeypatch.setattr("nh_control.integrators.adaptive_run.BATCH_SIZE", 80_000)
    one = integrator("rkmk54")
    one.solve((0, 0.1), start())
    assert threads.gives_way(lambda: one.solve((0, 60.0), start(), rtol=1e-9, max_step=1e-3))


def test_a_tableau_of_the_user():
    """Bogacki and Shampine's, which has Hermite's curve and its end as the last stage."""
    a = np.zeros((4, 4))
    a[1, 0], a[2, 1], a[3, :3] = 1 / 2, 3 / 4, scipy.integrate.RK23.B
    b = [*scipy.integrate.RK23.B, 0]
    table = munthe_kaas("rkmk32", 3, a, b, b + scipy.integrate.RK23.E, 2)
    tolerances = {"rtol": 1e-5, "atol": 1e-7, "t_eval": np.linspace(0, 8, 30)}
    run = nh.solve_ivp((LINE, van_der_pol), (0, 8), [2.0, 0.0], method=table, **tolerances)
    numbers = lambda t, y: [float(v) for v in van_der_pol(t, y)]  # noqa: E731
    other = scipy.integrate.solve_ivp(numbers, (0, 8), [2.0, 0.0], "RK23", **tolerances)
    assert run.nfev == other.nfev
    assert np.allclose(run.y, other.y, rtol=0, atol=1e-7)


# --- fields of the user --------------------------------------------------------------------------


def test_a_field_of_time_on_the_sphere():
    """q' = f(t) x q about one axis: by hand the angle is the integral of f."""
    run = nh.solve_ivp(
        (SphereAction(), lambda t, q: [0, 0, ca.cos(t)]), (0, 3.0), [1.0, 0, 0], rtol=1e-10
    )
    angle = np.sin(run.t)
    assert np.allclose(run.y, [np.cos(angle), np.sin(angle), 0 * angle], rtol=0, atol=1e-9)


def test_inputs_that_are_held_and_inputs_as_functions():
    body = lie_cases.SYSTEMS["rigid_body"]()
    x0 = np.concatenate([body.space.origin, [0.1, 0.2, 0.3]])
    held = nh.solve_ivp(body, (0, 1), x0, u=[0.3, -0.1, 0.2], rtol=1e-9)
    same = nh.solve_ivp(body, (0, 1), x0, u=lambda t, x: [0.3, -0.1, 0.2], rtol=1e-9)
    assert np.allclose(held.y[:, -1], same.y[:, -1], rtol=0, atol=1e-13)
    braked = nh.solve_ivp(body, (0, 1), x0, u=lambda t, x: -2 * t * x[4:], rtol=1e-10, atol=1e-12)
    size = np.linalg.norm(braked.y[4:, -1]) / np.linalg.norm(x0[4:])
    assert abs(size - np.exp(-1)) < 1e-9


def turning():
    q, u, p = ca.SX.sym("q", 3), ca.SX.sym("u"), ca.SX.sym("p", 2)
    return ca.Function("turning", [q, u, p], [ca.vertcat(0, 0, p[0] * u + p[1])])


TURNING = turning()


def test_a_function_of_inputs_and_parameters():
    """One compilation for all values; those of a system can be given, too."""
    one = AdaptiveIntegrator((SphereAction(), TURNING))
    driven = AdaptiveIntegrator((SphereAction(), TURNING), u=lambda t, x: 3 * t**2)
    for rate, more in ((1.0, 0.0), (0.5, -2.0)):
        for run, angle in (
            (one.solve((0, 1), [1.0, 0, 0], u=[0.4], p=[rate, more]), 0.4 * rate + more),
            (driven.solve((0, 1), [1.0, 0, 0], p=[rate, more]), rate + more),
        ):
            end = [np.cos(angle), np.sin(angle), 0]
            assert np.allclose(run.y[:, -1], end, rtol=0, atol=1e-6)
    other = top().with_parameters(g=3.0)
    given = integrator("rkmk54").solve((0, 1), start(), p=other.parameter_values)
    assert np.array_equal(given.y, nh.solve_ivp(other, (0, 1), start()).y)


# --- errors relative to blocks -------------------------------------------------------------------


def test_steps_do_not_depend_on_the_frame():
    """A turn about the vertical changes the quaternion's numbers, not the motion."""
    turn, q = np.array([np.cos(0.7), 0, 0, np.sin(0.7)]), start()[:4]
    w, v = q[0], q[1:]
    turned = np.r_[turn[0] * w - turn[1:] @ v, turn[0] * v + w * turn[1:] + np.cross(turn[1:], v)]
    runs = [
        integrator("rkmk54").solve((0, SECONDS), np.r_[at, start()[4:]], rtol=1e-7)
        for at in (q, turned)
    ]
    assert np.allclose(runs[0].t, runs[1].t, rtol=0, atol=1e-6)


def test_each_number_has_a_tolerance_of_its_own():
    """As with SciPy; the time, where a field depends on it, has none."""
    numbers = lambda t, y: [float(v) for v in van_der_pol(t, y)]  # noqa: E731
    counts = []
    for atol in ([1e-3, 1e-8], [1e-8, 1e-3]):
        tolerances = {"rtol": 1e-8, "atol": atol}
        run = nh.solve_ivp((LINE, van_der_pol), (0, 3), [2.0, 0.0], **tolerances)
        other = scipy.integrate.solve_ivp(numbers, (0, 3), [2.0, 0.0], "RK45", **tolerances)
        assert run.nfev == other.nfev and len(run.t) == len(other.t)
        np.testing.assert_allclose(run.y, other.y, rtol=0, atol=1e-5)
        counts.append(run.nfev)
    assert counts[0] != counts[1]


@pytest.mark.parametrize("end", [2.0, -2.0])
def test_steps_are_no_longer_than_allowed_and_begin_as_told(end):
    one = AdaptiveIntegrator((LINE, lambda t, x: [x[1], -x[0]]))
    run = one.solve((0, end), [1.0, 0.0], rtol=1e-3, first_step=0.01, max_step=0.3)
    steps = np.abs(np.diff(run.t))
    assert steps[0] == pytest.approx(0.01) and 0.29 < steps.max() <= 0.3 * (1 + 1e-12)
    whole = one.solve((0, end), [1.0, 0.0], rtol=1.0, atol=1.0, first_step=2.0)
    np.testing.assert_array_equal(whole.t, [0.0, end])


def test_times_that_are_asked_for_may_leave_out_the_ends():
    one = AdaptiveIntegrator((LINE, lambda t, x: [x[1], -x[0]]))
    for times, span in (([0.5, 1.5], (0, 2)), ([2.0], (0, 2)), ([1.5, 0.0], (2, 0)), ([], (0, 2))):
        run = one.solve(span, [1.0, 0.0], t_eval=times, rtol=1e-8)
        np.testing.assert_array_equal(run.t, times)
        expected = np.cos(np.subtract(times, span[0]))
        np.testing.assert_allclose(run.y[0], expected, rtol=0, atol=1e-6)


# --- failures and errors -------------------------------------------------------------------------


def test_a_singularity_ends_the_run_with_what_was_reached():
    run = nh.solve_ivp(
        (TranslationAction("y"), lambda t, y: y**2), (0, 2), [1.0], dense_output=True
    )
    assert run.status == -1 and not run.success
    assert "steps became too small at t = 1" in run.message and "singularity" in run.message
    assert abs(run.t[-1] - 1) < 1e-4 and run.y.shape == (1, len(run.t))
    assert abs(run.sol(0.5)[0] - 2) < 1e-4


def test_a_field_that_is_not_finite_ends_the_run():
    run = nh.solve_ivp((TranslationAction("y"), lambda t, y: -ca.log(1 - t)), (0, 2), [0.0])
    assert run.status == -1 and "not finite" in run.message
    assert abs(run.t[-1] - 1) < 1e-3


def test_values_that_do_not_fit_are_refused(snapshot):
    arguments = {"equations": top(), "t_span": (0.0, 1.0), "x0": start()}
    changes = (
        {"method": "RK45"},
        {"x0": [1.0, 0]},
        {"x0": [2.0, 0, 0, 0, 0, 0, 0]},
        {"x0": [np.nan] * 7},
        {"t_span": (0, np.inf)},
        {"u": [1.0]},
        {"rtol": 1e-15},
        {"rtol": np.inf},
        {"atol": 0.0},
        {"atol": [1e-9] * 3},
        {"first_step": -0.1},
        {"first_step": 5.0},
        {"max_step": 0.0},
        {"t_eval": [0.1, 0.1]},
        {"t_eval": [0.5, 3.0]},
        {"equations": (LINE, lambda t, x: [x[1], math.sin(x[0])])},
        {"equations": (LINE, lambda t, x: x[0])},
    )
    assert [refusal(lambda: nh.solve_ivp(**arguments | one)) for one in changes] == snapshot
    sphere, group = SphereAction(), LeftMultiplication(SO3Group(), "abcd")
    line = AdaptiveIntegrator((LINE, lambda t, x: [x[1], -x[0]]))
    wrong = (
        lambda: AdaptiveIntegrator((sphere, TURNING)).solve((0, 1), [1.0, 0, 0], u=[0.4]),
        lambda: AdaptiveIntegrator((LINE, TURNING)),
        lambda: AdaptiveIntegrator((group, TURNING)),
        lambda: AdaptiveIntegrator((sphere, TURNING), u=lambda t, x: [t, t]),
        lambda: nh.solve_ivp((LINE, van_der_pol), (0, 1), [0.0, 0.0], u=lambda t, x: [0]),
        lambda: nh.solve_ivp(top(), (0, 1), start(), method=TABLES["rkmk4"]),
        lambda: line.solve((0, 2), [1.0, 0.0], first_step=2.0001),
        lambda: line.solve((2, 0), [1.0, 0.0], t_eval=[0.4, 0.5]),
        *(
            lambda t=t: line.solve((0, 2), [1.0, 0.0], t_eval=t)
            for t in ([0.5, 0.4], [0.5, np.nan], 0.5, [[0.5]])
        ),
    )
    assert [refusal(call) for call in wrong] == snapshot


@pytest.mark.parametrize(
    "off, fits", [(0.9e-6, True), (-0.9e-6, True), (1.1e-6, False), (-1.1e-6, False)]
)
def test_a_start_is_on_the_manifold_to_a_millionth_and_is_put_onto_it(off, fits):
    one = AdaptiveIntegrator((SphereAction(), lambda t, q: [0, 0, 1]))
    if fits:
        ((x, y, z),) = one.solve((0, 0), [0.0, 0.0, 1 + off]).y.T
        assert (x, y, z) == (0.0, 0.0, 1.0)
        return
    with pytest.raises(ValueError, match="x0 is not on the manifold"):
        one.solve((0, 0), [0.0, 0.0, 1 + off])


def test_a_run_leaves_nothing_to_the_next_one():
    """Neither numbers, also after a failure, nor changes of results that were returned."""
    one = AdaptiveIntegrator((LINE, lambda t, y: [ca.log(1 - t) - y[0], y[0]]))  # ends at t = 1
    runs = [one.solve((0, 0.5), [2.0, 0.0])]
    t, y = runs[0].t.copy(), runs[0].y.copy()
    assert one.solve((2, 3), [1.0, 3.0]).status == -1
    runs.append(one.solve((0, 0.5), [2.0, 0.0]))
    for run in runs:
        assert run.nfev == runs[0].nfev
        np.testing.assert_array_equal(run.t, t)
        np.testing.assert_array_equal(run.y, y)


def test_threads_share_an_integrator():
    one, times = integrator("rkmk54"), np.linspace(0, SECONDS, 50)
    starts = [start() + np.r_[0, 0, 0, 0, k * 0.01, 0, 0] for k in range(8)]
    alone = [one.solve((0, SECONDS), x, t_eval=times, rtol=1e-9).y for x in starts]
    with ThreadPoolExecutor(4) as pool:
        among = list(
            pool.map(lambda x: one.solve((0, SECONDS), x, t_eval=times, rtol=1e-9).y, starts)
        )
    assert all(np.array_equal(a, b) for a, b in zip(alone, among))
