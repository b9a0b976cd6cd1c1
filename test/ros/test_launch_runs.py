"""How launches end; needs `launch` and a sourced workspace with this package."""

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from ament_index_python import get_packages_with_prefixes
from command import wait_for_clock

ROOT = Path(__file__).parents[2]
RUN = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import AnyLaunchDescriptionSource
file, *given = sys.argv[1:]
arguments = [tuple(text.split(":=", 1)) for text in given]
service = LaunchService(argv=given, noninteractive=True)
source = AnyLaunchDescriptionSource(file)
included = IncludeLaunchDescription(source, launch_arguments=arguments)
service.include_launch_description(LaunchDescription([included]))
sys.exit(service.run())
"""
"""What `ros2 launch FILE ARGUMENTS` does."""
INTERRUPTED = """
import os, signal, subprocess
start = subprocess.Popen._execute_child
def interrupted(process, *given):
    start(process, *given)
    subprocess.Popen._execute_child = start
    os.kill(os.getpid(), signal.SIGINT)
    os.getpid()  # here at the latest the interpreter notices
subprocess.Popen._execute_child = interrupted
"""
"""Before RUN: the launch is interrupted when the first process is there, and nobody knows yet."""
END_S = 60.0


def installed() -> bool:
    if not all(importlib.util.find_spec(name) for name in ("launch", "launch_ros")):
        return False
    return "nh_control" in get_packages_with_prefixes()


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not installed(), reason="launch, or this package sourced, is missing"),
]


class Launch:
    """A running launch file in a group of processes."""

    def __init__(self, domain, folder, *arguments, name="snakeboard", before=""):
        self.log, self.domain = folder / "launch.log", domain
        environment = {
            **os.environ,
            "ROS_DOMAIN_ID": str(domain),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            "ROS_LOG_DIR": str(folder / "log"),
        }
        file = str(ROOT / "launch" / f"{name}.launch.py")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", before + RUN, file, *arguments],
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )

    def wait_for(self, text, count=1):
        deadline = time.monotonic() + END_S
        while self.text.count(text) < count:
            assert time.monotonic() < deadline and self.process.poll() is None, self.text
            time.sleep(0.05)

    @property
    def text(self):
        return self.log.read_text()

    def node(self, name):
        lines = [line for line in self.text.splitlines() if "process started with pid" in line]
        found = [line for line in lines if f"[{name}-" in line][-1]  # it may have come back
        return int(found.split("pid [")[1].rstrip("]"))

    def left(self):
        """Processes that have the launch's environment, whatever their parent or group is."""
        own, found = f"ROS_LOG_DIR={self.log.parent / 'log'}".encode(), []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if own in (process / "environ").read_bytes().split(b"\0"):
                    found.append((process / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue  # it has ended, or is another user's
        return found

    def wait(self):
        code, deadline = self.process.wait(END_S), time.monotonic() + 20
        while self.left() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not self.left()
        return code


@pytest.fixture
def launch(domain, tmp_path):
    """Return f(arguments) -> Launch; nothing is left behind."""
    started = []

    def start(*arguments, **options):
        started.append(Launch(domain, tmp_path, *arguments, **options))
        return started[-1]

    yield start
    for one in started:
        try:
            os.killpg(one.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


FAST = ("speed_factor:=0", "lockstep:=True", "on_finish:=exit", "duration_s:=1.0")


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("snakeboard", (), ("rviz2",)),  # is not installed, or a process
        ("snakeboard", ("headless:=true", "shadow:=true"), ("[shadow]: model",)),
        (
            "multi",
            ("headless:=true", "scenario:=snakeboard", "robots:=left right"),
            ("[left.plant]: finished at step 100", "[right.plant]: finished at step 100"),
        ),
    ],
)
def test_a_run_ends_well_with_all_its_nodes(launch, name, arguments, told):
    run = launch(*arguments, *FAST, name=name)
    assert run.wait() == 0, run.text
    assert all(text in run.text for text in told)


@pytest.mark.parametrize(
    ("killed", "arguments", "told"),
    [
        (
            "",
            ("headless:=true", "disturb:=nowhere:constant:1"),
            "the plant ended with exit code 2",
        ),
        ("plant", ("headless:=true",), "the plant ended with exit code -9"),
        (
            "display",
            ("on_finish:=exit", "duration_s:=3.0", "rviz:=false"),
            "the display ended with exit code -9",
        ),
    ],
)
def test_a_node_that_fails_is_told_and_the_launch_has_an_exit_code(
    launch, killed, arguments, told
):
    run = launch(*arguments)
    if killed:
        run.wait_for("[tracker]: model")
        os.kill(run.node(killed), signal.SIGKILL)
    assert run.wait() != 0, run.text
    assert told in run.text
    assert killed != "display" or "300 steps done" in run.text  # the run goes on without it


def test_a_plant_that_cannot_go_on_ends_the_launch_with_an_exit_code(launch, tmp_path):
    """Without a tracker and without forces the steering leaves the model's domain."""
    file = tmp_path / "let_go.yaml"
    given = {"scenario": "snakeboard", "wait_for_tracker": False, "fallback": "zero"}
    file.write_text(yaml.safe_dump({"/**": {"ros__parameters": given}}))
    run = launch("headless:=true", "tracker:=false", "on_finish:=continue", f"params_file:={file}")
    assert run.wait() != 0, run.text
    assert "the plant ended with exit code 3" in run.text


def test_a_killed_tracker_comes_back_and_the_snakeboard_survives_in_the_meantime(launch):
    run = launch("headless:=true", "duration_s:=12.0")
    run.wait_for("[tracker]: model")
    wait_for_clock(2.0, run.domain)
    os.kill(run.node("tracker"), signal.SIGKILL)
    run.wait_for("[tracker]: model", 2)
    assert run.wait() != 0, run.text
    _, _, back = run.text.partition("exit code -9")
    absent, again, _ = back.partition("[tracker]: model")
    assert again and "failed" not in absent
    assert "the tracker ended with exit code -9" in run.text


@pytest.mark.parametrize("text", ["process started", "reference 'parking', 1480"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_the_launch(launch, number, text):
    run = launch("rviz:=false")
    run.wait_for(text)
    run.process.send_signal(number)
    code = run.wait()
    assert code == 0 or number != signal.SIGINT or text == "process started", run.text


def test_an_interrupt_within_the_start_of_a_node_leaves_nothing(launch):
    run = launch("rviz:=false", before=INTERRUPTED)
    run.wait()
    assert "user interrupted with ctrl-c" in run.text
