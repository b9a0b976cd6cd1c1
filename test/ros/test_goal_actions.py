"""What becomes of the requests of actions, with stand-ins for their types and servers."""

import sys
from types import SimpleNamespace

import pytest
from bench import Desk, benches
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Pose, PoseStamped
from rclpy.action.server import CancelResponse, GoalResponse
from std_msgs.msg import Header

from nh_control.loop.reports import Refusal
from nh_control.ros.messages import conversions, goal_actions
from nh_control.ros.messages.goal_interface import Progress

LEG = SimpleNamespace(start=20, end=50)
ALONG, TO_POSE = "follow_joint_trajectory", "navigate_to_pose"


def action(**fields):
    """The type of an action, as control_msgs and nav2_msgs (since Jazzy) have it."""
    result = {"SUCCESSFUL": 0, "INVALID_GOAL": -1, "INVALID_JOINTS": -2}
    result |= {"OLD_HEADER_TIMESTAMP": -3, "UNKNOWN": 9, "error_code": 0} | fields
    feedback = {"navigation_time": Time, "estimated_time_remaining": Time, "header": Header}
    return SimpleNamespace(
        Feedback=lambda: SimpleNamespace(**{name: kind() for name, kind in feedback.items()}),
        Result=lambda: SimpleNamespace(**result),
    )


class Handle:
    """A goal handle that notes what is done with it."""

    def __init__(self, **request):
        empty, pose = SimpleNamespace(points=[]), PoseStamped()
        conversions.set_xyz(pose.pose.position, (3.0, 4.0, 0.0))
        known = {"trajectory": empty, "multi_dof_trajectory": "path", "pose": pose}
        self.request = SimpleNamespace(**known | request)
        self.is_cancel_requested, self.feedback, self.state = False, [], ""
        for state in ("succeed", "abort", "canceled"):
            setattr(self, state, lambda state=state: setattr(self, "state", self.state + state))
        self.publish_feedback = self.feedback.append

    def execute(self, callback):
        self.result = callback(self)


class Goals:
    """A goal interface at a step."""

    def __init__(self):
        self.step, self.asked, self.stopped, self.refused, self.height = 10, [], False, [], 0.0

    def progress(self):
        actual, target = Pose(), Pose()
        target.position.x, actual.position.z = 0.5, self.height
        return Progress(self.step, 10**7 * self.step, "payload", "odom", actual, target)

    def refuse(self, what, reason, kind, request):
        self.refused.append(kind)
        request.ended(kind, reason)

    def goal(self, message, request):
        self.asked.append((message, request))

    trajectory = goal

    def stop(self):
        self.stopped = True


class Served:
    """Actions whose packages are installed: their servers' callbacks by name."""

    def __init__(self, bench, monkeypatch, packages, results):
        self.servers, self.ended, self.node, self.desk = {}, [], bench, Desk()
        self.goals = Goals()
        for package, name in (
            ("nav2_msgs", "NavigateToPose"), ("control_msgs", "FollowJointTrajectory"),
        ):  # fmt: skip
            module = SimpleNamespace(**{name: action(**results)}) if package in packages else None
            monkeypatch.setitem(sys.modules, f"{package}.action", module)
            monkeypatch.setitem(sys.modules, package, SimpleNamespace(action=module))
        monkeypatch.setattr(goal_actions, "ActionServer", self._serve)
        self.actions = goal_actions.GoalActions(self.node, self.desk, self.goals, 0.01)

    def _serve(self, node, action, name, **callbacks):
        self.servers[name] = SimpleNamespace(**callbacks)
        return SimpleNamespace(destroy=lambda: self.ended.append(name))

    def begin(self, name=ALONG, **request):
        handle = Handle(**request)
        self.servers[name].handle_accepted_callback(handle)
        return handle

    def tick(self, step=None):
        self.goals.step = self.goals.step if step is None else step
        ((period_s, tick, _),) = self.node.timed
        assert period_s == 0.1
        tick()


@pytest.fixture
def served(monkeypatch):
    """Return f(*packages, **results) -> Served, with other fields of results."""
    with benches() as make:
        yield lambda *packages, **results: Served(
            make("tracker"), monkeypatch, packages or ("nav2_msgs", "control_msgs"), results
        )


def test_actions_are_offered_whose_packages_are_installed(served):
    assert list(served().servers) == [TO_POSE, ALONG]
    assert list(served("nothing").servers) == [] and served("nothing").node.timed == []
    here = served("control_msgs")
    assert list(here.servers) == [ALONG]
    told = [text for _, text in here.node.logged]
    assert told == ["no action navigate_to_pose: nav2_msgs is not installed"]


