"""Launch the differential drive: plant, tracker, display, rviz and, on request, a recording; see
nh_control/ros/bringup.py for the arguments.
"""

from nh_control.ros import bringup


def generate_launch_description():
    """Return the launch description with the arguments and the actions that they select."""
    return bringup.description("differential_drive")
