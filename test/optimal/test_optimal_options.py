"""Costs, barriers and excess in numbers made by hand; what the options of optimizers and fits do;
on models of a few steps.
"""

from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from masses import mass

import nh_control as nh
from nh_control.control.collocation import _unknowns, collocate, resample
from nh_control.control.costs import (
    Cost,
    barrier_cost,
    compile_cost,
    limit_bounds,
    limit_excess,
    quadratic_cost,
)
from nh_control.control.identification import identify, segments
from nh_control.control.optimize import optimize
from nh_control.control.parameter_fit import MotionSegment, ParameterFit, with_values
from nh_control.control.projection import project_trajectory
from nh_control.discrete.results import Conditioning, StepFailed
from nh_control.discrete.trajectory import Trajectory
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.systems import pendulum


@pytest.fixture
def carts():
    """Two carts that are pushed, states (a, b, p_a, p_b)."""
    system = nh.System(
        name="carts",
        space=nh.Rn("a", "b"),
        lagrangian=lambda q, v: (v[0] ** 2 + v[1] ** 2) / 2,
        inputs=("push", "pull"),
        force=lambda q, v, u: u,
    )
    return nh.midpoint(system, 0.1)


LIMITS = {"b": (-1.0, 3.0), "p_a": (-np.inf, 2.0), "pull": (0.5, np.inf), "push": (-2.0, 0.0)}


def test_excess_is_a_fraction_of_the_distance_of_the_limits_where_there_is_one(carts):
    """The first state is given, and does not count; nor what has no limit."""
    both, span = limit_bounds(carts, LIMITS)
    assert both.tolist() == [
        *([-np.inf, np.inf], [-1.0, 3.0], [-np.inf, 2.0], [-np.inf, np.inf]),
        *([-2.0, 0.0], [0.5, np.inf]),
    ]
    assert span.tolist() == [1.0, 4.0, 1.0, 1.0, 2.0, 1.0]
    inside = np.zeros((3, 4)), np.tile([-1.0, 9.0], (2, 1))
    for change, expected in (
        ({}, -0.25),  # b, a quarter of its distance from the lower limit
        ({(1, 1): -2.0}, 0.25),
        ({(2, 1): 5.0}, 0.5),
        ({(2, 2): 2.125}, 0.125),
        ({(0, 1): 99.0}, -0.25),
        ({(1, 0): 99.0, (1, 3): -99.0}, -0.25),
        ({(0, 4): 1.0}, 0.5),
        ({(1, 4): -3.0}, 0.5),
        ({(1, 5): 0.25}, 0.25),
    ):
        states, inputs = (each.copy() for each in inside)
        for (k, i), value in change.items():
            (states if i < 4 else inputs)[k, i % 4] = value
        found = limit_excess(carts, LIMITS, Trajectory(0.1, states, inputs))
        assert found == pytest.approx(expected), change


def test_a_barrier_is_the_sum_of_its_walls_the_last_node_s_of_states_alone(carts):
    """Against the formula, with nodes inside, in the relaxed part, and outside."""
    weight, d = 0.3, 0.2

    def b(s):
        return -np.log(s) if s > d else ((s - 2 * d) ** 2 / d**2 - 1) / 2 - np.log(d)

    rng = np.random.default_rng(0)
    states, inputs = rng.uniform(-2, 4, (5, 4)), rng.uniform(-3, 3, (4, 2))
    slacks = [(states[:, 1] + 1) / 4, (3 - states[:, 1]) / 4, 2 - states[:, 2]]
    slacks += [(inputs[:, 0] + 2) / 2, -inputs[:, 0] / 2, inputs[:, 1] - 0.5]
    slacks = np.concatenate(slacks)
    assert (slacks < 0).any() and (slacks > d).any() and ((slacks > 0) & (slacks < d)).any()
    cost = compile_cost(carts, barrier_cost(carts, LIMITS, weight, d, 4))
    assert cost(states, inputs) == pytest.approx(weight * sum(map(b, slacks)), rel=1e-12)


