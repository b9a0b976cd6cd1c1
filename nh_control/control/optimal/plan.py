"""The memory of model predictive control: a plan with its gains, a disturbance estimate, and
counters.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from nh_control.control.optimal.transcription import Transcription

PLAN_ARRAYS = ("x", "u", "z", "pi", "s", "t", "lam", "weight")
"""Arrays of the solver that a plan contains."""


@dataclass(frozen=True)
class Plan:
    """The memory of an `MpcTracker` between steps.

    k is the number of the last commanded step, and `age` is the number of steps since the plan was
    computed. The states (N + 1, nx), inputs (N, nu) and gains (N, nu, ndx) begin at the step at
    which the plan was computed; they are empty if there is no plan.

    The memory also contains the solver's arrays by name, the estimated disturbance (nrho), the
    predicted state (nx) of the next step, and counters. These are the number of commands from an
    older plan (`late`), from LQR after a failed solve (`failures`), and from LQR because the plan
    was too old (`outdated`). `blocked` is the name of the constraint that blocks the plan, or ""
    if there is none.
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
    blocked: str = ""

    @property
    def states(self) -> np.ndarray:
        """The states of the plan."""
        return self.arrays.get("x", np.zeros((0, 0)))

    @property
    def inputs(self) -> np.ndarray:
        """The inputs of the plan."""
        return self.arrays.get("u", np.zeros((0, 0)))

    def lasts(self, k: int) -> bool:
        """Whether there is a plan whose age at step k is at most half its horizon."""
        return 0 < self.since(k) <= len(self.inputs) // 2

    def since(self, k: int) -> int:
        """The number of steps from the plan's first node to step k."""
        return k - self.k + self.age

    def without_plan(self) -> Plan:
        """The memory without its plan."""
        return replace(self, arrays={}, gains=np.zeros((0, 0, 0)), age=0)


@dataclass(frozen=True)
class Prepared:
    """Step k of an `MpcTracker`, prepared from the `memory` before the state arrives. The list
    `solver` is empty if the preparation failed; otherwise, the first call of `feedback` removes
    its element.
    """

    k: int
    memory: Plan
    solver: list[Transcription]


def saturated(u: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """The mask (nu) of inputs that are as close to a limit in `bounds` (2, nu) as the barrier
    permits.
    """
    lower, upper = bounds
    # the barrier keeps a distance from the limits
    near = 1e-3 * np.where(np.isfinite(upper - lower), upper - lower, 1.0)
    return (u <= lower + near) | (u >= upper - near)
