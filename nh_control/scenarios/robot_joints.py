"""The joints that a scenario's tracker uses to control a robot. Their positions and velocities
form the whole state, and their efforts are all inputs.
"""

from __future__ import annotations

from nh_control.interop.cpp_package import JointEffort, RobotJoint, RobotJoints
from nh_control.scenarios.ros2_control import joints_of_inputs
from nh_control.scenarios.scenario import Scenario


def robot_joints(scenario: Scenario) -> RobotJoints:
    """The joints of a scenario. Raises ValueError if joint_states does not contain the scenario's
    whole state, and for inputs that are not the efforts of single joints.
    """
    bodies = scenario.body is not None or scenario.from_bodies is not None
    if bodies or not scenario.joints:
        topic = "odom" if scenario.body is not None else "multi_dof_joint_states"
        where = f"its state is in {topic}" if bodies else "no joint reports its coordinates"
        raise ValueError(
            f"{scenario.name}: {where}, but a controller of joints only reads positions and "
            "velocities of joints; export it with --c, and call the C code from your own node"
        )
    system = scenario.system
    space, inputs = system.space, joints_of_inputs(scenario, system)
    if system.prescribed:
        raise ValueError(
            f"{scenario.name}: its inputs {', '.join(system.prescribed)} are motions of "
            "coordinates, not efforts of joints; export it with --c"
        )
    shown = {joint.place(space)[0]: joint for joint in reversed(scenario.joints)}
    weighed = scenario.tracked(space)
    joints = tuple(
        RobotJoint(joint.name, joint.sign, joint.unit, bool(weighed[i]))
        for i, joint in sorted(shown.items())
    )
    places = {joint.name: i for i, joint in enumerate(joints)}
    efforts = (JointEffort(places[drive.name], drive.input, drive.gain) for drive in inputs)
    return RobotJoints(joints, tuple(efforts))
