"""An arm of a URDF that follows a joint trajectory from a file, and what it carries, identified.

python arm_with_payload.py [--nodes] [URDF]     the whole way, in one process or as nodes
nh_control simulate arm_with_payload.py         the trajectory of the package's arm, with figures
nh_control run arm_with_payload.py --plant-parameter lower_link_mass=1.5

With pip install airo-models, `python arm_with_payload.py --nodes .../ur5e.urdf` is a UR5e; a biped
such as Upkie (upkie-description) is held by its base in the same way.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np

import nh_control as nh
from nh_control import scenarios
from nh_control.control.joint_reference import through

URDF = str(files("nh_control") / "data/double_pendulum.urdf")
NODES = ("--lockstep", "--speed-factor", "0", "--no-display")
CARRIED, NOISE = 0.5, 5e-4
"""Mass in kg at the end of the arm, and noise of the measured joints in rad."""


def way(model: nh.DiscreteSystem) -> nh.JointTrajectory:
    """Points around the start, as fast as half the limits of speeds and efforts in the URDF."""
    lower, upper = ranges(model)
    start = np.clip(np.zeros(model.nu), lower, upper)
    moves = np.random.default_rng(1).uniform(-0.7, 0.7, (3, model.nu))
    points = np.clip(start + np.vstack([np.zeros(model.nu), moves]), lower, upper)
    return through(model, points, margin=0.5)


def ranges(model: nh.DiscreteSystem) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest positions of the joints."""
    limits = nh.control.joint_reference.joint_limits(model)
    return np.array([one.lower for one in limits]), np.array([one.upper for one in limits])


def pick(model: nh.DiscreteSystem) -> nh.Trajectory:
    """Through points around the start."""
    return nh.joint_reference(model, way(model))


ARM_WITH_PAYLOAD = replace(
    scenarios.from_urdf(URDF), name="arm_with_payload", references={"pick": pick}
)


def command(*arguments: str) -> dict:
    """The JSON that the command prints."""
    call = ["nh_control", *arguments, "--json"]
    return json.loads(subprocess.run(call, check=True, stdout=subprocess.PIPE).stdout)


def main() -> None:
    """Write the trajectory, run the arm with a payload that the tracker does not know, find it."""
    nodes, given = "--nodes" in sys.argv, [one for one in sys.argv[1:] if one != "--nodes"]
    urdf = given[0] if given else URDF
    scenario = scenarios.from_urdf(urdf)
    model = scenario.model()
    last = [name for name in model.parameter_names if name.endswith("_mass")][-1]
    own = getattr(scenario.parameters, last)
    with tempfile.TemporaryDirectory() as folder:
        file, run = str(Path(folder) / "pick.csv"), str(Path(folder) / "run")
        way(model).save(file)
        kind = ["run", *NODES] if nodes else ["simulate"]
        robot = ["urdf", "--urdf", urdf, "--reference", file, "--no-plots", "--output", run]
        payload = ["--plant-parameter", f"{last}={own + CARRIED}"]
        noise = ["--fault", f"positions:noise={NOISE},seed=1"]
        summary = command(kind[0], *robot, *kind[1:], *payload, *noise, "--perturb-angle", "0")
        print(f"{summary['title']}: {summary['steps']} steps{' as nodes' * nodes}")
        found = command("identify", run, "--parameter", last)["parameters"][last]
    carried, deviation, link = found["value"] - own, found["deviation"], last.removesuffix("_mass")
    print(f"payload of {link}: {carried:.4f} +- {deviation:.4f} kg, {CARRIED} kg are there")


if __name__ == "__main__":
    main()
