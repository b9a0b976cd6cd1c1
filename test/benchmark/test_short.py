"""The short form of the benchmarks: it checks that they run, not their speed.

python -m pytest test/benchmark --short
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PEERS = (
    "airo_models",
    "diffrax",
    "distributed",
    "jax",
    "launch",
    "mjbatch",
    "mujoco",
    "pinocchio",
    "rclpy",
    "upkie_description",
)
"""What some need beyond the package: optional, skipped where it is missing."""
NO_SCRIPTS = (
    "attack",
    "conftest",
    "measured_speed",
    "performance_rows",
    "pinocchio_steps",
    "robots",
    "sizes",
)
ARGUMENTS = {
    "against_commit": ["HEAD"],
    "compare_payload_controllers": ["controllers.png"],
    "heavy_top_diffrax": [
        '{"inertia": [1, 1, 2], "weight": 1, "chi": [0, 0, 1], "q": [1, 0, 0, 0], "v": [0, 1, 2], '
        '"duration": 0.1, "tolerances": [1e-3, 1e-6]}'
    ],
    "monte_carlo_hover": ["--compare"],
    "real_time_nodes": ["--goals", "--controller", "mpc"],
    "restart": ["1"],
    "study_cluster": ["--no-kill"],
    "tree_robots": ["--precision"],
}
SCRIPTS = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("test_"))


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in NO_SCRIPTS])
def test_a_script_gives_its_table(name, tmp_path):
    run = subprocess.run(
        [sys.executable, str(HERE / f"{name}.py"), *ARGUMENTS.get(name, [])],
        cwd=tmp_path,
        env={**os.environ, "NH_CONTROL_SHORT": "1"},
        capture_output=True,
        text=True,
    )
    missing = re.search(r"^ModuleNotFoundError: No module named '(\w+)", run.stderr, re.M)
    if run.returncode and missing and missing[1] in PEERS:
        pytest.skip(f"needs {missing[1]}, which is not installed")
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"\d", run.stdout) and not re.search(r"\bnan\b", run.stdout), run.stdout
    assert "Traceback" not in run.stderr, run.stderr
