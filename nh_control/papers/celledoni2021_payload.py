"""Figures 13 to 18 of [celledoni2021 6]: two quadrotors that carry a payload along a parabola."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import casadi as ca
import numpy as np
from matplotlib.figure import Figure

from nh_control.control.geometric import GeometricGains, quadrotor_inputs, wanted_thrusts
from nh_control.control.paths import ORDER
from nh_control.figures.style import AXES, DASHED, RUN, SERIES, TARGET, positive
from nh_control.geometry.homogeneous import ProductAction, TangentDirections, Translations
from nh_control.mechanics import parametric
from nh_control.numerics.compiled import Functions
from nh_control.numerics.progress import Progress
from nh_control.papers import measure
from nh_control.papers.celledoni2021_flow import (
    METHODS,
    ORDERS,
    Problem,
    Steps,
    Untouched,
    plot_orders,
)
from nh_control.papers.paper import Outcome, Statement
from nh_control.systems.quadrotor_payload import Formation, QuadrotorPayloadParameters
from nh_control.systems.quadrotor_payload_field import (
    accelerations,
    quadrotor_payload_field,
    split,
)

PARAMETERS, GAINS = QuadrotorPayloadParameters(), GeometricGains()
FORMATION = Formation(np.pi / 6, azimuth=-np.pi / 2)
"""r_i = (+-sin 30 deg, 0, cos 30 deg), s_d = (0, -1, 0)."""
DURATION_S, STEP_S = 5.0, 0.01
ORDER_STEPS = (250, 500, 1000, 2000, 4000)
SHOWN_S = (0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
TILT = np.radians(80)
LINKS = np.array([[-np.sin(TILT), 0, np.cos(TILT)], [np.sin(TILT), 0, np.cos(TILT)]])
START_Y = np.array([-2.0, 0.0, 0.0])
CHOSEN = (
    "z up here, the paper's e3 is along gravity, its q_i are ours turned around; w_i in the "
    "inertial frame; y_d = (t - 2.5, 0, 7 - (t - 2.5)^2)"
)


class Motion(NamedTuple):
    """Along a run: times (N), payload positions y (N, 3), link directions q (N, 2, 3) and angular
    velocities w (N, 2, 3).
    """

    times: np.ndarray
    y: np.ndarray
    q: np.ndarray
    w: np.ndarray


def wanted(t: np.ndarray) -> np.ndarray:
    """y_d (N, 3) at times (N)."""
    return np.stack([t - 2.5, 0 * t, 7 - (t - 2.5) ** 2], axis=-1)


def _jet(t: ca.SX) -> ca.SX:
    """y_d and its derivatives (21)."""
    y = [ca.vertcat(t - 2.5, 0, 7 - (t - 2.5) ** 2)]
    for _ in range(ORDER):
        y.append(ca.jacobian(y[-1], t))
    return ca.densify(ca.vertcat(*y))


def without_attitudes() -> Problem:
    """The paper's simplified model, thrusts in any direction: x = (y, v, q_1, w_1, q_2, w_2, t)
    under R^6 x SE(3)^2 x R, with the geometric controller and time as a state.
    """
    action = ProductAction(
        Translations(*(f"payload_{c}" for c in ("x", "y", "z", "v_x", "v_y", "v_z"))),
        TangentDirections(),
        TangentDirections(),
        Translations("time"),
    )
    x = ca.SX.sym("x", action.nx)
    y, v, q, w, t = x[:3], x[3:6], [x[6:9], x[12:15]], [x[9:12], x[15:18]], x[18]
    thrusts = wanted_thrusts(PARAMETERS, FORMATION, GAINS, _jet(t), (y, v, q, w)).forces
    v_dot, w_dots = accelerations(PARAMETERS, q, w, [thrusts[:, 0], thrusts[:, 1]])
    turned = [part for a in zip(w, map(ca.cross, q, w_dots)) for part in a]
    x0 = np.concatenate([START_Y, np.zeros(3), np.ravel(np.hstack([LINKS, 0 * LINKS])), [0.0]])
    return _problem("payload_thrusts", action, x, ca.vertcat(v, v_dot, *turned, 1), x0)


def with_attitudes() -> Problem:
    """The whole model on T R^3 x (T SO(3))^2 x (T S^2)^2, x as in `quadrotor_payload_field` and
    time: thrusts along the bodies' z, attitudes controlled by moments.
    """
    system, field = quadrotor_payload_field(PARAMETERS)
    action = ProductAction(*system.factors, Translations("time"))
    x = ca.SX.sym("x", action.nx)
    s, t = split(x, 2), x[-1]
    thrusts = wanted_thrusts(PARAMETERS, FORMATION, GAINS, _jet(t), (s.y, s.v, s.links, s.spins))
    u = quadrotor_inputs(PARAMETERS, GAINS, thrusts, s.attitudes, s.omegas)
    f = ca.vertcat(field(x[:-1], u, parametric.values(PARAMETERS)), 1)
    upright = np.tile([1.0, 0, 0, 0, 0, 0, 0], 2)
    x0 = np.concatenate(
        [START_Y, np.zeros(3), upright, np.ravel(np.hstack([LINKS, 0 * LINKS])), [0.0]]
    )
    return _problem("payload_attitudes", action, x, f, x0)


def _problem(name: str, action: ProductAction, x: ca.SX, f: ca.SX, x0: np.ndarray) -> Problem:
    at, names = [x, ca.SX.sym("u", 0), ca.SX.sym("p", 0)], ["x", "u", "p"]
    field = ca.Function("field", at, [ca.densify(f)], names, ["f"], {"cse": True})
    return Problem(name, action, field, np.zeros(0), x0)


@lru_cache(maxsize=1)
def methods() -> tuple[Problem, Steps]:
    """The simplified model and its steps by all methods, which leave points as they are."""
    problem = without_attitudes()
    untouched = problem.on(Untouched)
    table = {name: (method, untouched) for name, method in METHODS.items()}
    table |= {"RKMK5": ("rkmk54", untouched), "RK4": ("rkmk4", problem.flat)}
    return problem, Steps("celledoni2021_payload", table)


@lru_cache(maxsize=2)
def run(method: str = "RKMK4") -> Motion:
    """The simplified model from rest to the parabola."""
    problem, steps = methods()
    states = steps.run(method, problem, STEP_S, round(DURATION_S / STEP_S))
    pairs = states[:, 6:18].reshape(-1, 2, 6)
    return Motion(states[:, 18], states[:, :3], pairs[..., :3], pairs[..., 3:])


def figure_13(_: Progress) -> Outcome:
    """Orders on the controlled system."""
    problem, steps = methods()
    end = problem.accurate(np.array([0.0, DURATION_S]))[-1]
    h = DURATION_S / np.array(ORDER_STEPS)
    names = ("Lie-Euler", "Lie-Euler-Heun", "RKMK3", "RKMK4", "RKMK4, two commutators", "CF4")
    found = {
        name: np.array(
            [
                np.linalg.norm(steps.run(name, problem, DURATION_S / n, n)[-1] - end)
                for n in ORDER_STEPS
            ]
        )
        for name in names
    }
    slopes = {name: measure.slopes(h, e) for name, e in found.items()}
    middle = {name: float(s[1]) for name, s in slopes.items()}

    def draw() -> Figure:
        figure = Figure(figsize=(5.2, 4.0), layout="constrained")
        axes = figure.add_subplot()
        plot_orders(axes, h, found, (1, 2, 3, 4))
        axes.legend(fontsize=7)
        axes.set_title(f"Two quadrotors and a payload, error at t = {DURATION_S:g} s")
        return figure

    statement = Statement(
        "6.2, Fig. 13",
        "convergence rates of four RKMK methods",
        ", ".join(f"{name} {order:.2f}" for name, order in middle.items())
        + f" (h = {h[1]:g} to {h[2]:g} s)",
        all(abs(order - ORDERS[name]) < 0.1 for name, order in middle.items()),
        f"reference: DOP853 at 1e-13 for ODE45; {CHOSEN}",
    )
    numbers = {"h": h.tolist(), "error": measure.plain(found), "slopes": measure.plain(slopes)}
    return Outcome(draw, numbers, (statement,))


def figure_14(_: Progress) -> Outcome:
    """Snapshots."""
    motion = run()
    quads = motion.y[:, None] + np.array(PARAMETERS.lengths)[:, None] * motion.q
    lengths = np.linalg.norm(quads - motion.y[:, None], axis=2)
    defect = float(np.abs(lengths - PARAMETERS.lengths).max())

    def draw() -> Figure:
        figure = Figure(figsize=(6.4, 5.4), layout="constrained")
        axes = figure.add_subplot(projection="3d")
        axes.plot(*wanted(motion.times).T, **DASHED, label="desired")
        axes.plot(*motion.y.T, color=RUN, label="payload")
        for time in SHOWN_S:
            k = round(time / STEP_S)
            ends = np.array([quads[k, 0], motion.y[k], quads[k, 1]])
            axes.plot(*ends.T, color=TARGET, linewidth=1)
            axes.scatter(*ends[[0, 2]].T, color=SERIES[1:3], s=14, depthshade=False)
            axes.text(*motion.y[k], f"  {time:g} s", fontsize=7)
        axes.set(xlabel="x (m)", ylabel="y (m)", zlabel="z (m)", aspect="equal")
        axes.set_title("Two quadrotors carry a payload")
        axes.view_init(12, -65)
        axes.legend(fontsize=7)
        return figure

    statement = Statement(
        "6.2, Figs. 12, 14",
        "quadrotors at the ends of rigid links, L = (0.6, 0.8)",
        f"lengths are kept to {defect:.0e} m",
        defect < 1e-12,
        CHOSEN,
    )
    return Outcome(draw, {"largest_change_of_length_m": defect}, (statement,))


def figure_15(_: Progress) -> Outcome:
    """Components of the payload's position."""
    motion = run()
    target = wanted(motion.times)

    def draw() -> Figure:
        figure = Figure(figsize=(7.4, 4.6), layout="constrained")
        for i, axes in enumerate(figure.subplots(3, 1, sharex=True)):
            axes.plot(motion.times, motion.y[:, i], color=RUN, label="payload")
            axes.plot(motion.times, target[:, i], color=AXES[0], label="desired", linewidth=1)
            axes.set_ylabel(f"{'xyz'[i]} (m)")
            if i == 0:
                axes.set_title("Position of the payload")
                axes.legend(fontsize=7)
        axes.set_xlabel("time (s)")
        return figure

    gap = np.abs(motion.y - target)
    statement = Statement(
        "6.2, Fig. 15",
        "the load position follows the desired parabola",
        f"components are within {gap[motion.times >= 2].max():.2g} m from t = 2 s on, and "
        f"{gap[motion.times >= 4].max():.1g} m from 4 s on",
        gap[motion.times >= 2].max() < 0.1 and gap[-1].max() < 1e-3,
        CHOSEN,
    )
    return Outcome(draw, {"largest_gap_from_2_s_m": float(gap[200:].max())}, (statement,))


