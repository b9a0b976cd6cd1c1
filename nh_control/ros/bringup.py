"""Launch descriptions for the files in launch/: scenario arguments, nodes, recording and rviz.

An argument that sets a node parameter is empty by default. An empty argument leaves the value to
`params_file` or, if that file does not set it, to the scenario's `nodes`. A value on the command
line wins.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from ament_index_python import get_packages_with_prefixes
from launch.actions import ExecuteProcess, LogInfo, OpaqueFunction, Shutdown, TimerAction
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from launch import LaunchContext, LaunchDescription
from nh_control import scenarios
from nh_control.loop.command_validator import Fallback
from nh_control.ros import rviz, viewers
from nh_control.ros.arguments import (
    SCENARIO,
    Argument,
    is_true,
    of_all,
    of_hardware,
    of_scenario,
    options,
    parameters,
    robot_arguments,
)
from nh_control.runs import topics
from nh_control.runs.node_process import PARENT
from nh_control.scenarios import Scenario
from nh_control.scenarios.robot_description import robot_description

PLANT = "plant"
"""The argument that launch files for hardware lack."""
BY_SCENARIO = ("perturb_", "plant_")
"""Prefixes of the arguments that depend on the scenario."""
SIGNALLED = (-signal.SIGINT, -signal.SIGTERM, 255)
"""Exit codes of a process that `launch` ended. A process that was still starting is terminated by
the signal. The code is 255 if the process had just exited by itself, because Popen.send_signal
then collects the exit code and asyncio reports 255. No node exits with 255.
"""
RESTART_S = 0.5
"""Time between the death of a node and its restart."""
GLOBAL_TOPICS = ("/clock", "/diagnostics", "/tf", "/tf_static")
BY_ROBOT = ("namespace", "frame_prefix", "clock", "state_file")
"""Arguments that exist only in launch files for a single robot."""


def description(name: str, hardware: bool = False, robots: bool = False) -> LaunchDescription:
    """The launch description of the scenario `name`. If the name is empty, the launch argument
    `scenario` selects the scenario. With `hardware`, hardware replaces the plant. With `robots`,
    several robots stand side by side.

    A scenario's arguments are declared as soon as the scenario is known.
    """
    # the scenario is known, so all arguments are declared before the launch starts
    if name:
        scenario = scenarios.get(name)
        arguments = [*options(_robot_model(scenario)), *parameters(scenario)]
        return LaunchDescription(_start(arguments, name))
    # the scenario is itself an argument, so its arguments are declared once its name is known
    general = [SCENARIO, *options(True), *of_all()]
    if hardware:
        general = [argument for argument in general if argument.name != PLANT] + of_hardware()
    if robots:
        general = [argument for argument in general if argument.name not in BY_ROBOT]
        general += viewers.ROBOTS

    def choose(context: LaunchContext) -> list:
        chosen = _text(context, SCENARIO)
        specific = [*robot_arguments(), *of_scenario(find(context, chosen))]
        return _start(specific, chosen, general)

    return LaunchDescription(
        [*(argument.declare() for argument in general), OpaqueFunction(function=choose)]
    )


def _start(arguments: list[Argument], name: str, declared: Sequence[Argument] = ()) -> list:
    """Return the declarations of the arguments, and the actions for these arguments and for the
    `declared` ones.
    """

    def start(context: LaunchContext) -> list:
        # `launch` evaluates arguments only at this point, in the context of this launch
        every = [*declared, *arguments]
        _refuse_foreign_arguments(context, every)
        text = {argument.name: _text(context, argument) for argument in every}
        return actions(find(context, name), every, text)

    return [*(argument.declare() for argument in arguments), OpaqueFunction(function=start)]


def find(context: LaunchContext, name: str) -> Scenario:
    """Return the scenario with the given name, file or module. The arguments `urdf` and `base`
    select its robot. Raises ValueError.
    """
    arguments = context.launch_configurations
    if not name:
        raise ValueError(
            f"launch argument 'scenario' is missing: give scenario:=NAME with one of "
            f"{', '.join(scenarios.names())}, or a file"
        )
    return scenarios.of_origin({k: v for k, v in arguments.items() if v} | {"scenario": name})


def _text(context: LaunchContext, argument: Argument) -> str:
    return LaunchConfiguration(argument.name).perform(context).strip()


def _refuse_foreign_arguments(context: LaunchContext, arguments: Sequence[Argument]) -> None:
    """Raise ValueError for arguments of another scenario, because `launch` would ignore them."""
    names = [argument.name for argument in arguments]
    for name in context.launch_configurations:
        # other unknown arguments may belong to a launch file that includes this one
        if name.startswith(BY_SCENARIO) and name not in names:
            valid = [other for other in names if other.startswith(BY_SCENARIO)]
            raise ValueError(
                f"launch argument '{name}': this scenario has no such parameter, choose one of "
                f"{', '.join(valid)}"
            )


def _robot_model(scenario: Scenario) -> str | None:
    """Return the URDF for robot_state_publisher if rviz shows a robot model, otherwise None."""
    return robot_description(scenario) if rviz.shows_robot_model(scenario) else None


def _has_state_publisher(scenario: Scenario, switches: dict[str, bool]) -> bool:
    """Return whether robot_state_publisher publishes the transforms of the robot's frames."""
    selected = not switches["headless"] and switches.get("use_robot_state_publisher", False)
    has_model = _robot_model(scenario) is not None
    return selected and has_model and "robot_state_publisher" in get_packages_with_prefixes()


