"""Figures of studies show the runs: successes, confidence and sensitivities."""

import numpy as np
import pytest
from matplotlib.colors import same_color, to_rgba
from test_statistics import made, pendulum

from nh_control.figures import study as figures
from nh_control.figures import style
from nh_control.studies.statistics import statistics


def line(panel, label):
    (found,) = [one for one in panel.lines if one.get_label() == label]
    return np.array(found.get_data(), dtype=float)


@pytest.fixture(scope="module")
def sampled():
    """Fifty runs: ten fail, and 24 of the others succeed."""
    study = pendulum(vary={"m": "1:2", "l": "log:0.5:2"}, points="50", success="0.3")
    masses = np.sort([study.point(i)[0] for i in range(50)])
    failing, good = masses[39], masses[24]
    columns = made(
        study,
        lambda m, length: 0.1 if m < good else 0.9,
        lambda m, length: "bad" if m > failing else "",
    )
    return study, columns, statistics(study, columns)


def test_the_histogram_shows_errors_of_finished_runs_and_the_success_limit(sampled):
    study, columns, found = sampled
    figure = figures.errors(study, columns, found)
    (panel,) = figure.axes
    assert sum(patch.get_height() for patch in panel.patches) == 40
    heights = [patch.get_height() for patch in panel.patches if patch.get_height()]
    assert heights == [24, 16]
    assert line(panel, "success: below")[0].tolist() == [0.3, 0.3]
    assert (panel.get_xscale(), panel.get_ylabel()) == ("log", "runs")
    low, high = (f"{100 * found['success'][end]:.3g} %" for end in ("low", "high"))
    expected = f"50 runs; 48 % succeed, {low} to {high} at 95% confidence; 10 failed"
    assert figure.get_suptitle() == f"pendulum_swing_up, study\n{expected}"
    few = {name: column[:30] for name, column in columns.items()}
    assert "30 of 50 runs" in figures.errors(study, few, found).get_suptitle()


def test_samples_are_colored_by_their_success(sampled):
    study, columns, _ = sampled
    share, errors = figures.basin(study, columns).axes[:2]
    for run, color in enumerate(share.collections[0].get_facecolor()):
        good = columns["success"][run] == 1
        assert same_color(color, to_rgba(style.RUN if good else style.LIMIT))
    shown = errors.collections[-1].get_array()
    known = np.isfinite(columns["final_error"])
    np.testing.assert_array_equal(shown[known], columns["final_error"][known])
    np.testing.assert_array_equal(
        errors.collections[0].get_offsets(), np.column_stack([columns["m"], columns["l"]])[~known]
    )
    assert (share.get_xscale(), share.get_yscale()) == ("linear", "log")
    assert (share.get_xlabel(), share.get_ylabel()) == ("m (kg)", "l (m)")


def test_a_cell_of_a_grid_shows_its_share_of_successes():
    study = pendulum(
        vary={"m": "1,2", "l": "1,2,3", "integrator": "midpoint,midpoint_left"}, success="0.5"
    )
    columns = made(study, lambda m, length, name: 0.1 if m > 1 or name == "midpoint" else 0.9)
    share, median = figures.basin(study, columns).axes[:2]
    assert share.collections[0].get_array().tolist() == [[0.5, 1.0]] * 3
    np.testing.assert_allclose(median.collections[0].get_array(), [[0.5, 0.1]] * 3)


def test_the_first_two_numeric_settings_are_the_axes():
    vary = {"integrator": "midpoint,midpoint_left", "m": "1:2", "l": "log:0.5:2", "g": "9:10"}
    study = pendulum(vary=vary, points="8")
    columns = made(study, lambda *values: 0.1 + values[1])
    share, errors = figures.basin(study, columns).axes[:2]
    assert (share.get_xlabel(), share.get_ylabel()) == ("m (kg)", "l (m)")
    seen = errors.collections[-1].get_offsets()
    np.testing.assert_array_equal(seen, np.column_stack([columns["m"], columns["l"]]))


