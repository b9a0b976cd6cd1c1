"""`nh_control doctor`: checks the installation and the machine, and names remedies."""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from nh_control.command.usage import FAILED, PROGRAM

GOOD, NOTE, WARNING, ERROR = "ok", "note", "warning", "error"
"""Levels of a finding: good; an optional part is missing; a part works worse; a part does not
work.
"""
MARKS = {GOOD: "[green]ok[/]", NOTE: "-", WARNING: "[yellow]warning[/]", ERROR: "[red]error[/]"}
PYTHON = (3, 10)
LATE_S, NAPS = 1e-3, 100
"""Largest delay of a wake-up (s), and number of measurements."""
ROOM_MB = 64
"""Memory in /dev/shm, and room for the cache, below which there is a warning."""
LARGEST_DOMAIN = 101
"""Largest domain whose ports Linux does not give to other programs."""
RANGES = ("SUBNET", "LOCALHOST", "OFF", "SYSTEM_DEFAULT")
OPTIONAL_ROS = {
    "tf2_ros": "transforms for rviz and Nav2",
    "control_msgs": "the action follow_joint_trajectory",
    "nav2_msgs": "the action navigate_to_pose",
    "simulation_interfaces": "the standard services of simulators",
}
UNSYNCHRONIZED = 5
"""Result of adjtimex for a clock without synchronization."""
_MIDDLEWARE = """
import rclpy
from rclpy.utilities import get_rmw_implementation_identifier as identifier
rclpy.init()
rclpy.create_node("doctor").destroy_node()
print(identifier())
"""


@dataclass(frozen=True)
class Finding:
    """A `message` about a `subject`, its level, and the `remedy`, "" where none is needed."""

    subject: str
    level: str
    message: str
    remedy: str = ""


