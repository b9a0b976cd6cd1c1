"""The swing-up of [johnson2014 VIII-A]: its optimum, the counts of Fig. 3 and the closed loop of
Fig. 4.
"""

import numpy as np
import pytest

from nh_control.control import lqr
from nh_control.papers import johnson2014

OPTIMUM = 13297.378895
"""Of the issue, to its digits."""


@pytest.fixture(scope="module")
def newton():
    return johnson2014.swing_up("newton")


def test_newton_finds_the_optimum_in_the_paper_s_number_of_descents(newton):
    assert newton.converged
    assert newton.cost == pytest.approx(OPTIMUM, abs=1e-6)
    assert len(newton.history) - 1 == pytest.approx(14, abs=2)
    assert {i.kind for i in newton.history} == {"newton", "quasi", ""}
    assert [i.kind for i in newton.history[-4:-1]] == ["newton"] * 3
    lqr.linearize_along(johnson2014.model(), newton.trajectory, gap=1e-12)
    assert abs(newton.trajectory.states[-1, 0] - np.pi) < 0.01


def test_newton_takes_as_many_steps_as_the_authors_program():
    after = johnson2014.swing_up("newton", prepared=johnson2014.PREPARED)
    assert after.converged and after.cost == pytest.approx(OPTIMUM, abs=1e-6)
    assert len(after.history) - 1 == 10


def test_feedback_brings_the_perturbed_start_back(newton):
    tracking = johnson2014.figure_4(newton.trajectory)
    np.testing.assert_array_equal(tracking.closed.states[0], [1.0, 1.0])
    numbers = tracking.numbers()
    assert numbers["first_gain"] == pytest.approx([0.0613, 0.981], rel=1e-3)
    assert numbers["closed_loop"]["end"] < 1e-6 and numbers["closed_loop"]["last_half"] < 0.2
    assert numbers["open_loop"]["last_half"] > 1
