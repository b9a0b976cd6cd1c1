"""Call `nh_control` as a user does, in a separate process."""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAIN = "import sys; from nh_control.cli import main; sys.exit(main())"
WITHOUT_ROS = (
    "import sys; sys.modules.update(dict.fromkeys(['rclpy', 'rosbags', 'sensor_msgs'])); "
)


def environment(**changes):
    """This source tree to import from, no ROS domain, so that each run has one of its own, and
    changes.
    """
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    own = {name: value for name, value in os.environ.items() if name != "ROS_DOMAIN_ID"}
    return {**own, "PYTHONPATH": path, "COLUMNS": "200", **changes}


def nh_control(*arguments, cwd, before="", timeout_s=180, **changes):
    """The finished `nh_control` in the folder cwd, after the Python statements `before`."""
    command = [sys.executable, "-c", before + MAIN, *arguments]
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def wait_for_clock(time_s, domain, timeout_s=120.0):
    """Wait until the nodes have reached this simulation time."""
    import rclpy
    from rclpy.context import Context
    from rclpy.executors import SingleThreadedExecutor
    from rosgraph_msgs.msg import Clock

    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    context, times = Context(), []
    rclpy.init(context=context, domain_id=domain)
    try:
        node, executor = (
            rclpy.create_node("clock_watcher", context=context),
            SingleThreadedExecutor(context=context),
        )
        executor.add_node(node)
        node.create_subscription(
            Clock,
            "/clock",
            lambda message: times.append(message.clock.sec + 1e-9 * message.clock.nanosec),
            100,
        )
        deadline = time.monotonic() + timeout_s
        while not (times and times[-1] >= time_s):
            assert time.monotonic() < deadline, (
                f"simulation time {time_s} s not reached within {timeout_s} s"
            )
            executor.spin_once(timeout_sec=0.05)
        executor.shutdown()
    finally:
        rclpy.shutdown(context=context)
