"""Statistics over a study's runs: shares and means with confidence intervals, quantiles,
correlations and Sobol' indices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats

from nh_control.studies.metrics import ERROR, metrics_of
from nh_control.studies.sampling import SALTELLI
from nh_control.studies.study import Study
from nh_control.studies.variation import VALUES, Variation

CONFIDENCE = 0.95
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
FEWEST = 5
"""The minimum number of runs for a correlation."""

Columns = Mapping[str, np.ndarray]


def statistics(study: Study, columns: Columns) -> dict[str, Any]:
    """Return statistics over the runs in `columns` (see `Store.columns`) as plain values. The
    confidence intervals have the level CONFIDENCE and assume independent runs.

    The points in Saltelli's scheme depend on each other. All statistics except Sobol' indices use
    only the independent points A and B.
    """
    everything = columns
    if study.sampling == SALTELLI:
        columns = _where(columns, columns["run"] < 2 * study.points)
    completed = _where(columns, columns["failure"] == "")
    return {
        "runs": len(everything["run"]),
        "planned": study.total,
        "confidence": CONFIDENCE,
        "success": {**_meaning(study), **share(columns["success"])},
        "failed": share(columns["failure"] != ""),
        "failures": _failures(columns),
        "requirements": judged(study, everything),
        "metrics": {
            name: {
                "unit": m.unit,
                "meaning": m.meaning,
                **spread(completed[name]),
                **_worst(completed, name),
            }
            for name, m in metrics_of(study).items()
        },
        "by_value": {v.name: _levels(columns, v) for v in study.vary if v.kind == VALUES},
        "sensitivity": {
            name: {v.name: association(v, completed[v.name], completed[name]) for v in study.vary}
            for name in metrics_of(study)
        },
        "sobol_indices": _sobol_indices(study, everything),
    }


def _meaning(study: Study) -> dict[str, Any]:
    """Return the definition of success."""
    if study.run_requirements:
        return {"requirements": [requirement.text for requirement in study.run_requirements]}
    return {"final_error_at_most": study.success}


def judged(study: Study, columns: Columns) -> list[dict[str, Any]]:
    """Return the study's requirements with their outcomes."""
    # A study without runs has no success, so it must not meet a requirement by default.
    n = len(columns["run"])
    values = {
        "success": lambda: float(np.mean(columns["success"])) if n else 0.0,
        "failed": lambda: float(np.mean(columns["failure"] != "")) if n else 1.0,
        "runs": lambda: float(n),
    }
    out = []
    for requirement in study.requirements:
        if requirement.of_study:
            outcome = requirement.outcome(values)
            out.append({"text": requirement.text, "met": outcome.met, "reason": outcome.reason})
    return out


def accepted(numbers: Mapping[str, Any]) -> bool:
    """Return whether the statistics meet all requirements, and at least one run did not fail."""
    met = all(requirement["met"] for requirement in numbers["requirements"])
    return met and numbers["failed"]["share"] not in (None, 1.0)


def share(which: np.ndarray) -> dict[str, Any]:
    """Return the count and the share of true values, with Wilson's interval. The share is None if
    there are no values.
    """
    count, n = int(np.sum(which)), len(which)
    if not n:
        return {"count": 0, "share": None, "low": None, "high": None}
    # Wilson's interval stays within [0, 1], even for shares of 0 and 1.
    interval = stats.binomtest(count, n).proportion_ci(CONFIDENCE, method="wilson")
    return {
        "count": count,
        "share": count / n,
        "low": float(interval.low),
        "high": float(interval.high),
    }


def spread(values: np.ndarray) -> dict[str, Any]:
    """Return the mean with Student's interval, the standard deviation, quantiles and extremes.
    Numbers that need more values are None.
    """
    n = len(values)
    mean = float(np.mean(values)) if n else None
    std = float(np.std(values, ddof=1)) if n > 1 else None
    # mean +- t_{n-1} std / sqrt(n)
    half = None if std is None else stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * std / math.sqrt(n)
    quantiles = np.quantile(values, (0.0, *QUANTILES, 1.0)).tolist() if n else [None] * 7
    names = ("min", *(f"q{round(100 * q):02d}" for q in QUANTILES), "max")
    return {
        "n": n,
        "mean": mean,
        "low": None if half is None or mean is None else float(mean - half),
        "high": None if half is None or mean is None else float(mean + half),
        "std": std,
        **dict(zip(names, quantiles)),
    }


