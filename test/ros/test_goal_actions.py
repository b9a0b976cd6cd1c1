"""What becomes of the requests of actions, with stand-ins for their types and servers."""

from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from geometry_msgs.msg import Pose  # noqa: E402
from std_msgs.msg import Header  # noqa: E402

from nh_control.ros.loop.refusal import Refusal  # noqa: E402
from nh_control.ros.messages.goal_actions import Flight, FollowJointTrajectory  # noqa: E402
from nh_control.ros.messages.goal_interface import Progress  # noqa: E402

LEG = SimpleNamespace(start=20, end=50)


class Result:
    """As control_msgs has it."""

    SUCCESSFUL, INVALID_GOAL, INVALID_JOINTS, OLD_HEADER_TIMESTAMP = 0, -1, -2, -3
    error_code = 0


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
        """As the executor does later."""
        self.result = callback(self)


class Goals:
    """A goal interface at a step."""

    def __init__(self):
        self.step, self.asked, self.stopped, self.refused = 10, [], False, []

    def progress(self):
        """The payload 0.5 m behind its target."""
        actual, target = Pose(), Pose()
        target.position.x = 0.5
        return Progress(self.step, 10**7 * self.step, "payload", "odom", actual, target)

    def refuse(self, what, reason, kind, flight):
        """Tell who asked."""
        self.refused.append(kind)
        flight.ended(kind, reason)

    def trajectory(self, message, flight):
        """Note it."""
        self.asked.append((message, flight))

    def stop(self):
        """Note it."""
        self.stopped = True


@pytest.fixture
def goals():
    return Goals()


def begin(handle, goals):
    """The flight of a request."""
    action = SimpleNamespace(Feedback=lambda: SimpleNamespace(header=Header()), Result=Result)
    kind = FollowJointTrajectory()
    flight = Flight(kind, handle, action, 0.01, goals.step)
    kind.ask(goals, handle.request, flight)
    return flight


def test_a_request_ends_where_its_leg_does(goals):
    handle = Handle()
    flight = begin(handle, goals)
    assert goals.asked == [("path", flight)]
    flight.tick(goals)
    flight.accepted(LEG)
    goals.step = 49
    flight.tick(goals)
    desired = handle.feedback[-1].multi_dof_desired
    assert desired.transforms[0].translation.x == 0.5
    assert desired.time_from_start.nanosec == 290_000_000 and not flight.over
    goals.step = 50
    flight.tick(goals)
    assert (handle.state, handle.result.error_code, len(handle.feedback)) == ("succeed", 0, 2)
    flight.ended(None, "replaced by something else")
    assert handle.state == "succeed"


@pytest.mark.parametrize(
    ("refusal", "code"),
    [(Refusal.NAMES, -2), (Refusal.STAMP, -3), (Refusal.MODEL, -1), (None, -1)],
)
def test_a_refusal_is_the_result(goals, refusal, code):
    handle = Handle()
    begin(handle, goals).ended(refusal, "for a reason")
    assert (handle.state, handle.result.error_code) == ("abort", code)
    assert handle.result.error_string == "for a reason"


@pytest.mark.parametrize(
    ("request_", "text", "kind"),
    [
        (
            {"trajectory": SimpleNamespace(points=[1])},
            "only multi_dof_trajectory",
            Refusal.NAMES,
        ),
        (
            {"component_goal_tolerance": [1]},
            "component_goal_tolerance: tolerances",
            Refusal.MODEL,
        ),
    ],
)
def test_what_is_not_done_is_refused_and_counted(goals, request_, text, kind):
    handle = Handle(**request_)
    begin(handle, goals)
    assert handle.state == "abort" and text in handle.result.error_string and not goals.asked
    assert goals.refused == [kind]


def test_a_canceled_request_brings_the_body_to_rest(goals):
    handle = Handle()
    flight = begin(handle, goals)
    flight.accepted(LEG)
    handle.is_cancel_requested = True
    flight.tick(goals)
    assert handle.state == "canceled" and goals.stopped
