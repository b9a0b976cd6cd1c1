"""Compositions: their fractions, orders, derivatives, substeps in one native call, multipliers,
and what cannot be composed.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cases import SYSTEMS, random_point
from differences import hessian, jacobian
from refusals import refusal

sys.path.insert(0, str(Path(__file__).parents[1] / "constraints"))
import linkages  # noqa: E402

import nh_control as nh  # noqa: E402
from nh_control.discrete.engine import Engine  # noqa: E402
from nh_control.discrete.equations import StepEquations  # noqa: E402
from nh_control.discrete.results import StepFailed  # noqa: E402
from nh_control.discrete.system import DiscreteSystem  # noqa: E402
from nh_control.integrators import INTEGRATORS, midpoint  # noqa: E402
from nh_control.integrators.composition import composition, fractions  # noqa: E402
from nh_control.systems.cart_pole import cart_pole  # noqa: E402
from nh_control.systems.pendulum import pendulum  # noqa: E402

KNOWN = [(4, 3), (4, 5), (6, 7), (6, 9), (8, 15), (8, 17)]


@pytest.fixture
def board() -> DiscreteSystem:
    return composition(INTEGRATORS["rdp_cay"], 4, 5).make(SYSTEMS["snakeboard"](), 0.1)


@pytest.mark.parametrize("order, substeps", KNOWN)
def test_fractions_are_symmetric_and_their_odd_powers_cancel(order, substeps):
    g = np.array(fractions(order, substeps))
    assert len(g) == substeps and np.array_equal(g, g[::-1])
    sums = [np.sum(g**k) for k in range(1, order, 2)]
    np.testing.assert_allclose(sums, [1.0] + [0.0] * (len(sums) - 1), rtol=0, atol=4e-15)


@pytest.mark.parametrize("order, substeps", [(4, 5), (6, 9), (8, 17)])
def test_the_number_of_substeps_is_that_of_the_smaller_error(order, substeps):
    made = composition(INTEGRATORS["midpoint"], order)
    assert len(made.make(pendulum(), 0.1).method.substeps) == substeps
    assert (made.name, made.order) == (f"midpoint_order{order}", order)


def test_the_condition_of_a_composition_is_that_of_its_worst_substep():
    base, u = INTEGRATORS["midpoint"].make(cart_pole(), 0.3), [1.0]
    x = base.state([0.0, 1.0], [0.5, -6.0])
    first, second = base.with_step(0.06), base.with_step(0.24)
    ones = first.conditioning(x, u), second.conditioning(first.step(x, u), u)
    both = base.composed((0.2, 0.8), "both").conditioning(x, u)
    other = base.composed((0.8, 0.2), "other").conditioning(x, u)
    assert both.jacobian == pytest.approx(max(one.jacobian for one in ones), rel=1e-6)
    swapped = second.conditioning(x, u), first.conditioning(second.step(x, u), u)
    assert other.jacobian == pytest.approx(max(one.jacobian for one in swapped), rel=1e-6)
    worse = [pair[1].jacobian > pair[0].jacobian for pair in (ones, swapped)]
    assert any(worse)  # not always the first one


STEPS = {
    (4, 3): (24, 32, 48, 64),
    (4, 5): (12, 16, 24, 32),
    (6, 7): (14, 18, 24, 32),
    (6, 9): (8, 10, 12, 16),
    (8, 15): (8, 9, 10, 12),
    (8, 17): (4, 5, 6, 8),
}


@pytest.mark.parametrize("order, substeps", KNOWN)
def test_order(order, substeps):
    """In configuration and velocity alike."""
    method = composition(INTEGRATORS["nonholonomic_midpoint"], order, substeps)
    start = {"q": [0.4, 0.3, -0.2], "v": [0.9, 0.7, 0.9], "u": [0.5, -0.3]}
    found = nh.convergence(
        SYSTEMS["sleigh"](), method, STEPS[order, substeps], duration=2.0, **start
    )
    (errors,) = found.errors.values()
    assert abs(errors.configuration_order - order) <= 0.25, found
    assert abs(errors.velocity_order - order) <= 0.25, found


@pytest.fixture
def rod() -> DiscreteSystem:
    """A pendulum in the plane by order 4, its rod a holonomic constraint."""
    return INTEGRATORS["midpoint_order4"].make(linkages.rod(), 0.05)


def test_multipliers_are_those_of_the_first_substep_over_its_fraction(rod):
    """The force of the rod at q0 once a step knows of the one before, and with derivatives."""
    run = rod.simulate(rod.state([0.7, 0.0], [0.0, 0.4]), steps=4)
    x, v = run.states[-1], rod.velocity(run.states[-1])
    force = -2 * x[:2] * rod.multipliers(x) / rod.h
    inward = (v @ v / 0.7 - 9.8 * x[1] / 0.7) * -x[:2] / 0.7
    np.testing.assert_allclose(force, inward, rtol=0, atol=0.02 * np.linalg.norm(inward))
    lin = rod.linearize(x)
    assert np.array_equal(lin.multipliers, rod.multipliers(x))

    def moved(w):
        at = rod.with_step(rod.h * (1 + w[-1]))
        return at.multipliers(at.retract(x, w[:-1]))

    rates = jacobian(moved, 5, 0.01)
    wide = rod.linearize(x, parameters=("h",))
    got = np.hstack([wide.multipliers_x, rod.h * wide.multipliers_p])
    np.testing.assert_allclose(got, rates, rtol=0, atol=1e-8 * np.abs(rates).max())
    want = hessian(lambda w: moved(np.append(w, 0.0))[0], 4, 0.03)
    curvature = rod.hessian(x, (), np.zeros(4), multiplier_adjoint=[1.0])
    np.testing.assert_allclose(curvature, want, rtol=0, atol=1e-6 * np.abs(want).max())


def test_a_failed_substep_fails_the_step_and_leaves_no_trace(board):
    x, u = random_point(board, np.random.default_rng(3), steering=0.1)
    before = board.step(x, u)
    with pytest.raises(StepFailed, match="rdp_cay_order4_5, h = 0.1 s at step 2 "):
        board.simulate(x, [u, u, [0.0, 1e4], u])
    assert np.array_equal(board.step(x, u), before)


def failed(dsys, x, u) -> str:
    with pytest.raises(StepFailed) as caught:
        dsys.step(x, u)
    return str(caught.value)


def test_substeps_are_tried_from_other_starts_and_the_same_call_says_the_same(monkeypatch):
    """A long step of the sleigh, one of whose substeps fails from zero, and one of a board that
    leaves its domain: to look at the last substep alone again found no fault with it.
    """
    sleigh, board = (
        INTEGRATORS["nonholonomic_midpoint_order4"].make(SYSTEMS[name](), h)
        for name, h in (("sleigh", 4.0), ("snakeboard", 1.0))
    )
    x, u = random_point(sleigh, np.random.default_rng(17))
    with monkeypatch.context() as once:
        once.setattr(Engine, "solve_by_continuation", lambda engine, routine, status, work: status)
        failed(sleigh, x, u)
    x1 = sleigh.step(x, u)
    np.testing.assert_array_equal(sleigh.step(x, u), x1)
    np.testing.assert_array_equal(sleigh.simulate(x, [u]).states[-1], x1)
    np.testing.assert_array_equal(sleigh.linearize(x, u).x1, x1)
    assert np.isfinite(sleigh.hessian(x, u, np.ones(sleigh.ndx))).all()
    at = random_point(board, np.random.default_rng(3))
    told = failed(board, *at)
    assert "leaves the domain" in told and failed(board, *at) == told
    np.testing.assert_array_equal(board._arrays.work.x, at[0])


def test_what_cannot_be_composed_is_refused_by_name(snapshot):
    base, dsys = INTEGRATORS["midpoint"], midpoint(SYSTEMS["pendulum"](), 0.1)
    left = replace(base, name="left", symmetric=False)
    twice = composition(base, 4).make(SYSTEMS["pendulum"](), 0.1)
    remembering = replace(dsys.method, memory=("sigma",), name="remembering")
    wrong = (
        lambda: composition(left, 4),
        lambda: composition(base, 10),
        lambda: dsys.composed((1.0,), "one"),
        lambda: dsys.composed((0.0, 1.0), "none"),
        lambda: dsys.composed((np.nan, 1.0), "nan"),
        lambda: dsys.composed((0.5, 0.5 + 1e-13), "more"),
        lambda: dsys.composed((0.5, 0.5 - 1e-13), "less"),
        lambda: twice.composed((0.5, 0.5), "again"),
        lambda: StepEquations(twice.system, twice.method, "again"),
        lambda: midpoint(linkages.sling(), 0.1).composed((0.5, 0.5), "halves"),
        lambda: DiscreteSystem(dsys.system, 0.1, remembering).composed((0.5, 0.5), "halves"),
    )
    assert [refusal(make) for make in wrong] == snapshot
    assert "prescribed" in composition(base, 4).refuses(linkages.sling())
    for h in (0.0, -0.1, np.inf):
        with pytest.raises(ValueError, match="must be positive"):
            twice.with_step(h)
