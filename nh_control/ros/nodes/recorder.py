"""The recorder node. It writes topics to a rosbag2 recording in MCAP format, for `ros2 bag play`
and Foxglove, and it needs no ROS installation.
"""

from __future__ import annotations

import sys
import time
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
"""Length of a topic's queue in the middleware. The node empties the queue at once."""
COMMANDS, POLL_S = "joint_commands", 0.05
"""The command topic, and the time between checks for its publisher."""
LATCHED = ("reference", "reference_start")
OUTSIDE_RUNS = ("diagnostics", "clock")
"""Topics, in any namespace, whose messages do not show that a run has begun."""
TRANSFORMS = "/tf:tf2_msgs/msg/TFMessage"


class Recorder:
    """Writes messages as bytes, with the node's time (simulation time if use_sim_time is set). Its
    subscriptions to hardware states and contact forces are best-effort.

    If the recorder can no longer write, for example because the disk is full, the node exits and
    the recording so far remains.
    """

    def __init__(self, node: Node, inbox: Inbox, exit_: process.Exit):
        parameters = Parameters(node, RECORDER)
        self._inbox, self._node, scenario = inbox, node, find_scenario(parameters)
        self._exit, self._reported = exit_, 0
        self._await_commands_s = parameters["await_commands_s"]
        topics = parameters["topics"] or [
            *(f"{topic}:{message}" for topic, message in recorded(scenario).items()),
            *([TRANSFORMS] if _installed("tf2_msgs") else []),
        ]
        # raises before the folder is created
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
        # subscribe to the states last, because this subscription lets the plant start
        self._late: list[Callable[[], None]] = []
        for topic, type_name, message_type in sorted(types, key=lambda entry: entry[0] in shown):
            # subscriptions have the publishers' quality of service, to receive latched messages
            latched, name = topic in LATCHED, node.resolve_topic_name(topic)
            heard = quality(parameters["source"] if topic in sensed else "simulation", QUEUE)
            if latched:
                heard.durability = DurabilityPolicy.TRANSIENT_LOCAL
            sink = self._sink(self._writer.topic(name, type_name, latched))
            subscribe = partial(inbox.subscribe, message_type, topic, sink, heard, raw=True)
            if topic in shown and self._await_commands_s:
                self._late.append(subscribe)
            else:
                subscribe()
        node.get_logger().info(f"recording {', '.join(topic for topic, *_ in types)} to {path}")
        self._diagnostics = Diagnostics(node, inbox, "recording", scenario.name, self._make_report)

    def work(self) -> None:
        """Write messages. While `joint_commands` has no publisher, states are not recorded."""
        if self._late:
            self._await_commands()
        self._inbox.run()

    def _await_commands(self) -> None:
        """Subscribe to the states once commands have a publisher, or after the maximum wait."""
        topic, log = self._node.resolve_topic_name(COMMANDS), self._node.get_logger()
        deadline = time.monotonic() + self._await_commands_s
        while not self._inbox.closed and time.monotonic() < deadline:
            if self._node.get_publishers_info_by_topic(topic):
                break
            self._inbox.serve(POLL_S)
        else:
            if not self._inbox.closed:
                log.warning(f"no publisher of {topic} after {self._await_commands_s:g} s")
        for subscribe in self._late:
            subscribe()

    def close(self) -> None:
        """Write the messages that have arrived and close the recording."""
        # serve until no more messages arrive
        before = -1
        while (count := self._received) != before:
            before = count
            self._inbox.serve(0.0)
        # the log tells whether the recording is complete
        writer, log = self._writer, self._node.get_logger()
        writer.close()
        text = f"recorded {writer.taken.total()} messages to {writer.path}"
        if writer.error is not None:
            log.error(f"{text}, {writer.lost.total()} could not be written: {writer.error}")
        elif writer.lost:
            log.warning(f"{text}, {writer.lost.total()} arrived faster than they could be written")
        else:
            log.info(text)

    def _on_failure(self, error: Exception) -> None:
        """End the node after a disk error, and raise any other error in the node. Called in the
        writing thread.
        """
        if isinstance(error, OSError):
            self._exit.request(code=NOT_RECORDED)
        else:
            self._exit.request(error)

    def _make_report(self) -> Report:
        counts, lost = self._writer.taken, self._writer.lost
        # clock and diagnostics messages arrive even without a run
        begun = any(
            count for topic, count in counts.items() if topic.rsplit("/")[-1] not in OUTSIDE_RUNS
        )
        level, text = ("ok", "recording") if begun else ("warn", "waiting for messages")
        if lost.total() > self._reported:
            text = f"{lost.total() - self._reported} messages could not be written in time"
            level, self._reported = "error", lost.total()
        values = {"messages": counts.total(), "lost": lost.total(), **counts}
        values |= {f"lost: {topic}": count for topic, count in lost.items()}
        return Report(level, text, values)

    @property
    def _received(self) -> int:
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
    """Topic, type name and type from `topic:package/msg/Type`. Raises UsageError."""
    name, _, type_name = topic.partition(":")
    parts = type_name.split("/")
    if not name or len(parts) != 3:
        raise process.UsageError(
            f"parameter 'topics': {topic!r} does not have the form name:package/msg/Type"
        )
    try:
        return name, type_name, getattr(import_module(f"{parts[0]}.{parts[1]}"), parts[2])
    except (ImportError, AttributeError) as error:
        raise process.UsageError(
            f"parameter 'topics': no message type {type_name} ({error}); is its package installed?"
        ) from error


main = partial(process.run, "recorder", Recorder)
"""`main(args)` runs the node and returns the exit code."""

if __name__ == "__main__":
    sys.exit(main())
