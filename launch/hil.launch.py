"""Launch the tracker of any scenario, `scenario:=name`, with display and rviz, for hardware or a
simulator of another kind in place of the plant; nh_control/ros/README.md says what it must send.
"""

from pathlib import Path

from nh_control.ros import bringup

CONFIG = (
    Path(__file__).parents[1] / "config"
)  # beside launch/, in the source tree and installed alike


def generate_launch_description():
    """Return the launch description: the arguments, then what they ask for."""
    return bringup.description("", CONFIG, hardware=True)
