"""Figure 3, Proposition 4.1 and Remark 4.2 of [celledoni2016 4.2], the sleigh; and the Suslov
problem of 4.3.
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
"""C_12^1 of (22)."""
STEP_S, STEPS = 0.5, 2000
RHO_2 = -0.6
RHO_1 = (-0.001, 0.001)
EQUILIBRIA = (-2.0, -0.6, -0.1, 0.1, 0.6, 2.0)
SMALL = 1e-3


def figure_3(_: Progress) -> Outcome:
    """Run from near an unstable equilibrium to the opposite stable one."""
    dsys = INTEGRATORS["gonzalez"].make(chaplygin_sleigh_contact(SLEIGH), STEP_S)
    runs = []
    for rho in RHO_1:
        x = np.array([0.1, -5.0, 0.0, rho, RHO_2])
        runs.append(dsys.simulate(x, [0.0, 0.0], steps=STEPS).states)
    momenta = [run[:, 3:] for run in runs]
    ends = [m[-1].tolist() for m in momenta]
    radius = max(np.ptp(np.hypot(*m.T)) for m in momenta)
    deviation = max(np.hypot(m[-1, 0], m[-1, 1] + RHO_2) for m in momenta)
    defect = max(_defect(run) for run in runs)

    def draw() -> Figure:
        figure = Figure(figsize=(7.4, 3.4), layout="constrained")
        path, phase = figure.subplots(1, 2)
        path.plot(runs[1][:, 1], runs[1][:, 2], color=RUN)
        path.plot(*runs[1][0, 1:3], "o", color=TARGET, markersize=4)
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
            f"both end {deviation:.0e} from (0, 0.6); |rho| varies by {radius:.0e}",
            deviation < 1e-3 and radius < 1e-13,
        ),
        Statement(
            "4.2 (23)",
            "the discrete gradient step is (23a)-(23e)",
            f"every step satisfies them to {defect:.0e}",
            defect < 1e-13,
            "left side of (23b) is x2'; poses here move on SE(2), the momenta and theta are those "
            "of (23), positions differ by O(h^3) a step",
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
    """Return the largest residual of (23c), (23d), (23e) along a motion."""
    total, change = states[1:] + states[:-1], np.diff(states, axis=0)
    rotation = change[:, 0] - STEP_S / 2 * total[:, 3] / np.sqrt(SLEIGH.I + SLEIGH.m * SLEIGH.a**2)
    first = change[:, 3] + STEP_S / 4 * RATE * total[:, 3] * total[:, 4]
    second = change[:, 4] - STEP_S / 4 * RATE * total[:, 3] ** 2
    return float(np.abs([rotation, first, second]).max())


@dataclass(frozen=True)
class Equilibrium:
    """The equilibrium (0, rho_2) with the step h: the motion `moved` in one step, the eigenvalue
    of the linearized step along rho_1, its formula, and the growth of |rho_1| in three steps from
    a near state.
    """

    rho_2: float
    h: float
    moved: float
    eigenvalue: float
    formula: float
    grown: float


def equilibria() -> tuple[Equilibrium, ...]:
    """Return the equilibria of Proposition 4.1 with steps up to 95 % of its bound `|2 / (C_12^1
    rho_2)|`.
    """
    base = INTEGRATORS["gonzalez"].make(chaplygin_sleigh_contact(SLEIGH), STEP_S)
    out = []
    for rho in EQUILIBRIA:
        for part in (0.1, 0.5, 0.95):
            h = part * abs(2 / (RATE * rho))
            dsys, x = base.with_step(h), np.array([0.0, 0.0, 0.0, 0.0, rho])
            linear = dsys.linearize(x, [0.0, 0.0])
            near = dsys.simulate(x + [0, 0, 0, SMALL * abs(rho), 0], [0.0, 0.0], steps=3).states
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
    """Compare equilibria and their stability with Proposition 4.1."""
    results = equilibria()
    euler = {rho: _euler_growth(rho, 0.95 / abs(RATE * rho)) for rho in EQUILIBRIA}
    alike = all((0 < grown < 1) == (rho > 0) for rho, grown in euler.items())
    error = max(abs(e.eigenvalue / e.formula - 1) for e in results)
    moved = max(e.moved for e in results)
    right = all((0 < e.eigenvalue < 1 and e.grown < 1) == (e.rho_2 > 0) for e in results)

    statements = (
        Statement(
            "Prop. 4.1",
            "{rho_1 = 0} is a manifold of equilibria",
            f"steps from there move the momenta by at most {moved:.0e}",
            moved < 1e-15,
        ),
        Statement(
            "Prop. 4.1",
            "lambda_1 = (2 - h C rho_2) / (2 + h C rho_2)",
            f"exact linearization: equal to {error:.0e} at {len(results)} points, h up to 95 % of "
            "the bound",
            error < 1e-12,
        ),
        Statement(
            "Prop. 4.1",
            "below the bound on h stable for rho_2 > 0, unstable for rho_2 < 0",
            "true for all points, by eigenvalue and by the motion from a distance of 1e-3 rho_2"
            if right
            else "not so",
            right,
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
        "largest_move": moved,
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
    """Return the factor of rho_1 in one explicit Euler step of (22) near (0, rho_2)."""
    rho_1 = SMALL * abs(rho_2)
    return (rho_1 - h * RATE * rho_1 * rho_2) / rho_1


def suslov_problem(_: Progress) -> Outcome:
    """The integrator of 4.3 against the implicit midpoint rule."""
    p, h, steps = SuslovParameters(), 0.1, 2000
    system = suslov(p)
    x = np.array([1.0, 0.0, 0.0, 0.0, 0.6, -1.4])
    runs = {
        name: INTEGRATORS[name].make(system, h).simulate(x, [0.0, 0.0], steps=steps).states[:, 4:]
        for name in ("gonzalez", "mean_value", "implicit_midpoint")
    }
    rho = runs["gonzalez"]
    difference = max(float(np.abs(run - rho).max()) for run in runs.values())
    energy = (rho[:, 0] ** 2 / p.I11 + rho[:, 1] ** 2 / p.I22) / 2
    drift = float(np.abs(energy / energy[0] - 1).max())

    def draw() -> Figure:
        figure = Figure(figsize=(4.4, 3.8), layout="constrained")
        axes = figure.add_subplot(xlabel="ρ₁", ylabel="ρ₂", aspect="equal")
        axes.set_title("Suslov problem: momenta")
        rotation = np.linspace(0, 2 * np.pi, 200)
        size = np.sqrt(2 * energy[0])
        axes.plot(
            size * np.sqrt(p.I11) * np.cos(rotation),
            size * np.sqrt(p.I22) * np.sin(rotation),
            color=TARGET,
            linewidth=0.8,
            label="energy level",
        )
        span = size * np.array([-1, 1])
        axes.plot(
            span * p.I11 * -p.I23 / np.hypot(p.I13, p.I23),
            span * p.I22 * p.I13 / np.hypot(p.I13, p.I23),
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
        f"momenta equal to {difference:.0e} over {steps} steps; energy to {drift:.0e}",
        difference < 1e-12 and drift < 1e-13,
        "the paper gives no inertias: I11 = 1, I22 = 2, I33 = 1.5, I13 = 0.4, I23 = -0.3",
    )
    numbers = {"largest_difference_of_momenta": difference, "largest_relative_energy_error": drift}
    return Outcome(draw, numbers, (statement,))
