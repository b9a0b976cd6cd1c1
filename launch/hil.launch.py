"""Launch the tracker of any scenario, `scenario:=name`, with display and rviz, for hardware or a
simulator of another kind in place of the plant; nh_control/ros/README.md says what it must send.
"""

from nh_control.ros import bringup


def generate_launch_description():
    """Return the launch description: the arguments, then the actions that they ask for."""
    return bringup.description("", __file__, hardware=True)
