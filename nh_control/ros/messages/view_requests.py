"""Requests from a live page. They use the same services and topics as other nodes. The plant and
the tracker accept or refuse a request, and the page shows the reason.
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
from nh_control.view.live_requests import ViewRequest
from nh_control.view.live_server import Answer

ANSWER_S = 15.0
"""Maximum time to wait for an answer from a plant or tracker."""
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
"""Plant parameters that a page may change, with the functions that read their values."""


class Unanswered(Exception):
    """Raised if a service does not exist or does not answer."""


class ViewRequests:
    """Answers a page's requests, in a thread that may wait. `offered` contains the page's buttons
    with their requests, `changes` the parameters that the page may change, and `targets` the names
    of the bodies that it may pull. `goals` is true if the tracker accepts goals.
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
        # only simulated plants accept wrenches and changes
        self._targets = in_space(scenario.targets(system)) if simulated else {}
        self.targets = tuple(
            name for name, target in self._targets.items() if FORCE[0] in target.components
        )
        names = {request["name"] for request in self.offered.values()}
        names |= {"change"} if simulated else set()
        self._clients: dict[str, Client] = {
            name: node.create_client(kind, service)
            for name, (kind, service) in SERVICES.items()
            if name in names
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
        """Maximum forces (N) that the plant accepts, by target name."""
        # the plant publishes its bounds in the diagnostics
        values = self.heard.of("plant").values
        texts = {name: values.get(f"wrench bound {name} (N)", "0") for name in self.targets}
        return {name: float(text) for name, text in texts.items() if float(text) > 0}

    def answer(self, request: ViewRequest) -> Answer:
        """The answer to a request."""
        if request.name == "goal" and self.goals:
            return self._pursue(request)
        if request.name == "pull" and self.targets:
            return self._pull(request)
        # other requests call a service
        client = self._clients.get(request.name)
        if client is None:
            return Answer(False, f"the request {request.name} is not available here")
        try:
            if request.name == "change":
                return self._change(client, request)
            switched = client.srv_type is SetBool
            message = SetBool.Request(data=request.on) if switched else Trigger.Request()
            response = _called(client, message)
        except Unanswered as reason:
            return Answer(False, str(reason))
        return Answer(response.success, response.message)

    def _change(self, client: Client, request: ViewRequest) -> Answer:
        """Set a parameter of the plant. The plant prepares the change, or refuses it with a
        reason.
        """
        name, text = request.parameter, request.value
        if name not in self.changes:
            return Answer(False, f"{name!r} is not one of {', '.join(self.changes)}")
        try:
            value = CHANGES[name](text)
        except ValueError:
            return Answer(False, f"{name}: {text!r} is not a number")
        kind = Parameter.Type.STRING_ARRAY if isinstance(value, list) else None
        message = Parameter(name, kind, value).to_parameter_msg()
        result = _called(client, SetParametersAtomically.Request(parameters=[message])).result
        changed = f"{name} is {text or 'empty'}"
        return Answer(result.successful, changed if result.successful else result.reason)

    def _pull(self, request: ViewRequest) -> Answer:
        """Send a wrench within the plant's bound. The wrench ends by itself."""
        bounds, target = self.bounds, request.target
        if target not in bounds:
            accepted = ", ".join(bounds) or "none: see its parameter wrench.targets"
            return Answer(False, f"the plant accepts wrenches on {accepted}")
        force = np.array(request.force)
        # remove components that the target does not have
        force[[component not in self._targets[target].components for component in FORCE]] = 0
        # diagnostics round the bound to 6 digits, so it may exceed the plant's bound
        force *= min(1.0, (1 - 1e-5) * bounds[target] / max(np.abs(force).max(), 1e-300))
        message = WrenchStamped()
        message.header.frame_id = target
        conversions.set_xyz(message.wrench.force, force.tolist())
        self._wrench.publish(message)
        return Answer(True, f"{target}: {np.linalg.norm(force):.3g} N")

    def _pursue(self, request: ViewRequest) -> Answer:
        """Send a goal. The tracker's diagnostics show whether the goal is accepted."""
        message = PoseStamped()
        message.header.frame_id = self._frame
        conversions.set_xyz(message.pose.position, request.position)
        before = self._goals()
        if before is None:
            return Answer(False, "no tracker that accepts goals is running")
        self._goal.publish(message)
        # the tracker counts each goal as accepted or refused
        if not self.heard.wait(lambda: self._goals() != before, ANSWER_S):
            return Answer(False, f"the tracker did not answer the goal in {ANSWER_S:g} s")
        now = self._goals()
        if now is None or now[1] == before[1]:
            return Answer(True, "goal accepted")
        return Answer(False, self.heard.of("tracker").message)

    def _goals(self) -> tuple[str, str] | None:
        """The counts of goals that the tracker has accepted and refused, or None if there is no
        tracker.
        """
        values = self.heard.of("tracker").values
        # both counts exist once the tracker has published diagnostics
        counts = values.get("goals_accepted"), values.get("goals_refused")
        return None if counts[0] is None or counts[1] is None else (counts[0], counts[1])


def _called(client: Client, request: Any) -> Any:
    """The response of a service. Raises Unanswered."""
    if not client.service_is_ready():
        raise Unanswered(f"no node offers {client.srv_name}")
    future: Future[Any] = client.call_async(request)
    # the executor completes the future in another thread
    done = threading.Event()
    future.add_done_callback(lambda _: done.set())
    if not done.wait(ANSWER_S):
        client.remove_pending_request(future)
        raise Unanswered(f"{client.srv_name} did not answer in {ANSWER_S:g} s")
    return future.result()
