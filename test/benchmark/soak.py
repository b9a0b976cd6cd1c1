"""Memory of plant and tracker over a long run: one simulated hour in lock-step, as fast as
possible, of a cart pole that swings up and balances in colored wind.

Samples the resident memory of both processes and prints it with its slope after the warm-up. The
exit code is 1 if it grows by 1 MB per simulated hour or more.

    python test/benchmark/soak.py [SIMULATED SECONDS]
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np

TEST = Path(__file__).parents[1]
sys.path[:0] = [str(TEST), str(TEST / "ros")]

from node_processes import NodeProcess, Nodes, end_on_signals  # noqa: E402
from sizes import sized  # noqa: E402

from nh_control.runs.dds_domain import reserved_domain  # noqa: E402

SIMULATED_S, SAMPLE_S = sized((3600.0, 1.0), (10.0, 0.02))
WARM_UP = 0.5
"""Share of the run before memory counts: Python takes it by the MiB, at first now and then."""
ALLOWED = sized(1.0, np.inf)
"""MB in a simulated hour; a short run is over before memory settles."""
SCENARIO = {"scenario": "cart_pole"}
PLANT = {"lockstep": True, "speed_factor": 0.0, "on_finish": "exit", "disturb": "['x:noise:0.5']"}


def resident_mb(node: NodeProcess) -> float:
    """Return the resident memory of a process in MB."""
    status = Path(f"/proc/{node.process.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else float("nan")


def samples(nodes: list[NodeProcess], ends: NodeProcess) -> np.ndarray:
    """Return rows of wall time in s and memory of every node in MB, until one of them ends."""
    rows, begun = [], time.monotonic()
    while ends.process.poll() is None:
        now = [resident_mb(node) for node in nodes]
        if np.isfinite(now).all():  # one that is ending has none
            rows.append([time.monotonic() - begun, *now])
        time.sleep(SAMPLE_S)
    return np.array(rows)


def main() -> int:
    """Run and print."""
    end_on_signals()
    simulated_s = float(sys.argv[1]) if len(sys.argv) > 1 else SIMULATED_S
    with tempfile.TemporaryDirectory() as folder, reserved_domain() as domain:
        nodes = Nodes(domain, Path(folder))
        try:
            tracker = nodes.start("tracker", SCENARIO)
            plant = nodes.start("plant", {**SCENARIO, **PLANT, "duration_s": simulated_s})
            rows = samples([plant, tracker], plant)
            assert plant.process.returncode == 0 and tracker.process.poll() is None, plant.log
            told = re.findall(r"finished at step (\d+)", plant.log)
        finally:
            with redirect_stdout(None):  # the nodes' logs
                nodes.end()
    wall_s = rows[-1, 0]
    late = rows[rows[:, 0] > WARM_UP * wall_s]
    hours = late[:, 0] / wall_s * simulated_s / 3600
    slopes = np.polyfit(hours, late[:, 1:], 1)[0]
    print(f"{told[0]} steps in {wall_s:.0f} s, {len(rows)} samples, load {os.getloadavg()[0]:.1f}")
    print("| node | MB after 20 % | 40 % | 60 % | 80 % | at the end | slope [MB/h simulated] |")
    print("|---|---|---|---|---|---|---|")
    at = np.linspace(0.2, 1.0, 5) * (len(rows) - 1)
    for i, name in enumerate(("plant", "tracker")):
        cells = [*rows[at.astype(int), 1 + i], slopes[i]]
        print(f"| {name} | {' | '.join(f'{cell:.2f}' for cell in cells)} |")
    return int(bool((slopes >= ALLOWED).any()))


if __name__ == "__main__":
    sys.exit(main())
