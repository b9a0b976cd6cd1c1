"""What a live page asks for, through the services and topics that every other node uses: plant and
tracker accept or refuse it, and the page shows the reason.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from rclpy.client import Client
from rclpy.node import Node
from rclpy.task import Future
from std_srvs.srv import SetBool, Trigger

from nh_control.ros.messages.state_codecs import BodyCodec, Codec
from nh_control.ros.runtime.inbox import Inbox
from nh_control.scenarios import Scenario
from nh_control.view.live_requests import Asked
from nh_control.view.live_server import Answer

ANSWER_S = 5.0
"""How long a plant or a tracker may take to answer."""
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


class ViewRequests:
    """Answers a page's requests, in a thread that may wait; `offered` are the page's buttons with
    what they ask for, and `goals` says whether the tracker takes goals.
    """

    def __init__(
        self, node: Node, inbox: Inbox, scenario: Scenario, shown: Sequence[Codec], source: str
    ):
        self.offered = OF_PLANT if source == "simulation" else OF_HARDWARE
        own: dict[str, tuple[Any, str]] = {
            "pause": (SetBool, "plant/pause"),
            "step": (Trigger, "plant/step"),
            "reset": (Trigger, "plant/reset"),
            "arm": (SetBool, "tracker/arm"),
        }
        names = {request["name"] for request in self.offered.values()}
        self._clients: dict[str, Client] = {
            name: node.create_client(*given) for name, given in own.items() if name in names
        }
        bodies = [codec for codec in shown if isinstance(codec, BodyCodec)]
        self.goals = bool(bodies) and scenario.guidance is not None
        if self.goals:
            self._frame = bodies[0].odometry[0].header.frame_id
            self._goal = node.create_publisher(PoseStamped, "goal", 1)
            self._tracker = f"{node.get_namespace().strip('/')}/tracker:".lstrip("/")
            self._changed = threading.Condition()
            self._accepted, self._refused, self._said = -1, -1, ""
            inbox.subscribe(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)

    def answer(self, asked: Asked) -> Answer:
        """What becomes of a request."""
        if asked.name == "goal" and self.goals:
            return self._pursue(asked)
        client = self._clients.get(asked.name)
        if client is None:
            return Answer(False, f"nobody here takes the request {asked.name}")
        return _called(client, asked)

    def _pursue(self, asked: Asked) -> Answer:
        """Send a goal; the tracker's diagnostics say what becomes of it."""
        message = PoseStamped()
        message.header.frame_id, place = self._frame, message.pose.position
        place.x, place.y, place.z = asked.position
        with self._changed:
            accepted, refused = self._accepted, self._refused
            if accepted < 0:
                return Answer(False, "no tracker is there to take goals")
            self._goal.publish(message)
            if not self._changed.wait_for(
                lambda: (self._accepted, self._refused) != (accepted, refused), ANSWER_S
            ):
                return Answer(False, f"the tracker said nothing of the goal in {ANSWER_S:g} s")
            if self._refused == refused:
                return Answer(True, "goal accepted")
            return Answer(False, self._said)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.startswith(self._tracker):
                values = {pair.key: pair.value for pair in status.values}
                with self._changed:
                    self._accepted = int(values.get("goals_accepted", -1))
                    self._refused = int(values.get("goals_refused", -1))
                    self._said = status.message
                    self._changed.notify_all()


def _called(client: Client, asked: Asked) -> Answer:
    """The answer of a service."""
    if not client.service_is_ready():
        return Answer(False, f"nobody offers {client.srv_name}")
    request = SetBool.Request(data=asked.on) if client.srv_type is SetBool else Trigger.Request()
    future: Future[Any] = client.call_async(request)
    done = threading.Event()
    future.add_done_callback(lambda _: done.set())
    if not done.wait(ANSWER_S):
        client.remove_pending_request(future)
        return Answer(False, f"{client.srv_name} did not answer in {ANSWER_S:g} s")
    response: Any = future.result()
    return Answer(response.success, response.message)
