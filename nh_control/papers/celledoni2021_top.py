"""Figures 2 and 3 of [celledoni2021 3.4]: the heavy top integrated by symplectic methods. In
addition, Lie group methods are applied to the free rigid body in Example 1 and to three
formulations of the top.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from transforms3d.quaternions import quat2mat

from nh_control.discrete.system import DiscreteSystem
from nh_control.figures.style import AXES, RUN, SERIES, TARGET, positive
from nh_control.integrators import INTEGRATORS
from nh_control.mechanics import parametric
from nh_control.numerics.progress import Progress
from nh_control.papers import measure
from nh_control.papers.celledoni2021_flow import METHODS, ORDERS, Problem, Steps
from nh_control.papers.paper import Outcome, Statement
from nh_control.systems.kaluza_klein_top import kaluza_klein_top, momentum_of_y
from nh_control.systems.rigid_body import (
    HeavyTopParameters,
    RigidBodyParameters,
    heavy_top,
)
from nh_control.systems.rigid_body_fields import (
    heavy_top_coadjoint,
    heavy_top_cotangent,
    heavy_top_quadratic,
    rigid_body_momentum,
)

TOP = HeavyTopParameters()
UPRIGHT, UP = np.array([1.0, 0.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
RATE = np.array([0.0, 150.0, -4.61538])
MOMENTUM = RATE * [TOP.Jx, TOP.Jy, TOP.Jz]
SHOWN_STEP_S, SHOWN_S = 0.002, 1.0
LONG_STEP_S, LONG_STEPS = 0.01, 6000
ORDER_S, ORDER_STEPS = 0.1, (160, 320, 640, 1280, 2560)
FREE = RigidBodyParameters()
FREE_STEP_S, FREE_STEPS = 0.2, 20_000
GRAVITY = (
    "gravity is down, V = M g l (Q chi)_z: the printed Gamma0 = (0, 0, -9.81) does not point up"
)


def symplectic(h: float) -> dict[str, tuple[DiscreteSystem, np.ndarray]]:
    """Return the symplectic methods in Fig. 2, each with its initial state."""
    top, larger = heavy_top(TOP), kaluza_klein_top(TOP)
    on_top = {
        f"SLGI, θ = {theta}": INTEGRATORS[name].make(top, h)
        for theta, name in (("0", "slgi_0"), ("1/2", "slgi_half"), ("1", "slgi_1"))
    }
    out = {name: (dsys, dsys.state(UPRIGHT, RATE)) for name, dsys in on_top.items()}
    kk = INTEGRATORS["slgi_half"].make(larger, h)
    # The top as a geodesic motion on SO(3) x R^3 (3.4.3). The initial velocity of y is p - e3.
    v = np.concatenate([RATE, momentum_of_y(TOP) - UP])
    out["SLGIKK, θ = 1/2"] = kk, kk.state(np.concatenate([UPRIGHT, np.zeros(3)]), v)
    return out


@lru_cache(maxsize=1)
def formulations() -> dict[str, Problem]:
    """Return the top on T*SO(3), on se(3)* and on T*(SO(3) x R^3)."""
    numbers = parametric.values(TOP)
    start = np.concatenate([UPRIGHT, MOMENTUM])
    # States: (Q, pi), (pi, Gamma) and (Q, pi, p, y).
    x0 = {
        "cotangent": start,
        "coadjoint": np.concatenate([MOMENTUM, UP]),
        "quadratic": np.concatenate([start, momentum_of_y(TOP), np.zeros(3)]),
    }
    fields = {
        "cotangent": heavy_top_cotangent(TOP),
        "coadjoint": heavy_top_coadjoint(TOP),
        "quadratic": heavy_top_quadratic(TOP),
    }
    return {
        name: Problem(f"top_{name}", action, field, numbers, x0[name])
        for name, (action, field) in fields.items()
    }


def _gamma(q: np.ndarray) -> np.ndarray:
    """Return Q^T e3 (N, 3) for unit quaternions (N, 4)."""
    return np.array([quat2mat(each)[2] for each in q])


def _axis(q: np.ndarray) -> np.ndarray:
    """Return Q chi (N, 3)."""
    return np.array([quat2mat(each) @ TOP.chi for each in q])


def figure_2(_: Progress) -> Outcome:
    """Plot the top's motion over one second, and the orders of the methods."""
    models, count = symplectic(SHOWN_STEP_S), round(SHOWN_S / SHOWN_STEP_S)
    runs = {name: d.simulate(x, (), steps=count).states for name, (d, x) in models.items()}
    # Both methods compute the same motion because the momentum of y is conserved.
    half, larger = runs["SLGI, θ = 1/2"], runs["SLGIKK, θ = 1/2"]
    difference = float(np.abs(half[:, :4] - larger[:, :4]).max())
    errors_by_method = _symplectic_errors(models)
    h = ORDER_S / np.array(ORDER_STEPS)
    slopes = {name: measure.slopes(h, error) for name, error in errors_by_method.items()}
    last = {name: float(s[-1]) for name, s in slopes.items()}

    def draw() -> Figure:
        figure = Figure(figsize=(9.6, 3.4), layout="constrained")
        space = figure.add_subplot(1, 3, 1, projection="3d")
        space.plot(*(TOP.M * TOP.l * TOP.g * _gamma(half[:, :4])).T, color=RUN, linewidth=0.8)
        _label(space)
        axis, order = figure.add_subplot(1, 3, 2), figure.add_subplot(1, 3, 3)
        times = SHOWN_STEP_S * np.arange(count + 1)
        for i, color in enumerate(AXES):
            axis.plot(times, _axis(half[:, :4])[:, i], color=color, label="xyz"[i])
            axis.plot(times, _axis(larger[:, :4])[:, i], ":", color=TARGET)
        axis.set(title="Q χ, θ = 1/2 (dotted: KK)", xlabel="time (s)")
        axis.legend(fontsize=7)
        measure.plot_orders(order, h, errors_by_method, (1, 2))
        order.legend(fontsize=7)
        order.set_title(f"Error at t = {ORDER_S:g} s")
        return figure

    statements = (
        Statement(
            "3.4.4, Fig. 2",
            "the methods with theta = 1/2 attain order 2 (15)-(17)",
            ", ".join(f"{name} {order:.2f}" for name, order in last.items()),
            all(abs(last[name] - (2 if "1/2" in name else 1)) < 0.1 for name in last),
            f"f2 with the transport of the momentum, pi x omega; {GRAVITY}",
        ),
        Statement(
            "3.4.3, 3.4.4",
            "SLGIKK is theta = 1/2 on (29)-(32), with quadratic Hamiltonian",
            f"its attitudes agree with those of SLGI, theta = 1/2, to {difference:.0e} over "
            f"{count} steps",
            difference < 1e-11,
            "p is conserved exactly, so both methods coincide for one step size",
        ),
    )
    numbers = {
        "slopes": measure.plain(slopes),
        "error": measure.plain(errors_by_method),
        "h": h.tolist(),
        "slgi_and_slgikk_apart": difference,
    }
    return Outcome(draw, numbers, statements)


