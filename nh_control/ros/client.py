"""Nodes, services and topics of a domain, for users without the `ros2` command."""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from std_srvs.srv import SetBool, Trigger

POLL_S = 0.05
SETTLED_S = 3.5
"""All nodes in a domain are assumed to be known if nothing new appears for this time. Fast DDS
repeats the announcement of a participant every 3 s, and a busy machine misses the first ones.
"""
NO_NAME = "_NODE_NAME_UNKNOWN_"
"""Node name that rmw reports for a publisher if its participant has not announced its nodes yet.
"""


class NoNode(RuntimeError):
    """No node offers the service or publishes the topic. The message lists the existing ones."""


class Client:
    """A short-lived node in a DDS domain on this machine, used as a context manager. Names are
    relative to `namespace`, and no wait takes longer than `timeout_s`.
    """

    def __init__(self, domain: int, namespace: str = "", timeout_s: float = 10.0):
        # discover only nodes on this machine
        os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        self.domain, self._namespace, self._timeout_s = domain, namespace, timeout_s

    def __enter__(self) -> Client:
        self._context = Context()
        no_signals = SignalHandlerOptions.NO
        rclpy.init(context=self._context, domain_id=self.domain, signal_handler_options=no_signals)
        self._node = Node("nh_control", context=self._context, namespace=self._namespace)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown()
        self._node.destroy_node()
        self._context.try_shutdown()

    def call(self, service: str, on: bool | None = None) -> tuple[bool, str]:
        """Call a service, and return whether it succeeded and its message. `on` is the value for a
        SetBool service, and None for a Trigger service. Raises NoNode.
        """
        service = self._node.resolve_service_name(service)
        kind: Any = Trigger if on is None else SetBool
        client: Any = self._node.create_client(kind, service)
        if not self._wait(client.service_is_ready):
            raise NoNode(self._nobody("offers", service, self.services()))
        # the service exists, so send the request and serve the node until the answer arrives
        request = Trigger.Request() if on is None else SetBool.Request(data=on)
        future = client.call_async(request)
        if not self._wait(future.done):
            raise NoNode(f"{service} did not answer in {self._timeout_s:g} s")
        response: Any = future.result()
        return response.success, response.message

    def echo(self, topic: str, count: int = 0) -> Iterator[dict[str, Any]]:
        """Yield `count` messages of a topic as plain values, or endlessly if `count` is 0. Raises
        NoNode if no node publishes the topic.
        """
        topic = self._node.resolve_topic_name(topic)
        if not self._wait(lambda: self._node.count_publishers(topic) > 0):
            raise NoNode(self._nobody("publishes", topic, self.topics()))
        publisher = self._node.get_publishers_info_by_topic(topic)[0]
        package, _, kind = publisher.topic_type.partition("/msg/")
        # a subscription that requests more than the publisher offers would receive nothing
        qos = QoSProfile(
            depth=10,
            reliability=publisher.qos_profile.reliability,
            durability=publisher.qos_profile.durability,
        )
        received: list[Any] = []
        message_type = getattr(import_module(f"{package}.msg"), kind)
        self._node.create_subscription(message_type, topic, received.append, qos)
        # messages are yielded in order, and the subscription queues those that arrive meanwhile
        shown = 0
        while not count or shown < count:
            if not self._wait(lambda: bool(received)):
                raise NoNode(f"{topic} was silent for {self._timeout_s:g} s")
            yield plain(received.pop(0))
            shown += 1

    def settle(self) -> None:
        """Wait until no more new nodes, topics or services appear."""
        began = since = time.monotonic()
        known = (0, 0, 0)
        while time.monotonic() < began + self._timeout_s:
            self._executor.spin_once(POLL_S)
            nodes = len(self._node.get_node_names())
            seen = nodes, len(self.topics()), len(self.services())
            if seen != known:
                known, since = seen, time.monotonic()
            # the nodes include this one, and a publisher with an unnamed node is not announced yet
            settled = nodes > 1 and time.monotonic() > since + SETTLED_S
            if settled and NO_NAME not in self._publishers():
                return

    def nodes(self) -> list[str]:
        """The full names of all other nodes."""
        nodes = self._node.get_node_names_and_namespaces()
        names = [f"{namespace.rstrip('/')}/{name}" for name, namespace in nodes]
        names.remove(self._node.get_fully_qualified_name())
        return sorted(names)

    def topics(self) -> list[str]:
        """The topics of all nodes."""
        return sorted(name for name, _ in self._node.get_topic_names_and_types())

    def _publishers(self) -> set[str]:
        """The names of the nodes that publish a topic."""
        by_topic = map(self._node.get_publishers_info_by_topic, self.topics())
        return {publisher.node_name for publishers in by_topic for publisher in publishers}

    def services(self) -> list[str]:
        """The Trigger and SetBool services of all nodes, including this package's nodes."""
        kinds = {"std_srvs/srv/Trigger", "std_srvs/srv/SetBool"}
        services = self._node.get_service_names_and_types()
        return sorted(name for name, types in services if kinds & {*types})

    def _nobody(self, does: str, name: str, others: list[str]) -> str:
        # this node's client or query has added `name` to the graph
        known = ", ".join(other for other in others if other != name)
        there = f"; there are {known}" if known else ""
        return f"no node {does} {name} in the DDS domain {self.domain}{there}"

    def _wait(self, condition: Callable[[], bool]) -> bool:
        """Serve the node until the condition holds. Returns False if it does not hold in time."""
        deadline = time.monotonic() + self._timeout_s
        while not condition():
            if time.monotonic() > deadline:
                return False
            self._executor.spin_once(POLL_S)
        return True


def plain(value: Any) -> Any:
    """A message as mappings, lists, numbers and strings. A byte becomes a number."""
    if hasattr(value, "get_fields_and_field_types"):
        return {name: plain(getattr(value, name)) for name in value.get_fields_and_field_types()}
    if isinstance(value, list | tuple | array | np.ndarray):
        return [plain(item) for item in value]
    return int.from_bytes(value, "big") if isinstance(value, bytes) else value
