"""Figures 2 to 4 of [kobilarov2010 6]: paths and energies of the sleigh and the snakeboard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nh_control.figures.planar import cusps, mark_cusps
from nh_control.figures.style import OPEN, RUN, SERIES, TARGET, legend_below
from nh_control.integrators import nonholonomic_midpoint
from nh_control.mechanics.system import System
from nh_control.numerics.progress import Progress
from nh_control.papers.kobilarov2010_runs import Motions, motions
from nh_control.papers.paper import Outcome, Statement
from nh_control.papers.sketch import PLAN, Sketched, sketch
from nh_control.scenarios import snakeboard_visual
from nh_control.scenarios.snakeboard import GAITS
from nh_control.systems import (
    ChaplyginSleighParameters,
    SnakeboardParameters,
    chaplygin_sleigh,
    snakeboard,
)

Points = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

SLEIGH = ChaplyginSleighParameters(m=1.0, I=1.0, a=0.5)
SLEIGH_START = np.zeros(3), np.array([0.075, -1.523, 0.0375])
SLEIGH_STEP_S, SLEIGH_STEPS = 0.2, 60
BOARD = SnakeboardParameters(m=1.0, l=0.7, I=0.1, J=0.15)
BOARD_S, BOARD_STEPS = 10.0, 128
SNAKEBOARD = Sketched(
    "Snakeboard: ψ rotor, φ wheels",
    snakeboard_visual.visual_model(BOARD),
    BOARD,
    np.array([0.9, 0.5, 0.4, 0.0, 0.0]),
    {"rotor": "ψ", "rear_truck": "φ", "front_truck": "−φ"},
    PLAN,
)
LINES: dict[str, dict[str, Any]] = {
    "GNI": {"color": RUN, "linewidth": 1.0},
    "RDP": {"color": SERIES[1], "linestyle": "--", "linewidth": 1.0},
    "RK2": {"color": OPEN, "linewidth": 1.0},
    "RK2 on (q, ρ)": {"color": SERIES[2], "linestyle": ":", "linewidth": 1.6},
}


TRUE: dict[str, Any] = {"color": TARGET, "linewidth": 2.4, "alpha": 0.35}
RIVALS = {
    "RK2": "RK2 on (q, v), multipliers eliminated; the paper does not say which",
    "RK2 on (q, ρ)": "the same rule on (q, rho), which satisfies the constraints",
}


def sleigh() -> Motions:
    """Return motions of the free sleigh. The paper gives neither parameters nor an initial
    state.
    """
    inputs = np.zeros((SLEIGH_STEPS, 2))
    system, (q, v) = chaplygin_sleigh(SLEIGH), SLEIGH_START
    return motions(system, q, v, SLEIGH_STEP_S, inputs, lambda t: np.zeros(2))


def board(parameters: SnakeboardParameters = BOARD) -> Motions:
    """Return motions of the snakeboard in Fig. 4 under the torques from `mean_torques`."""
    h = BOARD_S / BOARD_STEPS

    def torque(t: float) -> np.ndarray:
        return np.array([np.cos(20 * np.pi * t), np.sin(2 * np.pi * t)])

    inputs, (q, v) = mean_torques(BOARD_STEPS), board_start(parameters)
    return motions(any_steering(parameters), q, v, h, inputs, torque)


def mean_torques(steps: int) -> np.ndarray:
    """Return the means (steps, 2) of the torques cos(20 pi t) and sin(2 pi t) over each step."""
    # Differences of the integrals sin(20 pi t) / (20 pi) and -cos(2 pi t) / (2 pi).
    t = np.linspace(0, BOARD_S, steps + 1)
    first, second = np.sin(20 * np.pi * t) / (20 * np.pi), -np.cos(2 * np.pi * t) / (2 * np.pi)
    return np.diff([first, second], axis=1).T * steps / BOARD_S


def any_steering(parameters: SnakeboardParameters) -> System:
    """Return the snakeboard with the constraints `l cos(phi) omega + sin(phi) v_forward = 0` and
    `v_side = 0`. They are equivalent to (34), but they remain independent at phi = pi/2.
    """

    def constraint(q: ca.SX, physical: SnakeboardParameters) -> ca.SX:
        turning = ca.horzcat(0, 0, physical.l * ca.cos(q[1]), ca.sin(q[1]), 0)
        return ca.vertcat(turning, ca.horzcat(0, 0, 0, 0, 1))

    return replace(snakeboard(parameters), velocity_constraint=constraint, domain=None)


def board_start(parameters: SnakeboardParameters) -> tuple[np.ndarray, np.ndarray]:
    """Return the configuration and velocity for psi = pi/2, phi = pi/3, theta = 0, psi' = 2.5,
    phi' = -0.02 and p1 = -1, where `xi = w e(phi)` with `w = p1 / (2 m l^2 cos(phi)) - I sin(phi)
    psi' / (m l^2)`.
    """
    phi, rates, p1 = np.pi / 3, (2.5, -0.02), -1.0
    yaw = parameters.m * parameters.l**2
    w = p1 / (2 * yaw * np.cos(phi)) - parameters.I * np.sin(phi) * rates[0] / yaw
    q = np.array([np.pi / 2, phi, 0.0, 0.0, 0.0])
    return q, np.array([*rates, w * np.sin(phi), -w * parameters.l * np.cos(phi), 0.0])


def _draw_paths(axes: Axes, result: Motions, points: Points) -> None:
    axes.plot(*points(result.true_path), label="true", **TRUE)
    for name, q in result.paths.items():
        axes.plot(*points(q), label=name, **LINES[name])


def draw(
    result: Motions, title: str, points: Points, reversals: Sequence[int] | np.ndarray = ()
) -> Figure:
    """Plot the path on the left and the energy on the right. `reversals` contains the indices of
    the cusps in the accurate path. `points(q)` returns the coordinates of a path.
    """
    figure = Figure(figsize=(7.4, 3.6), layout="constrained")
    path, energy = figure.subplots(1, 2)
    fine = np.linspace(0, result.times[-1], len(result.true_energy))
    _draw_paths(path, result, points)
    mark_cusps(path, np.transpose(points(result.true_path))[np.asarray(reversals, int)])
    energy.plot(fine, result.true_energy, **TRUE)
    for name, values in result.energies.items():
        energy.plot(result.times, values, label=name, **LINES[name])
    # The accurate motion determines the ranges, so a failing method may leave the figure.
    true = np.array(points(result.true_path))
    margin = 0.15 * np.ptp(true, axis=1).max()
    path.set(title=title, xlabel="x (m)", ylabel="y (m)", aspect="equal")
    path.set(xlim=(true[0].min() - margin, true[0].max() + margin))
    path.set(ylim=(true[1].min() - margin, true[1].max() + margin))
    low, high = result.true_energy.min(), result.true_energy.max()
    margin = max(high - low, 0.1 * high)
    energy.set(title="Energy", xlabel="time (s)", ylabel="J", ylim=(low - margin, high + margin))
    legend_below(figure, 6)
    return figure


def figure_2(_: Progress) -> Outcome:
    """Compare the sleigh's paths and energies."""
    result = sleigh()
    n = result.numbers()

    # The skate is a distance a behind the center of mass.
    def skate(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return q[:, 1] - SLEIGH.a * np.cos(q[:, 0]), q[:, 2] - SLEIGH.a * np.sin(q[:, 0])

    chosen = (
        f"the paper gives no data; here m = 1, I = 1, a = 0.5, omega = {SLEIGH_START[1][0]:g}, "
        f"v = {SLEIGH_START[1][1]:g}, h = {SLEIGH_STEP_S:g}"
    )
    statements = tuple(
        Statement(
            "6.1, Fig. 2",
            f"GNI and RDP {claim} better than RK2",
            compared(n, value, rival),
            better(n, value, rival),
            note,
        )
        for claim, value, rivals in (
            ("reproduce the true path", "largest_distance", RIVALS),
            ("preserve the energy", "energy_error", RIVALS),
        )
        for rival, note in rivals.items()
    )
    statements = (replace(statements[0], corrected=f"{RIVALS['RK2']}; {chosen}"), *statements[1:])

    def picture() -> Figure:
        figure = draw(result, "Sleigh: skate", skate)
        _close_up(figure.axes[0], result, skate)
        return figure

    return Outcome(picture, n, statements)


def better(numbers: dict, value: str, rival: str) -> bool:
    """Return whether the errors of GNI and RDP are both less than a rival's error."""
    return max(numbers[k][value] for k in ("GNI", "RDP")) < numbers[rival][value]


def compared(numbers: dict, value: str, *rivals: str) -> str:
    """Return a text with one kind of error for GNI, RDP and the rivals."""
    label, unit = ("energy error", "") if value == "energy_error" else ("up to", " m off")
    texts = (f"{k} {numbers[k][value]:.2g}{unit}" for k in ("GNI", "RDP", *rivals))
    return f"{label} {', '.join(texts)}"


def _close_up(path: Axes, result: Motions, points: Points) -> None:
    """Plot the cusp in separate axes, around the point where the sleigh stands still."""
    # At this point, successive points on the path are closest to each other.
    x, y = points(result.true_path)
    k = int(np.argmin(np.hypot(np.diff(x), np.diff(y))))
    around = 0.045 * np.ptp(y)
    inset = path.inset_axes((0.42, 0.36, 0.34, 0.34), xticks=[], yticks=[], aspect="equal")
    inset.set(xlim=(x[k] - around, x[k] + around), ylim=(y[k] - around, y[k] + around))
    inset.spines[:].set_visible(True)
    _draw_paths(inset, result, points)
    path.indicate_inset_zoom(inset, edgecolor=TARGET)


def figure_4(_: Progress) -> Outcome:
    """Compare the snakeboard's motions, computed with N = 128 steps."""
    result = board()
    n = result.numbers()
    size = float(np.ptp(result.true_path[:, 3]))
    reversals = cusps(result.true_path[:, 3:], result.true_path[:, 2])
    # GNI and RDP must be 10 times closer to the accurate motion than RK2.
    good = max(n[k]["largest_distance"] for k in ("GNI", "RDP"))
    bad, reduced = n["RK2"]["largest_distance"], n["RK2 on (q, ρ)"]["largest_distance"]
    statements = (
        Statement(
            "6.2, Fig. 4",
            "N = 128: RK2 fails to follow the true path, GNI and RDP are qualitatively right",
            f"largest distance {_meters(n)}; the path is {size:.2f} m wide",
            good < 0.02 * size < 0.2 * size < bad,
            "the paper gives no parameters; here m = 1, l = 0.7, I = 0.1, and J = 0.15, with "
            f"which the wheels turn past 90 degrees and the path has {len(reversals)} cusps; the "
            "printed data give no other cusps (`--figure cusps`). The first torque is above the "
            "Nyquist rate, so steps use the mean torques",
        ),
        *(
            Statement(
                "6.2, Fig. 4",
                "one likely explanation: their better energy behaviour",
                compared(n, "energy_error", rival),
                better(n, "energy_error", rival),
                note,
            )
            for rival, note in RIVALS.items()
        ),
        Statement(
            "6.2",
            "the comparison is to a typical second order Runge-Kutta method",
            f"on (q, v), with eliminated multipliers, it is {bad:.2g} m off; the same rule on "
            f"(q, rho) only {reduced:.1e} m, as good as GNI and RDP: the coordinates are the "
            "cause",
            reduced < 2 * good,
            "the paper does not say which equations RK2 solves",
        ),
    )

    def picture() -> Figure:
        return draw(result, "Snakeboard, N = 128", lambda q: (q[:, 3], q[:, 4]), reversals)

    return Outcome(picture, {"width_of_path": size, "cusps": len(reversals), **n}, statements)


def figure_3(_: Progress) -> Outcome:
    """Draw the snakeboard and a typical path with cusps."""
    dsys = nonholonomic_midpoint(snakeboard(), 0.02)
    run = GAITS["parking"].reference(dsys)
    theta, path = run.states[:, 2], run.states[:, 3:5]
    reversals = cusps(path, theta)

    def picture() -> Figure:
        figure = Figure(figsize=(7.4, 4.0), layout="constrained")
        sketch(figure.add_subplot(121, projection="3d", computed_zorder=False), SNAKEBOARD)
        axes = figure.add_subplot(122, xlabel="x (m)", ylabel="y (m)", aspect="equal")
        axes.set_title("Snakeboard: parking sideways")
        axes.plot(*path.T, color=RUN)
        mark_cusps(axes, path[reversals])
        axes.legend(fontsize=7)
        return figure

    statement = Statement(
        "6.2, Fig. 3",
        "sinusoidal torques at the joints create parallel parking maneuvers with cusps",
        f"the scenario's parking gait: {len(reversals)} cusps",
        len(reversals) >= 3,
        "the paper does not say how its path was computed; here, torques and start are those of "
        "the scenario. The torques of Fig. 4 do not stop the board (`--figure cusps`)",
    )
    return Outcome(picture, {"cusps_at_s": (dsys.h * reversals).tolist()}, (statement,))


def _meters(numbers: dict) -> str:
    return ", ".join(
        f"{name} {numbers[name]['largest_distance']:.1g} m" for name in ("GNI", "RDP", "RK2")
    )
