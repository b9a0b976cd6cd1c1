"""Commands for the measured states of a plant: the tracker's side of a loop, for any transport."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nh_control.control.tracking import Command
from nh_control.discrete.results import StepFailed
from nh_control.loop.reference_sequence import ReferenceSequence
from nh_control.loop.sensed_state import SensedState
from nh_control.loop.state_estimate import JoinCheck, StateEstimate


@dataclass(frozen=True)
class Response:
    """The `command` for the estimated state (nx) at a step, and the target state (nx) there."""

    state: np.ndarray
    target: np.ndarray
    command: Command


class Responder:
    """Answers measured states with the commands of a `sequence`.

    A state that is measured again is answered anew with the memory of the steps before forgotten;
    states of a run that cannot be joined, see `JoinCheck`, are refused. With `sensed`, the state
    is estimated from the sensors' measurements, and the measured state only gives the step.
    `note(k, response)` is called with every response, also if the run cannot be joined.
    """

    def __init__(
        self,
        sequence: ReferenceSequence,
        sensed: SensedState | None = None,
        note: Callable[[int, Response], None] = lambda k, response: None,
    ):
        self.sequence, self._dsys, self._note = sequence, sequence.dsys, note
        self._estimate: StateEstimate | SensedState = sensed or StateEstimate(self._dsys)
        self._join_check = JoinCheck(sequence)
        space = self._dsys.system.space
        self._q, self._v = [0.0] * space.nq, [0.0] * space.nw
        self._answered: tuple[int, bytes] | None = None
        self._memory: Any = None
        self._u = np.zeros(self._dsys.nu)

    @property
    def approximated(self) -> int:
        """Number of states so far whose momenta are not exact, see `StateEstimate`."""
        return self._estimate.approximated

    @property
    def last(self) -> int:
        """Step of the last answered state, -1 if there is none."""
        return -1 if self._answered is None else self._answered[0]

    def measure(self, k: int, read: Callable[[list[float], list[float]], object]) -> bytes:
        """Read configuration (nq) and velocity (nw) of step k by `read(q, v)`; on entry, q is the
        last configuration, or that of the target. Returns the numbers as bytes: NaN, where there
        is no velocity, differs from itself.
        """
        if self._answered is None:
            self._q[:] = self._dsys.configuration(self.sequence.target(k)).tolist()
        read(self._q, self._v)
        return array("d", self._q + self._v).tobytes()

    def respond(self, k: int, measurement: bytes) -> Response | None:
        """The response to the measurement of step k, None if it was answered before. Raises
        ValueError and StepFailed, and forgets all earlier steps, for a state that cannot be
        answered.
        """
        if (k, measurement) == self._answered:
            return None
        try:
            response = self._respond(k)
        except (ValueError, StepFailed):
            self.forget()
            raise
        self._answered = k, measurement
        return response

    def _respond(self, k: int) -> Response:
        if k == self.last:
            self.forget()
        elif k > self.last + 1 and self._memory is not None:
            self._memory = replace(self._memory, predicted=None)
        target = self.sequence.target(k)
        x = self._estimate.state(k, self._q, self._v, self._u, target)
        command = self.sequence.command(k, x, self._memory)
        response = Response(x, target, command)
        self._note(k, response)
        self._join_check.require(k, x)
        self._memory, self._u = command.memory, command.u
        return response

    def forget(self) -> None:
        """Forget all earlier steps."""
        self._answered, self._memory, self._u = None, None, np.zeros(self._dsys.nu)
        self._estimate.reset()

    def restart(self) -> None:
        """Start the sequence again with the run."""
        self.forget()
        self._join_check.reset()
        self.sequence.reset()
