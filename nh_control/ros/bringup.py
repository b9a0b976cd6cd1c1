"""Launch descriptions for the files in launch/: arguments of a scenario, nodes, recording, rviz.

An argument that is a node parameter is empty by default; then the value in `params_file` applies,
or else that of the scenario's `nodes`. A value that is given wins.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ament_index_python import get_packages_with_prefixes
from launch.actions import ExecuteProcess, OpaqueFunction, Shutdown
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from launch import LaunchContext, LaunchDescription
from nh_control import scenarios
from nh_control.ros import viewers
from nh_control.ros.arguments import (
    SCENARIO,
    Argument,
    is_true,
    of_all,
    of_hardware,
    of_scenario,
    options,
    parameters,
    robot,
)
from nh_control.runs import topics
from nh_control.runs.node_process import PARENT
from nh_control.scenarios import Scenario
from nh_control.scenarios.robot_description import robot_description

PLANT = "plant"
"""The argument that does not exist with hardware."""
BY_SCENARIO = ("perturb_", "plant_")
"""Prefixes of the arguments that depend on the scenario."""
SIGNALLED = (-signal.SIGINT, -signal.SIGTERM, 255)
"""Exit codes of a process that `launch` ended: the signals for a process that was still starting;
255 for a process that had just ended by itself, because then Popen.send_signal takes its exit code
and asyncio reports 255. No node ends with 255.
"""
RESPAWN_S = 0.5
"""Time from the death of a tracker to its restart."""
GLOBAL_TOPICS = ("/clock", "/diagnostics", "/tf", "/tf_static")
BY_ROBOT = ("namespace", "frame_prefix", "clock", "state_file")
"""Arguments that exist only for a single robot."""


def description(
    name: str, launch_file: str, hardware: bool = False, robots: bool = False
) -> LaunchDescription:
    """The launch description of the scenario `name`, or, for "", of the launch argument
    `scenario`; with `hardware` in place of the plant; with `robots` several robots stand side by
    side.

    The folder `config` beside that of the launch file, in the source tree and installed, may have
    `<name>.rviz`; `scenario.rviz` serves all others.
    Arguments that follow from a scenario are declared as soon as it is known.
    """
    config = Path(launch_file).parents[1] / "config"
    if name:
        scenario = scenarios.get(name)
        arguments = [*options(_robot_model(scenario, config)), *parameters(scenario)]
        return LaunchDescription(_start(arguments, name, config))
    general = [SCENARIO, *options(True), *of_all()]
    if hardware:
        general = [argument for argument in general if argument.name != PLANT] + of_hardware()
    if robots:
        general = [argument for argument in general if argument.name not in BY_ROBOT]
        general += viewers.ROBOTS

    def choose(context: LaunchContext) -> list:
        chosen = _text(context, SCENARIO)
        own = [*robot(), *of_scenario(find(context, chosen))]
        return _start(own, chosen, config, general)

    return LaunchDescription(
        [*(argument.declare() for argument in general), OpaqueFunction(function=choose)]
    )


def _start(
    arguments: list[Argument], name: str, config: Path, declared: Sequence[Argument] = ()
) -> list:
    """Return the declarations of the arguments, and the actions for these and `declared` ones."""

    def start(context: LaunchContext) -> list:
        every = [*declared, *arguments]
        _refuse_others(context, every)
        text = {argument.name: _text(context, argument) for argument in every}
        return actions(find(context, name), config, every, text)

    return [*(argument.declare() for argument in arguments), OpaqueFunction(function=start)]


def find(context: LaunchContext, name: str) -> Scenario:
    """Return the scenario of a name, file or module, with the robot of arguments urdf and base."""
    given = context.launch_configurations
    return scenarios.of_origin({k: v for k, v in given.items() if v} | {"scenario": name})


def _text(context: LaunchContext, argument: Argument) -> str:
    return LaunchConfiguration(argument.name).perform(context).strip()


def _refuse_others(context: LaunchContext, own: Sequence[Argument]) -> None:
    """Raise ValueError for arguments of another scenario; `launch` itself would ignore them."""
    names = [argument.name for argument in own]
    for given in context.launch_configurations:
        if given.startswith(BY_SCENARIO) and given not in names:
            valid = [name for name in names if name.startswith(BY_SCENARIO)]
            raise ValueError(
                f"launch argument '{given}': this scenario has no such parameter, choose one of "
                f"{', '.join(valid)}"
            )


def _robot_model(scenario: Scenario, config: Path) -> str | None:
    """Return the URDF for robot_state_publisher if rviz shows a robot model, otherwise None."""
    view = _rviz(scenario, config).read_text()
    return robot_description(scenario) if "/RobotModel" in view else None


def _has_state_publisher(scenario: Scenario, config: Path, wanted: dict[str, bool]) -> bool:
    """Return whether robot_state_publisher publishes the transforms of the robot's frames."""
    asked = not wanted["headless"] and wanted.get("use_robot_state_publisher", False)
    has_model = _robot_model(scenario, config) is not None
    return asked and has_model and "robot_state_publisher" in get_packages_with_prefixes()


