"""Launch several robots of any scenario, `scenario:=name robots:=3`, and one rviz for all robots.
Each robot has its own namespace, frames and clock; see nh_control/ros/bringup.py for the
arguments.
"""

from nh_control.ros import bringup


def generate_launch_description():
    """Return the launch description with the arguments and the actions that they select."""
    return bringup.description("", robots=True)
