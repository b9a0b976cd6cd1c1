"""What problems of one structure share: nothing is built twice, no number is taken from another
problem, and no structure for another.
"""

from dataclasses import dataclass
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from optimal_cases import pushed_ball, resting, wandering
from random_trees import random_tree
from refusals import refusal
from tiers import with_compiler

import nh_control as nh
from nh_control.control import costs
from nh_control.control.costs import Cost
from nh_control.control.optimal import interior_point, layout, structure, transcription
from nh_control.control.optimal.structure import structures
from nh_control.control.optimal.transcription import Problem, solvers
from nh_control.integrators import INTEGRATORS
from nh_control.numerics.compiled import wait_for_compiler
from nh_control.systems import pendulum

PENDULUM = nh.midpoint(pendulum(), 0.1)
STEPS = 12
FACTOR = 1.0
SHARED = SimpleNamespace(factor=1.0)


def forget():
    """What a new process knows."""
    structures._by_key.clear()
    solvers._idle.clear()
    costs._derived.cache_clear()


def numbers(found):
    """All numbers of an optimum, to the bit."""
    m, t = found.multipliers, found.trajectory
    arrays = t.states, t.inputs, m.costates, m.end, *m.inequalities.values(), *m.slacks.values()
    history = [(i.cost, i.descent, i.step) for i in found.history]
    text = found.cost, found.reason, tuple(m.inequalities), history, found.parameters
    return [a.tobytes() for a in arrays], text


def drawn(dsys, steps, seed, **more):
    """A problem with all kinds of numbers at random: reference, weights, guess and limits."""
    rng = np.random.default_rng(seed)
    wanted = wandering(dsys, steps, rng, 0.2)
    Q, R = np.diag(rng.uniform(1, 2, dsys.ndx)), np.diag(rng.uniform(0.1, 0.2, dsys.nu))
    cost = nh.quadratic_cost(dsys, wanted, Q, R, 10 * Q)
    limits = {name: (-rng.uniform(1, 2), rng.uniform(1, 2)) for name in dsys.inputs}
    return dict(cost=cost, guess=wandering(dsys, steps, rng, 0.1), limits=limits, **more)


def swing(seed):
    """With a limit of a state, constraints, an end, a free parameter and two threads."""
    rng = np.random.default_rng(seed)
    walls = rng.uniform(2.0, 3.0, (STEPS + 1, 1))
    constraints = [
        nh.Constraint("wall", lambda x, u, w: w[0] - x[0], 0, parameters=walls),
        nh.Constraint("power", lambda x, u, w: x[1] * u[0], -rng.uniform(3, 4), 5.0, weight=seed),
    ]
    more = dict(constraints=constraints, end=[0.1 * seed, 0.0], fixed=["theta"], threads=2)
    given = drawn(PENDULUM, STEPS, seed, **more, free=["m"])
    given["limits"] |= {"p_theta": (-9.0 - seed, 9.0), "m": (0.5, 1.5 + 0.1 * seed)}
    return PENDULUM, given


def on_sphere(seed):
    return BALL, drawn(BALL, 8, seed, hessian="exact")


def tree(seed):
    return TREE, drawn(TREE, 6, seed, max_iterations=20)


BALL = nh.midpoint(pushed_ball(), 0.05)
TREE = nh.midpoint(random_tree([0, 1, 0], np.random.default_rng(3)).system, 0.02)
CASES = [swing, on_sphere, tree]


def solve(case, seed):
    dsys, given = case(seed)
    return numbers(nh.optimize(dsys, **given))


@pytest.mark.parametrize("case", CASES)
def test_a_known_problem_has_the_bits_of_a_new_one(case):
    forget()
    first = solve(case, 2)
    forget()
    solve(case, 1)
    assert solve(case, 2) == first
    assert len(structures._by_key) == len(solvers._idle) == 1


def test_a_solver_that_is_used_again_is_as_new():
    dsys, given = swing(1)
    given |= {"steps": STEPS, "curved": False}
    problem = Problem(dsys, **{name: given[name] for name in given if name != "guess"})
    with solvers.lease(problem) as used:
        used.record.mu, used.record.widest = 0.1, 10.0
        interior_point.start(used, given["guess"])
        for _ in range(3):
            used.call("nh_ocp_iterate")
    with solvers.lease(problem) as again:
        assert again is used
        new = transcription.Transcription(problem)
        for name in (*layout.NUMBERS, *layout.COUNTS):
            assert getattr(again.record, name) == getattr(new.record, name), name
        for name in layout.ARRAYS.keys() - transcription._computed_shapes(problem).keys():
            np.testing.assert_array_equal(again.array(name), new.array(name), name)
        for mine, yours in zip(again._routines, new._routines):
            for name in ("x", "u", "p", "z", "x1", "warm", "sizes", "ab", "r_z"):
                np.testing.assert_array_equal(*(getattr(r.work, name) for r in (mine, yours)))


