"""Malformed messages and requests at all topics and services of a running node."""

from __future__ import annotations

from collections import Counter
from importlib import import_module

from lifecycle_msgs.srv import ChangeState, GetState
from probe import ASK_AGAIN_S
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import (
    DescribeParameters,
    GetParameters,
    GetParameterTypes,
    SetParameters,
    SetParametersAtomically,
)
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_services_default
from rclpy.serialization import serialize_message

RCLError = rclpy_implementation.RCLError
PARAMETERS = ("speed_factor", "reference", "fault", "disturb", "use_sim_time", "no_such", "")
PARAMETER_KINDS = (*range(11), 211, 255)
TRANSITIONS = (0, 2, 10, 20, 60, 97, 98, 255)
"""Of lifecycle nodes, which those that are active do not make."""
SETTLED_S = 0.5
DDS_REQUESTS = QoSProfile(
    depth=qos_profile_services_default.depth, avoid_ros_namespace_conventions=True
)


def type_of(name: str) -> type:
    """The type of this name, `package/msg/Type`."""
    package, folder, kind = name.split("/")
    return getattr(import_module(f"{package}.{folder}"), kind)


class Attack:
    """Throws at the node `name` what a fuzzer makes of messages, those that are `right` by topic
    or empty ones, and of requests; `thrown` counts it by topic and service.
    """

    def __init__(self, probe, fuzzer, name: str, right: dict):
        self._probe, self.fuzzer, self.name, self.thrown = probe, fuzzer, name, Counter()
        node, self._right = probe.node, {f"/{topic}": message for topic, message in right.items()}
        probe.wait(lambda: name in probe.diagnostics, f"report of the {name}")
        probe.wait(lambda: name in node.get_node_names(), f"announcement of the {name}")
        listeners = self._discovered(node.get_subscriber_names_and_types_by_node)
        self._publishers = {
            topic: self._publisher(kind, topic) for topic, kind in listeners.items()
        }
        services, asked = node.get_service_names_and_types_by_node, f"/{name}/get_state"
        probe.wait(lambda: asked in dict(services(name, "/")), asked)
        kinds = self._discovered(services)
        self._clients = {topic: node.create_client(kind, topic) for topic, kind in kinds.items()}
        self._raw = {
            topic: node.create_publisher(kind.Request, f"rq{topic}Request", DDS_REQUESTS)
            for topic, kind in kinds.items()
        }
        self._kinds = kinds
        for client in self._clients.values():
            probe.wait(client.service_is_ready, client.srv_name)

    def _discovered(self, names_and_types) -> dict[str, type]:
        """Types by name of the node's services or subscriptions, once none has been discovered
        for SETTLED_S: the middleware announces them one by one.
        """
        known: dict = {}
        while not known or dict(names_and_types(self.name, "/")) != known:
            known = dict(names_and_types(self.name, "/"))
            self._probe.spin(SETTLED_S)
        return {name: type_of(kinds[0]) for name, kinds in known.items()}

    def _publisher(self, kind: type, topic: str):
        latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        publisher = self._probe.node.create_publisher(kind, topic, latched)
        self._probe.wait(publisher.get_subscription_count, f"listener of {topic}")
        return publisher

    def throw(self) -> int:
        """One malformed message at every topic and one request at every service, as values or as
        bytes; returns how many were sent.
        """
        before = self.thrown.total()
        for topic, publisher in self._publishers.items():
            message = self._right.get(topic) or publisher.msg_type()
            self.thrown[topic] += self._send(publisher, message)
        for topic, kind in self._kinds.items():
            request = self._request(kind)
            if self.fuzzer.chance(0.5):
                self.thrown[topic] += self._send(self._raw[topic], request)
            else:
                self._clients[topic].call_async(request)
                self.thrown[topic] += 1
        return self.thrown.total() - before

    def _send(self, publisher, message) -> bool:
        fuzzer = self.fuzzer
        data = fuzzer.garbled(serialize_message(message)) if fuzzer.chance(0.5) else None
        try:
            publisher.publish(fuzzer.wrong(message) if data is None else data)
        except RCLError:  # longer than any of its type
            return False
        return True

    def _request(self, kind: type):
        """A request that is wrong, but in its types; none that rightly ends a node."""
        fuzzer, request = self.fuzzer, kind.Request()
        if kind in (SetParameters, SetParametersAtomically):
            request.parameters = [self._parameter() for _ in range(fuzzer.pick((0, 1, 1, 3)))]
        elif kind is ChangeState:
            request.transition.id = fuzzer.pick(TRANSITIONS)
            request.transition.label = fuzzer.pick(("", "no such", "x" * 1000))
        elif kind in (GetParameters, GetParameterTypes, DescribeParameters):
            request.names = [fuzzer.pick(PARAMETERS) for _ in range(fuzzer.pick((0, 1, 3)))]
        else:
            return fuzzer.wrong(request)
        return request

    def _parameter(self) -> Parameter:
        fuzzer = self.fuzzer
        value = fuzzer.wrong(ParameterValue())
        value.type = fuzzer.pick(PARAMETER_KINDS)
        name = fuzzer.pick(PARAMETERS)
        if name == "speed_factor":  # a valid one lets the plant flood the test for minutes
            value.double_value, value.integer_value = -1.0, -1
        return Parameter(name=name, value=value)

    def forget(self) -> None:
        for client in self._clients.values():
            for future in list(client._pending_requests.values()):
                client.remove_pending_request(future)

    def answers(self) -> None:
        """Wait until all that was thrown is handled: every service answers a right request, and
        the working thread reports. A request may be lost in the flood, and is made again.
        """
        known = self._probe.diagnostics[self.name]
        self._probe.wait(lambda: self._probe.diagnostics[self.name] is not known, "report")
        self._probe.ask(self._clients[f"/{self.name}/get_state"], GetState.Request(), ASK_AGAIN_S)
        for topic, kind in self._kinds.items():
            if kind is not ChangeState:
                self._probe.ask(self._clients[topic], kind.Request(), ASK_AGAIN_S)