def _label(space: Any) -> None:
    space.set(xlabel="x", ylabel="y", zlabel="z", title="M g l QᵀΓ₀ (N m)")
    space.locator_params(nbins=4)
    space.set_box_aspect(None, zoom=0.8)


def _symplectic_errors(
    models: dict[str, tuple[DiscreteSystem, np.ndarray]],
) -> dict[str, np.ndarray]:
    """Return the errors in the final rotation matrix, one for each step size."""
    end = formulations()["cotangent"].accurate(np.array([0.0, ORDER_S]))[-1]
    # Compare rotation matrices, because a quaternion and its negative are the same attitude.
    right, out = quat2mat(end[:4]), {}
    for name, (dsys, x) in models.items():
        last = [measure.last(dsys.with_step(ORDER_S / n), x, n)[:4] for n in ORDER_STEPS]
        out[name] = np.array([np.linalg.norm(quat2mat(q) - right) for q in last])
    return out


def figure_3(_: Progress) -> Outcome:
    """Run 6000 steps with theta = 0 and theta = 1/2."""
    models = symplectic(LONG_STEP_S)
    chosen = {name: models[name] for name in ("SLGI, θ = 0", "SLGI, θ = 1/2")}
    runs, energy = {}, {}
    for name, (dsys, x) in chosen.items():
        runs[name] = dsys.simulate(x, (), steps=LONG_STEPS).states
        values = np.array([dsys.energy(each) for each in runs[name]])
        energy[name] = values - values[0]
    worst = {name: float(np.abs(e).max()) for name, e in energy.items()}
    size = formulations()["cotangent"]
    # T = omega . pi / 2
    kinetic = float(RATE @ size.x0[4:] / 2)
    # A bounded error has similar maxima in the first and the last quarter.
    quarters = [np.abs(e[1:]).reshape(4, -1).max(axis=1) for e in energy.values()]
    growth = max(float(q[-1] / q[0]) for q in quarters)

    def draw() -> Figure:
        figure = Figure(figsize=(8.0, 6.0), layout="constrained")
        grid = figure.add_gridspec(2, 2, height_ratios=(1, 2))
        times = LONG_STEP_S * np.arange(LONG_STEPS + 1)
        for i, ((name, e), color) in enumerate(zip(energy.items(), SERIES)):
            axes = figure.add_subplot(grid[0, i])
            axes.plot(times, e, ".", color=color, markersize=0.7)
            axes.set(title=name, xlabel="time (s)", ylabel="energy error (J)")
            space = figure.add_subplot(grid[1, i], projection="3d")
            # The direction of gravity in the body frame, times M g l, as in the paper's figure.
            curve = TOP.M * TOP.l * TOP.g * _gamma(runs[name][:, :4])
            space.plot(*curve.T, ".", color=color, markersize=0.7)
            _label(space)
        return figure

    statement = Statement(
        "3.4.4, Fig. 3",
        "energy error of theta = 1/2 and theta = 0 over 6000 steps of 0.01",
        f"{worst['SLGI, θ = 1/2']:.2g} J and {worst['SLGI, θ = 0']:.2g} J of {kinetic:.0f} J. The "
        f"error of the last quarter is at most {growth:.2f} times that of the first: bounded",
        growth < 1.5 and worst["SLGI, θ = 1/2"] < 0.05 * worst["SLGI, θ = 0"],
        GRAVITY,
    )
    return Outcome(draw, {"largest_energy_error": worst, "growth": growth}, (statement,))


