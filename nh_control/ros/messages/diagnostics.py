"""Diagnostics: a status of readable key-value pairs on /diagnostics."""

from __future__ import annotations

from collections.abc import Callable

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

from nh_control.ros.loop.report import Report

_LEVELS = {
    "ok": DiagnosticStatus.OK,
    "warn": DiagnosticStatus.WARN,
    "error": DiagnosticStatus.ERROR,
}


class Diagnostics:
    """Publishes one status, `<node>: <what>`, of the hardware `hardware_id`; calls `report` every
    second of wall time, which should do that.
    """

    def __init__(self, node: Node, what: str, hardware_id: str, report: Callable[[], None]):
        self._node = node
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._status = DiagnosticStatus(name=f"{node.get_name()}: {what}", hardware_id=hardware_id)
        self._timer = node.create_timer(1.0, report, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def publish(self, report: Report) -> None:
        """Publish a report, its floats with 6 digits."""
        self._status.level, self._status.message = _LEVELS[report.level], report.message
        self._status.values = [
            KeyValue(key=key, value=_text(value)) for key, value in report.values.items()
        ]
        array = DiagnosticArray(status=[self._status])
        array.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(array)


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
