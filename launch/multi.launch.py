"""Launch several robots of any scenario, `scenario:=name robots:=3`, each in a namespace with
frames and a clock of its own, and one rviz for all; see nh_control/ros/bringup.py for the
arguments.
"""

from pathlib import Path

from nh_control.ros import bringup

CONFIG = (
    Path(__file__).parents[1] / "config"
)  # beside launch/, in the source tree and installed alike


def generate_launch_description():
    """Return the launch description: the arguments, then what they ask for."""
    return bringup.description("", CONFIG, robots=True)
