"""How nodes start, are managed, end and come back."""

import signal
import subprocess
import sys

import numpy as np
import pytest
from geometry_msgs.msg import Twist
from lifecycle_msgs.srv import ChangeState, GetState
from nav_msgs.msg import Odometry, Path
from node_processes import LOCKSTEP
from probe import by_step, latched, time_ns
from rclpy.qos import qos_profile_sensor_data
from rosbags.highlevel import AnyReader
from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray

from nh_control import scenarios

SCENARIO = scenarios.get("snakeboard")
H, STEPS = SCENARIO.step_s, 200
ALL = """
/**:
  ros__parameters: {{scenario: snakeboard, autostart: false, duration_s: 2.0, rate_hz: 20,
    lockstep: true, speed_factor: 2.0, use_sim_time: true, heard_by: [probe, recorder],
    output: {output}, wait_for: [recorder, display, probe]}}
"""
"""Parameters of all nodes in one file."""
LEAST = {"/joint_states": 201, "/odom": 201, "/joint_commands": 200, "/clock": 201}
LEAST |= {"/reference": 1, "/markers": 2, "/diagnostics": 1}
ERROR, WARNING = b"\2", b"\1"


class Manager:
    """Changes the states of a node."""

    def __init__(self, probe, node):
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
        return self._probe.ask(self._get, self._get.srv_type.Request()).current_state.label


def recording(bag):
    """Numbers of messages by topic, and the times, of a recording."""
    with AnyReader([bag]) as reader:
        counts = {connection.topic: connection.msgcount for connection in reader.connections}
        return counts, [time_ns for _, time_ns, _ in reader.messages()]


@pytest.mark.slow
def test_all_nodes_take_one_file_are_managed_publish_a_complete_run_and_end_by_signals(
    nodes, probe, tmp_path
):
    file, bag = tmp_path / "all.yaml", tmp_path / "bag"
    file.write_text(ALL.format(output=bag))
    markers = probe.listen(MarkerArray, "markers")
    error = probe.listen(JointState, "controller_state/error")
    names = ("recorder", "tracker", "display", "plant")
    started = [nodes.start(name, None, "--params-file", str(file)) for name in names]
    for name in names:
        manage = Manager(probe, name)
        assert manage.state == "unconfigured" and manage("configure") and manage("activate"), name
        if name == "tracker":
            probe.wait_publishers("joint_commands", "controller_state/error")
    probe.wait_mode("finished")
    probe.wait_step(STEPS, H)
    probe.wait_clock(STEPS, H)
    probe.wait_command(STEPS - 1, H)
    paths = probe.listen(Path, "reference", latched())  # after the end
    probe.wait(lambda: paths, "path")
    drawn = {"plant", "reference", "trail"}
    probe.wait(lambda: markers and {m.ns for m in markers[-1].markers} == drawn, "all markers")
    probe.wait(lambda: len(error) >= STEPS, "controller's state")
    for name in names:
        probe.wait(lambda name=name: name in probe.diagnostics, f"report of the {name}")
    probe.wait(lambda: probe.values("tracker").get("step") == str(STEPS), "tracker's report")

    stamps = [round(1e9 * H) * k for k in range(STEPS + 1)]
    for topic in (probe.joint_states, probe.odometry, probe.clock):
        assert sorted({time_ns(message) for message in topic}) == stamps
    times = [time_ns(message) for message in probe.clock]
    assert times == sorted(times) and {time_ns(m) for m in probe.commands} <= set(stamps)
    # every third of 1481 states, and the last one: a path has about 500 poses
    assert len(paths[0].poses) == len({*range(0, 1481, 3), 1480})
    values = probe.values()
    told = [values[name] for name in ("step", "commands_rejected", "fallback_steps")]
    assert told == ["200", "0", "0"]

    for number in (signal.SIGINT, signal.SIGTERM):
        for node in started:
            node.process.send_signal(number)
    assert [node.wait() for node in started] == [0, 0, 0, 0], [node.log for node in started]
    assert not any("Traceback" in node.log for node in started)
    counts, stamps = recording(bag)
    assert all(counts[topic] >= count for topic, count in LEAST.items()), counts
    assert counts["/reference"] == 1 and max(stamps) < 20 * 10**9  # simulation time
    again = nodes.start("recorder", {"output": str(bag)})
    assert again.wait() == 2 and "exists already" in again.log and "'output'" in again.log


