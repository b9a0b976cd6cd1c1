"""Diagnostics: a status of readable key-value pairs on /diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

from nh_control.ros.loop.report import Report
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.robot_name import full_name

_LEVELS = {
    "ok": DiagnosticStatus.OK,
    "warn": DiagnosticStatus.WARN,
    "error": DiagnosticStatus.ERROR,
}


class Diagnostics:
    """Publishes one status, `<node>: <what>` with the node's namespace, of the hardware
    `hardware_id`; calls `report` every second of wall time, which should do that, on `publisher`.
    Publishers that the `inbox` cannot hear are named, and logged once, as is what `disorder` says
    of the other nodes.
    """

    def __init__(
        self,
        node: Node,
        inbox: Inbox,
        what: str,
        hardware_id: str,
        report: Callable[[], None],
        disorder: Callable[[], list[str]] = list,
    ):
        self._node, self._inbox, self._known = node, inbox, set[str]()
        self._disorder = disorder
        self.publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._status = DiagnosticStatus(name=f"{full_name(node)}: {what}", hardware_id=hardware_id)
        self._timer = node.create_timer(1.0, report, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def publish(self, report: Report) -> None:
        """Publish a report, its floats with 6 digits, and what no callback could handle."""
        report = self._inbox.errors.with_counts(report)
        warnings = self._warnings()
        self._log_first(report.news)
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
        texts = self._disorder() + [
            f"{topic} of {', '.join(nodes)} is not heard: its quality of service is incompatible"
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
                more = "more of the kind are counted in /diagnostics"
                self._node.get_logger().warning(f"{kind}: {text}; {more}")


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
