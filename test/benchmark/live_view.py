"""What a live page gets, and what it costs: frames and their delay, the view's processor time and
memory, and whether the plant notices it.

One run alternates between a plant and tracker in real time at 100 Hz with and without a view, and
then the same in lock-step as fast as possible. The view has two browsers (processes that read its
stream as a page does); the second one pulls a body and is killed in the middle of it. The delay of
a frame is the time from the arrival of its state at a subscriber beside the view, in the process
of the first browser, to the arrival of the frame.

    python test/benchmark/live_view.py [REPETITIONS]
    python test/benchmark/live_view.py --soak MINUTES
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import redirect_stdout, suppress
from pathlib import Path

import numpy as np

TEST = Path(__file__).parents[1]
sys.path[:0] = [str(TEST), str(TEST / "ros")]

from node_processes import NodeProcess, Nodes, end_on_signals  # noqa: E402
from sizes import sized  # noqa: E402

from nh_control import scenarios  # noqa: E402
from nh_control.ros.messages import conversions  # noqa: E402
from nh_control.runs import topics  # noqa: E402
from nh_control.runs.dds_domain import reserved_domain  # noqa: E402

PAYLOAD = {"quadrotor_payload": "figure_of_eight"}
NAMES = sized({"snakeboard": "parking", **PAYLOAD}, PAYLOAD)
STEP_S = 0.01
RUN_S, LOCKSTEP_S = sized((10.0, 14.0), (2.0, 2.0))
"""Wall time in real time, and simulated time in lock-step."""
START_S, END_S, PULL_S = sized(2.0, 1.0), 300.0, 0.05
TICKS = os.sysconf("SC_CLK_TCK")
ADDRESS = re.compile(r"http://\S+\?token=\S+")


# --- browsers, in processes of their own ---------------------------------------------------------


async def look(address: str, frames: list[tuple[float, float]], pulled: str) -> None:
    """Read the stream; pull a body if one is named."""
    import aiohttp

    origin = address.partition("/?")[0]
    jar = aiohttp.CookieJar(unsafe=True)  # cookies of a host without a name
    async with aiohttp.ClientSession(cookie_jar=jar, headers={"Origin": origin}) as session:
        await (await session.get(address)).text()

        async def pull() -> None:
            asked = json.dumps({"name": "pull", "target": pulled, "force": [0.5, 0.2, 0.0]})
            while pulled:
                async with session.post(f"{origin}/requests", data=asked) as answer:
                    await answer.read()
                await asyncio.sleep(PULL_S)

        pulling = asyncio.ensure_future(pull())
        async with session.ws_connect(f"{origin}/states") as stream:
            async for message in stream:
                frame = json.loads(message.data).get("frame")
                if frame is not None:
                    frames.append((frame["time"], time.monotonic()))
        pulling.cancel()


def states(name: str, heard: dict[int, float]) -> None:
    """Keep when the states arrive, by their stamps in ns."""
    import importlib

    import rclpy

    topic, kind = next(iter(topics.states(scenarios.get(name)).items()))
    package, _, message = kind.split("/")
    rclpy.init()
    node = rclpy.create_node("beside")
    node.create_subscription(
        getattr(importlib.import_module(f"{package}.msg"), message),
        topic,
        lambda m: heard.setdefault(conversions.nanoseconds(m.header.stamp), time.monotonic()),
        10,
    )
    rclpy.spin(node)


def browse(name: str, address: str, pulled: str) -> None:
    """Be a browser until the stream ends; print frames per second and delays in ms."""
    frames: list[tuple[float, float]] = []
    heard: dict[int, float] = {}
    if not pulled:
        threading.Thread(target=states, args=(name, heard), daemon=True).start()
    with suppress(OSError):  # the view has ended
        asyncio.run(look(address, frames, pulled))
    delays = [
        1e3 * (at - heard[stamp])
        for seconds, at in frames
        if (stamp := round(seconds / STEP_S) * round(STEP_S * 1e9)) in heard
    ]
    moving = np.array([at for seconds, at in frames if seconds > 0])  # the start is waited for
    rate = (len(moving) - 1) / (moving[-1] - moving[0])
    print(json.dumps([rate, *np.percentile(delays, (50, 95))]), flush=True)
    os._exit(0)  # the other thread spins


def browser(nodes: Nodes, name: str, address: str, pulled: str = "") -> subprocess.Popen:
    """Start one."""
    command = [sys.executable, __file__, "--browser", name, address, pulled]
    return subprocess.Popen(
        command, env=nodes.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


# --- measurements --------------------------------------------------------------------------------


def until(node: NodeProcess, pattern: str | re.Pattern) -> str:
    """Wait for a text in a node's log."""
    deadline = time.monotonic() + END_S
    while not (found := re.search(pattern, node.log)):
        assert time.monotonic() < deadline and node.process.poll() is None, node.log
        time.sleep(0.05)
    return found[0]


