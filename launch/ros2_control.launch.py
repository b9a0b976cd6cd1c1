"""Launch a plant behind ros2_control, `scenario:=name interface:=position`: controller manager,
joint_state_topic_hardware_interface, broadcaster and controller; with `tracker:=true
interface:=effort` this package's tracker commands them, as it would a robot that ros2_control
drives. See nh_control/ros/controllers.py for the arguments.
"""

from nh_control.ros import controllers


def generate_launch_description():
    """Return the launch description: the arguments, then the actions that they ask for."""
    return controllers.description("", __file__)
