"""Identification from noisy runs, by the command alone: 50 seeds for the quadrotors' payload, the
snakeboard and an arm of a URDF along a joint trajectory of a file, and how often the interval of
95 % that the command tells holds the true value.

    python test/benchmark/identification_coverage.py [CASE ...]

Every seed is `nh_control simulate CASE --fault positions:noise=...,seed=N` with other plant
parameters, and `nh_control identify FOLDER --parameter ...`; a lock-step `nh_control run` leaves
the same measurements.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sizes import sized

from nh_control.cli import main as nh_control

SEEDS = sized(50, 2)
NOISE = 1e-3
"""Standard deviation of all measured positions and angles in m and rad."""
WAY = """joint_names: [shoulder_pan_joint, shoulder_lift_joint, elbow_joint, wrist_1_joint,
  wrist_2_joint, wrist_3_joint]
points:
- {time_from_start: 0, positions: [0, -1.5, 1.0, 0, 0, 0]}
- {time_from_start: 1.0, positions: [0.5, -1.0, 1.4, 0.6, 0.6, 0.3]}
- {time_from_start: 2.0, positions: [-0.3, -1.6, 0.6, -0.5, -0.4, 1.0]}
"""


@dataclass(frozen=True)
class Case:
    """Arguments of the command that name scenario, reference and length, and the true values of
    the parameters that are identified.
    """

    arguments: list[str]
    true: dict[str, float]


def cases(folder: Path) -> dict[str, Case]:
    """The cases by name; the arm only where its package is installed."""
    found = {
        "payload": Case(["quadrotor_payload", "--duration", "3"], {"payload_mass": 0.6}),
        "snakeboard": Case(["snakeboard", "--duration", "4"], {"m": 1.2, "I": 0.9, "J": 1.3}),
    }
    try:
        import airo_models
    except ImportError:
        return found
    urdf = Path(airo_models.__file__).parent / "arms/ur5e/ur5e.urdf"
    way = folder / "way.yaml"
    way.write_text(WAY)
    arm = ["urdf", "--urdf", str(urdf), "--reference", str(way)]
    true = {
        "wrist_3_link_mass": 1.5,
        "elbow_joint_friction": 2.0,
        "shoulder_lift_joint_damping": 3.0,
    }
    return {**found, "ur5e": Case(arm, true)}


def told(*arguments: str) -> dict:
    """The JSON that the command prints; raises RuntimeError where it fails."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = nh_control([*arguments, "--json"])
    if status:
        raise RuntimeError(f"nh_control {' '.join(arguments)}: {errors.getvalue()}")
    return json.loads(out.getvalue())


def estimates(case: Case, folder: Path, seed: int) -> np.ndarray:
    """Values and standard deviations (k, 2) of the parameters."""
    run = str(folder / f"run-{seed}")
    changed = [f"--plant-parameter={name}={value}" for name, value in case.true.items()]
    noise = ["--fault", f"positions:noise={NOISE},seed={seed}"]
    told("simulate", *case.arguments, *changed, *noise, "--no-plots", "--output", run)
    names = [part for name in case.true for part in ("--parameter", name)]
    found = told("identify", run, *names)["parameters"]
    return np.array([(found[name]["value"], found[name]["deviation"]) for name in case.true])


def main() -> None:
    """Print the table."""
    print(
        f"{SEEDS} seeds, noise of {NOISE:g} m and rad\n"
        f"{'parameter':42} {'true':>6} {'mean':>8} {'spread':>8} {'told':>8}  within 1.96 told"
    )
    with tempfile.TemporaryDirectory() as place:
        known = cases(Path(place))
        for label in sys.argv[1:] or known:
            case, folder = known[label], Path(place) / label
            found = np.array([estimates(case, folder, seed) for seed in range(SEEDS)])
            for i, (name, true) in enumerate(case.true.items()):
                values, deviations = found[:, i].T
                within = np.sum(np.abs(values - true) <= 1.96 * deviations)
                print(
                    f"{label + ' ' + name:42} {true:6g} {values.mean():8.4f} "
                    f"{values.std(ddof=1):8.2g} {deviations.mean():8.2g}  {within} of {SEEDS}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
