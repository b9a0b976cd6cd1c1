"""The motion of a plant and its target, for nodes that show them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState

from nh_control.loop.reports import Refusal, Report
from nh_control.ros.messages import conversions
from nh_control.ros.messages.state_codecs import Codec
from nh_control.ros.messages.state_reader import StateListener, StateReader, quality, reader
from nh_control.ros.messages.tracker_output import PREFIX
from nh_control.ros.runtime.callback_errors import ThrottledLog
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.selected_model import Model

HARDWARE_QUEUE = 10
"""Queue length of a subscription to hardware states, because hardware may split a state into
several messages.
"""


class MotionListener:
    """The last configuration `q` (nq), its time `time_ns` (-1 before the first state), its
    velocity `v` (nw; None unless all components are measured), and `inputs` by name. `first_ns` is
    the time of the hardware's first state.

    A new state or a new target is `fresh` until the node has shown it. `received(time_ns)` is
    called after every state, and `restarted()` before a state whose time is earlier than that of
    the last state.
    """

    def __init__(
        self,
        node: Node,
        inbox: Inbox,
        model: Model,
        codecs: Sequence[Codec],
        source: str,
        restarted: Callable[[], None],
        received: Callable[[int], None] = lambda time_ns: None,
        best_effort: bool = False,
    ):
        dsys, log = model.dsys, node.get_logger()
        self._reference, self._h, self._simulated = model.reference, dsys.h, source == "simulation"
        self._restarted, self._received = restarted, received
        self._warn = ThrottledLog(lambda text: log.warning(text))
        self._q, self._v = [0.0] * dsys.system.space.nq, [0.0] * dsys.system.space.nw
        self.q = np.array(self._q)
        self.v: np.ndarray | None = None
        self.inputs: dict[str, float] = {}
        self._target: list[float] | None = None
        self.time_ns, self.first_ns, self._target_ns, self.fresh = -1, 0, -1, False
        self._refused, self._trouble = 0, ""
        self.queue = 1 if self._simulated else HARDWARE_QUEUE
        states = StateListener(self._on_state, self.refuse, self._on_jump)
        self._states = reader(
            source, inbox, codecs, states, self.queue, dsys.h, best_effort=best_effort
        )
        targets = StateListener(self._on_target, self.refuse)
        self._targets = StateReader(inbox, codecs, targets, 1, PREFIX, best_effort=best_effort)
        reliability = quality("hardware" if best_effort else "simulation", 1)
        inbox.subscribe(JointState, "joint_commands", self._on_command, reliability)

    @property
    def is_of_one_time(self) -> bool:
        """Whether the target, if there is one, belongs to the state."""
        return self._target is None or self._target_ns == self.time_ns

    def expected(self) -> np.ndarray:
        """The tracker's target (nq). Before the first target arrives, it is the configuration of
        the scenario's reference at this time. For hardware, whose clock differs, it is then the
        first configuration of the reference.
        """
        if self._target is not None:
            return np.array(self._target)
        # simulated time is the time of the reference, but the hardware's clock is not
        time_s = self.time_ns * 1e-9 if self._simulated else 0.0
        step = min(max(0, round(time_s / self._h)), len(self._reference))
        return self._reference.states[step][: len(self._q)]

    def refuse(self, _: Refusal, reason: str) -> None:
        """Count a refused message, and log the reason at a limited rate."""
        self._refused, self._trouble = self._refused + 1, reason
        self._warn(reason)

    def report(self, activity: str, frames: int, **values: object) -> Report:
        """The report for a node that has shown `frames` states."""
        level, text = ("ok", activity) if frames else ("warn", "waiting for states")
        if self._trouble:
            level, text, self._trouble = "warn", self._trouble, ""
        values |= {"frames": frames, "time_s": self.time_ns * 1e-9, "refused": self._refused}
        return Report(level, text, values)

    def _on_state(self, time_ns: int) -> None:
        try:
            is_whole = self._states.read(self._q, self._v)
        except conversions.ConversionError as error:
            self.refuse(error.kind, str(error))
            return
        if self.time_ns < 0 and not self._simulated:
            self.first_ns = time_ns
        # the plant was reset
        if time_ns < self.time_ns:
            self._restarted()
        self.q, self.v = np.array(self._q), np.array(self._v) if is_whole else None
        self.time_ns, self.fresh = time_ns, True
        self._received(time_ns)

    def _on_jump(self, _: float) -> None:
        self._restarted()
        self.time_ns = -1

    def _on_target(self, time_ns: int) -> None:
        # a target near the last one resolves signs and turns
        target = list(self._target or self._q)
        try:
            self._targets.read(target, self._v[:])
        except conversions.ConversionError as error:
            self.refuse(error.kind, str(error))
            return
        self._target_ns = time_ns
        if target != self._target:  # the target may arrive after the last state
            self._target, self.fresh = target, self.time_ns >= 0

    def _on_command(self, message: JointState) -> None:
        names, values, _ = conversions.read_command(message)
        if len(names) == len(values) and np.isfinite(values).all():
            self.inputs = dict(zip(names, values))
