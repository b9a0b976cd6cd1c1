"""What figures, numbers and statements of papers show of their results, on results that are made
up: every curve under its name, and a statement that does not hold where its claim is broken.
"""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from nh_control.control.optimize import Iteration, Optimum
from nh_control.discrete.trajectory import Trajectory
from nh_control.figures import style
from nh_control.integrators import midpoint
from nh_control.numerics.progress import Progress
from nh_control.papers import celledoni2016_chaotic as chaotic
from nh_control.papers import celledoni2016_gearbox as gearbox
from nh_control.papers import johnson2014, measure
from nh_control.papers import johnson2014_marionette as marionette
from nh_control.studies.comparison import Reference
from nh_control.studies.motion import InitialValueProblem
from nh_control.systems import pendulum


def line(panel, label):
    """Return the data of the only line of a panel with this label."""
    (found,) = [one for one in panel.lines if one.get_label() == label]
    return np.asarray(found.get_xdata(), dtype=float), np.asarray(found.get_ydata(), dtype=float)


def holding(statements):
    return [statement.holds for statement in statements]


# --- papers, tables and measurements -------------------------------------------------------------


def test_orders_are_slopes_and_energy_errors_relative():
    h = np.array([0.4, 0.2, 0.05])
    np.testing.assert_allclose(measure.slopes(h, 3 * h**2), [2, 2])
    np.testing.assert_allclose(measure.slopes(h, [8.0, 4.0, 4.0]), [1, 0])
    dsys = midpoint(pendulum(), 0.1)
    x = dsys.state([1.0], [0.5])
    np.testing.assert_array_equal(
        measure.last(dsys, x, 7, [0.2]), dsys.simulate(x, [0.2], steps=7).states[-1]
    )
    states = dsys.simulate(x, [0.0], steps=3).states
    energy = states[:, 1] ** 2 / 2 - 9.8 * np.cos(states[:, 0])
    found = measure.relative_energy_error(dsys, states)
    np.testing.assert_allclose(found, np.abs(energy / energy[0] - 1), atol=1e-15)
    assert found[0] == 0
    motion = InitialValueProblem(pendulum(), np.array([1.0]), np.array([0.5]), 0.6, np.zeros(1))
    reference = Reference(motion)  # 0.6 / 0.1 is less than 6 in floating point
    off = measure.errors(reference, [dsys, dsys.with_step(0.05)], [0.0])
    ends = [
        dsys.with_step(h).simulate(x, [0.0], steps=round(0.6 / h)).states[-1] for h in (0.1, 0.05)
    ]
    np.testing.assert_allclose(off, [reference.error(end[:1]) for end in ends])
    assert 3.5 < off[0] / off[1] < 4.5
    assert measure.plain({"a": np.array([1.0, 2.0])}) == {"a": [1.0, 2.0]}


# --- johnson2014 ---------------------------------------------------------------------------------

STATES = np.linspace(0, 1, 2 * (johnson2014.STEPS + 1)).reshape(-1, 2)


def motion_of(scale):
    inputs = np.zeros((johnson2014.STEPS, 1))
    return Trajectory(0.1, scale * STATES, inputs, ("theta", "p_theta"), ("torque",))


def optimum(descents, cost=1.0, kinds=("newton",)):
    steps = [Iteration(k, cost, 1.0 / (k + 1), kinds[k % len(kinds)]) for k in range(descents)]
    history = (*steps, Iteration(descents, cost, 1e-9))
    return Optimum(motion_of(1.0), cost, True, "", history)


CONVERGENCE = johnson2014.Convergence(
    optimum(10),
    optimum(652, kinds=("steepest",)),
    optimum(13, 2.0, ("newton", "quasi")),
    optimum(500),
)


