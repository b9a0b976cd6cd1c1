"""Figures 3 and 4 of [johnson2014 VIII-A]: the swing-up of a pendulum by trajectory optimization,
and LQR tracking of the optimal trajectory. This file also lists the paper's experiments.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nh_control.control import LqrTracker, lqr
from nh_control.control.costs import quadratic_cost
from nh_control.control.optimize import Monitor, Optimum, bar, optimize
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.figures.style import OPEN, RUN, TARGET, legend_below
from nh_control.integrators import midpoint
from nh_control.numerics.progress import Progress
from nh_control.papers import (
    johnson2014_marionette,
    johnson2014_timing,
    johnson2014_worked,
    sketch,
)
from nh_control.papers.paper import Experiment, Outcome, Paper, Statement
from nh_control.runs.simulation import closed_loop
from nh_control.scenarios import pendulum_visual
from nh_control.systems import PendulumParameters, pendulum

STEP_S, STEPS = 0.1, 100
Q, R = np.diag([1000.0, 1.0]), np.array([[50.0]])
TOLERANCE = 1e-6
PERTURBED = np.array([1.0, 1.0])
MAX_ITERATIONS, FEW_ITERATIONS = 1000, 30
"""Maximum number of descent steps in a full run and in a short run. The short run suffices for
Newton's method but not for steepest descent.
"""
PREPARED = 4
"""Number of quasi-Newton steps that both methods take first in the authors' program."""
FIRST_GAIN = (0.0613, 0.981)
"""The first gain of the authors' LQR. The weights are identity matrices."""


def model() -> DiscreteSystem:
    """Return the pendulum discretized by the midpoint rule with the paper's forces, `F- = u dt`,
    `F+ = 0`.
    """
    return midpoint(pendulum(), STEP_S, "left")


