"""Figure 2 of [celledoni2016 4.1]: five integrators on a fully chaotic nonholonomic system."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nh_control.discrete.system import DiscreteSystem
from nh_control.figures.style import SERIES, TARGET, positive
from nh_control.integrators import INTEGRATORS
from nh_control.integrators.lobatto import REACTIONS, spark
from nh_control.numerics.progress import Progress
from nh_control.papers import measure
from nh_control.papers.paper import Outcome, Statement
from nh_control.studies.comparison import Reference
from nh_control.studies.motion import InitialValueProblem
from nh_control.systems import chaotic_quartic
from nh_control.systems.chaotic_quartic import random_start

METHODS = {
    "SI-DLA": "si_dla",
    "I-DLA": "nonholonomic_midpoint",
    "SPARK": "spark_2",
    "AVF": "mean_value",
    "Gonzalez": "gonzalez",
}
"""The paper's names for the methods, and their names in the registry."""
VARIATIONAL, PRESERVING = tuple(METHODS)[:3], tuple(METHODS)[3:]
STEP_S, ENERGY = 0.1, 3.06
ORDER_S, ORDER_STEPS = 10.0, (250, 500, 1000, 2000, 4000)
SAMPLE_STEPS = 10_000
STARTS, WALK_STEPS, LONG_WALK_STEPS = 200, 10_000, 1_000_000
"""The paper gives the number of initial states but not the duration. Here the duration is t =
1000, or t = 10^5 in the long run.
"""
LINE = 1e-4
SEED = 2016
ASSUMED = "SPARK with assumed coefficients"


