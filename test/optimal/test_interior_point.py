"""The native interior point method: it finds IPOPT's optima, converges quadratically, its errors
are those of the Lagrangian, and it says what cannot be.
"""

import signal
from dataclasses import replace

import casadi as ca
import differences
import numpy as np
import pytest
from optimal_cases import pushed_ball, resting, wandering
from random_trees import random_tree
from refusals import refusal
from swing_ups import NAMES, problem
from threads import gives_way

import nh_control as nh
from nh_control.control.costs import Cost, quadratic_cost
from nh_control.control.optimal import interior_point
from nh_control.control.optimal.layout import Outcome
from nh_control.control.optimal.transcription import Problem, Transcription
from nh_control.integrators import INTEGRATORS
from nh_control.mechanics import parametric
from nh_control.systems import cart_pole, pendulum, snakeboard


def raising(dsys, steps, x, weight=1.0):
    """A cost that draws a system to the state x."""
    wanted = nh.Trajectory(dsys.h, np.tile(x, (steps + 1, 1)), np.zeros((steps, dsys.nu)))
    Q = weight * np.eye(dsys.ndx)
    return quadratic_cost(dsys, wanted, Q, 0.1 * np.eye(dsys.nu))


EFFORT = Cost(lambda x, u, w: ca.sumsqr(u))


def lifting(dsys, steps):
    """A cost that draws a pendulum to one radian."""
    Q, R = np.diag([100.0, 1.0]), 0.1 * np.eye(1)
    return quadratic_cost(dsys, resting(dsys, steps, [1.0, 0.0]), Q, R)


def agree(dsys, cost, guess, **options):
    """Solve by both programs; returns the interior point's optimum."""
    found = nh.optimize(dsys, cost, guess, **options)
    assert found.converged, found.reason
    reference = nh.collocate(dsys, cost, found.trajectory, barrier_start=1e-9, **options)
    assert reference.converged, reference.reason
    assert found.cost == pytest.approx(reference.cost, rel=1e-8)
    for x, y in zip(found.trajectory.states, reference.trajectory.states):
        np.testing.assert_allclose(dsys.local(x, y), 0, atol=1e-6)
    np.testing.assert_allclose(found.trajectory.inputs, reference.trajectory.inputs, atol=1e-5)
    assert nh.collocate(dsys, cost, guess, **options).cost == pytest.approx(found.cost, rel=1e-6)
    return found


LIMITS = {"torque": (-4.0, 9.0), "p_theta": (-2.0, 1.5)}


@pytest.mark.parametrize("limits", [None, LIMITS], ids=["free", "limited"])
def test_its_optimum_is_that_of_ipopt(limits):
    dsys = nh.midpoint(pendulum(), 0.1)
    cost = lifting(dsys, 30)
    found = agree(dsys, cost, resting(dsys, 30), limits=limits)
    assert max(vars(found.errors).values()) < 1e-8
    names = {"torque <= 9", "p_theta <= 1.5"} if limits else set()
    assert set(found.active) == names
    if limits:
        (nodes,) = (found.active[name] for name in ["torque <= 9"])
        np.testing.assert_allclose(found.trajectory.inputs[list(nodes)], 9, atol=1e-6)
        assert (found.multipliers.inequalities["torque <= 9"][list(nodes)] > 1e-3).all()


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: nh.midpoint(pushed_ball(), 0.05), marks=pytest.mark.slow),
        lambda: nh.rdp(snakeboard(), 0.1, "cay"),
    ],
    ids=["sphere", "snakeboard by rdp"],
)
def test_it_finds_the_optima_on_manifolds_from_guesses_that_are_not_feasible(make):
    dsys = make()
    desired, begin = (wandering(dsys, 15, np.random.default_rng(seed)) for seed in (4, 5))
    guess = nh.Trajectory(
        dsys.h, np.vstack([begin.states[:1], desired.states[1:]]), desired.inputs
    )
    cost = quadratic_cost(dsys, desired, np.eye(dsys.ndx), 0.1 * np.eye(dsys.nu))
    limits = {dsys.inputs[0]: (-0.2, 0.3)}
    found = agree(dsys, cost, guess, limits=limits)
    assert found.active
    for k, (x, u) in enumerate(zip(found.trajectory.states, found.trajectory.inputs)):
        there = dsys.local(found.trajectory.states[k + 1], dsys.step(x, u))
        np.testing.assert_allclose(there, 0, atol=1e-8)


