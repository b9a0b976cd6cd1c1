"""Figures follow from what a scenario declares; here joints alone, with a visual model and
without, and bodies in space without one.
"""

import os
from contextlib import nullcontext
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from test_figure_data import SWING, run_of

from nh_control import scenarios
from nh_control.figures import common, gallery, planar, save_all, style
from nh_control.figures.gallery import figures
from nh_control.figures.scene import Scene, distinct_scenes, scene
from nh_control.scenarios.visual_model import Pose, VisualModel


def test_what_stays_in_place_is_drawn_once():
    line = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    seen = [Scene(cables=[line + [x, 0.0, 0.0]]) for x in (0.0, 0.01, 0.02, 0.5, 0.51, 1.2)]
    assert distinct_scenes(seen) == [0, 3, 5] and distinct_scenes(seen[:3]) == [0]


def test_a_floating_robot_has_a_figure_of_joints():
    scenario = scenarios.get("urdf", base="floating")
    drawn = figures(scenario)
    assert {"path", "states", "joints"} <= set(drawn) and "joints" not in figures(SWING)
    labels = [panel.get_ylabel() for panel in drawn["joints"](run_of(SWING)).axes]
    assert labels == ["theta (rad)", "p of theta (kg m²/s)"]


def test_large_figures_have_several_pages(tmp_path, monkeypatch, sketched):
    run = run_of(SWING)
    assert "states_2" not in save_all(run, tmp_path)
    monkeypatch.setattr(style, "PANELS", 1)
    monkeypatch.setattr(planar, "_coordinate", lambda state, names: state)
    told = []
    files = save_all(run, tmp_path, told.append)
    assert told == list(files) and files["states_2"] == str(tmp_path / "states_2.png")
    assert set(files) == {"path", "states", "states_2", "inputs", "energy", "error"}
    first, second = (figures(SWING)["states"](run, page=page) for page in (0, 1))
    moved = np.ptp(run.loop.trajectory.states, axis=0)
    labels = np.array(["theta (rad)", "p of theta (kg m²/s)"])[np.argsort(-moved)]
    assert [figure.axes[0].get_ylabel() for figure in (first, second)] == list(labels)
    assert "page 2 of 2" in second.get_suptitle()


def test_processes_draw_the_figures_and_their_errors_are_raised_here(tmp_path, monkeypatch, capfd):
    run, here = run_of(SWING), os.getpid()
    monkeypatch.setattr(gallery, "processors", lambda: 2)
    drawn_by = tmp_path / "processes"

    def save(draw, file, style):
        with drawn_by.open("a") as lines:
            print(file.stem, os.getpid() == here, file=lines)

    monkeypatch.setattr(gallery, "save", save)
    files = save_all(run, tmp_path)
    assert sorted(drawn_by.read_text().splitlines()) == sorted(
        f"{name} {i % 2 == 0}" for i, name in enumerate(files)
    )

    def fail(draw, file, style):
        if file.stem == "energy":  # the fourth figure
            raise ValueError(f"cannot draw {file.stem}")

    monkeypatch.setattr(gallery, "save", fail)
    with pytest.raises(ValueError, match="cannot draw energy") as failure:
        save_all(run, tmp_path)
    assert failure.traceback[-1].name == "fail" and not any(capfd.readouterr())


def test_a_worker_of_a_pool_draws_all_figures_itself(tmp_path, monkeypatch):
    run = run_of(SWING)
    monkeypatch.setattr(gallery, "processors", lambda: 2)
    monkeypatch.setattr(gallery, "save", lambda draw, file, style: file.touch())
    worker = get_context("fork").Process(target=save_all, args=(run, tmp_path), daemon=True)
    worker.start()
    worker.join()
    assert worker.exitcode == 0 and {*map(str, tmp_path.iterdir())} == {
        *save_all(run, tmp_path).values()
    }


