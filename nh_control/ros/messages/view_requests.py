"""Requests of a live page, made through the same services and topics as by other nodes: plant and
tracker accept or refuse them, and the page shows the reason.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, WrenchStamped
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.client import Client
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.task import Future
from std_srvs.srv import SetBool, Trigger

from nh_control.mechanics.external_forces import FORCE, in_space
from nh_control.mechanics.system import System
from nh_control.ros.messages import conversions
from nh_control.ros.messages.heard_nodes import HeardNodes
from nh_control.ros.messages.state_codecs import BodyCodec, Codec
from nh_control.ros.runtime.inbox import Inbox
from nh_control.scenarios import Scenario
from nh_control.view.live_requests import Asked
from nh_control.view.live_server import Answer

ANSWER_S = 15.0
"""Time that a plant or a tracker has to answer."""
OF_PLANT: dict[str, dict[str, Any]] = {
    "Pause plant": {"name": "pause", "on": True},
    "Resume": {"name": "pause", "on": False},
    "Step": {"name": "step"},
    "Reset": {"name": "reset"},
}
OF_HARDWARE: dict[str, dict[str, Any]] = {
    "Arm": {"name": "arm", "on": True},
    "Disarm": {"name": "arm", "on": False},
}
SERVICES: dict[str, tuple[Any, str]] = {
    "pause": (SetBool, "plant/pause"),
    "step": (Trigger, "plant/step"),
    "reset": (Trigger, "plant/reset"),
    "arm": (SetBool, "tracker/arm"),
    "change": (SetParametersAtomically, "plant/set_parameters_atomically"),
}
CHANGES: dict[str, Callable[[str], Any]] = {
    "speed_factor": float,
    "fault": str.split,
    "disturb": str.split,
}
"""Parameters of a plant that a page changes, with the value that a text stands for."""


class Unanswered(Exception):
    """A service does not exist or does not answer."""


class ViewRequests:
    """Answers a page's requests, in a thread that may wait. `offered` are the page's buttons with
    their requests, `changes` the parameters that it changes, `targets` the names of the bodies
    that it pulls; `goals` says whether the tracker takes goals.
    """

    def __init__(
        self,
        node: Node,
        inbox: Inbox,
        scenario: Scenario,
        system: System,
        shown: Sequence[Codec],
        source: str,
    ):
        simulated = source == "simulation"
        self.offered = OF_PLANT if simulated else OF_HARDWARE
        self.changes = tuple(CHANGES) if simulated else ()
        self._targets = in_space(scenario.targets(system)) if simulated else {}
        self.targets = tuple(n for n, one in self._targets.items() if FORCE[0] in one.components)
        names = {request["name"] for request in self.offered.values()}
        names |= {"change"} if simulated else set()
        self._clients: dict[str, Client] = {
            name: node.create_client(*given) for name, given in SERVICES.items() if name in names
        }
        self.heard = HeardNodes(node, inbox)
        bodies = [codec for codec in shown if isinstance(codec, BodyCodec)]
        self.goals = bool(bodies) and bool(scenario.guidance or scenario.drive)
        if self.goals:
            self._frame = bodies[0].odometry[0].header.frame_id
            self._goal = node.create_publisher(PoseStamped, "goal", 1)
        if self.targets:
            self._wrench = node.create_publisher(WrenchStamped, "wrench", 1)

    @property
    def bounds(self) -> dict[str, float]:
        """Largest forces (N) that the plant accepts, by the targets' names."""
        values = self.heard.of("plant").values
        given = {name: values.get(f"wrench bound {name} (N)", "0") for name in self.targets}
        return {name: float(text) for name, text in given.items() if float(text) > 0}

    def answer(self, asked: Asked) -> Answer:
        """The answer to a request."""
        if asked.name == "goal" and self.goals:
            return self._pursue(asked)
        if asked.name == "pull" and self.targets:
            return self._pull(asked)
        client = self._clients.get(asked.name)
        if client is None:
            return Answer(False, f"nobody here takes the request {asked.name}")
        try:
            if asked.name == "change":
                return self._change(client, asked)
            switched = client.srv_type is SetBool
            request = SetBool.Request(data=asked.on) if switched else Trigger.Request()
            response = _called(client, request)
        except Unanswered as reason:
            return Answer(False, str(reason))
        return Answer(response.success, response.message)

    def _change(self, client: Client, asked: Asked) -> Answer:
        """Set a parameter of the plant, which prepares the change or gives the reason of a
        refusal.
        """
        if asked.parameter not in self.changes:
            return Answer(False, f"{asked.parameter!r} is none of {', '.join(self.changes)}")
        try:
            value = CHANGES[asked.parameter](asked.value)
        except ValueError:
            return Answer(False, f"{asked.parameter}: {asked.value!r} is not a number")
        kind = Parameter.Type.STRING_ARRAY if isinstance(value, list) else None
        message = Parameter(asked.parameter, kind, value).to_parameter_msg()
        result = _called(client, SetParametersAtomically.Request(parameters=[message])).result
        changed = f"{asked.parameter} is {asked.value or 'empty'}"
        return Answer(result.successful, changed if result.successful else result.reason)

    def _pull(self, asked: Asked) -> Answer:
        """Send a wrench within the plant's bound; it ends by itself."""
        bounds = self.bounds
        if asked.target not in bounds:
            has = ", ".join(bounds) or "none: see its parameter wrench.targets"
            return Answer(False, f"the plant takes wrenches on {has}")
        force = np.array(asked.force)
        force[[component not in self._targets[asked.target].components for component in FORCE]] = 0
        # by its last digit, with which diagnostics are written, a bound may be above the plant's
        force *= min(1.0, (1 - 1e-5) * bounds[asked.target] / max(np.abs(force).max(), 1e-300))
        message = WrenchStamped()
        message.header.frame_id = asked.target
        conversions.set_xyz(message.wrench.force, force.tolist())
        self._wrench.publish(message)
        return Answer(True, f"{asked.target}: {np.linalg.norm(force):.3g} N")

    def _pursue(self, asked: Asked) -> Answer:
        """Send a goal; the tracker's diagnostics show whether it is accepted."""
        message = PoseStamped()
        message.header.frame_id = self._frame
        conversions.set_xyz(message.pose.position, asked.position)
        before = self._goals()
        if before is None:
            return Answer(False, "no tracker is there to take goals")
        self._goal.publish(message)
        if not self.heard.wait(lambda: self._goals() != before, ANSWER_S):
            return Answer(False, f"the tracker said nothing of the goal in {ANSWER_S:g} s")
        now = self._goals()
        if now is None or now[1] == before[1]:
            return Answer(True, "goal accepted")
        return Answer(False, self.heard.of("tracker").message)

    def _goals(self) -> tuple[str, str] | None:
        """The numbers of goals that the tracker has accepted and refused, None without
        a tracker.
        """
        values = self.heard.of("tracker").values
        counts = values.get("goals_accepted"), values.get("goals_refused")
        return None if counts[0] is None or counts[1] is None else (counts[0], counts[1])


def _called(client: Client, request: Any) -> Any:
    """The response of a service; raises Unanswered."""
    if not client.service_is_ready():
        raise Unanswered(f"nobody offers {client.srv_name}")
    future: Future[Any] = client.call_async(request)
    done = threading.Event()
    future.add_done_callback(lambda _: done.set())
    if not done.wait(ANSWER_S):
        client.remove_pending_request(future)
        raise Unanswered(f"{client.srv_name} did not answer in {ANSWER_S:g} s")
    return future.result()
