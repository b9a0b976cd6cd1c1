"""Plant and tracker of a robot without motors."""

import json

import numpy as np
import pytest
from urdf_robots import PASSIVE

from nh_control.cli import main


@pytest.mark.slow
def test_a_robot_without_motors_runs_as_nodes_from_a_pose(nodes, tmp_path, monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", nodes.environment["ROS_DOMAIN_ID"])
    (tmp_path / "passive.urdf").write_text(PASSIVE)
    given = "--urdf", str(tmp_path / "passive.urdf"), "--output", str(tmp_path / "run")
    how = "--reference", "free:hinge=1.0,duration=0.5", "--speed-factor", "0", "--lockstep"
    plain = "--no-plots", "--no-display"
    assert main(["run", "urdf", *given, *how, *plain]) == 0
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    states = np.load(tmp_path / "run" / "results.npz")["states"]
    assert states[0, 0] == 1.0 and abs(states[-1, 0] - 1.0) > 0.5
    assert summary["ros"]["difference_to_simulation"] == 0.0
