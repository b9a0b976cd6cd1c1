"""Time and state of a simulation under control, of plant and tracker in processes of their own:
steps, resets, saved states.
"""

import json

import numpy as np
import pytest

from nh_control import scenarios

SCENARIO = scenarios.get("snakeboard")
H = SCENARIO.step_s
LOCKSTEP = {"lockstep": True, "speed_factor": 0.0, "wait_for": "[probe]"}


def rows(probe, first, last):
    """Joint positions, velocities and place at steps first to last, as last heard."""
    from probe import by_step

    joints, bodies = by_step(probe.joint_states, H), by_step(probe.odometry, H)
    found = []
    for k in range(first, last + 1):
        p, v = bodies[k].pose.pose.position, bodies[k].twist.twist
        found.append([*joints[k].position, *joints[k].velocity, p.x, p.y, v.linear.x, v.angular.z])
    return np.array(found)


def started(nodes, probe, steps=300, **given):
    """Tracker and plant of a run in lock-step."""
    tracker = nodes.start("tracker")
    return tracker, nodes.start("plant", {**LOCKSTEP, "duration_s": steps * H, **given})


def stepped(probe):
    """The answer to a request for steps, as soon as the command for the first is there."""

    def asked():
        answer = probe.call("step")
        return answer if answer.success else None

    return probe.wait(asked, "steps")


@pytest.mark.slow
def test_a_reset_of_the_state_alone_starts_plant_and_tracker_again_at_the_next_step(nodes, probe):
    from probe import time_ns

    started(nodes, probe, steps=100, **{"perturb.position": 0.1})
    probe.wait_step(100, H)
    probe.wait_mode("finished")
    first = rows(probe, 0, 100)
    assert probe.call("reset_state").success
    probe.wait_step(201, H)
    assert np.array_equal(first, rows(probe, 101, 201))
    assert np.diff([time_ns(message) for message in probe.clock]).min() >= 0

    probe.reset()  # of time, too
    probe.wait_step(100, H)
    assert np.array_equal(first, rows(probe, 0, 100))


@pytest.mark.slow
@pytest.mark.usefixtures("udp")
def test_a_tracker_that_comes_after_a_reset_of_the_state_knows_when_the_reference_started(
    nodes, probe
):
    first_tracker, _ = started(
        nodes, probe, steps=200, speed_factor=2.0, **{"perturb.position": 0.1}
    )
    probe.wait_step(200, H)
    probe.wait_mode("finished")
    first = rows(probe, 0, 200)
    assert probe.call("reset_state").success
    probe.wait_step(240, H)
    first_tracker.kill()
    nodes.start("tracker")
    probe.wait_step(401, H)
    assert np.array_equal(first, rows(probe, 201, 401))


@pytest.mark.slow
def test_steps_saved_states_and_files_of_ones_own(nodes, probe, tmp_path):
    from probe import time_ns
    from rosbags.highlevel import AnyReader
    from visualization_msgs.msg import MarkerArray

    file, bag, markers = (
        tmp_path / "state.json",
        tmp_path / "bag",
        probe.listen(MarkerArray, "markers"),
    )
    given = {"state_file": str(file), "step_count": 40, "speed_factor": 1.0}
    display = nodes.start("display", {"rate_hz": 200.0})
    recorder = nodes.start("recorder", {"output": str(bag), "use_sim_time": True})
    tracker, plant = started(
        nodes, probe, steps=400, **given, wait_for="[probe, display, recorder]"
    )
    probe.wait_step(20, H)
    probe.wait(lambda: markers, "picture")
    assert probe.call("pause", True).success
    at = int(probe.wait(lambda: probe.values().get("step"), "step"))
    probe.wait(lambda: probe.values().get("mode") == "paused", "pause")
    at = int(probe.values()["step"])
    assert probe.call("save_state").success
    answer = stepped(probe)
    assert answer.message == f"paused at step {at + 40}"
    probe.wait_step(at + 40, H)
    first = rows(probe, at, at + 40)

    probe.clear()
    assert probe.call("load_state").message == f"paused at step {at}"  # time jumps back
    stepped(probe)
    probe.wait_step(at + 40, H)
    assert np.array_equal(first, rows(probe, at, at + 40))

    content = json.loads(file.read_text())
    content.pop("state")
    content["configuration"]["x"] += 0.25
    file.write_text(json.dumps(content))
    probe.clear()
    assert probe.call("load_state").success
    stepped(probe)
    probe.wait_step(at + 40, H)
    other = rows(probe, at, at + 40)
    assert abs(other[0, 6] - first[0, 6] - 0.25) < 1e-12
    assert np.abs(other[-1, :3] - first[-1, :3]).max() > 1e-3  # the tracker saw it

    file.write_text("{}")
    refused = probe.call("load_state")
    assert not refused.success and "state.json: expected 'configuration'" in refused.message

    probe.reset()
    shown = lambda: markers and time_ns(markers[-1].markers[0])  # noqa: E731
    probe.wait(lambda: shown() == 0, "picture of the start")
    assert probe.call("pause", False).success
    probe.wait(lambda: shown() and shown() > 10**9, "picture of the run")
    ends = [node.end() for node in (plant, tracker, display, recorder)]
    assert ends == [0, 0, 0, 0]
    with AnyReader([bag]) as reader:
        stamps = [
            time_ns(reader.deserialize(data, one.msgtype))
            for one, _, data in reader.messages(
                [one for one in reader.connections if one.topic == "/joint_states"]
            )
        ]
    assert stamps.count(0) > 1 and max(stamps) > 10**9