def figure_16(_: Progress) -> Outcome:
    """Deviation of the payload, also with attitudes."""
    motion, whole = run(), _whole()
    error, error_whole = (np.linalg.norm(m.y - wanted(m.times), axis=1) for m in (motion, whole))

    def draw() -> Figure:
        figure = Figure(figsize=(6.4, 3.4), layout="constrained")
        axes = figure.add_subplot(xlabel="time (s)", ylabel="|y - y_d| (m)")
        axes.semilogy(motion.times, error, color=RUN, label="thrusts in any direction")
        axes.semilogy(whole.times, error_whole, **DASHED, label="thrusts by attitudes")
        axes.set_title("Deviation of the payload")
        axes.legend(fontsize=7)
        return figure

    at = {t: float(error[round(t / STEP_S)]) for t in (0.5, DURATION_S)}
    statements = (
        Statement(
            "6.2, Fig. 16",
            "the point mass asymptotically follows the desired trajectory",
            f"the deviation falls from {at[0.5]:.2g} m (t = 0.5 s) to {at[DURATION_S]:.0e} m "
            f"(t = {DURATION_S:g} s)",
            at[DURATION_S] < 1e-4,
            f"gains k_y = 12, k_yd = 5, k_q = 16, k_w = 5; {CHOSEN}",
        ),
        Statement(
            "6.2",
            "the full dynamics can be integrated once attitude controllers are available",
            f"with k_R = {GAINS.k_R:g} N m, k_O = {GAINS.k_O:g} N m s the deviation is "
            f"{error_whole.max():.2g} m at most and {error_whole[-1]:.0e} m at the end",
            float(error_whole[-1]) < 1e-3,
            "not in the paper; RKMK4 on T R^3 x (T SO(3))^2 x (T S^2)^2, h = 1/400 s",
        ),
    )
    numbers = {"deviation_m": at, "deviation_with_attitudes_m": float(error_whole[-1])}
    return Outcome(draw, numbers, statements)


