"""The tracker's messages: commands, their targets, errors and gains."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Sequence

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from nh_control.control import Command
from nh_control.control.controller import ControllerTracker
from nh_control.control.optimal.plan import Plan
from nh_control.control.trackers import linear
from nh_control.loop.reference_sequence import ReferenceSequence
from nh_control.loop.tracker_report import TrackerReport
from nh_control.ros.messages import conversions
from nh_control.ros.messages.cdr import Template
from nh_control.ros.messages.codec_publisher import CodecPublisher
from nh_control.ros.messages.state_codecs import Codec
from nh_control.ros.runtime.local_topics import hand_over, local_count
from nh_control.ros.runtime.subscribers import LateSubscribers
from nh_control.scenarios.driven_joints import DrivenJoint

UNSENT = 1000
"""Number of messages kept for subscribers that acknowledge slowly."""


class ControllerState:
    """Publishes the following on `controller_state/...`, with the stamp of the answered state:

    reference   JointState: `name` and `position` are the components of the reference state (nx)
    error       JointState: the tracking error in local coordinates (ndx)
    gains       Float64MultiArray: K (nu, ndx) at the step, in `u = u_d - K error`; zero after
                the end of the reference

    The command itself is published on `joint_commands`.
    """

    def __init__(self, node: Node, sequence: ReferenceSequence):
        self._sequence, dsys = sequence, sequence.dsys
        reference, error = (
            JointState(name=list(names), position=_zeros(len(names)))
            for names in (dsys.state_names, dsys.state_space.tangent_names)
        )
        gains = Float64MultiArray(data=_zeros(dsys.nu * dsys.ndx))
        # row and column labels for tools that plot matrices
        gains.layout.dim = [
            MultiArrayDimension(
                label=",".join(dsys.inputs), size=dsys.nu, stride=dsys.nu * dsys.ndx
            ),
            MultiArrayDimension(label=",".join(error.name), size=dsys.ndx, stride=dsys.ndx),
        ]
        self._reference, self._error, self._gains = map(Template, (reference, error, gains))
        # in the same order as the parts in `publish`
        self._publishers = [
            node.create_publisher(kind, f"controller_state/{name}", UNSENT)
            for name, kind in (
                ("reference", JointState),
                ("error", JointState),
                ("gains", Float64MultiArray),
            )
        ]
        self._subscribers = LateSubscribers(self._publishers)

    def publish(self, target: np.ndarray, command: Command, k: int, stamp: int) -> None:
        """Publish the parts of the command for step k, with a stamp in ns."""
        reference, error, gains = self._subscribers.recent()
        if reference:
            self._send_row(0, self._reference, target, stamp)
        if error:
            self._send_row(1, self._error, command.error, stamp)
        if gains:
            K = self._gains_at(k, command.memory)
            self._gains.message.data = array("d", K.ravel().tolist())
            self._publishers[2].publish(self._gains.encode())

    def _send_row(self, i: int, template: Template, row: np.ndarray, stamp: int) -> None:
        conversions.set_time(template.message.header.stamp, stamp)
        template.message.position = array("d", row.tolist())
        self._publishers[i].publish(template.encode())

    def _gains_at(self, k: int, memory: object) -> np.ndarray:
        """Gains of the plan or of the LQR. They are zero for a user's controller."""
        # a predictive tracker uses the gains of its plan
        if isinstance(memory, Plan) and memory.arrays:
            return memory.gains[memory.age]
        leg = self._sequence.leg(k)
        if isinstance(leg.tracker, ControllerTracker):
            return np.zeros((self._sequence.dsys.nu, self._sequence.dsys.ndx))
        # past the end, the last gains apply if the reference is held
        K, step = linear(leg.tracker).gains.K, k - leg.start
        if step >= len(K) and not leg.tracker.hold:
            return np.zeros_like(K[0])
        return K[min(step, len(K) - 1)]


def _zeros(n: int) -> array[float]:
    return array("d", bytes(8 * n))


PREFIX = "reference/"
INTERVAL_S = 0.004
TARGETS_UNSENT = 10


