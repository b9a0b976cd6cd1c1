"""Two runs in one page."""

from dataclasses import replace

import numpy as np
import pytest
from motions import animation

from nh_control.view import page as pages
from nh_control.view.two_runs import together


@pytest.fixture(scope="module")
def runs():
    one, _ = animation("cart_pole", frames=101)
    rows = np.arange(0, 61, 2)
    run = one.reference
    shorter = replace(run, position=run.position[rows], wxyz=run.wxyz[rows])
    curves = tuple(replace(c, values=2 * c.values[rows]) for c in one.curves)
    return one, replace(one, title="b", times=one.times[rows], run=shorter, curves=curves)


def test_the_other_run_is_the_ghost(runs):
    one, other = runs
    both = together(one, other)
    assert both.title == "cart_pole <swings> | other: b"
    kept = both.reference
    np.testing.assert_allclose(kept.position[:61:2], other.run.position, atol=1e-12)
    np.testing.assert_allclose(kept.wxyz[:61:2], other.run.wxyz, atol=1e-12)
    middle = (other.run.position[3] + other.run.position[4]) / 2
    np.testing.assert_allclose(kept.position[7], middle, atol=1e-12)
    np.testing.assert_allclose(kept.position[61:], other.run.position[-1:].repeat(40, axis=0))


def test_plots_show_both_and_their_difference(runs):
    one, other = runs
    mine, _, difference, _ = together(one, other).curves
    assert mine.names[:3] == ("curve 0", "curve 0, other", "curve 1")
    np.testing.assert_allclose(mine.values[:61:2, 3], other.curves[0].values[:, 1])
    assert difference.label == "coordinates, difference (m)"
    expected = one.curves[0].values[:61:2] - other.curves[0].values
    np.testing.assert_allclose(difference.values[:61:2], expected, atol=1e-12)
    assert np.isnan(difference.values[61:]).all()
    assert len(pages.page(together(one, other))) > 10_000


def test_curves_are_compared_by_their_names_in_any_order(runs):
    one, other = runs
    turned = tuple(replace(c, names=c.names[::-1], values=c.values[:, ::-1]) for c in other.curves)
    for curves, same in zip(
        together(one, replace(other, curves=turned)).curves, together(one, other).curves
    ):
        np.testing.assert_array_equal(curves.values, same.values)


def test_runs_of_other_scenarios_are_refused(runs):
    with pytest.raises(ValueError, match="two runs in one page show the same frames"):
        together(runs[0], animation("car", frames=11)[0])