@lru_cache(maxsize=1)
def _whole(h: float = 0.0025) -> Motion:
    """The whole model by RKMK4."""
    problem = with_attitudes()
    steps = Steps("celledoni2021_payload_attitudes", {"RKMK4": ("rkmk4", problem)})
    states = steps.run("RKMK4", problem, h, round(DURATION_S / h))
    pairs = states[:, 20:32].reshape(-1, 2, 6)
    return Motion(states[:, 32], states[:, :3], pairs[..., :3], pairs[..., 3:])


def figure_17(_: Progress) -> Outcome:
    """Direction errors of the links."""
    motion = run()
    error = _direction_errors(motion)

    def draw() -> Figure:
        figure = Figure(figsize=(6.4, 3.4), layout="constrained")
        axes = figure.add_subplot(xlabel="time (s)", ylabel="|q_d × q|")
        for i, color in enumerate(SERIES[:2]):
            axes.semilogy(motion.times, positive(error[:, i]), color=color, label=f"link {i + 1}")
        axes.set_title("Direction errors of the links")
        axes.legend(fontsize=7)
        return figure

    statement = Statement(
        "6.2, Fig. 17",
        "the directions q_i converge to the desired ones",
        f"|q_id x q_i| falls from {error[0].max():.2g} to {error[-1].max():.0e}",
        error[-1].max() < 1e-3,
    )
    return Outcome(draw, {"last_direction_errors": error[-1].tolist()}, (statement,))


