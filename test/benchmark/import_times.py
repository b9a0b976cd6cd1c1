"""Processor time (user and system, least of several processes) and imported modules of commands,
of `import nh_control` and of nodes; a table.

    python test/benchmark/import_times.py

`import nh_control` 0.05 s, help 0.15 s, `list` 0.4 s, `simulate quadrotor_payload` 2.5 s with
figures and 1.2 s without, `simulate snakeboard` 2 s and 1 s are what a user should wait at most
where Python starts in 0.02 s. The first call fills the cache, and that of Python's byte
code. Nodes need rclpy; their rows are left out without it. `run` imports plant, tracker and
recorder once, in the server that forks them.
"""

import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec

REPEATS = 1 if os.environ.get("NH_CONTROL_SHORT") else 5
MODULES = "import atexit, sys; atexit.register(lambda: print(len(sys.modules), file=sys.stderr)); "
SIMULATE = ("simulate", "quadrotor_payload"), ("simulate", "snakeboard")
COMMANDS = [
    (),
    ("--help",),
    ("list", "--help"),
    ("list",),
    ("list", "snakeboard"),
    *SIMULATE,
    *((*words, "--no-plots") for words in SIMULATE),
]
NODES = {
    "import of the plant": "import nh_control.ros.nodes.plant",
    "import of the tracker": "import nh_control.ros.nodes.tracker",
    "import of a run's nodes": "from nh_control.ros.nodes.start import *; import_nodes()",
}
# Users' Python stores byte code; without it, every row would contain half a second of compilation.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def cost(code: str, words: tuple[str, ...] = ()) -> tuple[float, int]:
    """Processor time (s) of a program, and the number of modules that it imports."""
    before = os.times()
    command = [sys.executable, "-c", MODULES + code, *words]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=True
        )
    after = os.times()
    spent = sum(after[2:4]) - sum(before[2:4])
    return spent, int(done.stderr.split()[-1])


def main() -> None:
    """Print the table."""
    rows = {"python": ("pass", ()), "import nh_control": ("import nh_control", ())}
    for words in COMMANDS:
        code = "from nh_control.cli import main; main()"
        rows[" ".join(("nh_control", *words))] = code, words
    if find_spec("rclpy"):
        rows |= {name: (code, ()) for name, code in NODES.items()}
    print(f"{'program':46}{'s':>8}{'modules':>10}")
    for name, (code, words) in rows.items():
        cost(code, words)
        spent, modules = min(cost(code, words) for _ in range(REPEATS))
        print(f"{name:46}{spent:8.2f}{modules:10d}", flush=True)


if __name__ == "__main__":
    main()
