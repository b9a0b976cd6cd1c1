"""Whole trajectories in one call: the bits of a loop of steps, inputs in all their forms, failures
with their step, other threads running meanwhile.
"""

import numpy as np
import pytest
import threads
from refusals import refusal

from nh_control.discrete import simulation
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.spaces import Rn
from nh_control.integrators import INTEGRATORS, midpoint, nonholonomic_midpoint
from nh_control.mechanics.system import System
from nh_control.systems import cart_pole, snakeboard

INPUTS = 1e-3 * np.random.default_rng(0).normal(size=(40, 2))


@pytest.fixture
def board() -> DiscreteSystem:
    return nonholonomic_midpoint(snakeboard(), 0.05)


def oscillator() -> DiscreteSystem:
    """A system without inputs."""
    system = System("oscillator", Rn("q"), lambda q, v: v[0] ** 2 / 2 - q[0] ** 4 / 4)
    return midpoint(system, 0.1)


def start(dsys: DiscreteSystem) -> np.ndarray:
    return dsys.state([0.0, 0.1, 0.0, 0.0, 0.0], [0.3, 0.02, 0.1, 1.0, 0.0])


def stepped(dsys: DiscreteSystem, x: np.ndarray, inputs) -> np.ndarray:
    states = [x]
    for u in inputs:
        states.append(dsys.step(states[-1], u))
    return np.array(states)


def test_a_trajectory_is_a_loop_of_steps_to_the_bit(board, monkeypatch):
    monkeypatch.setattr(simulation, "CHUNK", 7)
    x, before = start(board), INPUTS.copy()
    run = board.simulate(x, INPUTS, name="swim")
    assert np.array_equal(run.states, stepped(board, x, INPUTS)) and run.name == "swim"
    assert np.array_equal(run.inputs, before) and np.array_equal(x, start(board))


def test_extrapolated_starts_save_iterations_and_keep_the_solution(monkeypatch):
    """A pendulum on a cart: the same states up to round-off, whatever ran before, and in however
    many native calls.
    """
    cart = midpoint(cart_pole(), 0.01)
    x, inputs = cart.state([0.0, 2.0], [0.5, -1.0]), np.sin(0.05 * np.arange(60))[:, None]
    single = cart.simulate(x, inputs).states
    from_zero = cart.solve(single[-2], inputs[-1]).newton_iterations
    run = cart.simulate(x, inputs, extrapolate=True).states
    iterations = cart._arrays.work.info[0]
    np.testing.assert_allclose(run, single, rtol=0, atol=1e-12)
    assert iterations < from_zero
    assert not cart._arrays.work.warm.any()
    monkeypatch.setattr(simulation, "CHUNK", 7)
    assert np.array_equal(cart.simulate(x, inputs, extrapolate=True).states, run)
    assert np.array_equal(cart.simulate(x, inputs).states, single)


def test_extrapolated_starts_measure_residuals_by_the_sizes_of_each_step():
    """From rest to a fast motion, whose residuals never meet a tolerance for rest."""
    pushed = midpoint(
        System(
            "pushed", Rn("q"), lambda q, v: v[0] ** 2 / 2, inputs=("u",), force=lambda q, v, u: u
        ),
        0.1,
    )
    u = np.array([1e6])
    states = pushed.simulate([1e-8, 0.0], u, steps=40, extrapolate=True).states
    sizes = pushed._arrays.work.sizes.copy()
    pushed.step(states[-2], u)
    assert np.array_equal(sizes, pushed._arrays.work.sizes)


def test_extrapolated_starts_are_refused_for_compositions():
    dsys = INTEGRATORS["midpoint_order4"].make(oscillator().system, 0.1)
    with pytest.raises(ValueError, match="extrapolate=True needs a method without substeps"):
        dsys.simulate([1.0, 0.0], 10, extrapolate=True)


def test_one_input_for_all_steps(board):
    x, u = start(board), INPUTS[0]
    expected = stepped(board, x, np.tile(u, (12, 1)))
    assert np.array_equal(board.simulate(x, u, steps=12).states, expected)
    thinned = board.simulate(x, u, steps=12, every=4)
    assert np.array_equal(thinned.states, expected[::4]) and len(thinned) == 3
    assert len(board.simulate(x, u, steps=0)) == 0


def test_the_first_step_that_fails_is_named(board):
    x, u = start(board), np.array([0.0, 20.0])
    states = [x]
    with pytest.raises(StepFailed) as alone:
        while True:
            states.append(board.step(states[-1], u))
    k = len(states) - 1
    for failing in (
        lambda: board.simulate(x, u, steps=100, every=50),
        lambda: board.simulate(x, u, steps=100, every=2),
        lambda: board.simulate(x, np.tile(u, (100, 1))),
    ):
        with pytest.raises(StepFailed, match=f"at step {k} ") as failed:
            failing()
        assert failed.value.step == k > 1 and failed.value.time == k * board.h
        assert failed.value.reason == alone.value.reason
        assert failed.value.conditioning == alone.value.conditioning


def test_wrong_arguments_are_refused(board, snapshot):
    wrong = (
        dict(inputs=100),
        dict(inputs=INPUTS, steps=40),
        dict(inputs=INPUTS[0]),
        dict(inputs=INPUTS[:, :1]),
        dict(inputs=INPUTS[0], steps=7, every=2),
        dict(inputs=INPUTS[0], steps=-1),
        dict(inputs=INPUTS, every=0),
        dict(inputs=5, steps=5),
        dict(inputs=np.vstack([INPUTS[0], [np.nan, 0]])),
    )
    x = start(board)
    assert [refusal(lambda: board.simulate(x, **arguments)) for arguments in wrong] == snapshot


def test_other_threads_run_meanwhile():
    dsys = oscillator()
    x = dsys.state([1.0], [0.0])
    dsys.step(x)
    assert threads.gives_way(lambda: dsys.simulate(x, 200_000, every=200_000))


def test_a_table_holds_the_states_up_to_the_step_that_failed(board):
    """Also where one of several steps between two rows fails, or an input is none."""
    x, u = start(board), np.array([0.0, 20.0])
    with pytest.raises(StepFailed) as failed:
        board.simulate(x, u, steps=100)
    k = failed.value.step
    states = stepped(board, x, np.tile(u, (k, 1)))
    for every in (1, 2):
        table = np.full((101, board.nx), np.nan)
        table[0] = x
        done, why = board.steps_into(table, np.tile(u, (100 // every, 1)), every)
        assert done == k == why.step and f"at step {k} " in str(why)
        rows = k // every
        np.testing.assert_array_equal(table[: rows + 1], states[: every * rows + 1 : every])
    inputs = np.vstack([INPUTS[:3], [np.nan, 0.0], INPUTS[:2]])
    for every in (1, 2):
        table = np.full((7, board.nx), np.nan)
        table[0] = x
        done, why = board.steps_into(table, inputs, every)
        assert done == 3 * every and isinstance(why, ValueError) and "finite" in str(why)
        expected = stepped(board, x, np.repeat(INPUTS[:3], every, axis=0))[::every]
        np.testing.assert_array_equal(table[:4], expected)
    table[0] = x
    assert board.steps_into(table, INPUTS[:6], 2) == (12, None)
