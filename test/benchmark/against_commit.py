"""Times of this checkout against another commit's, in turns: a step, with A and B, with second
derivatives, a step of a closed loop, and the first start of a process.

    pip install airo-models jvrc-description
    python test/benchmark/against_commit.py COMMIT [--rounds 5]

The other commit is checked out into a temporary folder; its code and this one's run in processes
of their own, one after the other, round by round, so that both meet the same machine
(`measured_speed.py`). Printed are the smallest processor times of all rounds in us, and the median
of the ratios round by round. Robots whose packages are not installed are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sizes import sized

ROOT = Path(__file__).parents[2]
MEASURE = Path(__file__).with_name("measured_speed.py")
SETTINGS = sized(
    {
        "links": [4, 32, 128],
        "batches": 9,
        "batch_s": 0.03,
        "without_hessian": ["marionette", "chain 32", "chain 128", "jvrc1"],
        "closed_loops": ["snakeboard", "quadrotor_payload"],
        "starts": ["snakeboard", "payload", "marionette"],
    },
    {
        "links": [4],
        "batches": 1,
        "batch_s": 0.0,
        "without_hessian": ["marionette", "ur5e", "jvrc1"],
        "closed_loops": ["snakeboard"],
        "starts": ["snakeboard"],
    },
)
"""Second derivatives of large systems are evaluated for seconds: `tree_hessians.py` times them."""


def build(folder: Path) -> None:
    """Build the native library of a checkout, or take this one's if that is the same. Commits
    before it was a part of the installation need none.
    """
    place = Path("nh_control", "numerics")
    if not (folder / place / "library.py").is_file():
        return
    for file in (ROOT / place).glob("*.so"):
        shutil.copy(file, folder / place)
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(command, cwd=folder, check=True)


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """A temporary checkout of a commit with its own native library."""
    with tempfile.TemporaryDirectory() as scratch:
        other = Path(scratch) / "other"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(other), commit], check=True)
        try:
            build(other)
            yield other
        finally:
            subprocess.run([*git, "remove", "--force", str(other)], check=True)


def measure(folder: Path) -> dict[str, float]:
    """Times in us by the code in a folder."""
    done = subprocess.run(
        [sys.executable, str(MEASURE), json.dumps(SETTINGS)],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        cwd=folder,
    )
    if done.returncode:
        raise SystemExit(f"{folder}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Measure alternately and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit")
    parser.add_argument("--rounds", type=int, default=sized(5, 1))
    args = parser.parse_args()
    with checkout(args.commit) as other:
        rounds = [(measure(other), measure(ROOT)) for _ in range(args.rounds)]
    print(f"{'us':28} {args.commit[:10]:>12} {'here':>12} {'ratio':>8}")
    for name in rounds[0][0]:
        then, now = (min(r[k][name] for r in rounds) for k in range(2))
        ratio = sorted(r[1][name] / r[0][name] for r in rounds)[len(rounds) // 2]
        print(f"{name:28} {then:12.2f} {now:12.2f} {ratio:8.3f}")


if __name__ == "__main__":
    main()
