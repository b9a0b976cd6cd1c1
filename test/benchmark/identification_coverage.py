"""Identification from noisy runs, by the command alone: 50 seeds for the quadrotors' payload, the
snakeboard and an arm of a URDF along a joint trajectory of a file, and for tables of a cart-pole
at uneven times with all, or a part, of its coordinates and velocities; and how often the interval
of 95 % that the command tells holds the true value.

    python test/benchmark/identification_coverage.py [CASE ...]

Every seed is `nh_control simulate CASE --fault positions:noise=...,seed=N` with other plant
parameters, and `nh_control identify FOLDER --parameter ...`; a lock-step `nh_control run` leaves
the same measurements. Of a table it is `nh_control identify FILE.csv --scenario cart_pole`.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from sizes import sized

from nh_control import scenarios
from nh_control.cli import main as nh_control
from nh_control.control.input_history import predict

SEEDS = sized(50, 2)
NOISE = 1e-3
"""Standard deviation of all measured positions and angles in m and rad."""
CART_POLE = {"m_cart": 1.1, "m_pole": 0.33, "l": 0.48}
TABLES = (
    {"x": 5e-4, "theta": 2e-3},
    {"theta": 5e-4},
    {"x": 5e-4, "theta_dot": 1e-2},
)
"""Columns of tables with their noise in m, rad and rad/s."""
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
    the parameters that are identified; or the columns of a table with their noise.
    """

    arguments: list[str]
    true: dict[str, float]
    columns: dict[str, float] = field(default_factory=dict)


def cases(folder: Path) -> dict[str, Case]:
    """The cases by name; the arm only where its package is installed."""
    found = {
        "payload": Case(["quadrotor_payload", "--duration", "3"], {"payload_mass": 0.6}),
        "snakeboard": Case(["snakeboard", "--duration", "4"], {"m": 1.2, "I": 0.9, "J": 1.3}),
        **{
            f"table-{'-'.join(columns)}": Case(["cart_pole"], CART_POLE, columns)
            for columns in TABLES
        },
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


def write_table(case: Case, file: Path, seed: int) -> None:
    """Write a cart-pole's motion of 200 rows, 4 to 24 ms apart, as .csv."""
    rng, model = np.random.default_rng(seed), scenarios.get(case.arguments[0]).model()
    dsys = model.with_parameters(**case.true)
    space = dsys.system.space
    x, time_s = dsys.state([0.0, 0.4], [0.0, 0.0]), 0.0
    lines = [",".join(("time_s", *case.columns, *dsys.inputs))]
    for k in range(200):
        u, duration_s = np.array([6 * np.sin(0.31 * k)]), rng.uniform(0.004, 0.024)
        exact = dict(zip((*space.names, *space.velocity_names), (*x[:2], *dsys.velocity(x))))
        seen = [exact[name] + noise * rng.normal() for name, noise in case.columns.items()]
        lines.append(",".join(map(repr, map(float, (time_s, *seen, *u)))))
        x, time_s = predict(dsys, x, [(u, duration_s)]), time_s + duration_s
    file.write_text("\n".join(lines))


def estimates(case: Case, folder: Path, seed: int) -> np.ndarray:
    """Values and standard deviations (k, 2) of the parameters."""
    names = [part for name in case.true for part in ("--parameter", name)]
    if case.columns:
        folder.mkdir(exist_ok=True)
        table = folder / f"{seed}.csv"
        write_table(case, table, seed)
        quantities = [part for name in case.columns for part in ("--measured", name)]
        options = ["--scenario", *case.arguments, *quantities, *names]
        found = told("identify", str(table), *options)["parameters"]
        return np.array([(found[name]["value"], found[name]["deviation"]) for name in case.true])
    run = str(folder / f"run-{seed}")
    changed = [f"--plant-parameter={name}={value}" for name, value in case.true.items()]
    noise = ["--fault", f"positions:noise={NOISE},seed={seed}"]
    told("simulate", *case.arguments, *changed, *noise, "--no-plots", "--output", run)
    found = told("identify", run, *names)["parameters"]
    return np.array([(found[name]["value"], found[name]["deviation"]) for name in case.true])


def main() -> None:
    """Print the table."""
    print(
        f"{SEEDS} seeds, noise of {NOISE:g} m and rad, of tables in the benchmark\n"
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
