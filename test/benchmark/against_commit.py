"""Time per step and per linearization of this checkout against another commit's, in turns.

    python test/benchmark/against_commit.py COMMIT [--rounds 5]

The other commit is checked out into a temporary folder; its code and this one's run in processes
of their own, one after the other, round by round, so that both meet the same machine. Printed are
the smallest times of all rounds in us, and the median of the ratios round by round.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from sizes import sized

ROOT = Path(__file__).parents[2]
SIZES = sized(((4, 16, 32), 7, 2000, 300), ((4,), 1, 5, 5))
"""Links of the chains, batches, and calls of small and of large systems in a batch."""
MEASURE = """
import json, sys, time
import casadi as ca, numpy as np
from nh_control.integrators import midpoint, nonholonomic_midpoint, rdp
from nh_control.systems import quadrotor_payload, snakeboard
from nh_control.systems.marionette import initial_configuration, marionette
try:
    from nh_control.mechanics.system import System
    from nh_control.geometry.spaces import Rn
except ImportError:
    from nh_control.system import System
    from nh_control.spaces import Rn

def chain(n):
    def lagrangian(q, v):
        angle = omega = x = y = height = total = 0
        for i in range(n):
            angle, omega = angle + q[i], omega + v[i]
            x, y = x + omega * ca.cos(angle), y + omega * ca.sin(angle)
            height = height - ca.cos(angle)
            total += (x**2 + y**2) / 2 - 9.81 * height
        return total
    return System(f"chain_{n}", Rn(*(f"q{i}" for i in range(n))), lagrangian)

chains, batches, calls, calls_large = json.loads(sys.argv[1])

def smallest(f, n):
    best = 1e9
    for _ in range(batches):
        start = time.perf_counter()
        for _ in range(n):
            f()
        best = min(best, (time.perf_counter() - start) / n)
    return 1e6 * best

board, load = snakeboard(), quadrotor_payload()
turned = np.array([0.1, 0.4, 0.2, 0, 0])
cases = {
    "snakeboard": (nonholonomic_midpoint(board, 0.01), turned, np.ones(5)),
    "snakeboard rdp": (rdp(board, 0.01), turned, np.ones(5)),
    "payload": (midpoint(load, 0.01), load.space.origin, 0.2 * np.ones(load.space.nw)),
    "marionette": (midpoint(marionette(), 0.01, "left"), initial_configuration(), np.zeros(40)),
}
for n in chains:
    cases[f"chain {n}"] = midpoint(chain(n), 0.01), 0.1 * np.ones(n), np.ones(n)
times = {}
for name, (dsys, q, v) in cases.items():
    x = dsys.state(q, v)
    u = dsys.idle(x)
    dsys.linearize(x, u)
    few = calls if len(q) < 20 else calls_large
    times[name] = smallest(lambda: dsys.step(x, u), few)
    times[name + " with A, B"] = smallest(lambda: dsys.linearize(x, u), few)
print(json.dumps(times))
"""


def measure(folder: Path) -> dict[str, float]:
    """Times in us by the code in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, json.dumps(SIZES)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Measure in turns and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit")
    parser.add_argument("--rounds", type=int, default=sized(5, 1))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        other = Path(scratch) / "other"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(other), args.commit], check=True)
        try:
            rounds = [(measure(other), measure(ROOT)) for _ in range(args.rounds)]
        finally:
            subprocess.run([*git, "remove", "--force", str(other)], check=True)
    print(f"{'us':28} {args.commit[:10]:>12} {'here':>12} {'ratio':>8}")
    for name in rounds[0][0]:
        then, now = (min(r[k][name] for r in rounds) for k in range(2))
        ratio = sorted(r[1][name] / r[0][name] for r in rounds)[len(rounds) // 2]
        print(f"{name:28} {then:12.2f} {now:12.2f} {ratio:8.2f}")


if __name__ == "__main__":
    main()
