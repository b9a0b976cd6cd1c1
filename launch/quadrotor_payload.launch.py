"""Launch quadrotors that carry a payload: plant, tracker, display, rviz and, on request, a
recording; see nh_control/ros/bringup.py for the arguments.
"""

from nh_control.ros import bringup


def generate_launch_description():
    """Return the launch description with the arguments and the actions that they select."""
    return bringup.description("quadrotor_payload")
