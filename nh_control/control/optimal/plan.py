"""The memory of model predictive control: a plan with its gains, an estimate, and counts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from nh_control.control.optimal.transcription import Transcription

KEPT = ("x", "u", "z", "pi", "s", "t", "lam", "weight")
"""Arrays of a plan."""


@dataclass(frozen=True)
class Plan:
    """The memory of an `MpcTracker` between steps: the number k of the step that it commanded
    last, and how many steps before that, its `age`, the plan was made; with states (N + 1, nx),
    inputs (N, nu) and their gains (N, nu, ndx) from there on, all empty without a plan.

    Also the arrays of the solver by name, the estimated disturbance (nrho), the state (nx) that
    is predicted for the next step, and how many commands so far came from an older plan (`late`),
    or from LQR since a solve failed (`failures`) or the plan was too old (`outdated`).
    """

    k: int
    disturbance: np.ndarray
    predicted: np.ndarray | None = None
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    gains: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    age: int = 0
    late: int = 0
    failures: int = 0
    outdated: int = 0

    @property
    def states(self) -> np.ndarray:
        """States of the plan."""
        return self.arrays.get("x", np.zeros((0, 0)))

    @property
    def inputs(self) -> np.ndarray:
        """Inputs of the plan."""
        return self.arrays.get("u", np.zeros((0, 0)))

    def lasts(self, k: int) -> bool:
        """Whether there is a plan that is not older than half its horizon at step k."""
        return 0 < self.since(k) <= len(self.inputs) // 2

    def since(self, k: int) -> int:
        """Number of steps from the plan's first node to step k."""
        return k - self.k + self.age

    def dropped(self) -> Plan:
        """The memory without its plan."""
        return replace(self, arrays={}, gains=np.zeros((0, 0, 0)), age=0)


@dataclass(frozen=True)
class Prepared:
    """The preparation of step k by an `MpcTracker`, after the `memory` and before the state
    arrives. The first `feedback` takes the `solver`, which is None where it failed.
    """

    k: int
    memory: Plan
    solver: list[Transcription]


def saturated(u: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Which inputs (nu) are as close to a limit, of `bounds` (2, nu), as the barrier lets them."""
    lower, upper = bounds
    near = 1e-3 * np.where(np.isfinite(upper - lower), upper - lower, 1.0)
    return (u <= lower + near) | (u >= upper - near)
