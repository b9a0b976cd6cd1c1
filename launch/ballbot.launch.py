"""Launch the ballbot: plant, tracker, display, robot model, rviz and, on request, a recording; see
nh_control/ros/bringup.py for the arguments.
"""

from nh_control.ros import bringup


def generate_launch_description():
    """Return the launch description with the arguments and the actions that they select."""
    return bringup.description("ballbot")
