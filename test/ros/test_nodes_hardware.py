"""Tracker, recorder, shadow and display over DDS on emulated hardware."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool

from nh_control import scenarios
from nh_control.cli import main
from nh_control.command import new_scenario

EMULATOR = Path(__file__).with_name("hardware_emulator.py")
SLOW = 4.0
"""How much slower than wall time the robots' clock runs, for machines that are slow or busy."""
BUSY = 15.0
"""By how much a busy machine may make a run longer."""
HARDWARE = {"source": "hardware", "use_sim_time": True}


def initial(name, dsys, x):
    scenario = scenarios.get(name)
    q, v = dsys.configuration(x), dsys.velocity(x)
    if name == "cart_pole":
        return np.concatenate([q, v])
    if name == "snakeboard":
        c, s = np.cos(q[2]), np.sin(q[2])
        return np.concatenate([q, v[:3], [c * v[3] - s * v[4], s * v[3] + c * v[4]]])
    bodies = scenario.to_bodies(scenario.parameters, q, v)
    return np.concatenate(
        [
            *(body.position for body in bodies),
            *(body.quaternion_wxyz for body in bodies[1:]),
            *(body.linear_velocity for body in bodies),
            *(body.angular_velocity_body for body in bodies[1:]),
        ]
    )


def place(name, rows):
    """What is to be where: the board's or the payload's position, the cart and the pole's end."""
    if name == "cart_pole":
        return rows[:, :1] + 0.0, rows[:, 1:2]
    return (rows[:, 3:5] if name == "snakeboard" else rows[:, :3]), np.zeros((len(rows), 1))


def fly(nodes, probe, tmp_path, name, reference, seconds):
    """Errors (m, and of the angle) of an emulated robot under the tracker at all times."""
    scenario = scenarios.get(name)
    dsys = scenario.model()
    motion = scenario.reference(dsys, reference)
    file = tmp_path / "robot.npy"
    np.save(file, initial(name, dsys, motion.states[0]))
    seed = np.random.SeedSequence().entropy % 2**32
    print(f"seed {seed}")
    tracker = nodes.start("tracker", {**HARDWARE, "scenario": name, "reference": reference})
    arm = probe.node.create_client(SetBool, "/tracker/arm")
    probe.wait(arm.service_is_ready, "tracker")
    robot = subprocess.Popen(
        [sys.executable, EMULATOR, name, file, str(seed), str(seconds), str(dsys.h), str(SLOW)],
        env=nodes.environment,
    )
    try:
        probe.wait(lambda: probe.values("tracker").get("state_age_ms"), "states")
        assert probe.message("tracker") == "disarmed: not armed yet" and not probe.commands
        probe.ask(arm, SetBool.Request(data=True))
        ended = lambda: robot.poll() is not None or "disarmed:" in tracker.log
        probe.wait(ended, "end", BUSY * SLOW * seconds)
        assert "disarmed:" not in tracker.log
    finally:
        robot.kill()
    assert robot.returncode == 0 and tracker.process.poll() is None, tracker.log
    log = np.load(file)
    print("tracker", probe.values("tracker"))
    steps = np.minimum(np.round(log[:, 0] / dsys.h).astype(int), len(motion))
    wanted = np.array([initial(name, dsys, motion.states[k]) for k in steps])
    (at, turn), (there, turned) = place(name, log[:, 1:]), place(name, wanted)
    return np.linalg.norm(at - there, axis=1), np.abs(turn - turned)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "reference", "allowed"),
    [("snakeboard", "parking_optimal", 0.05), ("quadrotor_payload", "figure_of_eight", 0.10)],
)
def test_robots_with_clocks_delays_and_noise_of_their_own_are_tracked(
    nodes, probe, tmp_path, name, reference, allowed
):
    error, _ = fly(nodes, probe, tmp_path, name, reference, 4.0)
    print(f"largest error {error.max():.4f} m")
    assert error.max() < allowed


