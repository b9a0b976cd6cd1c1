"""The plant and the tracker in one process. They exchange states and commands directly, while
other nodes receive them through the middleware.
"""

from __future__ import annotations

import sys
from functools import partial

from nh_control.ros.nodes.plant import Plant
from nh_control.ros.nodes.tracker import Tracker
from nh_control.ros.runtime import process

TOPICS = ("joint_states", "odom", "multi_dof_joint_states", "joint_commands")
"""Relative names of the topics that stay in the process."""

main = partial(process.run_all, {"tracker": Tracker, "plant": Plant}, TOPICS)
"""`main(args)` runs both nodes and returns the exit code."""

if __name__ == "__main__":
    sys.exit(main())