class TargetPublisher:
    """Publishes the reference's states on `reference/<topic of the state>` if there are
    subscribers, at least INTERVAL_S of wall time apart. It repeats the last state for late
    subscribers.
    """

    def __init__(self, node: Node, codecs: Sequence[Codec]):
        self._next_at = 0.0
        self._output = CodecPublisher(node, codecs, PREFIX, TARGETS_UNSENT)
        self._late_subscribers = LateSubscribers(self._output.publishers)
        self._last: tuple[ReferenceSequence, int, int] | None = None
        self._skipped = False

    def repeat(self) -> None:
        """Publish the last target if it was skipped, or if there are late subscribers."""
        late = self._late_subscribers.new()
        # a skipped target is published once INTERVAL_S has passed
        due = self._skipped and time.monotonic() >= self._next_at
        if (late or due) and self._last is not None:
            self._skipped = False
            sequence, k, stamp = self._last
            self._publish(sequence, k, stamp)

    def publish(self, sequence: ReferenceSequence, k: int, stamp: int) -> None:
        """Publish the sequence's reference at step k, with a stamp in ns."""
        now, self._last = time.monotonic(), (sequence, k, stamp)
        self._skipped = now < self._next_at
        if self._skipped:
            return
        self._next_at = now + INTERVAL_S
        self._publish(sequence, k, stamp)

    def _publish(self, sequence: ReferenceSequence, k: int, stamp: int) -> None:
        if self._output.has_subscribers:
            target, dsys = sequence.target(k), sequence.dsys
            q, v = dsys.configuration(target).tolist(), dsys.velocity(target).tolist()
            self._output.publish(q, v, stamp)


class JointEfforts:
    """Publishes commands on a forward_command_controller's topic, as the efforts of the joints
    that the inputs drive. The joints are in the order of the inputs.
    """

    def __init__(self, node: Node, topic: str, joints: Sequence[DrivenJoint]):
        ordered = sorted(joints, key=lambda joint: joint.input)
        self._gains = np.array([joint.gain for joint in ordered])
        self._publisher = node.create_publisher(Float64MultiArray, topic, 1)

    def publish(self, u: np.ndarray) -> None:
        """Publish the efforts `tau = u / gain` for the input u (nu)."""
        self._publisher.publish(Float64MultiArray(data=(u / self._gains).tolist()))


class TrackerOutput:
    """Publishes commands on `joint_commands` and as `efforts`, each with its target and the
    controller's state, and collects the `report`. Call `restarted()` when the run restarts.
    """

    def __init__(
        self,
        node: Node,
        codecs: Sequence[Codec],
        sequence: ReferenceSequence,
        report: TrackerReport,
        restarted: Callable[[], None],
        efforts: JointEfforts | None = None,
    ):
        self.report, self.restarted, self._sequence = report, restarted, sequence
        self.publisher = node.create_publisher(JointState, "joint_commands", UNSENT)
        self._command, self._efforts = conversions.command_message(sequence.dsys.inputs), efforts
        self._template, self._subscribers = (
            Template(self._command),
            LateSubscribers([self.publisher]),
        )
        self._target, self._state = TargetPublisher(node, codecs), ControllerState(node, sequence)
        self.has_sent = False
        """Whether a command has been sent since this was last set to False."""

    def send(self, u: np.ndarray | None, k: int, stamp: int) -> None:
        """Publish the input u (nu) or, if u is None, repeat the last command. The command answers
        the state with the given stamp (ns), and its target is the reference at step k.
        """
        # tells the node to prepare the next answer
        self.has_sent = True
        if u is not None:
            conversions.write_command(self._command, u.tolist(), stamp)
            if self._efforts is not None:
                self._efforts.publish(u)
        inside = local_count(self.publisher)
        # serialize the message only for subscribers in other processes
        if not inside or self._subscribers.recent()[0] > inside:
            self.publisher.publish(self._template.encode())
        hand_over(self.publisher, conversions.read_command(self._command))
        self._target.publish(self._sequence, k, stamp)
        if self.report.last is not None:
            target, command = self.report.last
            self._state.publish(target, command, k, stamp)

    def count_subscribers(self) -> None:
        """Note the present subscribers to the commands."""
        self._subscribers.count()

    def repeat_target(self) -> None:
        """Publish the last target to subscribers that do not have it."""
        self._target.repeat()