def test_convergence_contains_the_counts_and_descents_of_each_optimization(monkeypatch):
    numbers = CONVERGENCE.numbers()
    assert [numbers[kind]["descents"] for kind in vars(CONVERGENCE)] == [10, 652, 13, 500]
    assert [numbers[kind]["newton_steps"] for kind in vars(CONVERGENCE)] == [10, 0, 7, 500]
    assert numbers["newton_at_once"]["cost"] == 2.0 and numbers["paper"]["steepest"] == {
        "descents": 653
    }
    (axes,) = CONVERGENCE.draw().axes
    for label, result in (
        ("steepest descent, after 4 quasi-Newton steps", CONVERGENCE.steepest),
        ("Newton, after 4 quasi-Newton steps", CONVERGENCE.newton),
    ):
        np.testing.assert_array_equal(line(axes, label)[1], [i.descent for i in result.history])
    for newton, steepest, holds in ((10, 652, True), (11, 652, False), (10, 655, False)):
        result = replace(CONVERGENCE, newton=optimum(newton), steepest=optimum(steepest))
        monkeypatch.setattr(johnson2014, "figure_3", lambda *_, result=result: result)
        assert holding(johnson2014._third(Progress()).statements) == [holds]


def test_tracking_contains_the_deviations_of_both_loops(monkeypatch):
    bumps = np.zeros((2, *STATES.shape))
    bumps[0, [3, 60, -1]] = [9.0, 9.0], [0.1, -0.3], [1e-8, 2e-8]  # the first in the first half
    bumps[1, 70, 0] = -2.0
    closed, opened = (replace(motion_of(1.0), states=STATES + bump) for bump in bumps)
    gain = np.array([[0.0613, 0.981]])
    result = johnson2014.Tracking(motion_of(1.0), closed, opened, gain)
    numbers = result.numbers()
    assert numbers["first_gain"] == [0.0613, 0.981]
    assert numbers["closed_loop"] == pytest.approx({"last_half": 0.3, "end": 2e-8}, rel=1e-6)
    assert numbers["open_loop"]["last_half"] == pytest.approx(2.0)
    monkeypatch.setattr(johnson2014, "swing_up", lambda kind: optimum(1))
    for changed, holds in (
        (result, [True, True]),
        (replace(result, closed=opened), [True, True]),
        (replace(result, opened=result.reference), [False, True]),
        (replace(result, first_gain=1.01 * gain), [True, False]),
    ):
        monkeypatch.setattr(johnson2014, "figure_4", lambda reference, found=changed: found)
        assert holding(johnson2014._fourth(Progress()).statements) == holds
    jump = johnson2014.infeasible_reference().states
    assert not jump[:50].any() and (jump[50:, 0] == np.pi).all() and not jump[:, 1].any()


def test_the_marionette_s_statements_hold_only_if_feedback_helps():
    numbers = {
        start: {"closed_loop": {"start": 0.3, "end": end}, "open_loop": {"end": 1.0}}
        for start, end in ((marionette.TEXT, 0.05), (marionette.CODE, 0.2))
    }
    told = marionette.STATEMENTS["figure_6"](numbers)
    assert holding(told) == [True, False]
    assert [start in one.ours for start, one in zip(numbers, told)] == [True, True]
    for states, holds in ((80, True), (79, False)):
        model = {"states": states, "inputs": 18, "constraints": 6}
        told = marionette.STATEMENTS["figure_5"]({"model": model, "reference": {"constraint": 0}})
        assert holding(told) == [holds]


# --- celledoni2016, celledoni2021, kobilarov2010 -------------------------------------------------

TIMES = np.linspace(0.0, gearbox.DURATION_S, 101)


def ran(**changed):
    """Return a run of the gearbox that agrees with the paper."""
    energy = {"Gonzalez-R": 1e-14, "Gonzalez-F": 2e-14} | {
        k: v for k, v in changed.items() if k[0] == "G"
    }
    growth = changed.get("growth", 5e-3 * np.expm1(np.linspace(0, 1000 / 70, 101)))
    constraint = {"Gonzalez-R": 1e-16, "Gonzalez-F": 0.1, "SI-DLA": 1e-13} | changed.get(
        "slip", {}
    )
    return gearbox.Gearbox(
        TIMES,
        {k: np.linspace(0, v, 101) for k, v in energy.items()} | {"SI-DLA": growth},
        {k: np.linspace(0, v, 101) for k, v in constraint.items()},
    )


@pytest.mark.parametrize(
    ("changed", "broken"),
    [
        ({}, None),
        ({"growth": np.linspace(0, 1e3, 101)}, 0),
        ({"Gonzalez-R": 1e-9}, 1),
        ({"Gonzalez-F": 1e-9}, 1),
        ({"slip": {"Gonzalez-R": 1e-9}}, 2),
        ({"slip": {"SI-DLA": 1e-9}}, 2),
        ({"slip": {"Gonzalez-F": 1e-9}}, 3),
    ],
)
def test_the_gearbox_s_statements_hold_only_if_their_claims_do(changed, broken):
    assert holding(ran(**changed).statements()) == [k != broken for k in range(4)]


