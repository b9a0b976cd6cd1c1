"""Measurements used for several papers: orders of integrators and energy errors in long
motions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import process_time
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from nh_control.discrete.system import DiscreteSystem
from nh_control.figures.style import SERIES, TARGET, positive
from nh_control.studies.comparison import Reference

MARKERS = "os^vDx+"
BATCHES, TIMED_STEPS = 5, 500
"""Number of timed batches, and approximate number of steps in a batch."""


def errors(
    reference: Reference, models: Sequence[DiscreteSystem], u: ArrayLike = ()
) -> np.ndarray:
    """Return the errors in the last configuration of a motion, one for each model's step size."""
    motion = reference.motion
    out = []
    for dsys in models:
        x = dsys.state(motion.q, motion.v, u if np.size(u) else None)
        steps = round(motion.duration / dsys.h)
        out.append(reference.error(dsys.configuration(last(dsys, x, steps, u))))
    return np.array(out)


def last(dsys: DiscreteSystem, x: np.ndarray, steps: int, u: ArrayLike = ()) -> np.ndarray:
    """Return the state after the given number of steps under a constant input."""
    return dsys.simulate(x, u, steps=steps, every=steps).states[-1]


def step_us(dsys: DiscreteSystem, x: np.ndarray, inputs: np.ndarray) -> float:
    """Return the minimum processor time of a step in microseconds over several batches of motions
    from x under inputs (N, nu).
    """
    dsys.simulate(x, inputs)  # compiles
    # The minimum is the measurement with the fewest interruptions by other processes.
    times, repeats = [], max(1, TIMED_STEPS // len(inputs))
    for _ in range(BATCHES):
        start = process_time()
        for _ in range(repeats):
            dsys.simulate(x, inputs)
        times.append(process_time() - start)
    return 1e6 * min(times) / (repeats * len(inputs))


def slopes(h: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Return the orders between successive step sizes: `log(e_i / e_{i+1}) / log(h_i /
    h_{i+1})`.
    """
    return np.diff(np.log(error)) / np.diff(np.log(h))


def plot_order(
    axes: Axes, h: np.ndarray, errors_by_name: Mapping[str, np.ndarray], order: int = 2
) -> None:
    """Plot errors against the step size on logarithmic axes, with a line of the given order."""
    _plot_errors(axes, h, errors_by_name)
    # The line for the order is below all curves.
    low = 0.5 * min(error[-1] for error in errors_by_name.values())
    axes.plot(h, low * (h / h[-1]) ** order, ":", color=TARGET, label=f"order {order}")
    axes.margins(x=0.05)
    axes.legend(fontsize=7)


def plot_orders(
    axes: Axes, h: np.ndarray, errors_by_name: Mapping[str, np.ndarray], orders: Sequence[int]
) -> None:
    """Plot errors of methods of several orders, with a line for each order next to the nearest
    curve.
    """
    _plot_errors(axes, h, errors_by_name)
    for order in orders:
        # The curve whose slope is closest to the order.
        nearest = min(
            errors_by_name.values(),
            key=lambda e: abs(np.log(e[0] / e[-1]) / np.log(h[0] / h[-1]) - order),
        )
        line = 0.4 * nearest[-1] * (h / h[-1]) ** order
        axes.plot(h, line, ":", color=TARGET, linewidth=0.9)
        axes.text(1.12 * h[0], line[0], f"{order}", fontsize=7, color=TARGET, va="center")
    axes.set_xlim(0.85 * h[-1], 1.35 * h[0])


def _plot_errors(axes: Axes, h: np.ndarray, errors_by_name: Mapping[str, np.ndarray]) -> None:
    axes.set(xscale="log", yscale="log", xlabel="step h (s)", ylabel="error at the end")
    # Smaller markers lie on top of larger ones, so that equal errors stay visible.
    for i, (name, error) in enumerate(errors_by_name.items()):
        axes.plot(
            h,
            positive(error),
            label=name,
            linewidth=1.0,
            fillstyle="none",
            color=SERIES[i % len(SERIES)],
            marker=MARKERS[i % len(MARKERS)],
            markersize=8 - 0.7 * i,
        )


def relative_energy_error(dsys: DiscreteSystem, states: np.ndarray) -> np.ndarray:
    """Return `|H / H0 - 1|` for states (N, nx)."""
    energy = np.array([dsys.energy(x) for x in states])
    return np.abs(energy / energy[0] - 1)


def plain(values: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return arrays as lists, for JSON."""
    return {name: np.asarray(value).tolist() for name, value in values.items()}
