"""The nodes' executables. A Ctrl-C during the imports, which take a while, ends a node as quietly
as a later Ctrl-C does.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path

from nh_control.runs.node_process import PARENT, WRONG_USE

_PR_SET_PDEATHSIG = 1
OF_FLAGS = (
    *("-p", "--param", "-r", "--remap", "-e", "--enclave", "--params-file"),
    *("--log-level", "--log-config-file", "--log-file-name"),
)
"""Flags of --ros-args that take a value."""


def _run(name: str) -> int:
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(_help(name))
        return 0
    if stray := stray_arguments(sys.argv[1:]):
        print(
            f"{name}: unknown arguments {' '.join(stray)}; set a parameter by "
            f"--ros-args -p NAME:=VALUE, and a remapping by --ros-args -r OLD:=NEW",
            file=sys.stderr,
        )
        return WRONG_USE
    _end_with_parent()
    for number in (signal.SIGINT, signal.SIGTERM):  # until `process.run_all` installs its handlers
        # nothing is open yet, and an exception within an import may be suppressed
        signal.signal(number, lambda *_: os._exit(0))
    gc.disable()  # it takes a fifth of the import time; `process.run_all` enables it
    return import_module(f"nh_control.ros.nodes.{name}").main()


def forked() -> int:
    """Import the nodes of every run, and fork processes whose first argument is the name of their
    node (see `fork_server.serve`). Returns the exit code.
    """
    # not at the top: nodes that are not forked must install their signal handlers soon
    from nh_control.runs.fork_server import serve

    return serve(import_nodes, lambda: _run(sys.argv.pop(1)))


def import_nodes() -> None:
    """Import the modules of the nodes of every run."""
    for name in ("plant", "tracker", "recorder"):
        # a node that cannot be imported reports it in its own log
        with suppress(Exception):
            import_module(f"nh_control.ros.nodes.{name}")


def stray_arguments(arguments: Sequence[str]) -> list[str]:
    """The arguments that no node reads: those outside --ros-args, and those within it that belong
    to no flag.
    """
    stray, inside, belongs = [], False, False
    for word in arguments:
        if word in ("--ros-args", "--"):
            inside, belongs = word == "--ros-args", False
        elif not inside or not (belongs or word.startswith("-")):
            stray.append(word)
        else:
            belongs = word in OF_FLAGS
    return stray


def _help(name: str) -> str:
    """The parameters of a node, and the meaning of the values on its topics."""
    from nh_control.ros.runtime import declared
    from nh_control.runs import conventions

    # the composed process has the parameters of both nodes
    names = ("plant", "tracker") if name == "composed" else (name,)
    every = (spec for node in names for spec in getattr(declared, node.upper()))
    specs = {spec.name: spec for spec in every}.values()
    lines = [f"  {spec.name} ({spec.value!r})\n    {spec.sentence}" for spec in specs]
    return (
        f"usage: ros2 run nh_control {name} [--ros-args -p NAME:=VALUE ... -r OLD:=NEW ...]\n\n"
        f"parameters (defaults):\n" + "\n".join(lines) + "\n\n"
        f"topics of all nodes:\n{conventions.text()}\n"
    )


def _end_with_parent() -> None:
    """If PARENT is set, let the kernel send SIGTERM when the parent exits for any reason (Linux
    only).
    """
    parent = os.environ.get(PARENT)
    if not parent or sys.platform != "linux":
        return
    # PR_SET_PDEATHSIG
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if not _runs(int(parent)):
        sys.exit(0)  # the parent exited before the kernel was asked


def _runs(number: int) -> bool:
    """Whether a process is running. A killed process exists until its parent has waited for it."""
    try:
        # the state follows the command's name, which may contain spaces and parentheses
        stat = Path(f"/proc/{number}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


# The executables. Each runs its node and returns the exit code.
composed = partial(_run, "composed")
plant = partial(_run, "plant")
tracker = partial(_run, "tracker")
display = partial(_run, "display")
view = partial(_run, "view")
recorder = partial(_run, "recorder")
shadow = partial(_run, "shadow")