def test_costs_add_whether_they_have_parameters_or_not(carts):
    """Each gets its own, in either order."""
    states, inputs = np.arange(12.0).reshape(3, 4), np.arange(4.0).reshape(2, 2)
    w = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    one = Cost(lambda x, u, w: w[0] * x[0], lambda x, w: w[1] * x[1], w)
    other = Cost(lambda x, u, w: w[0] * u[1], lambda x, w: w[0] * x[2], 7 * w[:, :1])
    plain = Cost(lambda x, u, w: 100 * u[0])
    of_one, of_other, of_plain = 2.0 * 4 + 30 * 9, 7 * 1.0 + 14 * 3 + 21 * 10, 200.0
    for added, n_parameters, expected in (
        (one + other, 3, of_one + of_other),
        (other + one, 3, of_one + of_other),
        (plain + other + one, 3, of_one + of_other + of_plain),
        (one + plain, 2, of_one + of_plain),
        (plain + plain, 0, 2 * of_plain),
    ):
        assert added.n_parameters == n_parameters
        assert compile_cost(carts, added)(states, inputs) == expected
    with pytest.raises(ValueError, match="parameters must be finite"):
        Cost(lambda x, u, w: w[0], parameters=np.array([[1.0], [np.nan]]))


def test_the_terminal_weight_of_a_quadratic_cost_is_q_by_default(carts):
    still = Trajectory(0.1, np.zeros((3, 4)), np.zeros((2, 2)))
    Q, R = np.diag([1.0, 2.0, 3.0, 4.0]), np.diag([5.0, 6.0])
    states, inputs = np.zeros((3, 4)), np.ones((2, 2))
    states[2] = 1.0
    assert compile_cost(carts, quadratic_cost(carts, still, Q, R))(states, inputs) == 11 + 5
    found = compile_cost(carts, quadratic_cost(carts, still, Q, R, 4 * Q))(states, inputs)
    assert found == 11 + 20


def test_within_limits_iterations_are_counted_on_and_the_cost_is_without_the_walls():
    dsys = nh.midpoint(pendulum(), 0.1)
    raised = Trajectory(0.1, np.tile([1.0, 0.0], (5, 1)), np.zeros((4, 1)))
    rest = Trajectory(0.1, np.zeros((5, 2)), np.zeros((4, 1)))
    cost = quadratic_cost(dsys, raised, np.diag([30.0, 1.0]), 0.1 * np.eye(1))
    walls, seen = (1.0, 0.1), []
    limits = {"torque": (-4.0, 5.0)}
    args = cost, rest, np.eye(2), np.eye(1), "newton"
    options = dict(limits=limits, tolerance=1e-3, barrier_weights=walls)
    found = optimize(dsys, *args, **options, monitor=seen.append)
    assert [i.number for i in found.history] == list(range(len(found.history)))
    assert tuple(seen) == found.history
    states, inputs = found.trajectory.states, found.trajectory.inputs
    assert found.cost == pytest.approx(compile_cost(dsys, cost)(states, inputs), rel=1e-12)
    assert 3.0 < inputs.max() < 5


def test_a_projection_starts_where_it_is_asked_to_and_keeps_what_is_feasible():
    dsys = nh.midpoint(pendulum(), 0.1)
    feasible = dsys.simulate([0.5, 0.2], np.linspace(0, 1, 6)[:, None])
    kept = project_trajectory(dsys, feasible, np.eye(2), np.eye(1))
    np.testing.assert_allclose(kept.states, feasible.states, atol=1e-12)
    wished = Trajectory(0.1, feasible.states + [[0.1, 0.0]], feasible.inputs, name="wished")
    near, far = (project_trajectory(dsys, wished, w * np.eye(2), np.eye(1)) for w in (100.0, 1e-6))
    for run in (near, far):
        assert run.name == "wished" and (run.states[0] == wished.states[0]).all()
        again = dsys.simulate(run.states[0], run.inputs)
        np.testing.assert_allclose(again.states, run.states, atol=1e-10)
    off = [np.abs(run.states - wished.states).max() for run in (near, far)]
    assert off[0] < 0.7 * off[1]