def test_free_coordinates_of_the_first_state_are_found_with_the_rest():
    """The best one of all first states, or the one on a limit at the first node."""
    dsys = nh.midpoint(pendulum(), 0.1)
    cost = lifting(dsys, 20)
    guess, options = resting(dsys, 20), dict(limits={"torque": (-4.0, 9.0)})
    found = nh.optimize(dsys, cost, guess, free=["p_theta"], **options)
    assert found.converged and found.trajectory.states[0, 0] == 0.0
    fixed = nh.optimize(dsys, cost, found.trajectory, **options)
    slope = nh.differentiate_optimum(dsys, cost, fixed, ["p_theta"], **options).cost[0]
    assert found.cost == pytest.approx(fixed.cost, rel=1e-9) and abs(slope) < 1e-6
    assert found.cost < 0.9 * nh.optimize(dsys, cost, guess, **options).cost
    slow = dict(limits=options["limits"] | {"p_theta": (-2.0, 1.5)})
    held = nh.optimize(dsys, cost, guess, free=["p_theta"], **slow)
    assert held.converged and held.trajectory.states[0, 1] == pytest.approx(1.5, abs=1e-6)
    both = nh.optimize(dsys, cost, guess, free=["theta", "p_theta"])
    np.testing.assert_allclose(both.trajectory.states[0], 0, atol=2.0)
    assert both.converged and both.errors.stationarity < 1e-8 and both.cost < found.cost


def test_constraints_hold_hard_or_at_their_weight():
    dsys, steps = nh.midpoint(pendulum(), 0.1), 20
    cost = quadratic_cost(dsys, resting(dsys, steps, [1.0, 0.0]), np.eye(2), 0.01 * np.eye(1))
    power = nh.Constraint("power", lambda x, u, w: u[0] * x[1], -np.inf, 0.5)
    height = nh.Constraint(
        "height", lambda x, u, w: ca.vertcat(ca.sin(x[0]) - w[0], x[1]), -0.7, [0.0, 9.0],
        parameters=np.full((steps + 1, 1), 0.4),
    )  # fmt: skip
    hard = agree(dsys, cost, resting(dsys, steps), constraints=[power, height], tolerance=1e-11)
    assert set(hard.active) == {"power <= 0.5", "height[0] <= 0"}
    assert np.sin(hard.trajectory.states[:, 0]).max() == pytest.approx(0.4, abs=1e-7)
    soft = nh.Constraint("height", lambda x, u, w: ca.sin(x[0]), upper=0.4, weight=0.05)
    bent = agree(dsys, cost, resting(dsys, steps), constraints=[soft])
    assert np.sin(bent.trajectory.states[:, 0]).max() > 0.45
    assert bent.multipliers.inequalities["height <= 0.4"].max() == pytest.approx(0.05, rel=1e-5)
    dear = nh.Constraint("height", lambda x, u, w: ca.sin(x[0]), upper=0.4, weight=100.0)
    kept = agree(dsys, cost, resting(dsys, steps), constraints=[dear])
    assert np.sin(kept.trajectory.states[:, 0]).max() == pytest.approx(0.4, abs=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda: nh.midpoint(random_tree([0, 1, 0], np.random.default_rng(3)).system, 0.02),
        lambda: INTEGRATORS["midpoint_order4"].make(pendulum(), 0.1),
    ],
    ids=["tree", "composition"],
)
def test_what_has_no_native_derivatives_is_optimized_too(make):
    """Without second derivatives by Gauss-Newton, and with those from Python."""
    dsys, rng = make(), np.random.default_rng(1)
    begin = wandering(dsys, 8, rng, 0.1)
    goal = dsys.retract(begin.states[0], 0.1 * rng.normal(size=dsys.ndx))
    cost = raising(dsys, 8, goal)
    found = [nh.optimize(dsys, cost, begin, hessian=h) for h in ("gauss_newton", "exact")]
    assert found[0].converged and found[1].converged
    assert len(found[1].history) <= len(found[0].history)
    assert found[0].cost == pytest.approx(found[1].cost, rel=1e-9)
    states = [f.trajectory.states for f in found]
    np.testing.assert_allclose(states[0], states[1], atol=1e-6)