@pytest.mark.parametrize("case", CASES)
def test_a_known_problem_builds_no_graph_and_no_function(case, monkeypatch):
    solve(case, 1)
    dsys, given = case(2)  # a cost with a reference and weights of its own is no graph, either

    def refuse(*_, **__):
        raise AssertionError("a graph is built")

    monkeypatch.setattr(ca, "Function", refuse)
    monkeypatch.setattr(ca.SX, "sym", refuse)
    assert nh.optimize(dsys, **given).history


def test_a_system_with_other_parameters_shares_the_functions():
    forget()
    other = PENDULUM.with_parameters(m=0.7).with_step(0.08)
    found = {dsys: nh.optimize(dsys, **drawn(dsys, STEPS, 1)) for dsys in (PENDULUM, other)}
    assert len(structures._by_key) == 1
    forget()
    assert numbers(nh.optimize(other, **drawn(other, STEPS, 1))) == numbers(found[other])
    assert found[other].cost != found[PENDULUM].cost


# --- what makes a structure ----------------------------------------------------------------------


def effort(factor=1.0):
    return Cost(lambda x, u, w: factor * ca.sumsqr(u) + ca.sumsqr(x - 1))


def bound(**given):
    return {
        "constraints": [nh.Constraint("c", **{"f": lambda x, u, w: x[0], "upper": 0.3} | given)]
    }


OTHERS = {
    "cost": ({}, {"cost": effort(2.0)}),
    "terminal cost": ({}, {"cost": Cost(effort().stage, lambda x, w: 9 * ca.sumsqr(x))}),
    "sum": ({"cost": effort() + effort(2.0)}, {"cost": effort() + effort(3.0)}),
    "sum of three": (
        {"cost": effort() + effort(2.0) + effort(2.0)},
        {"cost": effort() + effort(3.0) + effort(2.0)},
    ),
    "horizon": ({}, {"steps": 9}),
    "limit of an input": ({}, {"limits": {"torque": (-0.5, 0.5)}}),
    "limit of a state": ({}, {"limits": {"p_theta": (-0.5, 0.5)}}),
    "one-sided limit": ({"limits": {"p_theta": (-9, 0.5)}}, {"limits": {"p_theta": (-9, np.inf)}}),
    "constraint": ({}, bound()),
    "other constraint": (bound(), bound(f=lambda x, u, w: x[0] ** 3)),
    "side of a bound": (bound(), bound(lower=0.3, upper=np.inf)),
    "second bound": (bound(lower=-0.2), bound(lower=-0.2, upper=np.inf)),
    "weight": (bound(), bound(weight=0.1)),
    "end": ({}, {"end": [0.2, 0.0]}),
    "fixed": ({"end": [0.2, 0.0]}, {"end": [0.2, 0.0], "fixed": ["theta"]}),
    "periodic": ({}, {"periodic": True}),
    "free": ({}, {"free": ["p_theta"]}),
    "free parameter": ({"free": ["p_theta"]}, {"free": ["m"], "limits": {"m": (0.9, 1.2)}}),
    "hessian": ({}, {"hessian": "gauss_newton"}),
    "mass": ({}, {"dsys": PENDULUM.with_parameters(m=2.0)}),
    "method": ({}, {"dsys": INTEGRATORS["midpoint_order4"].make(pendulum(), 0.1)}),
}


def found(dsys=PENDULUM, steps=STEPS, **given):
    cost = given.pop("cost", effort())
    return numbers(nh.optimize(dsys, cost, resting(dsys, steps, [0.1, 0.0]), **given))


@pytest.mark.parametrize("name", OTHERS)
def test_structures_are_not_confused(name):
    """Each after the other has the bits that it has alone, and these differ."""
    alone = []
    for given in OTHERS[name]:
        forget()
        alone.append(found(**given))
    forget()
    assert [found(**given) for given in (*OTHERS[name], *OTHERS[name])] == [*alone, *alone]
    assert alone[0] != alone[1]


