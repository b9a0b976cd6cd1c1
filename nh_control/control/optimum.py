"""The result of a trajectory optimization by any method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from nh_control.discrete.trajectory import Trajectory

if TYPE_CHECKING:
    from nh_control.numerics.progress import Progress


@dataclass(frozen=True)
class Iteration:
    """One iteration of an optimizer: its `number`, the `cost`, the predicted `descent` (zero at an
    optimum), and the `kind` and length of the `step` taken from there ("" and 0 at the end)."""

    number: int
    cost: float
    descent: float
    kind: str = ""
    step: float = 0.0

    def __str__(self) -> str:
        taken = f"{self.kind} step {self.step:.3g}" if self.kind else "end"
        return f"{self.number:4d}  cost {self.cost:.12g}  descent {self.descent:.2e}  {taken}"


@dataclass(frozen=True)
class KktErrors:
    """Errors of the first-order conditions: the largest error of the Lagrangian's gradient
    (`stationarity`), the sum of all gaps and violations (`violation`), and the largest product of
    a slack and its multiplier (`complementarity`).
    """

    stationarity: float
    violation: float
    complementarity: float


@dataclass(frozen=True)
class Multipliers:
    """The multipliers of a solution, with `L = J + sum_k pi_k . gap_k + nu . end - sum lam . c`:
    costates pi (N, ndx), nu (n) of the end condition, and lam (N + 1) of every inequality c >= 0
    by its name, 0 at nodes where it does not apply; `slacks` (N + 1) of the inequalities.
    """

    costates: np.ndarray
    end: np.ndarray
    inequalities: Mapping[str, np.ndarray]
    slacks: Mapping[str, np.ndarray]

    @property
    def active(self) -> dict[str, tuple[int, ...]]:
        """Nodes at which an inequality is active: its multiplier is larger than its slack."""
        nodes = {n: np.flatnonzero(m > self.slacks[n]) for n, m in self.inequalities.items()}
        return {name: tuple(map(int, active)) for name, active in nodes.items() if len(active)}


@dataclass(frozen=True)
class Optimum:
    """Outcome of an optimization: a `trajectory`, feasible if it `converged`, its `cost`, the
    `reason` of the end, and the `history` of iterations. The interior point method also gives the
    `multipliers`, the `errors` of the first-order conditions, and the values of unknown
    `parameters`, which the trajectory's `dsys` has.
    """

    trajectory: Trajectory
    cost: float
    converged: bool
    reason: str
    history: tuple[Iteration, ...]
    multipliers: Multipliers | None = None
    errors: KktErrors | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)

    @property
    def active(self) -> dict[str, tuple[int, ...]]:
        """Nodes at which each inequality is active, {} where no multipliers are known."""
        return {} if self.multipliers is None else self.multipliers.active

    def __repr__(self) -> str:
        return (
            f"Optimum(cost={self.cost:.10g}, converged={self.converged}, reason={self.reason!r}, "
            f"{len(self.history)} iterations, {self.trajectory})"
        )


Monitor: TypeAlias = Callable[[Iteration], None]
"""A function called at every iteration, such as `print` or the result of `bar`."""


def bar(progress: Progress, text: str, tolerance: float = 1e-6) -> Monitor:
    """Monitor that fills a progress bar on a logarithmic scale, from the largest descent to the
    tolerance.
    """
    done, largest = progress.steps(text, 100), tolerance

    def show(iteration: Iteration) -> None:
        nonlocal largest
        largest = max(largest, iteration.descent)
        descent = max(iteration.descent, tolerance)
        done(
            round(100 * np.log(largest / descent) / np.log(largest / tolerance))
            if largest > tolerance
            else 100
        )

    return show
