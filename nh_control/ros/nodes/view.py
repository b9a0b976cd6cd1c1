"""The view node. It serves browsers a page with the scene and plots of a running plant."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node

from nh_control import scenarios
from nh_control.loop.reports import Refusal, Report
from nh_control.ros.messages import conversions
from nh_control.ros.messages.diagnostics import Diagnostics
from nh_control.ros.messages.motion_listener import MotionListener
from nh_control.ros.messages.state_codecs import codecs
from nh_control.ros.messages.state_reader import quality
from nh_control.ros.messages.view_requests import ViewRequests
from nh_control.ros.runtime import process
from nh_control.ros.runtime.declared import VIEW
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.parameters import Parameters
from nh_control.ros.runtime.selected_model import Model, frame_prefix
from nh_control.runs import topics
from nh_control.view.live import LiveMotion
from nh_control.view.live_page import Offers, live_page
from nh_control.view.live_server import LiveServer, ViewMissing

STALE_S = 1.0
"""Time without states after which the plant's status is "no new states"."""
STATUS_S = 0.5
"""Time between updates of the plant's status on the page while no states arrive."""
TARGET_S = 0.005
"""Maximum time for which a state waits for its target, which the tracker sends later."""
LATE_S = 0.1
"""Maximum delay of a frame that shorter intervals between later frames make up for."""
FACTOR_S = 2.0
"""Duration over which the real-time factor is measured."""


@dataclass
class Address:
    """The address that browsers know, and the scenario with which the node restarts."""

    token: str = ""
    port: int = 0
    scenario: str = ""


class View:
    """Sends the newest state at most `view.rate_hz` times per second of wall time to the browsers
    that have opened the page. The node does not read the simulated states in between. Its
    subscriptions are best-effort, so that no plant waits for acknowledgements.
    """

    def __init__(self, node: Node, inbox: Inbox, exit_: process.Exit, address: Address):
        parameters = Parameters(node, VIEW)
        self._exit, self._address = exit_, address
        self._inbox, model = inbox, Model.of(parameters)
        self._period_s = 1 / parameters["view.rate_hz"]
        scenario, dsys = model.scenario, model.dsys
        shown = codecs(scenario, dsys, prefix=frame_prefix(node, parameters))
        # the page's scene and plots
        self._live = LiveMotion(scenario, dsys, model.reference)
        self._forces: dict[str, np.ndarray] = {}
        self._pace, source = Pace(), parameters["source"]
        self._simulated = source == "simulation"
        self._motion = MotionListener(
            node,
            inbox,
            model,
            shown,
            source,
            restarted=self._forces.clear,
            received=lambda time_ns: self._pace.add(time.monotonic(), time_ns * 1e-9),
            best_effort=True,
        )
        for name, topic in topics.contacts(dsys.system).items():
            take = partial(self._on_contact, name)
            inbox.subscribe(WrenchStamped, topic, take, quality("hardware", 1))
        requests = ViewRequests(node, inbox, scenario, dsys.system, shown, source)
        self._requests, self._status_at, self._name = requests, 0.0, scenario.name
        self._sent = 0
        self._diagnostics = Diagnostics(node, inbox, "showing", scenario.name, self._make_report)
        try:
            self._server = LiveServer(
                live_page(
                    self._live.animation,
                    Offers(requests.offered, requests.changes, requests.targets, requests.goals),
                ),
                requests.answer,
                host=parameters["view.host"],
                port=address.port or parameters["view.port"],
                token=address.token,
            )
        except (ViewMissing, OSError) as error:
            raise process.UsageError(str(error)) from error
        address.port, address.token = self._server.port, self._server.token
        # not in the log, because other machines can read it and the address contains the token
        print(f"{scenario.name} is shown at {self._server.address}", flush=True)

    def work(self) -> None:
        """Send a state, and sleep until the next frame."""
        # sleep until the next frame is due, so that frames have a constant period on average
        due = sent_s = time.monotonic()
        motion = self._motion
        while not self._inbox.closed:
            self._inbox.serve(STATUS_S)
            for _ in range(motion.queue - 1):  # messages that arrived during the last frame
                if not self._inbox.serve(0.0):
                    break
            if motion.fresh and not motion.is_of_one_time:
                self._inbox.serve(TARGET_S)
            now = time.monotonic()
            if motion.fresh or now - sent_s >= STATUS_S:
                self._send()
                sent_s = now
            if motion.fresh:
                motion.fresh = False
                due = max(due + self._period_s, now - LATE_S)
                time.sleep(max(0.0, due - now))

    def close(self) -> None:
        """End all connections."""
        self._server.close()

    def _make_report(self) -> Report:
        return self._motion.report("showing", self._sent, browsers=self._server.browsers)

    def _on_contact(self, name: str, message: WrenchStamped) -> None:
        force = conversions.xyz(message.wrench.force)
        if np.isfinite(force).all():  # forces arrive after the state, which is then sent again
            self._forces[name], self._motion.fresh = force, self._motion.time_ns >= 0

    def _send(self) -> None:
        now = time.monotonic()
        # the plant's status is sent with every frame, and the nodes' statuses less often
        status: dict[str, Any] = self._pace.status(now)
        if now - self._status_at >= STATUS_S:
            self._status_at = now
            plant = self._requests.heard.of("plant")
            missed = plant.values.get("missed_steps")
            if plant.hardware not in ("", self._name):
                status["state"] = self._follow(plant.hardware)
            nodes = self._requests.heard.statuses(now)
            status |= {"nodes": nodes, "missed": missed, "bounds": self._requests.bounds}
            status["scenario"] = self._name
        message: dict[str, Any] = {"status": status}
        if self._motion.fresh:
            try:
                message["frame"] = self._frame()
                self._sent += 1
            except ValueError as error:  # values outside the model's domain
                self._motion.refuse(Refusal.MODEL, f"a state cannot be shown: {error}")
        self._server.send(json.dumps(message, separators=(",", ":"), allow_nan=False))

    def _follow(self, name: str) -> str:
        """Restart with another plant's scenario if its name is known. Returns the state for the
        page.
        """
        # a restart keeps the address, so browsers stay connected
        if self._simulated and name in scenarios.names():
            self._address.scenario = name
            self._exit.request()
            return f"the plant is {name} now"
        return f"the plant is {name}, not {self._name}: start the view with its scenario"

    def _frame(self) -> dict[str, Any]:
        """The current state's values for the page."""
        motion = self._motion
        return self._live.frame(
            (motion.time_ns - motion.first_ns) * 1e-9,
            motion.q,
            motion.v,
            motion.expected(),
            motion.inputs,
            motion.is_of_one_time,
            self._forces,
        )