def add_to(commands: Any) -> None:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "doctor",
        help="check the installation: packages, ROS 2, middleware, discovery, clock, compiler, "
        "cache, with remedies; exit code 1 where something does not work",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Print all findings; returns the exit code."""
    results = list(findings())
    if args.json:
        print(json.dumps([asdict(one) for one in results], indent=2))
    else:
        _print(results)
    return FAILED if any(one.level == ERROR for one in results) else 0


def findings() -> Iterator[Finding]:
    """All findings; the findings about ROS 2 are last."""
    for check in CHECKS:
        yield from check()


def _python() -> Iterator[Finding]:
    text = f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}"
    old = sys.version_info < PYTHON
    remedy = f"install Python {'.'.join(map(str, PYTHON))} or newer" if old else ""
    yield Finding("Python", ERROR if old else GOOD, text, remedy)


def _packages() -> Iterator[Finding]:
    """The package, what it requires, and its extras."""
    try:
        wanted = requires(PROGRAM) or []
    except PackageNotFoundError:
        yield Finding(PROGRAM, WARNING, "a source tree that is not installed", "pip install -e .")
        return
    missing: dict[str, list[str]] = {}
    for requirement in wanted:
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", requirement)
        absent = missing.setdefault(extra[1] if extra else "", [])
        if not _is_installed(name):
            absent.append(name)
    required = missing.pop("", [])
    yield Finding(
        PROGRAM,
        ERROR if required else GOOD,
        f"version {version(PROGRAM)}"
        + (f", without {', '.join(required)}" if required else " with all that it requires"),
        f"pip install {' '.join(required)}" if required else "",
    )
    extras = metadata(PROGRAM).get_all("Provides-Extra") or []
    complete = [name for name in extras if not missing.get(name)]
    others = [name for name in extras if missing.get(name)]
    yield Finding("extras", GOOD, f"complete: {', '.join(complete) or 'none'}")
    if others:
        text = "; ".join(f"{name} lacks {', '.join(missing[name])}" for name in others)
        yield Finding("extras", NOTE, text, f"pip install '{PROGRAM}[EXTRA]' for those you need")


def _is_installed(distribution: str) -> bool:
    try:
        version(distribution)
    except PackageNotFoundError:
        return False
    return True


def _compiler() -> Iterator[Finding]:
    """The compiler, checked by a function that it compiles, and the cache."""
    from nh_control.numerics import compiled

    path, folder = compiled.compiler(), compiled.cache_directory()
    if path is None:
        remedy = "install gcc or clang; NH_CONTROL_CC names another one"
        yield Finding("C compiler", WARNING, f"none: steps are {compiled.SLOWER}", remedy)
    else:
        works, what = _compiles(path)
        remedy = "" if works else "install it anew; NH_CONTROL_CC names another one"
        yield Finding("C compiler", GOOD if works else WARNING, f"{path}{what}", remedy)
    if not compiled.is_private(folder):
        remedy = f"chmod 700 {folder}, or set NH_CONTROL_CACHE to a folder of yours"
        yield Finding("cache", WARNING, f"{folder} cannot be used", remedy)
        return
    files = [file.stat().st_size for file in folder.rglob("*") if file.is_file()]
    room = shutil.disk_usage(folder).free
    text = f"{folder}, {len(files)} files, {sum(files) / 1e6:.0f} MB, {room / 1e9:.1f} GB free"
    full = room < ROOM_MB * 1e6
    remedy = "make room, or delete it; what is needed is compiled again" if full else ""
    yield Finding("cache", WARNING if full else GOOD, text, remedy)


def _compiles(path: str) -> tuple[bool, str]:
    """Whether a compiler makes a working library, and the time it took or the reason
    of a failure.
    """
    import tempfile

    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "one.c"), Path(folder, "one.so")
        source.write_text("double one(void) { return 1.0; }\n")
        command = [path, "-shared", "-fPIC", "-O2", str(source), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return False, f" fails: {(done.stderr or done.stdout).strip().splitlines()[-1:]}"
        one = ctypes.CDLL(str(target)).one
        one.restype = ctypes.c_double
        return one() == 1.0, f" works, {time.perf_counter() - begun:.2f} s a library"


def _machine() -> Iterator[Finding]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    late = sorted(_lateness() for _ in range(NAPS))[int(0.9 * NAPS)]
    slow = late > LATE_S
    remedy = "close other programs; plants of more than a few hundred steps/s will miss some"
    text = f"{cores} cores; nine of ten wake-ups are less than {late * 1e6:.0f} us late"
    yield Finding("pace", WARNING if slow else GOOD, text, remedy if slow else "")
    free = _shared_memory()
    if free is not None:
        text = f"{free / 1e6:.0f} MB free in /dev/shm"
        full = free < ROOM_MB * 1e6
        remedy = "end nodes, then `fastdds shm clean`; or FASTDDS_BUILTIN_TRANSPORTS=UDPv4"
        yield Finding("shared memory", WARNING if full else GOOD, text, remedy if full else "")


def _lateness() -> float:
    begun = time.perf_counter()
    time.sleep(1e-3)
    return time.perf_counter() - begun - 1e-3


def _shared_memory() -> int | None:
    """Free bytes of shared memory; None if there is none."""
    folder = Path("/dev/shm")
    return shutil.disk_usage(folder).free if folder.is_dir() else None


def _clock() -> Iterator[Finding]:
    state = _clock_state()
    text = f"{time.strftime('%Y-%m-%d %H:%M:%S %Z')}"
    if state == UNSYNCHRONIZED:
        remedy = "for robots on other machines start chrony or systemd-timesyncd"
        yield Finding("clock", NOTE, f"{text}, not synchronized", remedy)
    else:
        synchronized = "synchronized" if state is not None else "synchronization not known"
        yield Finding("clock", GOOD, f"{text}, {synchronized}")


def _clock_state() -> int | None:
    """Result of adjtimex; None if it is not available."""
    if sys.platform != "linux":
        return None
    state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(512))
    return None if state < 0 else int(state)


def _ros() -> Iterator[Finding]:
    """ROS 2, with everything that the nodes need."""
    from nh_control.runs.launcher import PACKAGES

    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    distribution = os.environ.get("ROS_DISTRO", "")
    if missing:
        remedy = (
            f"source /opt/ros/<distro>/setup.bash, or {sys.executable} -m pip install "
            f"'{PROGRAM}[ros]' (x86-64 Linux)"
        )
        all_missing = len(missing) == len(PACKAGES)
        text = "not installed" if all_missing else f"lacks {', '.join(missing)}"
        yield Finding("ROS 2", NOTE if all_missing else ERROR, text, remedy)
        return
    where = f"{distribution} in {os.environ.get('AMENT_PREFIX_PATH', '').split(':')[0]}"
    yield Finding("ROS 2", GOOD, where if distribution else "packages of this environment")
    for name, what in OPTIONAL_ROS.items():
        if importlib.util.find_spec(name) is None:
            dashed = name.replace("_", "-")
            remedy = f"apt install ros-{distribution or '<distro>'}-{dashed}"
            yield Finding(name, NOTE, f"not installed: without {what}", remedy)
    yield from _middleware()
    yield from _discovery()


def _middleware() -> Iterator[Finding]:
    """The middleware, by a node in a process of its own."""
    asked = os.environ.get("RMW_IMPLEMENTATION", "")
    command = [sys.executable, "-c", _MIDDLEWARE]
    here = {**os.environ, "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    done = subprocess.run(
        command, env=here, capture_output=True, text=True, check=False, timeout=60
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        remedy = f"install {asked}, or unset RMW_IMPLEMENTATION" if asked else "install ROS 2 anew"
        yield Finding("middleware", ERROR, f"{asked or 'the default'} fails: {last}", remedy)
    else:
        yield Finding("middleware", GOOD, done.stdout.split()[-1])


def _discovery() -> Iterator[Finding]:
    domain = os.environ.get("ROS_DOMAIN_ID", "0")
    if not domain.isdigit() or int(domain) > LARGEST_DOMAIN:
        remedy = f"set ROS_DOMAIN_ID to a number of 0 to {LARGEST_DOMAIN}, the same for all nodes"
        yield Finding("domain", ERROR, f"ROS_DOMAIN_ID is {domain!r}", remedy)
    else:
        yield Finding("domain", GOOD, f"ROS_DOMAIN_ID {domain}")
    reach = os.environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE", "")
    named = f"ROS_AUTOMATIC_DISCOVERY_RANGE {reach or 'unset'}"
    if reach and reach not in RANGES:
        yield Finding("discovery", ERROR, named, f"set it to one of {', '.join(RANGES)}")
    elif reach == "OFF":
        yield Finding("discovery", WARNING, f"{named}: no node finds another", "unset it")
    elif os.environ.get("ROS_LOCALHOST_ONLY") == "1":
        text = "ROS_LOCALHOST_ONLY is deprecated, and overrides ROS_AUTOMATIC_DISCOVERY_RANGE"
        remedy = "unset it, and set ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST"
        yield Finding("discovery", WARNING, text, remedy)
    else:
        here = reach == "LOCALHOST"
        text = "nodes of this machine" if here else "nodes of the whole subnet see each other"
        yield Finding("discovery", GOOD, f"{named}: {text}; `{PROGRAM} run` stays on this machine")


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _python,
    _packages,
    _compiler,
    _machine,
    _clock,
    _ros,
)


def _print(results: list[Finding]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("", "", "found", "remedy"):
        table.add_column(heading, overflow="fold")
    for one in results:
        table.add_row(MARKS[one.level], one.subject, one.message, one.remedy)
    console = Console()
    console.print(table)
    levels = [one.level for one in results]
    counts = {level: levels.count(level) for level in (ERROR, WARNING, NOTE)}
    console.print(", ".join(f"{n} {level}{'s' * (n != 1)}" for level, n in counts.items()))
