"""What becomes of a page's requests, by services and topics that are pretended."""

import threading

import numpy as np
import pytest
from bench import Desk, benches
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.task import Future
from std_srvs.srv import SetBool, Trigger

from nh_control import scenarios
from nh_control.ros.messages import conversions, heard_nodes, view_requests
from nh_control.ros.messages.state_codecs import codecs
from nh_control.ros.messages.view_requests import OF_HARDWARE, ViewRequests
from nh_control.view.live_requests import ViewRequest

QUADS = scenarios.get("quadrotor_payload")


class Client:
    """A service's client: `asked` are its requests, `answer` what it says, None for nothing."""

    def __init__(self, kind, name):
        self.srv_type, self.srv_name, self.ready = kind, name, True
        self.asked, self.answer, self.removed = [], (True, "done"), []

    def service_is_ready(self):
        return self.ready

    def call_async(self, request):
        self.asked.append(request)
        future = Future()
        if self.answer is not None:
            success, message = self.answer
            if self.srv_type is SetParametersAtomically:
                result = SetParametersResult(successful=success, reason=message)
                future.set_result(self.srv_type.Response(result=result))
            else:
                future.set_result(self.srv_type.Response(success=success, message=message))
        return future

    def remove_pending_request(self, future):
        self.removed.append(future)


@pytest.fixture
def asking(monkeypatch):
    """Makes requests: f(scenario, source, namespace) -> node, inbox, clients, requests."""
    monkeypatch.setattr(view_requests, "ANSWER_S", 0.2)
    with benches() as make:

        def start(scenario=QUADS, source="simulation", namespace=""):
            node, desk, clients = make("view", namespace), Desk(), {}
            node.create_client = lambda kind, name: clients.setdefault(name, Client(kind, name))
            shown = codecs(scenario, scenario.model(), prefix=namespace and f"{namespace}/")
            system = scenario.make_system(scenario.parameters)
            made = ViewRequests(node, desk, scenario, system, shown, source)
            return node, desk, clients, made

        yield start


def test_what_is_asked_for_reaches_its_service_and_so_does_the_answer_the_page(asking):
    _, _, clients, requests = asking()
    assert {name: one.srv_type for name, one in clients.items()} == {
        "plant/pause": SetBool,
        "plant/step": Trigger,
        "plant/reset": Trigger,
        "plant/set_parameters_atomically": SetParametersAtomically,
    }
    clients["plant/step"].answer = (False, "it is running: pause it first")
    assert requests.answer(ViewRequest("pause", on=True)) == (True, "done")
    assert requests.answer(ViewRequest("pause", on=False)) == (True, "done")
    assert [request.data for request in clients["plant/pause"].asked] == [True, False]
    assert requests.answer(ViewRequest("step")) == (False, "it is running: pause it first")
    assert requests.answer(ViewRequest("reset")) == (True, "done")
    assert requests.answer(ViewRequest("arm", on=True)) == (
        False,
        "the request arm is not available here",
    )


def test_hardware_is_armed_and_disarmed_and_nothing_else(asking):
    _, _, clients, requests = asking(source="hardware")
    assert list(clients) == ["tracker/arm"] and requests.offered is OF_HARDWARE
    assert requests.answer(ViewRequest("arm", on=True)).done
    assert [request.data for request in clients["tracker/arm"].asked] == [True]
    assert not requests.answer(ViewRequest("reset")).done


def test_services_that_are_not_there_or_say_nothing_are_told(asking):
    _, _, clients, requests = asking()
    clients["plant/reset"].ready = False
    assert requests.answer(ViewRequest("reset")) == (False, "no node offers plant/reset")
    assert clients["plant/reset"].asked == []
    clients["plant/step"].answer = None
    assert requests.answer(ViewRequest("step")) == (False, "plant/step did not answer in 0.2 s")
    assert len(clients["plant/step"].removed) == 1


def says(desk, node="plant", level=b"\0", message="running", **values):
    pairs = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
    status = DiagnosticStatus(name=f"{node}: what it is", message=message, values=pairs)
    status.level = level
    desk.give("/diagnostics", DiagnosticArray(status=[status]))


PULL = ViewRequest("pull", target="payload", force=(3.0, -6.0, 1.0))


def test_a_body_is_pulled_within_the_bound_that_the_plant_tells(asking):
    node, desk, _, requests = asking()
    assert requests.targets == ("payload", "quad1", "quad2") and requests.bounds == {}
    done, why = requests.answer(PULL)
    assert not done and "none: see its parameter wrench.targets" in why
    says(desk, **{"wrench bound payload (N)": 4.0, "wrench bound quad1 (N)": 0.0})
    assert requests.bounds == {"payload": 4.0}
    assert requests.answer(PULL) == (True, "payload: 4.52 N")
    assert not requests.answer(ViewRequest("pull", target="quad1", force=(1.0, 0.0, 0.0))).done
    (message,) = node.sent("wrench")
    force = conversions.xyz(message.wrench.force)
    assert message.header.frame_id == "payload" and np.abs(force).max() < 4.0
    np.testing.assert_allclose(force, 4.0 / 6.0 * np.array(PULL.force), rtol=1e-4)


