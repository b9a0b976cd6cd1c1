"""Plant and tracker in one process against two: steps per second in lock-step as fast as possible,
and latency from state to command in real time, one after the other; and how long until many robots
run, with processor time and that of the imports.

    python test/benchmark/composed_nodes.py [REPETITIONS [NODES]]
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stdout
from pathlib import Path

TEST = Path(__file__).parents[1]
sys.path[:0] = [str(TEST), str(TEST / "ros")]

from node_processes import Nodes, end_on_signals  # noqa: E402
from sizes import sized  # noqa: E402

from nh_control.runs.dds_domain import reserved_domain  # noqa: E402

STEP_S = 0.004
SHARED = {"scenario": "snakeboard", "step_s": STEP_S, "on_finish": "exit"}
RUN_S = sized(12.0, 0.4)
PAIRS = (("composed",), ("tracker", "plant"))
END_S = 120.0
IMPORTS = ("plant", "tracker", "display")


def last(log: str, pattern: str) -> float:
    """The last number of a log that the pattern finds."""
    return float(re.findall(pattern, log)[-1])


def rate(nodes: Nodes, names: tuple[str, ...]) -> float:
    """Steps per second in lock-step."""
    run = {**SHARED, "lockstep": True, "speed_factor": 0.0, "duration_s": RUN_S}
    started = [nodes.start(name, run) for name in names]
    started[-1].wait(END_S)
    for node in started[:-1]:
        node.end()
    return last(started[-1].log, r"([0-9.]+) steps/s")


def latency(nodes: Nodes, names: tuple[str, ...], probe: object) -> list[float]:
    """Latencies (us) in real time."""
    from std_msgs.msg import Float64

    heard = probe.listen(Float64, "command_latency")
    run = {**SHARED, "duration_s": sized(6.0, 2.0)}
    *others, plant = names
    started = [nodes.start(name, run) for name in others]
    started.append(nodes.start(plant, {**run, "wait_for": ["probe"]}))
    deadline = time.monotonic() + END_S
    while started[-1].process.poll() is None and time.monotonic() < deadline:
        probe.spin(0.1)
    for node in started[:-1]:
        node.end()
    return sorted(1e6 * message.data for message in heard[len(heard) // 10 :])


def imports() -> None:
    """Print the processor time of the imports of a node."""
    for name in IMPORTS:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        module = f"import nh_control.ros.nodes.{name}"
        subprocess.run([sys.executable, "-c", module], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        print(f"imports of {name}: {used:.2f} s of processor time")


def start_many(nodes: Nodes, probe: object, count: int) -> None:
    """Print how long it takes until `count` nodes, three for a robot, run."""
    from rosgraph_msgs.msg import Clock

    robots = max(1, count // len(IMPORTS))
    heard = [probe.listen(Clock, f"/r{i}/clock") for i in range(robots)]
    begun = time.monotonic()
    for i in range(robots):
        for name in IMPORTS:
            run = {"scenario": SHARED["scenario"], "on_finish": "continue"}
            nodes.start(name, run, "-r", f"__ns:=/r{i}")
    moves = lambda one: any(m.clock.nanosec or m.clock.sec for m in one)  # noqa: E731
    probe.wait(lambda: all(map(moves, heard)), "motion of all robots")
    took = time.monotonic() - begun
    print(f"{robots * len(IMPORTS)} nodes run after {took:.1f} s on {os.cpu_count()} cores")


def end(nodes: Nodes, probe: object) -> None:
    """End all nodes, without their logs."""
    probe.close()
    with redirect_stdout(None):
        nodes.end()


def main(repetitions: int = sized(3, 1), count: int = sized(15, 2)) -> None:
    """Measure both ways in turn."""
    from probe import Probe

    imports()
    for _ in range(repetitions):
        for names in PAIRS:
            with reserved_domain() as domain, tempfile.TemporaryDirectory() as folder:
                nodes, probe = Nodes(domain, Path(folder)), Probe(domain)
                try:
                    steps = rate(nodes, names)
                    delays = latency(nodes, names, probe)
                    p50, p99 = (delays[int(part * (len(delays) - 1))] for part in (0.5, 0.99))
                finally:
                    end(nodes, probe)
            print(
                f"{' + '.join(names)}: {steps:.0f} steps/s in lock-step; latency at "
                f"{1 / STEP_S:.0f} Hz median {p50:.0f} us, 99 % {p99:.0f} us"
            )
    with reserved_domain() as domain, tempfile.TemporaryDirectory() as folder:
        nodes, probe = Nodes(domain, Path(folder)), Probe(domain)
        try:
            start_many(nodes, probe, count)
        finally:
            end(nodes, probe)


if __name__ == "__main__":
    end_on_signals()
    main(*map(int, sys.argv[1:]))
