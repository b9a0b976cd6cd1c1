"""Weights of hard rows that are met by an exact penalty: normalized, and raised while violated."""

from __future__ import annotations

import numpy as np

from nh_control.control.optimal.transcription import Problem, Transcription
from nh_control.discrete.trajectory import Trajectory

WEIGHTS = 3.0, 1e6
"""First and largest weight of a hard row, where the cost has the slope LARGE and the row no larger
one; larger first ones take more iterations.
"""
LARGE = 100.0
"""Slope above which rows are scaled, Waechter and Biegler (2006) 3.8."""


def normalized(cost: float, slopes: np.ndarray) -> np.ndarray:
    """Factors (n) by which weights of rows grow and shrink like their multipliers: with the slope
    of the cost, and against the `slopes` (n) of the rows. 1 where the cost has no slope.
    """
    size = cost / LARGE if cost > 0 else 1.0
    return size / np.maximum(1.0, slopes / LARGE)


def set_least_weights(native: Transcription) -> None:
    """Start with the least weights of the rows that have some."""
    weight, least = native.array("weight"), native.array("least_weight")
    weight[:] = np.where(least > 0, least, weight)


def put_on_central_path(native: Transcription, mu: float) -> None:
    """Start with the slacks s and multipliers lam of soft rows that solve `s - t = c`,
    `s lam = t (weight - lam) = mu` for the present values c.
    """
    weight, c = native.array("weight"), native.array("c")
    soft = np.isfinite(weight) & (native.array("s") > 0)
    w, c = np.broadcast_to(weight, c.shape)[soft], c[soft]
    lam = 2 * mu * w / (w * c + 2 * mu + np.hypot(w * c, 2 * mu))
    native.array("lam")[soft], native.array("s")[soft] = lam, mu / lam


def least_weights(problem: Problem, along: Trajectory, cost: float) -> np.ndarray:
    """First weights of all inequalities of a node: of hard rows by their slopes `along` a
    trajectory of the problem's length, 0 of limits of inputs and of soft rows.
    """
    first = 2 * problem.dsys.nu
    least = np.zeros(first + len(problem.rows))
    hard = ~np.isfinite([row.weight for row in problem.rows])
    if hard.any():
        inputs = np.vstack([along.inputs, along.inputs[-1:]])
        nodes = zip(along.states, inputs, problem.parameters)
        slopes = [problem.functions("row_slopes", *node)[0] for node in nodes]
        size = np.abs(np.nan_to_num(slopes)).max(axis=(0, 2))
        least[first:] = np.where(hard, WEIGHTS[0] * normalized(cost, size), 0.0)
    return least
