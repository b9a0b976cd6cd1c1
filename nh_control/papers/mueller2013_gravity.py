"""The top in [mueller2013 5.1] under gravity, as the section's title announces. The printed
results do not include gravity.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from nh_control.figures.style import AXES, RUN, WIDTH, positive
from nh_control.multibody import Point
from nh_control.numerics.progress import Progress
from nh_control.papers.mueller2013_figures import (
    CHOSEN,
    GROUNDED_CLAIM,
    ROUND_OFF,
    TURN_S,
    energy_ratio,
)
from nh_control.papers.mueller2013_runs import (
    SECOND_ORDER,
    SPACES,
    MeasuredRun,
    example,
    maximal,
    motion,
)
from nh_control.papers.paper import Outcome, Statement

NAME, JOINT = "heavy top", "box"
TOLERANCE = 1e-12
WHERE = "5.1, title"


def gravity(_: Progress) -> Outcome:
    """Compare the constraint, energy and path of the top under gravity on both spaces."""
    runs = {space: motion(NAME, space) for space in SPACES}
    second = {space: motion(NAME, space, SECOND_ORDER, duration=TURN_S) for space in SPACES}
    violation = {space: run.largest(JOINT) for space, run in runs.items()}
    drift = {space: float(np.abs(run.energy_error).max()) for space, run in runs.items()}
    distance = {space: _distance(space, run) for space, run in runs.items()}
    largest = {space: float(values.max()) for space, values in distance.items()}
    ratio = energy_ratio(second, TURN_S)
    statements = (
        Statement(
            WHERE,
            GROUNDED_CLAIM,
            _texts(violation, " m"),
            violation["SE3"] < ROUND_OFF and violation["SO3xR3"] > 1e4 * violation["SE3"],
            "the title mentions a gravity field, the printed results are without; here 9.81 m/s^2 "
            f"along -z; {CHOSEN['top']}",
        ),
        Statement(
            WHERE,
            "the energy drifts two orders of magnitude less on SE(3)",
            f"a method of second order: {ratio:.0f} times over the first turn (0.1 s); fourth "
            f"order, 3 s: largest |E/E0 - 1| {_texts(drift)}",
            ratio > 30,
            "the total energy replaces the kinetic energy, which gravity changes",
        ),
        Statement(
            WHERE,
            "reference: Euler's equations with quaternions by a Runge-Kutta method with variable "
            "steps",
            f"the center of mass is at most {_texts(largest, ' m')} from it over 3 s",
            largest["SE3"] < largest["SO3xR3"] < 1e-2,
            f"tolerances of {TOLERANCE:g}; in the paper 1e-6 and 1e-9",
        ),
    )
    numbers = {
        "largest_violation": violation,
        "largest_relative_drift": drift,
        "ratio_of_largest_drifts_of_second_order": ratio,
        "largest_distance_from_reference": largest,
    }
    return Outcome(lambda: _draw(runs, distance), numbers, statements)


def euler(times: np.ndarray) -> np.ndarray:
    """Return the positions (N, 3) of the center of mass at times (N), from Euler's equations about
    the pivot, `I omega' = (I omega) x omega + m r0 x R^T g`, `q' = q (0, omega) / 2`.
    """
    case = example(NAME)
    (body,) = case.model.bodies
    r0, weight = np.array(body.center), body.mass * np.array(case.model.gravity)
    # Parallel axis theorem: I = I_c + m (|r0|^2 1 - r0 r0^T)
    inertia = body.inertia + body.mass * (r0 @ r0 * np.eye(3) - np.outer(r0, r0))

    def rate(_: float, x: np.ndarray) -> np.ndarray:
        q, omega = x[:4], x[4:]
        torque = np.cross(r0, _rotation(q).T @ weight)
        # q' = q (0, omega) / 2, with the scalar and the vector part
        turning = np.concatenate([[-q[1:] @ omega], q[0] * omega + np.cross(q[1:], omega)]) / 2
        rate = np.linalg.solve(inertia, np.cross(inertia @ omega, omega) + torque)
        return np.concatenate([turning, rate])

    start = np.concatenate([[1.0, 0.0, 0.0, 0.0], case.v])
    options = {"rtol": TOLERANCE, "atol": TOLERANCE}
    run = solve_ivp(rate, (0, times[-1]), start, "DOP853", t_eval=times, **options)
    return np.array([_rotation(q) @ r0 for q in run.y[:4].T])


def _rotation(q: np.ndarray) -> np.ndarray:
    """Return the rotation matrix (3, 3) of a quaternion (w, x, y, z) with any norm."""
    return Rotation.from_quat(np.roll(q, -1)).as_matrix()


def _distance(space: str, run: MeasuredRun) -> np.ndarray:
    """Return the distance (N) of the center of mass from the reference."""
    model, (body,) = maximal(NAME, space), example(NAME).model.bodies
    center = Point(body.frame, tuple(body.center))
    points = np.array([model.point(q, center) for q in run.poses])
    return np.linalg.norm(points - euler(run.times), axis=1)


def _texts(values: dict[str, float], unit: str = "") -> str:
    return ", ".join(f"{SPACES[space]} {value:.0e}{unit}" for space, value in values.items())


def _draw(runs: dict[str, MeasuredRun], distance: dict[str, np.ndarray]) -> Figure:
    """Plot the constraint, the energy and the distance from the reference against time."""
    figure = Figure(figsize=(WIDTH, 3.0), layout="constrained")
    panels = figure.subplots(1, 3)
    for (space, run), color in zip(runs.items(), (RUN, AXES[0])):
        violation = np.linalg.norm(run.violation[JOINT], axis=1)
        values = (violation, np.abs(run.energy_error), distance[space])
        for panel, value in zip(panels, values):
            shown = positive(value[1:])
            panel.plot(run.times[1:], shown, color=color, linewidth=0.9, label=SPACES[space])
    titles = "Constraint: |g| (m)", "Energy: |E/E₀ − 1|", "Path: off the reference (m)"
    for panel, title in zip(panels, titles):
        panel.set(xlabel="t (s)", yscale="log")
        panel.set_title(title, fontsize=9)
    panels[0].legend(fontsize=7, loc="center right")
    return figure
