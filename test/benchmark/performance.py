"""Speed beside that of peers, as the table of `doc/performance.md`.

    python -m venv peers
    peers/bin/pip install crocoddyl==3.2.1 pin==4.0.0 cmeel-eigen mujoco airo-models \
        jvrc-description upkie-description
    python test/benchmark/performance.py --peers peers/bin/python [--rows NAME ...]
        [--old COMMIT] [--write doc/performance.md] [--short]

Each row is measured in a process of its own, where ours and the peer take turns
(`performance_rows.py`). With --old, the code of another commit is measured beside this one's, in
turns, in a temporary checkout with its own library and cache. The packages of the peers'
environment, which has the same version of Python, are found after this one's. A row whose peer is
missing says what to install. With --write, the table replaces the one between the markers of a
page.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import date
from pathlib import Path

import numpy as np
from performance_rows import ROWS, Row
from sizes import SHORT, sized

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FASTEST = "commands", "adaptive"
"""Rows of the short form."""
BEGIN, END = "<!-- performance: begin -->", "<!-- performance: end -->"
INSTALL = {
    "airo_models": "airo-models",
    "crocoddyl": "crocoddyl==3.2.1 pin==4.0.0",
    "jvrc_description": "jvrc-description",
    "pinocchio": "pin==4.0.0 cmeel-eigen",
    "rclpy": "-e '.[ros]'",
    "upkie_description": "upkie-description",
}
"""Packages by module, where the names differ."""
MISSING = re.compile(r"No module named '([\w+]+)")


def measured(name: str, folder: Path, cache: str, peers: str) -> dict[str, Row] | str:
    """Rows by work and peer with the code in a folder, or why there are none."""
    environment = os.environ | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    if cache:
        environment["NH_CONTROL_CACHE"] = cache
    done = subprocess.run(
        [sys.executable, str(HERE / "performance_rows.py"), name, peers],
        env=environment,
        capture_output=True,
        text=True,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("ROW ")]
    rows = [Row(**json.loads(line.removeprefix("ROW "))) for line in lines]
    if done.returncode and not rows:
        missing = MISSING.search(done.stderr)
        if missing is None:
            return "failed: " + (done.stderr.strip().splitlines() or ["without a message"])[-1]
        package = INSTALL.get(missing[1], missing[1])
        return f"needs {missing[1]}: `pip install {package}`"
    if done.returncode:
        print(done.stderr, file=sys.stderr)
    return {row.work + row.peer: row for row in rows}


def best(rounds: Sequence[dict[str, Row]]) -> dict[str, Row]:
    """The round of every work in which ours took the least, or reached the most."""
    found: dict[str, Row] = {}
    for row in (row for rows in rounds for row in rows.values()):
        key = row.work + row.peer
        if key not in found or (row.ours > found[key].ours) == row.at_least:
            found[key] = row
    return found


def number(value: float) -> str:
    """Three digits, and no exponent."""
    if np.isnan(value):
        return "-"
    digits = max(0, 2 - int(np.floor(np.log10(abs(value))))) if value else 0
    return f"{value:.{min(digits, 4)}f}"


def goal(row: Row) -> tuple[str, bool | None]:
    """The goal as text, and whether it is met."""
    if np.isnan(row.limit):
        return "-", None
    value = row.ours if row.of == "ours" else row.ours / row.theirs
    sign, unit = (">=" if row.at_least else "<="), row.unit if row.of == "ours" else ""
    met = value >= row.limit if row.at_least else value <= row.limit
    return f"{sign} {row.limit:g} {unit}".strip(), bool(met)


def cells(row: Row, old: Row | None, compared: bool) -> list[str]:
    """A row of the table."""
    text, met = goal(row)
    unit = f" {row.unit}" if row.unit else ""
    ratio = row.ours / row.theirs
    peer = f"{number(row.theirs)}{unit}, {row.peer}" if row.peer else "-"
    out = [row.work + (f" ({row.note})" if row.note else ""), number(row.ours) + unit]
    if compared:
        out.insert(1, number(old.ours) + unit if old else "-")
    said = {None: "", True: ", met", False: ", missed"}[met]
    return [*out, peer, number(ratio), text + said]


def line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def table(names: Sequence[str], args: argparse.Namespace) -> Iterator[str]:
    """The lines of the table as they are measured."""
    compared = bool(args.old)
    head = ["work", *([args.old[:10]] if compared else []), "ours", "peer", "ratio", "goal"]
    yield line(head)
    yield line(["---"] * len(head))
    with ExitStack() as stack:
        sides = [(ROOT, "")]
        if compared:
            from against_commit import checkout

            cache = stack.enter_context(tempfile.TemporaryDirectory())
            sides.insert(0, (stack.enter_context(checkout(args.old)), cache))
        for name in names:
            rounds: list[list[dict[str, Row]]] = [[] for _ in sides]
            missing = ""
            for _ in range(args.rounds):
                for found, side in zip(rounds, sides):
                    rows = measured(name, *side, args.peers)
                    if not isinstance(rows, str):
                        found.append(rows)
                    elif side[0] == ROOT:
                        missing = rows
            if missing:
                yield line([name, missing, *[""] * (len(head) - 2)])
            *before, now = map(best, rounds)
            for key, row in now.items():
                yield line(cells(row, before[0].get(key) if before else None, compared))


def processor() -> str:
    """The processor's name."""
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1] if found else platform.machine()


def write(page: Path, text: str) -> None:
    """Replace what is between the markers of a page."""
    before, rest = page.read_text("utf-8").split(BEGIN)
    _, after = rest.split(END)
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", "utf-8")


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = sized([*ROWS], [*FASTEST])
    parser.add_argument("--rows", nargs="+", choices=[*ROWS], default=names, metavar="NAME",
                        help=f"of {', '.join(ROWS)}")  # fmt: skip
    parser.add_argument("--old", default="", metavar="COMMIT", help="measured beside this one")
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=1, help="processes for each row")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="replace the table of a page")
    parser.add_argument("--short", action="store_true", help="check that it runs")
    args = parser.parse_args()
    if args.short and not SHORT:
        os.environ["NH_CONTROL_SHORT"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    shown = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"],
                           capture_output=True, text=True).stdout.strip()  # fmt: skip
    head = (
        f"Measured on {date.today()} at commit {shown or 'unknown'} on {os.cpu_count()} cores "
        f"({processor()}), Python {platform.python_version()}. The load average at the start was "
        f"{os.getloadavg()[0]:.1f}."
    )
    print(head + "\n", flush=True)
    lines = list[str]()
    for text in table(args.rows, args):
        print(text, flush=True)
        lines.append(text)
    if args.write:
        write(args.write, "\n".join([head, "", *lines]))


if __name__ == "__main__":
    main()
