"""Rates of messages between plant and tracker, compared with bare exchanges of two rclpy
processes.

One run alternates between: the snakeboard's plant and tracker in lock-step as fast as possible, in
two processes and in one; a ping-pong of two bare rclpy nodes with one JointState each way; and the
messages of plant and tracker without any computing, as messages by rclpy's executor and as bytes
by the package's inbox. Then plants run in real time: missed steps, jitter, processor time. Prints
percentiles over repetitions.

    python test/benchmark/node_rates.py [REPETITIONS [REPETITIONS OF REAL TIME]]
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from sensor_msgs.msg import JointState

TEST = Path(__file__).parents[1]
sys.path[:0] = [str(TEST), str(TEST / "ros")]

from node_processes import NodeProcess, Nodes, end_on_signals  # noqa: E402
from sizes import sized  # noqa: E402

from nh_control import scenarios  # noqa: E402
from nh_control.ros.messages import conversions  # noqa: E402
from nh_control.ros.messages.cdr import Template, header_stamp  # noqa: E402
from nh_control.ros.messages.state_codecs import codecs  # noqa: E402
from nh_control.ros.messages.state_reader import StateListener, StateReader  # noqa: E402
from nh_control.ros.runtime.inbox import Inbox  # noqa: E402
from nh_control.runs.dds_domain import reserved_domain  # noqa: E402

SCENARIO = scenarios.get("snakeboard")
STEPS, WARM_UP = sized((3000, 300), (200, 20))
STEP_S = 0.004
"""A step of which the reference has more than STEPS + WARM_UP."""
RUN_S = sized(14.0, 3.0)
"""Of the reference, in real time."""
RATES_HZ = sized(
    [("snakeboard", 100), ("snakeboard", 200), ("snakeboard", 500), ("quadrotor_payload", 1000)],
    [("snakeboard", 100)],
)
END_S = 120.0
SETTLED_S = 1.0
"""After the start, until processor time counts."""
POLL_S = 0.01
TICKS = os.sysconf("SC_CLK_TCK")


# --- bare nodes ----------------------------------------------------------------------------------


class Executor:
    """Replaces an inbox by subscriptions of rclpy's executor."""

    def __init__(self, node: Node):
        self._node = node

    def subscribe(
        self,
        kind: type,
        topic: str,
        callback: Callable,
        qos: int,
        raw: bool = False,
        awaited: object = None,
        local: object = None,
    ) -> None:
        """Subscribe."""
        self._node.create_subscription(kind, topic, callback, qos, raw=raw)

    def run(self) -> None:
        """Serve until the end."""
        rclpy.spin(self._node)

    def close(self) -> None:
        """End `run`; from a callback."""
        raise ExternalShutdownException


def sent(message: object, inbox: Executor | Inbox) -> Callable[[], object]:
    """Return a publishable copy of a message at this time: the message or its bytes."""
    return Template(message).encode if isinstance(inbox, Inbox) else lambda: message


class Asking:
    """Sends a message, waits for the answer, and repeats; prints the rate and ends."""

    def __init__(self, node: Node, inbox: Executor | Inbox, messages: list[tuple[str, object]]):
        self._outgoing = [
            (node.create_publisher(type(m), topic, 10), m, sent(m, inbox)) for topic, m in messages
        ]
        inbox.subscribe(
            JointState, "joint_commands", self._on_answer, 10, isinstance(inbox, Inbox)
        )
        self._inbox, self._count, self._began = inbox, 0, 0.0
        while any(p.get_subscription_count() == 0 for p, *_ in self._outgoing) or not (
            node.count_publishers("joint_commands")
        ):
            time.sleep(0.01)
        time.sleep(0.5)  # the other end may know of it later
        self._send()

    def _send(self) -> None:
        for publisher, message, encoded in self._outgoing:
            conversions.set_time(message.header.stamp, self._count)
            publisher.publish(encoded())

    def _on_answer(self, answer: JointState | bytes) -> None:
        whole = isinstance(answer, JointState)
        stamp = conversions.nanoseconds(answer.header.stamp) if whole else header_stamp(answer)
        assert stamp == self._count
        self._count += 1
        if self._count == WARM_UP:
            self._began = time.perf_counter()
            print("begun", flush=True)
        if self._count == WARM_UP + STEPS:
            print(f"{STEPS / (time.perf_counter() - self._began):.1f} steps/s", flush=True)
            self._inbox.close()
            return
        self._send()


