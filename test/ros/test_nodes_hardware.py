"""The tracker on hardware: emulated robots with a clock, physics and sensors of their own, drawn
anew in every run.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nh_control import scenarios

EMULATOR = Path(__file__).with_name("hardware_emulator.py")
SLOW = 4.0
"""How much slower than wall time the robots' clock runs, for machines that are slow or busy."""
BUSY = 15.0
"""By how much a busy machine may make a run longer."""
CASES = [
    ("snakeboard", "parking_optimal", 6.0, 0.05),
    ("quadrotor_payload", "figure_of_eight", 6.0, 0.10),
    ("cart_pole", "swing_up", 6.0, 0.02),
]
"""Robots with their references, seconds, and the error (m) that is allowed; the cart's is over the
last second.
"""
HARDWARE = {"source": "hardware", "use_sim_time": True}


def initial(name, dsys, x):
    """The emulator's state of a state of the model."""
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


def fly(nodes, probe, tmp_path, name, reference, seconds, **parameters):
    """Run the emulated robot under the tracker; returns times, states and the reference's, in the
    emulator's form."""
    from std_srvs.srv import SetBool

    scenario = scenarios.get(name)
    dsys = scenario.model()
    motion = scenario.reference(dsys, reference)
    file = tmp_path / "robot.npy"
    np.save(file, initial(name, dsys, motion.states[0]))
    seed = np.random.SeedSequence().entropy % 2**32
    print(f"seed {seed}")
    given = {**HARDWARE, "scenario": name, "reference": reference, **parameters}
    tracker = nodes.start("tracker", given)
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
        ended = lambda: robot.poll() is not None or "disarmed:" in tracker.log  # noqa: E731
        probe.wait(ended, "end", BUSY * SLOW * seconds)
        assert "disarmed:" not in tracker.log
    finally:
        robot.kill()
    assert robot.returncode == 0 and tracker.process.poll() is None, tracker.log
    log = np.load(file)
    print("tracker", probe.values("tracker"))
    steps = np.minimum(np.round(log[:, 0] / dsys.h).astype(int), len(motion))
    wanted = np.array([initial(name, dsys, motion.states[k]) for k in steps])
    return log[:, 0], log[:, 1:], wanted


@pytest.mark.slow
@pytest.mark.parametrize(("name", "reference", "seconds", "allowed"), CASES)
def test_robots_with_clocks_delays_and_noise_of_their_own_are_tracked(
    nodes, probe, tmp_path, name, reference, seconds, allowed
):
    t, rows, wanted = fly(nodes, probe, tmp_path, name, reference, seconds)
    (at, turn), (there, turned) = place(name, rows), place(name, wanted)
    error = np.linalg.norm(at - there, axis=1)
    settled = error[-100:] if name == "cart_pole" else error
    print(f"largest error {error.max():.4f} m, over the last second {error[-100:].max():.4f} m")
    print("allowed until", t[np.argmax(error > allowed)])
    assert settled.max() < allowed
    assert np.abs(turn - turned)[-100:].max() < 0.1


@pytest.mark.slow
def test_a_tracker_that_is_armed_and_hears_nothing_disarms_and_cannot_be_armed(nodes, probe):
    from std_srvs.srv import SetBool

    given = {"scenario": "pendulum_swing_up", "disarm.silence_s": 0.3, "hardware.armed": True}
    tracker = nodes.start("tracker", {"source": "hardware", **given})
    text = "disarmed: no state that can be used for"
    probe.wait(lambda: probe.message("tracker").startswith(text), "disarming")
    assert probe.values("tracker")["armed"] == "False" and text in tracker.log
    arm = probe.node.create_client(SetBool, "/tracker/arm")
    probe.wait(arm.service_is_ready, "tracker")
    refused = probe.ask(arm, SetBool.Request(data=True))
    assert not refused.success
    assert refused.message.startswith("not armed: no state that can be used in the last 0.3 s")
