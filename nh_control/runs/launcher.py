"""Starts a scenario's nodes as processes, watches them, and ends them in order; it does not import
ROS.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from nh_control.mechanics.parameters import PROCESS
from nh_control.runs import topics
from nh_control.runs.experiment import Experiment
from nh_control.runs.node_process import PARENT, STEP_FAILED
from nh_control.runs.output import LOGS, PARAMETERS, RECORDING
from nh_control.runs.settings import GROUPS, SETTINGS, RunSettings
from nh_control.scenarios import Scenario

MESSAGES = (
    "diagnostic",
    "geometry",
    "nav",
    "rosgraph",
    "sensor",
    "std",
    "trajectory",
    "visualization",
)
PACKAGES = (
    "rclpy",
    "builtin_interfaces",
    "rcl_interfaces",
    "std_srvs",
    *(f"{name}_msgs" for name in MESSAGES),
)
NOT_OF_NODES = ("display", "view", "record")
"""Settings of a run by which it starts further nodes."""
POLL_S = 0.05
END_S = 10.0
"""Time (s) that a node has to end after a signal, before the next stronger one."""
TAIL = 15
_START = """
import sys
from nh_control.ros.nodes import start
sys.exit(getattr(start, sys.argv.pop(1))())
"""
"""Python of a node's process."""


class RosMissing(RuntimeError):
    """ROS 2 cannot be imported; the message says what to install."""


class NodeFailed(RuntimeError):
    """A node could not continue: `reason`; the message also has the end of its log."""

    def __init__(self, reason: str, log: Path, tail: str):
        super().__init__(f"{reason}; the end of {log}:\n{tail}")
        self.reason = reason


