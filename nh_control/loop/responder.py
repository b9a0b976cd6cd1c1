"""Commands for the measured states of a plant: the tracker's side of a loop with any transport."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nh_control.control.reference_tracker import Command
from nh_control.discrete.results import StepFailed
from nh_control.loop.joining import Joining
from nh_control.loop.reference_sequence import ReferenceSequence
from nh_control.loop.reports import Refusal, Unusable
from nh_control.loop.sensed_state import SensedState
from nh_control.loop.state_estimate import StateEstimate


@dataclass(frozen=True)
class Response:
    """The `command` for the estimated state (nx) at a step, and the target state (nx) at that
    step.
    """

    state: np.ndarray
    target: np.ndarray
    command: Command


class Responder:
    """Answers measured states with the commands of a `sequence`.

    A state that is measured again gets a new answer, which does not use the memory of earlier
    steps. States of a run that cannot be joined (see `joining`) are refused. With `sensed`, the
    state is estimated from the sensors' measurements, and the measured state only determines the
    step. `note(k, response)` is called with every response, even if the run cannot be joined.
    """

    def __init__(
        self,
        sequence: ReferenceSequence,
        sensed: SensedState | None = None,
        note: Callable[[int, Response], None] = lambda k, response: None,
        joining: Joining | None = None,
    ):
        self.sequence, self._dsys, self._note = sequence, sequence.dsys, note
        self._estimate: StateEstimate | SensedState = sensed or StateEstimate(self._dsys)
        self._joining = joining or Joining(sequence)
        space = self._dsys.system.space
        self._q, self._v = [0.0] * space.nq, [0.0] * space.nw
        self._answered: tuple[int, bytes] | None = None
        self._memory: Any = None
        self._u = np.zeros(self._dsys.nu)

    def warm_up(self) -> None:
        """Compute the first commands and forget them. Otherwise the first commands of a run would
        be late, because they load and compile what they need.
        """
        tracker, u, memory = self.sequence.leg(0).tracker, self._u, None
        try:
            for k in (0, 1):
                target = tracker.target(k)
                q, v = self._dsys.configuration(target), self._dsys.velocity(target)
                x = self._estimate.state(k, q.tolist(), v.tolist(), u, target)
                command = tracker.command(k, x, memory)
                u, memory = command.u, command.memory
        except (ValueError, StepFailed):
            pass  # states of the run will be refused for the same reason, which will be logged
        self.forget()

    @property
    def approximated(self) -> int:
        """Number of states so far whose momenta are not exact (see `StateEstimate`)."""
        return self._estimate.approximated

    @property
    def last(self) -> int:
        """Step of the last answered state, or -1 if there is none."""
        return -1 if self._answered is None else self._answered[0]

    def measure(self, k: int, read: Callable[[list[float], list[float]], object]) -> bytes:
        """Read the configuration (nq) and the velocity (nw) at step k with `read(q, v)`. Before
        the call, q contains the last configuration or, at the first step, that of the target.
        Returns the numbers as bytes, because a velocity that is not measured is NaN, which does
        not equal itself.
        """
        if self._answered is None:
            self._q[:] = self._dsys.configuration(self.sequence.target(k)).tolist()
        read(self._q, self._v)
        return array("d", self._q + self._v).tobytes()

    def respond(self, k: int, measurement: bytes) -> Response | None:
        """Return the response to the measurement at step k, or None if it has already been
        answered. If the state cannot be answered, this method forgets all earlier steps and raises
        ValueError, StepFailed or, if the run cannot be joined, Unusable.
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
        # the same step again: a new run, or a corrected measurement
        if k == self.last:
            self.forget()
        # steps are missing, so the last command's prediction belongs to another step
        elif k > self.last + 1 and self._memory is not None:
            self._memory = replace(self._memory, predicted=None)
        target = self.sequence.target(k)
        x = self._estimate.state(k, self._q, self._v, self._u, target)
        obstacle = self._joining.join(k, x)
        target = self.sequence.target(k)  # joining may have changed the leg
        try:
            command = self.sequence.command(k, x, self._memory)
            response = Response(x, target, command)
            self._note(k, response)
        finally:  # if the state cannot be answered, the obstacle explains why
            if obstacle:
                raise Unusable(Refusal.JOIN, obstacle)
        self._memory, self._u = command.memory, command.u
        return response

    def forget(self) -> None:
        """Forget all earlier steps."""
        self._answered, self._memory, self._u = None, None, np.zeros(self._dsys.nu)
        self._estimate.reset()

    def restart(self) -> None:
        """Start the sequence again together with the run."""
        self.forget()
        self._joining.reset()
        self.sequence.reset()
