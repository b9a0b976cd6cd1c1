"""Launch the robot of a URDF file, `urdf:=/path/to/robot.urdf`: plant, tracker, robot model, rviz
and, on request, a recording; see ros/bringup.py.
"""

from nh_control.ros import bringup


def generate_launch_description():
    """Return the launch description with the arguments and the actions that they select."""
    return bringup.description("urdf")
