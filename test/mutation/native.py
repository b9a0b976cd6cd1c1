"""Small faults in the files in C: draws a sample with a seed, puts them into the clone that it is
run in, one at a time, and says which the tests notice. See README.md here.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SEED = 2026
SAMPLE = {"nh_control/multibody/native": 38, "nh_control/numerics/native": 22}
LIMIT_S = 900
FAULTS = [
    *((r" \+ ", " - "), (r" - ", " + "), (r"\+=", "-="), (r"(?<=[^-])-=", "+=")),
    *((r"(?<=[=(,:] )-(?=[\w(])", ""), (r"(?<=return )-(?=[\w(])", "")),
    *((r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > ")),
    *((r" == ", " != "), (r" != ", " == "), (r" && ", " || "), (r" \|\| ", " && ")),
    *((r"!(?=[\w(])", ""), (r"\bcontinue;", "break;")),
    *((r"\b0\.5\b", "1.0"), (r"\b2\.0\b", "1.0"), (r"\b1\.0\b", "2.0"), (r"\b0\.0\b", "1.0")),
    *((r"(?<=\[)0(?=\])", "1"), (r"(?<=\[)1(?=\])", "0"), (r"(?<=\[)2(?=\])", "1")),
    *((r"(?<== )0(?=;)", "1"), (r"(?<== )1(?=;)", "2"), (r"(?<= [+-] )1\b(?!\.)", "2")),
    *((r"\b(data->h|data->half_step|k|half|f|s|by) \* ", ""), (r" \* (s|by|sign)\b", "")),
    *((r"\bmax\(", "min("), (r"\bfmax\(", "fmin("), (r"\bfabs\(", "(")),
    *((r"\bn_rho\b", "n_impulses"), (r"\bparent_omega\b", "parent_velocity")),
    (r"\bangular_momentum\b", "linear_momentum"),
    (r"^( +)[^ /].*;$", r"\1;"),
]
"""What is looked for, and what takes its place; the last one drops a statement."""
NO_STATEMENT = re.compile(
    r" +(const |static |double |int |long |v4 |vn |struct |unsigned "
    r"|for |if |else|return|case|break|continue|enum|typedef|size_t|char|.*\}$|;)"
)
"""Lines without which nothing compiles, or for which other faults are meant."""
POINTERS = re.compile(r"\*\w+ = |vn ?\(\*")
"""Declarations of places in memory: what is wrong there ends the process at once."""
TESTS = {
    "multibody": [
        *(f"multibody/test_tree{part}.py" for part in ("s", "_constraints", "_parameters"))
    ],
    "adaptive": ["lie/test_adaptive.py", "lie/test_adaptive_events.py"],
    "closed_loop": ["control/test_closed_loops.py", "core/test_structure.py"],
    "simulate": ["core/test_trajectories.py", "core/test_composition.py"],
    "numerics": ["core/test_native_numbers.py", "core/test_newton.py", "core/test_derivatives.py"],
}
"""By the file, or by its room."""


class Fault(NamedTuple):
    path: Path
    line: int
    start: int
    was: str
    now: str


def sample() -> Iterator[Fault]:
    for room, number in SAMPLE.items():
        every = [fault for path in sorted(Path(room).glob("*.[ch]")) for fault in faults(path)]
        yield from random.Random(f"{SEED} {room}").sample(every, number)


def faults(path: Path) -> Iterator[Fault]:
    """All of a file but those in comments, in declarations of types and of pointers."""
    comment = declaring = False
    before = ";"
    for number, line in enumerate(path.read_text().splitlines(), 1):
        code = re.sub(r"/\*.*?(\*/|$)", lambda found: " " * len(found[0]), line)
        code = " " * len(line) if comment else code
        comment = "*/" not in line if comment else "/*" in line and "*/" not in line
        declaring = declaring or code.startswith(("typedef", "struct", "enum"))
        if not (declaring or code.startswith("#") or POINTERS.search(code)):
            for pattern, by in FAULTS:
                whole = before.endswith((";", "{", "}", ")", ":", "else"))
                if not pattern.startswith("^") or (whole and not NO_STATEMENT.match(code)):
                    for m in re.finditer(pattern, code):
                        yield Fault(path, number, m.start(), m[0], m.expand(by))
        declaring = declaring and not code.startswith("}")
        before = code.strip() or before


def judge(fault: Fault) -> str:
    """Put the fault into its file, run the tests until one fails, and mend the file."""
    source = fault.path.read_text()
    lines = source.splitlines(keepends=True)
    line = lines[fault.line - 1]
    lines[fault.line - 1] = line[: fault.start] + fault.now + line[fault.start + len(fault.was) :]
    tests = TESTS.get(fault.path.stem) or TESTS[fault.path.parts[1]]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=line"]
    try:
        fault.path.write_text("".join(lines))
        done = subprocess.run(
            [*command, *(f"test/{name}" for name in tests)], capture_output=True, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return "noticed"
    finally:
        fault.path.write_text(source)
    return "noticed" if done.returncode else "SURVIVED"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("numbers", type=int, nargs="*", help="of the faults to judge; all without")
    wanted = parser.parse_args().numbers
    for number, fault in enumerate(sample()):
        if not wanted or number in wanted:
            change = f"`{fault.was.strip()}` -> `{fault.now.strip()}`"
            print(number, f"{fault.path}:{fault.line}", change, judge(fault), flush=True)


if __name__ == "__main__":
    main()
