"""Forces of contacts in the recording of a run, beside those in its results."""

import json

import numpy as np
import pytest
from command import nh_control

pytest.importorskip("rclpy", reason="needs ROS: install the extra 'ros'")
pytest.importorskip("rosbags", reason="needs rosbags: install the extra 'ros'")
from recorded_messages import STORE  # noqa: E402
from rosbags.rosbag2 import Reader, StoragePlugin, Writer  # noqa: E402

from nh_control.runs import recording, run_folder  # noqa: E402

STEPS, MCAP = 50, StoragePlugin.MCAP


def recorded_forces(folder, name):
    """Forces (n, 3) of a contact in the order of their stamps, and the steps (n) before them."""
    with Reader(folder) as bag:
        ours = [one for one in bag.connections if one.topic == f"/contacts/{name}"]
        messages = [STORE.deserialize_cdr(data, c.msgtype) for c, _, data in bag.messages(ours)]
    stamps = [m.header.stamp.sec + 1e-9 * m.header.stamp.nanosec for m in messages]
    forces = [[getattr(m.wrench.force, axis) for axis in "xyz"] for m in messages]
    return np.array(forces), np.round(np.array(stamps) / 0.01).astype(int) - 1


def lose(source, target, part):
    """Copy a recording without a part of its states and forces, but for the first ones."""
    rng, seen = np.random.default_rng(0), {}
    with Reader(source) as bag, Writer(target, version=9, storage_plugin=MCAP) as lossy:
        connections = {
            one.id: lossy.add_connection(one.topic, one.msgtype, typestore=STORE)
            for one in bag.connections
        }
        for one, time, data in bag.messages():
            count = seen[one.topic] = seen.get(one.topic, 0) + 1
            sensed = one.topic in ("/joint_states", "/odom") or "contacts" in one.topic
            if count <= 2 or not sensed or rng.random() > part:
                lossy.write(connections[one.id], time, data)


@pytest.mark.slow
def test_a_recording_has_the_forces_of_all_steps_and_is_read_also_with_losses(tmp_path):
    lockstep = "--lockstep", "--speed-factor", "0", "--duration", "0.5"
    shown = "--no-plots", "--no-display", "--json"
    done = nh_control("run", "wet_snakeboard", *lockstep, *shown, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / json.loads(done.stdout)["output"]
    with np.load(folder / "results.npz") as results:
        computed = dict(zip(results["contact_names"], np.moveaxis(results["contact_force"], 1, 0)))
    assert set(computed) == {"rear_wheels", "front_wheels"}
    for name, forces in computed.items():
        recorded, steps = recorded_forces(folder / "recording", name)
        assert steps.tolist() == list(range(STEPS))
        np.testing.assert_allclose(recorded, forces, atol=1e-12)
    lose(folder / "recording", tmp_path / "lossy", 0.3)
    e = run_folder.load(folder).experiment
    read = recording.read(tmp_path / "lossy", e.scenario, e.model)
    assert read.missing > 10
    table = recording.result(read, e, 1.0).contacts
    for name, forces in zip(table.names, np.moveaxis(table.force, 1, 0)):
        assert np.abs(forces - computed[name][: len(forces)]).max() < 0.1  # N, of 1.7
        some, _ = recorded_forces(tmp_path / "lossy", name)
        assert STEPS / 2 < len(some) < STEPS