class Pace:
    """The pace of the plant's states, from their wall times and simulated times in s."""

    def __init__(self) -> None:
        self._states: deque[tuple[float, float]] = deque()

    def add(self, wall_s: float, time_s: float) -> None:
        """Record that a state has arrived."""
        if self._states and time_s < self._states[-1][1]:
            self._states.clear()  # a reset
        self._states.append((wall_s, time_s))
        # the real-time factor needs at least two states
        while wall_s - self._states[0][0] > FACTOR_S and len(self._states) > 2:
            self._states.popleft()

    def status(self, wall_s: float) -> dict[str, Any]:
        """The status for the page: the state in words, the time since the last state (s), and the
        real-time factor (None if unknown).
        """
        if not self._states:
            return {"state": "waiting for states", "silent": 0.0, "factor": None}
        (start, first), (end, last) = self._states[0], self._states[-1]
        silent = wall_s - end
        if silent > STALE_S:
            return {"state": "no new states", "silent": silent, "factor": None}
        # ratio of simulated time to wall time
        factor = (last - first) / (end - start) if end > start else None
        return {"state": "running", "silent": silent, "factor": factor}


DEFAULTS = {"urdf": "''", "reference": "''", "integrator": "''", "step_s": "0.0"}
"""Parameters that take another scenario's defaults when the node switches to that scenario."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the node and return the exit code. If a plant with another scenario replaces the current
    plant, the node restarts with this scenario at the same address.
    """
    arguments, address = list(sys.argv if args is None else args), Address()
    while True:
        code = process.run("view", partial(View, address=address), arguments)
        if not address.scenario:
            return code
        changed, address.scenario = {"scenario": address.scenario, **DEFAULTS}, ""
        rules = [text for name, value in changed.items() for text in ("-p", f"{name}:={value}")]
        arguments += ["--ros-args", *rules]  # later rules override earlier ones


if __name__ == "__main__":
    sys.exit(main())
