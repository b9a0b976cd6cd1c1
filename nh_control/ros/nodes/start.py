"""The nodes' executables. A Ctrl-C during the imports, which take a while, ends a node as quietly
as a later one.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from functools import partial
from importlib import import_module
from pathlib import Path

from nh_control.runs.node_process import PARENT

_PR_SET_PDEATHSIG = 1


def _run(name: str) -> int:
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(_help(name))
        return 0
    _end_with_parent()
    for number in (signal.SIGINT, signal.SIGTERM):  # until the node's process takes them over
        # nothing is open yet, and what is raised within an import may be dropped
        signal.signal(number, lambda *_: os._exit(0))
    return import_module(f"nh_control.ros.nodes.{name}").main()


def _help(name: str) -> str:
    """The parameters of a node, and the meaning of the numbers on its topics."""
    from nh_control.ros.runtime import declared
    from nh_control.runs import conventions

    names = ("plant", "tracker") if name == "composed" else (name,)
    every = (spec for one in names for spec in getattr(declared, one.upper()))
    specs = {spec.name: spec for spec in every}.values()
    lines = [f"  {spec.name} ({spec.value!r})\n    {spec.sentence}" for spec in specs]
    return (
        f"usage: ros2 run nh_control {name} [--ros-args -p NAME:=VALUE ... -r OLD:=NEW ...]\n\n"
        f"parameters (defaults):\n" + "\n".join(lines) + "\n\n"
        f"topics of all nodes:\n{conventions.text()}\n"
    )


def _end_with_parent() -> None:
    """If PARENT is set, let the kernel send SIGTERM when the parent ends for any reason; Linux
    only.
    """
    parent = os.environ.get(PARENT)
    if not parent or sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if not _runs(int(parent)):
        sys.exit(0)  # it ended before


def _runs(number: int) -> bool:
    """Whether a process runs; a killed process exists until its parent has waited for it."""
    try:
        stat = Path(f"/proc/{number}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


# the executables: each runs its node and returns the exit code
composed = partial(_run, "composed")
plant = partial(_run, "plant")
tracker = partial(_run, "tracker")
display = partial(_run, "display")
view = partial(_run, "view")
recorder = partial(_run, "recorder")
shadow = partial(_run, "shadow")
