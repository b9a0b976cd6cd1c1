"""Steps from many states at once are those of single steps to the bit, whatever the threads."""

import numpy as np
import pytest

import nh_control as nh
from nh_control.control import parallel_steps
from nh_control.control.parallel_steps import step_all
from nh_control.systems.cart_pole import cart_pole


@pytest.fixture
def model():
    return nh.midpoint(cart_pole(), 0.02)


def rows(model, count):
    rng = np.random.default_rng(1)
    return rng.normal(size=(count, model.nx)), rng.normal(size=(count, model.nu))


@pytest.mark.parametrize(("count", "block"), [(5, 256), (9, 2)], ids=["one thread", "threads"])
def test_they_are_single_steps(model, count, block, monkeypatch):
    monkeypatch.setattr(parallel_steps, "BLOCK", block)
    monkeypatch.setattr(parallel_steps, "processors", lambda: 3)
    x, u = rows(model, count)
    after, failures = step_all(model, x, u)
    np.testing.assert_array_equal(after, [model.step(*row) for row in zip(x, u)])
    assert not failures


def test_one_that_fails_leaves_the_others(model):
    x, u = rows(model, 4)
    x[2, 2:] = 1e160
    after, failures = step_all(model, x, u)
    assert list(failures) == [2] and np.isnan(after[2]).all()
    np.testing.assert_array_equal(after[3], model.step(x[3], u[3]))


def test_other_shapes_are_refused(model):
    x, u = rows(model, 3)
    with pytest.raises(ValueError, match=r"inputs \(N, 1\), got shapes \(3, 4\) and \(2, 1\)"):
        step_all(model, x, u[:2])