def relative_topics(scenario: Scenario) -> list[str]:
    """Names of the scenario's topics, relative to the namespace of its nodes."""
    return (
        [topic for topic in topics.recorded(scenario) if not topic.startswith("/")]
        + topics.odometry(scenario)
        + ["robot_description"]
    )


def actions(scenario: Scenario, arguments: Sequence[Argument], text: dict[str, str]) -> list:
    """Return the actions for the argument values in `text`, and a warning for each missing
    optional package. Raises ValueError if a required package is missing.
    """
    _leave_interrupts_to_launch()
    # switches choose the nodes, and all other arguments are node parameters
    file = text["params_file"]
    switches = {PLANT: False} | {
        argument.name: is_true(text[argument.name]) for argument in arguments if argument.is_switch
    }
    # without this check, every node would fail and only its log would name the file
    if file and not Path(file).is_file():
        raise ValueError(f"launch argument 'params_file': no such file '{file}'")
    # empty arguments leave the value to params_file, the scenario or the default
    inline = {
        a.entry.name: a.value(text[a.name]) for a in arguments if a.is_parameter and text[a.name]
    }
    source = {} if PLANT in text else {"source": "hardware"}
    # this launch restarts a killed tracker, and simulated time can wait until the tracker is back
    waits = {"fallback": Fallback.WAIT.value} if switches[PLANT] and switches["tracker"] else {}
    # later entries override earlier ones: scenario < params_file < hardware < command line
    files = [entry for entry in ({**scenario.nodes, **waits}, file, source) if entry]
    inline |= scenario.origin
    if switches["headless"]:
        inline.setdefault("on_finish", "exit")
    if switches["view"]:
        inline.setdefault("wrench.targets", topics.pulled(scenario))
    if switches["record"]:
        inline["wait_for"] = inline["heard_by"] = ["rosbag2_recorder"]
    published = _has_state_publisher(scenario, switches)
    robots, exits, started = viewers.robots(text), _Exits(), []
    if switches["record"]:
        namespaces = [robot.namespace for robot in robots]
        started.append(_recording(scenario, namespaces, text["bag"], exits))

    def start(
        name: str, robot: rviz.Robot, required: bool = True, comes_back: bool = False
    ) -> Node:
        node_parameters = [
            *files,
            _without_perturbed_plant(inline, switches[PLANT]) if name == "shadow" else inline,
        ]
        if name == "display" and published:
            # before `inline`, so that a value on the command line still wins
            node_parameters.insert(-1, {"transforms": False})
        again = partial(start, name, robot, required, comes_back) if comes_back else None
        watched = exits.of(name, required, again)
        return viewers.node("nh_control", name, robot.namespace, node_parameters, **watched)

    for robot in robots:
        # the run needs the plant and the tracker, but viewers may exit or fail without ending it
        if switches[PLANT] and switches["tracker"] and switches["composed"]:
            started.append(start("composed", robot))
        else:
            if switches[PLANT]:
                started.append(start("plant", robot))
            if switches["tracker"]:
                started.append(start("tracker", robot, comes_back=True))
        # viewers and the shadow take no part in the control loop
        if switches["shadow"]:
            started.append(start("shadow", robot, required=False, comes_back=True))
        if not switches["headless"]:
            started.append(start("display", robot, required=False, comes_back=True))
        if switches["view"]:
            started.append(start("view", robot, required=False, comes_back=True))
    if not switches["headless"]:
        clock = text.get("clock") or "namespace"
        started += _viewers(scenario, robots, clock, switches)
    return started