def test_pages_keep_groups_together_largest_motion_first(monkeypatch):
    monkeypatch.setattr(style, "PANELS", 4)
    groups = [[0, 3], [1, 4], [2, 5]]
    assert style.pages(groups, [1.0, 3.0, 2.0]) == [[1, 2, 4, 5], [0, 3]]
    assert style.pages([[i] for i in range(4)], [0.0, 1.0, 2.0, 3.0]) == [[0, 1, 2, 3]]
    monkeypatch.setattr(style, "PANELS", 3)
    assert style.pages(groups, [1.0, 3.0, 2.0]) == [[1, 4], [2, 5], [0, 3]]


def test_inputs_with_the_largest_range_come_first(monkeypatch):
    monkeypatch.setattr(style, "PANELS", 1)
    run, time = run_of(SWING), np.linspace(0, 1, 50)
    trajectory = replace(
        run.loop.trajectory,
        inputs=np.stack([np.full(50, 30.0), np.sin(time), 3 * np.sin(time) - 100], axis=1),
    )
    run = replace(run, loop=replace(run.loop, trajectory=trajectory))
    assert common.input_pages(run) == [[2], [1], [0]]


@pytest.mark.parametrize(
    "limits, drawn, named",
    [
        ((-100.0, 1.5), [-100.0, 1.5], []),
        ((-1.5, 100.0), [-1.5, 100.0], []),
        ((-100.0, 100.0), [], ["limits -100 ... 100"]),
        ((-np.inf, np.inf), [], []),
    ],
)
def test_limits_are_drawn_if_the_input_comes_near(limits, drawn, named):
    panel = Figure().subplots()
    panel.set_ylim(-1.0, 1.0)
    assert common._limits(panel, *limits) == named
    assert [line.get_ydata()[0] for line in panel.lines] == drawn


@pytest.mark.parametrize("scenario", ["snakeboard", "cart_pole"])
def test_a_visual_model_that_draws_nothing_shows_the_axes_of_its_frames(scenario, tmp_path):
    """The figures of a planar body without shapes crashed."""

    def pose(p, q):
        return {"base": Pose.planar(*(q[-3:] if scenario == "snakeboard" else (q[1], q[0], 0.0)))}

    def empty(parameters):
        return VisualModel("odom", pose, ())

    shown = replace(scenarios.get(scenario), visual=empty)
    run = run_of(shown, duration_s=0.2)
    figure = figures(shown)["path"](run)
    figure.set_layout_engine(None)
    figure.savefig(tmp_path / "path.png")
    assert len(shown.visual_model().shapes) == 3
    assert len(scene(run.experiment, run.loop.trajectory.states[0]).solids) == 3


def test_ticks_are_computed_once_for_each_size_of_the_axes(tmp_path, monkeypatch):
    """The image is the same to the bit as without the memory."""
    compute, computed = Axis._update_ticks, []
    monkeypatch.setattr(Axis, "_update_ticks", lambda axis: computed.append(axis) or compute(axis))
    files = {once: tmp_path / f"{once}.png" for once in (True, False)}
    run, count = run_of(SWING), {}
    for once, file in files.items():
        if not once:
            monkeypatch.setattr(style, "ticks_computed_once", nullcontext)
        computed.clear()
        style.save(lambda: figures(SWING)["states"](run), file)
        count[once] = len(computed)
    axes = 2 * len(figures(SWING)["states"](run).axes)
    # the layout repositions the axes twice
    assert 0 < count[True] <= 3 * axes and count[False] > 4 * count[True]
    assert files[True].read_bytes() == files[False].read_bytes()


def test_no_ticks_are_made_beyond_the_ends_of_an_axis(tmp_path):
    drawn = []

    def draw():
        drawn.append(figures(SWING)["states"](run_of(SWING)))
        return drawn[-1]

    style.save(draw, tmp_path / "states.png")
    axes = [axis for panel in drawn[0].axes for axis in (panel.xaxis, panel.yaxis)]
    for axis in axes:
        low, high = axis.get_view_interval()
        places = [tick.get_loc() for tick in axis.majorTicks]
        assert len(places) > 2 and low <= min(places) and max(places) <= high
        # the figure itself is not changed
        assert len(axis.get_majorticklocs()) > len(places)