def test_steps_without_second_derivatives_that_turn_back_are_shortened():
    """Full ones go to and fro: after 300 iterations the error is 6e-4."""
    p = problem("cart_pole")
    options = dict(hessian="gauss_newton", tolerance=1e-6, max_iterations=250)
    found = nh.optimize(p.dsys, p.cost, p.guess(9), limits=p.limits, **options)
    assert found.converged, found.reason


def test_steps_without_second_derivatives_are_mixed_with_those_before_them():
    """It takes 19 iterations; single steps take 34."""
    dsys = nh.midpoint(random_tree([0, 1, 2], np.random.default_rng(5)).system, 0.02)
    start = wandering(dsys, 20, np.random.default_rng(0), 0.0)
    moved = np.where(np.arange(dsys.ndx) < dsys.system.space.nv, 1.0, 0.0)
    goal = np.tile(dsys.retract(start.states[0], moved), (21, 1))
    wanted = nh.Trajectory(dsys.h, goal, np.zeros((20, dsys.nu)))
    Q, R = 0.02 * np.eye(dsys.ndx), 2e-5 * np.eye(dsys.nu)
    cost = quadratic_cost(dsys, wanted, Q, R, 500 * Q)
    found = nh.optimize(dsys, cost, start)
    assert found.converged and len(found.history) <= 24


def test_steps_that_cannot_be_mixed_are_shortened():
    """Like steps that have no others before them."""
    dsys = nh.midpoint(pushed_ball(), 0.05)
    begin = wandering(dsys, 20, np.random.default_rng(1))
    cost = raising(dsys, 20, dsys.retract(begin.states[0], np.array([0.9, -0.5, 0.0, 0.0])))
    problem = Problem(dsys, cost, 20, {"force_x": (-0.4, 0.4)}, curved=False)
    inputs, lengths = [], []
    for singular in (True, False):
        native = Transcription(problem)
        r = native.record
        r.mu = r.mu_end = 1e-3
        r.tolerance, r.widest = 0.0, 1e4
        interior_point.start(native, begin)
        for _ in range(19):
            native.call("nh_ocp_iterate")
        assert r.mixed > 1
        if singular:  # Gram's matrix
            native.array("step_changes")[...] = 0.0
        else:
            r.mixed = -1
        native.call("nh_ocp_iterate")
        inputs.append(native.array("u").copy())
        lengths.append(r.length)
    assert lengths[0] < 1.0
    np.testing.assert_array_equal(*inputs)


def errors_at(problem, guess, mu, count):
    """Errors of the first iterations at a fixed barrier."""
    native = Transcription(problem)
    r = native.record
    r.mu = r.mu_end = mu
    r.tolerance, r.widest = 0.0, 10.0
    interior_point.start(native, guess)
    errors = []
    for _ in range(count):
        outcome = native.call("nh_ocp_iterate")
        products = native.array("s") * native.array("lam")
        central = np.abs(products[products > 0] - mu).max()
        errors.append(max(r.stationarity, r.violation, central))
        if outcome != Outcome.GOES_ON:
            break
    return np.array(errors)


def test_it_converges_quadratically_at_a_fixed_barrier():
    dsys = nh.midpoint(pushed_ball(), 0.05)
    begin = wandering(dsys, 20, np.random.default_rng(1))
    cost = raising(dsys, 20, dsys.retract(begin.states[0], np.array([0.9, -0.5, 0.0, 0.0])))
    limits = {"force_x": (-0.4, 0.4)}
    exact, gauss = (
        errors_at(Problem(dsys, cost, 20, limits, curved=curved), begin, 1e-3, 20)
        for curved in (True, False)
    )
    last = int(np.flatnonzero(exact < 1e-11)[0])
    near = exact[last - 3 : last + 1]
    assert (near[1:] <= 50 * near[:-1] ** 1.8).all(), exact
    assert gauss[last] > 1e4 * exact[last]  # which converges more slowly


