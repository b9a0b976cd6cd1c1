"""The cusps in [kobilarov2010 Fig. 4], which do not follow from the printed data alone.

A snakeboard moves with the body velocity `w (sin phi, -l cos phi, 0)`. At a cusp, the forward
speed changes sign, so w or cos(phi) is zero. With `k = I / (m l^2)` the equations of motion are
`(w sqrt(1 - k sin^2 phi))' = -sin(phi) tau_psi / (m l^2 sqrt(1 - k sin^2 phi))` and `2 J phi'' =
tau_phi`. Under the printed torques, w is never zero. If the axles are light, cos(phi) reaches
zero, where the printed equations are singular.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure
from scipy.integrate import cumulative_trapezoid
from scipy.optimize import brentq

from nh_control.figures import planar
from nh_control.figures.style import LIMIT, RUN, SERIES, TARGET, WIDTH, handles
from nh_control.integrators import rdp
from nh_control.numerics.progress import Progress
from nh_control.papers.kobilarov2010_motions import (
    BOARD,
    BOARD_S,
    any_steering,
    board_start,
    mean_torques,
)
from nh_control.papers.paper import Outcome, Statement

STEPS = 10_000
"""Number of steps in each motion."""
AXLES = (0.05, 0.1, 0.15, 0.3, 0.6, 1.2)
"""Inertias J of an axle, in kg m^2."""
SHOWN = (0.05, 0.15, 0.3, 1.2)
INERTIAS, RATIOS = np.geomspace(AXLES[0], 100.0, 40), np.linspace(0.0, 0.9, 10)
"""Values of J and of `k = I / (m l^2)` for which the minimum speed is computed."""


@dataclass(frozen=True)
class Board:
    """A board's path (N, 2), its cusps (M, 2), and the number of times its steering angle passes
    an odd multiple of pi/2.
    """

    path: np.ndarray
    cusps: np.ndarray
    passes: int


def steering(t: np.ndarray, J: float) -> np.ndarray:
    """Return phi (N) at times t (N). It solves `2 J phi'' = sin(2 pi t)` with the initial values
    phi = pi/3 and phi' = -0.02.
    """
    # The double integral of sin(2 pi t) / (2 J) in closed form.
    rate = 1 / (4 * np.pi * J)
    return np.pi / 3 + (rate - 0.02) * t - rate * np.sin(2 * np.pi * t) / (2 * np.pi)


def boards() -> dict[float, Board]:
    """Return the boards, keyed by J."""
    base, inputs = rdp(any_steering(BOARD), BOARD_S / STEPS, "exp"), mean_torques(STEPS)
    out = {}
    for J in AXLES:
        dsys = base.with_parameters(J=J)
        # All values of J share the compiled code, because J is a parameter of the step.
        q, v = board_start(replace(BOARD, J=J))
        states = dsys.simulate(dsys.state(q, v, inputs[0]), inputs).states
        theta, path = states[:, 2], states[:, 3:5]
        out[J] = Board(path, path[planar.cusps(path, theta)], _passes(J))
    return out


def _passes(J: float) -> int:
    """Return the number of times the steering angle passes an odd multiple of pi/2."""
    return int(np.count_nonzero(np.diff(np.sign(np.cos(steering(_times(), J))))))


def _times() -> np.ndarray:
    return np.linspace(0, BOARD_S, STEPS + 1)


def heaviest() -> float:
    """Return the largest J (kg m^2) for which the steering angle reaches pi/2."""
    return float(brentq(lambda J: steering(_times(), J).max() - np.pi / 2, 0.1, 10.0))


def least_speed(J: float, k: float) -> float:
    """Return the minimum of `w sqrt(1 - k sin^2 phi)` under the printed torques, relative to its
    initial value `-(1 + 2.5 I sin(pi/3)) sqrt(1 - 3 k / 4) / (m l^2)`, among all boards with the
    given J and k. The minimum is attained at I = 0, because I only increases the initial value.
    """
    # The integral of -sin(phi) tau_psi / (m l^2 sqrt(1 - k sin^2 phi)), with tau_psi = cos(20 pi
    # t).
    t = _times()
    sine = np.sin(steering(t, J))
    slope = sine * np.cos(20 * np.pi * t) / np.sqrt(1 - k * sine**2)
    return float(1 + cumulative_trapezoid(slope, t, initial=0).min() / np.sqrt(1 - 3 * k / 4))


def cusps(_: Progress) -> Outcome:
    """Search for zeros of w and of cos(phi) with the printed data."""
    by_inertia, limit = boards(), heaviest()
    least = min(least_speed(J, k) for J in INERTIAS for k in RATIOS)
    counts = ", ".join(f"{len(board.cusps)} with J = {J:g}" for J, board in by_inertia.items())
    statements = (
        Statement(
            "6.2, Fig. 4",
            "sinusoidal torques at the joints create parallel parking maneuvers with cusp points",
            "the printed data give no cusp while |phi| < 90 degrees, for any m, l, J > "
            f"{INERTIAS[0]:g} kg m^2 and I < {RATIOS[-1]:g} m l^2: w sqrt(1 - k sin^2 phi) is "
            f"at least {int(100 * least)} % of its initial value",
            least <= 0,
            "the forward speed is -w l cos(phi), k = I / (m l^2). cos(20 pi t) on the rotor is "
            "too fast to stop the board; under sin(2 pi t) the wheels do not oscillate, but turn "
            "at 1 / (4 pi J) - 0.02 rad/s on average",
        ),
        Statement(
            "6.2",
            "phi is in S^1, so wheels may turn past 90 degrees",
            f"within {BOARD_S:g} s they do if J < {limit:.2f} kg m^2, and each pass is a cusp: "
            + counts,
            all(len(board.cusps) == board.passes for board in by_inertia.values()),
            "the paper prints no J. Its constraints (34) are dependent at 90 degrees and its "
            "e1 is zero; here they are l cos(phi) omega + sin(phi) v_forward = 0, v_side = 0",
        ),
    )
    numbers = {
        "boards": [
            {"J": J, "cusps": len(board.cusps), "passes": board.passes}
            for J, board in by_inertia.items()
        ],
        "least_relative_speed": least,
        "largest_J_with_cusps": limit,
    }
    return Outcome(lambda: _draw(by_inertia, limit), numbers, statements)


def _draw(by_inertia: dict[float, Board], limit: float) -> Figure:
    """Plot the paths of some boards, and the number of cusps against J."""
    figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for J, color in zip(SHOWN, SERIES):
        label = f"J = {J:g} kg m²"
        left.plot(*by_inertia[J].path.T, color=color, linewidth=1.0, label=label)
        planar.mark_cusps(left, by_inertia[J].cusps)
    left.set(title="Paths under the printed torques", xlabel="x (m)", ylabel="y (m)")
    left.set_aspect("equal")
    left.legend(handles=handles(left), fontsize=7)
    inertias = np.geomspace(AXLES[0] / 1.2, 2.0, 300)
    passes = [_passes(J) for J in inertias]
    right.plot(inertias, passes, color=TARGET, linewidth=1.0, label="passes of φ through 90°")
    numbers = [len(board.cusps) for board in by_inertia.values()]
    right.plot(
        list(by_inertia), numbers, "o", color=RUN, fillstyle="none", label="cusps of the path"
    )
    right.axvline(limit, color=LIMIT, linewidth=0.8, linestyle=":", label=f"J = {limit:.2f} kg m²")
    right.set(title=f"Cusps within {BOARD_S:g} s", xlabel="J (kg m²)", xscale="log")
    right.legend(fontsize=7)
    return figure