@pytest.mark.slow
def test_a_plant_goes_through_the_life_of_a_managed_node(nodes, probe):
    given = {"wait_for_tracker": False, "on_finish": "continue", "wait_for": "[probe]"}
    # which no force and no singularity brings to an end
    plant = nodes.start("plant", {**given, "scenario": "cart_pole", "autostart": False})
    manage = Manager(probe, "plant")
    assert manage("configure") and manage.state == "inactive"
    refused = probe.call("pause", True)
    assert not refused.success and refused.message == "the plant is not active"
    assert not probe.joint_states and manage("activate") and manage.state == "active"
    probe.wait(lambda: len(probe.clock) > 20, "steps")
    assert manage("deactivate") and manage.state == "inactive"
    probe.wait_silence(probe.clock)
    stopped = len(probe.clock)
    assert manage("activate")
    probe.wait(lambda: len(probe.clock) > stopped + 20, "steps")
    before, after = probe.clock[stopped - 1 : stopped + 1]
    assert time_ns(after) >= time_ns(before) > 0  # it goes on
    assert manage("deactivate") and manage("cleanup") and manage.state == "unconfigured"
    assert manage("configure")  # with the parameters it had
    probe.wait_silence(probe.clock)
    probe.clear()
    assert manage("activate")
    probe.wait(lambda: probe.clock, "a new beginning")
    assert time_ns(probe.clock[0]) == 0
    assert manage("shutdown") and plant.wait() == 0
    assert "Traceback" not in plant.log


