"""Figures 4 to 7 of [celledoni2021 5]: chains of spherical pendulums integrated with constant
steps, and the distance of the results from the manifold.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy.integrate import solve_ivp

from nh_control.figures.style import OPEN, SERIES, TARGET, positive
from nh_control.mechanics import parametric
from nh_control.numerics.progress import Progress
from nh_control.papers import measure
from nh_control.papers.celledoni2021_flow import (
    METHODS,
    ORDERS,
    Problem,
    Steps,
    Truncated,
    Untouched,
    order_figure,
)
from nh_control.papers.paper import Outcome, Statement
from nh_control.systems.pendulum_chain import pendulum_chain
from nh_control.systems.spherical_pendulum import SphericalPendulumParameters

IN_SPACE = np.array(
    [
        [np.sqrt(0.5), 0, np.sqrt(0.5), 1.0, 2.0, -1.0],
        [0, np.sqrt(0.5), np.sqrt(0.5), 1.0, 1.0, -1.0],
        [np.sqrt(0.5), 0, -np.sqrt(0.5), 1.0, -1.0, 1.0],
    ]
)
"""(q_i, w_i) of three links whose motion is not in a plane."""
ORDER_S, ORDER_STEPS = 1.0, (64, 128, 256, 512, 1024)
LONG_S, LONG_STEP_S = 5.0, 0.01
ODE45 = {"rtol": 1e-3, "atol": 1e-6}
"""MATLAB's default tolerances. SciPy's RK45 is the same pair as MATLAB's ODE45."""
CHOSEN = (
    "the paper gives no start for Figs. 5 to 7. Here masses and lengths are 1, and the motion is "
    "in space; from the start of 5.3 it stays in a plane, where q . w = 0 for any method"
)


def chain(n: int, lengths: float = 1.0, start: np.ndarray | None = None) -> Problem:
    """Return a chain of n pendulums with mass 1 and the given lengths, with z up. The default
    initial state is the one in 5.3, `(q_i, w_i) = (sqrt(2)/2, 0, sqrt(2)/2, 0, 1, 0)`.
    """
    parameters = SphericalPendulumParameters(masses=(1.0,) * n, lengths=(lengths,) * n)
    action, field = pendulum_chain(parameters)
    if start is None:
        start = np.tile([np.sqrt(0.5), 0, np.sqrt(0.5), 0, 1, 0], n)
    return Problem(f"chain{n}", action, field, parametric.values(parameters), np.ravel(start))


def figure_4(_: Progress) -> Outcome:
    """Draw three pendulums at one instant of their motion."""
    problem, times = chain(3, start=IN_SPACE), np.linspace(0, 1, 101)
    states = problem.accurate(times).reshape(-1, 3, 6)
    # The positions of the masses are sums over the links, starting at the pivot.
    masses = np.cumsum(states[:, :, :3], axis=1)
    energy = _energies(states)
    drift = float(np.abs(energy / energy[0] - 1).max())

    def draw() -> Figure:
        figure = Figure(figsize=(4.6, 4.2), layout="constrained")
        axes = figure.add_subplot(projection="3d")
        for i, color in enumerate(SERIES[:3]):
            axes.plot(*masses[:, i].T, color=color, linewidth=0.8, label=f"mass {i + 1}, 1 s")
        joints = np.vstack([np.zeros(3), masses[-1]])
        axes.plot(*joints.T, "o-", color=TARGET, markersize=4)
        axes.set(xlabel="x (m)", ylabel="y (m)", zlabel="z (m)", aspect="equal")
        axes.set_title("Chain of three pendulums")
        axes.yaxis.set_major_locator(MaxNLocator(2))
        axes.legend(fontsize=7)
        return figure

    statement = Statement(
        "5, Fig. 4",
        "L = 1/2 sum w_i^T R(q)_ij w_j - sum (sum_{j >= i} m_j) g L_i e3^T q_i",
        f"the accurate motion conserves its energy to {drift:.0e} over {times[-1]:g} s",
        drift < 1e-11,
        "z up; the equations are solved for the tensions of the links, in time linear in N",
    )
    return Outcome(draw, {"largest_relative_energy_error": drift}, (statement,))


def _energies(states: np.ndarray) -> np.ndarray:
    """Return the energies T + U (N) of chains with unit masses and lengths at states (N, n, 6)."""
    q, w = states[..., :3], states[..., 3:]
    # The velocity of a mass is the sum of w_i x q_i up to its link.
    velocity = np.cumsum(np.cross(w, q), axis=1)
    height = np.cumsum(q[..., 2], axis=1)
    return np.sum(np.sum(velocity**2, axis=2) / 2 + 9.81 * height, axis=1)


@lru_cache(maxsize=1)
def methods() -> tuple[Problem, Steps]:
    """Return the problem of two pendulums in space and its compiled steps for all methods,
    including methods with truncated dexp^{-1}, methods in R^nx, and methods without normalization
    of points.
    """
    problem = chain(2, start=IN_SPACE[:2])
    untouched, flat = problem.on(Untouched), problem.flat
    table = {name: (method, untouched) for name, method in METHODS.items()}
    # The same tableau is used with other actions: truncated dexp^-1, and translations of R^nx.
    table["RKMK4, series"] = "rkmk4", problem.on(Truncated)
    table["RKMK5"] = "rkmk54", problem
    table["RK4"] = "rkmk4", flat
    return problem, Steps("celledoni2021_two_pendulums", table)