@pytest.mark.slow
def test_its_errors_are_those_of_the_lagrangian():
    """By central differences on a manifold, where nothing has converged yet."""
    dsys, steps = nh.midpoint(pushed_ball(), 0.05), 6
    begin = wandering(dsys, steps, np.random.default_rng(1))
    far = dsys.retract(begin.states[0], np.array([0.5, -0.3, 0.1, 0.0]))
    cost, limits = raising(dsys, steps, far), {"force_x": (-0.4, 0.4)}
    high = nh.Constraint("high", lambda x, u, w: x[2] + 0.1 * u[1] * x[0], lower=-0.2)
    options = dict(limits=limits, constraints=[high], end=far)
    found = nh.optimize(dsys, cost, begin, max_iterations=4, **options)
    assert not found.converged and found.errors.stationarity > 1e-6
    m, total = found.multipliers, nh.control.costs.compile_cost(dsys, cost)

    def lagrangian(y):
        moved = y[: steps * dsys.ndx].reshape(steps, dsys.ndx)
        states = np.vstack([begin.states[:1], dsys.retract(found.trajectory.states[1:], moved)])
        inputs = found.trajectory.inputs + y[steps * dsys.ndx :].reshape(steps, dsys.nu)
        value = total(states, inputs) + m.end @ dsys.local(far, states[-1])
        for k, (x, u) in enumerate(zip(states, inputs)):
            rows = {
                "force_x >= -0.4": u[0] + 0.4,
                "force_x <= 0.4": 0.4 - u[0],
                "high >= -0.2": x[2] + 0.1 * u[1] * x[0] + 0.2,
            }
            value += m.costates[k] @ dsys.local(states[k + 1], dsys.step(x, u))
            value -= sum(m.inequalities[name][k] * row for name, row in rows.items())
        return value

    slopes = differences.jacobian(lagrangian, steps * (dsys.ndx + dsys.nu), 1e-3)
    assert np.abs(slopes).max() == pytest.approx(found.errors.stationarity, rel=1e-6, abs=1e-9)
    products = [(m.slacks[n] * m.inequalities[n]).max() for n in m.slacks]
    assert max(products) == pytest.approx(found.errors.complementarity, rel=1e-12)


WEAK = {"torque": (-0.1, 0.1)}
HIGH = nh.Constraint("high", lambda x, u, w: ca.sin(x[0]), lower=0.3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(limits={"theta": (0.35, 0.5)} | WEAK), "'theta >= 0.35' is violated"),
        (dict(end=[np.pi, 0.0], limits=WEAK), "end condition is violated"),
        (dict(limits=WEAK, constraints=[HIGH]), "'high >= 0.3' is violated"),
    ],
)
def test_what_cannot_be_met_is_named(options, words):
    dsys = nh.midpoint(pendulum(), 0.1)
    falling = dsys.simulate([0.4, 0.0], np.zeros((8, 1)))
    result = nh.optimize(dsys, EFFORT, falling, max_iterations=100, **options)
    assert not result.converged and words in result.reason, result.reason


def test_the_errors_of_the_last_iterate_are_computed_on_demand():
    """Also after the solver has solved another problem; they are those of the next iteration."""
    dsys = nh.midpoint(pendulum(), 0.1)
    begin, cost = resting(dsys, 10, [0.1, 0.0]), lifting(dsys, 10)
    options = {"limits": {"torque": (-4.0, 9.0), "p_theta": (-2.0, 1.5)}}
    stopped = nh.optimize(dsys, cost, begin, max_iterations=2, **options)
    following = nh.optimize(dsys, cost, begin, max_iterations=3, **options).history[2]
    errors = stopped.errors
    largest = max(errors.stationarity, errors.violation, errors.complementarity)
    assert largest == pytest.approx(following.descent, rel=1e-9)
    assert largest != pytest.approx(stopped.history[1].descent, rel=1e-2)


def test_an_interruption_gives_the_last_iterate():
    dsys = nh.midpoint(pendulum(), 0.1)
    cost = lifting(dsys, 30)

    def interrupt(iteration):
        if iteration.number == 5:
            signal.raise_signal(signal.SIGINT)

    found = nh.optimize(dsys, cost, resting(dsys, 30), limits=LIMITS, monitor=interrupt)
    assert not found.converged and found.reason.startswith("interrupted")
    assert len(found.history) == 6 and np.isfinite(found.trajectory.states).all()


REST = nh.Trajectory(0.1, np.zeros((6, 2)), np.zeros((5, 1)))
WIDE = nh.Trajectory(0.1, np.zeros((6, 3)), np.zeros((5, 1)))
UNIT = np.eye(2), np.eye(1)


