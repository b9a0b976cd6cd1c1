"""Whether a tracker that comes late can join the reference that goes on."""

from __future__ import annotations

import numpy as np

from nh_control.control.reference_sequence import ReferenceSequence
from nh_control.discrete.results import StepFailed

REPEAT_S = 1.0
"""How long a tracker that cannot join waits until it asks again."""


class JoinCheck:
    """Lets a tracker follow a run from its start; one that comes later, from the first state from
    which the model, tracked, reaches the reference's end. That is asked every REPEAT_S.
    """

    def __init__(self, sequence: ReferenceSequence):
        self._sequence = sequence
        self.reset()

    def reset(self) -> None:
        """Another run begins."""
        self._joined, self._ask_at, self._obstacle = False, 0, ""

    def require(self, k: int, x: np.ndarray) -> None:
        """Raise ValueError if the reference cannot be followed from the state x (nx) at step k."""
        if not self._joined and k >= self._ask_at:
            self._ask_at = k + round(REPEAT_S / self._sequence.dsys.h)
            self._obstacle = obstacle(self._sequence, k, x) if k else ""
            self._joined = not self._obstacle
        if not self._joined:
            raise ValueError(
                f"the reference cannot be joined at step {k}: {self._obstacle}; set another "
                f"`reference`, or reset the run"
            )


def obstacle(sequence: ReferenceSequence, k: int, x: np.ndarray) -> str:
    """What keeps the model from the present leg's end when it is tracked from the state x (nx) at
    step k on, "" if nothing does.
    """
    leg, i = sequence.leg(k), k
    try:
        for i in range(k, leg.end):
            x = sequence.dsys.step(x, leg.tracker.command(i - leg.start, x).u)
    except (StepFailed, ValueError, np.linalg.LinAlgError) as reason:
        return f"tracked from there, the model fails at t = {i * sequence.dsys.h:.3f} s, {reason}"
    return ""
