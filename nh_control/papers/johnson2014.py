"""Figures 3 and 4 of [johnson2014 VIII-A], the swing-up of a pendulum by trajectory optimization,
then tracked by LQR; and the paper's entry with its other figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nh_control.control import LqrTracker
from nh_control.control.costs import quadratic
from nh_control.control.optimize import Monitor, Optimum, bar, optimize
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.figures.style import OPEN, RUN, TARGET
from nh_control.integrators import midpoint
from nh_control.numerics.progress import Progress
from nh_control.papers import johnson2014_marionette
from nh_control.papers.paper import Experiment, Outcome, Paper, Statement
from nh_control.runs.simulation import closed_loop
from nh_control.systems import pendulum

STEP_S, STEPS = 0.1, 100
Q, R = np.diag([1000.0, 1.0]), np.array([[50.0]])
TOLERANCE = 1e-6
PERTURBED = np.array([1.0, 1.0])


def model() -> DiscreteSystem:
    """The pendulum under the midpoint rule with the paper's forces, `F- = u dt`, `F+ = 0`."""
    return midpoint(pendulum(), STEP_S, "left")


def infeasible_reference() -> Trajectory:
    """The step from hanging to standing, (35), at zero momentum and torque."""
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


def swing_up(method: str, monitor: Monitor | None = None) -> Optimum:
    """The feasible trajectory closest to (35) in the weights Q, R, found from the pendulum at rest
    by "newton" or "steepest" descent.
    """
    dsys = model()
    hanging = Trajectory(STEP_S, np.zeros((STEPS + 1, 2)), np.zeros((STEPS, 1)))
    return optimize(
        dsys,
        quadratic(dsys, infeasible_reference(), Q, R),
        hanging,
        np.eye(2),
        np.eye(1),
        method,
        tolerance=TOLERANCE,
        monitor=monitor,
    )


@dataclass(frozen=True)
class Convergence:
    """Figure 3: both optimizations."""

    newton: Optimum
    steepest: Optimum

    def numbers(self) -> dict:
        """What the figure shows, as plain values; `descents` is the paper's number of
        iterations.
        """
        return {
            kind: {
                "cost": result.cost,
                "descents": len(result.history) - 1,
                "newton_steps": sum(i.kind == "newton" for i in result.history),
                "converged": result.converged,
            }
            for kind, result in (("newton", self.newton), ("steepest", self.steepest))
        } | {"paper": {"newton": {"descents": 14}, "steepest": {"descents": 653}}}

    def draw(self) -> Figure:
        """The descent that is left over the iterations, both axes logarithmic."""
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.add_subplot(
            xlabel="iteration",
            ylabel="descent  −DJ ζ",
            title="Swing-up of a pendulum: convergence",
            xscale="log",
            yscale="log",
        )
        for result, label in (
            (self.steepest, "first order: steepest descent"),
            (self.newton, "second order: Newton"),
        ):
            axes.plot(
                1 + np.arange(len(result.history)),
                [max(i.descent, 1e-14) for i in result.history],
                ".-",
                label=label,
            )
        axes.axhline(TOLERANCE, color=TARGET, linewidth=1.0, linestyle=":")
        axes.set_ylim(bottom=1e-9)
        axes.legend(loc="lower left")
        return figure


@dataclass(frozen=True)
class Tracking:
    """Figure 4: the feasible reference, and the motion from a perturbed start with and without
    feedback.
    """

    reference: Trajectory
    closed: Trajectory
    opened: Trajectory

    def numbers(self) -> dict:
        """Largest deviations from the reference, in rad and kg m^2/s, over the last half and at
        the end.
        """
        out = {}
        for name, run in (("closed_loop", self.closed), ("open_loop", self.opened)):
            error = np.abs(run.states - self.reference.states).max(axis=1)
            out[name] = {"last_half": float(error[STEPS // 2 :].max()), "end": float(error[-1])}
        return out

    def draw(self) -> Figure:
        """Angles over time."""
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


def figure_3(progress: Progress | None = None) -> Convergence:
    """Newton's method against steepest descent on the same problem from the same start."""
    return Convergence(
        *(
            swing_up(method, bar(progress, f"{method} descent", TOLERANCE) if progress else None)
            for method in ("newton", "steepest")
        )
    )


def figure_4(reference: Trajectory) -> Tracking:
    """LQR about the optimal swing-up from the perturbed start [1, 1], (37), and the same start
    without feedback; the weights are those of the optimization.
    """
    dsys = model()
    tracker = LqrTracker(dsys, reference, Q, R)
    closed, opened = (
        closed_loop(dsys, tracker, PERTURBED, STEPS, feedback=feedback).trajectory
        for feedback in (True, False)
    )
    return Tracking(reference, closed, opened)


def _third(progress: Progress) -> Outcome:
    result = figure_3(progress)
    numbers = result.numbers()
    newton, steepest = (numbers[kind]["descents"] for kind in ("newton", "steepest"))
    return Outcome(
        result.draw,
        numbers,
        (
            Statement(
                "Fig. 3",
                "Newton's method takes 14 iterations, steepest descent 653",
                f"{newton} and {steepest}, both to the cost {result.newton.cost:.6f}",
                abs(newton - 14) <= 2 and 400 < steepest < 900,
                "LQR gain (R + B^T P B)^-1 B^T P A; the tolerance is not given, here 1e-6",
            ),
        ),
    )


def _fourth(_: Progress) -> Outcome:
    result = figure_4(swing_up("newton").trajectory)
    numbers = result.numbers()
    end, off = numbers["closed_loop"]["end"], numbers["open_loop"]["last_half"]
    return Outcome(
        result.draw,
        numbers,
        (
            Statement(
                "Fig. 4",
                "feedback brings the perturbed start (37) onto the swing-up, without it it fails",
                f"closed loop ends {end:.0e} off, open loop is up to {off:.1f} rad off",
                end < 1e-6 and off > 1,
            ),
        ),
    )


PAPER = Paper(
    "johnson2014",
    "Johnson, Schultz, Murphey: Structured linearization of discrete mechanical systems for "
    "analysis and optimal control",
    (
        Experiment("3", "swing-up of a pendulum: convergence of the optimization", _third),
        Experiment("4", "swing-up of a pendulum: LQR about it", _fourth),
        *johnson2014_marionette.EXPERIMENTS,
    ),
)
