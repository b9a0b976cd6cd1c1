"""Starts a scenario's nodes as processes, watches them, and stops them in an orderly way, without
importing ROS.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from nh_control.mechanics.parameters import PROCESS
from nh_control.runs import dds_domain, topics
from nh_control.runs.experiment import Experiment
from nh_control.runs.fork_server import ForkServer
from nh_control.runs.node_process import (
    CONTROLLER_FAILED,
    NO_ANSWER,
    NOT_RECORDED,
    STEP_FAILED,
)
from nh_control.runs.output import LOGS, PARAMETERS, RECORDING
from nh_control.runs.settings import EXTERNAL, GROUPS, SETTINGS, RunSettings
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
NOT_OF_NODES = ("display", "view", "record", "domain")
"""Run settings that are not node parameters."""
EXTERNAL_S = 30.0
"""Default of `answer_timeout_s` for an external controller."""
POLL_S = 0.05
END_S = 10.0
"""Time (s) that a node has to exit after a signal before a stronger signal follows."""
TAIL = 15
REASONS = {
    STEP_FAILED: "could not take a step",
    NO_ANSWER: "got no answer from the controller",
    CONTROLLER_FAILED: "could not get a command from the controller",
    NOT_RECORDED: "could not write all messages",
}
"""The meanings of the nodes' exit codes."""


class RosMissing(RuntimeError):
    """ROS 2 cannot be imported; the message says what to install."""


class NodeFailed(RuntimeError):
    """A node could not continue. The message contains the `reason` and the last lines of the
    node's log.
    """

    def __init__(self, reason: str, log: Path, tail: str, code: int | None = None):
        super().__init__(f"{reason}; the end of {log}:\n{tail}")
        self.reason, self.unanswered = reason, code == NO_ANSWER


def require_ros(record: bool = True) -> None:
    """Raise RosMissing unless all packages that the nodes import are installed."""
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
    """Return the parameters of all nodes for this experiment, nested at the dots in their names.
    The settings determine the pacing and the choice of nodes.
    """
    whole = experiment.settings.to_dict()
    # settings for runs in one process only, such as open_loop, are not node parameters
    shared = {
        name: value
        for name, value in whole.items()
        if name in GROUPS or SETTINGS[name].only != PROCESS
    }
    waited_for = ["recorder"] * settings.record + ["view"] * settings.view
    faults = experiment.options.faults
    external = whole["controller"] == EXTERNAL
    timeout_s = settings.answer_timeout_s or EXTERNAL_S * external
    return _of_nodes(shared) | {
        "speed_factor": settings.speed_factor,
        "lockstep": settings.lockstep,
        "answer_timeout_s": timeout_s,
        "on_finish": "exit",
        **(
            {"fallback": "hold"} if experiment.scenario.hold else {}
        ),  # without commands it would fall
        **({"wait_for": waited_for} if waited_for else {}),
        **({"wrench": {"targets": topics.pulled(experiment.scenario)}} if settings.view else {}),
        **(
            {
                "output": str(folder / RECORDING),
                "heard_by": ["recorder"],
                "await_commands_s": timeout_s if external else 0.0,
            }
            if settings.record
            else {}
        ),
        **({"topics": _with_truth(experiment.scenario)} if settings.record and faults else {}),
    }


