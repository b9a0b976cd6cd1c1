"""The nodes' executables. Imports take longer than a hurried Ctrl-C, which must end a node as
quietly as a later one does.
"""

from __future__ import annotations

import signal
import sys
from importlib import import_module


def plant() -> int:
    """Run the plant; returns the exit code."""
    return _run("plant")


def tracker() -> int:
    """Run the tracker; returns the exit code."""
    return _run("tracker")


def display() -> int:
    """Run the display; returns the exit code."""
    return _run("display")


def recorder() -> int:
    """Run the recorder; returns the exit code."""
    return _run("recorder")


def _run(name: str) -> int:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))  # until the node's process takes them over
    return import_module(f"nh_control.ros.nodes.{name}").main()