def answer(node: Node, inbox: Executor | Inbox, shown: tuple | None) -> None:
    """Answer one message, or all messages of a state, by a command with the same stamp."""
    message = conversions.command_message(SCENARIO.model().inputs)
    encoded = sent(message, inbox)
    publisher = node.create_publisher(JointState, "joint_commands", 10)

    def reply(stamp: int) -> None:
        conversions.set_time(message.header.stamp, stamp)
        publisher.publish(encoded())

    if shown is None:
        heard = lambda m: reply(conversions.nanoseconds(m.header.stamp))  # noqa: E731
        inbox.subscribe(JointState, "ping", heard, 10)
    else:
        listener = StateListener(reply, lambda _, reason: sys.exit(reason))
        StateReader(inbox, shown, listener, 10)


def bare(role: str) -> None:
    """Run one of the bare nodes: `ask` or `answer`, `ping` or `state`, `executor` or `inbox`."""
    what, load, way = role.split("_")
    rclpy.init()
    node = rclpy.create_node(role)
    inbox = Inbox(node) if way == "inbox" else Executor(node)
    shown = codecs(SCENARIO, SCENARIO.model())
    try:
        if what == "ask":
            ping = [("ping", conversions.command_message(SCENARIO.model().inputs))]
            Asking(
                node,
                inbox,
                ping if load == "ping" else [(p, t.message) for c in shown for p, t in c.outgoing],
            )
        else:
            answer(node, inbox, None if load == "ping" else shown)
        inbox.run()
    except (ExternalShutdownException, KeyboardInterrupt):
        return


# --- lock-step -----------------------------------------------------------------------------------


def wait_for(node: NodeProcess, text: str) -> None:
    """Wait until the node's log contains a text."""
    deadline = time.monotonic() + END_S
    while text not in node.log:
        assert time.monotonic() < deadline and node.process.poll() is None, node.log
        time.sleep(POLL_S)


def measured(one: NodeProcess, others: Sequence[NodeProcess], steps: int) -> tuple[float, float]:
    """Return round trips per second, and processor time of all processes per round trip in us,
    from now until `one` ends; then end the others.
    """
    deadline, every = time.monotonic() + END_S, (one, *others)
    before = sum(map(processor_s, every))
    while fields(one)[0] != "Z":
        assert time.monotonic() < deadline, one.log
        time.sleep(POLL_S)
    used = sum(map(processor_s, every)) - before
    one.wait()
    for other in others:
        other.kill()
    found = re.findall(r"([\d.]+) steps/s", one.log)
    assert len(found) == 1, one.log
    return float(found[0]), used / steps * 1e6


def exchange(nodes: Nodes, load: str, way: str) -> tuple[float, float]:
    """Measure two bare nodes."""
    here = Path(__file__)
    other = nodes.start(f"answer_{load}_{way}", script=here)
    asking = nodes.start(f"ask_{load}_{way}", script=here)
    wait_for(asking, "begun")
    return measured(asking, [other], STEPS)


STEPPED = STEPS + WARM_UP
SHARED = {"lockstep": True, "speed_factor": 0.0, "step_s": STEP_S}
RUN = {"duration_s": STEPPED * STEP_S, "on_finish": "exit"}


def lockstep(nodes: Nodes) -> tuple[float, float]:
    """Measure plant and tracker; the tracker starts last."""
    plant = nodes.start("plant", SHARED | RUN)
    wait_for(plant, "[plant]: plant")
    tracker = nodes.start("tracker", SHARED)
    wait_for(tracker, "[tracker]: model")
    return measured(plant, [tracker], STEPPED)


def composed(nodes: Nodes) -> tuple[float, float]:
    """Measure plant and tracker in one process."""
    both = nodes.start("composed", SHARED | RUN)
    wait_for(both, "[plant]: plant")
    return measured(both, [], STEPPED)


def fields(node: NodeProcess) -> list[str]:
    """Return the kernel's status fields of a process, starting at its state."""
    text = Path(f"/proc/{node.process.pid}/stat").read_text()
    return text.rpartition(")")[2].split()


def processor_s(node: NodeProcess) -> float:
    """Return the processor time of a process in s, user and system."""
    user, system = fields(node)[11:13]
    return (int(user) + int(system)) / TICKS


