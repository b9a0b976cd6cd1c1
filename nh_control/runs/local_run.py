"""The nodes' loop in one process. Function calls pass states and commands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nh_control.control.controller import ControllerFailed
from nh_control.control.trackers import Tracker
from nh_control.discrete.plant_steps import convert
from nh_control.discrete.results import StepFailed
from nh_control.discrete.trajectory import Trajectory
from nh_control.loop.clocks import Pacer, StepClock
from nh_control.loop.command_validator import CommandNames, CommandValidator
from nh_control.loop.reference_sequence import ReferenceSequence
from nh_control.loop.responder import Responder
from nh_control.loop.sensed_state import SensedState
from nh_control.loop.simulated_plant import SimulatedPlant
from nh_control.loop.simulation_loop import Mode, Options, SimulationLoop
from nh_control.loop.wire_format import MessageStates
from nh_control.runs.simulation import ClosedLoop


class LocalRun:
    """A run of a plant and a tracker in lock-step in one process. It is both the inbox and the
    output of a `SimulationLoop`, and it answers every published state immediately. Commands are
    therefore bitwise identical to those in a run over topics.

    States pass through the codecs of `messages`, if the scenario has messages. With `sensed`, the
    tracker receives the measurements of the plant's sensors instead. Without `feedback`, the
    commands are the reference's inputs, followed by zero forces after the reference has ended.
    `watch(k)` is called before step k; the run ends if it returns True.
    """

    def __init__(
        self,
        plant: SimulatedPlant,
        tracker: Tracker,
        steps: int,
        messages: MessageStates | None = None,
        sensed: SensedState | None = None,
        feedback: bool = True,
        watch: Callable[[int], bool] = lambda k: False,
    ):
        self._plant, self._tracker, self._steps = plant, tracker, steps
        self._messages, self._sensed, self._feedback = messages, sensed, feedback
        self._watch, self.closed = watch, False
        self._model = model = tracker.dsys
        self._responder = Responder(ReferenceSequence(tracker), sensed)
        self._u, self._saturated = model.idle(tracker.target(0)), np.zeros(model.nu, dtype=bool)
        self._nodes: list[tuple[np.ndarray, ...]] = []
        self._rows: list[tuple[np.ndarray, ...]] = []
        limits = plant.command_limits
        self._clock = StepClock(model.h)
        self._loop = SimulationLoop(
            plant,
            CommandValidator(
                CommandNames(model.inputs),
                # without feedback, the reference's inputs act even beyond the limits
                limits if feedback else np.full_like(limits, np.inf) * [-1, 1],
                self._clock,
            ),
            Pacer(model.h, speed_factor=0.0),
            Options(lockstep=feedback, wait_for_tracker=True, last_step=steps),
            inbox=self,
            output=self,
        )

    def run(self) -> ClosedLoop:
        """Return the result of the run. Raises ValueError and ArithmeticError for numbers that are
        not finite.
        """
        failure: Exception | None
        try:
            self._loop.run()
            failure = self._loop.failure
        except ControllerFailed as of_controller:
            failure = of_controller
        model, plant = self._model, self._plant.dsys
        # a failed step or controller only ends the run early; other errors are raised
        if failure is not None and not isinstance(failure, StepFailed | ControllerFailed):
            raise failure
        states, errors, plant_states = map(np.array, zip(*self._nodes))
        steps, motors = len(self._rows), self._plant.actuators.size
        inputs, commands, saturated, before, forces, outputs = (
            # reshape: a run without steps has arrays of shape (0, n)
            np.array([row[i] for row in self._rows]).reshape(steps, n)
            for i, n in enumerate((model.nu, model.nu, model.nu, plant.nx, model.nu, motors))
        )
        name = self._tracker.reference.name
        return ClosedLoop(
            Trajectory(model.h, states, inputs, model.state_names, model.inputs, name, model),
            errors,
            saturated,
            plant.energies(plant_states),
            plant.constraint_residuals(before, plant_states[1:]),
            None if failure is None else failure.at_step(len(inputs)),
            commands if self._plant.faults.are_present else None,
            outputs if motors else None,
            forces if motors else None,
            self._plant.link,
        )

    # The inbox and the output of the loop --------------------------------------------------------

    def serve(self, timeout_s: float | None) -> bool:
        """Raise RuntimeError if the loop would wait, because nothing arrives between calls to
        `publish`.
        """
        if timeout_s == 0.0:
            return False
        raise RuntimeError(f"the loop waits for {self._loop.awaited or 'a request'}")

    def publish(self) -> None:
        """Record the present state and the step that led to it, and answer it."""
        plant, k = self._plant, self._plant.step
        if k:
            commands = plant.inputs, self._u, self._saturated
            self._rows.append((*commands, plant.before, plant.forces, plant.actuators))
        x = self._state()
        # x passed through the messages, but plant.state did not
        self._nodes.append((x, self._tracker.error(k, x), plant.state))
        if k == self._steps or self._watch(k):
            self.closed = True
        elif not self._feedback:
            reference = self._tracker.reference
            self._command(reference.inputs[k] if k < len(reference) else self._model.idle(x))
        elif plant.measured_step == k:
            self._answer(k)
        else:  # the measurement was lost: the last command is held
            self._saturated = np.zeros_like(self._saturated)

    def _state(self) -> np.ndarray:
        """Return the model's state (nx) as messages carry it."""
        if self._messages is None:
            return convert(self._plant.state, self._plant.dsys, self._model)
        return self._messages(self._plant.state)

    def _answer(self, k: int) -> None:
        if self._sensed is not None:
            self._sensed.add(self._plant.measurements, start_step=0)
        response = self._responder.respond(k, self._responder.measure(k, self._read))
        if response is not None:
            self._saturated = response.command.saturated
            self._command(response.command.u)

    def _command(self, u: np.ndarray) -> None:
        """Command the inputs u (nu). Raises ValueError if the loop rejects them."""
        stamp = self._clock.stamp(self._plant.step)
        reason = self._loop.command(self._model.inputs, u.tolist(), stamp)
        if reason is not None:
            raise ValueError(f"{self._model}: the command {u.tolist()} is {reason.value}")
        self._u = u

    def _read(self, q: list[float], v: list[float]) -> None:
        """Read the plant's measurement into q (nq) and v (nw)."""
        if self._messages is None:
            q[:], v[:] = (part.tolist() for part in self._plant.measured)
        else:
            sent_q, sent_v = self._plant.measured
            self._messages.read(sent_q, sent_v, q, v)

    def changed(self) -> None:
        """Close the inbox once the loop is no longer running."""
        self.closed = self.closed or self._loop.mode is not Mode.RUNNING

    def missing(self) -> str:
        """Return "", because the run waits for no subscriber."""
        return ""

    def has_controller(self) -> bool:
        """Return True, because `publish` answers."""
        return True

    def waits(self, text: str, over: bool) -> None:
        """Do nothing, because nothing is awaited."""

    def late_subscribers(self) -> bool:
        """Return False, because nobody subscribes during the run."""
        return False

    def placed(self) -> None:
        """Do nothing, because the run begins with the tracker's first step."""