def _leave_interrupts_to_launch() -> None:
    """Replace Python's SIGINT handler, which raises KeyboardInterrupt. `launch` receives the
    signal through a file descriptor. If a KeyboardInterrupt arrived after a process was started
    but before it was registered, `launch` would end neither this process nor itself.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: None)


def _without_perturbed_plant(inline: dict[str, Any], simulated: bool) -> dict[str, Any]:
    """Return the parameters of a shadow. A shadow must not know how a simulated plant differs from
    the model, because it measures this difference.
    """
    if not simulated:
        return inline
    return {n: value for n, value in inline.items() if not n.startswith("plant.parameters.")}


def _viewers(
    scenario: Scenario,
    robots: Sequence[rviz.Robot],
    clock: str,
    switches: dict[str, bool],
) -> list:
    """Return the nodes for the robot models, their places and rviz, or warnings about missing
    packages. `clock` is the launch argument with the same name.
    """
    urdf, parent = _robot_model(scenario), scenario.visual_model().parent
    # if the plant publishes no clock, the viewers use wall time
    sim_time = {"use_sim_time": switches[PLANT] and clock != "none"}
    local_clock = clock == "namespace"
    started = []
    if urdf is not None and switches["use_robot_state_publisher"]:
        started += [viewers.model(robot, urdf, sim_time, local_clock) for robot in robots]
    if switches["rviz"]:
        view, first = rviz.configuration(scenario, robots), robots[0].namespace
        started += [viewers.place(robot, parent) for robot in robots if robot.y is not None]
        started.append(
            viewers.rviz(
                view, Path(str(scenario.origin["scenario"])).stem, sim_time, local_clock, first
            )
        )
    return started


class _Exits:
    """Handles the exits of this package's nodes. The launch ends when a required node fails, or
    when all required nodes with one name have exited. The exit code of the launch is nonzero if a
    node has failed. If `again` is passed, a process that was killed by a signal is replaced by the
    process that `again()` returns.

    Failures are raised when a process exits, because `launch` then shuts everything down in order.
    If failures were raised during the shutdown, processes would be left behind.
    """

    def __init__(self) -> None:
        self._failures: list[str] = []
        self._running: Counter[str] = Counter()

    def of(
        self,
        name: str,
        required: bool = True,
        again: Callable[[], ExecuteProcess] | None = None,
        news: Callable[[], str] = lambda: "",
    ) -> dict[str, Any]:
        """Return the options of a node that ends with the launch, however the launch ends.
        `news()` returns a text that says how the successor of a killed process differs from it.
        """
        self._running[name] += 1

        def ended(event: ProcessExited, context: LaunchContext) -> list:
            # a signal from `launch` during its shutdown is not a failure
            if event.returncode and not (context.is_shutdown and event.returncode in SIGNALLED):
                self._failures.append(f"the {name} ended with exit code {event.returncode}")
            # a negative code is a signal, for example from the kernel when memory is exhausted
            if again is not None and event.returncode < 0 and not context.is_shutdown:
                self._running[name] -= 1  # `again` calls `of`, which counts the successor
                text = f"the {name} was killed by signal {-event.returncode} and is restarted"
                restart = TimerAction(period=RESTART_S, actions=[again()])
                return [LogInfo(msg=text + news()), restart]
            if self._failures and (required or context.is_shutdown):
                failures, self._failures = self._failures, []
                raise RuntimeError("; ".join(failures))
            self._running[name] -= 1  # with several robots, the last one ends the launch
            last = required and not self._running[name]
            return [Shutdown(reason=f"the {name} ended")] if last else []

        # PARENT lets the kernel end the node if `launch` itself is killed
        return {"additional_env": {PARENT: str(os.getpid())}, "on_exit": ended}


def _recording(
    scenario: Scenario, namespaces: Sequence[str], folder: str, exits: _Exits
) -> ExecuteProcess:
    """Return the process that records the nodes' topics in the namespaces. The plants wait for
    this process. If it is killed, its successor records to another folder. Raises ValueError if
    ros2bag is not installed.
    """
    relative = relative_topics(scenario)
    absolute = [f"/{namespace}/{topic}" for namespace in namespaces for topic in relative]
    # record each topic once, because several robots share the global topics
    recorded = dict.fromkeys([topic.replace("//", "/") for topic in absolute] + [*GLOBAL_TOPICS])
    if "ros2bag" not in get_packages_with_prefixes():
        raise ValueError(
            "launch argument 'record': ros2bag is not installed, install it; without it "
            "`ros2 run nh_control recorder` records the same"
        )

    def unused_folder() -> str:
        # ros2bag refuses an existing folder
        numbered = (f"{folder}_{i}" for i in count(2))
        return next(path for path in numbered if not Path(path).exists()) if folder else ""

    def start(output: str) -> ExecuteProcess:
        target = ["--output", output] if output else []
        return ExecuteProcess(
            cmd=["ros2", "bag", "record", "--storage", "mcap", *target, "--topics", *recorded],
            output="screen",
            **exits.of(
                "recording",
                again=lambda: start(unused_folder()),
                news=lambda: f" in {unused_folder() or 'another folder'}",
            ),
        )

    return start(folder)