H = np.array([0.04, 0.02, 0.01])


def chaos(order=2.0, slip=1e-15, kept=1e-14, lost=1e-2, growth=1e-4, rest=1e-20, other=2.0):
    """As it ran, with what is said for the last of the methods that it is said of."""
    times, orders = np.linspace(0, 100, 201), dict.fromkeys(chaotic.METHODS, 2.0)
    energy = {"SI-DLA": 1e-2, "I-DLA": 1e-2, "SPARK": lost, "AVF": 1e-15, "Gonzalez": kept}
    slips = dict.fromkeys(chaotic.METHODS, 1e-16) | {"Gonzalez": slip}
    growths = dict.fromkeys(chaotic.VARIATIONAL, 1e-4) | {"SPARK": growth}
    walk = np.linspace(0, chaotic.STEP_S * chaotic.WALK_STEPS, 201)
    variance = {k: 0.1 + g * walk for k, g in growths.items()}
    return chaotic.Chaos(
        H,
        {k: (i + 1) * H**p for i, (k, p) in enumerate((orders | {"Gonzalez": order}).items())},
        times,
        {k: np.linspace(0, -v, 201) for k, v in slips.items()},
        {k: np.linspace(0, v, 201) for k, v in energy.items()},
        walk,
        variance | {"Gonzalez": rest * walk / walk[-1]},
        {"B": (2.0, 1e-2), "C*": (other, 3e-2)},
    )


@pytest.mark.parametrize(
    ("changed", "broken"),
    [
        ({}, None),
        ({"order": 1.8}, 0),
        ({"slip": 1e-10}, 1),
        ({"kept": 1e-10}, 2),
        ({"lost": 1e-6}, 2),
        ({"growth": 1e-3}, 3),
        ({"growth": 1e-5}, 3),
        ({"rest": 1e-9}, 4),
        ({"other": 1.5}, 5),
    ],
)
def test_the_chaotic_system_s_statements_hold_only_if_their_claims_do(changed, broken):
    assert holding(chaos(**changed).statements()) == [k != broken for k in range(6)]


# --- lines that other results are compared with --------------------------------------------------


# --- labels of logarithmic axes ------------------------------------------------------------------


def two_panels(low, high):
    def plot(figure):
        for axes in figure.subplots(1, 2):
            axes.loglog([low, high], [low, high])

    return pytest.param(plot, 7.4, id=f"{low:g} to {high:g}")


def errors_over(levels, width, *orders):
    h = 0.02 / 2.0 ** np.arange(levels)
    draw = measure.plot_orders if orders else measure.plot_order

    def plot(figure):
        draw(figure.add_subplot(), h, {"first": 3 * h, "second": 0.5 * h**2}, *orders)

    return pytest.param(plot, width, id=f"{levels} steps, {width}, {len(orders)}")


def labels(axis):
    """Return the boxes of an axis's labels within the panel."""
    low, high = sorted(axis.get_view_interval())
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    shown = [t.label1 for t in ticks if t.label1.get_text() and low <= t.get_loc() <= high]
    return [label.get_window_extent().padded(1) for label in shown]


@pytest.mark.parametrize(
    ("plot", "width"),
    [
        *(two_panels(0.0125, 0.1), two_panels(0.5, 1.4), two_panels(4.5e-5, 2e-4)),
        *(two_panels(1.2e-4, 1.3e-3), two_panels(1e-9, 1e-5)),
        *(errors_over(n, width) for n in (4, 5, 7) for width in (5.2, 3.2)),
        *(errors_over(n, width, (1, 2)) for n in (4, 7) for width in (5.2, 3.2)),
    ],
)
def test_labels_of_logarithmic_axes_do_not_overlap(plot, width, tmp_path):
    figure = Figure((width, 3.4), layout="constrained")
    style.save(lambda: (plot(figure), figure)[1], tmp_path / "figure.png")
    for axis in (one for axes in figure.axes for one in (axes.xaxis, axes.yaxis)):
        boxes = labels(axis)
        assert len(boxes) >= 2
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
