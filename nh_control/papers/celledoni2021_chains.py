"""Figures 8 to 11 of [celledoni2021 5.3]: chains of 2 to 20 pendulums integrated by RKMK(5,4) with
variable and constant steps, and the cost of evaluating the right-hand side.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp

from nh_control.figures.style import DASHED, OPEN, RUN, SERIES, TARGET
from nh_control.integrators.adaptive import AdaptiveIntegrator
from nh_control.integrators.adaptive_results import Solution
from nh_control.numerics.progress import Progress
from nh_control.papers.celledoni2021_flow import Problem
from nh_control.papers.celledoni2021_pendulums import chain
from nh_control.papers.paper import Outcome, Statement

NUMBERS = (2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20)
DURATION_S, TOLERANCE = 3.0, 1e-6
TOTAL_M = 5.0
"""Length of the whole chain in Fig. 10."""
PEAK_S = 2.2
SIZES, STEP_SIZES = (25, 50, 100, 200), (2, 5, 10, 20)
ALLOWED_S = 0.2e-3
"""Maximum time (s) for one evaluation of the right-hand side with 200 links."""
MEASURED = (
    "error of a step: Euclidean norm of the difference of the pair's two solutions, tolerance "
    "1e-6; reference: DOP853 at 1e-13 for ODE45"
)


@dataclass(frozen=True)
class Chain:
    """Two runs of a chain of n links, one with variable steps and one with the same number of
    constant steps. `end` (6 n) is the accurate final state, and `uncertainty` estimates its error.
    """

    problem: Problem
    variable: Solution
    constant: Solution
    end: np.ndarray
    uncertainty: float

    @cached_property
    def errors(self) -> tuple[float, float]:
        """Euclidean errors in the final state in R^{6 n}, for variable and for constant steps."""
        runs = self.variable, self.constant
        variable, constant = (float(np.linalg.norm(r.y[:, -1] - self.end)) for r in runs)
        return variable, constant


@lru_cache(maxsize=2 * len(NUMBERS))
def integrator(n: int, pair: str = "rkmk54") -> AdaptiveIntegrator:
    """Return an embedded pair for chains of n links. The lengths are run-time parameters."""
    problem = chain(n)
    return AdaptiveIntegrator((problem.action, problem.field), pair)


@lru_cache(maxsize=4 * len(NUMBERS))
def run(n: int, length: float, pair: str = "rkmk54", tolerance: float = TOLERANCE) -> Chain:
    """Run with variable steps, then with the same number of equal steps."""
    problem, method, span = chain(n, length), integrator(n, pair), (0.0, DURATION_S)
    x0, numbers = problem.x0, problem.numbers
    # The solver's norm is a root mean square. The square root converts it to the Euclidean norm.
    variable = method.solve(span, x0, rtol=1e-13, atol=tolerance / np.sqrt(len(x0)), p=numbers)
    h = DURATION_S / variable.naccepted
    # No step is rejected, and all steps have the same length.
    constant = method.solve(span, x0, atol=1e30, first_step=h, max_step=h, p=numbers)
    times = np.array([0.0, DURATION_S])
    end, again = problem.accurate(times)[-1], problem.accurate(times, 1e-12)[-1]
    return Chain(problem, variable, constant, end, float(np.linalg.norm(end - again)))


def figure_8(_: Progress) -> Outcome:
    """Compare links of length 1."""
    runs = {n: run(n, 1.0) for n in NUMBERS}
    two, many = (runs[n].errors for n in (NUMBERS[0], NUMBERS[-1]))
    counts = [r.variable.naccepted for r in runs.values()]
    statements = (
        Statement(
            "5.3, Fig. 8",
            "N = 2: the variable step size beats the constant one",
            f"errors at t = {DURATION_S:g} s: {two[0]:.1e} with {counts[0]} variable steps, "
            f"{two[1]:.1e} with as many constant ones",
            two[0] < 0.1 * two[1],
            MEASURED,
        ),
        Statement(
            "5.3, Fig. 8",
            f"N = {NUMBERS[-1]}: adaptivity brings no relevant improvement; as N grows the "
            "tolerance needs more steps",
            f"errors {many[0]:.1e} and {many[1]:.1e}; {counts[0]} steps for N = {NUMBERS[0]}, "
            f"{counts[-1]} for N = {NUMBERS[-1]}",
            many[0] > 0.1 * many[1] and counts[-1] > 2 * counts[0],
            MEASURED,
        ),
    )
    return Outcome(lambda: _accuracy(runs, "links of 1 m"), _numbers(runs), statements)


def figure_10(_: Progress) -> Outcome:
    """Compare chains of total length 5 m."""
    runs = {n: run(n, TOTAL_M / n) for n in NUMBERS}
    better = [n for n, r in runs.items() if r.errors[0] < r.errors[1]]
    # The chain that gains the most from variable steps.
    best = min(runs, key=lambda n: runs[n].errors[0] / runs[n].errors[1])
    first, second = runs[best].errors
    statement = Statement(
        "5.3, Fig. 10",
        "with L_i = 5/N step adaptivity improves the results",
        f"the variable steps are better for {len(better)} of {len(runs)} chains, most for "
        f"N = {best}: {first:.1e} and {second:.1e}",
        len(better) > 0.8 * len(runs),
        MEASURED,
    )
    return Outcome(lambda: _accuracy(runs, "chain of 5 m"), _numbers(runs), (statement,))


def _numbers(runs: dict[int, Chain]) -> dict[str, list[float]]:
    return {
        "n": list(runs),
        "steps": [r.variable.naccepted for r in runs.values()],
        "rejected_steps": [r.variable.nrejected for r in runs.values()],
        "error_of_variable_steps": [r.errors[0] for r in runs.values()],
        "error_of_constant_steps": [r.errors[1] for r in runs.values()],
        "uncertainty_of_reference": [r.uncertainty for r in runs.values()],
    }


def _accuracy(runs: dict[int, Chain], which: str) -> Figure:
    """Plot the errors against N, and the step sizes for the longest chain."""
    figure = Figure(figsize=(7.4, 3.4), layout="constrained")
    accuracy, steps = figure.subplots(1, 2)
    for i, (label, color) in enumerate((("variable", RUN), ("constant", OPEN))):
        values = [r.errors[i] for r in runs.values()]
        accuracy.semilogy(list(runs), values, "o-", color=color, label=f"{label} steps")
    accuracy.set(xlabel="number of pendulums N", ylabel=f"error at t = {DURATION_S:g} s")
    accuracy.set_title(f"RKMK(5,4), {which}")
    accuracy.set_xticks(range(2, NUMBERS[-1] + 1, 2))
    accuracy.margins(x=0.05)
    accuracy.legend(fontsize=7)
    last = runs[NUMBERS[-1]]
    step_sizes(steps, {"variable": (last.variable.t, RUN), "constant": (last.constant.t, OPEN)})
    steps.set_title(f"Steps, N = {NUMBERS[-1]}")
    return figure


def step_sizes(axes: Axes, runs: dict[str, tuple[np.ndarray, str]]) -> None:
    """Plot the step sizes of runs against time. Each run is given by its times."""
    for label, (t, color) in runs.items():
        shown = np.diff(t) > 1e-9  # the last step may be as short as round-off
        axes.semilogy(t[:-1][shown], np.diff(t)[shown], color=color, linewidth=1, label=label)
    axes.set(xlabel="time (s)", ylabel="step (s)")
    axes.legend(fontsize=7)


def figure_9(_: Progress) -> Outcome:
    """Plot all state components of two pendulums."""
    two = run(2, 1.0)
    both = {"variable steps": (two.variable, RUN), "constant steps": (two.constant, OPEN)}
    times = np.linspace(0, DURATION_S, 601)
    accurate = two.problem.accurate(times)

    def draw() -> Figure:
        figure = Figure(figsize=(8.6, 7.4), layout="constrained")
        panels = figure.subplots(6, 2, sharex=True)
        for k, axes in enumerate(panels.T.ravel()):
            axes.plot(times, accurate[:, k], color=TARGET, linewidth=1, label="reference")
            for label, (r, color) in both.items():
                axes.plot(r.t, r.y[k], ".", color=color, markersize=3, label=label)
            kind = "qω"[k % 6 // 3]
            axes.set_ylabel(f"{kind}{'₁₂'[k // 6]}, {'xyz'[k % 3]}")
            # The axis of a constant component would be scaled to its round-off errors.
            if accurate[:, k].max() - accurate[:, k].min() < 1e-6:
                axes.set_ylim(-1, 1)
        for axes in panels[-1]:
            axes.set_xlabel("time (s)")
        figure.align_ylabels()
        lines, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside upper center", ncols=3)
        return figure

    gaps = [_largest_gap(two.problem, r) for r in (two.variable, two.constant)]
    statement = Statement(
        "5.3, Fig. 9",
        "N = 2: the variable step size reproduces the reference better than the constant one",
        f"largest distance of a node from it: {gaps[0]:.1e} and {gaps[1]:.1e}",
        gaps[0] < 0.1 * gaps[1],
        f"the motion from this start stays in a plane; {MEASURED}",
    )
    numbers = {"largest_gap_of_variable_steps": gaps[0], "largest_gap_of_constant_steps": gaps[1]}
    return Outcome(draw, numbers, (statement,))


def _largest_gap(problem: Problem, run: Solution) -> float:
    """Return the largest distance between a run's nodes and the accurate motion."""
    accurate = problem.accurate(run.t)
    return float(np.linalg.norm(run.y.T - accurate, axis=1).max())