def test_requests_are_taken_told_of_and_forgotten_when_they_are_over(served):
    here = served()
    server = here.servers[ALONG]
    assert server.goal_callback(None) is GoalResponse.ACCEPT
    assert server.cancel_callback(None) is CancelResponse.ACCEPT
    first, second = here.begin(), here.begin()
    here.tick()
    here.tick()
    assert (len(first.feedback), len(second.feedback)) == (2, 2)
    (_, one), (_, other) = here.goals.asked
    one.ended(None, "replaced")
    here.tick()
    assert (len(first.feedback), len(second.feedback)) == (2, 3)
    other.accepted(LEG)
    here.tick(LEG.end - 1)
    desired = second.feedback[-1].multi_dof_desired
    assert desired.transforms[0].translation.x == 0.5
    assert desired.time_from_start.nanosec == 290_000_000 and not other.over
    here.tick(LEG.end)
    here.tick()
    assert (second.state, second.result.error_code, len(second.feedback)) == ("succeed", 0, 4)
    other.ended(None, "replaced by something else")
    assert second.state == "succeed"
    here.desk.close()
    assert server.goal_callback(None) is GoalResponse.REJECT
    here.actions.close()
    assert here.ended == [TO_POSE, ALONG]


@pytest.mark.parametrize(
    ("request_", "refusal", "code", "text"),
    [
        ({}, Refusal.NAMES, -2, "for a reason"),
        ({}, Refusal.STAMP, -3, "for a reason"),
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
    served, request_, refusal, code, text
):
    here = served()
    handle = here.begin(**request_)
    if request_:
        assert here.goals.refused == [refusal] and not here.goals.asked
    else:
        here.goals.asked[0][1].ended(refusal, "for a reason")
    assert (handle.state, handle.result.error_code) == ("abort", code)
    assert handle.result.error_string == text


def test_a_canceled_request_brings_the_body_to_rest(served):
    here = served()
    handle = here.begin()
    handle.is_cancel_requested = True
    here.tick()
    assert handle.state == "canceled" and here.goals.stopped


def test_feedback_and_results_on_the_way_to_a_pose(served):
    here = served(error_msg="")
    handle = here.begin(TO_POSE)
    here.tick(15)
    ((asked, request),) = here.goals.asked
    assert asked is handle.request.pose
    assert conversions.nanoseconds(handle.feedback[-1].estimated_time_remaining) == 0
    request.accepted(LEG)
    here.tick(30)
    feedback = handle.feedback[-1]
    assert conversions.nanoseconds(feedback.navigation_time) == 200_000_000  # since step 10
    assert conversions.nanoseconds(feedback.estimated_time_remaining) == 200_000_000
    assert conversions.nanoseconds(feedback.current_pose.header.stamp) == 300_000_000
    assert feedback.current_pose.header.frame_id == "odom"
    here.goals.height = -1.0
    for goal, way in (
        ((3.0, 4.0, 0.0), 5.0), ((0.0, 0.0, 2.0), 3.0), ((2.0, 0.0, -3.0), 8**0.5),
    ):  # fmt: skip
        conversions.set_xyz(asked.pose.position, goal)
        here.tick()
        assert handle.feedback[-1].distance_remaining == pytest.approx(way)
    here.tick(LEG.end)
    assert (handle.state, handle.result.error_code, handle.result.error_msg) == ("succeed", 0, "")
    late = here.begin(TO_POSE)
    here.goals.asked[-1][1].ended(Refusal.STAMP, "late")
    assert (late.result.error_code, late.result.error_msg) == (9, "late")
    before = served()  # before Jazzy
    late = before.begin(TO_POSE)
    before.goals.asked[-1][1].ended(Refusal.STAMP, "late")
    assert late.state == "abort" and late.result.error_code == 0


def test_feedback_along_a_trajectory_tells_what_is_desired_what_is_and_the_difference(served):
    here = served()
    handle, here.goals.height = here.begin(), 2.0
    here.tick()
    feedback = handle.feedback[-1]
    places = [
        conversions.xyz(getattr(feedback, f"multi_dof_{name}").transforms[0].translation).tolist()
        for name in ("desired", "actual", "error")
    ]
    assert places == [[0.5, 0.0, 0.0], [0.0, 0.0, 2.0], [0.5, 0.0, -2.0]]
    assert feedback.multi_dof_joint_names == ["payload"]
    assert (feedback.header.frame_id, feedback.header.stamp.nanosec) == ("odom", 10**8)


def test_who_asked_hears_of_an_error_and_so_does_the_node(served):
    def mistaken(message, request):
        raise ZeroDivisionError("a mistake")

    here, handle = served(), Handle()
    here.goals.trajectory = mistaken
    with pytest.raises(ZeroDivisionError):  # by the inbox
        here.servers[ALONG].handle_accepted_callback(handle)
    assert handle.state == "abort"
    assert handle.result.error_string == "ZeroDivisionError: a mistake"