def bound(name, f, **options):
    return nh.Constraint(name, f, **{"lower": 0} | options)


ROOT = bound("root", lambda x, u, w: ca.sqrt(x[0] - 1))


def test_wrong_problems_are_refused(snapshot):
    dsys = nh.midpoint(pendulum(), 0.1)
    problems = (
        ((EFFORT, WIDE), {}),
        ((EFFORT, REST, *UNIT), {}),
        ((EFFORT, REST), {"method": "newton"}),
        *(
            ((EFFORT, REST, *UNIT, "newton"), options)
            for options in ({"end": [0, 0]}, {"periodic": True}, {"free": ["h"]})
        ),
        ((EFFORT, REST), {"method": "ddp"}),
        ((EFFORT, REST), {"hessian": "none"}),
        ((EFFORT, REST), {"threads": 0}),
        ((EFFORT, REST), {"limits": {"phi": (0, 1)}}),
        ((EFFORT, REST), {"limits": {"h": (0, 1)}}),
        ((EFFORT, REST), {"free": ["h"], "limits": {"h": (2.0, 1.0)}}),
        ((EFFORT, REST), {"end": [0.0]}),
        ((EFFORT, REST), {"free": ["x"]}),
        ((EFFORT, REST), {"periodic": True, "end": [0, 0]}),
        ((EFFORT, REST), {"periodic": True, "fixed": ["x"]}),
        ((EFFORT, REST), {"constraints": [bound("wide", lambda x, u, w: ca.horzcat(x[0], x[1]))]}),
        ((EFFORT, REST), {"constraints": [bound("many", lambda x, u, w: x, lower=[0, 0, 0])]}),
        ((EFFORT, REST), {"constraints": [ROOT]}),
        ((EFFORT, REST), {"constraints": [ROOT, ROOT]}),
        (
            (EFFORT, REST),
            {"constraints": [bound("l", lambda x, u, w: x[0] - w, parameters=np.zeros((9, 1)))]},
        ),
        ((Cost(lambda x, u, w: ca.log(x[0])), REST), {}),
        ((Cost(lambda x, u, w: w, parameters=np.zeros((3, 1))), REST), {}),
    )
    told = [refusal(lambda: nh.optimize(dsys, *one, **options)) for one, options in problems]
    assert told == snapshot


def test_wrong_constraints_are_refused(snapshot):
    wrong = (
        {"lower": 1.0, "upper": 1.0},
        {"lower": -np.inf},
        {"weight": 0.0},
        {"parameters": np.zeros(3)},
    )
    assert [refusal(lambda: bound("c", lambda x, u, w: x, **one)) for one in wrong] == snapshot


@pytest.mark.parametrize(
    "name",
    [
        "pendulum",
        "cart_pole",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("acrobot", "quadrotor", "ur5e")),
    ],
)
def test_goals_are_reached_within_limits_from_perturbed_guesses(name):
    """From 10, an acrobot from 39 of 40: one guess spins, and leads to another optimum."""
    if name == "ur5e":
        pytest.importorskip("airo_models")
    p = problem(name)
    reached, iterations, guesses = 0, [], 40 if name == "acrobot" else 10
    for seed in range(guesses):
        found = nh.optimize(p.dsys, p.cost, p.guess(seed), limits=p.limits, tolerance=1e-6)
        inputs = found.trajectory.inputs
        assert (inputs > p.bounds[:, 0]).all() and (inputs < p.bounds[:, 1]).all()
        reached += found.converged and p.misses(found.trajectory.states[-1]) < 0.1
        iterations.append(len(found.history))
    assert reached >= (38 if name == "acrobot" else 10)
    assert np.median(iterations) < 130 and max(iterations) < (1000 if name == "acrobot" else 100)


# Optima of five problems -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("limited", [False, True], ids=["free", "limited"])
@pytest.mark.parametrize("name", NAMES)
def test_optima_are_ipopts(name, limited):
    if name == "ur5e":
        pytest.importorskip("airo_models")
    p = problem(name)
    limits = p.limits if limited else {}
    found = nh.optimize(p.dsys, p.cost, p.guess(0), limits=limits, tolerance=1e-9)
    assert found.converged, found.reason
    there = nh.collocate(
        p.dsys, p.cost, found.trajectory, limits=limits, barrier_start=1e-9, tolerance=1e-9
    )
    assert there.converged and there.cost == pytest.approx(found.cost, rel=1e-8)
    for x, y in zip(found.trajectory.states, there.trajectory.states):
        np.testing.assert_allclose(p.dsys.local(x, y), 0, atol=1e-6)


