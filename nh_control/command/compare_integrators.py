"""`nh_control integrators` shows a table of all integrators. `nh_control compare` compares
integrators and SciPy's solvers on a scenario's motion.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from nh_control.command.usage import find_scenario, usage_errors
from nh_control.command.values import bounded_number

if TYPE_CHECKING:
    from nh_control.integrators import Integrator
    from nh_control.studies.comparison import Comparison, MethodRow
    from nh_control.studies.motion import InitialValueProblem

STEP_S, MOST_STEPS = 0.02, 1_000_000
AT = (1e-4, 1e-6, 1e-8, 1e-10)
"""Errors at which processor times are printed."""
KINDS = {True: "explicit", False: "implicit"}
WORDS = ("preserves", "refused", "source")
"""Text columns in the integrator table."""


def add_to(commands: Any) -> None:
    """Add both commands to a parser's commands."""
    table = commands.add_parser("integrators")
    table.add_argument(
        "scenario", nargs="?", metavar="SCENARIO", help="scenario whose step is measured"
    )
    _add_step(table, "of the measurement")
    table.add_argument("--json", action="store_true", help="print one JSON object")
    table.set_defaults(command=_integrators)
    compare = commands.add_parser("compare")
    compare.add_argument("scenario", metavar="SCENARIO", help="scenario of the motion")
    compare.add_argument(
        "--methods",
        nargs="+",
        default=(),
        metavar="NAME",
        help="integrators to compare; `nh_control integrators SCENARIO` lists all of them with "
        "those of the scenario (default: these, all of order 4 or higher, and "
        "nonholonomic_midpoint)",
    )
    compare.add_argument(
        "--duration",
        type=bounded_number(0),
        default=0.0,
        metavar="S",
        help="length in s (default: the reference's, up to 10)",
    )
    compare.add_argument(
        "--reference",
        default="",
        metavar="NAME",
        help="reference whose initial state and piecewise constant inputs are used (default: "
        "the scenario's first)",
    )
    _add_step(compare, "of the figure of energy and constraints")
    compare.add_argument("--output", default=None, metavar="DIR", help="folder of the results")
    compare.add_argument("--overwrite", action="store_true", help="replace results in --output")
    compare.add_argument("--json", action="store_true", help="print one JSON object")
    compare.set_defaults(command=_compare)


def _add_step(parser: Any, purpose: str) -> None:
    parser.add_argument(
        "--step",
        type=bounded_number(0, open_=True),
        default=STEP_S,
        metavar="S",
        help=f"step in s {purpose} (%(default)g)",
    )


def _integrators(args: Namespace) -> int:
    from nh_control.integrators import INTEGRATORS
    from nh_control.studies.comparison import MethodRow, method_table
    from nh_control.studies.motion import motion_of

    rows: list[MethodRow] = [MethodRow(integrator) for integrator in INTEGRATORS.values()]
    if args.scenario:
        scenario = find_scenario(args.scenario)
        listed = INTEGRATORS.with_additional(scenario.integrators)
        with usage_errors(scenario.file, files=False):
            motion = motion_of(scenario)
            # without a scenario, the table has no measured columns
            rows = list(_with_progress(method_table(listed, motion, args.step), len(listed)))
    values = [_values(row, bool(args.scenario)) for row in rows]
    if args.json:
        print(json.dumps(values, indent=2))
    else:
        _print_methods(values)
    return 0


def _with_progress(rows: Iterable[MethodRow], total: int) -> Iterator[MethodRow]:
    # \r overwrites the line of the last method on the terminal
    for k, row in enumerate(rows):
        print(f"\r{k + 1} of {total} {row.integrator.name:40}", end="", file=sys.stderr)
        yield row
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr)


def _values(row: MethodRow, measured: bool) -> dict[str, Any]:
    integrator = row.integrator
    values: dict[str, Any] = {
        "name": integrator.name,
        "order": integrator.order,
        # None: both variants exist
        "kind": integrator.explicit if integrator.explicit is None else KINDS[integrator.explicit],
        "symmetric": integrator.symmetric,
        "preserves": ", ".join(integrator.preserves),
    }
    if measured:
        values |= {"state": row.state_size, "unknowns": row.unknowns}
        # None for a refused integrator
        values |= {"us_per_step": row.microseconds and round(row.microseconds, 2)}
        values |= {"refused": row.refused}
    return values | {"source": integrator.source}


