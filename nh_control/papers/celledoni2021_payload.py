"""Figures 13 to 18 of [celledoni2021 6]: two quadrotors that carry a payload along a parabola."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nh_control.figures.style import AXES, DASHED, RUN, SERIES, TARGET, positive
from nh_control.numerics.progress import Progress
from nh_control.papers import celledoni2021_payload_model as model
from nh_control.papers import measure
from nh_control.papers.celledoni2021_flow import METHODS, ORDERS, order_figure
from nh_control.papers.paper import Outcome, Statement

ORDER_STEPS = (250, 500, 1000, 2000, 4000)
SHOWN_S = (0.0, 0.6, 0.8, 1.0, 1.3, 2.0, 3.0, 4.0, 5.0)
CHOSEN = (
    "here z is up, while the paper's e3 is along gravity and its q_i have the opposite sign; w_i "
    "in the inertial frame; y_d = (t - 2.5, 0, 7 - (t - 2.5)^2)"
)


def figure_13(_: Progress) -> Outcome:
    """Measure the orders of the methods on the controlled system."""
    problem, steps = model.methods()
    end = problem.accurate(np.array([0.0, model.DURATION_S]))[-1]
    h = model.DURATION_S / np.array(ORDER_STEPS)
    errors_by_method = {
        name: steps.errors(name, problem, end, model.DURATION_S, ORDER_STEPS) for name in METHODS
    }
    slopes = {name: measure.slopes(h, e) for name, e in errors_by_method.items()}
    # Step sizes between the coarsest and those at which methods of order 4 reach round-off.
    middle = {name: float(s[1]) for name, s in slopes.items()}

    def draw() -> Figure:
        return order_figure(
            h,
            errors_by_method,
            f"Two quadrotors and a payload, error at t = {model.DURATION_S:g} s",
        )

    statement = Statement(
        "6.2, Fig. 13",
        "convergence rates of four RKMK methods",
        ", ".join(f"{name} {order:.2f}" for name, order in middle.items())
        + f" (h = {h[1]:g} to {h[2]:g} s)",
        all(abs(order - ORDERS[name]) < 0.1 for name, order in middle.items()),
        f"reference: DOP853 at 1e-13 for ODE45; {CHOSEN}",
    )
    numbers = {
        "h": h.tolist(),
        "error": measure.plain(errors_by_method),
        "slopes": measure.plain(slopes),
    }
    return Outcome(draw, numbers, (statement,))


def figure_14(_: Progress) -> Outcome:
    """Draw snapshots of the system."""
    motion = model.run()
    # Positions of the quadrotors, y + l_i q_i.
    quads = motion.y[:, None] + np.array(model.PARAMETERS.lengths)[:, None] * motion.q
    tensions = model.tensions(motion)
    parameters = model.PARAMETERS
    # y_d'' = -2 e_z, so at the final time both links together support m_y (g - 2).
    weight = parameters.payload_mass * (parameters.g - 2)
    share = weight / (2 * np.cos(model.FORMATION.angle))
    deviation = float(np.abs(tensions[-1] - share).max())

    def draw() -> Figure:
        figure = Figure(figsize=(8.6, 5.4), layout="constrained")
        axes = figure.add_subplot(1, 2, 1, projection="3d")
        axes.plot(*model.reference_position(motion.times).T, **DASHED, label="desired")
        axes.plot(*motion.y.T, color=RUN, label="payload")
        for time in SHOWN_S:
            k = round(time / model.STEP_S)
            ends = np.array([quads[k, 0], motion.y[k], quads[k, 1]])
            # One polyline from quadrotor 1 via the payload to quadrotor 2.
            axes.plot(*ends.T, color=TARGET, linewidth=1)
            x, y, z = ends[[0, 2]].T
            axes.scatter(x, y, z, color=SERIES[1:3], s=14, depthshade=False)
            x, y, z = motion.y[k]
            axes.text(x, y, z, f"  {time:g} s", fontsize=7)
        axes.set(xlabel="x (m)", ylabel="y (m)", zlabel="z (m)", ylim=(-1, 1), aspect="equal")
        axes.set_title("Two quadrotors carry a payload")
        axes.view_init(12, -65)
        axes.yaxis.set_major_locator(MaxNLocator(2))
        axes.legend(fontsize=7, loc="upper left")
        force = figure.add_subplot(1, 2, 2, xlabel="time (s)", ylabel="tension (N)")
        for i, color in enumerate(SERIES[1:3]):
            force.plot(motion.times, tensions[:, i], color=color, label=f"link {i + 1}")
        force.axhline(0, color=TARGET, linewidth=0.8)
        force.set(title="Tensions of the links")
        force.legend(fontsize=7)
        return figure

    statement = Statement(
        "6, Figs. 12, 14",
        "the links between the quadrotors and the payload are rigid",
        f"tensions from {tensions.min():.1f} N to {tensions.max():.1f} N: cables would stay taut; "
        f"at the end m_y (g - 2) / (2 cos 30 deg) to {deviation:.0e} N",
        tensions.min() > 0 and deviation < 1e-3,
        CHOSEN,
    )
    numbers = {"tensions_n": {"least": tensions.min(), "largest": tensions.max()}}
    return Outcome(draw, numbers, (statement,))


def figure_15(_: Progress) -> Outcome:
    """Compare the components of the payload's position with the parabola."""
    motion = model.run()
    target = model.reference_position(motion.times)

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
        f"components differ by at most {gap[motion.times >= 2].max():.2g} m from t = 2 s on, and "
        f"by {gap[motion.times >= 4].max():.1g} m from 4 s on",
        gap[motion.times >= 2].max() < 0.1 and gap[-1].max() < 1e-3,
        CHOSEN,
    )
    return Outcome(draw, {"largest_gap_from_2_s_m": float(gap[200:].max())}, (statement,))