@dataclass(frozen=True)
class Chaos:
    """Data for the four panels. `errors` belong to the step sizes `steps` (s). `constraint` is the
    left side of (20) and `energy` the relative energy error, both at `times` along one motion.
    `variance` is the variance of the energy error at `walk_times`, divided by h^4. `spark`
    contains the order and the largest energy error for each choice of SPARK's reaction
    coefficients.
    """

    steps: np.ndarray
    errors: dict[str, np.ndarray]
    times: np.ndarray
    constraint: dict[str, np.ndarray]
    energy: dict[str, np.ndarray]
    walk_times: np.ndarray
    variance: dict[str, np.ndarray]
    spark: dict[str, tuple[float, float]]

    def growth(self, name: str) -> float:
        """Return the least-squares slope of the variance over h^4 against time."""
        return float(np.polyfit(self.walk_times, self.variance[name], 1)[0])

    def numbers(self) -> dict:
        """Return the data shown in the panels."""
        slopes = {k: measure.slopes(self.steps, e) for k, e in self.errors.items()}
        return {
            "order": {
                "h": self.steps.tolist(),
                "error": measure.plain(self.errors),
                "slopes": measure.plain(slopes),
            },
            "largest_constraint": {k: float(np.abs(c).max()) for k, c in self.constraint.items()},
            "largest_relative_energy_error": {k: float(e.max()) for k, e in self.energy.items()},
            "variance_over_h4": {
                "t": self.walk_times[::20].tolist(),
                **measure.plain({k: v[::20] for k, v in self.variance.items()}),
            },
            "growth_of_variance_over_h4_per_s": {k: self.growth(k) for k in self.variance},
            "spark": {
                k: {"order": order, "largest_relative_energy_error": error}
                for k, (order, error) in self.spark.items()
            },
        }

    def statements(self) -> tuple[Statement, ...]:
        """Return the paper's claims about the figure together with the computed results."""
        n = self.numbers()
        orders = [n["order"]["slopes"][k][-1] for k in METHODS]
        constraint = max(n["largest_constraint"].values())
        energy = n["largest_relative_energy_error"]
        preserved = max(energy[k] for k in PRESERVING)
        drifting = min(energy[k] for k in VARIATIONAL)
        # A short run is too noisy to fit a slope, so the claim stays undecided.
        growth = [self.growth(k) for k in VARIATIONAL]
        long = self.walk_times[-1] > STEP_S * (WALK_STEPS - 1)
        rest = max(self.variance["Gonzalez"])
        return (
            Statement(
                "4.1, Fig. 2",
                "all five methods are of second order",
                "orders " + ", ".join(f"{o:.2f}" for o in orders),
                all(abs(o - 2) < 0.05 for o in orders),
                f"constraint x' + sum w_i z_i'; in (21) y_i means w_i; {ASSUMED}",
            ),
            Statement(
                "4.1, Fig. 2",
                "all respect the constraint up to machine precision",
                f"largest |x' + sum w_i z_i'| {constraint:.0e}, to t = {self.times[-1]:g}",
                constraint < 1e-13,
                "measured where each method enforces it: A(q1) v1 for SI-DLA, the mean of "
                "A(Q_i) V_i of the two stages for SPARK, A(q_mid) (q1 - q0) / h for the others; "
                + ASSUMED,
            ),
            Statement(
                "4.1, Fig. 2",
                "only the discrete gradient methods conserve the energy up to machine precision",
                f"largest relative error {preserved:.0e}, of the other methods at least "
                f"{drifting:.0e}",
                preserved < 2e-13 and drifting > 1e-4,
                ASSUMED,
            ),
            Statement(
                "4.1, Fig. 2",
                "variance of SI-DLA's energy error over 200 starts 1e-4 h^4 t; I-DLA, SPARK alike",
                f"grows by {', '.join(f'{g:.1e}' for g in growth)} h^4 per unit of time, to t = "
                f"{self.walk_times[-1]:g}",
                all(0.3 * LINE < g < 3 * LINE for g in growth) if long else None,
                "the variance also has an offset of about 0.1 h^4, so only the slope is compared; "
                + ASSUMED,
            ),
            Statement(
                "4.1, Fig. 2",
                "Gonzalez: zero variance up to machine precision",
                f"largest variance over h^4 {rest:.0e}",
                rest < 1e-18,
            ),
            self._spark(),
        )

    def _spark(self) -> Statement:
        """Return the statement about the coefficients assumed for SPARK."""
        orders = ", ".join(f"{order:.2f}" for order, _ in self.spark.values())
        errors = ", ".join(f"{error:.0e}" for _, error in self.spark.values())
        return Statement(
            "4.1.3",
            "SPARK is the 2-stage Lobatto IIIA-B-C-C*-D method of Jay (2003)",
            f"assumed: velocities by IIIA, forces by IIIB. Reactions by {', '.join(self.spark)}: "
            f"orders {orders}, largest energy errors {errors}",
            all(abs(order - 2) < 0.05 for order, _ in self.spark.values()),
            "the paper prints neither the coefficients nor their assignment to the terms; the "
            f"figure shows reactions by {REACTIONS[0]}",
        )

    def draw(self) -> Figure:
        """Draw the four panels. The constraint panel has one row for each method."""
        figure = Figure(figsize=(7.4, 6.6), layout="constrained")
        grid = figure.add_gridspec(2, 2)
        order, energy, variance = (
            figure.add_subplot(grid[cell]) for cell in ((0, 0), (1, 0), (1, 1))
        )
        measure.plot_order(order, self.steps, self.errors)
        order.set_title("Order, t = 10")
        # The round-off of different methods would overlap in one panel, so each method has a row.
        rows: Any = grid[0, 1].subgridspec(len(METHODS), 1).subplots(sharex=True, sharey=True)
        for row, (name, slip) in zip(rows, self.constraint.items()):
            _plot(row, self.times, {name: 1e15 * slip})
            row.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=7)
            row.tick_params(axis="y", labelsize=6)
        rows[0].set_title("Constraint (20): (x' + Σ wᵢ zᵢ') · 10¹⁵")
        rows[-1].set_xlabel("time")
        _plot(energy, self.times, {k: positive(e) for k, e in self.energy.items()})
        energy.set(title="Relative energy error", xlabel="time", yscale="log")
        _plot(variance, self.walk_times, {k: positive(v) for k, v in self.variance.items()})
        t = self.walk_times[1:]
        variance.plot(t, LINE * t, ":", color=TARGET, label="1e-4 t")
        variance.set(title="Variance of the energy error / h⁴", xlabel="time")
        variance.set(xscale="log", yscale="log")
        variance.legend(fontsize=7)
        return figure


def _plot(axes: Axes, times: np.ndarray, values: dict[str, np.ndarray]) -> None:
    for name, value in values.items():
        color = SERIES[list(METHODS).index(name)]
        axes.plot(times, value, label=name, color=color, linewidth=0.9)


