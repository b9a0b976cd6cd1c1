"""The claims of [celledoni2021]: a fast representative of each kind."""

from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from nh_control.mechanics import parametric
from nh_control.numerics.progress import Progress
from nh_control.papers import PAPERS
from nh_control.papers import celledoni2021_chains as chains
from nh_control.papers import celledoni2021_pairs as pairs
from nh_control.papers import celledoni2021_pendulums as pendulums
from nh_control.papers import celledoni2021_top as top
from nh_control.papers.celledoni2021_flow import Problem, Steps, Untouched
from nh_control.systems.rigid_body_fields import rigid_body_momentum

PAPER = PAPERS["celledoni2021"]
FAST = ("rigid_body", "4", "9", "11")
SKETCHES = {"1": ["O", "CM"], "12": ["m_y", "m₁", "m₂"]}


def assert_holds(number):
    outcome = PAPER.experiment(number).compute(Progress())
    assert outcome.statements
    for statement in outcome.statements:
        assert statement.holds, (statement.where, statement.ours)


@pytest.mark.parametrize("number", FAST)
def test_what_the_paper_says_holds(number):
    assert_holds(number)


@pytest.mark.parametrize(("number", "marks"), SKETCHES.items())
def test_sketches_show_the_systems_of_the_paper(number, marks):
    outcome = PAPER.experiment(number).compute(Progress())
    (axes,) = outcome.draw().axes
    assert [text.get_text() for text in axes.texts] == marks and axes.collections


def test_the_time_of_a_step_counts_refused_steps(monkeypatch):
    """Five steps take 10 s, three of which are accepted."""
    solved = SimpleNamespace(naccepted=3, nrejected=2)
    method = SimpleNamespace(solve=lambda *_, **__: solved)
    monkeypatch.setattr(chains, "integrator", lambda n: method)
    monkeypatch.setattr(chains, "time", SimpleNamespace(perf_counter=count(step=10.0).__next__))
    assert chains._trial_s(2) == 2.0


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


def test_two_pendulums_stay_on_the_manifold_without_any_projection():
    problem = pendulums.chain(2, start=pendulums.IN_SPACE[:2])
    steps = Steps("two", {"RKMK4": ("rkmk4", problem.on(Untouched))})
    states = steps.run("RKMK4", problem, 0.01, 500).reshape(-1, 2, 6)
    q, w = np.split(states, 2, axis=2)
    assert np.abs(1 - np.sum(q * q, axis=2)).max() < 1e-13
    assert np.abs(np.sum(q * w, axis=2)).max() < 1e-13
    assert np.ptp(q[..., 1]) > 1  # the motion is not in a plane


@pytest.mark.slow
@pytest.mark.parametrize("table, kept", [("rkmk4", 1e-13), ("rkmk54", 1e-13), ("cf43", 1e-12)])
def test_a_million_steps_stay_on_the_coadjoint_orbit(table, kept):
    action, field = rigid_body_momentum(top.FREE)
    mu = np.array([1.0, 1.5, -0.8])
    problem = Problem("orbit", action, field, parametric.values(top.FREE), mu)
    states = Steps("orbit", {"it": (table, problem)}).run("it", problem, 0.1, 1_000_000)
    assert np.abs(np.linalg.norm(states, axis=1) / np.linalg.norm(mu) - 1).max() < kept


@pytest.mark.slow
@pytest.mark.parametrize(
    "n, length, better", [(2, 1.0, 100), (20, 1.0, 1), (10, 0.5, 10), (20, 0.25, 1000)]
)
def test_variable_steps_are_more_accurate_than_as_many_constant_steps(n, length, better):
    """Figs. 8 and 10 for some N; the reference is much more accurate than the runs."""
    run = chains.run(n, length)
    variable, constant = run.errors
    assert run.uncertainty < 0.01 * variable
    assert variable < 1e-4
    assert constant > better * variable
    assert run.variable.naccepted <= run.constant.naccepted <= run.variable.naccepted + 1


def test_constant_and_variable_runs_have_the_same_number_of_steps(monkeypatch):
    """All steps are equal, except for a last step caused by round-off; no accurate motion is
    computed.
    """
    monkeypatch.setattr(Problem, "accurate", lambda self, t, *_: np.zeros((len(t), len(self.x0))))
    run = chains.run.__wrapped__(2, 1.0)
    sizes = np.diff(run.constant.t)
    assert np.count_nonzero(sizes > 1e-9) == run.variable.naccepted
    assert sizes[0] == pytest.approx(chains.DURATION_S / run.variable.naccepted, rel=1e-12)


def test_the_length_of_the_links_is_an_argument_of_the_compiled_steps():
    """One compiled method on a chain of another length, compared with an independent reference."""
    one, other = chains.run(2, 1.0), chains.run(2, 0.7)
    assert other.errors[0] < 1e-4
    assert np.linalg.norm(other.end - one.end) > 0.1
