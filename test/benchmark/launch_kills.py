"""Random kills of launches.

1. Of a launch of the snakeboard itself or one of its nodes, by SIGINT, SIGTERM or SIGKILL, at any
   time after the start. Prints the signals and the remaining processes.
2. Of random members of running launches of several scenarios, by SIGKILL, within a flight that
   begins anew for each. Prints the largest tracking error until some seconds after the member is
   back, by the tracker's diagnostics, and what the tracker says then. With a CHECKOUT, its package
   and launch files are used.

Needs `launch`, and a sourced workspace in which this package is installed.

    python test/benchmark/launch_kills.py [LAUNCHES [KILLS [CHECKOUT]]]
"""

from __future__ import annotations

import math
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

TEST = Path(__file__).parents[1]
sys.path[:0] = [str(TEST), str(TEST / "ros")]

import test_launch_runs  # noqa: E402
from probe import Probe  # noqa: E402
from sizes import sized  # noqa: E402
from test_launch_runs import Launch, installed  # noqa: E402

from nh_control.runs.dds_domain import reserved_domain  # noqa: E402

NODES = ("plant", "tracker", "display", "shadow")
KILLED_WITHIN_S = 8.0
"""Of the start of what is killed, before all nodes run, or after."""

FLIGHTS = {"quadrotor_payload": 4.0, "snakeboard": 6.0, "cart_pole": 2.5}
"""Scenarios, and the simulated time (s) within which a member is killed."""
MEMBERS = ("tracker", "display", "view")
BACK_S, OBSERVED_S = 90.0, 4.0
"""How long a member's return is awaited, and the time of observation then, in s."""


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


@dataclass(frozen=True)
class Kill:
    """A kill of a member at a simulated time: how long it was away (s, infinite for ever), the
    largest tracking error (m, rad) from then on, and what the tracker said at the end.
    """

    member: str
    time_s: float
    away_s: float
    error: float
    said: str


class Flight:
    """A running launch, and a probe that hears it."""

    def __init__(self, name: str, domain: int, folder: Path):
        given = ("rviz:=false", "view:=true", "on_finish:=continue", f"scenario:={name}")
        self._run = Launch(domain, folder, *given, name="scenario")
        self._probe, self._largest = Probe(domain), 0.0

    def close(self) -> None:
        self._probe.close()
        self._run.process.send_signal(signal.SIGINT)
        self._run.wait()

    def kill(self, member: str, time_s: float) -> Kill:
        """Begin the flight anew, kill a member at a simulated time, and observe."""
        run, probe, node = self._run, self._probe, f"[{member}-"
        probe.wait(lambda: probe.values("tracker") and probe.values(), "reports of the nodes")
        assert probe.call("reset", again_s=5.0).success
        seconds = lambda: float(probe.values()["time_s"])  # noqa: E731
        probe.wait(lambda: seconds() < time_s, "reset")
        probe.wait(lambda: seconds() >= time_s, "flight")
        started = run.text.count("process started with pid")
        at, began, self._largest = seconds(), time.monotonic(), 0.0
        os.kill(run.node(member), signal.SIGKILL)
        away_s = math.inf
        probe.diagnostics.pop(member, None)
        while time.monotonic() < began + BACK_S and math.isinf(away_s):
            self._observe(0.1)
            is_back = run.text.count("process started with pid") > started
            if is_back and "waiting for" not in probe.message(member) and probe.values(member):
                away_s = time.monotonic() - began
        self._observe(OBSERVED_S)
        status = probe.diagnostics["tracker"]
        level = ("OK", "WARN", "ERROR")[min(2, int.from_bytes(status.level, "little"))]
        assert node in run.text
        return Kill(member, at, away_s, self._largest, f"{level}: {status.message[:150]}")

    def _observe(self, seconds: float) -> None:
        """Spin, and take the largest error that the tracker reports."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._probe.spin(0.1)
            values = self._probe.values("tracker")
            error = values.get("error_largest", values.get("error_norm", "0"))
            self._largest = max(self._largest, float(error))


def kill_members(kills: int, rng: random.Random) -> None:
    """Kill members of launches in flight, and print a table."""
    print("| scenario | killed | at [s] | away [s] | largest error [m, rad] | the tracker then |")
    print("|---|---|---|---|---|---|", flush=True)
    for name, within_s in FLIGHTS.items():
        with tempfile.TemporaryDirectory() as folder, reserved_domain() as domain:
            flight = Flight(name, domain, Path(folder))
            try:
                for i in range(-(-kills // len(FLIGHTS))):
                    # every other one is the tracker
                    member = "tracker" if i % 2 == 0 else rng.choice(MEMBERS)
                    k = flight.kill(member, rng.uniform(0.3, 1.0) * within_s)
                    numbers = f"{k.time_s:.2f} | {k.away_s:.1f} | {k.error:.4g}"
                    print(f"| {name} | {k.member} | {numbers} | {k.said} |", flush=True)
            finally:
                flight.close()


def main() -> int:
    """Launch, kill and count; returns 1 if a process remained."""
    if not installed():
        raise ModuleNotFoundError("No module named 'launch', or this package is not sourced")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    count, rng = int(sys.argv[1]) if len(sys.argv) > 1 else sized(50, 1), random.Random()
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else sized(30, len(FLIGHTS))
    if len(sys.argv) > 3:
        test_launch_runs.ROOT = checkout = Path(sys.argv[3]).resolve()
        os.environ["PYTHONPATH"] = f"{checkout}:{os.environ.get('PYTHONPATH', '')}"
    # over shared memory, Fast DDS in rare cases does not notice that a node was killed
    os.environ["FASTDDS_BUILTIN_TRANSPORTS"] = "UDPv4"
    failed_to_end = kill_launches(count, rng)
    kill_members(kills, rng)
    return failed_to_end


def kill_launches(count: int, rng: random.Random) -> int:
    """Kill launches or their nodes at random; returns 1 if a process remained."""
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
