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
from nh_control.control.optimal.plan import Plan
from nh_control.control.trackers import linear
from nh_control.loop.reference_sequence import ReferenceSequence
from nh_control.loop.tracker_report import TrackerReport
from nh_control.ros.messages import conversions
from nh_control.ros.messages.cdr import Template
from nh_control.ros.messages.codec_publisher import CodecPublisher
from nh_control.ros.messages.state_codecs import Codec
from nh_control.ros.runtime.subscribers import LateSubscribers
from nh_control.scenarios.driven_joints import DrivenJoint

UNSENT = 1000
"""Messages kept for subscribers that acknowledge slowly."""
LOOK_S = 0.05
"""Period of looking for subscribers."""


class ControllerState:
    """Publishes, with the stamp of the state that is answered, on `controller_state/...`:

    reference   JointState, `name` and `position` are the numbers of the reference's state (nx)
    error       JointState, the tracking error in local coordinates (ndx)
    gains       Float64MultiArray, K (nu, ndx) of the step: `u = u_d - K error`, zero past the end

    The command itself is on joint_commands.
    """

    def __init__(self, node: Node, sequence: ReferenceSequence):
        self._sequence, dsys = sequence, sequence.dsys
        self._look_at = 0.0
        self._wanted: list[bool] = [False, False, False]
        reference, error = (
            JointState(name=list(names), position=_zeros(len(names)))
            for names in (dsys.state_names, dsys.state_space.tangent_names)
        )
        gains = Float64MultiArray(data=_zeros(dsys.nu * dsys.ndx))
        gains.layout.dim = [
            MultiArrayDimension(
                label=",".join(dsys.inputs), size=dsys.nu, stride=dsys.nu * dsys.ndx
            ),
            MultiArrayDimension(label=",".join(error.name), size=dsys.ndx, stride=dsys.ndx),
        ]
        self._reference, self._error, self._gains = map(Template, (reference, error, gains))
        self._publishers = [
            node.create_publisher(kind, f"controller_state/{name}", UNSENT)
            for name, kind in (
                ("reference", JointState),
                ("error", JointState),
                ("gains", Float64MultiArray),
            )
        ]

    def publish(self, target: np.ndarray, command: Command, k: int, stamp: int) -> None:
        """Publish the parts of a command for step k, with a stamp in ns."""
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + LOOK_S
            self._wanted = [p.get_subscription_count() > 0 for p in self._publishers]
        reference, error, gains = self._wanted
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
        """Gains of the plan, or of LQR."""
        if isinstance(memory, Plan) and memory.arrays:
            return memory.gains[memory.age]
        leg = self._sequence.leg(k)
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
    subscribers, at least INTERVAL_S of wall time apart, and the last one again for late
    subscribers.
    """

    def __init__(self, node: Node, codecs: Sequence[Codec]):
        self._next_at = 0.0
        self._output = CodecPublisher(node, codecs, PREFIX, TARGETS_UNSENT)
        self._late_subscribers = LateSubscribers(self._output.publishers)
        self._last: tuple[ReferenceSequence, int, int] | None = None
        self._skipped = False

    def repeat(self) -> None:
        """Publish the last target if it was skipped, or for late subscribers."""
        late = self._late_subscribers.new()
        due = self._skipped and time.monotonic() >= self._next_at
        if (late or due) and self._last is not None:
            self._skipped = False
            self._publish(*self._last)

    def publish(self, sequence: ReferenceSequence, k: int, stamp: int) -> None:
        """Publish the reference of the sequence at step k, with a stamp in ns."""
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
    """Publishes commands as efforts of the joints that the inputs drive, in the order of the
    inputs, on a topic of a forward_command_controller.
    """

    def __init__(self, node: Node, topic: str, joints: Sequence[DrivenJoint]):
        ordered = sorted(joints, key=lambda joint: joint.input)
        self._gains = np.array([joint.gain for joint in ordered])
        self._publisher = node.create_publisher(Float64MultiArray, topic, 1)

    def publish(self, u: np.ndarray) -> None:
        """Publish the input u (nu): the effort tau of a joint gives `u = gain tau`."""
        self._publisher.publish(Float64MultiArray(data=(u / self._gains).tolist()))


class TrackerOutput:
    """Publishes commands on `joint_commands`, each with its target and the controller's state, and
    as `efforts`, and collects the `report`. Call `restarted()` when the run starts again.
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
        self._command = Template(conversions.command_message(sequence.dsys.inputs))
        self._last, self._efforts = self._command.encode(), efforts
        self._target, self._state = TargetPublisher(node, codecs), ControllerState(node, sequence)
        self.has_sent = False
        """Whether a command was sent since this was last set to False."""

    def send(self, u: np.ndarray | None, k: int, stamp: int) -> None:
        """Publish the input u (nu), or, for None, the last command again, in answer to the state
        of a stamp (ns), with the reference at step k.
        """
        self.has_sent = True
        if u is not None:
            conversions.write_command(self._command.message, u.tolist(), stamp)
            self._last = self._command.encode()
            if self._efforts is not None:
                self._efforts.publish(u)
        self.publisher.publish(self._last)
        self._target.publish(self._sequence, k, stamp)
        if self.report.last is not None:
            self._state.publish(*self.report.last, k, stamp)

    def repeat_target(self) -> None:
        """Publish the last target to subscribers that do not have it."""
        self._target.repeat()
