"""Real time over DDS: plant and tracker of a scenario in two processes, missed steps, jitter and,
of MPC, commands without a plan of their own.

    python test/benchmark/real_time_nodes.py
    python test/benchmark/real_time_nodes.py --scenario cart_pole --controller mpc --horizon 0.1 \
        --rates 500
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from contextlib import redirect_stdout
from pathlib import Path

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from rclpy.signals import SignalHandlerOptions

TEST = Path(__file__).parents[1]
sys.path[:0] = [str(TEST), str(TEST / "ros")]

from node_processes import Nodes, end_on_signals  # noqa: E402
from sizes import sized  # noqa: E402

from nh_control.runs.dds_domain import reserved_domain  # noqa: E402

PLANT = (
    "step",
    "missed_steps",
    "jitter_mean_us",
    "jitter_p99_us",
    "jitter_max_us",
    "commands_rejected",
    "fallback_steps",
)
TRACKER = ("response_max_us", "goals_accepted", "goals_refused", "states_refused")
PREDICTIVE = ("commands_by_plan", "commands_by_earlier_plan", "commands_by_lqr")
GOAL_EVERY_S = 10.0
RATES_HZ = sized([100.0, 200.0], [100.0])


class Watcher:
    """Stores the values of the nodes' diagnostics (the longest response times), and sends
    goals.
    """

    def __init__(self, domain: int):
        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
        rclpy.init(domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
        self.node, self.values = rclpy.create_node("watcher"), {}
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 100)
        self._goals, self._sent = self.node.create_publisher(PoseStamped, "goal", 10), 0

    def _on_diagnostics(self, message) -> None:
        for status in message.status:
            for pair in status.values:
                longest = pair.key == "response_max_us" and max(
                    self.values.get(pair.key, "0"), pair.value, key=float
                )
                self.values[pair.key] = longest or pair.value

    def spin(self, seconds: float) -> None:
        """Listen for some time."""
        rclpy.spin_once(self.node, timeout_sec=seconds)

    def goal(self) -> None:
        """Send the next goal."""
        self._sent += 1
        message = PoseStamped()
        message.header.frame_id = "odom"
        message.pose.position.x, message.pose.position.y, message.pose.position.z = (
            1.0 * (-1) ** self._sent,
            0.5,
            1.0 + 0.5 * (self._sent % 2),
        )
        self._goals.publish(message)

    def close(self) -> None:
        """End."""
        self.node.destroy_node()
        rclpy.shutdown()


def run(rate_hz: float, arguments: argparse.Namespace) -> dict[str, str]:
    """Make one run; returns the last values of the diagnostics."""
    model = {"scenario": arguments.scenario, "step_s": 1 / rate_hz}
    model |= {"reference": arguments.reference} if arguments.reference else {}
    tracker = {**model, "controller": arguments.controller}
    tracker |= {"mpc.horizon_s": arguments.horizon} if arguments.horizon else {}
    perturbation = {name: float(value) for name, value in arguments.perturb}
    with tempfile.TemporaryDirectory() as folder, reserved_domain() as domain:
        nodes, watcher = Nodes(domain, Path(folder)), Watcher(domain)
        try:
            nodes.start("tracker", tracker)
            run_s = {"duration_s": arguments.seconds, "on_finish": "exit"}
            plant = nodes.start("plant", {**model, **run_s, **perturbation})
            next_goal = None
            while plant.process.poll() is None:
                watcher.spin(0.1)
                if (
                    arguments.goals
                    and int(watcher.values.get("step", 0))
                    and (next_goal is None or time.monotonic() > next_goal)
                ):
                    next_goal = time.monotonic() + GOAL_EVERY_S
                    watcher.goal()
            assert plant.process.returncode == 0, plant.log
            watcher.spin(1.0)
            return dict(watcher.values)
        finally:
            watcher.close()
            with redirect_stdout(None):  # the nodes' logs
                nodes.end()


def main() -> None:
    """Run at every rate and print a line for each."""
    end_on_signals()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenario", default="quadrotor_payload")
    parser.add_argument("--reference", default="", help="the scenario's first one by default")
    parser.add_argument("--controller", default="lqr", choices=("lqr", "mpc"))
    parser.add_argument("--horizon", type=float, default=0.0, metavar="S", help="of MPC")
    parser.add_argument(
        "--perturb",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="initial error, as `perturb.position 0.1`",
    )
    parser.add_argument("--seconds", type=float, default=sized(60.0, 2.0))
    parser.add_argument("--rates", type=float, nargs="+", default=RATES_HZ, metavar="HZ")
    parser.add_argument(
        "--goals",
        action="store_true",
        help=f"send a goal every {GOAL_EVERY_S:g} s, so that references are planned meanwhile",
    )
    arguments = parser.parse_args()
    for rate in arguments.rates:
        values = run(rate, arguments)
        keys = (*PLANT, *TRACKER, *(PREDICTIVE if arguments.controller == "mpc" else ()))
        print(
            f"{arguments.scenario}, {arguments.controller}, {rate:g} Hz, {arguments.seconds:g} s: "
            + ", ".join(f"{key} {values.get(key, '-')}" for key in keys),
            flush=True,
        )


if __name__ == "__main__":
    main()
