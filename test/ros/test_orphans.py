"""A node does not outlive the launch that has started it, even if that ended before the node could
ask to be told.
"""

import os
import subprocess
import sys

import pytest

from nh_control.runs.node_process import PARENT

ENTRY = (
    "import sys; from nh_control.ros.nodes.start import _end_with_parent as f; f(); sys.exit(3)"
)


def exit_code(parent):
    environment = {**os.environ, PARENT: str(parent)}
    return subprocess.run([sys.executable, "-c", ENTRY], env=environment, timeout=60).returncode


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells it on Linux only")
def test_a_node_ends_at_once_where_its_launch_has_ended_before():
    assert exit_code(os.getpid()) == 3
    ended = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # nobody has looked at it yet
    assert exit_code(ended.pid) == 0
    ended.wait()
    assert exit_code(ended.pid) == 0
