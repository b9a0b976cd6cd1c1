"""A node's diagnostics: a status with readable key-value pairs on /diagnostics."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

from nh_control.loop.reports import PendingReport, Report
from nh_control.ros.runtime.inbox import Inbox

_LEVELS = {
    "ok": DiagnosticStatus.OK,
    "warn": DiagnosticStatus.WARN,
    "error": DiagnosticStatus.ERROR,
}


class Diagnostics:
    """Publishes the node's `report()` every second of wall time, as the status `<node>: <what>`
    with the given `hardware_id`. The status also contains the `warnings()`, and a warning for each
    publisher that the inbox cannot receive because of its type or quality of service. Each warning
    is logged once.

    `report()` is called in the inbox's thread. Everything else takes longer than a step of a fast
    plant. Therefore the executor's thread looks for warnings, completes the report and publishes
    it.
    """

    def __init__(
        self,
        node: Node,
        inbox: Inbox,
        what: str,
        hardware_id: str,
        report: Callable[[], Report | PendingReport],
        warnings: Callable[[], list[str]] = list,
    ):
        self._node, self._inbox, self._known = node, inbox, set[str]()
        self.report, self._more_warnings = report, warnings
        self.publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._name = f"{node.get_fully_qualified_name().strip('/')}: {what}"
        self._hardware_id = hardware_id
        self._begun: deque[tuple[Report | PendingReport, list[str]]] = deque()
        self._publishing = Lock()
        self._guard = node.create_guard_condition(self._publish_begun)
        # use wall time, because simulation time may stop but diagnostics must not
        self._timer = node.create_timer(
            1.0,
            lambda: inbox.post(partial(self._begin, self._warnings())),
            clock=Clock(clock_type=ClockType.STEADY_TIME),
        )

    def publish(self) -> None:
        """Publish the current report, with floats to 6 digits, and the error counts. Call this
        method in the inbox's thread or after it has ended.
        """
        self._begun.append((self.report(), self._warnings()))
        self._publish_begun()

    def _begin(self, warnings: list[str]) -> None:
        self._begun.append((self.report(), warnings))
        self._guard.trigger()

    def _publish_begun(self) -> None:
        """Publish all reports that the inbox's thread has begun, in their order."""
        with self._publishing:
            while self._begun:
                report, warnings = self._begun.popleft()
                self._publish(report.complete(), warnings)

    def _publish(self, report: Report, warnings: list[str]) -> None:
        report = self._inbox.errors.with_counts(report)
        self._log_first(report.news)
        # warnings do not hide an error
        status = DiagnosticStatus(
            name=self._name,
            hardware_id=self._hardware_id,
            level=_LEVELS["warn" if warnings and report.level == "ok" else report.level],
            message="; ".join([report.message, *warnings]),
            values=[KeyValue(key=key, value=_text(value)) for key, value in report.values.items()],
        )
        array = DiagnosticArray(status=[status])
        array.header.stamp = self._node.get_clock().now().to_msg()
        self.publisher.publish(array)

    def _warnings(self) -> list[str]:
        texts = self._more_warnings() + self._inbox.mistyped_publishers()
        texts += [
            f"{topic} of {', '.join(nodes)} is not received: its quality of service is "
            f"incompatible"
            for topic, nodes in self._inbox.incompatible_publishers().items()
        ]
        for text in texts:
            if text not in self._known:
                self._known.add(text)
                self._node.get_logger().warning(text)
        return texts

    def _log_first(self, news: Mapping[str, str]) -> None:
        for kind, text in news.items():
            if kind not in self._known:
                self._known.add(kind)
                more = "later ones of this kind are only counted, in /diagnostics"
                self._node.get_logger().warning(f"{kind}: {text}; {more}")


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
