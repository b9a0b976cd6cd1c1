"""Random kills of launches of the snakeboard: of the launch itself or one of its nodes, by SIGINT,
SIGTERM or SIGKILL, at any time after the start. Prints the signals and the remaining processes.

Needs `launch`, and a sourced workspace in which this package is installed.

    python test/benchmark/launch_kills.py [LAUNCHES]
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

TEST = Path(__file__).parents[1]
sys.path[:0] = [str(TEST), str(TEST / "ros")]

from dds_domains import reserved_domain  # noqa: E402
from sizes import sized  # noqa: E402
from test_launch_runs import Launch, installed  # noqa: E402

NODES = ("plant", "tracker", "display", "shadow")
KILLED_WITHIN_S = 8.0
"""Of the start of what is killed, before all nodes run, or after."""


def kill_at_random(run: Launch, rng: random.Random) -> str:
    """Send a random signal to the launch or one of its nodes at a random time, then end what goes
    on without it; returns what was done.
    """
    assert run.left()  # the launch itself is seen
    name = rng.choice(["launch", *NODES])
    number = rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
    if name != "launch":
        run.wait_for(f"[{name}-")
    time.sleep(rng.uniform(0.0, KILLED_WITHIN_S))
    told = f"{signal.Signals(number).name} to the {name}"
    try:
        os.kill(run.process.pid if name == "launch" else run.node(name), number)
        time.sleep(rng.uniform(0.0, 3.0))
        run.process.send_signal(signal.SIGINT)
    except ProcessLookupError:
        told += ", which had ended"
    run.wait()
    return told


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
