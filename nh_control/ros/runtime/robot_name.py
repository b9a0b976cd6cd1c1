"""What a node's namespace says about the robot: its name, its frames, and its clock."""

from __future__ import annotations

from rclpy.node import Node

from nh_control.ros.runtime.parameters import Parameters

OF_NAMESPACE = "auto"
"""Value of `frame_prefix` that stands for the namespace's name and a slash."""
CLOCKS = {"namespace": "clock", "global": "/clock", "none": ""}
"""Topic of the time by the parameter `clock`."""


def full_name(node: Node) -> str:
    """The node's name after its namespace's, `robot1/plant`; without a namespace its name."""
    return node.get_fully_qualified_name().strip("/")


def frame_prefix(node: Node, parameters: Parameters) -> str:
    """What all frames of the robot begin with: by the parameter `frame_prefix`."""
    given = parameters["frame_prefix"]
    if given != OF_NAMESPACE:
        return given
    namespace = node.get_namespace().strip("/")
    return f"{namespace}/" if namespace else ""


def second_clock(node: Node, topic: str) -> list[str]:
    """A warning, if there are other publishers of the time on a topic to which this node publishes
    its own; "" is no topic.
    """
    if not topic:
        return []
    topic, own = node.resolve_topic_name(topic), node.get_fully_qualified_name()
    names = [
        f"{one.node_namespace.rstrip('/')}/{one.node_name}"
        for one in node.get_publishers_info_by_topic(topic)
    ]
    if own in names:
        names.remove(own)
    if not names:
        return []
    return [
        f"{topic} comes from {', '.join(sorted(names))} as well, and jumps for all who take it: "
        "give each robot its namespace, or this plant clock:=none"
    ]