def compare(
    order_steps: tuple[int, ...] = ORDER_STEPS,
    sample_steps: int = SAMPLE_STEPS,
    starts: int = STARTS,
    walk_steps: int = WALK_STEPS,
) -> Chaos:
    """Compute all four panels. The initial states are random, with energy 3.06 and a fixed seed.
    The order, the constraint and the energy are measured along the motion from the first initial
    state.
    """
    system, rng = chaotic_quartic(), np.random.default_rng(SEED)
    phases = [random_start(rng, ENERGY) for _ in range(starts)]
    models = {k: INTEGRATORS[name].make(system, STEP_S) for k, name in METHODS.items()}
    q, v = phases[0]
    reference = Reference(InitialValueProblem(system, q, v, ORDER_S))
    h = ORDER_S / np.array(order_steps)
    orders = {
        k: measure.errors(reference, [model.with_step(step) for step in h])
        for k, model in models.items()
    }
    # About 500 states of the motion and 200 of each walk are stored.
    every, walk_every = max(1, sample_steps // 500), max(1, walk_steps // 200)
    states = {
        k: m.simulate(m.state(q, v), steps=sample_steps, every=every).states
        for k, m in models.items()
    }
    # The paper's figure does not show the variance for AVF.
    walked = [k for k in METHODS if k != "AVF"]
    return Chaos(
        steps=h,
        errors=orders,
        times=STEP_S * every * np.arange(len(states["AVF"])),
        constraint={k: np.array([_slip(models[k], x) for x in s]) for k, s in states.items()},
        energy={k: measure.relative_energy_error(models[k], s) for k, s in states.items()},
        walk_times=STEP_S * walk_every * np.arange(walk_steps // walk_every + 1),
        variance={k: _variance(models[k], phases, walk_steps, walk_every) for k in walked},
        spark={r: _spark_accuracy(r, reference, h, sample_steps, every) for r in REACTIONS},
    )


def _slip(dsys: DiscreteSystem, x: np.ndarray) -> float:
    """Return the left side of (20) in the form that the method enforces in the step from x: A(q1)
    v1 at the new state for SI-DLA, the mean of A(Q_i) V_i over both stages for SPARK, and A(q_mid)
    (q1 - q0) / h for the other methods.
    """
    x1 = dsys.step(x)
    q, q1 = dsys.configuration(x), dsys.configuration(x1)
    if dsys.method.name == "si_dla":
        return _side(q1, dsys.unknowns(x)[: len(q)])
    if dsys.method.name == "spark_2":
        first, second = dsys.unknowns(x)[: 2 * len(q)].reshape(2, -1)
        return (_side(q, first) + _side(q1, second)) / 2
    return float(dsys.constraint_residual(x, x1)[0] / dsys.h)


def _side(q: np.ndarray, v: np.ndarray) -> float:
    """Return the left side of (20), A(q) v."""
    n = len(q) // 2
    return float(v[0] + q[1 : n + 1] @ v[n + 1 :])


def _spark_accuracy(
    reactions: str, reference: Reference, h: np.ndarray, steps: int, every: int
) -> tuple[float, float]:
    """Return the order and the largest relative energy error of SPARK with the given reaction
    coefficients.
    """
    motion = reference.motion
    dsys = spark(motion.system, STEP_S, reactions=reactions)
    errors = measure.errors(reference, [dsys.with_step(step) for step in h[-2:]])
    states = dsys.simulate(dsys.state(motion.q, motion.v), steps=steps, every=every).states
    energy = measure.relative_energy_error(dsys, states)
    return float(measure.slopes(h[-2:], errors)[0]), float(energy.max())


def _variance(
    dsys: DiscreteSystem, phases: list[tuple[np.ndarray, np.ndarray]], steps: int, every: int
) -> np.ndarray:
    """Return the variance of H(t) - H(0) over the initial states, divided by h^4."""

    def run(phase: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        q, v = phase
        states = dsys.simulate(dsys.state(q, v), steps=steps, every=every).states
        return _energies(states)

    with ThreadPoolExecutor(2) as pool:  # native runs release the interpreter lock
        energies = np.array(list(pool.map(run, phases)))
    return np.var(energies - energies[:, :1], axis=0) / dsys.h**4


def _energies(states: np.ndarray) -> np.ndarray:
    """Return the energies of states (N, 4 n + 1) in closed form: 1/2 rho^T (g^ab) rho + V from
    (19) and (21).
    """
    n = (states.shape[1] - 1) // 4
    q, rho = states[:, : 2 * n + 1], states[:, 2 * n + 1 :]
    w, z, eta = q[:, 1 : n + 1], q[:, n + 1 :], rho[:, n:]
    # (g^ab) = I - w w^T / (1 + |w|^2) on the momenta eta along z, by the Sherman-Morrison formula
    bent = np.sum(w * eta, 1) ** 2 / (1 + np.sum(w * w, 1))
    potential = np.sum(q * q, 1) + (z[:, 0] * z[:, 1]) ** 2 + np.sum((w * z) ** 2, 1)
    return (np.sum(rho * rho, 1) - bent + potential) / 2


def figure_2(_: Progress) -> Outcome:
    """Compute Fig. 2 at the paper's size."""
    return _outcome(compare())


def long_figure_2(_: Progress) -> Outcome:
    """Compute Fig. 2 with variances up to t = 10^5, which takes more than half an hour."""
    return _outcome(compare(walk_steps=LONG_WALK_STEPS))


def short_figure_2(_: Progress) -> Outcome:
    """Compute Fig. 2 with too few steps to decide how the variances grow."""
    return _outcome(compare(ORDER_STEPS[:2], sample_steps=200, starts=3, walk_steps=100))


def _outcome(result: Chaos) -> Outcome:
    return Outcome(result.draw, result.numbers(), result.statements())
