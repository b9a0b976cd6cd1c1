"""Forces of contacts: of a plant, in messages, markers, reports and nodes."""

import casadi as ca
import numpy as np
import pytest
from bench import Desk, Ended, benches, listener
from geometry_msgs.msg import WrenchStamped
from rclpy.qos import ReliabilityPolicy
from shown_payload import Page
from visualization_msgs.msg import Marker

import nh_control as nh
from nh_control import scenarios
from nh_control.discrete.contact_forces import ContactPlaces, ContactReadout
from nh_control.loop.plant_report import ContactMonitor
from nh_control.loop.simulated_plant import SimulatedPlant
from nh_control.ros.messages import conversions
from nh_control.ros.messages.markers import ContactArrows
from nh_control.ros.messages.state_codecs import codecs
from nh_control.ros.nodes import display, recorder, view
from nh_control.ros.nodes.plant import Plant
from nh_control.ros.runtime.selected_model import Model
from nh_control.scenarios import PlantOptions, disturbance

SCENARIO = scenarios.get("wet_snakeboard")
FORCE = [0.0, 3.0, -4.0]
CONTACTS = "contacts/rear_wheels", "contacts/front_wheels"


def rolling(model):
    return model.state([0, 0.3, 0.5, 1, 2.0], [0.3, -0.2, 0.1, 0.5, 0.2])


def wrench(force):
    message = WrenchStamped()
    conversions.set_xyz(message.wrench.force, np.asarray(force, float).tolist())
    return message


@pytest.fixture(scope="module")
def model():
    return SCENARIO.model()


@pytest.fixture(scope="module")
def plant(model):
    return SimulatedPlant(model, rolling(model))


def test_contacts_are_those_of_the_last_step_and_reading_them_solves_none(plant, monkeypatch):
    plant.reset()
    assert plant.contacts == {}
    plant.advance([0.5, -0.2])
    expected = nh.contact_forces(plant.dsys, plant.initial, [0.5, -0.2])
    iterations = plant.dsys.newton_iterations(plant.initial, [0.5, -0.2])

    def solved_again(*given):
        raise AssertionError("a second solution of the step")

    monkeypatch.setattr(nh.DiscreteSystem, "_run", solved_again)
    assert plant.newton_iterations == iterations
    for name, force in plant.contacts.items():
        assert all(
            np.array_equal(one, other, equal_nan=True) for one, other in zip(force, expected[name])
        )


def test_the_functions_of_a_plant_are_made_before_its_run_and_before_a_change(model, monkeypatch):
    plant = SimulatedPlant(model, rolling(model))
    options = PlantOptions(disturbances=(disturbance.parse("ground:constant:0.5"),))
    icy, ice = SCENARIO.plant(model, options), SCENARIO.disturbance(model, options)
    plant.prepare(icy)

    def made(*given):
        raise AssertionError("a function is made during the run")

    monkeypatch.setattr(ContactReadout, "__init__", made)
    monkeypatch.setattr(ca, "Function", made)
    margins = []
    for change in (lambda: None, lambda: plant.change_disturbance(icy, ice)):
        change()
        plant.reset()
        plant.advance([0.5, -0.2])
        assert np.isfinite([plant.energy, plant.constraint_residual]).all()
        margins.append(plant.contacts["rear_wheels"].margin)
    assert margins[1] < margins[0]


def test_a_report_has_margins_and_warns_of_contacts_that_slide(plant):
    monitor = ContactMonitor()
    assert monitor.report() == ({}, "")
    plant.reset()
    margins = []
    for _ in range(5):
        plant.advance([0.0, 0.0])
        monitor.observe(plant.contacts)
        margins.append(plant.contacts["front_wheels"].margin)
    values, warning = monitor.report()
    assert values["margin of friction front_wheels"] == margins[-1]
    assert values["least margin of friction front_wheels"] == min(margins) < 0.005
    assert "steps with sliding contacts" in warning and "front_wheels" in warning
    assert not any("normal" in name for name in values)  # grips have none
    _, warning = monitor.report()
    assert warning == ""


