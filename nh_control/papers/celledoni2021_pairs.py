"""The embedded pairs in [celledoni2021 4], applied to two pendulums: commutator-free pairs of
orders 3(2) and 4(3), and RKMK(5,4) for comparison.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nh_control.figures.style import SERIES
from nh_control.integrators.lie_tableaux import TABLES
from nh_control.numerics.progress import Progress
from nh_control.papers import measure
from nh_control.papers.celledoni2021_chains import MEASURED, TOLERANCE, Chain, run, step_sizes
from nh_control.papers.celledoni2021_flow import Steps
from nh_control.papers.celledoni2021_pendulums import IN_SPACE, ORDER_S, ORDER_STEPS, chain
from nh_control.papers.paper import Outcome, Statement

COMMUTATOR_FREE = {
    "CF3(2)": "cf32",
    "CF3(2), third stage": "cf32_third_stage",
    "CF4(3)": "cf43",
}
"""The paper's pairs. The second pair reuses the third stage."""
PAIRS = COMMUTATOR_FREE | {"RKMK(5,4)": "rkmk54"}
TOLERANCES = (1e-4, 1e-5, TOLERANCE, 1e-7, 1e-8)


def members() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the errors of the main and the embedded method of every commutator-free pair. The
    problem is two pendulums in space, with the constant steps from Fig. 5.
    """
    # In a plane, all rotations commute, so errors in commutator terms would not be visible.
    problem = chain(2, start=IN_SPACE[:2])
    tables = {f"main {name}": (table, problem) for name, table in COMMUTATOR_FREE.items()}
    embedded = {
        f"embedded {name}": (TABLES[table].embedded_method, problem)
        for name, table in COMMUTATOR_FREE.items()
    }
    # The main and the embedded method are compiled as separate constant-step methods.
    steps = Steps("celledoni2021_pairs", {**tables, **embedded})
    end = problem.accurate(np.array([0.0, ORDER_S]))[-1]

    def errors(name: str) -> np.ndarray:
        return steps.errors(name, problem, end, ORDER_S, ORDER_STEPS)

    return {name: (errors(f"main {name}"), errors(f"embedded {name}")) for name in COMMUTATOR_FREE}


def runs() -> dict[str, list[Chain]]:
    """Run the two pendulums in Fig. 9 with every pair, once for each tolerance."""
    return {name: [run(2, 1.0, pair, tol) for tol in TOLERANCES] for name, pair in PAIRS.items()}


def pairs(_: Progress) -> Outcome:
    """Compare the orders of both methods in each pair, and the accuracy with variable steps."""
    both, chains_by_pair = members(), runs()
    h = ORDER_S / np.array(ORDER_STEPS)
    slopes = {name: [measure.slopes(h, e)[-1] for e in two] for name, two in both.items()}
    # The slope between the two finest steps is closest to the order.
    orders = {n: (TABLES[t].order, TABLES[t].embedded_order) for n, t in COMMUTATOR_FREE.items()}
    growth = {name: _growth(chains) for name, chains in chains_by_pair.items()}
    shown_tolerance = TOLERANCES.index(TOLERANCE)
    errors = {name: chains[shown_tolerance].errors for name, chains in chains_by_pair.items()}
    largest_violation = max(
        _manifold_error(chains[shown_tolerance]) for chains in chains_by_pair.values()
    )

    statements = (
        Statement(
            "4.2.1, 4.2.2 (34)",
            "commutator-free pairs of orders 3(2), 3(2) and 4(3)",
            "; ".join(f"{name}: {a:.2f} and {b:.2f}" for name, (a, b) in slopes.items()),
            all(np.allclose(slopes[name], orders[name], atol=0.15) for name in slopes),
            "the printed coefficients are right; two pendulums in space, constant steps",
        ),
        Statement(
            "4 (33)",
            "local errors C h^(p~ + 1) stay at the tolerance",
            "the number of steps grows as tolerance^-a, a = "
            + ", ".join(f"{a:.2f} ({name})" for name, a in growth.items()),
            # C h^(p~ + 1) = tolerance makes the number of steps proportional to tolerance^(-1 /
            # (p~ + 1)).
            all(abs(a * (_embedded(name) + 1) - 1) < 0.15 for name, a in growth.items()),
            f"tolerances {TOLERANCES[0]:g} to {TOLERANCES[-1]:g}, theta = 0.9",
        ),
        Statement(
            "4.2",
            "variable steps by the commutator-free pairs",
            "; ".join(
                f"{name}: {v:.0e}, constant steps {c:.0e}" for name, (v, c) in errors.items()
            )
            + f"; distance from the manifold {largest_violation:.0e}",
            all(v < 0.5 * c for v, c in errors.values()) and largest_violation < 1e-13,
            f"the paper only shows RKMK(5,4); motion of Fig. 9; {MEASURED}",
        ),
    )
    numbers = {
        "h": h.tolist(),
        "slopes": slopes,
        "tolerances": list(TOLERANCES),
        "exponent_of_steps": growth,
        "evaluations": {
            name: [c.variable.nfev for c in chains] for name, chains in chains_by_pair.items()
        },
        "errors": {name: [c.errors for c in chains] for name, chains in chains_by_pair.items()},
    }
    return Outcome(partial(_draw_pairs, both, chains_by_pair), numbers, statements)


def _draw_pairs(
    both: dict[str, tuple[np.ndarray, np.ndarray]], chains_by_pair: dict[str, list[Chain]]
) -> Figure:
    h, shown_tolerance = ORDER_S / np.array(ORDER_STEPS), TOLERANCES.index(TOLERANCE)
    figure = Figure(figsize=(10.4, 3.6), layout="constrained")
    order, work, steps = figure.subplots(1, 3)
    curves = {f"{n}, {which}": e for n, two in both.items() for which, e in zip("ab", two)}
    measure.plot_orders(order, h, curves, (2, 3, 4))
    order.set_title(f"Error at t = {ORDER_S:g} s (a: main, b: embedded)")
    order.legend(fontsize=6)
    _work(work, chains_by_pair)
    shown = zip(chains_by_pair.items(), SERIES)
    step_sizes(steps, {name: (c[shown_tolerance].variable.t, color) for (name, c), color in shown})
    steps.set_title(f"Steps, tolerance {TOLERANCE:g}")
    return figure


def _embedded(name: str) -> int:
    return TABLES[PAIRS[name]].embedded_order


def _growth(chains: list[Chain]) -> float:
    """Return the exponent a such that the number of steps grows as tolerance^-a."""
    counts = [c.variable.naccepted for c in chains]
    # The slope of log(steps) over log(tolerance) is -a.
    return -float(np.polyfit(np.log(TOLERANCES), np.log(counts), 1)[0])


def _manifold_error(chain: Chain) -> float:
    """Return the largest violation of `|q_i| = 1` and `q_i . w_i = 0` with variable steps."""
    q, w = np.split(chain.variable.y.T.reshape(-1, 2, 6), 2, axis=2)
    return float(max(np.abs(1 - np.sum(q * q, 2)).max(), np.abs(np.sum(q * w, 2)).max()))


def _work(axes: Axes, chains_by_pair: dict[str, list[Chain]]) -> None:
    """Plot the errors against the number of field evaluations."""
    for (name, chains), color in zip(chains_by_pair.items(), SERIES):
        evaluations = [c.variable.nfev for c in chains]
        errors = [c.errors[0] for c in chains]
        axes.loglog(evaluations, errors, "o-", color=color, markersize=4, label=name)
    axes.set(xlabel="evaluations of the field", ylabel="error at t = 3 s")
    axes.set_title("Variable steps")
    axes.legend(fontsize=7)
