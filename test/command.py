"""Call `nh_control` as a user does, in a separate process."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAIN = "import sys; from nh_control.cli import main; sys.exit(main())"
WITHOUT_ROS = (
    "import sys; sys.modules.update(dict.fromkeys(['rclpy', 'rosbags', 'sensor_msgs'])); "
)


def environment(**changes):
    """This source tree to import from, no ROS domain, so that each run has one of its own, and
    changes.
    """
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    own = {name: value for name, value in os.environ.items() if name != "ROS_DOMAIN_ID"}
    return {**own, "PYTHONPATH": path, "COLUMNS": "200", **changes}


def nh_control(*arguments, cwd, before="", timeout_s=180, **changes):
    """The finished `nh_control` in the folder cwd, after the Python statements `before`."""
    command = [sys.executable, "-c", before + MAIN, *arguments]
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
