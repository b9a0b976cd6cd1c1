"""Time until a killed tracker answers again, while the plant controls the payload by its own copy
of the tracker.

Prints percentiles of the wall time from the start of a new tracker to its first command over DDS,
of this time less that for which the tracker waited for a core (as on an idle machine; Linux only),
and of its processor time. The trackers of other checkouts alternate with this one's, so
that all run on the same machine with the same plant. The first tracker of a checkout, which is not
counted, compiles the functions of the model and the bytecode of the modules.

    python test/benchmark/restart.py [RESTARTS [CHECKOUT...]]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np

TEST = Path(__file__).parents[1]
sys.path[:0] = [str(TEST), str(TEST / "ros")]

from node_processes import ROOT, NodeProcess, Nodes  # noqa: E402
from node_rates import processor_s  # noqa: E402
from probe import Probe  # noqa: E402

from nh_control.runs.dds_domain import reserved_domain  # noqa: E402

FLIGHT = {"scenario": "quadrotor_payload"}
H = 0.01
SETTLED_S = 0.5
"""How long a tracker flies before it is killed."""
DRAINED_S = 0.3
"""After which nothing more comes of a tracker that was killed."""


def waited_s(node: NodeProcess) -> float:
    """Return the time for which the main thread of a process could run, but had no core, in s."""
    return int(Path(f"/proc/{node.process.pid}/schedstat").read_text().split()[1]) * 1e-9


def first_command(nodes: Nodes, probe: Probe, checkout: str) -> tuple[NodeProcess, list[float]]:
    """Return a started tracker of a checkout's package, and until its first command the wall time,
    that without waits for a core, and the processor time (s).
    """
    nodes.environment["PYTHONPATH"] = checkout
    probe.commands.clear()
    began, tracker = time.perf_counter(), nodes.start("tracker", FLIGHT)
    probe.wait(lambda: probe.commands, "command")
    wall = time.perf_counter() - began
    return tracker, [wall, wall - waited_s(tracker), processor_s(tracker)]


def kill(tracker: NodeProcess) -> list[Path]:
    """Kill a tracker, and return the shared memory that it leaves behind. As after any SIGKILL the
    files stay: the new tracker takes them over, and without them discovery takes 1 s longer.
    """
    left = tracker.shared_memory()
    tracker.process.kill()
    tracker.process.wait()
    return left


def measured(nodes: Nodes, restarts: int, checkouts: list[str]) -> dict[str, list]:
    """Return the times of restarts by checkout."""
    probe, left = Probe(int(nodes.environment["ROS_DOMAIN_ID"])), []
    found: dict[str, list] = {checkout: [] for checkout in checkouts}
    try:
        given = {"fallback": "tracker", "wait_for": "[probe]", "on_finish": "continue"}
        nodes.start("plant", FLIGHT | given)
        probe.wait_bodies(0, H)
        for checkout in checkouts:  # starts the flight, and compiles what is not in the cache
            left += kill(first_command(nodes, probe, checkout)[0])
            probe.spin(DRAINED_S)
        for i in range(restarts * len(checkouts)):
            checkout = checkouts[i % len(checkouts)]
            tracker, times = first_command(nodes, probe, checkout)
            found[checkout].append(times)
            probe.spin(SETTLED_S)
            left += kill(tracker)
            probe.spin(DRAINED_S)
    finally:
        probe.close()
        for file in left:
            file.unlink(missing_ok=True)
    return found


def main() -> None:
    """Measure and print."""
    restarts = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    checkouts = [str(ROOT), *(str(Path(text).resolve()) for text in sys.argv[2:])]
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    with tempfile.TemporaryDirectory() as folder, reserved_domain() as domain:
        os.chdir(folder)  # else `python -m` takes the package from here
        nodes = Nodes(domain, Path(folder))
        if nodes.environment.pop("PYTHONDONTWRITEBYTECODE", None):
            nodes.environment.setdefault("PYTHONPYCACHEPREFIX", f"{folder}/bytecode")
        try:
            found = measured(nodes, restarts, checkouts)
        finally:
            with redirect_stdout(None):  # the nodes' logs
                nodes.end()
    print("| tracker of | first command after, p10 [s] | p50 | p90 ", end="")
    print("| less waits for a core, p10 [s] | p50 | p90 ", end="")
    print("| processor time, p10 [s] | p50 | p90 |\n|---|---|---|---|---|---|---|---|---|---|")
    for checkout, times in found.items():
        cells = np.percentile(times, (10, 50, 90), axis=0).T.ravel()
        name = Path(checkout).name if checkout != str(ROOT) else "this checkout"
        print(f"| {name} | {' | '.join(f'{cell:.2f}' for cell in cells)} |")


if __name__ == "__main__":
    main()
