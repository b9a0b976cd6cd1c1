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
        if name == "numpy":
            signal.raise_signal(signal.{signal})
sys.meta_path.insert(0, Interrupt())
from nh_control.ros.nodes import start
sys.exit(start.{node}())
"""


@pytest.mark.parametrize("node", ["plant", "tracker", "display", "recorder", "shadow"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_early_signals_end_a_node_quietly(node, number, tmp_path):
    code = IMPORTING.format(signal=number.name, node=node)
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