def _print_methods(rows: Sequence[dict[str, Any]]) -> None:
    """Print numbers and texts as two tables, because one would be wider than a terminal."""
    _print_table([{k: v for k, v in row.items() if k not in WORDS} for row in rows])
    print()
    _print_table([{k: row[k] for k in ("name", *WORDS) if k in row} for row in rows])


def _print_table(rows: Sequence[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    out = Table(box=None, padding=(0, 1, 0, 0))
    for k, name in enumerate(rows[0]):
        out.add_column(name.replace("_", " "), no_wrap=k == 0, overflow="fold")
    for row in rows:
        out.add_row(*map(_text, row.values()))
    Console().print(out, markup=False)


def _text(value: Any) -> str:
    """Return the text of a cell, or "-" for a value that was not measured."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


def _compare(args: Namespace) -> int:
    from nh_control.figures import comparison as figures
    from nh_control.figures.style import save
    from nh_control.integrators import INTEGRATORS
    from nh_control.runs.output import folder
    from nh_control.studies.comparison import compare
    from nh_control.studies.motion import motion_of

    scenario = find_scenario(args.scenario)
    with usage_errors(scenario.file):
        motion = motion_of(scenario, args.duration, args.reference)
        # the finest step determines the memory and the time that the figures need
        if motion.duration > MOST_STEPS * args.step:
            raise ValueError(
                f"--step {args.step:g} means more than {MOST_STEPS:_} steps in "
                f"{motion.duration:g} s; choose {motion.duration / MOST_STEPS:g} or more"
            )
        chosen = _chosen(args.methods, INTEGRATORS.with_additional(scenario.integrators))
        out = folder(f"{scenario.label or scenario.name}-comparison", args.output, args.overwrite)
    with usage_errors(scenario.file, files=False):
        result = compare(
            motion, chosen, args.step, progress=lambda name: print(f"{name} ...", file=sys.stderr)
        )
    save(lambda: figures.work_precision(result), out / "work_precision.png")
    save(lambda: figures.energy(result), out / "energy.png")
    numbers = _numbers(result)
    (out / "numbers.json").write_text(json.dumps(numbers, indent=2) + "\n")
    if args.json:
        print(json.dumps(numbers, indent=2))
    else:
        _print_times(result)
        print(f"{out}: work_precision.png, energy.png, numbers.json")
    return 0


def _chosen(names: Sequence[str], integrators: Mapping[str, Integrator]) -> dict[str, Integrator]:
    """Return the named integrators. The default is those of the scenario and the accurate ones."""
    from nh_control.integrators import INTEGRATORS

    if unknown := [name for name in names if name not in integrators]:
        raise ValueError(f"unknown integrators {unknown}, choose from: {', '.join(integrators)}")
    if names:
        return {name: integrators[name] for name in names}
    return {
        name: integrator
        for name, integrator in integrators.items()
        if name not in INTEGRATORS
        or (integrator.order or 0) >= 4
        or name == "nonholonomic_midpoint"
    }


def _numbers(result: Comparison) -> dict[str, Any]:
    return {
        "system": result.motion.system.name,
        "motion": _motion(result.motion),
        "uncertainty": result.uncertainty,
        "work": {
            name: [asdict(point) for point in points] for name, points in result.work.items()
        },
        "energy_step_s": result.step_s,
        "largest_energy_error": {n: float(abs(d.energy).max()) for n, d in result.drifts.items()},
        "largest_constraint": {n: float(d.constraint.max()) for n, d in result.drifts.items()},
        "refused": dict(result.refused),
    }


def _motion(motion: InitialValueProblem) -> dict[str, Any]:
    values = {name: getattr(motion, name).tolist() for name in ("q", "v", "u")}
    return values | {"duration_s": motion.duration}


def _print_times(result: Comparison) -> None:
    from nh_control.studies.comparison import seconds_at

    rows = []
    # processor time at which the error is reached, interpolated; infinite if it is not reached
    for name, points in result.work.items():
        times = {f"ms for {e:.0e}": 1e3 * seconds_at(points, e) for e in AT}
        texts = {label: "-" if t == float("inf") else f"{t:.3f}" for label, t in times.items()}
        drift = result.drifts.get(name)
        largest = "-" if drift is None else f"{abs(drift.energy).max():.1e}"
        rows.append({"method": name, **texts, "largest energy error": largest})
    _print_table(rows)
    for name, reason in result.refused.items():
        print(f"{name}: {reason}")
