"""Call `nh_control` as a user does, in a separate process."""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from dds_domains import reserved_domain

ROOT = Path(__file__).parents[1]
MAIN = "import sys; from nh_control.cli import main; sys.exit(main())"
WITHOUT_ROS = (
    "import sys; sys.modules.update(dict.fromkeys(['rclpy', 'rosbags', 'sensor_msgs'])); "
)
_process = ExitStack()
DOMAIN = str(_process.enter_context(reserved_domain()))
"""Reserved as long as this process is."""


def environment(**changes):
    """This source tree to import from, a ROS domain of its own, and changes."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "ROS_DOMAIN_ID": DOMAIN, "COLUMNS": "200", **changes}


def nh_control(*arguments, cwd, before="", **changes):
    """The finished `nh_control` in the folder cwd, after the Python statements `before`."""
    command = [sys.executable, "-c", before + MAIN, *arguments]
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
