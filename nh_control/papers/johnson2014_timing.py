"""Processor times in [johnson2014 VIII] for the swing-up optimization and for the marionette,
compared with times measured on this machine.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import numpy as np
from matplotlib.figure import Figure

from nh_control.control.optimize import Optimum
from nh_control.figures.style import OPEN, RUN, legend_below
from nh_control.numerics.progress import Progress
from nh_control.papers.paper import Outcome, Statement
from nh_control.scenarios.marionette import MARIONETTE

PUBLISHED_MS = {
    "marionette: step": 2.11,
    "marionette: linearization": 1.12,
    "marionette: second derivatives": 22.15,
    "swing-up: steepest descent, an iteration": 28.5,
    "swing-up: Newton, an iteration": 55.8,
}
"""Times for the marionette on an Intel i7-2760QM, 2.4 GHz, and for the swing-up on an i7-3770K,
3.5 GHz.
"""
SEARCHES = (
    "another machine; the paper measures the descent direction, here the line search is included"
)
SHARE = 0.04
"""Ratio of the processor time of Newton's method to that of steepest descent, for the whole
optimization.
"""
STEPS = range(0, 1000, 100)


def timings(swing_up: Callable[[str], Optimum], _: Progress) -> Outcome:
    """Time the marionette's steps along the published motion, and both optimizations
    `swing_up(method)`.
    """
    measured_ms = _marionette_ms()
    seconds, converged = {}, True
    swing_up("newton")  # compiles
    for method in ("steepest", "newton"):
        start = process_time()
        optimum = swing_up(method)
        seconds[method] = process_time() - start
        # Time per iteration. The history also contains the initial guess.
        count, converged = len(optimum.history) - 1, converged and optimum.converged
        measured_ms[list(PUBLISHED_MS)[3 + (method == "newton")]] = 1e3 * seconds[method] / count
    # The ratio depends less on the machine than the times do.
    share = seconds["newton"] / seconds["steepest"]
    statements = (
        *(
            Statement(
                "Fig. 3" if name.startswith("swing") else "VIII-B",
                f"{name}: {PUBLISHED_MS[name]:g} ms",
                f"{ms:.2g} ms",
                None,
                SEARCHES if name.startswith("swing") else "another machine",
            )
            for name, ms in measured_ms.items()
        ),
        Statement(
            "Fig. 3",
            f"Newton's method takes {100 * SHARE:.0f} % of the time of steepest descent",
            f"{100 * share:.1f} %, {1e3 * seconds['newton']:.0f} of "
            f"{1e3 * seconds['steepest']:.0f} ms",
            share < 2 * SHARE if converged else None,
            "agrees up to a factor of 2; both without quasi-Newton steps",
        ),
    )
    numbers = {"ms": measured_ms, "published_ms": PUBLISHED_MS, "share_of_newton": share}
    return Outcome(lambda: _draw(measured_ms), numbers, statements)


def _marionette_ms() -> dict[str, float]:
    dsys = MARIONETTE.model()
    reference = MARIONETTE.reference(dsys, "published")
    lam = np.ones(dsys.ndx)
    calls: tuple[Callable[[int], object], ...] = (
        lambda k: dsys.step(reference.states[k], reference.inputs[k]),
        lambda k: dsys.linearize(reference.states[k], reference.inputs[k]),
        lambda k: dsys.hessian(reference.states[k], reference.inputs[k], lam),
    )
    return {name: _ms(call) for name, call in zip(PUBLISHED_MS, calls)}


def _ms(call: Callable[[int], object]) -> float:
    """Return the minimum processor time of a call over several steps, in ms."""
    call(0)  # compiles
    times = []
    for k in STEPS:
        start = process_time()
        call(k)
        times.append(process_time() - start)
    return 1e3 * min(times)


def _draw(measured_ms: dict[str, float]) -> Figure:
    figure = Figure(figsize=(7.4, 3.2), layout="constrained")
    axes = figure.add_subplot(xlabel="processor time (ms)", title="Times", xscale="log")
    places = np.arange(len(measured_ms))
    for offset, times, label, color in (
        (-0.2, PUBLISHED_MS, "published", OPEN),
        (0.2, measured_ms, "here", RUN),
    ):
        axes.barh(places + offset, list(times.values()), 0.35, color=color, label=label)
    axes.set_yticks(places, list(measured_ms))
    axes.invert_yaxis()
    legend_below(figure, 2)
    return figure
