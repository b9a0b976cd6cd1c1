"""Diagnostics of other nodes, received from /diagnostics."""

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
"""Times after which a node that sends no messages is considered silent, and after which it is
forgotten.
"""
NODES = 16


@dataclass(frozen=True)
class NodeStatus:
    """The last status of a node: its level ("ok", "warn" or "error"), text, values and hardware,
    and the time at which it arrived (s).
    """

    level: str = ""
    message: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    hardware: str = ""
    time_s: float = 0.0


class HeardNodes:
    """The last statuses of the nodes in the namespace of `node`, by node name. Thread-safe."""

    def __init__(self, node: Node, inbox: Inbox):
        self._namespace = node.get_namespace().strip("/")
        self._node_name, self._changed = node.get_name(), threading.Condition()
        self._statuses: dict[str, NodeStatus] = {}
        inbox.subscribe(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)

    def of(self, name: str) -> NodeStatus:
        """The last status of a node, which is empty if no message has arrived."""
        with self._changed:
            return self._statuses.get(name, NodeStatus())

    def wait(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until the diagnostics meet the condition. Returns False after the timeout."""
        with self._changed:
            return self._changed.wait_for(condition, timeout_s)

    def statuses(self, now_s: float) -> list[tuple[str, str, str]]:
        """Name, level and message of every node. A silent node is reported as an error."""
        with self._changed:
            statuses = sorted(self._statuses.items())
        return [
            (name, status.level, status.message)
            if now_s - status.time_s <= SILENT_S
            else (name, "error", f"silent for {now_s - status.time_s:.0f} s")
            for name, status in statuses
        ]

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        now = time.monotonic()
        with self._changed:
            for status in message.status:
                name = self._local(status.name.partition(":")[0])
                # keep at most NODES entries, whatever is published
                if name and (name in self._statuses or len(self._statuses) < NODES):
                    self._statuses[name] = NodeStatus(
                        LEVELS.get(status.level, "error"),
                        status.message,
                        {pair.key: pair.value for pair in status.values},
                        status.hardware_id,
                        now,
                    )
            gone = [n for n, status in self._statuses.items() if now - status.time_s > GONE_S]
            for name in gone:
                del self._statuses[name]
            self._changed.notify_all()

    def _local(self, name: str) -> str:
        """The name within the namespace, or "" for nodes in other namespaces and for this node."""
        space, _, local = name.strip("/").rpartition("/")
        return local if space == self._namespace and local != self._node_name else ""