def test_errors_are_drawn_over_a_single_setting():
    study = pendulum(vary={"m": "1:2:5"}, success="0.3")
    columns = made(study, lambda m: 0.1 if m < 1.4 else 0.9, lambda m: "bad" if m > 1.9 else "")
    figure = figures.basin(study, columns)
    (panel,) = figure.axes
    np.testing.assert_allclose(line(panel, "success"), [[1.0, 1.25], [0.1, 0.1]])
    np.testing.assert_allclose(line(panel, "no success"), [[1.5, 1.75], [0.9, 0.9]])
    assert [one.get_color() for one in panel.lines[:2]] == [style.RUN, style.LIMIT]
    failed, limit = panel.lines[2:]
    assert failed.get_xdata() == [2.0, 2.0] and list(limit.get_ydata()) == [0.3, 0.3]
    assert "1 failed: lines" in figure.get_suptitle()
    assert (panel.get_xscale(), panel.get_yscale(), panel.get_xlabel()) == (
        "linear",
        "log",
        "m (kg)",
    )


def test_a_cell_with_half_of_its_runs_failed_is_empty():
    assert figures._median(np.array([1.0, np.nan])) is np.nan
    assert figures._median(np.array([1.0, 3.0, np.nan])) == 2.0


def test_sensitivities_are_drawn_with_intervals_beside_their_settings():
    """The order of the results does not matter, and a missing result has no bar."""
    study = pendulum(
        vary={"m": "1:2", "l": "1:2", "integrator": "midpoint,midpoint_left"}, points="4"
    )
    found = {
        "l": {"correlation": -0.5, "low": -0.7, "high": -0.3},
        "m": {"correlation": 0.8, "low": 0.6, "high": 0.9},
        "integrator": None,
    }
    none = dict.fromkeys(found)
    numbers = {"sensitivity": {name: none for name in figures.SHOWN} | {"final_error": found}}
    figure = figures.sensitivity(study, numbers)
    (panel,) = figure.axes
    assert panel.get_title() == "final error" and panel.yaxis_inverted()
    assert [tick.get_text() for tick in panel.get_yticklabels()] == [v.name for v in study.vary]
    bars = {patch.get_y() + patch.get_height() / 2: patch.get_width() for patch in panel.patches}
    assert bars == pytest.approx({0: 0.8, 1: -0.5})
    spans = [one.get_xdata() for one in panel.lines if len(set(one.get_ydata())) == 1]
    assert [list(span) for span in spans] == [[0.6, 0.9], [-0.7, -0.3]]


def test_each_setting_has_two_sobol_bars_with_intervals():
    study = pendulum(vary={"m": "1:2", "l": "1:2"}, points="4", sampling="saltelli")
    found = {
        name: {
            "first": {"index": a, "low": a - 0.1, "high": a + 0.1},
            "total": {"index": a + 0.2, "low": a, "high": a + 0.3},
        }
        for name, a in (("l", 0.5), ("m", 0.2))
    }
    (panel,) = figures.sobol_indices(study, {"sobol_indices": found}).axes
    bars = [(p.get_y() + p.get_height() / 2, p.get_width(), p.get_label()) for p in panel.patches]
    assert [(y, width) for y, width, _ in bars] == [
        (pytest.approx(y), pytest.approx(width))
        for y, width in ((-0.2, 0.2), (0.8, 0.5), (0.2, 0.4), (1.2, 0.7))
    ]
    intervals = {
        tuple(np.round(one.get_ydata(), 9)): tuple(np.round(one.get_xdata(), 9))
        for one in panel.lines
        if len(set(one.get_ydata())) == 1
    }
    expected = {-0.2: (0.1, 0.3), 0.8: (0.4, 0.6), 0.2: (0.2, 0.5), 1.2: (0.5, 0.8)}
    assert intervals == {(y, y): span for y, span in expected.items()}
    names = [tick.get_text() for tick in panel.get_yticklabels()]
    assert names == ["m", "l"] and panel.yaxis_inverted()
    labels = [one.get_label() for one in style.handles(panel)]
    assert labels == ["alone", "with others"]
