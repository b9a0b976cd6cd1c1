"""What becomes of the requests of actions, with stand-ins for their types and servers."""

import sys
from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from bench import Desk, benches  # noqa: E402
from builtin_interfaces.msg import Time  # noqa: E402
from geometry_msgs.msg import Pose, PoseStamped  # noqa: E402
from rclpy.action.server import CancelResponse, GoalResponse  # noqa: E402
from std_msgs.msg import Header  # noqa: E402

from nh_control.loop.reports import Refusal  # noqa: E402
from nh_control.ros.messages import conversions, goal_actions  # noqa: E402
from nh_control.ros.messages.goal_actions import (  # noqa: E402
    ActionRequest,
    FollowJointTrajectory,
    NavigateToPose,
)
from nh_control.ros.messages.goal_interface import Progress  # noqa: E402

LEG = SimpleNamespace(start=20, end=50)


class Result:
    """As control_msgs has it."""

    SUCCESSFUL, INVALID_GOAL, INVALID_JOINTS, OLD_HEADER_TIMESTAMP = 0, -1, -2, -3
    error_code = 0


ALONG = SimpleNamespace(Feedback=lambda: SimpleNamespace(header=Header()), Result=Result)
"""The action of control_msgs."""
TO_POSE = SimpleNamespace(
    Feedback=lambda: SimpleNamespace(
        header=Header(), navigation_time=Time(), estimated_time_remaining=Time()
    ),
    Result=lambda: SimpleNamespace(UNKNOWN=9, error_msg="", error_code=0),
)
"""That of nav2_msgs since Jazzy."""


class Handle:
    """A goal handle that notes what is done with it."""

    def __init__(self, **request):
        empty = SimpleNamespace(points=[])
        self.request = SimpleNamespace(trajectory=empty, multi_dof_trajectory="path")
        self.request.__dict__.update(request)
        self.is_cancel_requested, self.feedback, self.state = False, [], ""
        for state in ("succeed", "abort", "canceled"):
            setattr(self, state, lambda state=state: setattr(self, "state", self.state + state))
        self.publish_feedback = self.feedback.append

    def execute(self, callback):
        self.result = callback(self)


class Goals:
    """A goal interface at a step."""

    def __init__(self):
        self.step, self.asked, self.stopped, self.refused = 10, [], False, []
        self.height = 0.0

    def progress(self):
        """The payload 0.5 m behind its target, at a height."""
        actual, target = Pose(), Pose()
        target.position.x, actual.position.z = 0.5, self.height
        return Progress(self.step, 10**7 * self.step, "payload", "odom", actual, target)

    def refuse(self, what, reason, kind, action_request):
        self.refused.append(kind)
        action_request.ended(kind, reason)

    def trajectory(self, message, action_request):
        self.asked.append((message, action_request))

    def goal(self, message, action_request):
        """Note nothing."""

    def stop(self):
        self.stopped = True


@pytest.fixture
def goals():
    return Goals()


def begin(handle, goals):
    """The action_request of a request."""
    kind = FollowJointTrajectory()
    action_request = ActionRequest(kind, handle, ALONG, 0.01, goals.step)
    kind.ask(goals, handle.request, action_request)
    return action_request


def test_a_request_ends_where_its_leg_does(goals):
    handle = Handle()
    action_request = begin(handle, goals)
    assert goals.asked == [("path", action_request)]
    action_request.tick(goals)
    action_request.accepted(LEG)
    goals.step = 49
    action_request.tick(goals)
    desired = handle.feedback[-1].multi_dof_desired
    assert desired.transforms[0].translation.x == 0.5
    assert desired.time_from_start.nanosec == 290_000_000 and not action_request.over
    goals.step = 50
    action_request.tick(goals)
    assert (handle.state, handle.result.error_code, len(handle.feedback)) == ("succeed", 0, 2)
    action_request.ended(None, "replaced by something else")
    assert handle.state == "succeed"


