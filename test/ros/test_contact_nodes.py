"""Forces of contacts in the nodes that publish, show and record them, without a network."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from bench import Desk, Ended, benches  # noqa: E402
from geometry_msgs.msg import WrenchStamped  # noqa: E402
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy  # noqa: E402
from visualization_msgs.msg import Marker  # noqa: E402

from nh_control import scenarios  # noqa: E402
from nh_control.ros.messages import conversions  # noqa: E402
from nh_control.ros.messages.state_codecs import codecs  # noqa: E402
from nh_control.ros.nodes import display, plant, view  # noqa: E402
from nh_control.ros.runtime.selected_model import Model  # noqa: E402

SCENARIO = scenarios.get("wet_snakeboard")
FORCE = [0.0, 3.0, -4.0]
CONTACTS = "contacts/rear_wheels", "contacts/front_wheels"


@pytest.fixture(scope="module")
def model():
    return SCENARIO.model()


@pytest.fixture(scope="module")
def known(model):
    rolling = model.state([0, 0.3, 0.5, 1, 2.0], [0.3, -0.2, 0.1, 0.5, 0.2])
    return Model(SCENARIO, model, model.simulate(rolling, np.zeros((10, 2))))


@pytest.fixture
def make(known, monkeypatch):
    monkeypatch.setattr(Model, "of", staticmethod(lambda parameters: known))
    with benches() as make:
        yield lambda name, **given: make(name, scenario=SCENARIO.name, **given)


def hear(desk, model, k):
    """The state of step k."""
    q, v = np.array([0.4, 0.3, 0.5, 1, 2.0]), np.zeros(model.system.space.nw)
    desk.state(codecs(SCENARIO, model), q, v, k * 10**7)


def feel(desk, topic, force):
    """The force of a contact."""
    message = WrenchStamped()
    conversions.set_xyz(message.wrench.force, force)
    desk.give(topic, message)


class Page:
    """The server of a page that keeps the frames sent."""

    port, token, address, browsers = 0, "made", "http://the-address", 0

    def __init__(self, *given, **options):
        self.frames = []

    def send(self, text):
        """Kept."""
        message = json.loads(text)
        self.frames += [message["frame"]] if "frame" in message else []

    def close(self):
        """Nothing."""


def test_a_page_shows_forces_that_come_after_their_state_until_time_goes_back(
    make, model, monkeypatch
):
    monkeypatch.setattr(view, "LiveServer", Page)
    monkeypatch.setattr(view.time, "sleep", lambda seconds: None)
    desk = Desk()
    made = view.View(make("view"), desk, Ended(), view.Address())
    feel(desk, CONTACTS[0], FORCE)
    happens = [
        lambda: hear(desk, model, 7),
        lambda: feel(desk, CONTACTS[0], 2 * np.array(FORCE)),
        lambda: feel(desk, CONTACTS[0], [np.nan, 0.0, 0.0]),
        lambda: hear(desk, model, 0),
    ]
    desk.on_serve = lambda: happens.pop(0)() if happens else desk.close()
    made.work()
    lengths = np.array([frame["arrowLengths"][-2:] for frame in made._server.frames])
    assert lengths[1] == pytest.approx(2 * lengths[0]) and lengths[0, 0] > 0
    assert lengths[2:].tolist() == [[0.0, 0.0]] and not lengths[:, 1].any()
    heard = [desk.subscribed[topic].qos for topic in CONTACTS]  # no plant waits for them
    assert {one.reliability for one in heard} == {ReliabilityPolicy.BEST_EFFORT}


def test_the_display_s_arrows_go_where_time_goes_back(make, model):
    node, desk = make("display"), Desk()
    made = display.Display(node, desk, None)

    def drawn(k):
        hear(desk, model, k)
        made._draw()
        markers = node.sent("markers")[-1].markers
        return {marker.id: marker.action for marker in markers if marker.ns == "contacts"}

    assert drawn(6) == {}
    feel(desk, CONTACTS[0], FORCE)
    assert drawn(7) == {0: Marker.ADD}
    assert drawn(0) == {0: Marker.DELETE}
    feel(desk, CONTACTS[0], FORCE)
    assert drawn(1) == {0: Marker.ADD}


def test_a_plant_that_is_recorded_waits_until_the_forces_of_its_contacts_are_heard(
    make, monkeypatch
):
    monkeypatch.setattr(plant.Plant, "_begin_standard_control", lambda *_: lambda: None)
    node = make("plant", wait_for=["recorder"])
    made = plant.Plant(node, Desk(), Ended())
    hears = SimpleNamespace(
        node_name="recorder", qos_profile=SimpleNamespace(durability=DurabilityPolicy.VOLATILE)
    )
    topics = "/joint_states", "/odom", *(f"/{topic}" for topic in CONTACTS)
    node.seen_subscriptions = dict.fromkeys(topics, [hears])
    node.made[CONTACTS[1]].subscribers = 0
    assert made.output.missing().startswith(f"a subscription of /{CONTACTS[1]} to be matched")
    node.made[CONTACTS[1]].subscribers = 1
    assert made.output.missing() == "new subscriptions to settle"


def test_forces_of_hardware_may_come_best_effort_to_the_recorder(make, tmp_path):
    pytest.importorskip("rosbags", reason="needs the extra 'ros'")
    from nh_control.ros.nodes import recorder

    desk = Desk()
    made = recorder.Recorder(
        make("recorder", source="hardware", output=str(tmp_path / "run")), desk, Ended()
    )
    unreliable = ReliabilityPolicy.BEST_EFFORT
    found = {t for t, s in desk.subscribed.items() if s.qos.reliability is unreliable}
    assert found == {"joint_states", "odom", *CONTACTS}
    made.close()
