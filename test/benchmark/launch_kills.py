"""Random kills of launches of the snakeboard: of the launch itself or one of its nodes, by SIGINT,
SIGTERM or SIGKILL, at any time after the start. Prints the signals and the remaining processes.

Needs `launch`, and a sourced workspace in which this package is installed.

    python test/benchmark/launch_kills.py [LAUNCHES]
"""

from __future__ import annotations

import random
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

TEST = Path(__file__).parents[1]
sys.path[:0] = [str(TEST), str(TEST / "ros")]

from dds_domains import reserved_domain  # noqa: E402
from sizes import sized  # noqa: E402
from test_launch_runs import Launch, installed, kill_at_random  # noqa: E402


def main() -> int:
    """Launch, kill and count; returns 1 if a process remained."""
    if not installed():
        raise ModuleNotFoundError("No module named 'launch', or this package is not sourced")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    count, rng = int(sys.argv[1]) if len(sys.argv) > 1 else sized(50, 1), random.Random()
    done: Counter[str] = Counter()
    failed = []
    for i in range(count):
        with tempfile.TemporaryDirectory() as folder, reserved_domain() as domain:
            run = Launch(domain, Path(folder), "rviz:=false", "shadow:=true")
            try:
                done[kill_at_random(run, rng)] += 1
            except Exception as failure:
                failed.append(f"launch {i}: {failure!r}; left: {run.left()}\n{run.text}")
    for what, times in sorted(done.items()):
        print(f"{times:3d} x {what}")
    print(f"{count} launches, {len(failed)} of which left processes or did not end")
    print("\n".join(failed))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