def infeasible_reference() -> Trajectory:
    """Return (35), the step from hanging to standing, with zero momentum and torque."""
    states = np.zeros((STEPS + 1, 2))
    states[STEPS // 2 :, 0] = np.pi
    return Trajectory(
        STEP_S,
        states,
        np.zeros((STEPS, 1)),
        ("theta", "p_theta"),
        ("torque",),
        "infeasible reference (35)",
    )


def swing_up(
    method: str,
    monitor: Monitor | None = None,
    prepared: int = 0,
    max_iterations: int = MAX_ITERATIONS,
) -> Optimum:
    """Return the feasible trajectory that is closest to (35) in the norm weighted by Q and R. It
    is found by "newton" or "steepest" descent, starting with the pendulum at rest. The first
    `prepared` steps are quasi-Newton steps, which the history omits.
    """
    dsys = model()
    cost = quadratic_cost(dsys, infeasible_reference(), Q, R)

    # The projection operator uses LQR gains with identity matrices as weights.
    def descend(guess: Trajectory, kind: str, most: int) -> Optimum:
        return optimize(
            dsys,
            cost,
            guess,
            np.eye(2),
            np.eye(1),
            kind,
            tolerance=TOLERANCE,
            max_iterations=most,
            monitor=monitor,
        )

    # At rest in the hanging position.
    start = Trajectory(STEP_S, np.zeros((STEPS + 1, 2)), np.zeros((STEPS, 1)))
    if prepared:
        start = descend(start, "quasi", prepared).trajectory
    return descend(start, method, max_iterations)


LIGHT: dict[str, Any] = {"linestyle": ":", "linewidth": 1.0, "marker": ""}


@dataclass(frozen=True)
class Convergence:
    """Data for Figure 3: both optimizations, with and without the quasi-Newton steps in the
    authors' program.
    """

    newton: Optimum
    steepest: Optimum
    newton_at_once: Optimum
    steepest_at_once: Optimum

    def numbers(self) -> dict:
        """Return the figure's data as plain values. `descents` counts what the paper calls
        iterations.
        """
        return {
            kind: {
                "cost": result.cost,
                "descents": len(result.history) - 1,
                "newton_steps": sum(i.kind == "newton" for i in result.history),
                "converged": result.converged,
            }
            for kind, result in vars(self).items()
        } | {"paper": {"newton": {"descents": 14}, "steepest": {"descents": 653}}}

    def draw(self) -> Figure:
        """Plot the remaining descent against the iterations on logarithmic axes."""
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.add_subplot(
            xlabel="iteration",
            ylabel="descent  −DJ ζ",
            title="Swing-up of a pendulum: convergence",
            xscale="log",
            yscale="log",
        )
        after = f"after {PREPARED} quasi-Newton steps"
        for result, label, line_style in (
            (self.steepest, f"steepest descent, {after}", {"color": OPEN}),
            (self.steepest_at_once, "steepest descent directly", LIGHT | {"color": OPEN}),
            (self.newton, f"Newton, {after}", {"color": RUN}),
            (self.newton_at_once, "Newton directly", LIGHT | {"color": RUN}),
        ):
            axes.plot(
                1 + np.arange(len(result.history)),
                [max(i.descent, 1e-14) for i in result.history],
                **{"marker": ".", "label": label, **line_style},
            )
        axes.axhline(TOLERANCE, color=TARGET, linewidth=1.0, linestyle=":")
        axes.set_ylim(bottom=1e-9)
        legend_below(figure, 2)
        return figure


@dataclass(frozen=True)
class Tracking:
    """Data for Figure 4: the feasible reference, and the motion from a perturbed initial state
    with and without feedback.
    """

    reference: Trajectory
    closed: Trajectory
    opened: Trajectory
    first_gain: np.ndarray

    def numbers(self) -> dict:
        """Return the first gain, and the deviations from the reference in rad and kg m^2/s: their
        maximum over the second half, and their final values.
        """
        out: dict[str, Any] = {"first_gain": self.first_gain.ravel().tolist()}
        for name, run in (("closed_loop", self.closed), ("open_loop", self.opened)):
            error = np.abs(run.states - self.reference.states).max(axis=1)
            out[name] = {"last_half": float(error[STEPS // 2 :].max()), "end": float(error[-1])}
        return out

    def draw(self) -> Figure:
        """Plot the angles against time."""
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.add_subplot(
            xlabel="time (s)", ylabel="θ (rad)", title="Swing-up of a pendulum: feedback"
        )
        runs: tuple[tuple[Trajectory, str, dict[str, Any]], ...] = (
            (infeasible_reference(), "infeasible reference", {"color": TARGET, "linestyle": ":"}),
            (self.opened, "open loop", {"color": OPEN}),
            (self.reference, "feasible reference", {"color": TARGET, "linestyle": "--"}),
            (self.closed, "closed loop", {"color": RUN}),
        )
        for run, label, style in runs:
            axes.plot(run.times, run.states[:, 0], label=label, **style)
        axes.legend()
        return figure


def figure_3(
    progress: Progress | None = None, max_iterations: int = MAX_ITERATIONS
) -> Convergence:
    """Run Newton's method and steepest descent on the same problem from the same initial guess."""
    # The order matches the fields of `Convergence`.
    optima = [
        swing_up(
            method,
            bar(progress, f"{method} descent", TOLERANCE) if progress else None,
            prepared,
            max_iterations,
        )
        for prepared in (PREPARED, 0)
        for method in ("newton", "steepest")
    ]
    newton, steepest, newton_at_once, steepest_at_once = optima
    return Convergence(newton, steepest, newton_at_once, steepest_at_once)


def figure_4(reference: Trajectory) -> Tracking:
    """Run LQR about the optimal swing-up from the perturbed initial state [1, 1] in (37), and
    repeat the run without feedback. The weights are identity matrices, as in the authors' program.
    """
    dsys = model()
    tracker = LqrTracker(dsys, reference, np.eye(2), np.eye(1))
    closed, opened = (
        closed_loop(dsys, tracker, PERTURBED, STEPS, feedback=feedback).trajectory
        for feedback in (True, False)
    )
    gain = lqr.finite_horizon(dsys, reference, np.eye(2), np.eye(1)).K[0]
    return Tracking(reference, closed, opened, gain)


def _third(progress: Progress, max_iterations: int = MAX_ITERATIONS) -> Outcome:
    result = figure_3(progress, max_iterations)
    numbers = result.numbers()
    newton, steepest, *at_once = (numbers[kind]["descents"] for kind in vars(result))
    # A short run stops before steepest descent converges, so its iteration count is undecided.
    ended = result.steepest.converged
    return Outcome(
        result.draw,
        numbers,
        (
            Statement(
                "Fig. 3",
                "Newton's method takes 14 iterations, steepest descent 653",
                f"{PREPARED} + {newton} and {steepest}; without quasi-Newton steps {at_once[0]} "
                f"and {at_once[1]}; {'all' if ended else 'Newton'} to the cost "
                f"{result.newton.cost:.6f}",
                PREPARED + newton == 14 and (abs(steepest - 653) <= 1 if ended else None),
                f"{PREPARED} quasi-Newton steps come first, as in the authors' program; LQR gain "
                "(R + B^T P B)^-1 B^T P A; the paper gives no tolerance, here it is 1e-6",
            ),
        ),
    )


def _fourth(_: Progress) -> Outcome:
    result = figure_4(swing_up("newton").trajectory)
    numbers = result.numbers()
    end, deviation = numbers["closed_loop"]["end"], numbers["open_loop"]["last_half"]
    return Outcome(
        result.draw,
        numbers,
        (
            Statement(
                "Fig. 4",
                "feedback brings the perturbed start (37) onto the swing-up, which fails without "
                "it",
                f"closed loop ends {end:.0e} off, open loop is up to {deviation:.1f} rad off",
                end < 1e-6 and deviation > 1,
            ),
            Statement(
                "Fig. 4",
                f"the authors' program has the first gain {FIRST_GAIN}",
                f"({numbers['first_gain'][0]:.4f}, {numbers['first_gain'][1]:.3f})",
                np.allclose(numbers["first_gain"], FIRST_GAIN, rtol=1e-3),
                "the paper does not give the weights of the LQR; they are identities in the "
                "program",
            ),
        ),
    )


# The pendulum in Fig. 2, at 0.6 rad.
SKETCH = sketch.Sketched(
    "Pendulum",
    pendulum_visual.visual_model(PendulumParameters()),
    PendulumParameters(),
    np.array([0.6]),
    {"pivot": "u, θ", "end": "m"},
    sketch.FRONT,
)
PAPER = Paper(
    "johnson2014",
    "Johnson, Schultz, Murphey: Structured linearization of discrete mechanical systems for "
    "analysis and optimal control",
    (
        sketch.experiment("2", "the pendulum", SKETCH),
        Experiment("worked", "a step of the pendulum in numbers", johnson2014_worked.worked),
        Experiment(
            "singularities", "singular M and Dh M^-1 Dh^T", johnson2014_worked.singularities
        ),
        Experiment(
            "3",
            "swing-up of a pendulum: convergence of the optimization",
            _third,
            partial(_third, max_iterations=FEW_ITERATIONS),
        ),
        Experiment("4", "swing-up of a pendulum: LQR about it", _fourth),
        *johnson2014_marionette.EXPERIMENTS,
        Experiment(
            "timings",
            "processor times",
            partial(johnson2014_timing.timings, swing_up),
            partial(johnson2014_timing.timings, partial(swing_up, max_iterations=FEW_ITERATIONS)),
        ),
    ),
)
