"""Diagnostics of other nodes, from /diagnostics."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node

from nh_control.ros.runtime.inbox import Inbox

LEVELS = {
    DiagnosticStatus.OK: "ok",
    DiagnosticStatus.WARN: "warn",
    DiagnosticStatus.ERROR: "error",
}
SILENT_S, GONE_S = 3.0, 60.0
"""Time after which a node that says nothing is called silent, and after which it is forgotten."""
NODES = 16


@dataclass(frozen=True)
class Said:
    """The last status of a node: "ok", "warn" or "error", with text and values, its hardware, and
    the time in s.
    """

    level: str = ""
    message: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    hardware: str = ""
    time_s: float = 0.0


class HeardNodes:
    """The nodes in the namespace of `node`, by their names in it; for any thread."""

    def __init__(self, node: Node, inbox: Inbox):
        self._namespace = node.get_namespace().strip("/")
        self._own, self._changed = node.get_name(), threading.Condition()
        self._said: dict[str, Said] = {}
        inbox.subscribe(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)

    def of(self, name: str) -> Said:
        """The last diagnostics of a node; empty if it has not been heard."""
        with self._changed:
            return self._said.get(name, Said())

    def wait(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until the diagnostics meet the condition; returns whether they did."""
        with self._changed:
            return self._changed.wait_for(condition, timeout_s)

    def statuses(self, now_s: float) -> list[tuple[str, str, str]]:
        """Name, level and message of every node; a silent node is an error."""
        with self._changed:
            heard = sorted(self._said.items())
        return [
            (name, one.level, one.message)
            if now_s - one.time_s <= SILENT_S
            else (name, "error", f"silent for {now_s - one.time_s:.0f} s")
            for name, one in heard
        ]

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        now = time.monotonic()
        with self._changed:
            for status in message.status:
                name = self._local(status.name.partition(":")[0])
                if name and (name in self._said or len(self._said) < NODES):
                    self._said[name] = Said(
                        LEVELS.get(status.level, "error"),
                        status.message,
                        {pair.key: pair.value for pair in status.values},
                        status.hardware_id,
                        now,
                    )
            gone = [name for name, one in self._said.items() if now - one.time_s > GONE_S]
            for name in gone:
                del self._said[name]
            self._changed.notify_all()

    def _local(self, name: str) -> str:
        """The name in the namespace, "" of a node elsewhere and of this one."""
        space, _, local = name.strip("/").rpartition("/")
        return local if space == self._namespace and local != self._own else ""
