"""Figures of studies show the runs: successes, confidence and sensitivities."""

import numpy as np
import pytest
from figure_text import text
from matplotlib.colors import same_color, to_rgba
from test_statistics import made, pendulum

from nh_control.figures import study as figures
from nh_control.figures import style
from nh_control.studies.statistics import statistics

LEFT = "midpoint,midpoint_left"


def sampled(part=slice(None)):
    """Fifty runs: ten fail, and 24 of the others succeed."""
    study = pendulum(vary={"m": "1:2", "l": "log:0.5:2"}, points="50", success="0.3")
    masses = np.sort([study.point(i)[0] for i in range(50)])
    failing, good = masses[39], masses[24]
    columns = made(
        study,
        lambda m, length: 0.1 if m < good else 0.9,
        lambda m, length: "bad" if m > failing else "",
    )
    found = statistics(study, columns)
    return study, {name: column[part] for name, column in columns.items()}, found


def grid():
    """With a cell of which half of the runs failed, and one of which all failed."""
    study = pendulum(vary={"m": "1,2", "l": "1,2,3", "integrator": LEFT}, success="0.5")
    return study, made(
        study,
        lambda m, length, name: 0.1 * length if m > 1 or name == "midpoint" else 0.9,
        lambda m, length, name: "bad" if m > 1 and (length > 2 or length + len(name) > 14) else "",
    )


def single():
    study = pendulum(vary={"m": "1:2:5"}, success="0.3")
    return study, made(
        study, lambda m: 0.1 if m < 1.4 else 0.9, lambda m: "bad" if m > 1.9 else ""
    )


def sensitivities():
    """The order of the results does not matter, and a missing result has no bar."""
    study = pendulum(vary={"m": "1:2", "l": "1:2", "integrator": LEFT}, points="4")
    found = {
        "l": {"correlation": -0.5, "low": -0.7, "high": -0.3},
        "m": {"correlation": 0.8, "low": 0.6, "high": 0.9},
        "integrator": None,
    }
    none = dict.fromkeys(found)
    numbers = {name: none for name in figures.SHOWN} | {"final_error": found}
    return study, {"sensitivity": numbers}


def shares():
    study = pendulum(vary={"m": "1:2", "l": "1:2"}, points="4", sampling="saltelli")
    found = {
        name: {
            "first": {"index": a, "low": a - 0.1, "high": a + 0.1},
            "total": {"index": a + 0.2, "low": a, "high": a + 0.3},
        }
        for name, a in (("l", 0.5), ("m", 0.2))
    }
    return study, {"sobol_indices": found}


SHOWN = {
    "errors": lambda: figures.errors(*sampled()),
    "errors of some runs": lambda: figures.errors(*sampled(slice(30))),
    "grid": lambda: figures.basin(*grid()),
    "single": lambda: figures.basin(*single()),
    "sensitivities": lambda: figures.sensitivity(*sensitivities()),
    "Sobol' indices": lambda: figures.sobol_indices(*shares()),
}


@pytest.mark.parametrize("name", SHOWN)
def test_figures_show_runs_limits_and_intervals(name, snapshot):
    figure = SHOWN[name]()
    ticks = [
        [tick.get_text() for tick in labels]
        for panel in figure.axes
        for labels in (panel.get_xticklabels(), panel.get_yticklabels())
        if panel.get_xscale() == panel.get_yscale() == "linear"
    ]
    assert f"{text(figure)}\n{ticks}" == snapshot


@pytest.mark.parametrize(
    ("require", "limits"),
    [
        ("final_error < 0.1", [0.1]),
        ("effort.max < 9 and 20 % >= final_error", [0.2]),
        ("effort.max < 9", []),
        ("success >= 50 %", [0.05]),
    ],
)
def test_the_limit_of_success_is_that_of_the_requirement(require, limits):
    study = pendulum(vary={"m": "1:2:5"}, require=require)
    columns = made(study, lambda m: 0.1 * m)
    drawn = figures.errors(study, columns, statistics(study, columns)).axes[0].lines
    assert [line.get_xdata()[0] for line in drawn] == pytest.approx(limits)
    lines = figures.basin(study, columns).axes[0].lines
    unnamed = [line.get_ydata()[0] for line in lines if line.get_label().startswith("_")]
    assert unnamed == pytest.approx(limits)


def test_samples_are_colored_by_their_success():
    study, columns, _ = sampled()
    share, errors = figures.basin(study, columns).axes[:2]
    for run, color in enumerate(share.collections[0].get_facecolor()):
        good = columns["success"][run] == 1
        assert same_color(color, to_rgba(style.RUN if good else style.LIMIT))
    places, known = np.column_stack([columns["m"], columns["l"]]), columns["failure"] == ""
    shown = errors.collections[-1].get_array()
    np.testing.assert_array_equal(shown[known], columns["final_error"][known])
    np.testing.assert_array_equal(share.collections[0].get_offsets(), places)
    np.testing.assert_array_equal(errors.collections[0].get_offsets(), places[~known])
    assert (share.get_xscale(), share.get_yscale()) == ("linear", "log")
    assert (share.get_xlabel(), share.get_ylabel()) == ("m (kg)", "l (m)")
    assert "x: failed" in errors.get_title()


def test_the_first_two_numeric_settings_are_the_axes():
    vary = {"integrator": LEFT, "m": "1:2", "l": "log:0.5:2", "g": "9:10"}
    study = pendulum(vary=vary, points="8")
    columns = made(study, lambda *values: 0.1 + values[1])
    share, errors = figures.basin(study, columns).axes[:2]
    assert (share.get_xlabel(), share.get_ylabel()) == ("m (kg)", "l (m)")
    seen = errors.collections[-1].get_offsets()
    np.testing.assert_array_equal(seen, np.column_stack([columns["m"], columns["l"]]))


def test_a_run_at_round_off_does_not_use_up_the_color_scale():
    study = pendulum(vary={"m": "1:2", "l": "1:2"}, points="20")
    columns = made(study, lambda m, length: 1e-15 if m < 1.2 else m)
    low, high = figures.basin(study, columns).axes[1].collections[-1].get_clim()
    assert low == pytest.approx(1e-6 * high) and high == columns["final_error"].max()


@pytest.mark.parametrize(
    ("keys", "failure", "names"),
    [
        (
            {"vary": {"m": "1:2", "l": "1:2"}, "points": "16", "sampling": "saltelli"},
            "",
            ["errors", "basin", "sensitivity", "sobol_indices"],
        ),
        ({"seeds": "3"}, "", ["errors"]),
        ({"vary": {"m": "1,2", "l": "1,2"}}, "bad", ["errors", "basin"]),
    ],
)
def test_figures_exist_for_studies_with_few_settings_or_runs(
    keys, failure, names, tmp_path, sketched
):
    study = pendulum(**keys)
    columns = made(study, lambda *values: np.prod(values), lambda *values: failure)
    numbers = statistics(study, columns)
    assert list(figures.save_all(study, columns, numbers, tmp_path)) == names
    assert (numbers["metrics"]["final_error"]["mean"] is None) == bool(failure)
