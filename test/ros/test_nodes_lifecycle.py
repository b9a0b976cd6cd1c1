"""Nodes that others configure and activate: ROS 2's managed nodes."""

import pytest

MANAGED = {"autostart": False}
STEPS = {"wait_for_tracker": False, "on_finish": "continue", "wait_for": "[probe]"}


class Manager:
    """Changes the states of a node."""

    def __init__(self, probe, node):
        from lifecycle_msgs.srv import ChangeState, GetState

        self._probe = probe
        self._change = probe.node.create_client(ChangeState, f"/{node}/change_state")
        self._get = probe.node.create_client(GetState, f"/{node}/get_state")

    def __call__(self, change):
        """Make a transition; returns whether it was made."""
        request = self._change.srv_type.Request()
        request.transition.label = change
        return self._probe.ask(self._change, request).success

    @property
    def state(self):
        """The node's state."""
        return self._probe.ask(self._get, self._get.srv_type.Request()).current_state.label


def silent(probe):
    """The probe, once nothing comes any more."""
    for _ in range(20):
        known = len(probe.clock)
        probe.spin(0.2)
        if len(probe.clock) == known:
            return probe
    raise AssertionError("the plant goes on")


@pytest.mark.slow
def test_a_plant_goes_through_the_life_of_a_managed_node(nodes, probe):
    from probe import time_ns

    plant = nodes.start("plant", {**MANAGED, **STEPS})
    manage = Manager(probe, "plant")
    assert manage.state == "unconfigured"
    assert manage("configure") and manage.state == "inactive"
    refused = probe.call("pause", True)
    assert not refused.success and refused.message == "the plant is not active"
    assert not probe.joint_states and manage("activate") and manage.state == "active"
    probe.wait(lambda: len(probe.clock) > 20, "steps")
    assert manage("deactivate") and manage.state == "inactive"
    stopped = len(silent(probe).clock)
    assert manage("activate")
    probe.wait(lambda: len(probe.clock) > stopped + 20, "steps")
    before, after = probe.clock[stopped - 1 : stopped + 1]
    assert time_ns(after) >= time_ns(before) > 0  # it goes on
    assert manage("deactivate") and manage("cleanup") and manage.state == "unconfigured"
    assert manage("configure")  # with the parameters it had
    silent(probe).clear()
    assert manage("activate")
    probe.wait(lambda: probe.clock, "a new beginning")
    assert time_ns(probe.clock[0]) == 0
    assert manage("shutdown") and plant.wait() == 0
    assert "Traceback" not in plant.log


@pytest.mark.slow
def test_all_nodes_are_managed(nodes, probe, tmp_path):
    from rosbags.highlevel import AnyReader

    bag = tmp_path / "bag"
    given = {
        "recorder": {"output": str(bag)},
        "tracker": {"heard_by": "[recorder]"},
        "plant": {"lockstep": True, "duration_s": 0.5, "wait_for": "[recorder]"},
    }
    started = {
        name: nodes.start(name, {**MANAGED, **given.get(name, {})})
        for name in ("recorder", "tracker", "display", "plant")
    }
    for name in started:
        manage = Manager(probe, name)
        assert manage("configure") and manage("activate"), name
    probe.wait_mode("finished")
    assert [node.end() for node in started.values()] == [0, 0, 0, 0]
    with AnyReader([bag]) as reader:
        counts = {connection.topic: connection.msgcount for connection in reader.connections}
    assert counts["/joint_states"] >= 51 and counts["/joint_commands"] >= 50


@pytest.mark.slow
def test_a_node_that_cannot_be_configured_says_why_and_stays(nodes, probe):
    tracker = nodes.start("tracker", {**MANAGED, "reference": "backflip"})
    manage = Manager(probe, "tracker")
    assert not manage("configure") and manage.state == "unconfigured"
    assert "unknown snakeboard reference 'backflip'" in tracker.log
    assert tracker.end() == 0


@pytest.mark.slow
def test_a_tracker_of_hardware_that_was_deactivated_is_disarmed(nodes, probe):
    given = {"source": "hardware", "hardware.armed": True, "disarm.silence_s": 0.0}
    tracker = nodes.start("tracker", given)
    manage = Manager(probe, "tracker")
    assert manage.state == "active"
    assert manage("deactivate") and manage("activate")
    probe.wait_value("armed", "False", "tracker")
    assert "disarmed: the tracker stopped" in tracker.log