def relative_topics(scenario: Scenario) -> list[str]:
    """Topics of the scenario's nodes in their namespace."""
    return (
        [topic for topic in topics.recorded(scenario) if not topic.startswith("/")]
        + topics.odometry(scenario)
        + ["robot_description"]
    )


def actions(
    scenario: Scenario, config: Path, arguments: Sequence[Argument], text: dict[str, str]
) -> list:
    """Return the actions for the arguments' texts, and warnings for missing packages that are
    optional; raises ValueError if a necessary package is missing."""
    _leave_interrupts_to_launch()
    file = text["params_file"]
    wanted = {PLANT: False} | {
        argument.name: is_true(text[argument.name]) for argument in arguments if argument.is_switch
    }
    if file and not Path(file).is_file():
        raise ValueError(f"launch argument 'params_file': no such file '{file}'")
    inline = {
        a.entry.name: a.value(text[a.name]) for a in arguments if a.is_parameter and text[a.name]
    }
    source = {} if PLANT in text else {"source": "hardware"}
    files = [given for given in (dict(scenario.nodes), file, source) if given]
    if SCENARIO.name in text:
        inline |= scenario.origin
    if wanted["headless"]:
        inline.setdefault("on_finish", "exit")
    if wanted["view"]:
        inline.setdefault("wrench.targets", topics.pulled(scenario))
    if wanted["record"]:
        inline["wait_for"] = inline["heard_by"] = ["rosbag2_recorder"]
    published = _has_state_publisher(scenario, config, wanted)
    robots, exits, started = viewers.robots(text), _Exits(), []
    if wanted["record"]:
        namespaces = [one.namespace for one in robots]
        started.append(_recording(scenario, namespaces, text["bag"], exits))

    def own(name: str, one: viewers.Robot, **options: bool) -> Node:
        given = [*files, inline if name != "shadow" else _known(inline, wanted[PLANT])]
        if name == "display" and published:
            given.insert(-1, {"transforms": False})
        return viewers.node("nh_control", name, one.namespace, given, **exits.of(name, **options))

    for one in robots:
        if wanted[PLANT] and wanted["tracker"] and wanted["composed"]:
            started.append(own("composed", one))
        else:
            if wanted[PLANT]:
                started.append(own("plant", one))
            if wanted["tracker"]:
                started.append(own("tracker", one, comes_back=True))
        if wanted["shadow"]:
            started.append(own("shadow", one, required=False))
        if not wanted["headless"]:
            started.append(own("display", one, required=False))
        if wanted["view"]:
            started.append(own("view", one, required=False))
    if not wanted["headless"]:
        clock = text.get("clock") or "namespace"
        started += _viewers(scenario, config, robots, clock, wanted)
    return started


