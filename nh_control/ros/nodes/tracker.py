"""The tracker node: answers every state with the command of the discrete LQR tracker, and follows
goals and trajectories.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState

from nh_control.control import DisturbanceEstimate
from nh_control.control.reference_sequence import ReferenceSequence
from nh_control.ros.loop.state_estimate import StateEstimate
from nh_control.ros.loop.tracker_report import TrackerReport
from nh_control.ros.messages import conversions
from nh_control.ros.messages.diagnostics import Diagnostics
from nh_control.ros.messages.goal_interface import GoalInterface, PathPublisher
from nh_control.ros.messages.state_codecs import BodyCodec, codecs
from nh_control.ros.messages.state_reader import StateReader
from nh_control.ros.messages.target_publisher import TargetPublisher
from nh_control.ros.runtime import process
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.listeners import listeners
from nh_control.ros.runtime.model import Model
from nh_control.ros.runtime.parameters import TRACKER, Parameters

QUEUE = 10
UNSENT = 1000
"""Commands kept for subscribers that are slow to acknowledge them, such as a recorder."""
MATCHED_S = 1.0
"""How long an answer may wait until it reaches all that listen, among them a recorder."""
LATECOMERS_S = 0.5
"""How often to look for new subscribers of the target while no state comes."""
SWITCH_S = 2e-4
"""How long a thread that plans may keep the interpreter from the one that answers."""


class Tracker:
    """Waits for the messages of a state, all of one stamp, and publishes the command with this
    stamp.

    The step of the reference is that of the stamp, so the tracker may start at any time, and a
    plant that starts again is followed from its start. A state that is published again gets the
    same answer again.
    """

    def __init__(self, node: Node, inbox: Inbox, exit_: process.Exit):
        sys.setswitchinterval(SWITCH_S)
        self._node, self._inbox, self._patient = node, inbox, True
        parameters = Parameters(node, TRACKER)
        self._model = model = Model.of(parameters)
        guidance = (
            model.scenario.guidance(model.dsys, model.reference)
            if model.scenario.guidance
            else None
        )
        self._sequence = ReferenceSequence(
            model.scenario.tracker(model.dsys, model.reference, parameters["integral"]), guidance
        )
        self._estimate = StateEstimate(model.dsys)
        space, shown = model.dsys.system.space, codecs(model.scenario, model.dsys)
        self._q, self._v = [0.0] * space.nq, [0.0] * space.nw
        self._report = TrackerReport(model.scenario, model.dsys)
        self._message = conversions.command_message(model.dsys.inputs)
        self._publisher = node.create_publisher(JointState, "joint_commands", UNSENT)
        self._target = TargetPublisher(node, shown)
        self._goals = self._make_guide(
            node, [codec for codec in shown if isinstance(codec, BodyCodec)]
        )
        self._answered: tuple[int, list[float]] | None = None
        self._memory: DisturbanceEstimate | None = None
        self._u, self._idle = np.zeros(model.dsys.nu), True
        self._states = StateReader(inbox, shown, self._on_state, QUEUE)
        self._diagnostics = Diagnostics(
            node, "tracking", model.scenario.name, lambda: inbox.post(self._publish_report)
        )
        node.get_logger().info(
            f"model: {model.dsys}; reference {model.reference.name!r}, "
            f"{len(model.reference)} steps"
            f"{'; with disturbance estimate' if parameters['integral'] else ''}"
        )

    def work(self) -> None:
        """Answer states."""
        while not self._inbox.closed:
            self._idle = True
            self._inbox.serve(LATECOMERS_S)
            if self._idle:
                self._target.repeat()

    def close(self) -> None:
        """End planning."""
        if self._goals is not None:
            self._goals.close()

    def _make_guide(self, node: Node, bodies: list[BodyCodec]) -> GoalInterface | None:
        """Publish the path of the reference, if the scenario has bodies, and follow goals, if it
        has a guidance.
        """
        if not bodies:
            return None
        paths = PathPublisher(node, self._model, bodies[0])
        paths.publish(paths.message(self._model.reference))
        return (
            GoalInterface(node, self._inbox, self._model, self._sequence, self._report, paths)
            if self._sequence.leg(0).guidance
            else None
        )

    def _on_state(self, stamp: int) -> None:
        """Answer the state of this stamp."""
        self._idle = False
        k = self._model.clock.step(stamp)
        if k is None:
            self._report.refuse(
                f"stamp {stamp * 1e-9:.9f} s is that of no step of "
                f"{self._model.dsys.h:g} s: give both nodes the same step_s"
            )
            return
        if k < self._last:
            self._start_anew()
        if self._last in (-1, k):
            self._await_listeners()  # a first or repeated state: the run has not begun, or waits
        arrived = time.perf_counter()
        try:
            measurement = self._measure(k)
        except conversions.ConversionError as error:
            self._report.refuse(str(error))
            return
        if (k, measurement) != self._answered:
            conversions.write_command(
                self._message,
                self._respond(k, has_velocity=len(measurement) > len(self._q)),
                stamp,
            )
            self._answered = k, measurement
        self._publisher.publish(self._message)
        self._report.answered(time.perf_counter() - arrived)
        self._target.publish(self._sequence, k, stamp)

    def _await_listeners(self) -> None:
        """Wait until all known listeners hear the commands; if one has not been matched in time,
        never again: it may be incompatible.
        """
        deadline = time.monotonic() + MATCHED_S
        while (
            self._patient
            and not self._inbox.closed
            and listeners(self._node, self._publisher) is None
        ):
            if time.monotonic() > deadline:
                self._patient = False
                topic = self._publisher.topic_name
                self._node.get_logger().warning(
                    f"a subscription of {topic} was not matched in {MATCHED_S:g} s: is its "
                    f"quality of service incompatible?"
                )
            time.sleep(1e-3)

    @property
    def _last(self) -> int:
        return -1 if self._answered is None else self._answered[0]

    def _measure(self, k: int) -> list[float]:
        """Read the present messages into configuration and velocity; returns their numbers,
        without velocities if there are none.
        """
        if self._answered is None:
            self._q[:] = self._model.dsys.configuration(self._sequence.target(k)).tolist()
        has_velocities = self._states.read(self._q, self._v)
        return self._q + self._v if has_velocities else self._q[:]

    def _respond(self, k: int, has_velocity: bool) -> np.ndarray:
        """Input (nu) for the measured state at step k."""
        if k == self._last:
            self._forget()
        elif k > self._last + 1 and self._memory is not None:
            self._memory = DisturbanceEstimate(self._memory.disturbance)
        target = self._sequence.target(k)
        x = self._estimate.state(k, self._q, self._v if has_velocity else None, self._u, target)
        command = self._sequence.command(k, x, self._memory)
        self._memory, self._u = command.memory, command.u
        self._report.computed(k, x, target, command, self._estimate.approximated)
        return command.u

    def _forget(self) -> None:
        """Nothing is known of earlier steps."""
        self._answered, self._memory, self._u = None, None, np.zeros(self._model.dsys.nu)
        self._estimate.reset()

    def _start_anew(self) -> None:
        """The run has started again, and so does the sequence."""
        self._forget()
        self._sequence.reset()
        if self._goals is not None:
            self._goals.forget()

    def _publish_report(self) -> None:
        self._diagnostics.publish(self._report.make())


def main(args: list[str] | None = None) -> int:
    """Run the node; returns the exit code."""
    return process.run("tracker", Tracker, args)


if __name__ == "__main__":
    sys.exit(main())
