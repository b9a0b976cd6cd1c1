"""Launch a plant that ros2_control drives, `scenario:=name interface:=position`, with controller
manager, joint_state_topic_hardware_interface, broadcaster and controller. With `tracker:=true
interface:=effort` this package's tracker sends the commands, as to a robot that ros2_control
drives. See nh_control/ros/controllers.py for the arguments.
"""

from nh_control.ros import controllers


def generate_launch_description():
    """Return the launch description with the arguments and the actions that they select."""
    return controllers.description("", __file__)
