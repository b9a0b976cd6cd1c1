"""The tracker's interface to hardware: states from topics, services for arming and starting, and
commands.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from rclpy.clock import ROSClock
from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from nh_control.control.controller import ControllerFailed
from nh_control.discrete.results import StepFailed
from nh_control.loop.arming import ArmingRefused, Safety
from nh_control.loop.clocks import NANOSECONDS
from nh_control.loop.hardware_tracker import Answer, Diverged, HardwareTracker, StateRefused
from nh_control.loop.reports import Refusal
from nh_control.ros.messages.conversions import ConversionError
from nh_control.ros.messages.reference_start import ReferenceStartPublisher
from nh_control.ros.messages.state_codecs import Codec
from nh_control.ros.messages.state_reader import MeasurementReader, StateListener
from nh_control.ros.messages.tracker_output import TrackerOutput
from nh_control.ros.runtime.inbox import Inbox, Response, answer

QUEUE = 10
BY_REQUEST = "by request"


class HardwareInterface:
    """Answers measurements with commands once `~/arm` has been called. The reference starts with
    the first state after arming, or with the first state after `~/start`.

    While the tracker is not armed, it estimates and reports states but sends no commands. The only
    exception is that it sends the inputs in `safety.disarmed_inputs` after being disarmed. Call
    `tick` regularly, in the inbox's thread.
    """

    def __init__(
        self,
        node: Node,
        inbox: Inbox,
        codecs: Sequence[Codec],
        tracker: HardwareTracker,
        safety: Safety,
        output: TrackerOutput,
    ):
        self._node, self._inbox, self._tracker = node, inbox, tracker
        self._safety, self._arming, self._output = safety, safety.arming, output
        self._report = output.report
        self._start_requested, self._noticed = False, 0
        self._reference_start = ReferenceStartPublisher(node)
        dsys = tracker.sequence.dsys
        # initial values for the reader near the robot's state, which resolve signs and turns
        self._q = dsys.configuration(tracker.sequence.target(0)).tolist()
        self._v = [0.0] * dsys.system.space.nw
        listener = StateListener(self._on_state, self._refused, self._on_jump)
        self._reader = MeasurementReader(inbox, codecs, listener, QUEUE, dsys.h)
        node.create_service(SetBool, "~/arm", self._on_arm)
        node.create_service(Trigger, "~/start", self._on_start)
        self._tell()

    @property
    def now_ns(self) -> int:
        """Stamp of the last state."""
        return self._tracker.last_ns

    def tick(self) -> None:
        """Disarm after too long a silence. While disarmed, send the command for this case."""
        if self._arming.armed:
            self._arming.check_silence(self._time_s())
            self._notice_disarming()
        if self._after_disarming:
            self._command(self._safety.disarmed_inputs.command(fresh=False), 0, self.now_ns)

    def stop(self) -> None:
        """Disarm, because no more states are answered."""
        self._arming.disarm("the tracker stopped")
        self._notice_disarming()
        self.tick()

    def _time_s(self) -> float:
        """Time for the limits. It is simulation time if the node uses it, because a simulator may
        be slow or pause, and monotonic time otherwise.
        """
        clock = self._node.get_clock()
        if isinstance(clock, ROSClock) and clock.ros_time_is_active:
            return clock.now().nanoseconds / NANOSECONDS
        return time.monotonic()

    def _on_state(self, stamp: int) -> None:
        arrived, now_ns = time.perf_counter(), self._node.get_clock().now().nanoseconds
        tracker, arming = self._tracker, self._arming
        # after a jump ahead in time, an estimate is worthless
        if gap_s := tracker.gap_s(stamp):
            self._on_jump(gap_s, "ahead")
        # the first state that is answered starts the reference
        ready = arming.armed and not self._awaits_start
        if ready and tracker.start_ns is None:
            tracker.start(stamp)
            self._reference_start.publish(stamp)
        try:
            self._reader.read(self._q, self._v)
            answer = tracker.answer(stamp, self._q, self._v, now_ns)
        except (ConversionError, StateRefused) as reason:
            self._refused(reason.kind, str(reason))
            return
        except ControllerFailed as failure:
            self._disarm(Refusal.MODEL, str(failure))
            return
        except (StepFailed, Diverged) as reason:
            self._disarm(Refusal.MODEL, f"the model cannot follow the states: {reason}")
            return
        command = answer.command
        self._report.add_command(answer.step, answer.x, answer.target, command, 0)
        # check the limits on error, saturation and ranges before the command is sent
        arming.observe(
            self._time_s(),
            self._followed(answer),
            bool(command.saturated.any()),
            self._safety.ranges.violation(np.asarray(self._q)),
        )
        self._notice_disarming()
        self._out(answer, stamp)
        self._report.add_response_time(time.perf_counter() - arrived)
        self._tell(answer)

    def _followed(self, answer: Answer) -> np.ndarray:
        """The tracked errors of the configuration. There are none after the end of a reference
        that does not hold its last state.
        """
        following, tracked = self._tracker.sequence.is_following(answer.step), self._safety.tracked
        return answer.command.error[: len(tracked)][tracked & following]

    @property
    def _awaits_start(self) -> bool:
        return self._safety.starts_by_service and not self._start_requested

    def _out(self, answer: Answer, stamp: int) -> None:
        # commands are also computed while disarmed, for the diagnostics
        u = answer.command.u if self._arming.armed else None
        # `hold` and `damp` depend on the last command and state
        self._safety.disarmed_inputs.update(answer.x, u)
        if self._after_disarming:
            u = self._safety.disarmed_inputs.command(fresh=True)
        self._command(u, answer.step, stamp)

    @property
    def _after_disarming(self) -> bool:
        return not self._arming.armed and self._arming.disarmed > 0

    def _command(self, u: np.ndarray | None, k: int, stamp: int) -> None:
        if u is not None:
            self._output.send(u, k, stamp)
            self._tracker.add_input(u, self._node.get_clock().now().nanoseconds)

    def _refused(self, kind: Refusal, reason: str) -> None:
        self._report.refuse_state(kind, reason)
        self.tick()

    def _on_jump(self, seconds: float, direction: str = "back") -> None:
        self._disarm(Refusal.STAMP, f"the states' time jumped {direction} by {seconds:.3g} s")
        self._tracker.reset()

    def _disarm(self, kind: Refusal, reason: str) -> None:
        self._report.refuse_state(kind, reason)
        self._arming.disarm(reason)
        self._notice_disarming()

    def _notice_disarming(self) -> None:
        """If the tracker was disarmed, log the reason, stop the tracker and reset the run."""
        if self._arming.disarmed == self._noticed:
            return
        self._noticed = self._arming.disarmed
        log, text = self._node.get_logger(), f"disarmed: {self._arming.reason}"
        if self._arming.reason == BY_REQUEST:  # rclpy allows one severity per line of code
            log.info(text)
        else:
            log.error(text)
        self._tracker.stop(self._node.get_clock().now().nanoseconds)
        self._start_requested = False
        self._output.restarted()
        self._tell()

    def _tell(self, answer: Answer | None = None) -> None:
        arming, tracker = self._arming, self._tracker
        values: dict[str, object] = {
            "armed": arming.armed,
            "disarmings": arming.disarmed,
            "started": tracker.start_ns is not None,
            "states_not_compensated": tracker.uncompensated,
        }
        if answer is not None:
            self._report.add_state_age(answer.age_s)
        self._report.set_status(values, arming.obstacle(self._awaits_start))

    # In the executor's thread --------------------------------------------------------------------

    def _on_arm(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        def change() -> None:
            if request.data:
                self._arming.arm(self._time_s())
                self._node.get_logger().info("armed")
                self._tell()
            else:
                self._arming.disarm(BY_REQUEST)
                self._notice_disarming()

        return self._answer(response, change)

    def _on_start(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        def change() -> None:
            self._start_requested = True
            self._tell()

        return self._answer(response, change)

    def _answer(self, response: Response, change: Callable[[], None]) -> Response:
        outcome = lambda: "armed" if self._arming.armed else "disarmed"  # noqa: E731
        return answer(self._inbox, response, change, outcome, (ArmingRefused,))
