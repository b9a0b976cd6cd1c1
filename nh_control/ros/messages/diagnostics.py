"""A node's diagnostics: a status with readable key-value pairs on /diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

from nh_control.loop.reports import Report
from nh_control.ros.runtime.inbox import Inbox

_LEVELS = {
    "ok": DiagnosticStatus.OK,
    "warn": DiagnosticStatus.WARN,
    "error": DiagnosticStatus.ERROR,
}


class Diagnostics:
    """Publishes the node's `report()` every second of wall time, in the inbox's thread, as the
    status `<node>: <what>` with the given `hardware_id`. The status also contains the
    `warnings()`, and a warning for each publisher that the inbox cannot receive because of its
    type or quality of service. Each warning is logged once. The executor's thread looks for
    warnings, because queries of the ROS graph would delay steps in the inbox's thread.
    """

    def __init__(
        self,
        node: Node,
        inbox: Inbox,
        what: str,
        hardware_id: str,
        report: Callable[[], Report],
        warnings: Callable[[], list[str]] = list,
    ):
        self._node, self._inbox, self._known = node, inbox, set[str]()
        self.report, self._more_warnings = report, warnings
        self.publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        name = node.get_fully_qualified_name().strip("/")
        self._status = DiagnosticStatus(name=f"{name}: {what}", hardware_id=hardware_id)
        # use wall time, because simulation time may stop but diagnostics must not
        self._timer = node.create_timer(
            1.0,
            lambda: inbox.post(partial(self._publish, self._warnings())),
            clock=Clock(clock_type=ClockType.STEADY_TIME),
        )

    def publish(self) -> None:
        """Publish the current report, with floats to 6 digits, and the error counts."""
        self._publish(self._warnings())

    def _publish(self, warnings: list[str]) -> None:
        report = self._inbox.errors.with_counts(self.report())
        self._log_first(report.news)
        # warnings do not hide an error
        level = "warn" if warnings and report.level == "ok" else report.level
        self._status.level = _LEVELS[level]
        self._status.message = "; ".join([report.message, *warnings])
        self._status.values = [
            KeyValue(key=key, value=_text(value)) for key, value in report.values.items()
        ]
        array = DiagnosticArray(status=[self._status])
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
