"""Who is started, watched and ended in a run of nodes, with small programs in place of nodes, and
what is said of one that ends too soon.
"""

import importlib.util
import os
import re
import signal
import time
from pathlib import Path

import pytest
import yaml

from nh_control import scenarios
from nh_control.runs import launcher
from nh_control.runs.experiment import Experiment
from nh_control.runs.fork_server import ForkServer, ForkServerFailed
from nh_control.runs.launcher import NodeFailed, RosMissing
from nh_control.runs.node_process import PARENT, STEP_FAILED
from nh_control.runs.settings import RunSettings

NODE = """
import os, signal, sys, time
from nh_control.runs.fork_server import serve
def end(*_):
    print("ended", time.monotonic(), flush=True)
    sys.exit(0)
def run():
    signal.signal(signal.SIGINT, end)
    exec({programs!r}.get(sys.argv[1], {usual!r}), globals())
    return 0
sys.exit(serve(lambda: None, run))
"""
SAYS = f"""
print(os.getsid(0) == os.getpid(), os.environ["{PARENT}"] == str(os.getppid()), sys.argv[-1],
      os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"], os.environ["ROS_DOMAIN_ID"],
      sys.stdin.read(), flush=True)
"""
WAITS, ENDS = "time.sleep(60)", SAYS + "time.sleep(0.3)"
DEAF = "for one in (signal.SIGINT, signal.SIGTERM): signal.signal(one, signal.SIG_IGN)\n"


@pytest.fixture(scope="module")
def experiment():
    return Experiment.make(scenarios.get("urdf"), duration_s=0.1)


@pytest.fixture
def run(experiment, monkeypatch, tmp_path):
    """Return f(settings, running, **programs by node) -> whether the run ended by itself."""
    monkeypatch.setattr(launcher, "POLL_S", 0.02)

    def run(settings=RunSettings(display=False), running=lambda: None, **programs):
        node = NODE.format(programs={"plant": ENDS, **programs}, usual=SAYS + WAITS)
        before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
        try:
            with ForkServer(node) as server:
                return launcher.run(experiment, settings, tmp_path, 5, server, running)
        finally:
            assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == before

    return run


@pytest.mark.parametrize(
    ("options", "names", "discovery"),
    [
        ({"display": False}, ["recorder", "plant", "tracker"], "SUBNET"),
        ({"record": False}, ["plant", "tracker", "display"], "LOCALHOST"),
        ({"record": False, "view": True, "display": False}, ["plant", "tracker", "view"], ""),
    ],
)
def test_nodes_are_processes_of_their_own_until_the_plant_ends_and_the_recorder_ends_last(
    options, names, discovery, run, monkeypatch, tmp_path
):
    monkeypatch.delenv("ROS_AUTOMATIC_DISCOVERY_RANGE", raising=False)
    if discovery:  # the user's own
        monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", discovery)
    told, file = [], tmp_path / "parameters.yaml"
    assert run(RunSettings(**options), lambda: told.append(1)) and told
    logs = {one.stem: one.read_text() for one in (tmp_path / "logs").iterdir()}
    assert logs.keys() == set(names)
    for log in logs.values():
        assert log.splitlines()[0] == f"True True {file} {discovery or 'LOCALHOST'} 5 "
    ended = {name: float(log.split()[-1]) for name, log in logs.items() if name != "plant"}
    assert max(ended, key=ended.get) == "recorder" or "recorder" not in names
    assert yaml.safe_load(file.read_text())["/**"]["ros__parameters"]["scenario"] == "urdf"


def test_a_run_has_started_when_all_nodes_but_the_display_have_logged(run):
    told = []
    assert run(RunSettings(), lambda: told.append(1), display=WAITS) and told
    told.clear()
    assert run(RunSettings(), lambda: told.append(1), tracker=WAITS) and not told


@pytest.mark.parametrize(
    ("node", "code", "lines", "reason"),
    [
        ("tracker", 0, 0, "the tracker ended with exit code 0"),
        ("tracker", 2, 40, "the tracker ended with exit code 2"),
        ("plant", 1, 0, "the plant ended with exit code 1"),
        ("plant", STEP_FAILED, 0, "the plant could not take a step"),
    ],
)
def test_a_node_that_ends_too_soon_is_named_with_the_end_of_its_log(
    node, code, lines, reason, run, tmp_path
):
    program = f"for k in range({lines}): print(k)\nsys.exit({code})"
    with pytest.raises(NodeFailed) as failed:
        run(**{"plant": WAITS, node: program})
    tail = "\n".join(f"    {k}" for k in range(25, 40)) if lines else "    (empty)"
    assert failed.value.reason == reason
    log = tmp_path / "logs" / f"{node}.log"
    assert str(failed.value) == f"{reason}; the end of {log}:\n{tail}"


def test_forked_processes_end_with_the_program_that_started_their_server(tmp_path):
    node = NODE.format(programs={}, usual="print(os.getpid(), flush=True); " + WAITS)
    with ForkServer(node) as server:
        process = server.start(["one"], log := tmp_path / "one.log", os.environ)
        assert process.poll() is None and not process.ended_by(time.monotonic() + 0.2)
        while not (text := log.read_text()):
            time.sleep(0.02)
    deadline = time.monotonic() + 20
    while Path(f"/proc/{int(text)}/fd/1").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(f"/proc/{int(text)}/fd/1").exists()


def test_a_server_that_fails_is_an_error_and_nobody_waits_for_it(tmp_path):
    message = pytest.raises(ForkServerFailed, match="ended with exit code 3")
    with ForkServer("import sys; sys.exit(3)") as server, message:
        server.start(["one"], tmp_path / "one.log", os.environ)


def test_who_does_not_end_is_killed(run, monkeypatch, tmp_path):
    monkeypatch.setattr(launcher, "END_S", 0.2)
    assert run(tracker=DEAF + SAYS + WAITS)
    assert "ended" not in (tmp_path / "logs" / "tracker.log").read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_early(number, run):
    assert run(running=lambda: signal.raise_signal(number), plant=SAYS + WAITS) is False


def test_where_the_view_is_is_told_once(tmp_path):
    (tmp_path / "logs").mkdir()
    log, told, ticks = tmp_path / "logs" / "view.log", [], []
    tell = launcher.with_view_address(told.append, tmp_path, lambda: ticks.append(1))
    log.write_text("a warning\n")
    tell()
    assert told == []
    log.write_text("a warning\nit is shown at http://127.0.0.1:1/?token=a\nmore\n")
    for _ in range(3):
        tell()
    assert told == ["it is shown at http://127.0.0.1:1/?token=a"] and len(ticks) == 4


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", {"rosbags": None}.get)
    monkeypatch.setattr(launcher, "PACKAGES", ())
    launcher.require_ros(record=False)
    with pytest.raises(RosMissing, match="cannot import rosbags"):
        launcher.require_ros()


def test_all_that_the_nodes_import_is_asked_for():
    """A missing package is named before a node fails to import it."""
    folder = Path(launcher.__file__).parents[1] / "ros"
    named = re.compile(
        r"^(?:from|import) (rclpy|\w+_msgs|\w+_interfaces|std_srvs)\b", re.MULTILINE
    )
    used = {name for file in folder.rglob("*.py") for name in named.findall(file.read_text())}
    assert used - {"simulation_interfaces"} == set(launcher.PACKAGES)  # which may be missing
