"""The ways from a robot or a system to results, as scripts that people run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from own_scenarios import FILES
from urdf_robots import robot_file

ROOT = Path(__file__).parents[2]


def printed(name, *arguments):
    """The numbers in the output of an example."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    call = [sys.executable, str(FILES[name]), *arguments]
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(call, capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr
    return [float(text) for text in re.findall(r"-?\d+\.?\d*(?:e[-+]\d+)?", run.stdout)]


@pytest.mark.slow
def test_the_furuta_pendulum_swings_up_within_its_limits_also_by_a_filter():
    torque, turn, before, after, noise, filtered = printed("furuta_pendulum")
    assert torque <= 0.2 + 1e-9 and turn <= 2.0
    assert before == 0.1 and after < 1e-3
    assert noise == 0.001 and filtered < 5e-3


@pytest.mark.slow
def test_the_truck_parks_in_reverse_and_its_trailers_fold_without_feedback():
    *_, exact, place, angle, free_place, free_angle = printed("truck_with_trailers")
    assert exact < 1e-8
    assert place < 0.1 and angle < 0.05
    assert free_angle > 1.0 and free_place > 5 * place


@pytest.mark.slow
def test_the_payload_of_an_arm_is_found_by_the_command():
    steps, carried, deviation, there = printed("arm_with_payload")
    assert steps > 100 and there == 0.5
    assert abs(carried - there) < 4 * deviation < 0.01


@pytest.mark.slow
def test_a_biped_is_held_by_its_base_and_its_payload_is_found():
    *_, carried, deviation, there = printed("arm_with_payload", str(robot_file("upkie")))
    assert there == 0.5 and abs(carried - there) < 4 * deviation < 0.05