def figure_11(_: Progress) -> Outcome:
    """Plot the step sizes, angular velocities and angular accelerations of two pendulums."""
    two = run(2, 1.0)
    both = {"variable steps": (two.variable, RUN), "constant steps": (two.constant, OPEN)}
    times = np.linspace(0, DURATION_S, 3001)
    accurate = two.problem.accurate(times)
    # Components 4 and 10 are the y components of the two angular velocities.
    rates = np.array([two.problem.rate(0.0, x) for x in accurate])[:, [4, 10]]
    peak = float(times[np.abs(accurate[:, [4, 10]]).max(axis=1).argmax()])
    # MATLAB's ODE45 and SciPy's RK45 are the same Dormand-Prince pair.
    ode45 = solve_ivp(
        two.problem.rate, (0, DURATION_S), two.problem.x0, "RK45", rtol=TOLERANCE, atol=TOLERANCE
    )
    sizes = np.diff(two.variable.t)
    least = float(two.variable.t[sizes.argmin()])

    def draw() -> Figure:
        figure = Figure(figsize=(10.4, 3.4), layout="constrained")
        steps, zoom, changes = figure.subplots(1, 3)
        labels = {"RKMK(5,4)": two.variable, "RKMK5": two.constant, "RK45 (ODE45)": ode45}
        colors = (RUN, OPEN, SERIES[1])
        step_sizes(steps, {n: (r.t, c) for (n, r), c in zip(labels.items(), colors)})
        steps.set_title("Steps, N = 2")
        late = times >= 2.1
        for i, row in enumerate((4, 10)):
            name = "_" if i else "reference"
            zoom.plot(times[late], accurate[late, row], color=TARGET, linewidth=1, label=name)
            for label, (r, color) in both.items():
                late_nodes, name = r.t >= 2.1, "_" if i else label
                zoom.plot(
                    r.t[late_nodes],
                    r.y[row, late_nodes],
                    ".",
                    color=color,
                    markersize=4,
                    label=name,
                )
            changes.plot(times, rates[:, i], color=SERIES[i], label=f"ω{'₁₂'[i]}', y")
        zoom.set(title="ω₁, ω₂, y component (rad/s)", xlabel="time (s)")
        changes.set(title="Angular accelerations (rad/s²)", xlabel="time (s)")
        zoom.legend(fontsize=7)
        changes.legend(fontsize=7)
        return figure

    statement = Statement(
        "5.3, Figs. 9, 11",
        "a peak of the angular velocities at t = 2.2, where the step is considerably restricted",
        f"the peak is at {peak:.2f} s; the smallest step, {sizes.min():.1e} s of at most "
        f"{sizes.max():.1e} s, at {least:.2f} s",
        abs(peak - PEAK_S) < 0.1 and abs(least - peak) < 0.1 and sizes.min() < sizes.max() / 5,
        "ODE45 is SciPy's RK45 at 1e-6",
    )
    numbers = {
        "peak_s": peak,
        "smallest_step_at_s": least,
        "steps": [len(r.t) - 1 for r in (two.variable, two.constant, ode45)],
    }
    return Outcome(draw, numbers, (statement,))


