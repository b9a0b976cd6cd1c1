"""Small faults in the files in C: draws a sample with a seed, puts them into the clone that it is
run in, one at a time, and says which the tests notice. See README.md here.
"""

from __future__ import annotations

import argparse
import random
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import tomllib

from nh_control.numerics import library

SEED = 2026
SAMPLE = {
    "nh_control/multibody/native": 38,
    "nh_control/numerics/native": 22,
    "nh_control/control/optimal/native": 15,
}
LIMIT_S = 600
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
STUDY = tomllib.loads((Path(__file__).parent / "study.toml").read_text())["study"]
"""Names the tests of each file."""


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
    """Put the fault into its file, build the library, run the tests until one fails, and mend the
    file.
    """
    source = fault.path.read_text()
    lines = source.splitlines(keepends=True)
    line = lines[fault.line - 1]
    lines[fault.line - 1] = line[: fault.start] + fault.now + line[fault.start + len(fault.was) :]
    try:
        fault.path.write_text("".join(lines))
        if not build():
            return "does not compile"
        return "noticed" if fails(tests(fault)) else "SURVIVED"
    finally:
        fault.path.write_text(source)


def build() -> bool:
    """Build the library for all processors, and remove those for certain ones, which would be
    taken instead. With `-O1` this takes seconds.
    """
    for file in library.FOLDER.glob("*.so"):
        file.unlink()
    command = library.command((), ("cc",), library.FOLDER / library.file_name(()))
    quick = ["-O1" if part == "-O3" else part for part in command]
    return subprocess.run(quick, capture_output=True).returncode == 0


def tests(fault: Fault) -> list[str]:
    """What the first entry that fits says; `folder/a.c|b.c` fits both files of the folder."""
    file = fault.path.as_posix().removeprefix("nh_control/")
    for entry in STUDY["native"]:
        folder, _, names = entry["files"].rpartition("/")
        if any(fnmatch(file, f"{folder}/{name}") for name in names.split("|")):
            return entry["tests"]
    raise LookupError(f"study.toml names no tests for {file}")


def fails(entries: Iterable[str]) -> bool:
    """Whether one of the tests fails."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=line"]
    for entry in entries:
        name, *options = shlex.split(entry)
        arguments = [*command, f"test/{name}", *options]
        try:
            if subprocess.run(arguments, capture_output=True, timeout=LIMIT_S).returncode:
                return True
        except subprocess.TimeoutExpired:
            return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("numbers", type=int, nargs="*", help="of the faults to judge; all without")
    wanted = parser.parse_args().numbers
    faults = list(enumerate(sample()))
    if not build() or fails({entry for _, fault in faults for entry in tests(fault)}):
        sys.exit("the tests must pass without a fault")
    for number, fault in faults:
        if not wanted or number in wanted:
            change = f"`{fault.was.strip()}` -> `{fault.now.strip()}`"
            print(number, f"{fault.path}:{fault.line}", change, judge(fault), flush=True)


if __name__ == "__main__":
    main()
