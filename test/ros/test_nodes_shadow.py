"""The shadow node: beside a plant it expects everything, beside another plant or a robot it says
what it did not; and what such a recording tells.
"""

import json

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.cli import main

LOCKSTEP = {"lockstep": True, "speed_factor": 1.0, "duration_s": 3.0}


def residuals(messages):
    return np.array([message.position for message in messages])


@pytest.mark.slow
def test_a_model_expects_a_plant_like_it_and_notices_another(nodes, probe):
    from probe import time_ns
    from sensor_msgs.msg import JointState

    heard = probe.listen(JointState, "shadow/residual")
    shadow = nodes.start("shadow")
    other = ("-r", "__node:=heavy", "-r", "shadow/residual:=heavy/residual")
    heavy = nodes.start("shadow", {"plant.parameters.m": 1.1}, *other)
    probe.wait(lambda: "model:" in shadow.log and "model:" in heavy.log, "shadow")
    probe.wait_publishers("shadow/residual")
    nodes.start("tracker", {"heard_by": "[shadow, heavy]"})
    nodes.start("plant", {**LOCKSTEP, "wait_for": "[probe, shadow, heavy, tracker]"})
    probe.wait(lambda: heard and time_ns(heard[-1]) == 3 * 10**9, "last residual")
    names = scenarios.get("snakeboard").model().state_space.tangent_names
    assert [time_ns(m) for m in heard] == [k * 10**7 for k in range(1, 301)]
    assert tuple(heard[0].name) == names and np.abs(residuals(heard)).max() < 1e-12
    probe.wait(lambda: int(probe.values("shadow").get("residuals", 0)) > 100, "statistics")
    values = probe.values("shadow")
    assert all(float(values[f"max: {name}"]) < 1e-12 for name in names)
    probe.wait(lambda: int(probe.values("heavy").get("residuals", 0)) > 100, "statistics")
    assert max(float(probe.values("heavy")[f"max: {name}"]) for name in names) > 1e-4


@pytest.mark.slow
def test_a_robot_is_compared_and_its_recording_replayed_and_identified(
    nodes, probe, tmp_path, capsys
):
    from sensor_msgs.msg import JointState
    from test_nodes_hardware import HARDWARE, fly

    heard = probe.listen(JointState, "shadow/residual")
    bag = tmp_path / "bag"
    given = {"scenario": "cart_pole", "use_sim_time": True}
    recorder = nodes.start("recorder", {**HARDWARE, **given, "output": str(bag)})
    shadow = nodes.start("shadow", {**HARDWARE, **given})
    probe.wait(lambda: "recording" in recorder.log and "model:" in shadow.log, "recorder, shadow")
    probe.wait(lambda: probe.message("recorder") == "waiting for messages", "recorder's report")
    fly(nodes, probe, tmp_path, "cart_pole", "swing_up", 3.0)
    probe.wait(lambda: int(probe.values("shadow").get("residuals", 0)) > 250, "report")
    values = probe.values("shadow")
    print("shadow", {key: values[key] for key in values if key[:4] in ("mean", "std:", "max:")})
    probe.wait(lambda: len(heard) > 250, "residuals")
    # noise of 1 mm and 1 mrad, twice, and what 0.5 ms of the slow clock leave unknown; a few
    # commands come later to the shadow than to the robot, so mean and deviation promise nothing
    found = residuals(heard)
    print("medians", np.median(found, axis=0), np.median(np.abs(found), axis=0))
    assert np.median(np.abs(found), axis=0).max() < 0.005
    assert np.abs(np.median(found, axis=0)).max() < 0.002
    probe.wait(lambda: int(probe.values("recorder")["/joint_states"]) > 500, "recording")
    assert probe.message("recorder") == "recording"
    assert recorder.end() == 0

    common = [str(bag), "--scenario", "cart_pole", "--json"]
    assert main(["replay", *common, "--reference", "swing_up"]) == 0, capsys.readouterr().err
    again = json.loads(capsys.readouterr().out.splitlines()[-1])
    print("replay", again)
    # 0.05 where nothing is late, 0.7 where the recorder is by 30 ms, 4 with another start
    assert again["commands_compared"] > 200 and again["differences_rms"]["force"] < 2.0
    assert main(["identify", *common, "--parameter", "m_cart", "--parameter", "l"]) == 0
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    found = summary["parameters"]
    print("identify", summary)
    if summary["residual_rms"] < 3e-3:  # else the recorder fell behind: commands have wrong times
        assert abs(found["m_cart"]["value"] - 1.0) < 0.05
        assert abs(found["l"]["value"] - 0.5) < 0.02
