"""Remark 3.4 of [celledoni2016]: the unknowns and the cost of the methods in section 3.3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np
from matplotlib.figure import Figure

from nh_control.discrete.method import StepSymbols
from nh_control.discrete.system import DiscreteSystem
from nh_control.figures.style import SERIES, WIDTH, legend_below
from nh_control.integrators import INTEGRATORS
from nh_control.mechanics.system import System
from nh_control.numerics.progress import Progress
from nh_control.papers import measure
from nh_control.papers.paper import Outcome, Statement
from nh_control.systems import chaotic_quartic, gearbox, rolling_disk

REDUCED, FULL, BY_QR = "(14) on (9)", "Gonzalez-F (15)", "Gonzalez-R"
METHODS = {REDUCED: "gonzalez", FULL: "gonzalez_f", BY_QR: "gonzalez_r"}
SYSTEMS: dict[str, Callable[[], System]] = {
    "disk": rolling_disk,
    "gearbox": gearbox,
    "chaotic system": chaotic_quartic,
}
STEP_S, STEPS = 0.1, 100
TIMED = "disk", "gearbox"
"""Systems whose steps are timed. The chaotic system is omitted because it takes minutes to
compile.
"""


@dataclass(frozen=True)
class Cost:
    """The number of unknowns in a step, the number of operations in a Newton iteration, and the
    processor time of a step in microseconds (None if it is not measured).
    """

    unknowns: int
    operations: float
    step_us: float | None


def costs() -> dict[str, dict[str, Cost]]:
    """Return the costs by system and method."""
    out: dict[str, dict[str, Cost]] = {}
    for name, make in SYSTEMS.items():
        system = make()
        models = {k: INTEGRATORS[method].make(system, STEP_S) for k, method in METHODS.items()}
        out[name] = {
            k: Cost(
                dsys.method.nz, newton_operations(dsys), _step_us(dsys) if name in TIMED else None
            )
            for k, dsys in models.items()
        }
    return out


def newton_operations(dsys: DiscreteSystem) -> float:
    """Return the number of operations in a Newton iteration. It consists of the operations for the
    residual and the Jacobian, with common subexpressions counted once, and `2/3 n^3` for the
    linear system.
    """
    system, method = dsys.system, dsys.method
    q, _, u = system.symbols
    momenta, h = ca.SX.sym("momenta", dsys.nx - system.space.nq), ca.SX.sym("h")
    z = ca.SX.sym("z", method.nz)
    residual = method.residual(StepSymbols(q, momenta, u, z, h, system.mechanics.gradients))
    arguments = [q, momenta, u, z, h, system.parameter_symbols]
    outputs = [residual, ca.jacobian(residual, z)]
    count = ca.Function("newton", arguments, outputs, {"cse": True}).n_instructions()
    return float(count + 2 * method.nz**3 / 3)


def _step_us(dsys: DiscreteSystem) -> float:
    """Return the processor time of a step from a random admissible velocity."""
    system = dsys.system
    q, v = np.random.default_rng(2016).normal(size=(2, system.space.nv))
    # v - A^+ A v satisfies A v = 0.
    a = np.asarray(ca.DM(system.numeric.constraint_matrix(ca.SX(q))))
    x = dsys.state(q, v - np.linalg.pinv(a) @ a @ v)
    return measure.step_us(dsys, x, np.zeros((STEPS, dsys.nu)))


def cost(_: Progress) -> Outcome:
    """Compare the costs with Remark 3.4."""
    results = costs()
    numbers = {name: {k: vars(c) for k, c in by.items()} for name, by in results.items()}
    return Outcome(lambda: _draw(results), numbers, statements(results))


def statements(results: Mapping[str, Mapping[str, Cost]]) -> tuple[Statement, ...]:
    """Return the claims in Remark 3.4 together with the computed costs, given by system and
    method.
    """
    sizes = {
        name: (s.space.nv, s.nrho) for name, s in ((k, make()) for k, make in SYSTEMS.items())
    }
    unknowns = {n: [by[k].unknowns for k in (FULL, REDUCED)] for n, by in results.items()}
    # Operations per iteration, relative to (14) applied to (9).
    full, qr = (
        {n: by[k].operations / by[REDUCED].operations for n, by in results.items()}
        for k in (FULL, BY_QR)
    )
    times = "; ".join(
        f"{', '.join(f'{results[n][k].step_us:.2g}' for k in METHODS)} µs ({n})" for n in TIMED
    )
    return (
        Statement(
            "Remark 3.4",
            "(15) has 3n - m unknowns, (14) on (9) n + m",
            "; ".join(
                f"{n}, n = {sizes[n][0]}, m = {sizes[n][1]}: {a} and {b}"
                for n, (a, b) in unknowns.items()
            ),
            all(
                unknowns[name] == [3 * n - m, n + m] and results[name][BY_QR].unknowns == n + m
                for name, (n, m) in sizes.items()
            ),
            "n coordinates, n - m constraints",
        ),
        Statement(
            "Remark 3.4",
            "(14) on (9) simplifies the computational cost",
            f"a Newton iteration of (15) takes {_ratios(full)} times as many operations; steps "
            f"by {', '.join(METHODS)} take {times}",
            min(full.values()) > 1,
            "the operations decide; times are measured on this machine. (14) has fewer unknowns, "
            "but H(q, rho) and the bracket of (9) depend on q even if the mass matrix of H(q, p) "
            "is constant",
        ),
        Statement(
            "Remark 3.4",
            "the QR factorization raises the cost; deriving (9) is more efficient",
            "a Newton iteration of Gonzalez-R takes " + _ratios(qr) + " times as many operations",
            min(qr.values()) > 1,
        ),
    )


def _ratios(by_system: Mapping[str, float]) -> str:
    return ", ".join(f"{ratio:.2g} ({name})" for name, ratio in by_system.items())


def _draw(results: Mapping[str, Mapping[str, Cost]]) -> Figure:
    """Draw the unknowns, operations and times side by side."""
    figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
    titles = "unknowns", "operations of an iteration", "processor time of a step (µs)"
    for panel, field, title in zip(figure.subplots(1, 3), vars(results["disk"][REDUCED]), titles):
        names = list(TIMED if field == "step_us" else results)
        for i, (k, color) in enumerate(zip(METHODS, SERIES)):
            values = [getattr(results[name][k], field) for name in names]
            panel.bar(np.arange(len(names)) + 0.27 * (i - 1), values, 0.25, color=color, label=k)
        panel.set_xticks(range(len(names)), names, fontsize=7)
        panel.set_title(title, fontsize=9)
        if field == "operations":
            panel.set_yscale("log")
    legend_below(figure, 3)
    return figure
