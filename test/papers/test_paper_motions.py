"""What the figures of [celledoni2021] on pendulums and on the payload say of motions that are made
up: numbers from the right columns and times, statements that hold only where their claims do.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from nh_control.numerics.progress import Progress
from nh_control.papers import celledoni2021_payload as payload
from nh_control.papers import celledoni2021_payload_model as model
from nh_control.papers import celledoni2021_pendulums as pendulums
from nh_control.papers import celledoni2021_top as top
from nh_control.papers.celledoni2021_flow import METHODS
from nh_control.systems.quadrotor_payload import QuadrotorPayloadParameters

TIMES = np.linspace(0.0, 5.0, 501)


def motion(gap=lambda t: 0 * t, times=TIMES, off=0.0, slip=0.0):
    """Return a motion that differs from the parabola by `gap` along y; links are in formation
    except for `off` and `slip`.
    """
    y = model.reference_position(times) + np.outer(gap(times), [0.0, 1.0, 0.0])
    q = np.tile(model.FORMATION.links(2), (len(times), 1, 1)) * (1 + off)
    w = np.cross(q, [0.0, 0.0, 1.0]) + slip * q
    return model.PayloadMotion(times, y, 0 * y, q, w)


def said(figure):
    outcome = figure(Progress())
    return outcome.numbers, [statement.holds for statement in outcome.statements], outcome


def falling(start, end):
    """From 2.5 s on at `start`, at the last moment at `end`."""
    return lambda t: np.where(t < 5.0, np.where(t < 2.0, 9.0, start), end)


@pytest.mark.parametrize(
    ("start", "end", "holds"),
    [(0.09, 9e-4, True), (0.11, 9e-4, False), (0.09, 1.1e-3, False), (-0.11, 0.0, False)],
)
def test_the_payload_s_position_is_compared_from_two_seconds_on(monkeypatch, start, end, holds):
    monkeypatch.setattr(model, "run", lambda: motion(falling(start, end)))
    numbers, found, outcome = said(payload.figure_15)
    assert numbers == {"largest_gap_from_2_s_m": pytest.approx(abs(start))} and found == [holds]
    for i, panel in enumerate(outcome.draw().axes):
        lines = {line.get_label(): line.get_ydata() for line in panel.lines}
        np.testing.assert_array_equal(lines["desired"], model.reference_position(TIMES)[:, i])
        assert np.abs(lines["payload"] - lines["desired"]).max() == (9.0 if i == 1 else 0.0)


@pytest.mark.parametrize(
    ("last", "last_whole", "holds"),
    [(9e-5, 9e-4, [True, True]), (1.1e-4, 9e-4, [False, True]), (9e-5, 1.1e-3, [True, False])],
)
def test_the_payload_s_deviation_is_reported_at_two_times(monkeypatch, last, last_whole, holds):
    fine = np.linspace(0, 5, 2001)
    monkeypatch.setattr(model, "run", lambda: motion(lambda t: np.where(t < 5, t, last)))
    whole = motion(lambda t: np.where(t < 5, 2.0, last_whole), fine)
    monkeypatch.setattr(model, "run_with_attitudes", lambda: whole)
    numbers, found, _ = said(payload.figure_16)
    assert found == holds
    assert numbers == {
        "deviation_m": {0.5: pytest.approx(0.5), 5.0: pytest.approx(last)},
        "deviation_with_attitudes_m": pytest.approx(last_whole),
    }


@pytest.mark.parametrize(("last", "holds"), [(9e-4, True), (1.1e-3, False)])
def test_link_directions_are_compared_with_the_desired_ones(monkeypatch, last, holds):
    monkeypatch.setattr(model, "run", motion)
    there = motion().q
    turned = there + np.where(TIMES < 5, 0.3, last)[:, None, None] * np.cross(
        there, [[0.0, 0.0, 1.0]]
    ) / np.linalg.norm(np.cross(there, [[0.0, 0.0, 1.0]]), axis=2, keepdims=True)
    monkeypatch.setattr(model, "control_inputs", lambda run: (None, turned))
    numbers, found, _ = said(payload.figure_17)
    assert found == [holds]
    np.testing.assert_allclose(numbers["last_direction_errors"], [last, last])
    np.testing.assert_allclose(payload._direction_errors(motion())[0], 0.3)


@pytest.mark.parametrize(
    ("kept", "lost", "holds"), [(2e-14, 1e-9, True), (2e-13, 1e-6, False), (2e-14, 1e-12, False)]
)
def test_norms_and_products_of_the_links_are_reported_for_both_methods(
    monkeypatch, kept, lost, holds
):
    off = {"RKMK4": kept, "RK4": lost}
    monkeypatch.setattr(model, "run", lambda name: motion(off=off[name], slip=3 * off[name]))
    numbers, found, _ = said(payload.figure_18)
    assert found == [holds]
    for name, size in off.items():
        assert numbers["largest_defect"][name] == pytest.approx(2 * size, rel=0.05)
        assert numbers["largest_product"][name] == pytest.approx(3 * size, rel=0.05)


def test_tensions_of_a_motion_are_newton_s_law_of_the_quadrotors(monkeypatch):
    """At rest in formation each link carries half the weight; a rotating link adds its centripetal
    force.
    """
    p = QuadrotorPayloadParameters()
    share = p.payload_mass * p.g / 2 / np.cos(np.pi / 6)
    still = motion(times=TIMES[:1])._replace(w=np.zeros((1, 2, 3)))
    thrusts = still.q * share + [0.0, 0.0, p.quadrotor_mass * p.g]
    monkeypatch.setattr(model, "control_inputs", lambda run: (thrusts, None))
    np.testing.assert_allclose(model.tensions(still), [[share, share]])
    turning = still._replace(w=np.cross(still.q, [0.0, 1.0, 0.0]) * [[[2.0], [3.0]]])
    rates = np.sum(turning.w**2, axis=2)
    alone = model.tensions(turning) - model.tensions(still)
    assert (alone > 0).all() and (alone < p.quadrotor_mass * np.array(p.lengths) * rates).all()


@pytest.mark.parametrize(
    ("least", "end", "holds"), [(0.1, 5e-4, True), (-0.1, 5e-4, False), (0.1, 2e-3, False)]
)
def test_links_are_taut_only_if_all_tensions_are_positive(monkeypatch, least, end, holds):
    """At the end they hold a payload that falls with 2 m/s^2."""
    monkeypatch.setattr(model, "run", motion)
    tensions = np.full((501, 2), 5.0)
    tensions[7, 1] = least
    tensions[-1] = 0.4 * (9.81 - 2) / 2 / np.cos(np.pi / 6) + np.array([0.0, end])
    monkeypatch.setattr(model, "tensions", lambda run: tensions)
    numbers, found, _ = said(payload.figure_14)
    assert found == [holds]
    assert numbers == {"tensions_n": {"least": least, "largest": 5.0}}


# --- pendulums -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lie", "others", "holds"), [(1e-14, 1e-3, True), (2e-13, 1e-3, False), (1e-14, 1e-12, False)]
)
@pytest.mark.parametrize("what", ["norms", "products"])
def test_only_lie_group_methods_stay_on_the_manifold(monkeypatch, what, lie, others, holds):
    """For violations of either sign, and for the last method and the second link like all
    others.
    """
    zero, runs = np.zeros((3, 2)), {}
    for name in (*METHODS, "RK4", "RK45 (ODE45)"):
        values = zero.copy()
        if name in ("CF4", "RK4", "RK45 (ODE45)"):
            values[1, 1] = -(lie if name == "CF4" else others)
        both = {"norms": zero + 7.0, "products": zero + 7.0} | {what: values}
        runs[name] = pendulums.ManifoldErrors(np.arange(3.0), **both)
    monkeypatch.setattr(pendulums, "manifold_errors", lambda: runs)
    figure = pendulums.figure_6 if what == "norms" else pendulums.figure_7
    numbers, found, outcome = said(figure)
    assert found == [holds] and list(numbers) == [f"largest_{what}"]
    worst = numbers[f"largest_{what}"]
    assert (worst["CF4"], worst["RK4"], worst["RKMK3"]) == (lie, others, 0.0)
    second = {line.get_label(): line.get_ydata() for line in outcome.draw().axes[1].lines}
    assert second["CF4"][1] == lie and second["RK4"][1] == others


def test_manifold_errors_and_energies_agree_with_closed_forms():
    rng = np.random.default_rng(1)
    states = rng.normal(size=(4, 2, 6))
    errors = pendulums._manifold_errors(np.arange(4.0), states.reshape(4, 12))
    q, w = states[..., :3], states[..., 3:]
    np.testing.assert_allclose(errors.norms, 1 - np.einsum("nij,nij->ni", q, q))
    np.testing.assert_allclose(errors.products, np.einsum("nij,nij->ni", q, w))
    first, second = np.cross(w[:, 0], q[:, 0]), np.cross(w[:, 1], q[:, 1])
    kinetic = (np.sum(first**2, axis=1) + np.sum((first + second) ** 2, axis=1)) / 2
    potential = 9.81 * (2 * q[:, 0, 2] + q[:, 1, 2])
    np.testing.assert_allclose(pendulums._energies(states), kinetic + potential)


# --- the top -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("off", "holds"), [(0.0, True), (0.4, False), (-0.4, False)])
def test_an_order_of_the_top_may_be_neither_too_low_nor_too_high(monkeypatch, off, holds):
    """One method on one formulation has the wrong order."""
    h = top.ORDER_S / np.array(top.ORDER_STEPS)

    class Made:
        def __init__(self, name, table):
            self.wrong = list(table)[3]

        def errors(self, name, *_):
            return h ** (top.ORDERS[name.rsplit(", ", 1)[0]] + (off if name == self.wrong else 0))

    ends = {"cotangent": [1.0, 0, 0, 0], "quadratic": [1.0, 0, 0, 0], "coadjoint": [0.0] * 5 + [1]}
    problems = {p: SimpleNamespace(accurate=lambda t, x=x: np.array([x])) for p, x in ends.items()}
    monkeypatch.setattr(top, "formulations", lambda: problems)
    monkeypatch.setattr(top, "Steps", Made)
    monkeypatch.setattr(top, "_casimirs", lambda *_: {"RKMK4": 1e-14, "RK4": 1e-3})
    assert said(top.heavy_top_orders)[1] == [holds, True]


# --- formulations -------------------------------------------------------------------------