# --- collocation ---------------------------------------------------------------------------------

EFFORT = Cost(lambda x, u, w: ca.sumsqr(u))


def test_options_of_collocation_do_what_they_say(carts, capfd):
    """A problem that IPOPT needs some iterations for, by its bounds."""
    still = Trajectory(0.1, np.zeros((9, 4)), np.zeros((8, 2)), name="crossing")
    end, limits = [0.2, 0.1, 0.0, 0.0], {"push": (-1.5, 1.5), "p_b": (-1.0, 0.2)}
    found = collocate(carts, EFFORT, still, end, limits=limits)
    assert found.converged and found.trajectory.name == "crossing"
    assert capfd.readouterr().out == ""
    steps = len(found.history)
    assert steps > 4 and [i.number for i in found.history] == list(range(steps))
    few = collocate(carts, EFFORT, still, end, limits=limits, max_iterations=2)
    assert not few.converged and "Maximum_Iterations" in few.reason and len(few.history) == 3
    closer = collocate(carts, EFFORT, found.trajectory, end, limits=limits, barrier_start=1e-7)
    assert closer.converged and len(closer.history) < steps - 2
    loose = collocate(carts, EFFORT, still, end, limits=limits, tolerance=1e-2)
    assert loose.converged and len(loose.history) < steps
    capfd.readouterr()
    collocate(carts, EFFORT, still, end, limits=limits, max_iterations=1, verbose=True)
    assert "inf_pr" in capfd.readouterr().out


def test_a_guess_of_another_step_and_a_cost_over_other_steps_are_refused(carts):
    coarse = Trajectory(0.2, np.zeros((5, 4)), np.zeros((4, 2)))
    with pytest.raises(ValueError, match=r"h = 0.2 s, expected 0.1; .*`resample\(guess, 0.1\)`"):
        collocate(carts, EFFORT, coarse)
    long = quadratic_cost(carts, Trajectory(0.1, np.zeros((6, 4)), np.zeros((5, 2))), np.eye(4), [
        [1.0, 0.0], [0.0, 1.0]])  # fmt: skip
    short = Trajectory(0.1, np.zeros((5, 4)), np.zeros((4, 2)))
    with pytest.raises(ValueError, match="5 steps.* 4$"):
        collocate(carts, long, short)


def test_without_a_possible_step_the_unknowns_start_at_zero():
    def fails(x, u):
        raise StepFailed("carts", 0.1, "no luck", 1.0, 1.0, 25, Conditioning(1e9, 1.0, 1.0))

    dsys = SimpleNamespace(unknowns=fails, method=SimpleNamespace(nz=3))
    assert _unknowns(dsys, np.ones(4), np.ones(2)).tolist() == [0.0, 0.0, 0.0]
    dsys.unknowns = lambda x, u: x[:3] + u[0]
    assert _unknowns(dsys, np.arange(4.0), np.ones(2)).tolist() == [1.0, 2.0, 3.0]


def test_the_domain_of_a_model_is_kept_on_the_way():
    """Nothing but the domain keeps the cart from the other side."""
    dsys = nh.midpoint(mass(end=1), 0.1)
    still = Trajectory(0.1, np.zeros((9, 2)), np.zeros((8, 1)))
    beyond = Cost(lambda x, u, w: 1e-3 * ca.sumsqr(u) + (x[0] - 3) ** 2, lambda x, w: 0 * x[0])
    found = collocate(dsys, beyond, still)
    middles = (found.trajectory.states[1:, 0] + found.trajectory.states[:-1, 0]) / 2
    assert found.converged and 0.9 < middles.max() < 1 + 1e-6


