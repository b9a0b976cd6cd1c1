"""LQR and the geometric controller on the parabola of [celledoni2021 6.2]: the same start, the
same limits, error and effort in one plot.

Run with `python test/benchmark/compare_payload_controllers.py [FILE.png]`. The geometric
controller also runs without limits, as in the paper.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from sizes import sized

from nh_control.control import ControllerTracker, LqrTracker, paths
from nh_control.discrete.system import DiscreteSystem
from nh_control.papers.celledoni2021_payload_control import GeometricController, GeometricGains
from nh_control.runs.simulation import ClosedLoop, closed_loop
from nh_control.scenarios.payload_flatness import flat_reference
from nh_control.scenarios.quadrotor_payload import QUADROTOR_PAYLOAD
from nh_control.systems import Formation, link_tensions

PATH = paths.parabola()
STEPS = 500
ACROSS, START_PLANE = (
    Formation(np.pi / 6, azimuth=-np.pi / 2),
    Formation(np.radians(50), azimuth=np.pi),
)
SEEDS = sized(40, 1)


def papers_start(model: DiscreteSystem) -> np.ndarray:
    """At rest at y = (-2, 0, 0) with links 80 degrees from the vertical."""
    s, c = np.sin(np.radians(80)), np.cos(np.radians(80))
    q = np.r_[-2.0, 0, 0, np.tile([1.0, 0, 0, 0], 2), -s, 0, c, s, 0, c]
    return model.state(q, np.zeros(model.system.space.nw))


def controllers(model: DiscreteSystem) -> dict[str, LqrTracker | ControllerTracker]:
    """Return the compared controllers by title."""
    unlimited = np.tile([-np.inf, np.inf], (model.nu, 1))
    Q, R, _ = QUADROTOR_PAYLOAD.weights
    slow = GeometricController(model, PATH, ACROSS, GeometricGains(k_R=9.0, k_O=0.9))
    fast = GeometricController(model, PATH, ACROSS)
    return {
        "LQR": LqrTracker(model, flat_reference(model, PATH, START_PLANE), Q, R, hold=True),
        "geometric, k_R = 9, k_O = 0.9": ControllerTracker(model, slow),
        "geometric, k_R = 100, k_O = 3": ControllerTracker(model, fast),
        "geometric, k_R = 100, k_O = 3, no limits": ControllerTracker(
            model, fast, limits=unlimited
        ),
    }


@dataclass(frozen=True)
class Outcome:
    """Payload errors (N + 1) in m, thrusts (N, 2), torques (N, 6), smallest link tension in N, and
    the fraction of steps with a saturated input.
    """

    times: np.ndarray
    errors: np.ndarray
    thrusts: np.ndarray
    torques: np.ndarray
    tension: float
    saturated: float

    @staticmethod
    def of(model: DiscreteSystem, run: ClosedLoop) -> Outcome:
        """The outcome of a run."""
        states, inputs = run.trajectory.states, run.trajectory.inputs
        tensions = [
            link_tensions(model.system.parameters, model.configuration(x), model.velocity(x), u)
            for x, u in zip(states, inputs)
        ]
        errors = np.linalg.norm(states[:, :3] - PATH.jets(run.trajectory.times)[:, 0], axis=1)
        wrenches = inputs.reshape(len(inputs), -1, 4)
        torques = wrenches[:, :, 1:].reshape(len(inputs), -1)
        return Outcome(
            run.trajectory.times,
            errors,
            wrenches[:, :, 0],
            torques,
            float(np.min(tensions)),
            float(run.saturated.any(axis=1).mean()),
        )

    def row(self, h: float) -> str:
        """Errors at 0.5, 2 and 5 s and their rms in m, integrals of squared thrusts and torques,
        smallest tension, saturation.
        """
        at = [
            self.errors[round(t / h)] if round(t / h) < len(self.errors) else np.nan
            for t in (0.5, 2.0, 5.0)
        ]
        rms = np.sqrt(np.mean(self.errors**2))
        return (
            f"{at[0]:8.3f} {at[1]:8.4f} {at[2]:9.2e} {rms:8.3f} "
            f"{h * np.sum(self.thrusts**2):9.0f} {h * np.sum(self.torques**2):9.1f}"
            f" {self.tension:8.2f} {self.saturated:8.1%}"
        )


def nearby_starts(model: DiscreteSystem, controller: LqrTracker | ControllerTracker) -> float:
    """Fraction of starts 1 % off the paper's in every local coordinate that end within 5 cm."""
    good = 0
    for seed in range(SEEDS):
        start = model.retract(
            papers_start(model), 0.01 * np.random.default_rng(seed).normal(size=model.ndx)
        )
        run = closed_loop(model, controller, start, STEPS)
        good += (
            run.failure is None
            and np.linalg.norm(run.trajectory.states[-1, :3] - PATH.jets([STEPS * model.h])[0, 0])
            < 0.05
        )
    return good / SEEDS


def plot(outcomes: dict[str, Outcome], file: str) -> None:
    """Errors, thrusts and torques over time."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(3, 1, sharex=True, figsize=(8, 9), constrained_layout=True)
    for title, outcome in outcomes.items():
        times = outcome.times
        axes[0].semilogy(times, outcome.errors, label=title)
        axes[1].plot(times[:-1], outcome.thrusts.max(axis=1))
        axes[2].semilogy(times[:-1], np.maximum(np.abs(outcome.torques).max(axis=1), 1e-4))
    for axis, label in zip(
        axes, ("payload error (m)", "largest thrust (N)", "largest torque (N m)")
    ):
        axis.set_ylabel(label)
        axis.grid(alpha=0.3)
    axes[0].legend()
    axes[2].set_xlabel("time (s)")
    figure.savefig(file, dpi=130)


def main() -> None:
    """Print the table, and plot if a file is named."""
    model = QUADROTOR_PAYLOAD.model()
    print(
        f"{'':42}{'0.5 s':>8} {'2 s':>8} {'5 s':>9} {'rms':>8} {'T^2 s':>9} {'M^2 s':>9} "
        f"{'tension':>8} {'satur.':>8} {'nearby':>8}"
    )
    outcomes = {}
    for title, controller in controllers(model).items():
        outcomes[title] = Outcome.of(
            model, closed_loop(model, controller, papers_start(model), STEPS)
        )
        print(f"{title:42}{outcomes[title].row(model.h)} {nearby_starts(model, controller):8.1%}")
    if len(sys.argv) > 1:
        plot(outcomes, sys.argv[1])


if __name__ == "__main__":
    main()