def _leave_interrupts_to_launch() -> None:
    """Replace Python's handler of SIGINT, which raises KeyboardInterrupt; `launch` gets the signal
    through a file descriptor. A KeyboardInterrupt between the start of a process and its
    registration would leave a process that `launch` never ends, and `launch` would never end.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: None)


def _known(inline: dict[str, Any], simulated: bool) -> dict[str, Any]:
    """Return the parameters of a shadow. It must not know how a simulated plant differs from the
    model, because it shows this difference.
    """
    if not simulated:
        return inline
    return {n: value for n, value in inline.items() if not n.startswith("plant.parameters.")}


def _viewers(
    scenario: Scenario,
    config: Path,
    robots: Sequence[viewers.Robot],
    clock: str,
    wanted: dict[str, bool],
) -> list:
    """Return robot models, places and rviz, or warnings if their packages are missing; `clock` is
    the argument of this name.
    """
    urdf, parent = _robot_model(scenario, config), scenario.visual_model().parent
    sim_time = {"use_sim_time": wanted[PLANT] and clock != "none"}
    own_clock = clock == "namespace"
    started = []
    if urdf is not None and wanted["use_robot_state_publisher"]:
        started += [viewers.model(one, urdf, sim_time, own_clock) for one in robots]
    if wanted["rviz"]:
        topics = [t for t in relative_topics(scenario) if own_clock or t != "clock"]
        view = _rviz(scenario, config)
        started += [viewers.place(one, parent) for one in robots if one.y is not None]
        started.append(viewers.rviz(robots, view, parent, topics, sim_time))
    return started


class _Exits:
    """Watches the ends of this package's nodes. The launch ends after the first failure of a
    required node, or after all required nodes of one name have ended; its exit code is not 0 if a
    node has failed. A node with `comes_back` is started again after a signal has killed it.

    The handler of a process's end raises the failures, because `launch` then ends everything in
    order; the handler of its shutdown would leave processes behind.
    """

    def __init__(self) -> None:
        self._failures: list[str] = []
        self._running: Counter[str] = Counter()

    def of(self, name: str, required: bool = True, comes_back: bool = False) -> dict[str, Any]:
        """Return options of a node; the node ends with the launch, however the launch ends."""
        again = {"respawn": True, "respawn_delay": RESPAWN_S} if comes_back else {}
        self._running[name] += 1

        def ended(event: ProcessExited, context: LaunchContext) -> list:
            if event.returncode and not (context.is_shutdown and event.returncode in SIGNALLED):
                self._failures.append(f"the {name} ended with exit code {event.returncode}")
            killed = comes_back and event.returncode < 0
            if killed and not context.is_shutdown:
                return []
            if self._failures and (required or context.is_shutdown):
                failures, self._failures = self._failures, []
                raise RuntimeError("; ".join(failures))
            self._running[name] -= 1  # of several robots, the last one ends the launch
            last = required and not self._running[name]
            return [Shutdown(reason=f"the {name} ended")] if last else []

        return {"additional_env": {PARENT: str(os.getpid())}, "on_exit": ended, **again}


def _rviz(scenario: Scenario, config: Path) -> Path:
    """Return the scenario's view in the folder `config`, or that for all scenarios."""
    own = config / f"{scenario.origin['scenario']}.rviz"
    return own if own.is_file() else config / f"{SCENARIO.name}.rviz"


def _recording(
    scenario: Scenario, namespaces: Sequence[str], folder: str, exits: _Exits
) -> ExecuteProcess:
    """Return the process that records the nodes' topics in the namespaces; the plants wait for it.
    Raises ValueError if ros2bag is not installed.
    """
    output = ["--output", folder] if folder else []
    relative = relative_topics(scenario)
    own = [f"/{namespace}/{topic}" for namespace in namespaces for topic in relative]
    recorded = dict.fromkeys([topic.replace("//", "/") for topic in own] + [*GLOBAL_TOPICS])
    if "ros2bag" not in get_packages_with_prefixes():
        raise ValueError(
            "launch argument 'record': ros2bag is not installed, install it; without it "
            "`ros2 run nh_control recorder` records the same"
        )
    return ExecuteProcess(
        cmd=["ros2", "bag", "record", "--storage", "mcap", *output, "--topics", *recorded],
        output="screen",
        **exits.of("recording"),
    )
