"""The display node: markers of the scenario's visual model, of the reference at the same step,
and of the path so far; the robot's description and the transforms of its frames.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from functools import partial

import numpy as np
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Path
from rclpy.node import Node
from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray

from nh_control.discrete.contact_forces import ContactPlaces
from nh_control.loop.reports import Refusal, Report
from nh_control.loop.state_estimate import is_whole
from nh_control.ros.messages import conversions
from nh_control.ros.messages.diagnostics import Diagnostics
from nh_control.ros.messages.markers import Arrows, ContactArrows, Drawing, Lines, PlanLine, Trail
from nh_control.ros.messages.state_codecs import codecs
from nh_control.ros.messages.state_reader import StateListener, StateReader, reader
from nh_control.ros.messages.tracker_output import PREFIX
from nh_control.ros.messages.transforms import RobotModel
from nh_control.ros.runtime import process
from nh_control.ros.runtime.callback_errors import ThrottledLog
from nh_control.ros.runtime.declared import DISPLAY
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.model import Model, frame_prefix
from nh_control.ros.runtime.parameters import Parameters
from nh_control.ros.runtime.subscribers import LateSubscribers
from nh_control.runs import topics
from nh_control.view.contacts import arrow_scale

GHOST = 0.25
HARDWARE_QUEUE = 10
"""Queue of a subscription to hardware, whose states come in several messages on one topic."""
LATECOMERS_S = 0.5
"""Period of looking for new subscribers while nothing moves."""


class Display:
    """Draws the newest state at most `rate_hz` times per second of wall time; it does not read
    states of a simulation in between.

    The last state of a plant that pauses or has finished is drawn again for late subscribers.
    """

    def __init__(self, node: Node, inbox: Inbox, _: process.Exit):
        parameters = Parameters(node, DISPLAY)
        self._inbox, self._model = inbox, Model.of(parameters)
        self._period_s = 1 / parameters["rate_hz"]
        scenario, dsys = self._model.scenario, self._model.dsys
        prefix = frame_prefix(node, parameters)
        visual = scenario.visual_model(reference=self._model.reference.name)
        visual = self._visual = replace(visual, parent=prefix + visual.parent)
        shown = codecs(scenario, dsys, prefix=prefix)
        self._q, self._v = [0.0] * dsys.system.space.nq, [0.0] * dsys.system.space.nw
        self._target: list[float] | None = None
        self._time_ns, self._fresh = -1, False
        self._inputs: dict[str, float] = {}
        self._plant = Drawing("plant", visual, 1.0)
        self._ghost = Drawing("reference", visual, GHOST)
        self._lines, self._arrows, self._trail = Lines(visual), Arrows(visual), Trail(visual)
        self._plan = PlanLine(visual)
        places = ContactPlaces(dsys.system)
        scale = arrow_scale(visual, scenario.parameters, dsys, self._model.reference)
        self._contacts = ContactArrows(visual.parent, places, scale)
        for name, topic in topics.contacts(dsys.system).items():
            inbox.subscribe(WrenchStamped, topic, partial(self._contacts.take, name), 1)
        moving = self._plant, self._ghost, self._lines, self._arrows
        self._parts = (*moving, self._trail, self._plan, self._contacts)
        self._publisher = node.create_publisher(MarkerArray, "markers", 1)
        self._late_subscribers = LateSubscribers([self._publisher])
        self._robot = RobotModel(node, scenario, prefix) if parameters["transforms"] else None
        log = node.get_logger()
        self._warn = ThrottledLog(lambda text: log.warning(text))
        self._simulated = parameters["source"] == "simulation"
        self._queue = 1 if self._simulated else HARDWARE_QUEUE
        states = StateListener(self._on_state, self._refuse, lambda _: self._trail.clear())
        self._states = reader(parameters["source"], inbox, shown, states, self._queue, dsys.h)
        targets = StateListener(self._on_target, self._refuse)
        self._targets = StateReader(inbox, shown, targets, 1, PREFIX)
        inbox.subscribe(Path, "plan", self._plan.place, 1)
        inbox.subscribe(JointState, "joint_commands", self._on_command, 1)
        self._drawn, self._refused, self._trouble = 0, 0, ""
        self._diagnostics = Diagnostics(node, inbox, "drawing", scenario.name, self._make_report)

    def work(self) -> None:
        """Draw, and sleep until the next frame."""
        while not self._inbox.closed:
            self._inbox.serve(LATECOMERS_S)
            for _ in range(self._queue - 1):  # messages of the last frame
                if not self._inbox.serve(0.0):
                    break
            late = self._late_subscribers.new()
            if self._fresh or (late and self._time_ns >= 0):
                self._fresh = False
                self._draw()
                time.sleep(self._period_s)

    def close(self) -> None:
        """Nothing needs closing."""

    def _make_report(self) -> Report:
        level, text = ("ok", "drawing") if self._drawn else ("warn", "waiting for states")
        if self._trouble:
            level, text, self._trouble = "warn", self._trouble, ""
        values = {"frames": self._drawn, "time_s": self._time_ns * 1e-9, "refused": self._refused}
        return Report(level, text, values)

    def _refuse(self, _: Refusal, reason: str) -> None:
        self._refused, self._trouble = self._refused + 1, reason
        self._warn(reason)

    def _on_state(self, time_ns: int) -> None:
        try:
            self._states.read(self._q, self._v)
        except conversions.ConversionError as error:
            self._refuse(error.kind, str(error))
            return
        if time_ns < self._time_ns:  # after a reset no step has had forces yet
            self._trail.clear()
            self._contacts.clear()
        self._time_ns, self._fresh = time_ns, True

    def _on_target(self, _: int) -> None:
        target = list(self._target or self._q)
        try:
            self._targets.read(target, self._v[:])
        except conversions.ConversionError as error:
            self._refuse(error.kind, str(error))
            return
        if target != self._target:  # it may come after the last state
            self._target, self._fresh = target, self._time_ns >= 0

    def _on_command(self, message: JointState) -> None:
        names, values, _ = conversions.read_command(message)
        if len(names) == len(values) and np.isfinite(values).all():
            self._inputs = dict(zip(names, values))

    def _draw(self) -> None:
        poses = self._visual.poses(self._model.scenario.parameters, np.array(self._q))
        if self._robot is not None:
            self._robot.publish(poses, np.array(self._q), self._time_ns)
        self._plant.place(poses)
        self._ghost.place(
            self._visual.poses(self._model.scenario.parameters, np.array(self._expected()))
        )
        self._lines.place(poses, self._slack())
        self._arrows.place(poses, self._inputs)
        self._contacts.place(np.array(self._q))
        self._trail.place(poses)
        drawn = [marker for part in self._parts for marker in part.markers]
        for marker in drawn:
            conversions.set_time(marker.header.stamp, self._time_ns)
        self._publisher.publish(MarkerArray(markers=drawn))
        self._drawn += 1

    def _expected(self) -> list[float]:
        """Configuration of the reference: the tracker's target, or before the first one the
        scenario's reference at this time; of hardware, which has a clock of its own, the first
        configuration.
        """
        if self._target is not None:
            return self._target
        reference = self._model.reference
        if not self._simulated:
            return reference.states[0][: len(self._q)].tolist()
        step = min(max(0, round(self._time_ns * 1e-9 / self._model.dsys.h)), len(reference))
        return reference.states[step][: len(self._q)].tolist()

    def _slack(self) -> list[str]:
        """Names of the monitored values that are too low, under the last command, if
        there is one and all velocities are known.
        """
        monitor, inputs = self._model.scenario.monitor, self._model.dsys.inputs
        known = is_whole(self._v) and all(name in self._inputs for name in inputs)
        if monitor is None or not known:
            return []
        values = monitor.values(
            self._model.scenario.parameters,
            np.array(self._q),
            np.array(self._v),
            np.array([self._inputs[name] for name in inputs]),
            {},  # external forces are the plant's to know
        )
        return [name for name, value in zip(monitor.names, values) if value <= monitor.minimum]


main = partial(process.run, "display", Display)
"""Run the node, `main(args)`; returns the exit code."""

if __name__ == "__main__":
    sys.exit(main())
