"""`nh_control doctor` checks the installation and the machine, and names remedies."""

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
from nh_control.runs import dds_domain

GOOD, NOTE, WARNING, ERROR = "ok", "note", "warning", "error"
"""Levels of a finding: good; an optional part is missing; a part works, but less well; a part does
not work.
"""
MARKS = {GOOD: "[green]ok[/]", NOTE: "-", WARNING: "[yellow]warning[/]", ERROR: "[red]error[/]"}
PYTHON = (3, 10)
LATE_S, NAPS = 1e-3, 100
"""Maximum acceptable delay (s) of a wake-up, and the number of measurements."""
LEAST_FREE_MB = 64
"""Minimum space (MB) in /dev/shm and for the cache. Less space causes a warning."""
RANGES = ("SUBNET", "LOCALHOST", "OFF", "SYSTEM_DEFAULT")
OPTIONAL_ROS = {
    "tf2_ros": "transforms for rviz and Nav2",
    "control_msgs": "the action follow_joint_trajectory",
    "nav2_msgs": "the action navigate_to_pose",
    "simulation_interfaces": "the standard services of simulators",
}
UNSYNCHRONIZED = 5
"""The value that adjtimex returns for an unsynchronized clock."""
_MIDDLEWARE = """
import rclpy
from rclpy.utilities import get_rmw_implementation_identifier as identifier
rclpy.init()
rclpy.create_node("doctor").destroy_node()
print(identifier())
"""


@dataclass(frozen=True)
class Finding:
    """A `message` about a `subject`, its level, and the `remedy`, which is "" if none is
    needed.
    """

    subject: str
    level: str
    message: str
    remedy: str = ""