def test_a_trajectory_is_resampled_to_a_step_that_does_not_divide_its_own():
    """States at their times, inputs those that act in the middle of each step, the end kept."""
    coarse = Trajectory(0.3, np.array([[0.0], [3.0], [9.0]]), np.array([[1.0], [2.0]]),
                        ("x",), ("push",), "a name")  # fmt: skip
    fine = resample(coarse, 0.2)
    np.testing.assert_allclose(fine.states[:, 0], [0.0, 2.0, 5.0, 9.0], atol=1e-12)
    assert fine.inputs[:, 0].tolist() == [1.0, 2.0, 2.0] and fine.h == 0.2
    assert (fine.name, fine.state_names, fine.input_names) == ("a name", ("x",), ("push",))
    longer = resample(coarse, 0.25)  # two steps are less, three more than 0.6 s
    assert len(longer) == 2 and longer.states[-1, 0] == pytest.approx(3.0 + 6 * 2 / 3)
    over = resample(coarse, 0.16)
    assert len(over) == 4 and over.states[-1, 0] == 9.0 and over.inputs[-1, 0] == 2.0


# --- identification ------------------------------------------------------------------------------


def chain_system():
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Springs(Parameters):
        stiffness: tuple[float, ...] = parameter((1.0, 2.0), "N/m", "of both springs")
        damping: float = parameter(0.0, "N s/m", "of the first", at_least=0.0)
        offset: float = parameter(0.0, "N", "of the second", above=-np.inf)

    def force(q, v, u, p):
        return ca.vertcat(
            -p.stiffness[0] * q[0] - p.damping * v[0], p.offset - p.stiffness[1] * q[1]
        )

    return nh.System(
        name="springs",
        space=nh.Rn("a", "b"),
        parameters=Springs(),
        lagrangian=lambda q, v, p: (v[0] ** 2 + v[1] ** 2) / 2,
        force=force,
    )


def measured(dsys, n=40):
    run = dsys.simulate([0.5, -0.4, 0.0, 0.3], (), steps=n)
    idle = [[(np.zeros(0), dsys.h)]] * n
    return segments(
        dsys, np.arange(n + 1) * round(dsys.h * 1e9), run.states[:, :2], idle, length_s=20 * dsys.h
    )


def test_entries_of_tuples_and_numbers_that_are_zero_can_be_identified():
    """An entry keeps the others; a parameter of 0 is counted in its own unit."""
    dsys = nh.midpoint(chain_system(), 0.05)
    names = ("stiffness[1]", "offset", "stiffness[0]")
    changed = with_values(dsys, names, [3.0, 0.2, 1.5]).system.parameters
    assert (changed.stiffness, changed.offset) == ((1.5, 3.0), 0.2)
    single = with_values(dsys, ("stiffness[1]",), [3.0]).system.parameters
    assert single.stiffness == (1.0, 3.0)
    fit = ParameterFit(dsys, names, measured(dsys))
    assert (fit.scale.tolist(), fit.start.tolist()) == ([2.0, 1.0, 1.0], [1.0, 0.0, 1.0])


def test_parameters_stay_within_the_bounds_that_they_declare():
    """A motion that grows is nearest to one without any damping."""
    dsys = nh.midpoint(chain_system(), 0.05)
    fit = ParameterFit(dsys, ("stiffness[0]", "damping", "offset"), measured(dsys))
    lower, upper = fit.bounds()
    assert lower.tolist() == [0.0, 0.0, -np.inf] and np.isinf(upper).all()
    quiet = with_values(dsys, ("damping",), [0.3])
    delayed = ParameterFit(quiet, ("stiffness[1]", "damping"), lambda delay_s: measured(dsys))
    assert delayed.bounds()[0].tolist() == [0.0, 0.0, -np.inf]
    assert delayed.scale.tolist() == [2.0, 0.3, 0.05] and delayed.start.tolist() == [1.0, 1.0, 0.0]


