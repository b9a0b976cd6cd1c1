"""`nh.plot`, shades of what acts for a while, and figures in the widths of a paper."""

from types import SimpleNamespace

import casadi as ca
import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

import nh_control as nh  # noqa: E402
from nh_control.figures import paper, style  # noqa: E402
from nh_control.runs.intervals import DISTURBANCE, FAULT, intervals  # noqa: E402
from nh_control.scenarios import PlantOptions, disturbance, fault  # noqa: E402


def swinging(h=0.05, angle=1.0, names=("angle", "other"), name=""):
    """Two pendulums."""
    system = nh.System(
        name="two", space=nh.Rn(*names), lagrangian=lambda q, v: ca.sumsqr(v) / 2 + ca.cos(q[0])
    )
    dsys = nh.midpoint(system, h)
    steps = np.zeros((round(2 / h), 0))
    return dsys.simulate(dsys.state([angle, 0.2], [0, 0.1]), steps, name=name)


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def motions():
    return swinging(name="one"), swinging(angle=1.2, name="other")


def test_compare_draws_what_differs_most_first_and_the_energy(motions):
    drawn = nh.plot.compare(motions)
    assert [panel.get_ylabel() for panel in drawn] == ["angle", "other", "energy (J)"]
    for panel, i in zip(drawn, (0, 1)):
        for line, motion in zip(panel.get_lines(), motions):
            np.testing.assert_array_equal(line.get_ydata(), motion.states[:, i])
    lines = drawn[2].get_lines()
    np.testing.assert_allclose(lines[1].get_ydata(), motions[1].energies)
    names = [text.get_text() for text in drawn[0].get_legend().get_texts()]
    assert names == ["one", "other"]
    looks = {(line.get_color(), str(line.get_linestyle())) for line in lines}
    assert len(looks) == 2
    given = pyplot.figure().subplots(2, 1)
    back = nh.plot.compare({"a": motions[0], "b": motions[1]}, given, names=["other"])
    assert list(back) == list(given) and back[0].get_ylabel() == "other"


def test_every_figure_of_a_notebook_is_shown(motions, monkeypatch):
    """The first figure loads a notebook's backend, which makes matplotlib interactive: only then
    are this and later figures shown at the end of a cell, and closed.
    """
    subplots = pyplot.subplots

    def first(*args, **options):
        matplotlib.interactive(True)
        return subplots(*args, **options)

    monkeypatch.setattr(pyplot, "subplots", first)
    draw = (motions[0].plot, lambda: nh.plot.compare(motions), lambda: nh.plot.phase(motions))
    try:
        for one in draw:
            matplotlib.interactive(False)
            one()
            assert matplotlib.is_interactive()
    finally:
        matplotlib.interactive(False)
    assert len(pyplot.get_fignums()) == len(draw)
    with pytest.raises(ValueError, match="unknown 'no'"):
        nh.plot.phase(motions, "no")
    assert len(pyplot.get_fignums()) == len(draw), "a figure without content stays"


def test_what_cannot_be_compared_is_told(motions):
    for wrong, text in (
        (motions[:1], "two trajectories"),
        ([motions[0], swinging(names=("x", "y"), name="xy")], "xy has the coordinates x, y"),
    ):
        with pytest.raises(ValueError, match=text):
            nh.plot.compare(wrong)
    with pytest.raises(ValueError, match="unknown 'z'; choose one of: angle, other"):
        nh.plot.compare(motions, names=["z"])
    with pytest.raises(ValueError, match="plot needs 3 axes, for angle, other, energy"):
        nh.plot.compare(motions, pyplot.figure().subplots(1, 2))


def test_phase_draws_velocity_over_coordinate(motions):
    axes = pyplot.figure().subplots()
    assert nh.plot.phase(motions, "other", axes) is axes
    line = axes.get_lines()[0]
    np.testing.assert_array_equal(line.get_xdata(), motions[0].states[:, 1])
    np.testing.assert_allclose(line.get_ydata(), motions[0].velocities[:, 1])
    assert axes.get_xlabel() == "other"
    alone = nh.plot.phase(motions[0])
    assert alone.get_xlabel() == "angle" and alone.get_legend() is None
    with pytest.raises(ValueError, match="unknown 'x'"):
        nh.plot.phase(motions, "x")


def test_what_acts_for_a_while_is_shaded():
    options = PlantOptions(
        disturbances=tuple(
            map(disturbance.parse, ("x:gust:1,start=2,duration=1", "x:gust:1", "x:constant:1"))
        ),
        faults=tuple(map(fault.parse, ("delay=0.01", "noise=1,start=3", "x:lost,duration=9"))),
    )
    found = intervals(options, 5.0)
    assert [(one.start, one.stop, one.color) for one in found] == [
        (2.0, 3.0, DISTURBANCE),
        (0.0, 5.0, DISTURBANCE),
        (3.0, 5.0, FAULT),
        (0.0, 5.0, FAULT),
    ]
    assert found[0].label == "gust on x" and found[3].label == "lost of x"
    assert intervals(options, 2.0)[0].start == 0.0


@pytest.mark.parametrize(("kind", "width"), paper.COLUMNS_IN.items())
def test_figures_of_papers_have_a_column_s_width_and_no_title(kind, width):
    figure = Figure(figsize=(style.WIDTH, 4.0), layout="constrained")
    panel = figure.subplots()
    panel.plot([0, 1], [0, 1], label="a curve", linewidth=2.0)
    run = SimpleNamespace(experiment=SimpleNamespace(labels=("name", "reference")), stopped="")
    style.head(figure, run, style.handles(panel))
    paper.fit(figure, kind)
    assert figure.get_figwidth() == width and figure.get_suptitle() == ""
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a curve"]
    assert panel.get_lines()[0].get_linewidth() < 2.0
    sizes = [text.get_fontsize() for text in (*legend.get_texts(), panel.xaxis.label)]
    assert min(sizes) >= paper.LEAST_PT


def test_a_long_legend_is_below_the_panels():
    for count, where in ((2, "upper"), (7, "lower")):
        figure = Figure(figsize=(style.WIDTH, 4.0), layout="constrained")
        panel = figure.subplots()
        for k in range(count):
            panel.plot([0, 1], [0, k], label=f"a curve of number {k}")
        run = SimpleNamespace(experiment=SimpleNamespace(labels=("name", "reference")), stopped="")
        style.head(figure, run, style.handles(panel))
        figure.draw_without_rendering()
        box = figure.legends[0].get_window_extent().transformed(figure.transFigure.inverted())
        assert (box.y0 > 0.5) == (where == "upper") and box.x0 >= 0 and box.x1 <= 1