def add_to(commands: Any) -> None:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser("doctor")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Print all findings. Returns the exit code."""
    results = list(findings())
    if args.json:
        print(json.dumps([asdict(finding) for finding in results], indent=2))
    else:
        _print(results)
    return FAILED if any(finding.level == ERROR for finding in results) else 0


def findings() -> Iterator[Finding]:
    """Yield all findings. Those about ROS 2 come last."""
    for check in CHECKS:
        yield from check()


def _python() -> Iterator[Finding]:
    text = f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}"
    old = sys.version_info < PYTHON
    remedy = f"install Python {'.'.join(map(str, PYTHON))} or newer" if old else ""
    yield Finding("Python", ERROR if old else GOOD, text, remedy)


def _packages() -> Iterator[Finding]:
    """Check the package, its requirements, and its extras."""
    try:
        requirements = requires(PROGRAM) or []
    except PackageNotFoundError:
        yield Finding(PROGRAM, WARNING, "a source tree that is not installed", "pip install -e .")
        return
    missing: dict[str, list[str]] = {}
    # 'name>=1.0; extra == "plot"' -> name and extra
    for requirement in requirements:
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
        + (f", without {', '.join(required)}" if required else " with all requirements"),
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
    """Check the compiler by compiling a function, and check the cache."""
    from nh_control.numerics import cache_folder, compiled

    path, folder = compiled.compiler(), cache_folder.cache_directory()
    if path is None:
        remedy = "install gcc or clang; NH_CONTROL_CC names another one"
        yield Finding("C compiler", WARNING, f"none: steps are {cache_folder.SLOWER}", remedy)
    else:
        works, what = _compiles(path)
        remedy = "" if works else "reinstall it; NH_CONTROL_CC names another one"
        yield Finding("C compiler", GOOD if works else WARNING, f"{path}{what}", remedy)
    # compiled code of other users must not be loaded
    if not cache_folder.is_private(folder):
        remedy = f"chmod 700 {folder}, or set NH_CONTROL_CACHE to a folder that you own"
        yield Finding("cache", WARNING, f"{folder} cannot be used", remedy)
        return
    files = [file.stat().st_size for file in folder.rglob("*") if file.is_file()]
    free = shutil.disk_usage(folder).free
    text = f"{folder}, {len(files)} files, {sum(files) / 1e6:.0f} MB, {free / 1e9:.1f} GB free"
    full = free < LEAST_FREE_MB * 1e6
    remedy = "free disk space or delete it; needed functions are compiled again" if full else ""
    yield Finding("cache", WARNING if full else GOOD, text, remedy)


def _compiles(path: str) -> tuple[bool, str]:
    """Return whether a compiler produces a working library, and the time it took or the reason for
    the failure.
    """
    import tempfile

    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "probe.c"), Path(folder, "probe.so")
        source.write_text("double probe(void) { return 1.0; }\n")
        command = [path, "-shared", "-fPIC", "-O2", str(source), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return False, f" fails: {(done.stderr or done.stdout).strip().splitlines()[-1:]}"
        function = ctypes.CDLL(str(target)).probe
        function.restype = ctypes.c_double
        return function() == 1.0, f" works, {time.perf_counter() - begun:.2f} s per library"


def _machine() -> Iterator[Finding]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    # the 90th percentile: single late wake-ups do not matter
    late = sorted(_lateness() for _ in range(NAPS))[int(0.9 * NAPS)]
    slow = late > LATE_S
    remedy = "close other programs; plants with several hundred steps/s will miss some of them"
    text = f"{cores} cores; nine of ten wake-ups are less than {late * 1e6:.0f} us late"
    yield Finding("pace", WARNING if slow else GOOD, text, remedy if slow else "")
    free = _shared_memory()
    if free is not None:
        text = f"{free / 1e6:.0f} MB free in /dev/shm"
        full = free < LEAST_FREE_MB * 1e6
        remedy = "end nodes, then `fastdds shm clean`; or FASTDDS_BUILTIN_TRANSPORTS=UDPv4"
        yield Finding("shared memory", WARNING if full else GOOD, text, remedy if full else "")


def _lateness() -> float:
    begun = time.perf_counter()
    time.sleep(1e-3)
    return time.perf_counter() - begun - 1e-3


def _shared_memory() -> int | None:
    """Return the number of free bytes in shared memory, or None if there is no shared memory."""
    folder = Path("/dev/shm")
    return shutil.disk_usage(folder).free if folder.is_dir() else None


def _clock() -> Iterator[Finding]:
    state = _clock_state()
    text = f"{time.strftime('%Y-%m-%d %H:%M:%S %Z')}"
    if state == UNSYNCHRONIZED:
        remedy = "for robots on other machines, start chrony or systemd-timesyncd"
        yield Finding("clock", NOTE, f"{text}, not synchronized", remedy)
    else:
        synchronized = "synchronized" if state is not None else "synchronization unknown"
        yield Finding("clock", GOOD, f"{text}, {synchronized}")


def _clock_state() -> int | None:
    """Return the result of adjtimex, or None if it is not available."""
    if sys.platform != "linux":
        return None
    state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(512))
    # adjtimex may be forbidden in containers
    return None if state < 0 else int(state)


def _ros() -> Iterator[Finding]:
    """Check ROS 2 and all packages that the nodes need."""
    from nh_control.runs.launcher import PACKAGES

    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    distribution = os.environ.get("ROS_DISTRO", "")
    if missing:
        remedy = (
            f"source /opt/ros/<distro>/setup.bash, or {sys.executable} -m pip install "
            f"'{PROGRAM}[ros]' (x86-64 Linux)"
        )
        # having no ROS at all is a choice, but an incomplete installation is an error
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
    """Check the middleware with a node in a separate process."""
    requested = os.environ.get("RMW_IMPLEMENTATION", "")
    command = [sys.executable, "-c", _MIDDLEWARE]
    # a broken middleware may crash its process, so it is tried in a separate one
    here = {**os.environ, "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    done = subprocess.run(
        command, env=here, capture_output=True, text=True, check=False, timeout=60
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        remedy = (
            f"install {requested}, or unset RMW_IMPLEMENTATION" if requested else "reinstall ROS 2"
        )
        yield Finding("middleware", ERROR, f"{requested or 'the default'} fails: {last}", remedy)
    else:
        yield Finding("middleware", GOOD, done.stdout.split()[-1])


def _discovery() -> Iterator[Finding]:
    try:
        fixed = dds_domain.fixed_domain()
    except ValueError as error:
        yield Finding("domain", ERROR, str(error), f"correct or unset {dds_domain.VARIABLE}")
    else:
        chosen = f"{dds_domain.VARIABLE} unset: `{PROGRAM} run` chooses an unused domain"
        text = chosen if fixed is None else f"{dds_domain.VARIABLE} {fixed}"
        yield Finding("domain", GOOD, text)
    reach = os.environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE", "")
    named = f"ROS_AUTOMATIC_DISCOVERY_RANGE {reach or 'unset'}"
    if reach and reach not in RANGES:
        yield Finding("discovery", ERROR, named, f"set it to one of {', '.join(RANGES)}")
    elif reach == "OFF":
        yield Finding("discovery", WARNING, f"{named}: nodes do not find each other", "unset it")
    elif os.environ.get("ROS_LOCALHOST_ONLY") == "1":
        text = "ROS_LOCALHOST_ONLY is deprecated, and overrides ROS_AUTOMATIC_DISCOVERY_RANGE"
        remedy = "unset it, and set ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST"
        yield Finding("discovery", WARNING, text, remedy)
    else:
        here = reach == "LOCALHOST"
        text = "nodes on this machine" if here else "nodes in the whole subnet see each other"
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
    for finding in results:
        table.add_row(MARKS[finding.level], finding.subject, finding.message, finding.remedy)
    console = Console()
    console.print(table)
    levels = [finding.level for finding in results]
    counts = {level: levels.count(level) for level in (ERROR, WARNING, NOTE)}
    console.print(", ".join(f"{n} {level}{'s' * (n != 1)}" for level, n in counts.items()))