def _direction_errors(motion: Motion) -> np.ndarray:
    """|q_id x q_i| (N, 2)."""
    problem, steps = methods()
    x = ca.SX.sym("x", len(problem.x0))
    parts = x[:3], x[3:6], [x[6:9], x[12:15]], [x[9:12], x[15:18]]
    links = wanted_thrusts(PARAMETERS, FORMATION, GAINS, _jet(x[18]), parts).links
    compiled = Functions("celledoni2021_links", [ca.Function("links", [x], [links])])
    states = steps.run("RKMK4", problem, STEP_S, len(motion.times) - 1)
    desired = np.array([compiled("links", state)[0].T for state in states])
    return np.linalg.norm(np.cross(desired, motion.q), axis=2)


def figure_18(_: Progress) -> Outcome:
    """Norms of the links' directions."""
    runs = {name: run(name) for name in ("RKMK4", "RK4")}
    defect = {name: np.abs(1 - np.sum(m.q**2, axis=2)) for name, m in runs.items()}
    product = {name: np.abs(np.sum(m.q * m.w, axis=2)) for name, m in runs.items()}
    worst = {name: float(d.max()) for name, d in defect.items()}
    tangent = {name: float(d.max()) for name, d in product.items()}

    def draw() -> Figure:
        figure = Figure(figsize=(7.4, 3.2), layout="constrained")
        norm, normal = figure.subplots(1, 2)
        for axes, values in ((norm, defect), (normal, product)):
            for (name, d), style in zip(values.items(), ("-", ":")):
                for i, color in enumerate(SERIES[:2]):
                    label = f"{name}, link {i + 1}"
                    axes.semilogy(
                        runs[name].times, positive(d[:, i]), style, color=color, label=label
                    )
            axes.set_xlabel("time (s)")
        norm.set_title("|1 - qᵀq|")
        normal.set_title("|qᵀω|")
        norm.legend(fontsize=7)
        return figure

    statement = Statement(
        "6.2, Fig. 18",
        "the norms of q_1, q_2 are preserved",
        f"RKMK4: {worst['RKMK4']:.0e}, q . w {tangent['RKMK4']:.0e}; RK4: {worst['RK4']:.0e}, "
        f"{tangent['RK4']:.0e} (h = {STEP_S:g} s)",
        worst["RKMK4"] < 1e-13 and worst["RK4"] > 1e3 * worst["RKMK4"],
        "states as the steps give them, without normalization",
    )
    return Outcome(draw, {"largest_defect": worst, "largest_product": tangent}, (statement,))