def test_arrows_show_forces_where_the_contacts_are(plant):
    plant.reset()
    plant.advance([0.5, -0.2])
    places = ContactPlaces(plant.dsys.system)
    arrows, q = ContactArrows("odom", places, 0.1, 1.0), plant.initial[:5]
    arrows.place(q)
    assert arrows.markers == []
    for name, one in plant.contacts.items():
        arrows.take(name, wrench(one.force))
    arrows.take("rear_wheels", wrench([np.nan, 0.0, 0.0]))  # is none
    arrows.place(q)
    for marker, one in zip(arrows.markers, plant.contacts.values()):
        start, end = (conversions.xyz(point) for point in marker.points)
        assert start == pytest.approx(one.position) and (end - start) == pytest.approx(
            0.1 * one.force
        )
        assert (marker.ns, marker.type, marker.action) == ("contacts", Marker.ARROW, Marker.ADD)


@pytest.fixture(scope="module")
def known(model):
    return Model(SCENARIO, model, model.simulate(rolling(model), np.zeros((10, 2))))


@pytest.fixture
def make(known, monkeypatch):
    monkeypatch.setattr(Model, "of", staticmethod(lambda parameters: known))
    with benches() as make:
        yield lambda name, **given: make(name, scenario=SCENARIO.name, **given)


def hear(desk, model, k):
    q, v = np.array([0.4, 0.3, 0.5, 1, 2.0]), np.zeros(model.system.space.nw)
    desk.state(codecs(SCENARIO, model), q, v, k * 10**7)


def test_a_page_shows_forces_that_come_after_their_state_until_time_goes_back(
    make, model, monkeypatch
):
    page, desk = Page(), Desk()
    monkeypatch.setattr(view, "LiveServer", page.open)
    monkeypatch.setattr(view.time, "sleep", lambda seconds: None)
    made = view.View(make("view"), desk, Ended(), view.Address())
    desk.give(CONTACTS[0], wrench(FORCE))
    happens = [
        lambda: hear(desk, model, 7),
        lambda: desk.give(CONTACTS[0], wrench(2 * np.array(FORCE))),
        lambda: desk.give(CONTACTS[0], wrench([np.nan, 0.0, 0.0])),
        lambda: hear(desk, model, 0),
    ]
    desk.on_serve = lambda: happens.pop(0)() if happens else desk.close()
    made.work()
    lengths = np.array([frame["arrowLengths"][-2:] for frame in page.frames])
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
    desk.give(CONTACTS[0], wrench(FORCE))
    assert drawn(7) == {0: Marker.ADD}
    assert drawn(0) == {0: Marker.DELETE}
    desk.give(CONTACTS[0], wrench(FORCE))
    assert drawn(1) == {0: Marker.ADD}


def test_a_plant_publishes_its_forces_and_waits_until_who_records_them_is_matched(make, model):
    node = make("plant", wait_for=["recorder"], lockstep=True, speed_factor=0.0)
    made = Plant(node, Desk(), Ended())
    hears = listener("recorder")
    heard = "/joint_states", "/odom", *(f"/{topic}" for topic in CONTACTS)
    node.seen_subscriptions = dict.fromkeys(heard, [hears])
    node.made[CONTACTS[1]].subscribers = 0
    assert made.output.missing().startswith(f"a subscription of /{CONTACTS[1]} to be matched")
    node.made[CONTACTS[1]].subscribers = 1
    assert made.output.missing() == "new subscriptions to settle"
    step = made.loop.plant
    step.advance([0.5, -0.2])
    made.output.publish()
    for topic in CONTACTS:
        (message,) = node.sent(topic)
        force = step.contacts[topic.partition("/")[2]].force
        assert message.header.frame_id == "odom"
        assert conversions.nanoseconds(message.header.stamp) == 10**7
        assert conversions.xyz(message.wrench.force) == pytest.approx(force)


def test_forces_of_hardware_may_come_best_effort_to_the_recorder(make, tmp_path):
    desk = Desk()
    made = recorder.Recorder(
        make("recorder", source="hardware", output=str(tmp_path / "run")), desk, Ended()
    )
    unreliable = ReliabilityPolicy.BEST_EFFORT
    found = {t for t, s in desk.subscribed.items() if s.qos.reliability is unreliable}
    assert found == {"joint_states", "odom", *CONTACTS}
    made.close()