def test_a_planar_body_is_pulled_in_its_plane(asking):
    node, desk, _, requests = asking(scenarios.get("snakeboard"))
    says(desk, **{"wrench bound base_link (N)": 10.0})
    assert requests.answer(ViewRequest("pull", target="base_link", force=(3.0, 4.0, 9.0))).done
    assert conversions.xyz(node.sent("wrench")[0].wrench.force).tolist() == [3.0, 4.0, 0.0]
    assert not asking(source="hardware")[3].answer(PULL).done


def test_parameters_of_the_plant_are_changed_and_refusals_have_its_reason(asking):
    _, _, clients, requests = asking()
    client = clients["plant/set_parameters_atomically"]
    changed = lambda name, value: requests.answer(
        ViewRequest("change", parameter=name, value=value)
    )
    assert changed("speed_factor", "0.5") == (True, "speed_factor is 0.5")
    assert changed("fault", "delay=0.01  loss=0.1").done and changed("disturb", "").done
    given = [request.parameters[0] for request in client.asked]
    assert [one.name for one in given] == ["speed_factor", "fault", "disturb"]
    assert given[0].value.double_value == 0.5
    assert list(given[1].value.string_array_value) == ["delay=0.01", "loss=0.1"]
    assert given[2].value.type == 9 and not list(given[2].value.string_array_value)
    client.answer = (False, "no such fault")
    assert changed("fault", "magic") == (False, "no such fault")
    assert changed("speed_factor", "fast") == (False, "speed_factor: 'fast' is not a number")
    done, why = changed("use_sim_time", "true")
    assert not done and "is not one of speed_factor, fault, disturb" in why
    client.ready = False
    assert changed("fault", "") == (False, "no node offers plant/set_parameters_atomically")


def test_what_nodes_say_is_told_and_what_they_say_no_more(asking, monkeypatch):
    _, desk, _, requests = asking(namespace="robot1")
    now = [100.0]
    monkeypatch.setattr(heard_nodes.time, "monotonic", lambda: now[0])
    says(desk, message="another robot")
    says(desk, "robot1/plant", b"\1", "3 steps missed", missed_steps=3)
    says(desk, "robot1/view", message="itself")
    assert requests.heard.statuses(101.0) == [("plant", "warn", "3 steps missed")]
    assert requests.heard.of("plant").values["missed_steps"] == "3"
    assert requests.heard.of("tracker") == heard_nodes.NodeStatus()
    now[0] = 105.0
    says(desk, "robot1/tracker", b"\2", "ill")
    assert requests.heard.statuses(105.0) == [
        ("plant", "error", "silent for 5 s"),
        ("tracker", "error", "ill"),
    ]
    now[0] = 161.0
    says(desk, "robot1/tracker")
    assert [name for name, _, _ in requests.heard.statuses(161.0)] == ["tracker"]
    for k in range(100):
        says(desk, f"robot1/node{k}")
    assert len(requests.heard.statuses(161.0)) == heard_nodes.NODES


GOAL = ViewRequest("goal", position=(1.0, -2.0, 0.5))


def test_goals_are_sent_and_the_tracker_says_what_becomes_of_them(asking):
    node, desk, _, requests = asking(namespace="robot1")
    assert requests.goals
    says(desk, "tracker", goals_accepted=1, goals_refused=1)  # of another robot
    assert requests.answer(GOAL) == (False, "no tracker that accepts goals is running")
    assert node.sent("goal") == []

    def tell(accepted, refused, message="tracking"):
        counts = {"goals_accepted": accepted, "goals_refused": refused}
        says(desk, "robot1/tracker", message=message, **counts)

    tell(3, 1)
    assert requests.answer(GOAL) == (False, "the tracker did not answer the goal in 0.2 s")
    (message,) = node.sent("goal")
    assert message.header.frame_id == "robot1/odom" and message.header.stamp.sec == 0
    assert conversions.xyz(message.pose.position).tolist() == [1.0, -2.0, 0.5]
    view_requests.ANSWER_S = 30.0  # undone by the fixture
    for given, expected in (
        ((4, 1), (True, "goal accepted")),
        ((4, 2, "goal refused: too far"), (False, "goal refused: too far")),
    ):
        later = threading.Timer(0.1, tell, given)
        later.start()
        assert requests.answer(GOAL) == expected
        later.join()


def test_goals_are_for_scenarios_that_take_them(asking):
    node, _, _, requests = asking(scenarios.get("snakeboard"))
    assert not requests.goals and "goal" not in node.made
    assert requests.answer(GOAL) == (False, "the request goal is not available here")
