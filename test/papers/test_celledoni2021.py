"""The claims of [celledoni2021]: a fast representative of each kind."""

import numpy as np
import pytest

from nh_control.numerics.progress import Progress
from nh_control.papers import PAPERS
from nh_control.papers import celledoni2021_chains as chains
from nh_control.papers import celledoni2021_pairs as pairs
from nh_control.papers.celledoni2021_flow import Problem

PAPER = PAPERS["celledoni2021"]
FAST = ("rigid_body", "4", "9", "11")


def assert_holds(number):
    outcome = PAPER.experiment(number).compute(Progress())
    assert outcome.statements
    for statement in outcome.statements:
        assert statement.holds, (statement.where, statement.ours)


@pytest.mark.parametrize("number", FAST)
def test_what_the_paper_says_holds(number):
    assert_holds(number)


@pytest.mark.parametrize("pair", pairs.COMMUTATOR_FREE)
def test_the_embedded_method_drives_the_steps_of_commutator_free_pairs(pair, monkeypatch):
    """The number of steps grows as tolerance^(-1 / (p~ + 1)); the smallest steps are at the
    peak.
    """
    monkeypatch.setattr(Problem, "accurate", lambda self, t, *_: np.zeros((len(t), len(self.x0))))
    table, levels = pairs.COMMUTATOR_FREE[pair], (1e-4, 1e-6)
    found = [chains.run.__wrapped__(2, 1.0, table, tol) for tol in levels]
    counts = [one.variable.naccepted for one in found]
    growth = np.log(counts[1] / counts[0]) / np.log(levels[0] / levels[1])
    assert growth * (pairs.TABLES[table].embedded_order + 1) == pytest.approx(1, abs=0.15)
    t = found[1].variable.t
    assert t[np.diff(t)[:-1].argmin()] == pytest.approx(2.27, abs=0.05)  # the last is what is left
    assert max(pairs._manifold_error(one) for one in found) < 1e-14


def test_constant_and_variable_runs_have_the_same_number_of_steps(monkeypatch):
    """All steps are equal, except for a last step caused by round-off; no accurate motion is
    computed.
    """
    monkeypatch.setattr(Problem, "accurate", lambda self, t, *_: np.zeros((len(t), len(self.x0))))
    run = chains.run.__wrapped__(2, 1.0)
    sizes = np.diff(run.constant.t)
    assert np.count_nonzero(sizes > 1e-9) == run.variable.naccepted
    assert sizes[0] == pytest.approx(chains.DURATION_S / run.variable.naccepted, rel=1e-12)
