"""Figures of a study: the distribution of errors, the successful runs, and the sensitivities of
the metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from nh_control.figures import style
from nh_control.studies.metrics import ERROR, METRICS
from nh_control.studies.sampling import GRID
from nh_control.studies.study import Study
from nh_control.studies.variation import LOG, Variation

GOOD, BAD = style.RUN, style.LIMIT
SHOWN = ("final_error", "largest_error", "saturated", "energy_error")
"""Metrics whose sensitivities are drawn."""
DECADES = 1e-6
"""Errors below this fraction of the largest error share a color. Otherwise a single run whose
error is round-off would use up the color scale.
"""
TICKS = 6
"""Number of labels that fit in a narrow panel."""
BINS, SMALLEST = 40, 1e-16
"""Number of bins, and the error at which smaller errors are drawn, because they are only
round-off.
"""

Columns = Mapping[str, np.ndarray]


def save_all(study: Study, columns: Columns, statistics: dict, folder: Path) -> dict[str, str]:
    """Draw all figures of the study and save them in the folder. Returns {name: file}."""
    figures: dict[str, Callable[[], Figure]] = {
        "errors": lambda: errors(study, columns, statistics)
    }
    # A basin needs at least one numeric axis.
    if numeric(study):
        figures["basin"] = lambda: basin(study, columns)
    if any(any(by_setting.values()) for by_setting in statistics["sensitivity"].values()):
        figures["sensitivity"] = lambda: sensitivity(study, statistics)
    if statistics["sobol_indices"]:
        figures["sobol_indices"] = lambda: sobol_indices(study, statistics)
    for name, draw in figures.items():
        style.save(draw, folder / f"{name}.png")
    return {name: str(folder / f"{name}.png") for name in figures}


def numeric(study: Study) -> list[Variation]:
    """Return the variations whose values are numbers."""
    return [v for v in study.vary if v.is_numeric]


def errors(study: Study, columns: Columns, statistics: dict) -> Figure:
    """Draw a histogram of the final errors, with the limit below which a run is successful."""
    figure = Figure(figsize=(style.WIDTH, 3.6), layout="constrained")
    panel = figure.subplots()
    values = np.maximum(columns[ERROR][columns["failure"] == ""], SMALLEST)
    if len(values):
        low, high = np.log10([values.min(), values.max()])
        # The bins are logarithmic. Even if all errors are equal, the bins have a finite width.
        edges = np.logspace(low, max(high, low + 0.1), min(BINS, 5 + len(values) // 5))
        panel.hist(values, edges.tolist(), color=style.RUN, edgecolor="white", linewidth=0.4)
    panel.set_xscale("log")
    if np.isfinite(limit := study.largest_error):
        panel.axvline(limit, color=style.LIMIT, linewidth=1.0, label="success: below")
    panel.set_xlabel(f"tracking error at the end ({METRICS[ERROR].unit})")
    panel.set_ylabel("runs")
    good, failed = statistics["success"], statistics["failed"]["count"]
    note = (
        f"{_percent(good['share'])} succeed, {_percent(good['low'])} to {_percent(good['high'])} "
        f"at {statistics['confidence']:.0%} confidence" + f"; {failed} failed" * bool(failed)
    )
    _head(figure, study, columns, note)
    if handles := style.handles(panel):
        figure.legend(handles=handles, loc="outside upper right")
    return figure


def basin(study: Study, columns: Columns) -> Figure:
    """Draw the successes and the final errors over the first two numeric settings, or over the
    single numeric setting.
    """
    first, *others = numeric(study)
    if not others:
        return _line(study, columns, first)
    figure = Figure(figsize=(style.WIDTH, 3.8), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    values = np.maximum(columns[ERROR], SMALLEST)
    known = values[np.isfinite(values)]
    scale = (
        # A logarithmic scale needs at least two different values.
        LogNorm(max(known.min(), DECADES * known.max()), known.max())
        if len(set(known.tolist())) > 1
        else None
    )
    draw = _mesh if study.sampling == GRID else _scatter
    drawn = draw(panels, columns, (first, others[0]), values, scale)
    figure.colorbar(drawn, ax=panels, shrink=0.9, label=METRICS[ERROR].unit)
    for panel in panels:
        panel.grid(False)
        _axis(panel.set_xlabel, panel.set_xscale, study, first)
    _axis(panels[0].set_ylabel, panels[0].set_yscale, study, others[0])
    _ticks(panels[0].xaxis, study, first)
    _ticks(panels[0].yaxis, study, others[0])
    _head(figure, study, columns)
    return figure


Pair = tuple[Variation, Variation]


def _mesh(
    panels: Sequence[Axes], columns: Columns, both: Pair, values: np.ndarray, scale: LogNorm | None
) -> ScalarMappable:
    """Draw the cells of a grid. The colors show the proportion of successes and the median final
    error of the runs in each cell.
    """
    share, median = (
        _cells(columns, both, column, reduce)
        for column, reduce in ((columns["success"], np.mean), (values, _median))
    )
    x, y = _levels(both)
    panels[0].pcolormesh(x, y, share, vmin=0, vmax=1, cmap="RdBu", shading="nearest")
    panels[0].set_title("successes: blue all, red none")
    panels[1].set_title("median final error" + ", white: failed" * bool(np.isnan(median).any()))
    return panels[1].pcolormesh(x, y, median, norm=scale, cmap="viridis_r", shading="nearest")


def _scatter(
    panels: Sequence[Axes], columns: Columns, both: Pair, values: np.ndarray, scale: LogNorm | None
) -> ScalarMappable:
    """Draw a dot for each run. The more runs there are, the smaller the dots."""
    x, y = (columns[v.name] for v in both)
    size, failed = float(np.clip(4000 / len(x), 1.0, 14.0)), ~np.isfinite(values)
    # Failed runs have no error, so they are drawn as crosses in the second panel.
    colors = np.where(columns["success"] == 1, GOOD, BAD)
    panels[0].scatter(x, y, size, colors, linewidth=0)
    panels[0].set_title("blue: success, red: none")
    panels[1].scatter(x[failed], y[failed], 2 * size, BAD, marker="x", linewidth=0.8)
    panels[1].set_title("final error" + ", x: failed" * bool(failed.any()))
    return panels[1].scatter(x, y, size, values, norm=scale, cmap="viridis_r", linewidth=0)


def _line(study: Study, columns: Columns, only: Variation) -> Figure:
    figure = Figure(figsize=(style.WIDTH, 3.6), layout="constrained")
    panel = figure.subplots()
    values = np.maximum(columns[ERROR], SMALLEST)
    for good, color, label in ((1, GOOD, "success"), (0, BAD, "failure")):
        chosen = (columns["success"] == good) & np.isfinite(values)
        panel.plot(
            columns[only.name][chosen], values[chosen], ".", color=color, markersize=4, label=label
        )
    # A failed run has no error, so its setting is marked with a line.
    for x in columns[only.name][~np.isfinite(values)]:
        panel.axvline(x, color=BAD, linewidth=0.6)
    if np.isfinite(study.largest_error):
        panel.axhline(study.largest_error, color=style.LIMIT, linewidth=1.0)
    panel.set_yscale("log")
    panel.set_ylabel(f"final error ({METRICS[ERROR].unit})")
    _axis(panel.set_xlabel, panel.set_xscale, study, only)
    failed = int((~np.isfinite(values)).sum())
    _head(figure, study, columns, f"{failed} failed: lines" if failed else "")
    figure.legend(handles=style.handles(panel), loc="outside upper right", ncols=2)
    return figure


def sensitivity(study: Study, statistics: dict) -> Figure:
    """Draw rank correlations between the metrics and the settings, with confidence intervals."""
    # Metrics that do not depend on any setting have no correlations.
    names = [name for name in SHOWN if any(statistics["sensitivity"][name].values())]
    height = 1.3 + 0.3 * len(study.vary)
    figure = Figure(figsize=(style.WIDTH, height), layout="constrained")
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False).ravel()
    for name, panel in zip(names, panels):
        by_setting = statistics["sensitivity"][name]
        _bars(panel, [by_setting[v.name] for v in study.vary], "correlation", style.RUN)
        panel.set_title(name.replace("_", " "))
        panel.set_xlim(-1.05, 1.05)
        panel.set_xticks([-1, 0, 1])
    panels[0].set_yticks(range(len(study.vary)), [v.name for v in study.vary])
    panels[0].invert_yaxis()
    figure.supxlabel("rank correlation (of names: its absolute value)", fontsize=9)
    _title(figure, study, "sensitivity of the metrics")
    return figure


def sobol_indices(study: Study, statistics: dict) -> Figure:
    """Draw first-order and total Sobol' indices of the final error, with confidence intervals."""
    figure = Figure(figsize=(style.WIDTH, 1.4 + 0.4 * len(study.vary)), layout="constrained")
    panel = figure.subplots()
    all_indices = statistics["sobol_indices"]
    kinds = (("first", -0.2, style.RUN, "alone"), ("total", 0.2, style.OPEN, "with others"))
    for kind, shift, color, label in kinds:
        indices = [all_indices[v.name][kind] for v in study.vary]
        _bars(panel, indices, "index", color, shift, 0.36, label)
    panel.set_yticks(range(len(study.vary)), [v.name for v in study.vary])
    panel.invert_yaxis()
    panel.set_xlabel("share of the final error's variance (Sobol' index)")
    _title(figure, study, "sensitivity of the final error")
    figure.legend(handles=style.handles(panel), loc="outside upper right", ncols=2)
    return figure


