"""A node in the test's process: it listens, sends once it is heard, and waits for conditions."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from lifecycle_msgs.srv import GetState
from nav_msgs.msg import Odometry
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSCompatibility, QoSProfile, qos_check_compatible
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState, MultiDOFJointState
from std_srvs.srv import SetBool, Trigger

TIMEOUT_S = 120.0
ASK_AGAIN_S = 1.0
POLL_S = 0.02
"""The only timeout of the executor: with another one it forgets what else was ready, and topics
with many messages keep it from those that were subscribed to later.
"""
SILENCE_S = 0.5
EVERYTHING = QoSProfile(depth=5000)


class Probe:
    """Keeps what the plant publishes and the last diagnostics of every node."""

    def __init__(self, domain: int):
        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
        self.context = Context()
        rclpy.init(context=self.context, domain_id=domain)
        self.node = rclpy.create_node("probe", context=self.context)
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        self.diagnostics: dict[str, DiagnosticStatus] = {}
        self._reported: dict[str, float] = {}
        self.node.create_subscription(
            DiagnosticArray, "/diagnostics", self._on_diagnostics, EVERYTHING
        )
        self.commands = self.listen(JointState, "joint_commands")
        self.clock = self.listen(Clock, "/clock")
        self.odometry = self.listen(Odometry, "odom")
        self.joint_states = self.listen(JointState, "joint_states")
        self.bodies = self.listen(MultiDOFJointState, "multi_dof_joint_states")
        triggers = ("reset", "reset_state", "step", "save_state", "load_state")
        kinds = {"pause": SetBool, **dict.fromkeys(triggers, Trigger)}
        self._clients = {
            name: self.node.create_client(kind, f"/plant/{name}") for name, kind in kinds.items()
        }

    def close(self) -> None:
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)

    # Listening

    def listen(self, message_type: type, topic: str, qos=EVERYTHING) -> list:
        received: list = []
        self.node.create_subscription(message_type, topic, received.append, qos)
        return received

    def clear(self) -> None:
        for received in (self.joint_states, self.odometry, self.bodies, self.commands, self.clock):
            received.clear()

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            name = status.name.split(":")[0]
            self.diagnostics[name], self._reported[name] = status, time_ns(message) * 1e-9

    def values(self, node: str = "plant") -> dict[str, str]:
        known = self.diagnostics.get(node)
        return {pair.key: pair.value for pair in known.values} if known else {}

    def message(self, node: str = "plant") -> str:
        return self.diagnostics[node].message if node in self.diagnostics else ""

    # Waiting

    def spin(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._executor.spin_once(timeout_sec=POLL_S)

    def wait(self, condition: Callable[[], object], what: str, timeout_s: float = TIMEOUT_S):
        """Spin until the condition holds; returns its value. Fails the test after the timeout."""
        deadline = time.monotonic() + timeout_s
        while not (value := condition()):
            assert time.monotonic() < deadline, (
                f"no {what} within {timeout_s} s; diagnostics: {self.diagnostics}"
            )
            self._executor.spin_once(timeout_sec=POLL_S)
        return value

    def wait_silence(self, received: list) -> None:
        known = -1
        while known != len(received):
            known = len(received)
            self.spin(SILENCE_S)

    def wait_mode(self, mode: str) -> None:
        self.wait_value("mode", mode)

    def wait_value(self, key: str, value: str, node: str = "plant") -> None:
        """Wait until the diagnostics of a node have this value."""
        self.wait(lambda: self.values(node).get(key) == value, f"{key} = {value}")

    def wait_step(self, step: int, h: float) -> None:
        """Wait until both messages of the state of this step are there."""
        for received in (self.joint_states, self.odometry):
            self._wait_time(received, step, h)

    def wait_bodies(self, step: int, h: float) -> MultiDOFJointState:
        """Wait for the state of bodies in space of this step or later."""
        return self._wait_time(self.bodies, step, h)

    def wait_clock(self, step: int, h: float) -> None:
        self._wait_time(self.clock, step, h)

    def wait_command(self, step: int, h: float) -> JointState:
        """Wait for the command that answers the state of this step."""
        return self.wait(lambda: by_step(self.commands, h).get(step), f"command {step}")

    def _wait_time(self, received: list, step: int, h: float):
        """Wait for a message of this step or later, and return the last one."""
        late = lambda: received and time_ns(received[-1]) >= round(step * h * 1e9)  # noqa: E731
        self.wait(late, f"message of step {step}")
        return received[-1]

    def require_rate(self, steps_per_second: float, relative: float, seconds: float) -> None:
        """Spin until a running plant has made, or missed, this many steps per second of its wall
        time for this long (s). A late step may lose less than a period more than it misses.
        """

        def report() -> tuple[float, int, int]:
            known = self.diagnostics.get("plant")
            self.wait(
                lambda: (
                    self.diagnostics.get("plant") is not known and int(self.values()["step"]) > 20
                ),
                "report of a running plant",
            )
            values = self.values()
            return self._reported["plant"], int(values["step"]), int(values["missed_steps"])

        begin, first, before = report()
        end = begin
        while end < begin + seconds:
            end, last, missed = report()
        steps, missed = last - first, missed - before
        due = steps_per_second * (end - begin)
        assert steps + missed <= due * (1 + relative), (steps, missed, due)
        assert steps + missed + min(steps, missed) >= due * (1 - relative), (steps, missed, due)

    # Meeting others before something is sent

    def meet(self, node: str) -> None:
        """Wait until a node has found all clients that were made here: a request that comes before
        that is served, but its answer is lost.
        """
        newcomer = self.node.create_client(GetState, f"{node}/get_state")
        self._answer(newcomer, GetState.Request(), ASK_AGAIN_S)
        self.node.destroy_client(newcomer)

    def wait_publishers(self, *topics: str) -> None:
        """Wait until other nodes publish the topics and have found all subscriptions made here."""
        for topic in topics:
            publishers = self.wait(lambda topic=topic: self._publishers(topic), f"{topic}")
            for node in publishers:
                self.meet(node)

    def _publishers(self, topic: str) -> set[str]:
        """Full names of the other nodes that publish a topic; none while a name is not known."""
        infos = self.node.get_publishers_info_by_topic(self.node.resolve_topic_name(topic))
        names = {f"{info.node_namespace.rstrip('/')}/{info.node_name}" for info in infos}
        return set() if any("UNKNOWN" in name for name in names) else names - {"/probe"}

    def heard_publisher(self, message_type: type, topic: str, qos=10):
        publisher = self.node.create_publisher(message_type, topic, qos)
        own = sum(
            one.topic_name == publisher.topic_name
            and qos_check_compatible(publisher.qos_profile, one.qos_profile)[0]
            != QoSCompatibility.ERROR
            for one in self.node.subscriptions
        )
        self.wait(lambda: publisher.get_subscription_count() > own, f"listener of {topic}")
        return publisher

    def send_until(self, condition: Callable[[], object], publisher, message, what: str):
        """Publish a message, again every ASK_AGAIN_S, until the condition holds."""
        due = 0.0

        def sent():
            nonlocal due
            if time.monotonic() >= due:
                due = time.monotonic() + ASK_AGAIN_S
                publisher.publish(message)
            return condition()

        return self.wait(sent, what)

    # Asking

    def reset(self) -> None:
        """Reset the plant, and forget what it published before its first state."""
        told = [m for m in (self.joint_states, self.odometry, self.bodies) if m]
        self.clear()
        assert self.call("reset").success
        for received in told:
            self.wait(lambda r=received: any(time_ns(m) == 0 for m in r), "first state")
            del received[: [time_ns(m) for m in received].index(0)]

    def set(self, node: str, **values) -> str:
        """Set parameters of a node; returns why not, or nothing. `__` stands for a dot."""
        client = self.node.create_client(
            SetParametersAtomically, f"/{node}/set_parameters_atomically"
        )
        given = [Parameter(k.replace("__", "."), value=v) for k, v in values.items()]
        request = SetParametersAtomically.Request(
            parameters=[parameter.to_parameter_msg() for parameter in given]
        )
        result = self.ask(client, request).result
        return "" if result.successful else result.reason

    def call(self, service: str, data: bool | None = None, again_s=math.inf):
        """Call a service of the plant (with data: a SetBool), see `ask`."""
        request = Trigger.Request() if data is None else SetBool.Request(data=data)
        return self.ask(self._clients[service], request, again_s)

    def ask(self, client, request, again_s=math.inf):
        """The first response of a service, which is asked again every `again_s`."""
        self.wait(client.service_is_ready, f"service {client.srv_name}")
        self.meet(client.srv_name.rpartition("/")[0])
        return self._answer(client, request, again_s)

    def _answer(self, client, request, again_s: float):
        """The first response of a service that is asked until it has answered."""
        asked_at, answers = -math.inf, []

        def answered() -> bool:
            nonlocal asked_at
            due = not answers or time.monotonic() > asked_at + again_s
            if due and client.service_is_ready():
                asked_at = time.monotonic()
                answers.append(client.call_async(request))
            return any(answer.done() for answer in answers)

        self.wait(answered, f"answer of {client.srv_name}")
        return next(answer for answer in answers if answer.done()).result()


def latched() -> QoSProfile:
    """The quality of service with which the last message is had by those who come late."""
    return QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def time_ns(message) -> int:
    stamp = message.clock if isinstance(message, Clock) else message.header.stamp
    return stamp.sec * 10**9 + stamp.nanosec


def by_step(messages: list, h: float) -> dict[int, object]:
    return {round(time_ns(m) * 1e-9 / h): m for m in messages}
