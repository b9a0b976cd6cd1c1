"""States of a simulation on topics, every one answered with a command of its stamp."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from rclpy.node import Node

from nh_control.discrete.results import StepFailed
from nh_control.loop.clocks import StepClock
from nh_control.loop.reference_sequence import ReferenceSequence
from nh_control.loop.reports import Refusal
from nh_control.loop.responder import Responder, Response
from nh_control.loop.sensed_state import SensedState
from nh_control.ros.messages.conversions import ConversionError
from nh_control.ros.messages.reference_start import has_start_publisher, subscribe_start
from nh_control.ros.messages.sensor_reader import SensorReader
from nh_control.ros.messages.state_codecs import Codec
from nh_control.ros.messages.state_reader import StateListener, StateReader
from nh_control.ros.messages.tracker_output import TrackerOutput
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.subscribers import matched_subscribers

QUEUE = 10
MATCHED_S, EXPECTED_S = 1.0, 10.0
"""How long a first answer may wait until it reaches all that listen, and those that are to."""


class SimulationInterface:
    """Waits for the messages of a state, all of one stamp, and sends a command with this stamp to
    `output`.

    The stamp determines the step of the reference, so the tracker may start at any time. If a
    plant starts again, or its reference starts at another time, it is followed from there. A
    repeated state gets the same answer; states of a run that cannot be joined, see `JoinCheck`,
    get none. The first answer waits until the `expected` nodes have subscribed.

    With `sensed`, the messages of a state only give the step: the state is estimated from the
    sensors' measurements, for which it waits.
    """

    def __init__(
        self,
        node: Node,
        inbox: Inbox,
        codecs: Sequence[Codec],
        sequence: ReferenceSequence,
        output: TrackerOutput,
        expected: Collection[str] = (),
        sensed: SensedState | None = None,
    ):
        self._node, self._inbox, self._patient = node, inbox, True
        self._expected = set(expected)
        self._sequence, self._dsys, self._report = sequence, sequence.dsys, output.report
        self._output = output
        self._clock = StepClock(self._dsys.h)
        self._responder = Responder(sequence, sensed, self._note)
        self._sensed, self._waiting = sensed, -1
        self._start_step, self._start_known, self._latest = 0, False, -1
        # before the states: it counts for those that follow
        subscribe_start(inbox, self._on_start)
        refuse, system = self._report.refuse_state, self._dsys.system
        sensors = () if sensed is None else sensed.sensors
        self._sensors = SensorReader(inbox, sensors, system, self._dsys.h, self._on_sensor, refuse)
        listener = StateListener(self._on_state, refuse)
        self._states = StateReader(inbox, codecs, listener, QUEUE)

    @property
    def now_ns(self) -> int:
        """Stamp of the last state."""
        return self._clock.stamp(self._start_step + self._sequence.step)

    def tick(self) -> None:
        """Do nothing without a state."""

    def stop(self) -> None:
        """Do nothing after the last state."""

    def _on_state(self, stamp: int) -> None:
        """Answer the state of this stamp if the reference's start is known; until then the plant
        repeats this state or publishes the next one.
        """
        if not self._start_known and has_start_publisher(self._node):
            return
        step = self._clock.step(stamp)
        if step is None:
            self._report.refuse_state(
                Refusal.STAMP,
                f"stamp {stamp * 1e-9:.9f} s is that of no step of {self._dsys.h:g} s: give both "
                f"nodes the same step_s; hardware has a clock of its own, source:=hardware",
            )
            return
        if step < self._start_step:
            self._start_step = 0  # another run, of a plant that began before this was said
        if step < self._latest:
            self._sensors.restart(step)
            self._start_anew()
        self._waiting = -1 if self._sensors.complete(step) else stamp
        if self._waiting >= 0:
            return
        self._latest, k = step, step - self._start_step
        if self._responder.last in (-1, k):
            self._await_subscribers()  # a first or repeated state: the run has not begun, or waits
        arrived = time.perf_counter()
        if self._sensed is not None:
            self._sensed.add(self._sensors.take(step), self._start_step)
        try:
            measurement = self._responder.measure(k, self._states.read)
            response = self._responder.respond(k, measurement)
        except ConversionError as error:
            self._report.refuse_state(error.kind, str(error))
            return
        except (ValueError, StepFailed) as error:
            self._report.refuse_state(Refusal.MODEL, str(error))
            return
        self._output.send(None if response is None else response.command.u, k, stamp)
        self._report.add_response_time(time.perf_counter() - arrived)

    def _note(self, k: int, response: Response) -> None:
        """Report a response."""
        x, target, approximated = response.state, response.target, self._responder.approximated
        self._report.add_command(k, x, target, response.command, approximated)
        if self._sensed is not None:
            self._report.set_status(self._sensed.values(), self._sensed.warning)

    def _on_sensor(self) -> None:
        """Answer the state that waits for measurements if the last one has arrived."""
        if self._waiting >= 0:
            self._on_state(self._waiting)

    def _on_start(self, stamp: int) -> None:
        """Note the time at which the reference starts; the next state does not follow from the
        last one. The first message may be old.
        """
        step, known = self._clock.step(stamp), self._start_known
        self._start_known = True
        if step is None or (step == self._start_step and not known):
            return
        moved, self._start_step = step != self._start_step, step
        if moved:
            self._start_anew()
        else:
            self._responder.forget()

    def _await_subscribers(self) -> None:
        """Wait until all known and expected subscribers receive the commands. A subscriber that
        does not in time may be incompatible or absent, and is not awaited again.
        """
        deadline = time.monotonic() + (EXPECTED_S if self._expected else MATCHED_S)
        while self._patient and not self._inbox.closed and (trouble := self._missing()):
            if time.monotonic() > deadline:
                self._patient = False
                self._node.get_logger().warning(trouble)
            time.sleep(1e-3)

    def _missing(self) -> str:
        """The subscribers that do not receive the commands, "" if all do."""
        publisher = self._output.publisher
        topic, heard_by = publisher.topic_name, matched_subscribers(self._node, publisher)
        if heard_by is None:
            return f"a subscription of {topic} was not matched: is its quality incompatible?"
        absent = self._expected - heard_by
        return f"{', '.join(sorted(absent))} does not hear {topic} ('heard_by')" if absent else ""

    def _start_anew(self) -> None:
        """Start the sequence again with the run."""
        self._latest = -1
        self._responder.restart()
        self._output.restarted()