def scaling(_: Progress) -> Outcome:
    """Time the compiled right-hand side and a step."""
    seconds = {n: right_hand_side_s(n) for n in SIZES}
    operations = {n: chain(n).field.n_instructions() for n in SIZES}
    # If the differences are equal, the number of operations is exactly linear in N.
    per_link = np.diff(list(operations.values())) / np.diff(SIZES)
    steps = {n: _trial_s(n) for n in STEP_SIZES}

    def draw() -> Figure:
        figure = Figure(figsize=(5.0, 3.6), layout="constrained")
        axes = figure.add_subplot(xlabel="number of pendulums N", ylabel="time (µs)")
        for label, times_s, color in (
            ("step of RKMK(5,4)", steps, OPEN),
            ("right-hand side", seconds, RUN),
        ):
            n, microseconds = np.array(list(times_s)), 1e6 * np.array(list(times_s.values()))
            axes.loglog(n, microseconds, "o-", color=color, label=label)
            axes.loglog(n, microseconds[0] * n / n[0], **DASHED)
        axes.axhline(1e6 * ALLOWED_S, color=TARGET, linestyle=":", label="0.2 ms")
        shown = (*STEP_SIZES, *SIZES)
        axes.set_xticks(shown, [str(size) for size in shown])
        axes.minorticks_off()
        axes.margins(x=0.05)
        axes.set_title("Chains of pendulums (dashed: linear in N)")
        axes.legend(fontsize=7)
        return figure

    micro = ", ".join(f"{1e6 * s:.1f}" for s in seconds.values())
    statement = Statement(
        "5.2",
        "R(q) w' = ..., a dense matrix of 3 N rows",
        f"{micro} us for N = {', '.join(map(str, SIZES))}: {per_link[0]:g} operations for each "
        "additional link",
        seconds[SIZES[-1]] < ALLOWED_S and np.ptp(per_link) == 0,
        "here, the tensions of the links are solved for, with a tridiagonal matrix",
    )
    numbers = {
        "n": list(seconds),
        "seconds_of_right_hand_side": list(seconds.values()),
        "operations": list(operations.values()),
        "seconds_of_step": {str(n): s for n, s in steps.items()},
    }
    return Outcome(draw, numbers, (statement,))


def _trial_s(n: int, repeats: int = 5) -> float:
    """Return the time (s) of one variable step, the minimum of several measurements."""
    problem, method, times_s = chain(n), integrator(n), []
    method.solve((0.0, DURATION_S), problem.x0, p=problem.numbers)  # compiles
    for _ in range(repeats):
        start = time.perf_counter()
        solved = method.solve((0.0, DURATION_S), problem.x0, p=problem.numbers)
        seconds = time.perf_counter() - start
        times_s.append(seconds / (solved.naccepted + solved.nrejected))
    return min(times_s)


def right_hand_side_s(n: int, evaluations: int = 200, repeats: int = 20) -> float:
    """Return the time (s) of one compiled evaluation of a chain's field, the minimum of several
    measurements.
    """
    problem = chain(n)
    call = problem.compiled().direct("field")
    call.inputs[0][:], call.inputs[1][:] = problem.x0, problem.numbers
    # Each measurement contains many evaluations, because the clock cannot resolve a single one.
    times_s = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(evaluations):
            call.run()
        times_s.append((time.perf_counter() - start) / evaluations)
    return min(times_s)