@pytest.mark.parametrize(
    ("request_", "refusal", "code", "text"),
    [
        ({}, Refusal.NAMES, -2, "for a reason"),
        ({}, Refusal.STAMP, -3, "for a reason"),
        ({}, Refusal.MODEL, -1, "for a reason"),
        ({}, None, -1, "for a reason"),
        (
            {"trajectory": SimpleNamespace(points=[1])}, Refusal.NAMES, -2,
            "only multi_dof_trajectory is followed, not trajectory",
        ),
        (
            {"component_goal_tolerance": [1]}, Refusal.MODEL, -1,
            "component_goal_tolerance: tolerances are not supported, leave them empty",
        ),
    ],
)  # fmt: skip
def test_a_refusal_is_the_result_and_what_is_not_done_is_refused(
    goals, request_, refusal, code, text
):
    handle = Handle(**request_)
    action_request = begin(handle, goals)
    if request_:
        assert goals.refused == [refusal] and not goals.asked
    else:
        action_request.ended(refusal, "for a reason")
    assert (handle.state, handle.result.error_code) == ("abort", code)
    assert handle.result.error_string == text


def test_a_canceled_request_brings_the_body_to_rest(goals):
    handle = Handle()
    action_request = begin(handle, goals)
    action_request.accepted(LEG)
    handle.is_cancel_requested = True
    action_request.tick(goals)
    assert handle.state == "canceled" and goals.stopped


# Feedback and results of both kinds --------------------------------------------------------------


def navigate(goals, goal=(3.0, 4.0, 0.0)):
    """The action_request of a request to go somewhere, and its handle."""
    pose = PoseStamped()
    conversions.set_xyz(pose.pose.position, goal)
    handle = Handle(pose=pose)
    action_request = ActionRequest(NavigateToPose(), handle, TO_POSE, 0.01, goals.step)
    NavigateToPose().ask(goals, handle.request, action_request)
    return action_request, handle


def test_feedback_on_the_way_to_a_pose(goals):
    goals.goal = lambda pose, action_request: goals.asked.append((pose, action_request))
    action_request, handle = navigate(goals)
    assert goals.asked == [(handle.request.pose, action_request)]
    goals.step = 15
    action_request.tick(goals)
    assert conversions.nanoseconds(handle.feedback[-1].estimated_time_remaining) == 0
    action_request.accepted(LEG)
    goals.step = 30
    action_request.tick(goals)
    feedback = handle.feedback[-1]
    assert conversions.nanoseconds(feedback.navigation_time) == 200_000_000  # since step 10
    assert conversions.nanoseconds(feedback.estimated_time_remaining) == 200_000_000
    assert conversions.nanoseconds(feedback.current_pose.header.stamp) == 300_000_000
    assert feedback.current_pose.header.frame_id == "odom"
    assert feedback.distance_remaining == pytest.approx(5.0)
    for goal, way in (((0.0, 0.0, 2.0), 3.0), ((0.0, 0.0, 0.0), 0.0), ((2.0, 0.0, -3.0), 8**0.5)):
        action_request, handle = navigate(goals, goal)
        goals.height = -1.0
        action_request.tick(goals)
        assert handle.feedback[-1].distance_remaining == pytest.approx(way)
    action_request.ended(Refusal.STAMP, "late")
    assert (handle.result.error_code, handle.result.error_msg) == (9, "late")
    goals.step = LEG.end
    action_request, handle = navigate(goals)
    action_request.accepted(LEG)
    action_request.tick(goals)
    assert (handle.state, handle.result.error_code, handle.result.error_msg) == ("succeed", 0, "")
    before_jazzy = SimpleNamespace()
    NavigateToPose().fill_result(before_jazzy, None, "late")
    assert vars(before_jazzy) == {}


