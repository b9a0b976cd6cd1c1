"""A node that is interrupted while it still imports ends as it would later: no traceback, exit
code 0.
"""

import signal
import subprocess
import sys

import pytest
from command import environment

pytest.importorskip("rclpy", reason="needs ROS: install the extra 'ros' or a ROS distribution")

IMPORTING = """
import signal, sys
from importlib.abc import MetaPathFinder
class Interrupt(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        self.count = getattr(self, "count", 0) + 1
        if self.count == {count}:
            try:
                signal.raise_signal(signal.{signal})
            except BaseException:
                pass  # as within the start of an extension module
sys.meta_path.insert(0, Interrupt())
from nh_control.ros.nodes import start
sys.exit(start.{node}())
"""


@pytest.mark.parametrize("node", ["plant", "tracker", "display", "view", "recorder", "shadow"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize("count", [20, pytest.param(300, marks=pytest.mark.slow)])
def test_early_signals_end_a_node_quietly(node, number, count, tmp_path):
    """Also during an import that drops exceptions of signal handlers."""
    code = IMPORTING.format(signal=number.name, node=node, count=count)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


SLOW_IMPORTS = (
    *("scipy.integrate", "scipy.interpolate", "scipy.optimize", "scipy.spatial", "scipy.special"),
    "rich",
)
"""As slow to import as all else that a tracker needs; .ruff.toml names their importers."""

IMPORTERS = f"""
import sys, traceback
from importlib.abc import MetaPathFinder
class Report(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in {SLOW_IMPORTS}:
            files = [f"{{frame.filename}}:{{frame.lineno}}" for frame in traceback.extract_stack()]
            print(name, [file for file in files if "nh_control" in file][-1:])
sys.meta_path.insert(0, Report())
import nh_control.ros.nodes.tracker
"""


def test_a_tracker_imports_only_required_modules():
    """A killed tracker must be back soon."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTERS],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
