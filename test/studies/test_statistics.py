"""Statistics of studies against closed forms."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from nh_control.studies import make_study
from nh_control.studies.statistics import association, share, spread, statistics
from nh_control.studies.variation import parse
from nh_control.studies.worker import METRICS

RNG = np.random.default_rng(0)


def made(study, error, failure=None):
    """The columns of all runs; the final error is a function of the points (runs, vary)."""
    runs = np.arange(study.total)
    points = [study.point(i) for i in runs.tolist()]
    errors = np.array([error(*point) for point in points], dtype=float)
    reasons = np.array([failure(*p) if failure else "" for p in points], dtype=object)
    errors[reasons != ""] = np.nan
    vary = {v.name: np.array([p[i] for p in points]) for i, v in enumerate(study.vary)}
    zero = {name: np.zeros(study.total) for name in METRICS}
    success = (errors <= study.success).astype(int)
    return {"run": runs, **vary, **zero, "final_error": errors, "success": success,
            "failure": reasons}  # fmt: skip


def pendulum(**keys):
    return make_study({"scenario": "pendulum_swing_up", **keys})


def test_shares_have_wilsons_interval():
    """(f + c/2 +- sqrt(c f (1 - f) + c^2/4)) / (1 + c) with c = z^2 / n."""
    found = share(np.arange(50) < 12)
    f, c = 12 / 50, 1.959963984540054**2 / 50
    half = np.sqrt(c * f * (1 - f) + c**2 / 4)
    assert (found["count"], found["share"]) == (12, f)
    assert found["low"] == pytest.approx((f + c / 2 - half) / (1 + c))
    assert found["high"] == pytest.approx((f + c / 2 + half) / (1 + c))
    assert share(np.zeros(0, dtype=bool))["share"] is None


def test_the_spread_of_evenly_spaced_numbers_has_a_closed_form():
    found = spread(np.arange(101.0))
    assert found["mean"] == 50 and found["q05"] == 5 and found["q50"] == 50 and found["q95"] == 95
    assert found["std"] == pytest.approx(np.sqrt(101 * 102 / 12))
    assert found["high"] - 50 == pytest.approx(1.9839715 * found["std"] / np.sqrt(101))
    assert (found["min"], found["max"], found["n"]) == (0, 100, 101)
    assert spread(np.array([2.0]))["std"] is None and spread(np.zeros(0))["mean"] is None


def test_intervals_of_means_have_their_confidence():
    inside = 0
    for _ in range(1000):
        found = spread(RNG.exponential(1.0, 200))
        inside += found["low"] <= 1 <= found["high"]
    assert 920 <= inside <= 970


def test_rank_correlations_have_their_closed_form():
    angle, x = parse("a", "0:1"), np.arange(20.0)
    assert association(angle, x, x**3)["correlation"] == pytest.approx(1)
    assert association(angle, x, -np.exp(x))["correlation"] == pytest.approx(-1)
    y = x.copy()
    y[[3, 12]] = y[[12, 3]]  # 1 - 6 sum d^2 / (n (n^2 - 1))
    found = association(angle, x, y)
    assert found["correlation"] == pytest.approx(1 - 6 * 2 * 81 / (20 * 399))
    assert -1 < found["low"] < found["correlation"] < found["high"] < 1
    assert association(angle, x, np.ones(20)) is None
    assert association(angle, x[:4], x[:4]) is None


def test_the_association_of_names_is_the_correlation_ratio_of_ranks():
    method = parse("m", "one,other")
    names = np.array(["one", "other"] * 10, dtype=object)
    x = (names == "other") + 0.001 * np.arange(20)
    found = association(method, names, x)["correlation"]
    ranks = np.argsort(np.argsort(x))  # the correlation ratio of the ranks
    between = 20 * np.mean([(ranks[names == n].mean() - 9.5) ** 2 for n in ("one", "other")])
    assert found == pytest.approx(np.sqrt(between / ((ranks - 9.5) ** 2).sum()))


def test_sobol_indices_of_a_sum():
    """y = a + 2 b of independent uniform a and b has variances in the ratio 1 to 4."""
    study = pendulum(vary={"m": "1:2", "l": "1:2"}, points="1024", sampling="saltelli")
    found = statistics(study, made(study, lambda m, length: m + 2 * length))
    indices = found["sobol_indices"]
    for kind in ("first", "total"):
        assert indices["m"][kind]["index"] == pytest.approx(0.2, abs=0.01)
        assert indices["l"][kind]["index"] == pytest.approx(0.8, abs=0.01)
        assert indices["m"][kind]["low"] < 0.2 < indices["m"][kind]["high"]
    assert found["metrics"]["final_error"]["n"] == 2048, "points that depend on others are not"
    assert (found["runs"], found["planned"]) == (4096, 4096)
    failing = made(study, lambda m, length: m, lambda m, length: "x" if m > 1.9 else "")
    assert statistics(study, failing)["sobol_indices"] is None


def test_sobol_indices_belong_to_their_settings():
    """With two settings, runs in the opposite order would give the same indices."""
    study = pendulum(vary={"m": "1:2", "l": "1:2", "g": "1:2"}, points="512", sampling="saltelli")
    found = statistics(study, made(study, lambda m, length, g: m + 2 * length))["sobol_indices"]
    assert [found[name]["first"]["index"] for name in ("m", "l", "g")] == pytest.approx(
        [0.2, 0.8, 0.0], abs=0.03
    )


def test_failures_are_counted_by_reason_and_level():
    study = pendulum(vary={"integrator": "midpoint,midpoint_left", "m": "1:2:50"})
    columns = made(
        study,
        lambda name, m: 0.01 if name == "midpoint" else m,
        lambda name, m: "" if m < 1.9 else f"StepFailed: residual {m}",
    )
    found = statistics(study, columns)
    failed = int((columns["m"] >= 1.9).sum())
    assert found["failed"]["count"] == failed == found["failures"][0]["runs"]
    assert found["failures"][0]["first_run"] == columns["run"][columns["m"] >= 1.9][0]
    assert found["metrics"]["final_error"]["n"] == 100 - failed
    midpoint, left = found["by_value"]["integrator"].values()
    assert midpoint["count"] == 50 - failed / 2 and left["count"] == 0
    assert midpoint["median_error"] == 0.01
    assert (
        found["metrics"]["final_error"]["worst_run"]
        == columns["run"][np.nanargmax(columns["final_error"])]
    )


# --- with failed runs ----------------------------------------------------------------------------


def some(study, rows, **columns):
    """Return the columns of these runs only, with some columns replaced."""
    return {name: column[rows] for name, column in {**study, **columns}.items()}


def test_shares_count_finished_runs_and_failures_as_unsuccessful():
    study = pendulum(vary={"m": "1:2:20"})
    columns = made(study, lambda m: 0.01, lambda m: "bad: x" if m > 1.5 else "")
    found = statistics(study, some(columns, slice(5, 20)))
    assert (found["runs"], found["planned"]) == (15, 20)
    assert (found["success"]["count"], found["success"]["share"]) == (5, 5 / 15)
    assert (found["failed"]["count"], found["failed"]["share"]) == (10, 10 / 15)
    assert found["success"]["final_error_at_most"] == 0.05
    lax = statistics(replace(study, success=0.25), columns)["success"]
    assert lax["final_error_at_most"] == 0.25


def test_the_worst_run_has_the_largest_absolute_metric():
    study = pendulum(vary={"m": "1:2:20"})
    energy = np.linspace(-3.0, 1.0, 20)
    columns = some(made(study, lambda m: m), slice(4, 20), energy_error=energy)
    assert statistics(study, columns)["metrics"]["energy_error"]["worst_run"] == 4


def test_failures_with_the_same_beginning_are_one_reason():
    study = pendulum(vary={"m": "1:2:10"})
    reasons = ["", "a: 1", "b: 1", "b: 2", "", "b: 3", "c", "a: 2", "", ""]
    columns = made(study, lambda m: m) | {"failure": np.array(reasons, dtype=object)}
    found = statistics(study, some(columns, slice(1, 10)))["failures"]
    assert found == [
        {"reason": "b: 1", "runs": 3, "first_run": 2},
        {"reason": "a: 1", "runs": 2, "first_run": 1},
        {"reason": "c", "runs": 1, "first_run": 6},
    ]


def test_correlations_use_successful_runs_only():
    study = pendulum(vary={"m": "1:2:20", "reference": "swing_up"})
    columns = made(study, lambda m, _: m**2, lambda m, _: "bad" if m > 1.8 else "")
    found = statistics(study, columns)
    assert found["sensitivity"]["final_error"]["m"]["correlation"] == pytest.approx(1.0)
    assert found["sensitivity"]["final_error"]["reference"] is None  # it does not vary
    level = found["by_value"]["reference"]["swing_up"]
    good = columns["final_error"][columns["failure"] == ""]
    assert (level["runs"], level["median_error"]) == (20, np.median(good))


def test_correlations_have_the_interval_of_bonett_and_wright():
    x = np.arange(30.0)
    y = np.where(x % 3 == 0, -x, x)
    found = association(parse("a", "0:1"), x, y)
    r = found["correlation"]
    half = 1.959963984540054 * np.sqrt((1 + r**2 / 2) / 27)
    expected = np.tanh(np.arctanh(r) + np.array([-half, half]))
    np.testing.assert_allclose([found["low"], found["high"]], expected)
    assert association(parse("a", "0:1"), x[:5], x[:5])["correlation"] == pytest.approx(1.0)
    assert association(parse("a", "0:1"), np.ones(30), y) is None


def test_intervals_of_sobol_indices_have_95_percent_confidence():
    study = pendulum(vary={"m": "1:2", "l": "1:2"}, points="64", sampling="saltelli")
    columns = made(study, lambda m, length: m * length)
    one = statistics(study, columns)["sobol_indices"]["m"]["first"]
    f = columns["final_error"].reshape(4, 1, 64)
    drawn = stats.sobol_indices(func={"f_A": f[0], "f_B": f[1], "f_AB": f[2:]}, n=64).bootstrap()
    expected = drawn.first_order.confidence_interval
    width = float(np.ravel(expected.high - expected.low)[0])
    assert one["high"] - one["low"] == pytest.approx(width, rel=0.4)  # at 50 % a third of it
    part = {name: column[:-1] for name, column in columns.items()}
    assert statistics(study, part)["sobol_indices"] is None