def heavy_top_orders(_: Progress) -> Outcome:
    """Compare the three formulations, integrated by explicit Lie group methods."""
    problems = formulations()
    table = {f"{m}, {space}": (METHODS[m], problems[space]) for space in problems for m in METHODS}
    steps = Steps("celledoni2021_tops", table)
    ends = {
        space: problem.accurate(np.array([0.0, ORDER_S]))[-1]
        for space, problem in problems.items()
    }
    # Gamma = Q^T e3 is the only quantity that all three formulations contain.
    gammas = [_gamma(ends[space][None, :4])[0] for space in ("cotangent", "quadratic")]
    difference = float(np.abs(np.array(gammas) - ends["coadjoint"][3:]).max())
    h, slopes, errors_by_method = ORDER_S / np.array(ORDER_STEPS), {}, {}
    for name, (_m, problem) in table.items():
        end = ends[name.rsplit(", ", 1)[-1]]
        errors_by_method[name] = steps.errors(name, problem, end, ORDER_S, ORDER_STEPS)
        slopes[name] = measure.slopes(h, errors_by_method[name])
    order_error = max(abs(s[-1] - ORDERS[name.rsplit(", ", 1)[0]]) for name, s in slopes.items())
    casimirs = _casimirs(steps, problems["coadjoint"])

    def draw() -> Figure:
        figure = Figure(figsize=(9.6, 3.6), layout="constrained")
        panels = figure.subplots(1, 3, sharey=True)
        for axes, space in zip(panels, problems):
            shown = {m: errors_by_method[f"{m}, {space}"] for m in METHODS}
            measure.plot_orders(axes, h, shown, (1, 2, 3, 4))
            axes.set_title(f"{space}, t = {ORDER_S:g} s")
            axes.label_outer()
        lines, labels = panels[0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside upper center", ncols=6, fontsize=7)
        return figure

    statements = (
        Statement(
            "3.4",
            "three formulations: on T*SO(3), Lie-Poisson on se(3)*, on T*(SO(3) x R^3)",
            f"Gamma of their accurate motions agrees to {difference:.0e}; the orders of "
            f"{len(table)} combinations with explicit methods differ from the theoretical ones by "
            f"at most {order_error:.2f}",
            difference < 1e-10 and order_error < 0.15,
            f"{GRAVITY}; f2 = M g l Gamma0 x Q chi + pi x omega",
        ),
        Statement(
            "3.4.2",
            "methods with the coadjoint action preserve the coadjoint orbits of se(3)*",
            f"the relative change of |Gamma|^2 and Pi . Gamma is at most {casimirs['RKMK4']:.0e} "
            f"over {LONG_STEPS} steps of 1e-3 s, with RK4 {casimirs['RK4']:.0e}",
            casimirs["RKMK4"] < 1e-12 and casimirs["RK4"] > 1e3 * casimirs["RKMK4"],
        ),
    )
    numbers = {
        "h": h.tolist(),
        "error": measure.plain(errors_by_method),
        "slopes": measure.plain(slopes),
        "relative_change_of_casimirs": casimirs,
    }
    return Outcome(draw, numbers, statements)


def _casimirs(steps: Steps, problem: Problem) -> dict[str, float]:
    """Return the largest relative changes in Gamma . Gamma and Pi . Gamma."""
    # For comparison, RK4 in R^6 leaves the coadjoint orbit.
    flat = Steps("celledoni2021_flat_top", {"RK4": ("rkmk4", problem.flat)})
    runs = {
        "RKMK4": steps.run("RKMK4, coadjoint", problem, 1e-3, LONG_STEPS),
        "RK4": flat.run("RK4", problem, 1e-3, LONG_STEPS),
    }
    out = {}
    for name, x in runs.items():
        gamma = x[:, 3:]
        change = np.abs(np.sum(gamma**2, axis=1) - 1)
        product = np.sum(x[:, :3] * gamma, axis=1)
        size = np.linalg.norm(MOMENTUM)
        out[name] = float(max(change.max(), np.abs(product - product[0]).max() / size))
    return out


def rigid_body(_: Progress) -> Outcome:
    """Solve Euler's equations on so(3)* (Example 1)."""
    action, field = rigid_body_momentum(FREE)
    mu = np.array([1.0, 1.5, -0.8])
    problem = Problem("free_rigid_body", action, field, parametric.values(FREE), mu)
    steps = Steps(
        "celledoni2021_rigid_body",
        {name: (METHODS[name], problem) for name in METHODS} | {"RK4": ("rkmk4", problem.flat)},
    )
    runs = {name: steps.run(name, problem, FREE_STEP_S, FREE_STEPS) for name in (*METHODS, "RK4")}
    orbit = {
        name: np.abs(np.linalg.norm(x, axis=1) / np.linalg.norm(mu) - 1)
        for name, x in runs.items()
    }
    worst = {name: float(o.max()) for name, o in orbit.items()}
    lie = max(worst[name] for name in METHODS)
    inertia = np.array([FREE.Jx, FREE.Jy, FREE.Jz])
    # mu' = mu x I^-1 mu
    defect = float(np.abs(problem.rate(0.0, mu) - np.cross(mu, mu / inertia)).max())

    def draw() -> Figure:
        figure = Figure(figsize=(8.0, 3.6), layout="constrained")
        momenta, axes = figure.subplots(1, 2)
        times = FREE_STEP_S * np.arange(FREE_STEPS + 1)
        for i, color in enumerate(AXES):
            momenta.plot(times[:150], runs["RKMK4"][:150, i], color=color, label=f"μ{'₁₂₃'[i]}")
        momenta.set(title="Momentum of a free rigid body (N m s)", xlabel="time (s)")
        momenta.legend(fontsize=7)
        for (name, o), color in zip(orbit.items(), (*SERIES[:6], TARGET)):
            axes.semilogy(times, positive(o), color=color, label=name, linewidth=0.8)
        axes.set(title="Distance from the coadjoint orbit", xlabel="time (s)")
        axes.set_ylabel("| |μ| / |μ₀| - 1 |")
        axes.legend(fontsize=7, loc="center right")
        return figure

    statements = (
        Statement(
            "Ex. 1",
            "mu' = -ad*_{f(mu)} mu with f(mu) = I^{-1} mu is Euler's equation",
            f"f(mu) = -I^{{-1}} mu gives mu' = mu x I^{{-1}} mu to {defect:.0e}",
            defect < 1e-15,
            "ad*_w mu = mu x w: with the printed signs the body would move backwards in time",
        ),
        Statement(
            "2.1, 3.3",
            "Lie group integrators by the coadjoint action preserve its orbits, |mu| here",
            f"to {lie:.0e} over {FREE_STEPS} steps of {FREE_STEP_S:g} s by six methods; RK4 "
            f"{worst['RK4']:.0e}",
            lie < 1e-12 and worst["RK4"] > 1e6 * lie,
        ),
    )
    return Outcome(draw, {"largest_relative_change_of_norm": worst}, statements)
