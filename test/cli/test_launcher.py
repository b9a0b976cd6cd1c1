"""Nodes of a run as processes that are pretended: who is started, watched and ended, in what
order, and what is said of one that ends too soon.
"""

import importlib.util
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from nh_control.runs import launcher
from nh_control.runs.launcher import NodeFailed, RosMissing
from nh_control.runs.node_process import PARENT, STEP_FAILED
from nh_control.runs.settings import RunSettings


class Process:
    """A process that returns `codes`, one per poll, and ends by the signals in `obeys`."""

    def __init__(self, name, codes, obeys, signals):
        self.name, self.codes, self.obeys, self.signals = name, codes, obeys, signals

    def poll(self):
        """The next code, the last one again and again."""
        return self.codes.pop(0) if len(self.codes) > 1 else self.codes[0]

    def send_signal(self, number):
        """Remembered."""
        self.signals.append((self.name, signal.Signals(number).name))
        if number == self.obeys:
            self.codes = [0]


class Nodes:
    """Nodes by their exit codes; their logs contain their output."""

    def __init__(self, folder, obeys=signal.SIGINT, **codes):
        self.signals, self.waits, self.by_name = [], [], {}
        for name, given in codes.items():
            log = folder / f"{name}.log"
            log.write_text("up\n")
            process = Process(name, given, obeys, self.signals)
            self.by_name[name] = SimpleNamespace(
                process=process,
                log=log,
                tail=lambda: "the tail",
                ended_by=lambda deadline, process=process: self.ended(deadline, process),
            )

    def ended(self, deadline, process):
        """By that time."""
        self.waits.append(deadline - time.monotonic())
        return process.codes == [0]


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Skip all waiting."""
    monkeypatch.setattr(launcher.time, "sleep", lambda seconds: None)


def test_a_run_ends_when_the_plant_ends_without_error(tmp_path):
    nodes, told = Nodes(tmp_path, plant=[None, None, None, 0], tracker=[None]), []
    assert launcher._monitor(nodes.by_name, lambda: told.append(1), threading.Event())
    assert told


def test_a_run_starts_when_all_nodes_but_the_display_have_logged(tmp_path):
    codes = {"plant": [None, None, None, None, 0], "tracker": [None], "display": [None]}
    nodes, told = Nodes(tmp_path, **codes), []
    nodes.by_name["display"].log.write_text("")
    nodes.by_name["tracker"].log.write_text("")
    assert launcher._monitor(nodes.by_name, lambda: told.append(1), threading.Event())
    assert not told
    nodes = Nodes(tmp_path, **{**codes, "plant": [None, None, None, None, 0]})
    nodes.by_name["display"].log.write_text("")
    assert launcher._monitor(nodes.by_name, lambda: told.append(1), threading.Event())
    assert told


@pytest.mark.parametrize(
    ("codes", "reason"),
    [
        ({"plant": [None], "tracker": [None, 0]}, "the tracker ended with exit code 0"),
        ({"plant": [None], "tracker": [None, 2]}, "the tracker ended with exit code 2"),
        ({"plant": [None, 1], "tracker": [None]}, "the plant ended with exit code 1"),
        ({"plant": [STEP_FAILED], "tracker": [None]}, "the plant could not make a step"),
    ],
)
def test_a_node_that_ends_too_soon_is_named_with_the_end_of_its_log(codes, reason, tmp_path):
    left = iter(range(100))  # how often it may look
    with pytest.raises(NodeFailed) as failed:
        launcher._monitor(Nodes(tmp_path, **codes).by_name, lambda: next(left), threading.Event())
    assert failed.value.reason == reason
    assert str(failed.value).startswith(f"{reason}; the end of {tmp_path}")
    assert str(failed.value).endswith(":\nthe tail")


def test_the_recorder_ends_after_the_others(tmp_path):
    nodes = Nodes(tmp_path, recorder=[None], plant=[None], tracker=[None])
    launcher._end(nodes.by_name)
    assert sorted(nodes.signals[:2]) == [("plant", "SIGINT"), ("tracker", "SIGINT")]
    assert nodes.signals[2:] == [("recorder", "SIGINT")]


def test_who_does_not_end_is_told_more_loudly(tmp_path):
    nodes = Nodes(tmp_path, obeys=signal.SIGKILL, plant=[None])
    launcher._end(nodes.by_name)
    assert [name for _, name in nodes.signals] == ["SIGINT", "SIGTERM", "SIGKILL"]
    assert nodes.waits == pytest.approx([launcher.END_S] * 3, abs=2.0) and launcher.END_S == 10


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (RunSettings(display=False), ["recorder", "plant", "tracker"]),
        (RunSettings(), ["recorder", "plant", "tracker", "display"]),
        (RunSettings(record=False, display=False), ["plant", "tracker"]),
        (RunSettings(record=False, view=True, display=False), ["plant", "tracker", "view"]),
    ],
)
@pytest.mark.parametrize("ended", [True, False])
def test_the_nodes_of_a_run_are_started_watched_and_ended(
    options, names, ended, monkeypatch, tmp_path
):
    started, over = [], []

    def watch(nodes, running, interrupted):
        assert list(nodes) == names
        if not ended:
            signal.raise_signal(signal.SIGTERM)
        return not interrupted.is_set()

    monkeypatch.setattr(launcher, "parameters", lambda *_: {"scenario": "arm"})
    monkeypatch.setattr(launcher, "_Node", lambda *given: started.append(given))
    monkeypatch.setattr(launcher, "_monitor", watch)
    monkeypatch.setattr(launcher, "_end", lambda nodes: over.append(list(nodes)))
    before = signal.getsignal(signal.SIGTERM)
    assert launcher.run(None, options, tmp_path) is ended
    file = tmp_path / "parameters.yaml"
    assert started == [(name, file, tmp_path / "logs") for name in names] and over == [names]
    assert yaml.safe_load(file.read_text()) == {"/**": {"ros__parameters": {"scenario": "arm"}}}
    assert signal.getsignal(signal.SIGTERM) is before


def test_where_the_view_is_is_told_once(tmp_path):
    (tmp_path / "logs").mkdir()
    log, told, ticks = tmp_path / "logs" / "view.log", [], []
    tell = launcher.telling(told.append, tmp_path, lambda: ticks.append(1))
    log.write_text("a warning\n")
    tell()
    assert told == []
    log.write_text("a warning\nit is shown at http://127.0.0.1:1/?token=a\nmore\n")
    for _ in range(3):
        tell()
    assert told == ["it is shown at http://127.0.0.1:1/?token=a"] and len(ticks) == 4


def test_a_node_is_a_separate_process_with_a_log(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(
        subprocess, "Popen", lambda command, **how: seen.append((command, how)) or "process"
    )
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET")
    node = launcher._Node("plant", tmp_path / "p.yaml", tmp_path / "logs")
    ((command, how),) = seen
    assert command[3:5] == ["plant", "--ros-args"] and command[-1] == str(tmp_path / "p.yaml")
    assert how["start_new_session"] and how["env"][PARENT] == str(os.getpid())
    assert how["env"]["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "SUBNET"  # the user's own
    assert how["stdin"] == subprocess.DEVNULL
    assert how["stdout"] is how["stderr"] and node.log == tmp_path / "logs" / "plant.log"
    monkeypatch.delenv("ROS_AUTOMATIC_DISCOVERY_RANGE")
    launcher._Node("plant", tmp_path / "p.yaml", tmp_path / "logs")
    assert seen[1][1]["env"]["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "LOCALHOST"
    assert node.tail() == "    (empty)"
    node.log.write_text("\n".join(map(str, range(40))))
    assert node.tail() == "\n".join(f"    {k}" for k in range(25, 40))


@pytest.mark.parametrize("record", [True, False])
def test_missing_packages_are_named(record, monkeypatch):
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "rosbags" else name
    )
    if not record:
        launcher.require_ros(record=False)
        return
    for ask in (launcher.require_ros, lambda: launcher.require_ros(record=True)):
        with pytest.raises(RosMissing, match="cannot import rosbags"):
            ask()


def test_all_that_the_nodes_import_is_asked_for():
    """A missing package is named before a node fails to import it."""
    folder = Path(launcher.__file__).parents[1] / "ros"
    named = re.compile(
        r"^(?:from|import) (rclpy|\w+_msgs|\w+_interfaces|std_srvs)\b", re.MULTILINE
    )
    used = {name for file in folder.rglob("*.py") for name in named.findall(file.read_text())}
    assert used - {"simulation_interfaces"} == set(launcher.PACKAGES)  # which may be missing


def test_a_run_handles_signals_and_restores_the_handlers():
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    for number in numbers:
        with launcher._signals_noticed() as noticed:
            assert not noticed.is_set()
            signal.raise_signal(number)
            assert noticed.is_set()
        assert [signal.getsignal(one) for one in numbers] == before


@pytest.mark.parametrize("started", [1, 2, 3])
def test_a_signal_within_the_start_of_a_node_ends_all_that_were_started(
    started, monkeypatch, tmp_path
):
    """No further node is started, and all started nodes are known."""
    begun, over = [], []

    def begin(name, *_):
        begun.append(name)
        if len(begun) == started:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)  # who is in a hurry
        return name

    def end(nodes):
        signal.raise_signal(signal.SIGINT)  # does not keep it from its work
        over.append(list(nodes))

    monkeypatch.setattr(launcher, "parameters", lambda *_: {})
    monkeypatch.setattr(launcher, "_Node", begin)
    monkeypatch.setattr(launcher, "_end", end)
    assert launcher.run(None, RunSettings(), tmp_path) is False
    assert over == [begun] and begun == ["recorder", "plant", "tracker"][:started]