def processor_s(node: NodeProcess) -> float:
    """Processor time of a process in s."""
    fields = Path(f"/proc/{node.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_mb(node: NodeProcess) -> float:
    """Resident memory of a process."""
    status = Path(f"/proc/{node.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def real_time(nodes: Nodes, name: str, seen: bool) -> dict[str, float]:
    """One run in real time."""
    given = {"scenario": name, "step_s": STEP_S, "reference": NAMES[name]}
    targets = topics.pulled(scenarios.get(name))[:1]
    duration = {"duration_s": RUN_S + 2 * START_S, "on_finish": "exit"}
    view = nodes.start("view", given) if seen else None
    found: dict[str, float] = {}
    if view is not None:
        address = until(view, ADDRESS)
        first = browser(nodes, name, address)
    tracker = nodes.start("tracker", given)
    until(tracker, r"\[tracker\]: model")
    waits = {"wait_for": ["view"]} if seen else {}
    plant = nodes.start("plant", given | duration | waits | {"wrench.targets": targets})
    until(plant, r"\[plant\]: plant:")
    time.sleep(START_S)
    if view is not None:
        second = browser(nodes, name, address, targets[0])
        before, begun, size = processor_s(view), time.monotonic(), memory_mb(view)
        time.sleep(RUN_S / 2)
        second.send_signal(signal.SIGKILL)
        second.wait()
        time.sleep(max(0.0, RUN_S / 2 - START_S))
        spent, share = time.monotonic() - begun, processor_s(view) - before
        found = {"core": 100 * share / spent, "grown": memory_mb(view) - size}
    plant.wait(END_S)
    if view is not None:
        assert view.end() == 0, view.log
        out, errors = first.communicate(timeout=END_S)
        assert out, errors
        found |= dict(zip(("rate", "delay", "delay95"), json.loads(out)))
    tracker.end()
    text = r"missed steps (\d+); jitter mean (\d+) us, 99 % (\d+) us"
    missed, _, jitter = re.search(text, plant.log).groups()
    return found | {"missed": float(missed), "jitter99": float(jitter)}


def lockstep(nodes: Nodes, name: str, seen: bool) -> float:
    """Steps per second as fast as possible."""
    given = {"scenario": name, "step_s": STEP_S, "reference": NAMES[name]}
    view, first = nodes.start("view", given) if seen else None, None
    if view is not None:
        first = browser(nodes, name, until(view, ADDRESS))
    tracker = nodes.start("tracker", given)
    until(tracker, r"\[tracker\]: model")
    fast = {"lockstep": True, "speed_factor": 0.0, "duration_s": LOCKSTEP_S, "on_finish": "exit"}
    plant = nodes.start("plant", given | fast | ({"wait_for": ["view"]} if seen else {}))
    plant.wait(END_S)
    for node in (tracker, view):
        if node is not None:
            node.end()
    if first is not None:
        first.communicate(timeout=END_S)
    return float(re.search(r"([\d.]+) steps/s", plant.log)[1])


def compare(nodes: Nodes, repetitions: int) -> None:
    """Measure in turns and print the tables."""
    print("| scenario | frames/s | delay p50 [ms] | p95 | of a core [%] | grown [MB] ", end="")
    print("| missed, with / without | jitter 99 % [us] | lock-step [1/s] |\n" + "|---" * 9 + "|")
    for name in NAMES:
        runs: dict[bool, list[dict[str, float]]] = {True: [], False: []}
        rates: dict[bool, list[float]] = {True: [], False: []}
        for k in range(repetitions):
            for seen in (True, False) if k % 2 else (False, True):
                runs[seen].append(real_time(nodes, name, seen))
                rates[seen].append(lockstep(nodes, name, seen))

        def median(key: str, seen: bool = True) -> float:
            return float(np.median([run[key] for run in runs[seen]]))  # noqa: B023

        missed = [sum(int(run["missed"]) for run in runs[seen]) for seen in (True, False)]
        steps = round(repetitions * (RUN_S + 2 * START_S) / STEP_S)
        text = f"{missed[0]} / {missed[1]} of {steps}"
        jitter = [f"{median('jitter99', seen):.0f}" for seen in (True, False)]
        fast = [f"{np.median(rates[seen]):.0f}" for seen in (True, False)]
        print(
            f"| {name} | {median('rate'):.1f} | {median('delay'):.1f} | {median('delay95'):.1f} "
            f"| {median('core'):.1f} | {median('grown'):.1f} | {text} "
            f"| {' / '.join(jitter)} | {' / '.join(fast)} |",
            flush=True,
        )


def soak(nodes: Nodes, minutes: float) -> None:
    """Print the view's memory while a plant runs and a browser looks on."""
    name = "quadrotor_payload"
    given = {"scenario": name, "step_s": STEP_S, "reference": "hover"}
    view = nodes.start("view", given)
    first = browser(nodes, name, until(view, ADDRESS))
    nodes.start("tracker", given)
    nodes.start("plant", given | {"on_finish": "continue", "wait_for": ["view"]})
    sizes = []
    for _ in range(round(minutes * 2)):
        time.sleep(30.0)
        assert view.process.poll() is None and first.poll() is None, view.log
        sizes.append(memory_mb(view))
    half = len(sizes) // 2
    slope = np.polyfit(np.arange(len(sizes) - half) / 120, sizes[half:], 1)[0]
    print(f"memory [MB] every 30 s: {' '.join(f'{size:.1f}' for size in sizes)}")
    print(f"growth over the second half: {slope:.2f} MB/h")
    view.end()
    first.wait(END_S)


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--browser"]:
        browse(*sys.argv[2:])
        return
    end_on_signals()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder, reserved_domain() as domain:
        nodes = Nodes(domain, Path(folder))
        try:
            if sys.argv[1:2] == ["--soak"]:
                soak(nodes, float(sys.argv[2]))
            else:
                compare(nodes, int(sys.argv[1]) if len(sys.argv) > 1 else sized(3, 1))
        finally:
            with redirect_stdout(None):  # the nodes' logs
                nodes.end()


if __name__ == "__main__":
    main()
