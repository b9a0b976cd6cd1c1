"""Figures 5, 6 and 7 of [johnson2014 VIII-B]: LQR stabilizes a marionette on six strings about a
motion of its strings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial

import casadi as ca
import numpy as np
from matplotlib.figure import Figure

from nh_control.discrete.conditioning import require_regular
from nh_control.discrete.results import Conditioning
from nh_control.discrete.system import DiscreteSystem
from nh_control.figures import stick_figures
from nh_control.figures.style import OPEN, RUN, TARGET
from nh_control.numerics.progress import Progress
from nh_control.papers.paper import Experiment, Outcome, Statement
from nh_control.runs.simulation import ClosedLoop, closed_loop
from nh_control.scenarios import PlanarPerturbation
from nh_control.scenarios.marionette import MARIONETTE, perturbed
from nh_control.systems.marionette_motion import tensions

TURN_RAD = 0.1
TEXT, CODE = "torso turned by 0.1 rad", "end of a run with still strings"
"""The perturbed initial states in the paper's text and in its published program."""
COORDINATES = 22


@dataclass(frozen=True)
class Stabilization:
    """The closed-loop and open-loop runs about the reference from every perturbed initial state.
    `conditioning` contains the largest condition numbers along the reference.
    """

    dsys: DiscreteSystem
    runs: Mapping[str, tuple[ClosedLoop, ClosedLoop]]
    reference: ClosedLoop
    conditioning: Conditioning

    def error(self, run: ClosedLoop) -> np.ndarray:
        """Return the norm (N + 1) of the error in the 22 free coordinates. As in the paper, the
        norm mixes m and rad.
        """
        return np.linalg.norm(run.errors[:, :COORDINATES], axis=1)

    def torso(self, run: ClosedLoop) -> np.ndarray:
        """Return the rotation (N + 1) of the torso about the vertical, in rad."""
        return run.trajectory.states[:, self.dsys.state_names.index("torso_rz")]

    def numbers(self) -> dict:
        """Return the figures' data as plain values."""
        starts = {}
        for start, runs in self.runs.items():
            errors = [self.error(run) for run in runs]
            starts[start] = {
                name: {
                    "sum": float(e.sum()),
                    "start": float(e[0]),
                    "half": float(e[len(e) // 2]),
                    "end": float(e[-1]),
                    "constraint": self.violation(run),
                }
                for name, run, e in zip(("closed_loop", "open_loop"), runs, errors)
            }
        # Constraints can push, but strings cannot. A negative tension shows where the model is
        # wrong.
        lowest = tensions(self.dsys, self.reference.trajectory).min(axis=1)
        slack = {
            "lowest_tension_N": float(lowest.min()),
            "steps_in_which_a_string_would_push": np.flatnonzero(lowest < 0).tolist(),
        }
        model = {
            "states": self.dsys.ndx,
            "inputs": self.dsys.nu,
            "constraints": self.dsys.system.n_holonomic_constraints,
            "steps": len(self.reference.trajectory),
        }
        condition = {"M": self.conditioning.mass, "Dh M^-1 Dh^T": self.conditioning.constraint}
        return {
            "model": model,
            "reference": {
                "constraint": self.violation(self.reference),
                "condition": condition,
                **slack,
            },
            **starts,
        }

    def violation(self, run: ClosedLoop) -> float:
        """Return the largest |h| (m^2) at the nodes of a run."""
        q = ca.SX.sym("q", self.dsys.system.space.nq)
        # h = |a - b|^2 - length^2 for each string
        h = ca.Function("h", [q], [self.dsys.system.holonomic(q)])
        return max(
            float(np.abs(np.asarray(h(self.dsys.configuration(x)))).max())
            for x in run.trajectory.states
        )

    def figure_5(self) -> Figure:
        """Draw the marionette in its initial state and during the motion."""
        visual, states = MARIONETTE.visual_model(), self.reference.trajectory.states
        return stick_figures.draw(
            visual,
            [
                (
                    f"t = {k * self.dsys.h:g} s",
                    visual.poses(MARIONETTE.parameters, self.dsys.configuration(states[k])),
                    None,
                )
                for k in (0, 85, 170, 250, 335)
            ],
        )

    def figure_6(self) -> Figure:
        """Plot the norm of the error for both initial states."""
        figure = Figure(figsize=(6.4, 4.8), layout="constrained")
        panels = figure.subplots(len(self.runs), 1, sharex=True)
        for panel, (start, runs) in zip(panels, self.runs.items()):
            for run, label, color in zip(runs, ("closed loop", "open loop"), (RUN, OPEN)):
                panel.plot(run.trajectory.times, self.error(run), color=color, label=label)
            panel.set(title=f"Marionette: {start}", ylabel="error (m, rad)")
        panels[0].legend()
        panels[-1].set_xlabel("time (s)")
        return figure

    def figure_7(self) -> Figure:
        """Plot the torso's rotation about the vertical for the initial state in the paper's
        text.
        """
        figure = Figure(figsize=(6.4, 3.4), layout="constrained")
        axes = figure.add_subplot(
            xlabel="time (s)", ylabel="torso about the vertical (rad)", title=f"Marionette: {TEXT}"
        )
        closed, opened = self.runs[TEXT]
        for run, label, style in (
            (opened, "open loop", {"color": OPEN}),
            (closed, "closed loop", {"color": RUN}),
            (self.reference, "reference", {"color": TARGET, "linestyle": "--", "linewidth": 1.1}),
        ):
            axes.plot(run.trajectory.times, self.torso(run), label=label, **style)
        axes.legend()
        return figure


@cache
def stabilization() -> Stabilization:
    """Run the experiment with the published weights, 100 for configurations and 1 otherwise.
    `satisfy_constraints` keeps the strings taut when the torso is rotated.
    """
    dsys = MARIONETTE.model()
    reference = MARIONETTE.reference(dsys, "published")
    tracker = MARIONETTE.tracker(dsys, reference)
    # The published program starts from the final state of a motion with still strings.
    still = dsys.simulate(reference.states[0], np.tile(reference.inputs[0], (1000, 1)))
    starts = {
        TEXT: perturbed(dsys, reference.states[0], PlanarPerturbation(heading=TURN_RAD)),
        CODE: still.states[-1],
    }

    def run(x: np.ndarray, feedback: bool) -> ClosedLoop:
        loop = closed_loop(dsys, tracker, x, len(reference), feedback=feedback)
        # A failed run must not be mistaken for a short motion.
        if loop.failure is not None:
            raise loop.failure
        return loop

    runs = {name: (run(x, True), run(x, False)) for name, x in starts.items()}
    return Stabilization(
        dsys, runs, run(reference.states[0], False), require_regular(dsys, reference)
    )


def _outcome(figure: str, _: Progress) -> Outcome:
    result = stabilization()
    numbers = result.numbers()
    return Outcome(getattr(result, figure), numbers, STATEMENTS[figure](numbers))


def _model(numbers: dict) -> tuple[Statement, ...]:
    model, reference = numbers["model"], numbers["reference"]
    return (
        Statement(
            "VIII-B, Fig. 5",
            "22 dynamic coordinates, 18 prescribed coordinates and 6 strings",
            f"{model['states']} states, {model['inputs']} inputs, {model['constraints']} "
            f"constraints, satisfied to {reference['constraint']:.0e} m^2",
            (model["states"], model["inputs"], model["constraints"]) == (80, 18, 6),
        ),
    )


def _stabilized(numbers: dict, *starts: str) -> tuple[Statement, ...]:
    return tuple(
        Statement(
            "VIII-B, Fig. 6, 7",
            "LQR stabilizes the marionette; without it the error remains",
            f"{start}: error {numbers[start]['closed_loop']['start']:.2g} at the start, "
            f"{numbers[start]['closed_loop']['end']:.1g} at the end, open loop "
            f"{numbers[start]['open_loop']['end']:.1g}",
            numbers[start]["closed_loop"]["end"] < 0.1 * numbers[start]["open_loop"]["end"],
            "the text and the published program have different starts" if start == CODE else "",
        )
        for start in starts
    )


# Fig. 7 shows the same runs as Fig. 6 and adds no claim.
STATEMENTS: dict[str, Callable[[dict], tuple[Statement, ...]]] = {
    "figure_5": _model,
    "figure_6": lambda numbers: _stabilized(numbers, TEXT, CODE),
    "figure_7": lambda numbers: (),
}

EXPERIMENTS = (
    Experiment("5", "the marionette in motion", partial(_outcome, "figure_5")),
    Experiment("6", "the marionette's error with and without LQR", partial(_outcome, "figure_6")),
    Experiment("7", "the torso's rotation with and without LQR", partial(_outcome, "figure_7")),
)