def test_the_correlation_of_residuals_is_that_of_neighbours_within_a_piece(monkeypatch):
    dsys = nh.midpoint(chain_system(), 0.05)
    fit = ParameterFit(dsys, ("stiffness[0]",), measured(dsys))
    rows = np.random.default_rng(1).normal(size=(sum(fit._rows), 2)) + 1.0
    monkeypatch.setattr(fit, "linearized", lambda relative: (rows.ravel(), None))
    first = fit._rows[0]
    pairs = [(k, k + 1) for k in range(len(rows) - 1) if (k + 1) % first]
    assert len(fit._rows) > 1 and len(pairs) == len(rows) - len(fit._rows)
    expected = sum(rows[a] @ rows[b] for a, b in pairs) / np.sum(rows**2)
    assert fit.correlation(None) == pytest.approx(expected) and expected > 0.1
    rows *= np.where(np.arange(len(rows)) % 2, 1, -1)[:, None]
    assert fit.correlation(None) == 0.0


def test_pieces_have_their_length_their_inputs_and_a_guess_of_the_velocity():
    dsys = nh.midpoint(chain_system(), 0.05)
    times = np.array([0, 100, 200, 300, 400, 500, 900, 1000]) * 1_000_000
    q = np.column_stack([np.arange(8.0), -2 * np.arange(8.0)])
    inputs = [[(np.array([k]), 0.1)] for k in range(7)]
    found = segments(dsys, times, q, inputs, length_s=0.3)
    assert [piece.q[:, 0].tolist() for piece in found] == [[0, 1, 2], [3, 4, 5]]
    assert [[int(i[0][0][0]) for i in piece.inputs] for piece in found] == [[0, 1], [3, 4]]
    assert isinstance(found[0], MotionSegment)
    np.testing.assert_allclose(found[1].velocity, [10.0, -20.0])
    later = segments(dsys, times + 7, q, inputs, length_s=0.3)
    assert [piece.q[:, 0].tolist() for piece in later] == [[0, 1, 2], [3, 4, 5]]


def test_as_many_numbers_as_unknowns_are_too_few_and_no_step_is_infinitely_bad(monkeypatch):
    """Two of the springs' parameters and a state of four, from three measurements of two."""
    dsys = nh.midpoint(chain_system(), 0.5)
    pieces = measured(dsys, n=2)
    names = ("stiffness[0]", "stiffness[1]")
    with pytest.raises(ValueError, match=r"6 measured numbers are too few for \['stiffness\[0\]"):
        identify(dsys, names, pieces)
    fit = ParameterFit(dsys, names, pieces)
    assert np.isfinite(fit.residuals(fit.start)).all()

    def fails(relative):
        raise StepFailed("springs", 0.5, "no luck", 1.0, 1.0, 25, Conditioning(1e9, 1.0, 1.0))

    monkeypatch.setattr(fit, "linearized", fails)
    assert fit.residuals(fit.start).tolist() == [np.inf] * 6


def test_the_derivative_by_the_delay_is_by_later_inputs():
    """The gradient of the squares, with the state eliminated, by differences of the delay, which
    counts in steps.
    """
    dsys, n = nh.midpoint(pendulum(), 0.1), 3
    u, rng = 5 * np.sin(2.0 * np.arange(-1, n + 1)), np.random.default_rng(2)
    q = 0.3 + 0.05 * rng.normal(size=(n + 1, 1))

    def pieces(delay_s):
        inputs = []
        for k in range(1, n + 1):
            now, before, after = (np.array([u[k + i]]) for i in (0, -1, 1))
            late = [(before, delay_s), (now, 0.1 - delay_s)]
            inputs.append(late if delay_s > 0 else [(now, 0.1 + delay_s), (after, -delay_s)])
        return [MotionSegment(q, inputs, np.zeros(1))]

    def squares(delay):
        return (
            np.sum(ParameterFit(dsys, ("l",), pieces).linearized(np.array([1.0, delay]))[0] ** 2)
            / 2
        )

    r, J = ParameterFit(dsys, ("l",), pieces).linearized(np.array([1.0, 0.3]))
    slope = (squares(0.31) - squares(0.29)) / 0.02
    assert J.shape == (n + 1, 2)
    assert J[:, 1] @ r == pytest.approx(slope, rel=0.02)