@pytest.mark.parametrize("refused", [False, True])
def test_a_node_that_cannot_leave_the_network_ends_nevertheless(refused):
    """A call that keeps the interpreter in destroy_node lets no thread or signal end it."""
    code = (
        "import ctypes, os, signal, sys\nfrom nh_control.ros.runtime import process\n"
        "class Done:\n    def __init__(self, _, inbox, __):\n        self.inbox = inbox\n"
        f"        if {refused}: raise process.UsageError('not so')\n"
        "    def work(self):\n        os.kill(os.getpid(), signal.SIGINT)\n"
        "        self.inbox.run()\n"
        "    def close(self): print('closed', flush=True)\n"
        "process.LEAVE_S = 0.5\n"
        "process.ManagedNode.destroy_node = lambda self: ctypes.PyDLL(None).sleep(60)\n"
        "sys.exit(process.run('stuck', Done, []))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stdout.split() == ([] if refused else ["closed"])
    assert "Timeout" in done.stderr and ("in _cleanup" if refused else "in end") in done.stderr
    assert ("not so" in done.stderr) == refused


@pytest.mark.slow
def test_what_is_waited_for_or_cannot_be_heard_is_named_and_ctrl_c_ends_the_waiting(nodes, probe):
    drive = {"scenario": "differential_drive", "reference": "standstill"}
    waiting = {"wait_for": "[probe, nobody]", "wait_for_tracker": False}
    tracker, plant = nodes.start("tracker", drive), nodes.start("plant", {**drive, **waiting})
    probe.node.create_publisher(Odometry, "odom", qos_profile_sensor_data)
    probe.node.create_publisher(Twist, "cmd_vel", 1)
    told = (
        ("plant", "nobody to subscribe to /joint_states (parameter 'wait_for')"),
        ("tracker", "/odom of probe ("),
        ("tracker", "quality of service is incompatible"),
        (
            "tracker",
            "/cmd_vel of probe is not received: its type is geometry_msgs/msg/Twist,",
        ),
        ("tracker", "set the tracker's cmd_vel.stamped:=false"),
    )
    for name, text in told:
        probe.wait(lambda name=name, text=text: text in probe.message(name), text)
        assert probe.diagnostics[name].level == WARNING
    probe.wait(lambda: probe.diagnostics.pop("tracker", None), "next warning")
    probe.wait(lambda: "is not received" in tracker.log, "warning in the log")
    assert tracker.log.count("/cmd_vel of probe") == 1
    assert probe.values()["step"] == "0" and plant.end() == 0


def rows(probe, first, last):
    """Joint positions, velocities and place at steps first to last, as last heard."""
    joints, bodies = by_step(probe.joint_states, H), by_step(probe.odometry, H)
    found = []
    for k in range(first, last + 1):
        p, v = bodies[k].pose.pose.position, bodies[k].twist.twist
        found.append([*joints[k].position, *joints[k].velocity, p.x, p.y, v.linear.x, v.angular.z])
    return np.array(found)


@pytest.mark.slow
@pytest.mark.usefixtures("udp")
def test_a_killed_tracker_is_awaited_in_lockstep_and_its_successors_change_nothing(nodes, probe):
    """The last comes after a reset of the state alone, and knows when the reference started."""
    tracker = nodes.start("tracker")
    # far from its end when the tracker is killed
    given = {"speed_factor": 0.5, "duration_s": STEPS * H, "perturb.position": 0.1}
    plant = nodes.start("plant", {**LOCKSTEP, **given})
    probe.wait_step(30, H)
    tracker.kill()
    awaited = "for the command that answers"
    # not the report of the start, when the tracker had not been found yet
    probe.wait(lambda: awaited in probe.message() and int(probe.values()["step"]) > 0, "warning")
    assert probe.diagnostics["plant"].level == WARNING
    assert 0 < int(probe.values()["step"]) < STEPS
    assert probe.call("pause", True).success and probe.call("pause", False).success
    tracker = nodes.start("tracker")
    assert not probe.set("plant", speed_factor=2.0)
    probe.wait_step(STEPS, H)
    probe.wait_mode("finished")
    interrupted = rows(probe, 0, STEPS)
    probe.reset()
    probe.wait_step(STEPS, H)
    probe.wait_mode("finished")
    np.testing.assert_array_equal(rows(probe, 0, STEPS), interrupted)
    assert probe.call("reset_state").success
    probe.wait_step(STEPS + 40, H)
    tracker.kill()
    nodes.start("tracker")
    probe.wait_step(2 * STEPS + 1, H)
    np.testing.assert_array_equal(rows(probe, STEPS + 1, 2 * STEPS + 1), interrupted)
    assert plant.end() == 0


@pytest.mark.slow
@pytest.mark.usefixtures("udp")
def test_in_real_time_a_plant_waits_for_a_killed_tracker_and_its_successor_joins(nodes, probe):
    """No step is held under an old command here, so that the wait changes no state."""
    tracker = nodes.start("tracker")
    given = {"fallback": "wait", "command_timeout_steps": 1, "wait_for": "[probe]"}
    plant = nodes.start("plant", {**given, "duration_s": STEPS * H, "perturb.position": 0.1})
    probe.wait_step(60, H)
    tracker.kill()
    probe.wait(lambda: "waiting for the command that answers step" in plant.log, "wait")
    probe.wait(lambda: "for the command that answers" in probe.message(), "warning")
    assert 60 <= int(probe.values()["step"]) < STEPS
    tracker = nodes.start("tracker")
    probe.wait_mode("finished")
    probe.wait_step(STEPS, H)
    interrupted, values = rows(probe, 0, STEPS), probe.values()
    assert "the run continues at step" in plant.log and "joins the run at t = " in tracker.log
    assert (values["fallback_steps"], values["commands_rejected"]) == ("0", "0")
    assert int(values["waits"]) >= 1 and float(values["waited_s"]) > 1.0
    probe.reset()
    probe.wait_step(STEPS, H)
    probe.wait_mode("finished")
    np.testing.assert_array_equal(rows(probe, 0, STEPS), interrupted)
    assert plant.end() == 0


@pytest.mark.slow
@pytest.mark.usefixtures("udp")
def test_a_plant_that_is_killed_comes_back_and_the_tracker_follows_it_from_the_start(nodes, probe):
    given = {**LOCKSTEP, "duration_s": 1.0, "perturb.position": 0.1}
    tracker = nodes.start("tracker")
    killed = nodes.start("plant", {**given, "speed_factor": 0.5})
    probe.wait_step(30, H)
    killed.kill()
    begun = rows(probe, 0, 20)
    probe.clear()
    nodes.start("plant", given)
    probe.wait_step(100, H)
    assert len(rows(probe, 0, 100)) == 101 and tracker.process.poll() is None
    np.testing.assert_array_equal(rows(probe, 0, 20), begun)


# Time and states that are set --------------------------------------------------------------------
