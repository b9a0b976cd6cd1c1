"""Goals, trajectories and velocity commands over DDS while a robot moves."""

from functools import partial

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped, TwistStamped
from nav_msgs.msg import Path
from node_processes import LOCKSTEP
from probe import latched
from sensor_msgs.msg import MultiDOFJointState
from std_srvs.srv import Trigger
from test_goals import goal, trajectory
from trajectory_msgs.msg import MultiDOFJointTrajectory

HOVER = {"scenario": "quadrotor_payload", "reference": "hover"}
PACED = {**LOCKSTEP, "speed_factor": 4.0, "on_finish": "continue"}


@pytest.mark.slow
def test_goals_and_trajectories_for_a_robot_in_a_namespace_are_followed_or_refused(nodes, probe):
    frame, tracker = "robot1/odom", "robot1/tracker"
    bodies = probe.listen(MultiDOFJointState, "/robot1/multi_dof_joint_states")
    paths = probe.listen(Path, "/robot1/reference", latched())
    for name, given in (("tracker", HOVER), ("plant", {**HOVER, **PACED})):
        nodes.start(name, given, "-r", "__ns:=/robot1")
    goals = probe.heard_publisher(PoseStamped, "/robot1/goal")
    trajectories = probe.heard_publisher(MultiDOFJointTrajectory, "/robot1/trajectory")
    way = partial(trajectory, frame=frame, joints=["robot1/payload"])
    probe.wait(lambda: len(bodies) > 150, "flight")

    def there(*place):
        def rests():
            p, v = bodies[-1].transforms[0].translation, bodies[-1].twist[0].linear
            return np.allclose([p.x, p.y, p.z, v.x, v.y, v.z], [*place, 0, 0, 0], atol=2e-3)

        probe.wait(rests, f"rest at {place}")

    for publisher, message, text in (
        (goals, goal((0.0, 0.0, 1.0)), f"in the frame 'odom'; expected '{frame}'"),
        (trajectories, way(stamp_s=0.02), "in the past: give the simulation"),
    ):
        told = lambda text=text: text in probe.message(tracker)
        probe.send_until(told, publisher, message, text)
    there(0.0, 0.0, 1.0)
    goals.publish(goal((0.5, 0.25, 1.5), frame))
    probe.wait(lambda: bodies[-1].transforms[0].translation.x > 0.1, "motion")
    goals.publish(goal((-0.5, 0.5, 1.0), frame))  # on the way
    there(-0.5, 0.5, 1.0)
    trajectories.publish(way((3.0, 6.0), ((0.0, 0.0, 1.0), (0.5, 0.5, 1.2))))
    there(0.5, 0.5, 1.2)
    probe.wait_value("goals_accepted", "3", tracker)
    assert float(probe.values(tracker)["error of payload position (m)"]) < 1e-3
    values = probe.values("robot1/plant")
    assert (values["commands_rejected"], values["fallback_steps"]) == ("0", "0")
    reset = probe.node.create_client(Trigger, "/robot1/plant/reset")
    assert probe.ask(reset, Trigger.Request()).success
    probe.wait(lambda: len(paths) == 5, "path of the first reference")
    there(0.0, 0.0, 1.0)


@pytest.mark.slow
def test_a_vehicle_is_driven_by_velocity_commands_until_nobody_sends_any(nodes, probe):
    own = {"scenario": "differential_drive", "reference": "standstill"}
    nodes.start("tracker", own)
    nodes.start("plant", {**own, **PACED, "speed_factor": 1.0})
    commands = probe.heard_publisher(TwistStamped, "cmd_vel", 1)
    probe.wait(lambda: len(probe.odometry) > 10, "states")

    def place():
        p, v = probe.odometry[-1].pose.pose.position, probe.odometry[-1].twist.twist
        return np.array([p.x, p.y, v.linear.x, v.angular.z])

    def drive(forward, turn, until):
        command = TwistStamped()
        command.twist.linear.x, command.twist.angular.z = forward, turn
        probe.wait(lambda: commands.publish(command) or until(*place()), f"motion {forward, turn}")

    drive(0.8, 0.0, lambda x, y, forward, turn: x > 0.5)
    drive(0.4, 1.0, lambda x, y, forward, turn: y > 0.2)  # then nobody commands any more
    probe.wait(lambda: np.abs(place()[2:]).max() < 1e-6, "rest")