def pushed(force):
    """A mass of 1 kg on a line under a force that depends on the input."""
    return nh.System(
        name="block",
        space=nh.Rn("x"),
        lagrangian=lambda q, v: v[0] ** 2 / 2,
        inputs=("push",),
        force=lambda q, v, u: force(u),
    )


def test_a_predictor_and_a_corrector_take_fewer_iterations_of_a_convex_problem():
    """14, 12 and 12 with steps that aim at what the first ones leave out, else 17, 15 and 14."""
    dsys = nh.midpoint(pushed(lambda u: u), 0.1)
    rest, goal = (resting(dsys, 30, [x, 0.0]) for x in (0.0, 1.0))
    cost = quadratic_cost(dsys, goal, np.diag([10.0, 1.0]), 0.01 * np.eye(1))
    total = 0
    for most in (0.5, 1.0, 2.0):
        limits = {"push": (-most, most), "p_x": (-1.0, 0.4)}
        found = nh.optimize(
            dsys, cost, rest, limits=limits, hessian="gauss_newton", tolerance=1e-9
        )
        assert found.converged
        total += len(found.history)
    assert total <= 41


def test_a_second_order_correction_lets_the_whole_step_be_taken():
    """Where cost and violation rise along it (Maratos): `J = (u - 1)^2 / 4 + M (p + u^2 / 2)` with
    the step `p = -u^2 / 2`, from the feasible u = 0, at the multipliers of the optimum u = 1.
    """
    dsys = nh.midpoint(pushed(lambda u: -(u**2) / 2), 1.0)
    cost = Cost(lambda x, u, w: (u[0] - 1) ** 2 / 4 + 2 * u[0] ** 2 / 2, lambda x, w: 2 * x[1])
    still = nh.Trajectory(1.0, np.zeros((2, 2)), np.zeros((1, 1)))
    found = nh.optimize(dsys, cost, still)
    assert found.converged and found.trajectory.inputs[0, 0] == pytest.approx(1.0, abs=1e-7)
    again = nh.optimize(dsys, cost, still, warm_start=found)
    assert again.converged and again.history[0].step == 1.0
    assert len(again.history) == 2


def test_other_threads_run_during_the_solvers_calls():
    p = replace(problem("pendulum"), steps=10_000)  # calls of a millisecond
    native = Transcription(Problem(p.dsys, p.cost, p.steps, p.limits))
    native.record.mu, native.record.widest = 0.1, interior_point.WIDEST
    interior_point.start(native, p.guess(0))
    assert gives_way(lambda: [native.call("nh_ocp_measure") for _ in range(50)])


# Derivatives of optima ---------------------------------------------------------------------------


TIGHT = dict(tolerance=1e-11)


def moved(guess, dsys, dx):
    """The guess from another first state."""
    first = dsys.retract(guess.states[0], dx)[None]
    return nh.Trajectory(dsys.h, np.vstack([first, guess.states[1:]]), guess.inputs)


def same_derivatives(dsys, cost, guess, by, **options):
    """Derivatives of states, inputs and cost are those of solutions to 1e-6 of their largest."""
    optimum = nh.optimize(dsys, cost, guess, **TIGHT, **options)
    found = nh.differentiate_optimum(dsys, cost, optimum, by, **options)
    names, at = dsys.state_space.tangent_names, optimum.trajectory
    for i, name in enumerate(by):

        def solution(t, name=name):
            dx, values = np.zeros(dsys.ndx), dsys.parameter_values.copy()
            if name in names:
                dx[names.index(name)] = t
            else:
                values[[*dsys.system.parameter_names, "h"].index(name)] += t
            fields = parametric.by_field(dsys.system.parameters, values[:-1])
            d = dsys.with_parameters(**fields).with_step(values[-1])
            again = nh.optimize(d, cost, moved(at, d, dx), warm_start=optimum, **TIGHT, **options)
            assert again.converged
            states = [dsys.local(x, y) for x, y in zip(at.states, again.trajectory.states)]
            return np.concatenate(
                [np.ravel(states), again.trajectory.inputs.ravel(), [again.cost]]
            )

        wanted = differences.derivative(solution, 1e-4)
        got = [found.states[..., i].ravel(), found.inputs[..., i].ravel(), found.cost[i : i + 1]]
        ends = np.cumsum([len(block) for block in got])[:-1]
        for block, exact in zip(got, np.split(wanted, ends), strict=True):
            scale = np.abs(exact).max()
            assert scale > 0
            np.testing.assert_allclose(block / scale, exact / scale, rtol=0, atol=1e-6)
    return optimum


