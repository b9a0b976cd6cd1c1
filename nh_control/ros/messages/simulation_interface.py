"""The tracker's interface to a simulation: it answers each state with a command that has the
state's stamp.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from rclpy.node import Node

from nh_control.control.controller import ControllerFailed
from nh_control.discrete.results import StepFailed
from nh_control.loop.clocks import StepClock
from nh_control.loop.joining import Joining
from nh_control.loop.reference_sequence import ReferenceSequence
from nh_control.loop.reports import Refusal, Unusable
from nh_control.loop.responder import Responder, Response
from nh_control.loop.sensed_state import SensedState
from nh_control.ros.messages.reference_start import has_start_publisher, subscribe_start
from nh_control.ros.messages.sensor_reader import SensorReader
from nh_control.ros.messages.state_codecs import Codec
from nh_control.ros.messages.state_reader import StateListener, StateReader
from nh_control.ros.messages.tracker_output import TrackerOutput
from nh_control.ros.runtime.exit_request import Exit
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.subscribers import matched_subscribers
from nh_control.runs.node_process import CONTROLLER_FAILED

QUEUE = 10
MATCHED_S, EXPECTED_S = 1.0, 10.0
"""Maximum times for which the first answer waits: until known subscribers are matched, and until
expected nodes have subscribed.
"""


class SimulationInterface:
    """Waits for the messages of a state, which all have the same stamp, and sends a command with
    that stamp to `output`.

    The stamp determines the step of the reference, so the tracker may start at any time. If the
    plant or its reference restarts, the tracker follows. A repeated state gets the same answer.
    States of a run that cannot be joined (see `Joining`) get no answer. The first answer waits
    until the `expected` nodes have subscribed.

    With `sensed`, the messages of a state only tell the step. The interface then waits for the
    sensors' measurements and estimates the state from them. If a user's controller fails, the
    process ends. With `at_once`, a plant in this process receives the answer while it publishes
    the state.
    """

    def __init__(
        self,
        node: Node,
        inbox: Inbox,
        codecs: Sequence[Codec],
        sequence: ReferenceSequence,
        output: TrackerOutput,
        exit_: Exit,
        expected: Collection[str] = (),
        sensed: SensedState | None = None,
        joining: Joining | None = None,
        at_once: bool = False,
    ):
        self._exit = exit_
        self._node, self._inbox, self._patient = node, inbox, True
        self._expected = set(expected)
        self._sequence, self._dsys, self._report = sequence, sequence.dsys, output.report
        self._output = output
        self._clock = StepClock(self._dsys.h)
        self._responder = Responder(sequence, sensed, self._note, joining)
        self._sensed, self._waiting = sensed, -1
        self._start_step, self._start_known, self._latest = 0, False, -1
        # subscribe before the states, so that the start time is handled before the states after it
        subscribe_start(inbox, self._on_start)
        refuse, system = self._report.refuse_state, self._dsys.system
        sensors = () if sensed is None else sensed.sensors
        self._sensors = SensorReader(inbox, sensors, system, self._dsys.h, self._on_sensor, refuse)
        listener = StateListener(self._on_state, refuse)
        self._states = StateReader(inbox, codecs, listener, QUEUE, at_once=at_once)

    def warm_up(self) -> None:
        """Load everything that the first commands need."""
        self._responder.warm_up()

    @property
    def now_ns(self) -> int:
        """Stamp of the last state."""
        return self._clock.stamp(self._start_step + self._sequence.step)

    def tick(self) -> None:
        """Do nothing, because without a state there is no answer."""

    def stop(self) -> None:
        """Do nothing, because no command follows the last state."""

    def _on_state(self, stamp: int) -> None:
        """Answer the state with the given stamp if the reference's start time is known. Until
        then, the plant repeats this state or publishes the next one.
        """
        if not self._start_known and has_start_publisher(self._node):
            return
        step = self._clock.step(stamp)
        if step is None:
            self._report.refuse_state(
                Refusal.STAMP,
                f"stamp {stamp * 1e-9:.9f} s is not a multiple of the step {self._dsys.h:g} s: "
                f"set the same step_s for both nodes, or source:=hardware for a robot with "
                f"another clock",
            )
            return
        if step < self._start_step:
            self._start_step = 0  # a new run, whose start time is not published yet
        # time went back, so a new run has begun
        if step < self._latest:
            self._sensors.restart(step)
            self._start_anew()
        # with `sensed`, the state is answered once the measurements have arrived
        self._waiting = -1 if self._sensors.complete(step) else stamp
        if self._waiting >= 0:
            return
        self._latest, k = step, step - self._start_step
        if self._responder.last in (-1, k):
            # at a first or repeated state, the plant has not begun or waits, so it loses no time
            self._await_subscribers()
        # the response time excludes the wait for subscribers
        arrived = time.perf_counter()
        if self._sensed is not None:
            self._sensed.add(self._sensors.take(step), self._start_step)
        try:
            # refuse unusable messages and model failures
            measurement = self._responder.measure(k, self._states.read)
            response = self._responder.respond(k, measurement)
        except Unusable as error:
            self._report.refuse_state(error.kind, str(error))
            return
        except (ValueError, StepFailed) as error:
            self._report.refuse_state(Refusal.MODEL, str(error))
            return
        except ControllerFailed as failure:
            self._node.get_logger().fatal(str(failure))
            self._exit.request(code=CONTROLLER_FAILED)
            return
        self._output.send(None if response is None else response.command.u, k, stamp)
        self._report.add_response_time(time.perf_counter() - arrived)

    def _note(self, k: int, response: Response) -> None:
        """Report the response to the state at step k."""
        x, target, approximated = response.state, response.target, self._responder.approximated
        self._report.add_command(k, x, target, response.command, approximated)
        if self._sensed is not None:
            self._report.set_status(self._sensed.values(), self._sensed.warning)

    def _on_sensor(self) -> None:
        """Answer the state that waits for measurements if all of them have arrived."""
        if self._waiting >= 0:
            self._on_state(self._waiting)

    def _on_start(self, stamp: int) -> None:
        """Store the time at which the reference starts. The next state does not follow from the
        last one, except after the first message, which may be old.
        """
        step, known = self._clock.step(stamp), self._start_known
        self._start_known = True
        if step is None or (step == self._start_step and not known):
            return
        changed, self._start_step = step != self._start_step, step
        if changed:
            self._start_anew()
        else:
            self._responder.forget()

    def _await_subscribers(self) -> None:
        """Wait until all known and expected subscribers receive the commands. A subscriber that is
        still missing after the time limit may be incompatible or absent, and is not awaited again.
        """
        # expected nodes may still start, so they get more time
        deadline = time.monotonic() + (EXPECTED_S if self._expected else MATCHED_S)
        while self._patient and not self._inbox.closed and (trouble := self._missing()):
            if time.monotonic() > deadline:
                self._patient = False
                self._node.get_logger().warning(trouble)
            time.sleep(1e-3)
        self._output.count_subscribers()

    def _missing(self) -> str:
        """The subscribers that do not receive the commands, or "" if all do."""
        publisher = self._output.publisher
        topic, heard_by = publisher.topic_name, matched_subscribers(self._node, publisher)
        if heard_by is None:
            return (
                f"a subscription to {topic} was not matched: is its quality of service "
                f"incompatible?"
            )
        absent = ", ".join(sorted(self._expected - heard_by))
        return f"{absent} does not subscribe to {topic} (parameter 'heard_by')" if absent else ""

    def _start_anew(self) -> None:
        """Restart the sequence together with the run."""
        self._latest = -1
        self._responder.restart()
        self._output.restarted()