@pytest.mark.slow
def test_a_robot_swings_up_and_is_compared_and_its_recording_replayed_and_identified(
    nodes, probe, tmp_path, capsys
):
    heard = probe.listen(JointState, "shadow/residual")
    bag = tmp_path / "bag"
    given = {**HARDWARE, "scenario": "cart_pole"}
    recorder = nodes.start("recorder", {**given, "output": str(bag)})
    shadow = nodes.start("shadow", given)
    probe.wait(lambda: "recording" in recorder.log and "model:" in shadow.log, "recorder, shadow")
    probe.wait(lambda: probe.message("recorder") == "waiting for messages", "recorder's report")
    error, turn = fly(nodes, probe, tmp_path, "cart_pole", "swing_up", 6.0)
    print("over the last second", error[-100:].max(), turn[-100:].max())
    assert error[-100:].max() < 0.02 and turn[-100:].max() < 0.1
    probe.wait(lambda: int(probe.values("shadow").get("residuals", 0)) > 250, "report")
    probe.wait(lambda: len(heard) > 250, "residuals")
    # noise of 1 mm and 1 mrad, twice, and what 0.5 ms of the slow clock leave unknown; a few
    # commands come later to the shadow than to the robot, so mean and deviation promise nothing
    found = np.array([message.position for message in heard])
    print("medians", np.median(found, axis=0), np.median(np.abs(found), axis=0))
    assert np.median(np.abs(found), axis=0).max() < 0.005
    assert np.abs(np.median(found, axis=0)).max() < 0.002
    probe.wait(lambda: int(probe.values("recorder")["/joint_states"]) > 500, "recording")
    assert probe.message("recorder") == "recording"
    assert recorder.end() == 0

    def told(command, *options):
        given = [command, str(bag), "--scenario", "cart_pole", "--json", *options]
        assert main(given) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out.splitlines()[-1])

    again = told("replay", "--reference", "swing_up")
    print("replay", again)
    # 0.05 where nothing is late, 0.7 where the recorder is by 30 ms, 4 with another start
    assert again["commands_compared"] > 200 and again["differences_rms"]["force"] < 2.0
    summary = told("identify", "--parameter", "m_cart", "--parameter", "l")
    print("identify", summary)
    if summary["residual_rms"] < 3e-3:  # else the recorder fell behind: commands have wrong times
        found = summary["parameters"]
        assert abs(found["m_cart"]["value"] - 1.0) < 0.05
        assert abs(found["l"]["value"] - 0.5) < 0.02


def test_a_robot_that_measures_positions_alone_is_armed_and_held_and_silence_disarms(
    nodes, probe, tmp_path
):
    """By the joint_state_broadcaster: the arm without velocity and effort, a gripper without
    anything. Before it is armed, an arm that does not fall may be implausible to the tracker; of
    every kind of refusal the first is logged.
    """
    file = new_scenario.write("arm", tmp_path)
    given = {"scenario": str(file), "hardware.compensate_delay": False, "disarm.silence_s": 1.0}
    tracker = nodes.start("tracker", {"source": "hardware", **given})
    states = probe.heard_publisher(JointState, "joint_states")
    arm = probe.node.create_client(SetBool, "/tracker/arm")
    nan, sent, answers, due = float("nan"), 0, 0, 0.0
    early = probe.ask(arm, SetBool.Request(data=True))
    assert not early.success and "not armed: no usable state" in early.message

    def send():
        """Publish the next state where the last one has its answer, or none after 50 ms. States
        that come faster than they are read are lost, and time jumps for the tracker.
        """
        nonlocal sent, answers, due
        if len(probe.commands) == answers and time.monotonic() < due:
            return
        answers, due = len(probe.commands), time.monotonic() + 0.05
        message = JointState(name=["gripper", "shoulder"])
        seconds, centiseconds = divmod(sent, 100)
        message.header.stamp.sec, message.header.stamp.nanosec = seconds, centiseconds * 10**7
        message.position, message.velocity = [nan, np.pi / 2], [nan, nan]
        message.effort = [nan, nan]
        states.publish(message)
        sent += 1

    def sending(condition):
        return lambda: send() or condition()

    probe.wait(sending(lambda: probe.values("tracker").get("state_age_ms")), "states")
    armed = arm.call_async(SetBool.Request(data=True))
    probe.wait(sending(armed.done), "answer")
    assert armed.result().success, armed.result().message
    torque = 9.81 * 0.5  # that holds the arm at 90 degrees, once the estimate has settled
    holds = lambda: probe.commands and abs(probe.commands[-1].effort[0] - torque) < 0.01
    probe.wait(sending(holds), "torque")
    refused = [line for line in tracker.log.splitlines() if "state refused" in line]
    assert all("implausible" in line for line in refused), tracker.log
    text = "disarmed: no usable state for"
    probe.wait(lambda: probe.message("tracker").startswith(text), "disarming")
    assert text in tracker.log and probe.values("tracker")["armed"] == "False"
