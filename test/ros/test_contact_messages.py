"""Contacts of plants in messages, markers and reports."""

import casadi as ca
import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from geometry_msgs.msg import WrenchStamped  # noqa: E402
from visualization_msgs.msg import Marker  # noqa: E402

import nh_control as nh  # noqa: E402
from nh_control import scenarios  # noqa: E402
from nh_control.discrete.contact_forces import ContactPlaces, ContactReadout  # noqa: E402
from nh_control.loop.plant_report import ContactMonitor  # noqa: E402
from nh_control.loop.simulated_plant import SimulatedPlant  # noqa: E402
from nh_control.ros.messages import conversions  # noqa: E402
from nh_control.ros.messages.markers import ContactArrows  # noqa: E402
from nh_control.runs import topics  # noqa: E402
from nh_control.scenarios import PlantOptions, disturbance  # noqa: E402

SCENARIO = scenarios.get("wet_snakeboard")


@pytest.fixture(scope="module")
def plant():
    model = SCENARIO.model()
    start = model.state(np.array([0, 0.3, 0.5, 1, 2.0]), [0.3, -0.2, 0.1, 0.5, 0.2])
    return SimulatedPlant(model, start)


def test_contacts_of_a_plant_are_those_of_its_last_step(plant):
    plant.reset()
    assert plant.contacts == {}
    plant.advance([0.5, -0.2])
    expected = nh.contact_forces(plant.dsys, plant.initial, [0.5, -0.2])
    for name, force in plant.contacts.items():
        assert np.array_equal(force.force, expected[name].force)
    assert list(plant.contacts) == ["rear_wheels", "front_wheels"]


def test_reading_contacts_solves_no_step(plant, monkeypatch):
    plant.reset()
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


def test_the_functions_of_a_plant_are_made_before_its_run_and_before_a_change(monkeypatch):
    """They take as long to make as many steps."""
    model = SCENARIO.model()
    start = model.state(np.array([0, 0.3, 0.5, 1, 2.0]), [0.3, -0.2, 0.1, 0.5, 0.2])
    plant = SimulatedPlant(model, start)
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


def test_topics_of_contacts_have_names_that_ros_takes():
    system = SCENARIO.model().system
    assert topics.contacts(system) == {
        name: f"contacts/{name}" for name in ("rear_wheels", "front_wheels")
    }
    assert topics.contacts(scenarios.get("snakeboard").model().system) == {}
    kept = topics.recorded(SCENARIO)
    assert kept["contacts/rear_wheels"] == kept["wrench"] == "geometry_msgs/msg/WrenchStamped"
    assert not any("contacts" in topic for topic in topics.recorded(scenarios.get("snakeboard")))


def test_arrows_show_forces_where_the_contacts_are(plant):
    plant.reset()
    plant.advance([0.5, -0.2])
    places = ContactPlaces(plant.dsys.system)
    arrows, q = ContactArrows("odom", places, 0.1), plant.initial[:5]
    arrows.place(q)
    assert arrows.markers == []
    for name, one in plant.contacts.items():
        message = WrenchStamped()
        conversions.set_xyz(message.wrench.force, one.force.tolist())
        arrows.take(name, message)
    arrows.take("rear_wheels", broken())
    arrows.place(q)
    for marker, one in zip(arrows.markers, plant.contacts.values()):
        start, end = (conversions.xyz(point) for point in marker.points)
        assert start == pytest.approx(one.position) and (end - start) == pytest.approx(
            0.1 * one.force
        )
        assert (marker.ns, marker.type, marker.action) == ("contacts", Marker.ARROW, Marker.ADD)


def broken():
    message = WrenchStamped()
    message.wrench.force.x = float("nan")
    return message


@pytest.mark.slow
def test_nodes_publish_contact_forces_and_draw_them(nodes, probe):
    heard = {name: [] for name in ("rear_wheels", "front_wheels")}
    for name, messages in heard.items():
        probe.node.create_subscription(WrenchStamped, f"contacts/{name}", messages.append, 100)
    nodes.start("tracker", {"scenario": "wet_snakeboard"})
    lockstep = {"lockstep": True, "speed_factor": 0.0, "wait_for": "[probe]"}
    nodes.start("plant", {"scenario": "wet_snakeboard", **lockstep, "duration_s": 0.5})
    probe.wait(lambda: all(len(messages) >= 50 for messages in heard.values()), "contact forces")
    first = heard["front_wheels"][0]
    assert first.header.frame_id == "odom"
    scenario = SCENARIO
    model = scenario.model()
    run = scenario.reference(model)
    forces = nh.contact_forces(model, run.states[0], run.inputs[0])["front_wheels"].force
    assert conversions.xyz(first.wrench.force) == pytest.approx(forces, abs=1e-6)
