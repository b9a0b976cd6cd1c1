"""The recorder node: it writes topics to a rosbag2 recording in MCAP, for `ros2 bag play` and
Foxglove, without a ROS installation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy
from rosbags.rosbag2 import WriterError

from nh_control.loop.reports import Report
from nh_control.ros.messages.diagnostics import Diagnostics
from nh_control.ros.messages.state_reader import quality
from nh_control.ros.runtime import process
from nh_control.ros.runtime.declared import RECORDER
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.parameters import Parameters
from nh_control.ros.runtime.selected_model import find_scenario
from nh_control.runs.bag_writer import BagWriter
from nh_control.runs.node_process import NOT_RECORDED
from nh_control.runs.topics import contacts, recorded, states

QUEUE = 1000
"""Queue of a topic in the middleware; it is emptied at once."""
LATCHED = ("reference", "reference_start")
TOLD_BY_ALL = ("diagnostics", "clock")
"""Topics that do not belong to a run, in any namespace."""
TRANSFORMS = "/tf:tf2_msgs/msg/TFMessage"


class Recorder:
    """Writes messages as bytes, at the node's time (simulation time with use_sim_time). It
    subscribes to states and forces of contacts of hardware as best-effort.

    If it cannot write any more, for example on a full disk, it ends, and the written part stays.
    """

    def __init__(self, node: Node, inbox: Inbox, exit_: process.Exit):
        parameters = Parameters(node, RECORDER)
        self._inbox, self._node, scenario = inbox, node, find_scenario(parameters)
        self._exit, self._reported = exit_, 0
        topics = parameters["topics"] or [
            *(f"{topic}:{message}" for topic, message in recorded(scenario).items()),
            *([TRANSFORMS] if _installed("tf2_msgs") else []),
        ]
        types = [_parse(topic) for topic in topics]
        path = Path(parameters["output"]).expanduser().absolute()
        try:
            self._writer = BagWriter(path, parameters["compression"] == "zstd", self._on_failure)
        except (WriterError, OSError) as error:
            raise process.UsageError(
                f"cannot record to {path}: {error} Remove it, or choose another folder with the "
                f"parameter 'output'."
            ) from error
        shown, touched = states(scenario), contacts(scenario.make_system(scenario.parameters))
        sensed = {*shown, *touched.values()}
        # a plant waits for the states' subscriber: all others first
        for topic, type_name, message_type in sorted(types, key=lambda entry: entry[0] in shown):
            latched, name = topic in LATCHED, node.resolve_topic_name(topic)
            heard = quality(parameters["source"] if topic in sensed else "simulation", QUEUE)
            if latched:
                heard.durability = DurabilityPolicy.TRANSIENT_LOCAL
            take = self._writer.topic(name, type_name, latched)
            inbox.subscribe(message_type, topic, self._sink(take), heard, raw=True)
        node.get_logger().info(f"recording {', '.join(topic for topic, *_ in types)} to {path}")
        self._diagnostics = Diagnostics(node, inbox, "recording", scenario.name, self._make_report)

    def work(self) -> None:
        """Write messages."""
        self._inbox.run()

    def close(self) -> None:
        """Write the messages that have arrived and close the recording."""
        before = -1
        while (count := self._came) != before:
            before = count
            self._inbox.serve(0.0)
        writer, log = self._writer, self._node.get_logger()
        writer.close()
        text = f"recorded {writer.taken.total()} messages to {writer.path}"
        if writer.error is not None:
            log.error(f"{text}, {writer.lost.total()} could not be written: {writer.error}")
        elif writer.lost:
            log.warning(f"{text}, {writer.lost.total()} came faster than they could be written")
        else:
            log.info(text)

    def _on_failure(self, error: Exception) -> None:
        """In the writing thread: an error of the disk ends the node; any other error is raised in
        the node.
        """
        if isinstance(error, OSError):
            self._exit.request(code=NOT_RECORDED)
        else:
            self._exit.request(error)

    def _make_report(self) -> Report:
        counts, lost = self._writer.taken, self._writer.lost
        begun = any(
            count for topic, count in counts.items() if topic.rsplit("/")[-1] not in TOLD_BY_ALL
        )
        level, text = ("ok", "recording") if begun else ("warn", "waiting for messages")
        if lost.total() > self._reported:
            text = f"{lost.total() - self._reported} messages could not be written in time"
            level, self._reported = "error", lost.total()
        values = {"messages": counts.total(), "lost": lost.total(), **counts}
        values |= {f"lost: {topic}": count for topic, count in lost.items()}
        return Report(level, text, values)

    @property
    def _came(self) -> int:
        return self._writer.taken.total() + self._writer.lost.total()

    def _sink(self, take: Callable[[int, bytes], None]) -> Callable[[bytes], None]:
        now = self._node.get_clock().now
        return lambda data: take(now().nanoseconds, data)


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


main = partial(process.run, "recorder", Recorder)
"""Run the node, `main(args)`; returns the exit code."""

if __name__ == "__main__":
    sys.exit(main())
