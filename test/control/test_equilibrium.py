"""Equilibria by solving; those of quadrotors with a payload are in test_payload_equilibrium."""

import numpy as np
import pytest

from nh_control.control import equilibrium
from nh_control.discrete.results import StepFailed
from nh_control.integrators import nonholonomic_midpoint
from nh_control.systems import snakeboard


@pytest.fixture(scope="module")
def board():
    return nonholonomic_midpoint(snakeboard(), 0.01)


def test_a_change_is_shortened_if_no_step_is_possible_after_it(board):
    """The first one would take the wheels out of the domain in which the model holds."""
    x, u = equilibrium(board, [0, 0.3, 0, 0, 0, 0.5, 0.5, 0], [0, 0])
    np.testing.assert_allclose(board.local(x, board.step(x, u)), 0, atol=1e-9)
    np.testing.assert_allclose(board.velocity(x), 0, atol=1e-7)


def test_a_guess_without_a_possible_step_is_refused(board):
    with pytest.raises(StepFailed, match="domain"):
        equilibrium(board, [0, 2.0, 0, 0, 0, 0.5, 0.5, 0], [0, 0])