KINDS: dict[str, Callable[[Nodes], tuple[float, float]]] = {
    "plant and tracker": lockstep,
    "composed": composed,
    "ping-pong": lambda nodes: exchange(nodes, "ping", "executor"),
    "same messages": lambda nodes: exchange(nodes, "state", "executor"),
    "same messages, inbox": lambda nodes: exchange(nodes, "state", "inbox"),
}


def print_lockstep(nodes: Nodes, repetitions: int) -> None:
    """Measure and print the table of rates."""
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    for i in range(repetitions):
        at = i % len(KINDS)
        for kind in [*KINDS][at:] + [*KINDS][:at]:
            found[kind].append(KINDS[kind](nodes))
    print("\n| lock-step | p10 [1/s] | p50 | p90 | plant and tracker over it, p10 | p50 ", end="")
    print("| p90 | processor time [us] | ratio |\n|---|---|---|---|---|---|---|---|---|")
    own = np.array(found["plant and tracker"]).T
    for kind, rows in found.items():
        rates, used = np.array(rows).T
        cells = [f"{x:.0f}" for x in np.percentile(rates, (10, 50, 90))]
        cells += [f"{x:.2f}" for x in np.percentile(own[0] / rates, (10, 50, 90))]
        cells += [f"{np.median(used):.0f}", f"{np.median(used / own[1]):.2f}"]
        print(f"| {kind} | {' | '.join(cells)} |", flush=True)


# --- real time -----------------------------------------------------------------------------------


def real_time(nodes: Nodes, scenario: str, rate_hz: int) -> list[float]:
    """Return missed steps, the mean, 99 % quantile and largest jitter in us, and the processor
    time of plant and tracker divided by the time of the run.
    """
    step = {"scenario": scenario, "step_s": 1 / rate_hz}
    tracker = nodes.start("tracker", step)
    plant = nodes.start("plant", {**step, "duration_s": RUN_S, "on_finish": "exit"})
    wait_for(tracker, "[tracker]: model")
    wait_for(plant, "[plant]: plant")
    time.sleep(SETTLED_S)
    before, begun = [processor_s(node) for node in (plant, tracker)], time.monotonic()
    time.sleep(RUN_S - 2 * SETTLED_S)
    after, elapsed = [processor_s(node) for node in (plant, tracker)], time.monotonic() - begun
    shares = [100 * (late - early) / elapsed for early, late in zip(before, after)]
    plant.wait(END_S)
    tracker.end()
    (found,) = re.findall(
        r"missed steps (\d+); jitter mean (\d+) us, 99 % (\d+) us, max (\d+) us", plant.log
    )
    return [*map(float, found), *shares]


def print_real_time(nodes: Nodes, repetitions: int) -> None:
    """Measure and print the table of real time."""
    print(
        "\n| scenario | rate [Hz] | steps | missed | [%] | jitter mean [us] | p99 | max ", end=""
    )
    print("| plant, of a core [%] | tracker |\n|---|---|---|---|---|---|---|---|---|---|")
    for scenario, rate_hz in RATES_HZ:
        rows = np.array([real_time(nodes, scenario, rate_hz) for _ in range(repetitions)])
        steps, missed = round(repetitions * RUN_S * rate_hz), rows[:, 0].sum()
        mean, p99, most, plant, tracker = np.median(rows[:, 1:], axis=0)
        jitter = f"{mean:.0f} | {p99:.0f} | {rows[:, 3].max():.0f}"
        share = f"{missed:.0f} | {100 * missed / steps:.3f}"
        print(f"| {scenario} | {rate_hz} | {steps} | {share} | {jitter} ", end="")
        print(f"| {plant:.1f} | {tracker:.1f} |", flush=True)


def main() -> None:
    """Measure and print."""
    if len(sys.argv) > 1 and "_" in sys.argv[1]:
        bare(sys.argv[1])
        return
    end_on_signals()
    given = [int(text) for text in sys.argv[1:]]
    repetitions, flights = (*given, *sized((10, 3), (1, 1))[len(given) :])
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder, reserved_domain() as domain:
        nodes = Nodes(domain, Path(folder))
        try:
            print_lockstep(nodes, repetitions)
            if flights:
                print_real_time(nodes, flights)
        finally:
            with redirect_stdout(None):  # the nodes' logs
                nodes.end()


if __name__ == "__main__":
    main()
