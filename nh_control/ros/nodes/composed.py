"""Plant and tracker in one process: they exchange states and commands without the middleware;
other nodes receive them through it.
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
"""Run both nodes, `main(args)`; returns the exit code."""

if __name__ == "__main__":
    sys.exit(main())