def association(variation: Variation, x: np.ndarray, y: np.ndarray) -> dict[str, Any] | None:
    """Return the correlation of y with a varied setting x.

    For numbers, the result is Spearman's rank correlation with the interval from [Bonett, Wright
    2000]. For names, which have no order, the result is `sqrt(H / (n - 1))` with the
    Kruskal-Wallis statistic H: the correlation of the ranks with the mean ranks of the names. The
    result is None if the correlation is undefined.
    """
    if len(y) < FEWEST or np.ptp(y) == 0 or len(set(x.tolist())) < 2:
        return None
    if not variation.is_numeric:
        groups = [y[x == level] for level in dict.fromkeys(x.tolist())]
        size = math.sqrt(stats.kruskal(*groups).statistic / (len(y) - 1))
        return {"correlation": size, "low": None, "high": None}
    r = float(stats.spearmanr(x.astype(float), y).statistic)
    # Fisher's z = atanh r has the variance (1 + r^2 / 2) / (n - 3) [Bonett, Wright 2000].
    half = stats.norm.ppf((1 + CONFIDENCE) / 2) * math.sqrt((1 + r**2 / 2) / (len(y) - 3))
    z = math.atanh(min(max(r, -1 + 1e-15), 1 - 1e-15))  # atanh(1) is infinite
    return {"correlation": r, "low": math.tanh(z - half), "high": math.tanh(z + half)}


def _sobol_indices(study: Study, columns: Columns) -> dict[str, Any] | None:
    """Return the first-order and total Sobol' indices of the final error with bootstrap intervals,
    which are drawn anew in every call. Return None for other sampling methods and for incomplete
    studies.
    """
    n, d = study.points, len(study.vary)
    y = columns[ERROR]
    if study.sampling != SALTELLI or len(y) < study.total or np.isnan(y).any() or np.ptp(y) == 0:
        return None
    # In Saltelli's order, the points are A, B, and then A with each column taken from B.
    blocks = y.reshape(d + 2, 1, n)
    result = stats.sobol_indices(
        func={"f_A": blocks[0], "f_B": blocks[1], "f_AB": blocks[2:]},
        n=n,
    )
    drawn = result.bootstrap(CONFIDENCE)
    return {
        v.name: {
            kind: {
                "index": float(np.ravel(getattr(result, f"{kind}_order"))[i]),
                "low": float(np.ravel(getattr(drawn, f"{kind}_order").confidence_interval.low)[i]),
                "high": float(
                    np.ravel(getattr(drawn, f"{kind}_order").confidence_interval.high)[i]
                ),
            }
            for kind in ("first", "total")
        }
        for i, v in enumerate(study.vary)
    }


def _where(columns: Columns, which: np.ndarray) -> Columns:
    return {name: column[which] for name, column in columns.items()}


def _worst(completed: Columns, name: str) -> dict[str, int | None]:
    """Return the number of the run whose metric has the largest absolute value."""
    values = np.abs(completed[name])
    return {"worst_run": int(completed["run"][np.argmax(values)]) if len(values) else None}


def _failures(columns: Columns) -> list[dict[str, Any]]:
    """Return the reasons for failures, most frequent first, each with its number of runs and its
    first run. Reasons with the same text before the first colon are counted together.
    """
    runs_by_reason: dict[str, list[int]] = {}
    for index, reason in zip(columns["run"].tolist(), columns["failure"].tolist()):
        if reason:
            runs_by_reason.setdefault(reason.partition(":")[0], []).append(index)
    first = dict(zip(columns["run"].tolist(), columns["failure"].tolist()))
    return [
        {"reason": first[runs[0]], "runs": len(runs), "first_run": runs[0]}
        for runs in sorted(runs_by_reason.values(), key=len, reverse=True)
    ]


def _levels(columns: Columns, variation: Variation) -> dict[str, Any]:
    """Return the success share and the median final error for every listed value."""
    out = {}
    for value in variation.values:
        rows = _where(columns, columns[variation.name] == value)
        errors = rows[ERROR][~np.isnan(rows[ERROR])]
        median = float(np.median(errors)) if len(errors) else None
        out[str(value)] = {
            "runs": len(rows["run"]),
            **share(rows["success"]),
            "median_error": median,
        }
    return out
