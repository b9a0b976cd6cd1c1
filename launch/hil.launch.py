"""Launch the tracker of any scenario, `scenario:=name`, with display and rviz. Hardware or another
simulator replaces the plant; nh_control/ros/README.md describes the messages that it must send.
"""

from nh_control.ros import bringup


def generate_launch_description():
    """Return the launch description with the arguments and the actions that they select."""
    return bringup.description("", hardware=True)
