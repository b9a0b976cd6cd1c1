"""Nodes in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import nh_control
from nh_control.runs.node_process import PARENT

ROOT = Path(nh_control.__file__).parents[1]
ENTRY = (
    "import sys; from nh_control.ros.nodes import start; "
    "sys.exit(getattr(start, sys.argv.pop(1))())"
)
"""A node's executable, which ends with its parent: no later test in its domain hears it."""
LOCKSTEP = {"lockstep": True, "speed_factor": 0.0, "wait_for": "[probe]"}
"""Parameters of a plant that waits for every command, and at its start for the probe."""


def end_on_signals() -> None:
    """Have SIGINT and SIGTERM end this script by SystemExit, so that what ends its nodes runs; not
    for processes that rclpy.init gave handlers of its own.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda caught, _: sys.exit(128 + caught))


class NodeProcess:
    """A running node; its output is in `log`."""

    def __init__(self, process: subprocess.Popen, log: Path):
        self.process, self._log, self.name = process, log, log.stem

    @property
    def log(self) -> str:
        return self._log.read_text()

    def end(self, number: int = signal.SIGINT, timeout_s: float = 120.0) -> int:
        """Send a signal and wait; returns the exit code."""
        self.process.send_signal(number)
        return self.wait(timeout_s)

    def kill(self) -> None:
        """End without warning, and remove the shared memory that Fast DDS then leaves behind."""
        shared = self.shared_memory()
        self.process.kill()
        self.process.wait()
        for file in shared:
            file.unlink(missing_ok=True)

    def shared_memory(self) -> list[Path]:
        """Files of the shared memory that Fast DDS has for a running node."""
        links = (
            Path(f"/proc/{self.process.pid}/fd").iterdir() if self.process.poll() is None else ()
        )
        locks = [
            Path(target)
            for link in links
            if (target := os.path.realpath(link)).startswith("/dev/shm/")
            and target.endswith("_el")
        ]
        names = [(lock, lock.name.removesuffix("_el")) for lock in locks]
        return [
            file
            for lock, name in names
            for file in (lock, lock.with_name(name), lock.with_name(f"sem.{name}_mutex"))
        ]

    def wait(self, timeout_s: float = 120.0) -> int:
        """Wait for the end; returns the exit code."""
        return self.process.wait(timeout_s)


class Nodes:
    """Starts nodes in one DDS domain, on this host only."""

    def __init__(self, domain: int, folder: Path):
        self._folder, self._started = folder, []
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])
            ),
            "ROS_DOMAIN_ID": str(domain),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            "ROS_LOG_DIR": str(folder / "ros_log"),
            "NO_COLOR": "1",
            PARENT: str(os.getpid()),
        }

    def start(
        self,
        name: str,
        parameters: dict | None = None,
        *arguments: str,
        script: Path | None = None,
    ) -> NodeProcess:
        """Start a node with parameters; a script is given the node's name to run."""
        given = [
            text
            for key, value in (parameters or {}).items()
            for text in ("-p", f"{key}:={_yaml(value)}")
        ]
        log = self._folder / f"{name}_{len(self._started)}.log"
        program = ["-c", ENTRY, name] if script is None else [str(script), name]
        command = [sys.executable, *program, "--ros-args", *given, *arguments]
        with open(log, "wb") as file:
            process = subprocess.Popen(
                command, env=self.environment, stdout=file, stderr=file, start_new_session=True
            )
        self._started.append(NodeProcess(process, log))
        return self._started[-1]

    def end(self) -> None:
        """End what still runs, by force what does not end by itself."""
        running = [node for node in self._started if node.process.poll() is None]
        for node in running:
            node.process.send_signal(signal.SIGINT)
        for node in running:
            try:
                node.wait(30.0)
            except subprocess.TimeoutExpired:
                node.kill()
        for node in self._started:
            print(
                f"--- {node.name}, exit code {node.process.returncode}\n{node.log}"
            )  # shown for tests that fail


def _yaml(value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "''" if value == "" else str(value)
