"""Robots under LQR from rest to rest against gravity, as nodes, along a joint trajectory that this
process publishes: errors of the joints against the spline through its points.

    pip install airo-models upkie-description
    python test/benchmark/joint_trajectory_nodes.py [ROBOT ...]

Plant and tracker run in processes of their own, in lock-step, as fast as they can. The plant is
the tracker's model, or 10 % heavier, with integral action of the tracker.
"""

from __future__ import annotations

import re
import sys
import tempfile
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path

import numpy as np

TEST = Path(__file__).parents[1]
sys.path[:0] = [str(TEST), str(TEST / "ros")]

from node_processes import Nodes, end_on_signals  # noqa: E402
from probe import Probe, by_step  # noqa: E402
from sizes import sized  # noqa: E402
from trajectory_msgs.msg import JointTrajectory as Message  # noqa: E402
from trajectory_msgs.msg import JointTrajectoryPoint  # noqa: E402

import nh_control as nh  # noqa: E402
from nh_control import scenarios  # noqa: E402
from nh_control.control.joint_reference import through  # noqa: E402
from nh_control.runs.dds_domain import reserved_domain  # noqa: E402

ARM = {"double_pendulum": ("nh_control", "data/double_pendulum.urdf")}
ROBOTS = sized(
    {
        **ARM,
        "ur3e": ("airo_models", "arms/ur3e/ur3e.urdf"),
        "ur5e": ("airo_models", "arms/ur5e/ur5e.urdf"),
        "upkie": ("upkie_description", "urdf/upkie.urdf"),
    },
    ARM,
)
SCALES = sized((1.0, 1.1), (1.0,))
POINTS, SIZE, MARGIN = 3, 0.6, 0.6
"""Points behind the first one, the largest change (rad) of a joint from one to the next, and the
part of the limits of speeds and efforts that is used.
"""


def urdf(robot: str) -> Path:
    """The file of a robot."""
    package, file = ROBOTS[robot]
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"No module named '{package}'")
    return Path(spec.submodule_search_locations[0]) / file


def trajectory(file: Path) -> nh.JointTrajectory:
    """Random points from the start of the robot's scenario, as fast as the margin allows."""
    scenario = scenarios.get("urdf", str(file))
    model, rng = scenario.model(), np.random.default_rng(0)
    points = [model.configuration(scenario.reference(model).states[0])]
    frames = {frame.coordinate: frame for frame in model.system.model.frames}
    limits = [frames[name].limits for name in model.system.space.names]
    lower, upper = np.array([(one.lower, one.upper) for one in limits]).T
    for _ in range(POINTS):
        moved = points[-1] + rng.uniform(-SIZE, SIZE, len(lower))
        points.append(np.clip(moved, lower, upper))
    return through(model, points, MARGIN)


def message(way: nh.JointTrajectory) -> Message:
    """The trajectory as ROS has it; times count from where the tracker begins."""
    made = Message(joint_names=list(way.names))
    for time_s, positions in zip(way.times[1:], way.positions[1:]):
        point = JointTrajectoryPoint(positions=positions.tolist())
        point.time_from_start.sec, rest = divmod(float(time_s), 1.0)
        point.time_from_start.sec = int(point.time_from_start.sec)
        point.time_from_start.nanosec = round(rest * 1e9)
        made.points.append(point)
    return made


def followed(
    nodes: Nodes, probe: Probe, file: Path, way: nh.JointTrajectory, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """Times (N) since the trajectory's start, and the joints' errors (N, k) from its spline."""
    run = {"scenario": "urdf", "urdf": str(file)}
    plant = {**run, "lockstep": True, "speed_factor": 0.0, "on_finish": "continue"}
    h = scenarios.get("urdf", str(file)).step_s
    tracker = nodes.start("tracker", {**run, "integral": scale != 1.0})
    publisher = probe.node.create_publisher(Message, "joint_trajectory", 1)
    wanted = {"wait_for": "[probe]", "plant.parameters.mass_scale": scale}
    nodes.start("plant", {**plant, **wanted})
    probe.wait(lambda: publisher.get_subscription_count() == 1, "the tracker")
    probe.wait(lambda: len(probe.joint_states) > 20, "states")
    publisher.publish(message(way))
    probe.wait(lambda: at_rest(probe, way), "end of the trajectory", 600.0)
    states = by_step(probe.joint_states, h)
    steps = np.array(sorted(states))
    found = np.array([states[k].position for k in steps])
    order = [list(states[steps[0]].name).index(name) for name in way.names]
    found = found[:, order]
    began = re.search(r"accepted: starts at t = ([\d.]+) s", tracker.log)
    assert began is not None, tracker.log
    times = h * steps - float(began[1])
    return times, found - way.curve()(times)[0]


def at_rest(probe: Probe, way: nh.JointTrajectory) -> bool:
    """Whether the joints rest near the end of the trajectory."""
    last = probe.joint_states[-1]
    order = [list(last.name).index(name) for name in way.names]
    there = np.abs(np.array(last.position)[order] - way.positions[-1]).max() < 0.02
    return bool(there and np.abs(last.velocity).max() < 1e-4)


def row(robot: str, scale: float) -> str:
    """A line of the table."""
    file = urdf(robot)
    way = trajectory(file)
    with tempfile.TemporaryDirectory() as folder, reserved_domain() as domain:
        nodes, probe = Nodes(domain, Path(folder)), Probe(domain)
        try:
            times, errors = followed(nodes, probe, file, way, scale)
        finally:
            probe.close()
            with redirect_stdout(sys.stderr):
                nodes.end()
    moving = (times >= 0) & (times <= way.duration)
    during, end = np.abs(errors[moving]).max(), np.abs(errors[-1]).max()
    rms = np.sqrt((errors[moving] ** 2).mean())
    return (
        f"{robot:16} {len(way.names):6d} {way.duration:9.2f} {scale:6.1f} {during:12.1e} "
        f"{rms:10.1e} {end:10.1e}"
    )


def main() -> None:
    """Print the table."""
    end_on_signals()
    print("robot            joints  time (s)  mass  largest (rad)       rms     at rest")
    for robot in sys.argv[1:] or ROBOTS:
        for scale in SCALES:
            print(row(robot, scale), flush=True)


if __name__ == "__main__":
    main()
