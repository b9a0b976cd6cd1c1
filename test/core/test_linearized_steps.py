"""Derivatives of many steps in one call: the bits of single linearizations, failures with their
step, other threads running meanwhile.
"""

import numpy as np
import pytest
import threads

from nh_control.discrete import linearized_steps
from nh_control.discrete.engine import Engine
from nh_control.discrete.results import StepFailed
from nh_control.integrators import INTEGRATORS, midpoint, nonholonomic_midpoint
from nh_control.multibody import Body, JointInput, Multibody, floating, revolute
from nh_control.systems import cart_pole, snakeboard

INPUTS = 1e-3 * np.random.default_rng(0).normal(size=(20, 2))


@pytest.fixture
def board():
    return nonholonomic_midpoint(snakeboard(), 0.05)


def board_states(board, inputs=INPUTS):
    x = board.state([0.0, 0.1, 0.0, 0.0, 0.0], [0.3, 0.02, 0.1, 1.0, 0.0])
    return board.simulate(x, inputs).states[:-1]


def tree():
    """A floating base that carries a link, by the kernel of trees."""
    frames = [floating("base"), revolute("elbow", "base", "y", position=(0.2, 0.0, 0.1))]
    bodies = [
        Body("base", 2.0, (0.0, 0.0, 0.0), np.diag([0.1, 0.2, 0.25])),
        Body("elbow", 1.0, (0.1, 0.0, 0.0), np.diag([0.01, 0.02, 0.02])),
    ]
    model = Multibody("arm", frames, bodies, inputs=[JointInput("elbow")])
    return midpoint(model.system, 0.01)


def same(dsys, x, u):
    """Check that the derivatives are those of single calls, to the bit."""
    A, B, x1 = dsys.linearize_steps(x, u)
    assert A.shape == (len(x), dsys.ndx, dsys.ndx) and B.shape == (len(x), dsys.ndx, dsys.nu)
    for k in range(len(x)):
        single = dsys.linearize(x[k], u[k])
        for array, alone in zip((A, B, x1), (single.A, single.B, single.x1)):
            np.testing.assert_array_equal(array[k], alone)


def test_steps_have_the_bits_of_single_linearizations(board, monkeypatch):
    monkeypatch.setattr(linearized_steps, "CHUNK", 7)
    calls = []
    single = Engine.linearize.func
    monkeypatch.setattr(Engine.linearize, "func", lambda e: calls.append(1) or single(e))
    board.linearize_steps(board_states(board), INPUTS)
    assert not calls  # no step is linearized from Python
    same(board, board_states(board), INPUTS)
    same(board, np.zeros((0, board.nx)), np.zeros((0, 2)))


def test_trees_and_compositions_have_the_bits_of_single_linearizations():
    arm, rng = tree(), np.random.default_rng(1)
    x = arm.state(arm.system.space.origin, rng.normal(size=arm.system.space.nw))
    u = rng.normal(size=(12, arm.nu))
    same(arm, arm.simulate(x, u).states[:-1], u)
    cart = INTEGRATORS["midpoint_order4"].make(cart_pole(), 0.01)
    x, u = cart.state([0.0, 2.0], [0.5, -1.0]), rng.normal(size=(3, 1))
    same(cart, cart.simulate(x, u).states[:-1], u)


def test_the_first_step_that_fails_is_named(board):
    x, u = board_states(board), INPUTS.copy()
    u[5] = u[9] = 0.0, 1e5
    with pytest.raises(StepFailed, match="at step 5 ") as failed:
        board.linearize_steps(x, u)
    assert failed.value.step == 5


@pytest.mark.parametrize("cut", [np.s_[:, :1], np.s_[:7], np.s_[0], np.s_[0, 0]])
def test_wrong_shapes_are_refused(board, cut):
    x = board_states(board)
    with pytest.raises(ValueError, match=r"expected states \(N, 8\) and inputs \(N, 2\), got"):
        board.linearize_steps(x, INPUTS[cut])
    with pytest.raises(ValueError, match=r"expected states \(N, 8\) and inputs \(N, 2\), got"):
        board.linearize_steps(x[cut], INPUTS)


def test_other_threads_run_meanwhile(board):
    x, u = (np.tile(table, (1000, 1)) for table in (board_states(board), INPUTS))
    assert threads.gives_way(lambda: board.linearize_steps(x, u))
