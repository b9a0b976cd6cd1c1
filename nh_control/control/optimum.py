"""The result of a trajectory optimization by any method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from nh_control.discrete.trajectory import Trajectory

if TYPE_CHECKING:
    from nh_control.numerics.progress import Progress


@dataclass(frozen=True)
class Iteration:
    """One iteration of an optimizer: its `number`, the `cost`, the predicted `descent` (zero at an
    optimum), and the `kind` and length of the next `step` ("" and 0 in the last iteration).
    """

    number: int
    cost: float
    descent: float
    kind: str = ""
    step: float = 0.0

    def __str__(self) -> str:
        step = f"{self.kind} step {self.step:.3g}" if self.kind else "end"
        return f"{self.number:4d}  cost {self.cost:.12g}  descent {self.descent:.2e}  {step}"


@dataclass(frozen=True)
class KktErrors:
    """Errors of the first-order conditions: the largest component of the Lagrangian's gradient
    (`stationarity`), the sum of all gaps and violations (`violation`), and the largest product of
    a slack and its multiplier (`complementarity`).
    """

    stationarity: float
    violation: float
    complementarity: float


@dataclass(frozen=True)
class Multipliers:
    """The multipliers of a solution, with `L = J + sum_k pi_k . gap_k + nu . end - sum lam . c`.

    These are the `costates` pi (N, ndx), the multipliers nu (n) of the `end` condition, and, by
    name, the multipliers lam (N + 1) of every inequality c >= 0. At nodes without the inequality,
    lam is 0. `slacks` (N + 1) are the slacks of the inequalities.
    """

    costates: np.ndarray
    end: np.ndarray
    inequalities: Mapping[str, np.ndarray]
    slacks: Mapping[str, np.ndarray]

    @property
    def active(self) -> dict[str, tuple[int, ...]]:
        """The nodes at which an inequality is active. Its multiplier is then larger than its
        slack.
        """
        # lam > s, because lam s = mu -> 0 at the solution
        nodes = {n: np.flatnonzero(m > self.slacks[n]) for n, m in self.inequalities.items()}
        return {name: tuple(map(int, active)) for name, active in nodes.items() if len(active)}


@dataclass(frozen=True)
class Optimum:
    """The result of an optimization: a `trajectory`, which is feasible if the method `converged`,
    its `cost`, the `reason` why the method stopped, and the `history` of iterations. The interior
    point method also returns the `multipliers`, the `errors` of the first-order conditions, which
    `measure` computes, and the optimal values of unknown `parameters`, which the trajectory's
    `dsys` also has.
    """

    trajectory: Trajectory
    cost: float
    converged: bool
    reason: str
    history: tuple[Iteration, ...]
    multipliers: Multipliers | None = None
    measure: Callable[[], KktErrors | None] = field(
        default=lambda: None, repr=False, compare=False
    )
    parameters: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def errors(self) -> KktErrors | None:
        """The errors of the first-order conditions, or None if they are not known."""
        return self.measure()

    @property
    def active(self) -> dict[str, tuple[int, ...]]:
        """The nodes at which each inequality is active; {} if no multipliers are known."""
        return {} if self.multipliers is None else self.multipliers.active

    def __repr__(self) -> str:
        return (
            f"Optimum(cost={self.cost:.10g}, converged={self.converged}, reason={self.reason!r}, "
            f"{len(self.history)} iterations, {self.trajectory})"
        )


Monitor: TypeAlias = Callable[[Iteration], None]
"""A function that is called in every iteration, such as `print` or the result of `bar`."""


def bar(progress: Progress, text: str, tolerance: float = 1e-6) -> Monitor:
    """A monitor that shows a progress bar on a logarithmic scale, from the largest descent to the
    tolerance.
    """
    report, largest = progress.steps(text, 100), tolerance

    def show(iteration: Iteration) -> None:
        nonlocal largest
        largest = max(largest, iteration.descent)
        descent = max(iteration.descent, tolerance)
        report(
            # percentage on a logarithmic scale
            round(100 * np.log(largest / descent) / np.log(largest / tolerance))
            if largest > tolerance
            else 100
        )

    return show
