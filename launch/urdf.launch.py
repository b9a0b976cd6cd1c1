"""Launch the robot of a URDF file, `urdf:=/path/to/robot.urdf`: plant, tracker, robot model, rviz
and, on request, a recording; see ros/bringup.py.
"""

from pathlib import Path

from nh_control.ros import bringup

CONFIG = (
    Path(__file__).parents[1] / "config"
)  # beside launch/, in the source tree and installed alike


def generate_launch_description():
    """Return the launch description: the arguments, then what they ask for."""
    return bringup.description("urdf", CONFIG)