def require_ros(record: bool = True) -> None:
    """Raise RosMissing unless all packages that the nodes import can be found."""
    missing = [
        name
        for name in PACKAGES + (("rosbags",) if record else ())
        if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise RosMissing(
            f"`nh_control run` needs ROS 2, but Python cannot import {', '.join(missing)}.\n"
            "  Without a ROS installation (x86-64 Linux, CPython 3.10-3.13), in the environment "
            "of this command and the folder of its sources:\n"
            f"    {sys.executable} -m pip install -e '.[ros]'\n"
            "  With one: source /opt/ros/<distro>/setup.bash, then rosdep install --from-paths . "
            "--ignore-src\n"
            "  `nh_control simulate` runs the same closed loop without ROS."
        )


def parameters(experiment: Experiment, settings: RunSettings, folder: Path) -> dict:
    """Parameters of all nodes for this experiment, nested by their dots; pacing and the nodes
    themselves are those of the settings.
    """
    whole = experiment.settings.to_dict()
    shared = {
        name: value
        for name, value in whole.items()
        if name in GROUPS or SETTINGS[name].only != PROCESS
    }
    waited_for = ["recorder"] * settings.record + ["view"] * settings.view
    faults = experiment.options.faults
    return _of_nodes(shared) | {
        "speed_factor": settings.speed_factor,
        "lockstep": settings.lockstep,
        "on_finish": "exit",
        **(
            {"fallback": "hold"} if experiment.scenario.hold else {}
        ),  # what must be held would fall under no command
        **({"wait_for": waited_for} if waited_for else {}),
        **({"wrench": {"targets": topics.pulled(experiment.scenario)}} if settings.view else {}),
        **(
            {"output": str(folder / RECORDING), "heard_by": ["recorder"]}
            if settings.record
            else {}
        ),
        **({"topics": _with_truth(experiment.scenario)} if settings.record and faults else {}),
    }


def _of_nodes(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as a file of parameters has them: no tuples, no empty mappings, and
    [""] for no texts, whose type ROS could not tell; without those of `run` itself.
    """
    return {
        name: _of_nodes(value)
        if isinstance(value, Mapping)
        else (list(value) or [""])
        if isinstance(value, list | tuple)
        else value
        for name, value in values.items()
        if value != {} and name not in NOT_OF_NODES
    }


def _with_truth(scenario: Scenario) -> list[str]:
    """Topics of the true states, which a recording of a run with faults has as well."""
    kept = {**topics.truth(scenario), **topics.recorded(scenario)}
    return [f"{topic}:{message}" for topic, message in kept.items()]


def run(
    experiment: Experiment,
    settings: RunSettings,
    folder: Path,
    running: Callable[[], None] = lambda: None,
) -> bool:
    """Run the nodes until the plant has finished; returns False if SIGINT or SIGTERM ended the run
    early.

    Writes `parameters.yaml` and `logs/` into `folder`. Calls `running` repeatedly once all nodes
    are up. Raises NodeFailed if a node ends before the plant has finished, or if the plant cannot
    continue. All nodes have ended when this returns or raises; the recorder ends last.
    """
    file = folder / PARAMETERS
    given = {"/**": {"ros__parameters": parameters(experiment, settings, folder)}}
    file.write_text(yaml.safe_dump(given, sort_keys=False))
    names = ["recorder"] * settings.record + ["plant", "tracker"] + ["display"] * settings.display
    names += ["view"] * settings.view
    nodes: dict[str, _Node] = {}
    with _signals_noticed() as interrupted:
        try:
            for name in names:
                if not interrupted.is_set():
                    nodes[name] = _Node(name, file, folder / LOGS)
            return _monitor(nodes, running, interrupted)
        finally:
            _end(nodes)


def telling(
    address: Callable[[str], None], folder: Path, running: Callable[[], None]
) -> Callable[[], None]:
    """A function for `run` that calls `running`, and calls `address` once with the line that the
    view in this folder has printed.
    """
    unread_logs = [folder / LOGS / "view.log"]

    def tell() -> None:
        for log in unread_logs:
            line = next((one for one in log.read_text().splitlines() if "?token=" in one), "")
            if line:
                unread_logs.clear()
                address(line)
        running()

    return tell


def _monitor(
    nodes: dict[str, _Node], running: Callable[[], None], interrupted: threading.Event
) -> bool:
    """Watch the nodes: True when the plant has ended well, False after an interruption; raises
    NodeFailed.
    """
    up = False
    while not interrupted.is_set():
        codes = {name: node.process.poll() for name, node in nodes.items()}
        for name, code in codes.items():
            node = nodes[name]
            if code == STEP_FAILED:
                raise NodeFailed(f"the {name} could not make a step", node.log, node.tail())
            if code is not None and (code or name != "plant"):
                raise NodeFailed(f"the {name} ended with exit code {code}", node.log, node.tail())
        if codes["plant"] is not None:
            return True
        up = up or all(
            node.log.stat().st_size for name, node in nodes.items() if name != "display"
        )
        if up:
            running()
        time.sleep(POLL_S)
    return False


def _end(nodes: dict[str, _Node]) -> None:
    """End all nodes, the recorder after the others."""
    for group in (nodes.keys() - {"recorder"}, nodes.keys() & {"recorder"}):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            for name in group:
                nodes[name].process.send_signal(number)
            deadline = time.monotonic() + END_S
            if all(nodes[name].ended_by(deadline) for name in group):
                break


class _Node:
    """A node's process in a session of its own, so that only this program passes a Ctrl-C on to
    it, with stdout and stderr in `<folder>/<name>.log`.
    """

    def __init__(self, name: str, parameters: Path, folder: Path):
        folder.mkdir(exist_ok=True)
        self.log = folder / f"{name}.log"
        environment = {
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            **os.environ,
            PARENT: str(os.getpid()),
        }
        command = [
            sys.executable,
            "-c",
            _START,
            name,
            "--ros-args",
            "--disable-external-lib-logs",
            "--params-file",
            str(parameters),
        ]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )

    def tail(self) -> str:
        """The last lines of the log, indented."""
        lines = self.log.read_text(errors="replace").splitlines()[-TAIL:]
        return "\n".join(f"    {line}" for line in lines) or "    (empty)"

    def ended_by(self, deadline: float) -> bool:
        """Wait for the end of the process until `deadline` (monotonic time, s)."""
        try:
            self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True


@contextmanager
def _signals_noticed() -> Iterator[threading.Event]:
    """In this context SIGINT and SIGTERM only set the event. They interrupt neither a start, after
    which the process would be unknown, nor the end of the nodes.
    """
    noticed = threading.Event()
    previous = {
        number: signal.signal(number, lambda *_: noticed.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield noticed
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