# Parts -------------------------------------------------------------------------------------------


def _bars(
    panel: Axes,
    estimates: list[dict | None],
    key: str,
    color: str,
    shift: float = 0.0,
    height: float = 0.6,
    label: str = "",
) -> None:
    """Draw a bar for each estimate and a line for its interval. An estimate of None has no bar."""
    for i, estimate in enumerate(estimates):
        if estimate is None:
            continue
        panel.barh(i + shift, estimate[key], height, color=color, label=label if i == 0 else "")
        if (low := estimate["low"]) is not None:
            ends = [low, estimate["high"]]
            panel.plot(ends, [i + shift] * 2, color=style.TARGET, linewidth=1)
    panel.axvline(0, color=style.TARGET, linewidth=0.8)


def _levels(both: Pair) -> list[list[float]]:
    return [sorted(float(level) for level in v.levels) for v in both]


def _cells(
    columns: Columns,
    both: Pair,
    values: np.ndarray,
    reduce: Callable[[np.ndarray], Any],
) -> np.ndarray:
    """Reduce the values of the runs at each pair of levels to one entry of a table (levels of the
    second variation, levels of the first). The entry is NaN for a pair without runs.
    """
    x, y = (np.searchsorted(levels, columns[v.name]) for v, levels in zip(both, _levels(both)))
    nx, ny = (len(levels) for levels in _levels(both))
    # Sort the runs by cell, split them at the first run of each cell, and reduce each cell.
    place = y * nx + x
    order = np.argsort(place, kind="stable")
    groups = np.split(values[order], np.searchsorted(place[order], np.arange(1, nx * ny)))
    return np.array([reduce(g) if len(g) else np.nan for g in groups]).reshape(ny, nx)


