"""The recorder node: topics to a rosbag2 recording in MCAP, which `ros2 bag play` and Foxglove
open; no ROS installation needed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rosbags.interfaces import (
    Connection,
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import StoragePlugin, Writer, WriterError
from rosbags.typesys import Stores, get_typestore

from nh_control.ros.loop.report import Report
from nh_control.ros.messages.diagnostics import Diagnostics
from nh_control.ros.runtime import process
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.model import chosen
from nh_control.ros.runtime.parameters import RECORDER, Parameters
from nh_control.runs.topics import recorded, states

QUEUE = 5000
RELIABLE, BEST_EFFORT = ReliabilityPolicy.RELIABLE, ReliabilityPolicy.BEST_EFFORT
LATCHED = ("reference",)
TOLD_BY_ALL = ("diagnostics", "clock")
"""Topics that say nothing of a run, in any namespace."""
TRANSFORMS = "/tf:tf2_msgs/msg/TFMessage"


class Recorder:
    """Writes messages as they come, unread, at the node's time (simulation time with
    use_sim_time). The states of hardware may come from publishers that are best-effort.
    """

    def __init__(self, node: Node, inbox: Inbox, _: process.Exit):
        parameters = Parameters(node, RECORDER)
        self._inbox, self._node, scenario = inbox, node, chosen(parameters)
        topics = parameters["topics"] or [
            *(f"{topic}:{message}" for topic, message in recorded(scenario).items()),
            *([TRANSFORMS] if _installed("tf2_msgs") else []),
        ]
        types = [_parse(topic) for topic in topics]
        path = Path(parameters["output"]).expanduser().absolute()
        try:
            self._writer = Writer(path, version=9, storage_plugin=StoragePlugin.MCAP)
            self._writer.open()
        except (WriterError, OSError) as error:
            raise process.UsageError(
                f"cannot record to {path}: {error} Remove it, or choose another folder with the "
                f"parameter 'output'."
            ) from error
        store = get_typestore(Stores.LATEST)
        shown, hardware = states(scenario), parameters["source"] == "hardware"
        # a plant waits for the states' subscriber: all others first
        for topic, type_name, message_type in sorted(types, key=lambda entry: entry[0] in shown):
            latched = topic in LATCHED
            durability = DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE
            name = node.resolve_topic_name(topic)
            connection = self._writer.add_connection(
                name, type_name, typestore=store, offered_qos_profiles=[_offered(latched)]
            )
            inbox.subscribe(
                message_type,
                topic,
                self._sink(connection),
                QoSProfile(
                    depth=QUEUE,
                    durability=durability,
                    reliability=BEST_EFFORT if hardware and topic in shown else RELIABLE,
                ),
                raw=True,
            )
        node.get_logger().info(f"recording {', '.join(topic for topic, *_ in types)} to {path}")
        self._diagnostics = Diagnostics(
            node, inbox, "recording", scenario.name, lambda: inbox.post(self._publish_report)
        )

    def work(self) -> None:
        """Write messages."""
        self._inbox.run()

    def close(self) -> None:
        """Write what has arrived and close the recording."""
        before = -1
        while (count := self._count) != before:
            before = count
            self._inbox.serve(0.0)
        self._writer.close()
        self._node.get_logger().info(f"recorded {self._count} messages to {self._writer.path}")

    def _publish_report(self) -> None:
        counts = {c.topic: self._writer.counts[c.id] for c in self._writer.connections}
        begun = any(
            count for topic, count in counts.items() if topic.rsplit("/")[-1] not in TOLD_BY_ALL
        )
        level, text = ("ok", "recording") if begun else ("warn", "waiting for messages")
        self._diagnostics.publish(Report(level, text, {"messages": self._count, **counts}))

    @property
    def _count(self) -> int:
        return sum(self._writer.counts.values())

    def _sink(self, connection: Connection) -> Callable[[bytes], None]:
        now = self._node.get_clock().now

        def write(data: bytes) -> None:
            self._writer.write(connection, now().nanoseconds, data)

        return write


def _installed(package: str) -> bool:
    try:
        import_module(package)
    except ImportError:
        return False
    return True


def _parse(topic: str) -> tuple[str, str, type]:
    """Topic, type's name and type of `topic:package/msg/Type`; raises UsageError."""
    name, _, type_name = topic.partition(":")
    parts = type_name.split("/")
    if not name or len(parts) != 3:
        raise process.UsageError(
            f"parameter 'topics': {topic!r} is not of the form name:package/msg/Type"
        )
    try:
        return name, type_name, getattr(import_module(f"{parts[0]}.{parts[1]}"), parts[2])
    except (ImportError, AttributeError) as error:
        raise process.UsageError(
            f"parameter 'topics': no message type {type_name} ({error}); is its package installed?"
        ) from error


def _offered(latched: bool) -> Qos:
    """The quality of service that a player of the recording offers."""
    durability = QosDurability.TRANSIENT_LOCAL if latched else QosDurability.VOLATILE
    never = QosTime(2147483647, 4294967295)
    return Qos(
        QosHistory.KEEP_LAST,
        10,
        QosReliability.RELIABLE,
        durability,
        never,
        never,
        QosLiveliness.AUTOMATIC,
        never,
        False,
    )


def main(args: list[str] | None = None) -> int:
    """Run the node; returns the exit code."""
    return process.run("recorder", Recorder, args)


if __name__ == "__main__":
    sys.exit(main())
