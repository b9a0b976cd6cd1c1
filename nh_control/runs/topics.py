"""Topics of a scenario's nodes with their message types, declared once for recordings, launch
files and documentation.
"""

from __future__ import annotations

from nh_control.loop.wire_format import JointStateCodec, MultiDofCodec, OdometryCodec
from nh_control.mechanics.contact_rows import ContactRows
from nh_control.mechanics.external_forces import FORCE, in_space
from nh_control.mechanics.system import System
from nh_control.numerics.identifiers import identifier
from nh_control.scenarios import Scenario
from nh_control.scenarios.driven_joints import driven_joints
from nh_control.scenarios.joint_motion import follows_joints


def states(scenario: Scenario) -> dict[str, str]:
    """Return the topics that together contain the state."""
    declared = (
        (scenario.joints, JointStateCodec),
        (scenario.body, OdometryCodec),
        (scenario.from_bodies, MultiDofCodec),
    )
    return {codec.topic: codec.message_type for part, codec in declared if part}


TRUTH = "ground_truth/"
"""Namespace of the topics with the plant's true state, without sensor faults."""


def truth(scenario: Scenario) -> dict[str, str]:
    """Return the topics of the true state."""
    return {TRUTH + topic: message for topic, message in states(scenario).items()}


def contacts(system: System) -> dict[str, str]:
    """Return, by name, the topics for the forces at contacts and grips that have a position."""
    placed = ContactRows(system.mechanics).placed
    return {name: f"contacts/{identifier(name)}" for name in placed}


def goals(scenario: Scenario) -> dict[str, str]:
    """Return the topics that change the tracked reference."""
    if scenario.drive is not None:
        return {
            "goal": "geometry_msgs/msg/PoseStamped",
            "cmd_vel": "geometry_msgs/msg/TwistStamped",
        }
    if scenario.guidance is None:
        system = scenario.system
        # without guidance, only joints can follow a trajectory
        follows = follows_joints(scenario.joints, system)
        return {"joint_trajectory": "trajectory_msgs/msg/JointTrajectory"} if follows else {}
    return {
        "goal": "geometry_msgs/msg/PoseStamped",
        "trajectory": "trajectory_msgs/msg/MultiDOFJointTrajectory",
    }


MOTORS = "motors"
"""Topic for the motor commands from flight controllers."""
PULLED = 3
"""Maximum number of wrench targets for a plant with a live page. Each target makes the plant's
steps more expensive.
"""


def pulled(scenario: Scenario) -> list[str]:
    """Return the targets of the topic `wrench` that a live page uses."""
    targets = in_space(scenario.targets(scenario.system))
    return [name for name, target in targets.items() if FORCE[0] in target.components][:PULLED]


def recorded(scenario: Scenario) -> dict[str, str]:
    """Return the topics in a recording: states, commands, the reference and its start, markers,
    model residuals, wrenches, contact forces, goals, motor commands, time and diagnostics.
    """
    touching = contacts(scenario.system).values()
    return {
        **states(scenario),
        "joint_commands": "sensor_msgs/msg/JointState",
        "reference": "nav_msgs/msg/Path",
        "reference_start": "builtin_interfaces/msg/Time",
        "markers": "visualization_msgs/msg/MarkerArray",
        "shadow/residual": "sensor_msgs/msg/JointState",
        "wrench": "geometry_msgs/msg/WrenchStamped",
        **dict.fromkeys(touching, "geometry_msgs/msg/WrenchStamped"),
        **goals(scenario),
        **({} if scenario.autopilot is None else {MOTORS: "sensor_msgs/msg/JointState"}),
        "clock": "rosgraph_msgs/msg/Clock",
        "/diagnostics": "diagnostic_msgs/msg/DiagnosticArray",
    }


def odometry(scenario: Scenario) -> list[str]:
    """Return the odometry topics for bodies in space. They repeat parts of the states."""
    if scenario.from_bodies is None:
        return []
    space = scenario.system.space
    return [odometry_of(body.frame) for body in scenario.resting_bodies(space)]


def odometry_of(frame: str) -> str:
    """Return the odometry topic for a body in space."""
    return f"{identifier(frame)}/odom"


def contents(scenario: Scenario) -> dict[str, list[str]]:
    """Describe the messages with states and commands: joints with their coordinates, frames with
    their parents, and inputs with the joints that they drive.
    """
    system = scenario.system
    planar, bodies = scenario.body, scenario.resting_bodies(system.space)
    names_by_topic = {
        "joint_states": [
            f"{joint.name} = {'-' if joint.sign < 0 else ''}{joint.coordinate} ({joint.unit})"
            for joint in scenario.joints
        ],
        "odom": [f"{planar.frame} in {planar.parent}"] if planar else [],
        "multi_dof_joint_states": [f"{b.frame} in {b.parent}" for b in bodies],
    }
    inputs = system.inputs + system.prescribed
    driven = {j.input: j.name for j in driven_joints(scenario.joints, system, system.nu)}
    commands = [f"{name} or {driven[i]}" if i in driven else name for i, name in enumerate(inputs)]
    return {topic: names_by_topic[topic] for topic in states(scenario)} | {
        "joint_commands": commands
    }