def _median(values: np.ndarray) -> float:
    """Return the median, or NaN (which leaves the cell empty) if at least half of the runs
    failed.
    """
    known = values[np.isfinite(values)]
    return float(np.median(known)) if 2 * len(known) > len(values) else np.nan


def _axis(label: Callable, scale: Callable, study: Study, variation: Variation) -> None:
    unit = study.settings.declared[variation.name].unit
    label(variation.name + (f" ({unit})" if unit else ""))
    if variation.kind == LOG:
        scale("log")


def _ticks(axis: Axis, study: Study, variation: Variation) -> None:
    """Label the levels of a grid if there are only a few. Otherwise limit the number of labels."""
    levels = sorted(float(level) for level in variation.levels)
    if study.sampling == GRID and len(levels) <= TICKS:
        axis.set_ticks(levels, labels=[f"{level:.3g}" for level in levels], minor=False)
        axis.set_minor_locator(NullLocator())
    elif variation.kind != LOG:
        axis.set_major_locator(MaxNLocator(TICKS - 1))


def _head(figure: Figure, study: Study, columns: Columns, note: str = "") -> None:
    runs = len(columns["run"])
    short = "" if runs == study.total else f" of {study.total}"
    _title(figure, study, f"{runs}{short} runs" + f"; {note}" * bool(note))


def _title(figure: Figure, study: Study, note: str) -> None:
    name = study.settings.scenario.name
    figure.suptitle(f"{name}, study\n{note}", x=0.02, ha="left", fontsize=10)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.3g} %"