def test_they_are_those_of_solutions_with_limits_constraints_and_an_end():
    dsys, n = nh.midpoint(cart_pole(), 0.05), 20
    wanted = nh.Trajectory(dsys.h, np.tile([0.8, 0.2, 0, 0], (n + 1, 1)), np.zeros((n, 1)))
    cost = quadratic_cost(dsys, wanted, np.diag([3.0, 1.0, 0.1, 0.1]), 0.1 * np.eye(1))
    guess = dsys.simulate([0.1, 0.2, 0, 0], np.zeros((n, 1)))
    track = nh.Constraint("track", lambda x, u, w: x[0] + 0.1 * ca.sin(x[1]), upper=0.3)
    options = dict(limits={"force": (-1.2, 9.0)}, constraints=[track])
    by = [dsys.state_space.tangent_names[1], dsys.system.parameter_names[0], "h"]
    optimum = same_derivatives(dsys, cost, guess, by, **options)
    assert optimum.active
    same_derivatives(dsys, cost, guess, by[:2], end=[0.2, 0.0, 0.0, 0.0], fixed=["x"])


@pytest.mark.slow
def test_they_are_those_of_solutions_on_a_manifold():
    dsys = nh.midpoint(pushed_ball(), 0.05)
    begin = wandering(dsys, 15, np.random.default_rng(1))
    goal = dsys.retract(begin.states[0], np.array([0.6, -0.4, 0.0, 0.0]))
    wanted = nh.Trajectory(dsys.h, np.tile(goal, (16, 1)), np.zeros((15, 2)))
    cost = quadratic_cost(dsys, wanted, np.eye(4), 0.1 * np.eye(2))
    by = [*dsys.state_space.tangent_names[:2], *dsys.system.parameter_names[:1], "h"]
    same_derivatives(dsys, cost, begin, by, limits={"force_x": (-0.4, 0.4)})


def test_what_has_no_derivative_is_refused():
    dsys, n = nh.midpoint(cart_pole(), 0.05), 5
    rest = dsys.simulate(np.zeros(4), np.zeros((n, 1)))
    cost = quadratic_cost(dsys, rest, np.eye(4), np.eye(1))
    found = nh.optimize(dsys, cost, rest)
    with pytest.raises(ValueError, match="unknown quantities \\['color'\\]"):
        nh.differentiate_optimum(dsys, cost, found, ["color"])
    stopped = nh.optimize(dsys, cost, moved(rest, dsys, np.ones(4)), max_iterations=1)
    with pytest.raises(ValueError, match="must have converged"):
        nh.differentiate_optimum(dsys, cost, stopped, ["h"])


@pytest.mark.parametrize(("duration", "limit"), [(2.0, 8.0), (3.0, 15.0)])
def test_a_saddle_is_told_and_left(duration, limit, caplog):
    """A cost that is even in the angle of a sled's pendulum has a saddle at rest below, to which
    the guess at rest leads: no input is better than a little of either sign to first order.
    """
    h = 0.02
    d, n = nh.midpoint(cart_pole(), h), round(duration / h)
    height = lambda x: 1 + ca.cos(x[1])
    cost = Cost(
        lambda x, u, w: h * (0.1 * x[0] ** 2 + height(x) + 0.05 * u**2),
        lambda x, w: 500 * (height(x) + x[0] ** 2) + 50 * ca.sumsqr(x[2:]),
    )
    guess = nh.Trajectory(h, np.zeros((n + 1, 4)), np.zeros((n, 1)))
    found = nh.optimize(d, cost, guess, limits={"force": (-limit, limit)})
    assert found.converged and found.cost < 10 and height(found.trajectory.states[-1]) < 1e-2
    assert "after a perturbation of a saddle with the cost 100" in found.reason
    assert "the guess led to a saddle with the cost 100" in caplog.text