def test_feedback_along_a_trajectory_tells_what_is_desired_what_is_and_the_difference(goals):
    handle = Handle()
    action_request = begin(handle, goals)
    goals.height = 2.0
    action_request.tick(goals)
    feedback = handle.feedback[-1]
    places = {
        name: conversions.xyz(getattr(feedback, f"multi_dof_{name}").transforms[0].translation)
        for name in ("desired", "actual", "error")
    }
    assert places["desired"].tolist() == [0.5, 0.0, 0.0]
    assert places["actual"].tolist() == [0.0, 0.0, 2.0]
    assert places["error"].tolist() == [0.5, 0.0, -2.0]
    assert feedback.multi_dof_joint_names == ["payload"]
    assert (feedback.header.frame_id, feedback.header.stamp.nanosec) == ("odom", 10**8)
    # the time of a leg that has not begun is none
    assert (action_request.time_ns(3, 5), action_request.time_ns(5, 3)) == (20_000_000, 0)


class Served:
    """Actions, of which those of these packages are installed: their servers' callbacks by name,
    and what `ended`.
    """

    def __init__(self, goals, bench, monkeypatch, *packages):
        self.servers, self.ended, self.node, self.desk = {}, [], bench, Desk()
        for package, name in (
            ("nav2_msgs", "NavigateToPose"), ("control_msgs", "FollowJointTrajectory"),
        ):  # fmt: skip
            module = SimpleNamespace(**{name: ALONG}) if package in packages else None
            monkeypatch.setitem(sys.modules, f"{package}.action", module)
            monkeypatch.setitem(sys.modules, package, SimpleNamespace(action=module))
        monkeypatch.setattr(goal_actions, "ActionServer", self._serve)
        self.actions = goal_actions.GoalActions(self.node, self.desk, goals, 0.01)

    def _serve(self, node, action, name, **callbacks):
        self.servers[name] = SimpleNamespace(**callbacks)
        return SimpleNamespace(destroy=lambda: self.ended.append(name))


@pytest.fixture
def served(goals, monkeypatch):
    """Return f(*packages) -> Served."""
    with benches() as make:
        yield lambda *packages: Served(goals, make("tracker"), monkeypatch, *packages)


@pytest.mark.parametrize(
    ("packages", "names"),
    [
        (("nav2_msgs", "control_msgs"), ["navigate_to_pose", "follow_joint_trajectory"]),
        (("control_msgs",), ["follow_joint_trajectory"]),
        ((), []),
    ],
)
def test_actions_are_offered_whose_packages_are_installed(served, packages, names):
    here = served(*packages)
    assert list(here.servers) == names
    assert [period_s for period_s, *_ in here.node.timed] == ([0.1] if names else [])
    told = [text for _, text in here.node.logged]
    assert len(told) == 2 - len(names)
    if len(names) == 1:
        assert told == ["no action navigate_to_pose: nav2_msgs is not installed"]


def test_requests_are_taken_told_of_and_forgotten_when_they_are_over(served, goals):
    here = served("control_msgs")
    (server,), ((_, tick, _),) = here.servers.values(), here.node.timed
    assert server.goal_callback(None) is GoalResponse.ACCEPT
    assert server.cancel_callback(None) is CancelResponse.ACCEPT
    first, second = Handle(), Handle()
    for handle in (first, second):
        server.handle_accepted_callback(handle)
    tick()
    tick()
    assert (len(first.feedback), len(second.feedback)) == (2, 2)
    (_, one), (_, other) = goals.asked
    one.ended(None, "replaced")
    tick()
    assert (len(first.feedback), len(second.feedback)) == (2, 3)
    other.accepted(LEG)
    goals.step = LEG.end
    tick()
    tick()
    assert second.state == "succeed" and len(second.feedback) == 3
    here.desk.close()
    assert server.goal_callback(None) is GoalResponse.REJECT
    here.actions.close()
    assert here.ended == ["follow_joint_trajectory"]


def test_who_asked_hears_of_an_error_and_so_does_the_node(served, goals, monkeypatch):
    def mistaken(message, action_request):
        raise ZeroDivisionError("a mistake")

    (server,), handle = served("control_msgs").servers.values(), Handle()
    monkeypatch.setattr(goals, "trajectory", mistaken)
    with pytest.raises(ZeroDivisionError):  # by the inbox
        server.handle_accepted_callback(handle)
    assert handle.state == "abort"
    assert handle.result.error_string == "ZeroDivisionError: a mistake"