def figure_5(_: Progress) -> Outcome:
    """Measure the orders of the methods on two pendulums."""
    problem, steps = methods()
    end = problem.accurate(np.array([0.0, ORDER_S]))[-1]
    h = ORDER_S / np.array(ORDER_STEPS)
    errors_by_method = {
        name: steps.errors(name, problem, end, ORDER_S, ORDER_STEPS)
        for name in (*METHODS, "RKMK4, series")
    }
    slopes = {name: measure.slopes(h, e) for name, e in errors_by_method.items()}
    last = {name: float(s[-1]) for name, s in slopes.items()}

    def draw() -> Figure:
        return order_figure(h, errors_by_method, f"Two pendulums, error at t = {ORDER_S:g} s")

    statement = Statement(
        "5.3, Fig. 5",
        "the schemes show the right convergence rates",
        ", ".join(f"{name} {order:.2f}" for name, order in last.items()),
        all(abs(order - ORDERS[name]) < 0.15 for name, order in last.items()),
        f"reference: DOP853 at 1e-13 for ODE45; {CHOSEN}",
    )
    numbers = {
        "h": h.tolist(),
        "error": measure.plain(errors_by_method),
        "slopes": measure.plain(slopes),
    }
    return Outcome(draw, numbers, (statement,))


@dataclass(frozen=True)
class ManifoldErrors:
    """Violations of `|q_i| = 1` and `q_i . w_i = 0` along a run, (N, 2) each, at `times` (N)."""

    times: np.ndarray
    norms: np.ndarray
    products: np.ndarray


@lru_cache(maxsize=1)
def manifold_errors() -> dict[str, ManifoldErrors]:
    """Return the violations along the motion of two pendulums for all methods."""
    problem, steps = methods()
    count = round(LONG_S / LONG_STEP_S)
    times = LONG_STEP_S * np.arange(count + 1)
    runs = {
        name: (times, steps.run(name, problem, LONG_STEP_S, count)) for name in (*METHODS, "RK4")
    }
    ode45 = solve_ivp(problem.rate, (0, LONG_S), problem.x0, "RK45", **ODE45)
    # The solver's times differ from those of the constant steps.
    runs["RK45 (ODE45)"] = ode45.t, ode45.y.T
    return {name: _manifold_errors(t, x) for name, (t, x) in runs.items()}


def _manifold_errors(times: np.ndarray, states: np.ndarray) -> ManifoldErrors:
    # (q_i, w_i) of every link
    q, w = np.split(states.reshape(len(states), -1, 6), 2, axis=2)
    return ManifoldErrors(times, 1 - np.sum(q * q, axis=2), np.sum(q * w, axis=2))


def figure_6(_: Progress) -> Outcome:
    """Compare the norms of the link directions."""
    return _manifold("norms", "|1 - q_i^T q_i|", "Fig. 6", "|q_i| = 1")


def figure_7(_: Progress) -> Outcome:
    """Check that angular velocities stay normal to the links."""
    return _manifold("products", "|q_i^T w_i|", "Fig. 7", "q_i^T w_i of the order 1e-14, 1e-15")


def _manifold(what: str, label: str, where: str, claim: str) -> Outcome:
    runs = manifold_errors()
    worst = {name: float(np.abs(getattr(run, what)).max()) for name, run in runs.items()}
    lie = max(worst[name] for name in METHODS)

    def draw() -> Figure:
        figure = Figure(figsize=(7.4, 3.4), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        for i, axes in enumerate(panels):
            for (name, run), color in zip(runs.items(), (*SERIES[:6], TARGET, OPEN)):
                values = np.abs(getattr(run, what)[:, i])
                axes.semilogy(run.times, positive(values), color=color, label=name, linewidth=1)
            axes.set(title=f"Link {i + 1}", xlabel="time (s)")
        panels[0].set_ylabel(label.replace("_i", "ᵢ").replace("^T ", "ᵀ").replace("w", "ω"))
        lines, labels = panels[0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside upper center", ncols=4, fontsize=7)
        return figure

    statement = Statement(
        f"5.3, {where}",
        f"Lie group methods keep {claim}; RK4 and ODE45 do not",
        f"largest {label}: Lie group methods {lie:.0e}, RK4 {worst['RK4']:.0e}, "
        f"RK45 {worst['RK45 (ODE45)']:.0e} (t to {LONG_S:g} s, h = {LONG_STEP_S:g} s)",
        lie < 1e-13 and min(worst["RK4"], worst["RK45 (ODE45)"]) > 1e3 * lie,
        "states as computed by the steps, without the final normalization of the integrators; "
        "default tolerances of ODE45",
    )
    return Outcome(draw, {f"largest_{what}": worst}, (statement,))
