"""Plant and tracker in one process, with no middleware between them: states and commands are
handed over, other nodes hear and see them as ever.
"""

from __future__ import annotations

import sys
from functools import partial

from nh_control.ros.nodes.plant import Plant
from nh_control.ros.nodes.tracker import Tracker
from nh_control.ros.runtime import process

TOPICS = ("joint_states", "odom", "multi_dof_joint_states", "joint_commands")
"""Relative names of the topics that are handed over."""

main = partial(process.run_all, {"tracker": Tracker, "plant": Plant}, TOPICS)
"""Run both nodes, `main(args)`; returns the exit code."""

if __name__ == "__main__":
    sys.exit(main())
