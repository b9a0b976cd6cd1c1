"""How nodes start, end and come back: refusals, signals, recordings, the death of a tracker."""

import signal
import subprocess
import sys

import pytest

HOVER = {"scenario": "quadrotor_payload", "reference": "hover"}
LOCKSTEP = {"lockstep": True, "speed_factor": 0.0}

REFUSED = [
    (
        "plant",
        {"spede_factor": 1.0},
        ["unknown parameter 'spede_factor'", "did you mean 'speed_factor'", "perturb.<field>"],
    ),
    (
        "plant",
        {"plant.parameters.mass": 1.0},
        ["unknown parameter 'plant.parameters.mass'", "plant.parameters.m,", "plant.parameters.J"],
    ),
    (
        "plant",
        {"plant.parameters.m": float("nan")},
        ["'plant.parameters.m' must be a finite number", "nan"],
    ),
    ("plant", {"plant.parameters.m": 0.1}, ["m l^2 = 0.4", "must exceed"]),
    (
        "plant",
        {**HOVER, "plant.parameters.thrust_limit": 5.0},
        ["2 thrusts of at most 5 N cannot hold the weight of 18.74 N"],
    ),
    (
        "plant",
        {**HOVER, "plant.parameters.lengths": "[0.6]"},
        ["'plant.parameters.lengths' must be a list of 2 finite numbers > 0, got [0.6] m"],
    ),
    (
        "plant",
        {"disturb": "['payload:gust:1,0,0']"},
        ["unknown target of a disturbance 'payload'", "psi, phi, theta, forward, side, base_link"],
    ),
    (
        "plant",
        {"disturb": "['base_link:gust:1,0,duration=-1']"},
        ["Gust.duration must be a finite number >= 0, got -1.0 s"],
    ),
    (
        "plant",
        {"perturb.swing": 0.1},
        ["unknown parameter 'perturb.swing'", "perturb.position, perturb.heading"],
    ),
    ("plant", {"perturb.seed": -2}, ["'perturb.seed' must be an integer >= -1"]),
    (
        "plant",
        {"plant.integrator": "euler"},
        ["unknown snakeboard integrator 'euler'", "midpoint", "rdp_exp"],
    ),
    (
        "plant",
        {"fallback": "panic"},
        ["'fallback' must be one of hold, zero, damp, tracker, stop"],
    ),
    ("plant", {"speed_factor": -1.0}, ["'speed_factor' must be a finite number >= 0, got -1.0"]),
    (
        "plant",
        {"reference": "turning", "duration_s": 1000.0},
        ["reference 'turning' ends in motion after", "a run may last that long, not 1000 s"],
    ),
    ("plant", {"lockstep": 3}, ["'lockstep' must be true or false, got 3"]),
    ("plant", {"wait_for": "[]"}, ["leave parameters without a value (null, an empty list) out"]),
    ("tracker", {"scenario": "unicycle"}, ["unknown scenario 'unicycle'", "snakeboard"]),
    ("display", {"scenario": "no_such.py:ROBOT"}, ["no such file", "no_such.py"]),
    ("recorder", {"scenario": __file__ + ":HOVER"}, ["line 9:", "must be a nh_control Scenario"]),
    (
        "tracker",
        {"reference": "backflip"},
        ["unknown snakeboard reference 'backflip'", "parking", "forward", "turning"],
    ),
    ("tracker", {"step_s": -0.01}, ["'step_s' must be a finite number >= 0"]),
    ("display", {"rate": 3.0}, ["unknown parameter 'rate'", "rate_hz"]),
    ("recorder", {"topics": '["/odom"]'}, ["'/odom' is not of the form name:package/msg/Type"]),
    ("recorder", {"topics": '["/odom:nav_msgs/msg/Odo"]'}, ["no message type nav_msgs/msg/Odo"]),
]


