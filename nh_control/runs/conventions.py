"""Conventions for the nodes' topics: the meaning of their numbers, for help and documentation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Convention:
    """The convention for the given `topics`: angles and axes, units, and the meaning of stamps."""

    topics: tuple[str, ...]
    axes: str
    units: str
    stamp: str


STATE = "k step_s, simulated time of the state; for hardware that of the measurement"
ANSWER = "that of the state it answers; 0 or another clock: the present state"
REP_103 = "x forward, y left, z up; angles counter-clockwise about z"
CONVENTIONS = (
    Convention(
        ("joint_states", "ground_truth/joint_states", "reference/joint_states"),
        "about or along the joint's axis; turns are counted, not wrapped",
        "rad, m; rad/s, m/s",
        STATE,
    ),
    Convention(
        ("odom", "ground_truth/odom", "reference/odom"),
        f"REP 105, base_link in odom; {REP_103}; twist in base_link's axes",
        "m; m/s, rad/s",
        STATE,
    ),
    Convention(
        (
            *("multi_dof_joint_states", "payload/odom", "quad1/odom", "quad2/odom"),
            *("quadrotor/odom", "satellite/odom", "ballbot/odom"),
        ),
        "poses in odom, z up; quaternions xyzw; twists in each body's axes",
        "m; m/s, rad/s",
        STATE,
    ),
    Convention(
        ("sensors/<name>",),
        "axes of the sensor's frame; an IMU at rest reads gravity upwards",
        "rad/s, m/s^2; m; as declared for others",
        "that of the measured state, before its delay",
    ),
    Convention(
        ("joint_commands",),
        "by the name of an input or of the joint that it drives; along the axis of the joint",
        "effort N, N m; position rad, m; velocity rad/s, m/s",
        ANSWER,
    ),
    Convention(
        ("cmd_vel",),
        f"of base_link: {REP_103}",
        "linear.x m/s, angular.z rad/s",
        "0, or simulated time, at most cmd_vel.timeout_s old (0: any age)",
    ),
    Convention(
        ("goal", "navigate_to_pose"),
        "in odom; vehicles turn to the pose's yaw, the payload ignores it",
        "m",
        "0, or simulated time, at most 1 s old",
    ),
    Convention(
        ("trajectory", "joint_trajectory", "follow_joint_trajectory"),
        "in odom, or along the joints' axes",
        "m, m/s; rad, rad/s, rad/s^2",
        "0: from now on; else the simulated time from which times count",
    ),
    Convention(
        ("wrench",),
        "in the world's axes, about the origin of the target's frame",
        "N, N m",
        "ignored: for the next 0.25 s of simulated time",
    ),
    Convention(
        ("contacts/<name>",),
        "force on the system, in the axes of the frame in which bodies are shown; no torque",
        "N",
        "that of the state after the step",
    ),
    Convention(("tf", "tf_static"), "REP 105: odom is the root", "m", STATE),
    Convention(("command_latency",), "-", "s of wall time", "none"),
    Convention(("clock",), "-", "s, from the start of the run or its last reset", "-"),
)


def table() -> list[str]:
    """Return the rows of the conventions table in Markdown."""
    heading = ["| topics | angles and axes | units | stamp |", "|---|---|---|---|"]
    rows = [
        f"| {', '.join(f'`{t}`' for t in c.topics)} | {c.axes} | {c.units} | {c.stamp} |"
        for c in CONVENTIONS
    ]
    return heading + rows


def text() -> str:
    """Return the conventions as text for a terminal."""
    return "\n".join(
        f"  {', '.join(entry.topics)}\n    axes   {entry.axes}\n    units  {entry.units}\n"
        f"    stamp  {entry.stamp}"
        for entry in CONVENTIONS
    )