def _of_nodes(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values for a parameter file. Tuples become lists. Empty lists become [""],
    because ROS could not determine their type. Empty mappings and settings of `run` itself are
    left out.
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
    """Return the topics of the true states. The recording of a run with faults contains them."""
    recorded = {**topics.truth(scenario), **topics.recorded(scenario)}
    return [f"{topic}:{message}" for topic, message in recorded.items()]


def run(
    experiment: Experiment,
    settings: RunSettings,
    folder: Path,
    domain: int,
    server: ForkServer,
    running: Callable[[], None] = lambda: None,
) -> bool:
    """Run the nodes, which the `server` forks, in a DDS domain until the plant has finished.
    Returns False if SIGINT or SIGTERM ended the run early.

    Writes `parameters.yaml` and `logs/` into `folder`. Calls `running` repeatedly once all nodes
    have started. Raises NodeFailed if a node exits before the plant has finished, or if the plant
    cannot continue, and ForkServerFailed if the server has exited. All nodes have exited when this
    function returns or raises NodeFailed. The recorder exits last.
    """
    file = folder / PARAMETERS
    node_parameters = {"/**": {"ros__parameters": parameters(experiment, settings, folder)}}
    file.write_text(yaml.safe_dump(node_parameters, sort_keys=False))
    # the recorder starts first, so it misses no message
    names = ["recorder"] * settings.record + ["plant"]
    names += ["tracker"] * (experiment.controller != EXTERNAL)
    names += ["display"] * settings.display + ["view"] * settings.view
    nodes: dict[str, _Node] = {}
    with _signals_noticed() as interrupted:
        try:
            for name in names:
                if not interrupted.is_set():
                    nodes[name] = _Node(server, name, file, folder / LOGS, domain)
            return _monitor(nodes, running, interrupted)
        finally:
            _end(nodes)


def with_view_address(
    address: Callable[[str], None], folder: Path, running: Callable[[], None]
) -> Callable[[], None]:
    """Return a function for `run` that calls `running`. It also calls `address` once, with the
    line that the view in this folder has printed.
    """
    unread_logs = [folder / LOGS / "view.log"]

    def run_once() -> None:
        for log in unread_logs:
            line = next((text for text in log.read_text().splitlines() if "?token=" in text), "")
            if line:
                unread_logs.clear()
                address(line)
        running()

    return run_once


def _monitor(
    nodes: dict[str, _Node], running: Callable[[], None], interrupted: threading.Event
) -> bool:
    """Watch the nodes. Returns True when the plant has exited normally, and False after an
    interruption. Raises NodeFailed.
    """
    up = False
    while not interrupted.is_set():
        codes = {name: node.process.poll() for name, node in nodes.items()}
        for name, code in codes.items():
            node = nodes[name]
            if code in REASONS:
                # the exit code says why
                raise NodeFailed(f"the {name} {REASONS[code]}", node.log, node.tail(), code)
            # only the plant may exit, and only with code 0
            if code is not None and (code or name != "plant"):
                raise NodeFailed(f"the {name} ended with exit code {code}", node.log, node.tail())
        if codes["plant"] is not None:
            return True
        # a node has started when it has logged something; the display logs nothing
        up = up or all(
            node.log.stat().st_size for name, node in nodes.items() if name != "display"
        )
        if up:
            running()
        time.sleep(POLL_S)
    return False


def _end(nodes: dict[str, _Node]) -> None:
    """Stop all nodes, the recorder after the others."""
    for group in (nodes.keys() - {"recorder"}, nodes.keys() & {"recorder"}):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            for name in group:
                nodes[name].process.send_signal(number)
            deadline = time.monotonic() + END_S
            if all(nodes[name].process.ended_by(deadline) for name in group):
                break


class _Node:
    """A node's process with stdout and stderr in `<folder>/<name>.log`. It runs in a separate
    session, so only this program passes Ctrl-C on to it.
    """

    def __init__(self, server: ForkServer, name: str, parameters: Path, folder: Path, domain: int):
        folder.mkdir(exist_ok=True)
        self.log = folder / f"{name}.log"
        environment = {
            # the user's environment comes later and may override this
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            **os.environ,
            dds_domain.VARIABLE: str(domain),
        }
        ros = ["--ros-args", "--disable-external-lib-logs", "--params-file", str(parameters)]
        self.process = server.start([name, *ros], self.log, environment)

    def tail(self) -> str:
        """Return the last lines of the log, indented."""
        lines = self.log.read_text(errors="replace").splitlines()[-TAIL:]
        return "\n".join(f"    {line}" for line in lines) or "    (empty)"


@contextmanager
def _signals_noticed() -> Iterator[threading.Event]:
    """In this context, SIGINT and SIGTERM only set the event, unless they are ignored. They do not
    interrupt the start of a node, because its process would be lost, or the shutdown of the nodes.
    """
    noticed = threading.Event()
    previous = {
        number: signal.signal(number, lambda *_: noticed.set())
        for number in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield noticed
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
