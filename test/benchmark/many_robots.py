"""Several robots in one domain: the plant and tracker of each robot run in separate processes, in
its namespace, at 100 Hz in lock-step. One robot is paused and continues, one loses its tracker and
gets another. Prints for each robot the largest difference of its states from a single robot in one
process, backward jumps of its clock, its rate and missed steps.

    python test/benchmark/many_robots.py [ROBOTS [SECONDS]]
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

from nav_msgs.msg import Odometry  # noqa: E402
from node_processes import Nodes, end_on_signals  # noqa: E402
from probe import Probe, by_step, time_ns  # noqa: E402
from rosgraph_msgs.msg import Clock  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from sizes import sized  # noqa: E402
from std_srvs.srv import SetBool  # noqa: E402

from nh_control import scenarios  # noqa: E402
from nh_control.runs.dds_domain import reserved_domain  # noqa: E402
from nh_control.runs.simulation import closed_loop  # noqa: E402
from nh_control.scenarios import PlanarPerturbation  # noqa: E402

SCENARIO = scenarios.get("snakeboard")
H = SCENARIO.step_s


def start(nodes, name, perturbation, **given):
    place = ("-r", f"__ns:=/{name}")
    tracker = nodes.start("tracker", None, *place)
    return tracker, nodes.start("plant", {"perturb.position": perturbation, **given}, *place)


def expected(perturbation, steps):
    """Rows of a lone robot's x, y and joint positions over the same run."""
    model = SCENARIO.model()
    tracker = SCENARIO.tracker(model, SCENARIO.reference(model))
    first = SCENARIO.perturb(
        model, tracker.reference.states[0], PlanarPerturbation(position=perturbation)
    )
    states = closed_loop(model, tracker, first, steps).trajectory.states
    rows = [model.configuration(x) for x in states]
    return np.array([[x, y, psi, phi, -phi] for psi, phi, theta, x, y in rows])


class Robot:
    """What is heard of a robot."""

    def __init__(self, probe, name):
        self.name, self.topics = name, {}
        # a plant waits for the states' subscriber: the clock's first
        kinds = {"clock": Clock, "odom": Odometry, "joint_states": JointState}
        for topic, kind in kinds.items():
            self.topics[topic] = probe.listen(kind, f"/{name}/{topic}")

    def rows(self, steps):
        """As `expected`."""
        bodies, joints = (by_step(self.topics[topic], H) for topic in ("odom", "joint_states"))
        assert sorted(bodies) == sorted(joints) == list(range(steps + 1))
        places = [bodies[k].pose.pose.position for k in range(steps + 1)]
        return np.array([[p.x, p.y, *joints[k].position] for k, p in enumerate(places)])

    def complete(self, steps):
        last = round(steps * H * 1e9)
        received = [self.topics[topic] for topic in ("clock", "odom", "joint_states")]
        return all(messages and time_ns(messages[-1]) == last for messages in received)

    def times(self):
        return [time_ns(message) for message in self.topics["clock"]]


READY_S = 600.0
"""Until all have begun."""


def pause(probe: Probe, name: str, state: bool) -> None:
    """Pause a robot or continue."""
    client = probe.node.create_client(SetBool, f"/{name}/plant/pause")
    answer = probe.ask(client, SetBool.Request(data=state))
    assert answer.success, answer.message


def run(nodes: Nodes, probe: Probe, count: int, steps: int) -> list[str]:
    """Return the rows of the table."""
    names = [f"robot{i + 1}" for i in range(count)]
    given = {"lockstep": True, "duration_s": steps * H, "wait_for": "[probe]"}
    trackers = {
        name: start(nodes, name, 0.02 * (i + 1), **given)[0] for i, name in enumerate(names)
    }
    reports = [f"{name}/{node}" for name in names for node in ("plant", "tracker")]
    probe.wait(lambda: probe.diagnostics.keys() >= set(reports), "report of all", READY_S)
    # the plants wait for these subscriptions, so that none is at its end before another begins
    robots = [Robot(probe, name) for name in names]
    progress = lambda name: int(probe.values(f"{name}/plant").get("step", 0))  # noqa: E731
    probe.wait(lambda: all(progress(name) > 0 for name in names), "start of all", READY_S)
    begun = time.monotonic()
    paused, orphan = names[:2]
    pause(probe, paused, True)
    trackers[orphan].kill()
    nodes.start("tracker", None, "-r", f"__ns:=/{orphan}")
    probe.spin(2.0)
    pause(probe, paused, False)
    modes = lambda: [probe.values(f"{name}/plant").get("mode") for name in names]  # noqa: E731
    probe.wait(lambda: set(modes()) == {"finished"}, "end of all", READY_S)
    print(f"all at their end {time.monotonic() - begun:.0f} s after all had begun")
    rows = []
    for i, robot in enumerate(robots):
        probe.wait(lambda: robot.complete(steps), "last state")
        error = np.abs(robot.rows(steps) - expected(0.02 * (i + 1), steps)).max()
        jumps = int((np.diff(robot.times()) < 0).sum())
        values = probe.values(f"{robot.name}/plant")
        frames = {m.child_frame_id for m in robot.topics["odom"]} == {f"{robot.name}/base_link"}
        cells = (
            robot.name,
            f"{error:.1e}",
            jumps,
            "own" if frames else "mixed",
            values["missed_steps"],
            values["jitter_p99_us"],
        )
        rows.append(f"| {' | '.join(map(str, cells))} |")
    assert not probe.clock
    return rows


def main() -> None:
    """Run and print."""
    end_on_signals()
    given = [int(text) for text in sys.argv[1:]]
    count, seconds = (*given, *sized((10, 5), (2, 5))[len(given) :])
    with tempfile.TemporaryDirectory() as folder, reserved_domain() as domain:
        nodes, probe = Nodes(domain, Path(folder)), Probe(domain)
        try:
            rows = run(nodes, probe, count, round(seconds / H))
        finally:
            with redirect_stdout(None):  # the nodes' logs
                nodes.end()
            probe.close()
    print(
        f"{SCENARIO.name}, {count} robots, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )
    print("| robot | difference of states | clock back | frames | missed | jitter p99 [us] |")
    print("|---|---|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
