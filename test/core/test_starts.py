"""Where Newton's method starts, when a step from zero does not lead to the end."""

import numpy as np
import pytest
from cases import METHODS, discrete, random_point

from nh_control.discrete import continuation
from nh_control.discrete.results import StepFailed


@pytest.fixture(scope="module")
def sleigh():
    """Steps so long that some fail."""
    return METHODS["rdp-cay-exact-0.5"](discrete("sleigh", "rdp-cay-exact-0.5", 0.1).system, 5.0)


@pytest.fixture(scope="module")
def fast(sleigh):
    """States with five times the momenta, and inputs, that are usual."""
    far = np.where(np.arange(sleigh.nx) < sleigh.system.space.nq, 1.0, 5.0)
    points = (random_point(sleigh, np.random.default_rng(seed)) for seed in range(40))
    return [(far * x, 3 * u) for x, u in points]


def solved(dsys, points):
    """Which of the points have a step."""
    found = set()
    for i, (x, u) in enumerate(points):
        try:
            dsys.step(x, u)
        except StepFailed:
            continue
        found.add(i)
    return found


def test_solutions_of_shorter_and_shorter_steps_are_starts(sleigh, fast, monkeypatch):
    """36 of 40 steps are solved from zero, 37 from the solution of half the step, too, and all
    from those of a quarter and an eighth; none is lost, and none depends on what was tried before.
    """
    expected = {i: sleigh.step(*fast[i]) for i in range(40)}
    monkeypatch.setattr(continuation, "FRACTIONS", ())
    from_zero = solved(sleigh, fast)
    monkeypatch.setattr(continuation, "FRACTIONS", (1 / 2,))
    from_half = solved(sleigh, fast)
    assert len(from_zero) == 36 and len(from_half) == 37 and from_zero < from_half
    for i in from_half:
        np.testing.assert_array_equal(sleigh.step(*fast[i]), expected[i])


def test_a_step_from_another_start_is_a_step(sleigh, fast, monkeypatch):
    monkeypatch.setattr(continuation, "FRACTIONS", ())
    failed = sorted(set(range(40)) - solved(sleigh, fast))
    monkeypatch.undo()
    assert failed
    for x, u in (fast[i] for i in failed):
        x1 = sleigh.step(x, u)
        assert np.abs(sleigh.constraint_residual(x, x1)).max() <= 1e-12 * np.abs(x1).max()
        np.testing.assert_array_equal(sleigh.linearize(x, u).x1, x1)
        np.testing.assert_array_equal(sleigh.simulate(x, [u]).states[-1], x1)
    x, u = (np.array(column) for column in zip(*fast))
    steps = sleigh.linearize_steps(x, np.reshape(u, (len(x), -1)))
    for i in failed:
        np.testing.assert_array_equal(steps.A[i], sleigh.linearize(*fast[i]).A)
        assert sleigh.h == 5.0 and sleigh._arrays.work.p[-1] == 5.0
