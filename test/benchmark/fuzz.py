"""Malformed messages and requests, as values and as bytes, at every topic and service of all five
nodes in separate processes, with goals and parameters; and the memory of the nodes.

Prints the messages sent to and refused by each node, and the growth of its resident memory. The
exit code is 1 if a node ends, reports an error of its own, or grows by more than ALLOWED from the
window after the warm-up to the last one, by the medians of their samples. The warm-up also sends
messages of up to 20 MB: the middleware keeps memory that it once allocated, for each topic and
service and as often as it queues.

    python test/benchmark/fuzz.py [COUNT [MINUTES]]
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np

TEST = Path(__file__).parents[1]
sys.path[:0] = [str(TEST), str(TEST / "ros"), str(TEST / "benchmark")]

from attack import Attack  # noqa: E402
from fuzzing import Fuzzer  # noqa: E402
from node_processes import NodeProcess, Nodes, end_on_signals  # noqa: E402
from probe import ASK_AGAIN_S, Probe  # noqa: E402
from sizes import sized  # noqa: E402
from soak import resident_mb  # noqa: E402
from test_fuzz import Right  # noqa: E402

from nh_control.runs.dds_domain import reserved_domain  # noqa: E402

COUNT, MINUTES, SEED = *sized((200_000, 20.0), (300, 2.0)), 2026
SAMPLES, WARM_UP = sized(50, 5), 0.4
"""Samples of the memory, and the share of them before it counts."""
WINDOW = 0.1
"""Share of the samples in a window: one sample alone may be of an extraordinary moment."""
ALLOWED = sized(16.0, np.inf)
"""MB between the two windows; a short run has none but the warm-up."""
FEW = 3
"""Items of long lists after the warm-up."""
FLIGHT = {"scenario": "quadrotor_payload", "reference": "hover"}
PLANT = {"wait_for_tracker": False, "duration_s": 1e5, "on_finish": "stay", "fallback": "hold"}
"""A step that fails, because the payload has fallen too far, does not end the plant."""
NODES = ("plant", "tracker", "display", "recorder", "shadow")
PAUSE_S = 0.02


def attack(attacks: list[Attack], started: list[NodeProcess], probe: Probe, count: int) -> list:
    """Send this number of messages to all nodes, as long as all of them run; returns rows of
    memory in MB.
    """
    rows, thrown, begun = [], 0, time.monotonic()
    limit_s = 60 * (float(sys.argv[2]) if len(sys.argv) > 2 else MINUTES)
    while thrown < count and time.monotonic() < begun + limit_s:
        thrown += sum(one.throw() for one in attacks)
        probe.spin(PAUSE_S)
        for one in attacks:
            one.forget()
            if thrown > WARM_UP * count:
                one.fuzzer.many = FEW
        if any(node.process.poll() is not None for node in started):
            break
        if thrown >= len(rows) * count / SAMPLES:
            rows.append([resident_mb(node) for node in started])
    return rows


def growth(rows: np.ndarray) -> np.ndarray:
    """Return the growth of each node in MB between the two windows of the samples (N, nodes)."""
    first, size = int(WARM_UP * len(rows)), max(1, int(WINDOW * len(rows)))
    return np.median(rows[-size:], axis=0) - np.median(rows[first : first + size], axis=0)


def main() -> int:
    """Attack and print."""
    end_on_signals()
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, reserved_domain() as domain:
        nodes, probe = Nodes(domain, Path(folder)), Probe(domain)
        try:
            given = {"plant": PLANT, "recorder": {"output": f"{folder}/recording"}}
            started = [nodes.start(name, {**FLIGHT, **given.get(name, {})}) for name in NODES]
            right = Right(FLIGHT["scenario"])
            messages = {**right.states(3), **right.command(30_000_000), **right.goals(3)}
            attacks = [
                Attack(probe, Fuzzer(SEED + i), name, messages) for i, name in enumerate(NODES)
            ]
            rows = np.array(attack(attacks, started, probe, count))
            died = [node for node in started if node.process.poll() is not None]
            if not died:
                # a plant that runs as fast as possible floods the probe
                probe.call("pause", True, ASK_AGAIN_S)
                for one in attacks:
                    one.answers()
            probe.spin(2.5)  # the next report of each
        finally:
            probe.close()
            with redirect_stdout(None):  # the nodes' logs
                nodes.end()
        ended = died or [node for node in started if node.process.returncode != 0]
        for node in ended:
            print(f"{node.name} ended with exit code {node.process.returncode}:")
            print(node.log[-3000:])
    grown = growth(rows)
    total = sum(one.thrown.total() for one in attacks)
    print(f"{total} malformed messages and requests in {time.monotonic() - begun:.0f} s")
    print("| node | thrown | malformed | refused | callback errors | exit code | MB after the "
          "start | half | end | grown after the warm-up |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|")
    mistakes = 0
    for i, (one, node) in enumerate(zip(attacks, started)):
        values = probe.values(one.name)
        mistakes += int(values.get("callback_errors", 0))
        refused = sum(
            int(value)
            for key, value in values.items()
            if key.endswith(("refused", "rejected")) and value.isdecimal()
        )
        cells = [one.thrown.total(), values.get("malformed"), refused]
        cells += [values.get("callback_errors"), node.process.returncode]
        memory = [rows[1, i], rows[len(rows) // 2, i], rows[-1, i], grown[i]]
        print(f"| {one.name} | {' | '.join(map(str, cells))} | "
              f"{' | '.join(f'{mb:.1f}' for mb in memory)} |")  # fmt: skip
    return int(bool(ended or mistakes or (grown > ALLOWED).any() or total < count))


if __name__ == "__main__":
    sys.exit(main())
