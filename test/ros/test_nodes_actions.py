"""Goals and trajectories as actions, of the types of Nav2 and ros2_control, where installed."""

import pytest

FLIGHT = {"scenario": "quadrotor_payload", "reference": "hover"}
PLANT = {**FLIGHT, "on_finish": "continue", "lockstep": True, "speed_factor": 4.0}


class Client:
    """An action's client."""

    def __init__(self, probe, package, name, topic):
        from rclpy.action import ActionClient

        self._probe = probe
        self.type = getattr(pytest.importorskip(f"{package}.action"), name)
        self._client = ActionClient(probe.node, self.type, topic)
        self.feedback = []

    def send(self, goal):
        """Send a goal; returns its handle."""
        self._probe.wait(self._client.server_is_ready, "action server")
        self._probe.meet("/tracker")
        sent = self._client.send_goal_async(
            goal, feedback_callback=lambda message: self.feedback.append(message.feedback)
        )
        self._probe.wait(sent.done, "answer")
        return sent.result()

    def result(self, handle):
        """Status and result of a goal."""
        done = handle.get_result_async()
        self._probe.wait(done.done, "result")
        return done.result().status, done.result().result


def fly(nodes, probe):
    """Start the flight."""
    nodes.start("tracker", FLIGHT)
    nodes.start("plant", PLANT)
    probe.wait_bodies(20, 0.01)


def navigation(probe):
    """The client of goals, and a goal."""
    client = Client(probe, "nav2_msgs", "NavigateToPose", "navigate_to_pose")
    goal = client.type.Goal()
    goal.pose.header.frame_id = "odom"
    goal.pose.pose.position.x, goal.pose.pose.position.z = 0.4, 1.2
    return client, goal


@pytest.mark.slow
def test_a_goal_is_reached_with_feedback_and_a_refused_one_says_why(nodes, probe):
    from action_msgs.msg import GoalStatus

    client, goal = navigation(probe)
    fly(nodes, probe)
    status, _ = client.result(client.send(goal))
    assert status == GoalStatus.STATUS_SUCCEEDED
    place = probe.bodies[-1].transforms[0].translation
    assert (place.x, place.z) == (pytest.approx(0.4, abs=0.05), pytest.approx(1.2, abs=0.05))
    left = [message.distance_remaining for message in client.feedback]
    assert left[0] > 0.4 and left[-1] < 0.1 and len(left) > 5
    goal.pose.header.frame_id = "map"
    status, result = client.result(client.send(goal))
    assert status == GoalStatus.STATUS_ABORTED
    assert "in the frame 'map'; expected 'odom'" in result.error_msg


@pytest.mark.slow
def test_goals_are_replaced_and_canceled(nodes, probe):
    from action_msgs.msg import GoalStatus

    client, goal = navigation(probe)
    fly(nodes, probe)
    goal.pose.pose.position.x = 30.0
    first = client.send(goal)
    probe.wait(lambda: len(client.feedback) > 10, "feedback")
    goal.pose.pose.position.x = 20.0
    second = client.send(goal)
    status, result = client.result(first)
    assert status == GoalStatus.STATUS_ABORTED and "replaced by goal (20" in result.error_msg
    canceled = second.cancel_goal_async()
    probe.wait(canceled.done, "cancellation")
    status, result = client.result(second)
    assert status == GoalStatus.STATUS_CANCELED and "canceled" in result.error_msg


@pytest.mark.slow
def test_a_trajectory_of_the_payload_is_followed(nodes, probe):
    from action_msgs.msg import GoalStatus
    from geometry_msgs.msg import Transform
    from trajectory_msgs.msg import MultiDOFJointTrajectoryPoint

    client = Client(probe, "control_msgs", "FollowJointTrajectory", "follow_joint_trajectory")
    fly(nodes, probe)
    goal = client.type.Goal()
    trajectory = goal.multi_dof_trajectory
    trajectory.header.frame_id, trajectory.joint_names = "odom", ["payload"]
    for second, x in ((3, 0.3), (6, 0.6)):
        point = MultiDOFJointTrajectoryPoint(transforms=[Transform()])
        point.time_from_start.sec = second
        point.transforms[0].translation.x, point.transforms[0].translation.z = x, 1.0
        trajectory.points.append(point)
    status, result = client.result(client.send(goal))
    assert (status, result.error_code) == (GoalStatus.STATUS_SUCCEEDED, result.SUCCESSFUL)
    assert probe.bodies[-1].transforms[0].translation.x == pytest.approx(0.6, abs=0.05)
    errors = [message.multi_dof_error.transforms[0].translation for message in client.feedback]
    assert len(errors) > 5 and max(abs(error.x) for error in errors) < 0.1
    trajectory.joint_names = ["quad1"]
    status, result = client.result(client.send(goal))
    assert (status, result.error_code) == (GoalStatus.STATUS_ABORTED, result.INVALID_JOINTS)
    assert "joint_names are ['quad1']" in result.error_string