def figure_16(_: Progress) -> Outcome:
    """Compute the deviation of the payload from its reference for the models without and with
    attitudes.
    """
    motion, whole = model.run(), model.run_with_attitudes()
    error, error_whole = (
        np.linalg.norm(m.y - model.reference_position(m.times), axis=1) for m in (motion, whole)
    )

    def draw() -> Figure:
        figure = Figure(figsize=(6.4, 3.4), layout="constrained")
        axes = figure.add_subplot(xlabel="time (s)", ylabel="|y - y_d| (m)")
        axes.semilogy(motion.times, error, color=RUN, label="thrusts in any direction")
        axes.semilogy(whole.times, error_whole, **DASHED, label="thrusts by attitudes")
        axes.set_title("Deviation of the payload")
        axes.legend(fontsize=7)
        return figure

    deviations = {t: float(error[round(t / model.STEP_S)]) for t in (0.5, model.DURATION_S)}
    last, gains = deviations[model.DURATION_S], model.GAINS
    statements = (
        Statement(
            "6.2, Fig. 16",
            "the point mass asymptotically follows the desired trajectory",
            f"the deviation falls from {deviations[0.5]:.2g} m (t = 0.5 s) to {last:.0e} m "
            f"(t = {model.DURATION_S:g} s)",
            last < 1e-4,
            f"gains k_y = 12, k_yd = 5, k_q = 16, k_w = 5; {CHOSEN}",
        ),
        Statement(
            "6.2",
            "the full dynamics can be integrated once attitude controllers are available",
            f"with k_R = {gains.k_R:g} N m, k_O = {gains.k_O:g} N m s the deviation is "
            f"{error_whole.max():.2g} m at most and {error_whole[-1]:.0e} m at the end",
            float(error_whole[-1]) < 1e-3,
            "not in the paper; RKMK4 on T R^3 x (T SO(3))^2 x (T S^2)^2, h = 1/400 s",
        ),
    )
    numbers = {"deviation_m": deviations, "deviation_with_attitudes_m": float(error_whole[-1])}
    return Outcome(draw, numbers, statements)


def figure_17(_: Progress) -> Outcome:
    """Compute the direction errors of the links."""
    motion = model.run()
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


def _direction_errors(motion: model.PayloadMotion) -> np.ndarray:
    """Return |q_id x q_i| (N, 2)."""
    return np.linalg.norm(np.cross(model.control_inputs(motion)[1], motion.q), axis=2)


def figure_18(_: Progress) -> Outcome:
    """Compare the norms of the link directions computed by a Lie group method and a classical
    method.
    """
    runs = {name: model.run(name) for name in ("RKMK4", "RK4")}
    # A point on T S^2 satisfies |q| = 1 and q . w = 0.
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
        f"{tangent['RK4']:.0e} (h = {model.STEP_S:g} s)",
        worst["RKMK4"] < 1e-13 and worst["RK4"] > 1e3 * worst["RKMK4"],
        "states as computed by the steps, without normalization",
    )
    return Outcome(draw, {"largest_defect": worst, "largest_product": tangent}, (statement,))
