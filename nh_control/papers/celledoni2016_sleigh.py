"""Figure 3, Proposition 4.1 and Remark 4.2 on the sleigh in [celledoni2016 4.2], and the Suslov
problem in 4.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from nh_control.figures.style import RUN, SERIES, TARGET
from nh_control.integrators import INTEGRATORS
from nh_control.numerics.progress import Progress
from nh_control.papers.paper import Outcome, Statement
from nh_control.systems import (
    ChaplyginSleighParameters,
    SuslovParameters,
    chaplygin_sleigh_contact,
    suslov,
)

SLEIGH = ChaplyginSleighParameters(m=1.0, I=8.0, a=1.0)
"""J = 8, a = m = 1."""
RATE = SLEIGH.a * np.sqrt(SLEIGH.m) / (SLEIGH.I + SLEIGH.m * SLEIGH.a**2)
"""C_12^1 from (22)."""
STEP_S, STEPS = 0.5, 2000
RHO_2 = -0.6
RHO_1 = (-0.001, 0.001)
EQUILIBRIA = (-2.0, -0.6, -0.1, 0.1, 0.6, 2.0)
SMALL = 1e-3


def figure_3(_: Progress) -> Outcome:
    """Run from near an unstable equilibrium to the opposite equilibrium, which is stable."""
    dsys = INTEGRATORS["gonzalez"].make(chaplygin_sleigh_contact(SLEIGH), STEP_S)
    runs = []
    for rho in RHO_1:
        x = np.array([0.1, -5.0, 0.0, rho, RHO_2])  # (theta, x1, x2, rho_1, rho_2)
        runs.append(dsys.simulate(x, [0.0, 0.0], steps=STEPS).states)
    # The energy is (rho_1^2 + rho_2^2) / 2, so the momenta stay on a circle. They end at (0,
    # -rho_2).
    momenta = [run[:, 3:] for run in runs]
    ends = [m[-1].tolist() for m in momenta]
    radius = max(np.ptp(np.hypot(m[:, 0], m[:, 1])) for m in momenta)
    deviation = max(np.hypot(m[-1, 0], m[-1, 1] + RHO_2) for m in momenta)
    defect = max(_defect(run) for run in runs)

    def draw() -> Figure:
        figure = Figure(figsize=(7.4, 3.4), layout="constrained")
        path, phase = figure.subplots(1, 2)
        path.plot(runs[1][:, 1], runs[1][:, 2], color=RUN)
        path.plot(runs[1][0, 1], runs[1][0, 2], "o", color=TARGET, markersize=4)
        path.set(title="Sleigh: contact point", xlabel="x₁", ylabel="x₂", aspect="equal")
        path.set(xlim=(-60, 0), ylim=(-30, 10))
        for m, rho, color in zip(momenta, RHO_1, SERIES):
            phase.plot(m[:, 0], m[:, 1], ".-", color=color, markersize=3, label=f"ρ₁(0) = {rho}")
        phase.set(title="Momenta", xlabel="ρ₁", ylabel="ρ₂", aspect="equal")
        phase.legend(fontsize=7, loc="center")
        return figure

    statements = (
        Statement(
            "4.2, Fig. 3",
            "from close to the unstable equilibrium (0, -0.6) the method goes to a stable one",
            f"both end {deviation:.0e} off (0, 0.6); |rho| varies by {radius:.0e}",
            deviation < 1e-3 and radius < 1e-13,
        ),
        Statement(
            "4.2 (23)",
            "the discrete gradient step is (23a)-(23e)",
            f"every step satisfies them to {defect:.0e}",
            defect < 1e-13,
            "the left side of (23b) is x2'; here, poses move on SE(2): momenta and theta are "
            "those of (23), positions differ by O(h^3) per step",
        ),
    )
    numbers = {
        "rho_end": ends,
        "distance_from_stable_equilibrium": deviation,
        "variation_of_radius": radius,
        "residual_of_23cde": defect,
    }
    return Outcome(draw, numbers, statements)


def _defect(states: np.ndarray) -> float:
    """Return the largest residual of (23c), (23d) and (23e) along a motion."""
    # (23c) for theta, (23d) and (23e) for the momenta, with each mean written as half a sum
    total, change = states[1:] + states[:-1], np.diff(states, axis=0)
    rotation = change[:, 0] - STEP_S / 2 * total[:, 3] / np.sqrt(SLEIGH.I + SLEIGH.m * SLEIGH.a**2)
    first = change[:, 3] + STEP_S / 4 * RATE * total[:, 3] * total[:, 4]
    second = change[:, 4] - STEP_S / 4 * RATE * total[:, 3] ** 2
    return float(np.abs([rotation, first, second]).max())


@dataclass(frozen=True)
class Equilibrium:
    """The equilibrium (0, rho_2) with the step size h. `displacement` is the change in one step,
    `eigenvalue` is the eigenvalue of the linearized step along rho_1, and `formula` is its
    predicted value. `growth` is the factor by which |rho_1| grows in three steps from a nearby
    state.
    """

    rho_2: float
    h: float
    displacement: float
    eigenvalue: float
    formula: float
    growth: float


def equilibria() -> tuple[Equilibrium, ...]:
    """Return the equilibria in Proposition 4.1 for step sizes up to 95 % of the bound `|2 /
    (C_12^1 rho_2)|`.
    """
    base = INTEGRATORS["gonzalez"].make(chaplygin_sleigh_contact(SLEIGH), STEP_S)
    out = []
    for rho in EQUILIBRIA:
        for part in (0.1, 0.5, 0.95):
            h = part * abs(2 / (RATE * rho))
            dsys, x = base.with_step(h), np.array([0.0, 0.0, 0.0, 0.0, rho])
            # A[3, 3] is the derivative of the next rho_1 with respect to rho_1.
            linear = dsys.linearize(x, [0.0, 0.0])
            near = dsys.simulate(x + [0, 0, 0, SMALL * abs(rho), 0], [0.0, 0.0], steps=3).states
            # lambda_1 = (2 - z) / (2 + z) with z = h C_12^1 rho_2
            z = h * RATE * rho
            out.append(
                Equilibrium(
                    rho,
                    h,
                    float(np.abs(linear.x1[3:] - x[3:]).max()),
                    float(linear.A[3, 3]),
                    (2 - z) / (2 + z),
                    float(abs(near[-1, 3] / near[0, 3])),
                )
            )
    return tuple(out)


def proposition(_: Progress) -> Outcome:
    """Compare the equilibria and their stability with Proposition 4.1."""
    results = equilibria()
    euler = {rho: _euler_growth(rho, 0.95 / abs(RATE * rho)) for rho in EQUILIBRIA}
    alike = all((0 < growth < 1) == (rho > 0) for rho, growth in euler.items())
    error = max(abs(e.eigenvalue / e.formula - 1) for e in results)
    displacement = max(e.displacement for e in results)
    stable_as_claimed = all(
        (0 < e.eigenvalue < 1 and e.growth < 1) == (e.rho_2 > 0) for e in results
    )

    statements = (
        Statement(
            "Prop. 4.1",
            "{rho_1 = 0} is a manifold of equilibria",
            f"steps from there change the momenta by at most {displacement:.0e}",
            displacement < 1e-15,
        ),
        Statement(
            "Prop. 4.1",
            "lambda_1 = (2 - h C rho_2) / (2 + h C rho_2)",
            f"the exact linearization agrees to {error:.0e} at {len(results)} points, with h up "
            "to 95 % of the bound",
            error < 1e-12,
        ),
        Statement(
            "Prop. 4.1",
            "below the bound on h they are stable for rho_2 > 0 and unstable for rho_2 < 0",
            "true at all points, for the eigenvalue and for a motion from a distance of 1e-3 rho_2"
            if stable_as_claimed
            else "false",
            stable_as_claimed,
        ),
        Statement(
            "Remark 4.2",
            "explicit Euler behaves alike for h < |1 / (C rho_2)|",
            "at 95 % of this bound a step near the equilibrium multiplies rho_1 by "
            f"{min(euler.values()):.2f} or {max(euler.values()):.2f}",
            alike,
        ),
    )
    numbers = {
        "equilibria": [vars(e) for e in results],
        "largest_relative_error_of_eigenvalue": error,
        "largest_move": displacement,
    }
    return Outcome(partial(_draw_eigenvalues, results), numbers, statements)


def _draw_eigenvalues(results: Sequence[Equilibrium]) -> Figure:
    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axes = figure.add_subplot(
        xlabel="h C ρ₂", ylabel="λ₁", yscale="log", title="Sleigh: eigenvalue at (0, ρ₂)"
    )
    z = np.linspace(-1.93, 1.93, 300)
    axes.plot(z, (2 - z) / (2 + z), color=TARGET, linewidth=1, label="Proposition 4.1")
    axes.plot(z, np.exp(-z), ":", color=TARGET, label="continuous")
    scaled_steps = [e.h * RATE * e.rho_2 for e in results]
    axes.plot(
        scaled_steps, [e.eigenvalue for e in results], "o", color=RUN, label="linearized step"
    )
    axes.axhline(1, color=TARGET, linewidth=0.6)
    axes.legend(fontsize=8)
    return figure


def _euler_growth(rho_2: float, h: float) -> float:
    """Return the factor by which one explicit Euler step for (22) multiplies rho_1 near (0,
    rho_2).
    """
    rho_1 = SMALL * abs(rho_2)
    return (rho_1 - h * RATE * rho_1 * rho_2) / rho_1


def suslov_problem(_: Progress) -> Outcome:
    """Compare the integrator from 4.3 with the implicit midpoint rule."""
    parameters, h, steps = SuslovParameters(), 0.1, 2000
    system = suslov(parameters)
    x = np.array([1.0, 0.0, 0.0, 0.0, 0.6, -1.4])
    runs = {
        name: INTEGRATORS[name].make(system, h).simulate(x, [0.0, 0.0], steps=steps).states[:, 4:]
        for name in ("gonzalez", "mean_value", "implicit_midpoint")
    }
    rho = runs["gonzalez"]
    difference = max(float(np.abs(run - rho).max()) for run in runs.values())
    energy = (rho[:, 0] ** 2 / parameters.I11 + rho[:, 1] ** 2 / parameters.I22) / 2
    drift = float(np.abs(energy / energy[0] - 1).max())

    def draw() -> Figure:
        figure = Figure(figsize=(4.4, 3.8), layout="constrained")
        axes = figure.add_subplot(xlabel="ρ₁", ylabel="ρ₂", aspect="equal")
        axes.set_title("Suslov problem: momenta")
        rotation = np.linspace(0, 2 * np.pi, 200)
        size = np.sqrt(2 * energy[0])
        axes.plot(
            size * np.sqrt(parameters.I11) * np.cos(rotation),
            size * np.sqrt(parameters.I22) * np.sin(rotation),
            color=TARGET,
            linewidth=0.8,
            label="energy level",
        )
        # All equilibria lie on the line I13 omega_1 + I23 omega_2 = 0 through the origin.
        span = size * np.array([-1, 1])
        axes.plot(
            span * parameters.I11 * -parameters.I23 / np.hypot(parameters.I13, parameters.I23),
            span * parameters.I22 * parameters.I13 / np.hypot(parameters.I13, parameters.I23),
            ":",
            color=TARGET,
            label="equilibria",
        )
        axes.plot(rho[:, 0], rho[:, 1], ".-", color=RUN, markersize=3, label="Gonzalez")
        axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
        return figure

    statement = Statement(
        "4.3",
        "the discrete gradient method is here the implicit midpoint rule",
        f"momenta agree to {difference:.0e} over {steps} steps; the energy is constant to "
        f"{drift:.0e}",
        difference < 1e-12 and drift < 1e-13,
        "the paper gives no inertias: I11 = 1, I22 = 2, I33 = 1.5, I13 = 0.4, I23 = -0.3",
    )
    numbers = {"largest_difference_of_momenta": difference, "largest_relative_energy_error": drift}
    return Outcome(draw, numbers, (statement,))