@pytest.mark.slow
def test_refusals_say_what_is_valid(nodes):
    # a node that is discovered while it ends may be kept by Fast DDS (its issue 6513)
    nodes.environment["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "OFF"
    batch = 4  # at a time
    for begin in range(0, len(REFUSED), batch):
        started = [
            (nodes.start(name, given), given, texts)
            for name, given, texts in REFUSED[begin : begin + batch]
        ]
        for node, given, texts in started:
            assert node.wait() == 2, (given, node.log)
            for text in texts:
                assert text in node.log, (given, node.log)
            assert "Traceback" not in node.log


@pytest.mark.slow
def test_all_nodes_accept_a_parameter_file_for_all_of_them(nodes, probe, tmp_path):
    file = tmp_path / "all.yaml"
    file.write_text(
        "/**:\n  ros__parameters:\n    scenario: snakeboard\n    reference: forward\n    "
        "speed_factor: 0\n    lockstep: true\n    duration_s: 0.5\n"
        "    integral: true\n    rate_hz: 10\n    plant: {substeps: 2, parameters: {m: 1.05}}\n  "
        "  perturb: {position: 0.1, seed: 7}\n"
        f"    output: {tmp_path / 'bag'}\n    wait_for: [recorder, display, probe]\n"
    )
    started = [
        nodes.start(name, None, "--params-file", str(file))
        for name in ("recorder", "tracker", "display", "plant")
    ]
    probe.wait_mode("finished")
    assert [node.end() for node in started] == [0, 0, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_two_signals_end_all_nodes_well_and_the_recording_is_readable(
    nodes, probe, tmp_path, number
):
    from rosbags.highlevel import AnyReader

    bag = tmp_path / "bag"
    started = [
        nodes.start("recorder", {"output": str(bag), "use_sim_time": True}),
        nodes.start("tracker", {"heard_by": "[recorder]"}),
        nodes.start("display"),
        nodes.start("plant", {**LOCKSTEP, "speed_factor": 5.0, "wait_for": "[recorder, display]"}),
    ]
    least = {"/joint_states": 101, "/odom": 101, "/joint_commands": 101}
    least |= {"/reference": 1, "/markers": 2, "/diagnostics": 1}

    def recorded():
        counts = probe.values("recorder")
        return all(int(counts.get(topic, 0)) >= count for topic, count in least.items())

    probe.wait(recorded, "messages in the recording")
    for _ in range(2):
        for node in started:
            node.process.send_signal(number)
    assert [node.wait() for node in started] == [0, 0, 0, 0], [node.log for node in started]
    assert not any("Traceback" in node.log for node in started)
    with AnyReader([bag]) as reader:
        counts = {connection.topic: connection.msgcount for connection in reader.connections}
        stamps = [time_ns for _, time_ns, _ in reader.messages()]
    assert all(counts[topic] >= count for topic, count in least.items())
    assert counts["/reference"] == 1
    assert max(stamps) < 20 * 10**9  # simulation time
    again = nodes.start("recorder", {"output": str(bag)})
    assert again.wait() == 2 and "exists already" in again.log and "'output'" in again.log


def test_a_signal_during_the_construction_of_a_node_ends_it():
    code = (
        "import sys, time\nfrom nh_control.ros.runtime import process\n"
        "def make(*_):\n    print('making', flush=True)\n    time.sleep(60)\n"
        "sys.exit(process.run('slow', make, []))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as slow:
        assert slow.stdout.readline() == "making\n"
        slow.send_signal(signal.SIGINT)
        assert slow.wait(60) == 0
        assert "Traceback" not in slow.stderr.read()


def test_a_signal_during_the_activation_of_a_node_stops_its_work_before_the_end():
    code = (
        "import os, signal, sys\nfrom nh_control.ros.runtime import process\n"
        "class Early:\n    def __init__(self, _, inbox, __): self.inbox = inbox\n"
        "    def work(self):\n        os.kill(os.getpid(), signal.SIGINT)\n"
        "        self.inbox.run()\n        print('worked', flush=True)\n"
        "    def close(self): print('closed', flush=True)\n"
        "sys.exit(process.run('early', Early, []))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.split() == ["worked", "closed"], done.stderr


def test_an_error_in_a_thread_ends_the_process_with_a_traceback():
    code = (
        "import sys\nfrom nh_control.ros.runtime import process\n"
        "class Broken:\n    def __init__(self, *_): pass\n    def work(self): raise "
        "RuntimeError('broken work')\n    def close(self): pass\n"
        "sys.exit(process.run('broken', Broken, []))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1 and "RuntimeError: broken work" in done.stderr


@pytest.mark.parametrize("refused", [False, True])
def test_a_node_that_cannot_leave_the_network_ends_nevertheless(refused):
    """A call that keeps the interpreter in destroy_node lets no thread or signal end it; a node
    that refuses its parameters leaves the network, too.
    """
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
def test_plant_finishes_and_exits_when_asked(nodes):
    tracker = nodes.start("tracker")
    plant = nodes.start("plant", {**LOCKSTEP, "duration_s": 0.5, "on_finish": "exit"})
    assert plant.wait() == 0
    assert "finished at step 50" in plant.log and "steps/s" in plant.log
    assert tracker.end() == 0


@pytest.mark.slow
def test_a_display_that_comes_after_the_end_shows_the_last_state_to_all_who_look(nodes, probe):
    from probe import Probe, time_ns
    from sensor_msgs.msg import JointState
    from visualization_msgs.msg import MarkerArray

    tracker, plant = nodes.start("tracker"), nodes.start("plant", {**LOCKSTEP, "duration_s": 0.5})
    probe.wait_mode("finished")
    targets = probe.listen(JointState, "reference/joint_states")
    assert time_ns(probe.wait(lambda: targets, "target, told again")[-1]) == 500_000_000
    assert tracker.end() == 0
    nodes.start("display")
    markers = probe.listen(MarkerArray, "markers")
    probe.wait(lambda: markers, "markers")
    known = markers[-1]
    assert plant.end() == 0
    assert (known.markers[0].header.stamp.sec, known.markers[0].header.stamp.nanosec) == (
        0,
        500_000_000,
    )
    late = Probe(probe.node.context.get_domain_id())
    try:
        seen = late.listen(MarkerArray, "markers")
        assert late.wait(lambda: seen, "markers")[-1] == known
    finally:
        late.close()


@pytest.mark.slow
@pytest.mark.usefixtures("udp")
def test_a_tracker_that_dies_in_lockstep_is_awaited_and_its_successor_goes_on(nodes, probe):
    from probe import states

    from nh_control import scenarios

    h = scenarios.get("snakeboard").step_s
    first = nodes.start("tracker")
    plant = nodes.start(
        "plant",
        {
            **LOCKSTEP,
            "speed_factor": 0.5,  # it is far from its end when the tracker is killed
            "duration_s": 3.0,
            "perturb.position": 0.1,
            "wait_for": "[probe]",
        },
    )
    probe.wait_step(30, h)
    first.kill()
    awaited = "for the command that answers"
    # not the report of the start, when the tracker had not been found yet
    probe.wait(lambda: awaited in probe.message() and int(probe.values()["step"]) > 0, "warning")
    assert probe.diagnostics["plant"].level == b"\1"
    stopped_at = probe.values()["step"]
    assert (
        probe.call("pause", True).success and probe.call("pause", False).success
    )  # it stays responsive
    nodes.start("tracker")
    probe.wait_step(300, h)
    interrupted = states(probe, h)
    assert 0 < int(stopped_at) < 300 == len(interrupted) - 1

    probe.reset()
    probe.wait_step(300, h)
    assert (interrupted == states(probe, h)).all()  # the interruption has changed nothing
    assert plant.end() == 0


@pytest.mark.slow
def test_a_node_that_is_waited_for_is_named(nodes, probe):
    nodes.start("plant", {"wait_for": "[probe, nobody]", "wait_for_tracker": False})
    probe.wait(
        lambda: "nobody to subscribe to /joint_states (parameter 'wait_for')" in probe.message(),
        "warning",
    )
    assert probe.values()["step"] == "0" and probe.diagnostics["plant"].level == b"\1"


@pytest.mark.slow
def test_ctrl_c_while_waiting_for_a_tracker(nodes, probe):
    plant = nodes.start("plant", LOCKSTEP)
    probe.next_state()
    assert plant.end() == 0


@pytest.mark.slow
def test_a_publisher_that_cannot_be_heard_is_named(nodes, probe):
    from rclpy.qos import qos_profile_sensor_data
    from sensor_msgs.msg import JointState

    probe.node.create_publisher(JointState, "joint_states", qos_profile_sensor_data)
    tracker = nodes.start("tracker")
    probe.wait(
        lambda: "/joint_states of probe (" in probe.message("tracker"), "warning in diagnostics"
    )
    assert "quality of service is incompatible" in probe.message("tracker")
    assert probe.diagnostics["tracker"].level == b"\1"
    probe.wait(lambda: "is not heard" in tracker.log, "warning in the log")


@pytest.mark.slow
def test_a_recording_has_reports_however_short_the_run(nodes, probe, tmp_path):
    from rosbags.highlevel import AnyReader

    bag = tmp_path / "bag"
    given = {**LOCKSTEP, "duration_s": 0.02, "on_finish": "exit", "wait_for": "[recorder]"}
    recorder, _ = nodes.start("recorder", {"output": str(bag)}), nodes.start("tracker")
    assert nodes.start("plant", given).wait(120) == 0
    assert recorder.end() == 0
    with AnyReader([bag]) as reader:
        counts = {connection.topic: connection.msgcount for connection in reader.connections}
    assert counts["/diagnostics"] >= 2
