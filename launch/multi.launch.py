"""Launch several robots of any scenario, `scenario:=name robots:=3`, each in a namespace with
frames and a clock of its own, and one rviz for all; see nh_control/ros/bringup.py for the
arguments.
"""

from nh_control.ros import bringup


def generate_launch_description():
    """Return the launch description: the arguments, then the actions that they ask for."""
    return bringup.description("", __file__, robots=True)
