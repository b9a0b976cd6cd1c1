"""Weights of hard rows that are imposed by an exact penalty. The weights are normalized, and they
increase while the rows are violated.
"""

from __future__ import annotations

import numpy as np

from nh_control.control.optimal.transcription import Problem, Transcription
from nh_control.discrete.trajectory import Trajectory

WEIGHTS = 3.0, 1e6
"""Initial and maximum weight of a hard row if the slope of the cost is LARGE and the slope of the
row is not larger. A larger initial weight requires more iterations.
"""
LARGE = 100.0
"""Slope above which rows are scaled (Waechter and Biegler 2006, 3.8)."""


def normalized(cost: float, slopes: np.ndarray) -> np.ndarray:
    """Factors (n) that scale the weights of rows in the same way as multipliers: in proportion to
    the slope of the cost (1 if the cost has no slope), and in inverse proportion to the `slopes`
    (n) of the rows.
    """
    size = cost / LARGE if cost > 0 else 1.0
    return size / np.maximum(1.0, slopes / LARGE)


def set_least_weights(native: Transcription) -> None:
    """Set the weight of each row that has a minimum weight to this minimum."""
    weight, least = native.array("weight"), native.array("least_weight")
    weight[:] = np.where(least > 0, least, weight)


def put_on_central_path(native: Transcription, mu: float) -> None:
    """Initialize the slacks s and the multipliers lam of soft rows with the solution of
    `s - t = c`, `s lam = t (weight - lam) = mu` for the current values c.
    """
    weight, c = native.array("weight"), native.array("c")
    soft = np.isfinite(weight) & (native.array("s") > 0)
    w, c = np.broadcast_to(weight, c.shape)[soft], c[soft]
    # root 0 < lam < w of c lam^2 - (w c + 2 mu) lam + mu w = 0, in a form without cancellation
    lam = 2 * mu * w / (w * c + 2 * mu + np.hypot(w * c, 2 * mu))
    native.array("lam")[soft], native.array("s")[soft] = lam, mu / lam


def least_weights(problem: Problem, along: Trajectory, cost: float) -> np.ndarray:
    """The initial weights of all inequalities at a node. The weights of hard rows follow from the
    slopes of these rows `along` a trajectory with the problem's number of steps. The weights of
    input limits and soft rows are 0.
    """
    first = 2 * problem.dsys.nu
    hard = ~np.isfinite(problem.row_weights)
    least = np.zeros(first + len(hard))
    if hard.any():
        inputs = np.vstack([along.inputs, along.inputs[-1:]])
        functions = problem.structure.functions
        slopes = [
            functions("row_slopes", x, u, w)[0]
            for x, u, w in zip(along.states, inputs, problem.parameters)
        ]
        # the largest slope of every row along the trajectory
        size = np.abs(np.nan_to_num(slopes)).max(axis=(0, 2))
        least[first:] = np.where(hard, WEIGHTS[0] * normalized(cost, size), 0.0)
    return least