@dataclass
class Weights:
    effort: float = 1.0


def test_a_prepared_problem_keeps_its_end():
    end = np.array([0.2, 0.0])
    problem = nh.OptimalControl(PENDULUM, effort(), STEPS, end=end)
    guess = resting(PENDULUM, STEPS, [0.1, 0.0])
    first = numbers(problem.solve(guess.states[0], guess))
    end[0] = 0.5
    assert numbers(problem.solve(guess.states[0], guess)) == first


@pytest.mark.parametrize("kind", ["global", "object", "list", "array", "own class", "default"])
def test_a_function_whose_variables_changed_is_another_one(kind, monkeypatch):
    values, array, weights = [1.0], np.array([1.0]), Weights()
    stages = {
        "global": lambda x, u, w: FACTOR * ca.sumsqr(u) + ca.sumsqr(x - 1),
        "object": lambda x, u, w: SHARED.factor * ca.sumsqr(u) + ca.sumsqr(x - 1),
        "list": lambda x, u, w: values[0] * ca.sumsqr(u) + ca.sumsqr(x - 1),
        "array": lambda x, u, w: array[0] * ca.sumsqr(u) + ca.sumsqr(x - 1),
        "own class": lambda x, u, w: weights.effort * ca.sumsqr(u) + ca.sumsqr(x - 1),
        "default": lambda x, u, w, factor=values: factor[0] * ca.sumsqr(u) + ca.sumsqr(x - 1),
    }
    cost = Cost(stages[kind])
    assert found(cost=cost) == found(cost=effort())
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    monkeypatch.setattr(SHARED, "factor", 2.0)
    values[0] = array[0] = weights.effort = 2.0
    assert found(cost=cost)[0] == found(cost=effort(2.0))[0]


# --- memory, compiled code and the prepared problem ----------------------------------------------


def test_the_last_structures_and_workspaces_are_kept(monkeypatch):
    forget()
    monkeypatch.setattr(structure, "MOST", 3)
    monkeypatch.setattr(transcription, "CACHE_BYTES", 200_000)
    for steps in range(20, 200, 20):
        found(steps=steps, cost=effort(float(steps)), max_iterations=1)
    assert len(structures._by_key) == 3
    kept = [solver.record.steps for solver in solvers._idle.values()]
    assert sum(solver.bytes for solver in solvers._idle.values()) <= 200_000
    assert 1 <= len(kept) < 9 and kept[-1] == 180


@pytest.mark.slow
def test_compiled_code_takes_over():
    forget()
    with with_compiler():
        dsys = nh.midpoint(pendulum(), 0.1)
        first = found(dsys)
        wait_for_compiler()
        again = found(dsys)
        (solver,) = solvers._idle.values()
        assert again == first and solver.is_current
        assert solver.problem.structure.cost.is_compiled
    forget()


def test_solvers_of_one_problem_at_once_are_different():
    problem = Problem(PENDULUM, effort(), STEPS)
    one, other = solvers.take(problem), solvers.take(problem)
    assert one is not other
    solvers.give(one), solvers.give(other)
    assert solvers.take(problem) is other


def test_a_prepared_problem_is_solved_from_states_and_guesses():
    cost, limits = effort(), nh.Limits(torque=(-2, 2))
    control = nh.OptimalControl(PENDULUM, cost, STEPS, limits=limits)
    guess = resting(PENDULUM, STEPS, [0.1, 0.0])
    by_guess = control.solve(guess=guess)
    assert numbers(by_guess) == numbers(nh.optimize(PENDULUM, cost, guess, limits=limits))
    assert numbers(control.solve([0.1, 0.0])) == numbers(by_guess)
    moved = control.solve([0.2, 0.1], guess)
    np.testing.assert_array_equal(moved.trajectory.states[0], [0.2, 0.1])
    near = control.solve([0.2, 0.1], warm_start=by_guess)
    assert near.cost == pytest.approx(moved.cost, rel=1e-9)
    assert len(near.history) < len(moved.history)


def test_what_a_prepared_problem_cannot_solve_is_refused(snapshot):
    control = nh.OptimalControl(PENDULUM, effort(), STEPS)
    wrong = (
        {},
        {"x0": [0.0]},
        {"x0": [np.nan, 0.0]},
        {"guess": resting(PENDULUM, STEPS + 1)},
        {"guess": resting(BALL, STEPS)},
    )
    assert [refusal(lambda: control.solve(**given)) for given in wrong] == snapshot
