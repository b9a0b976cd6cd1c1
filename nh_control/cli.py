"""The command `nh_control`: list scenarios, simulate one in this process, or run it as ROS 2
nodes; figures, a table and files come out.

Exit codes: 0 done, 1 the run stopped early (what there is, is saved), 2 wrong usage, 130
interrupted. Results go to stdout, progress to stderr.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from dataclasses import asdict, fields
from pathlib import Path

FAILED, USAGE, INTERRUPTED = 1, 2, 130


class UsageError(Exception):
    """The command cannot do what it was asked; the message names the remedy."""


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = _parser()
    args = parser.parse_args(argv)
    try:
        return args.command(args)
    except UsageError as error:
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print(f"{parser.prog}: interrupted", file=sys.stderr)
        return INTERRUPTED


# Arguments ---------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nh_control",
        description="Simulate and control mechanical systems with structure-preserving "
        "integrators, in one process or as ROS 2 nodes.",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    listing = commands.add_parser(
        "list", help="scenarios with their integrators, references, parameters and actuators"
    )
    listing.add_argument(
        "--json", action="store_true", help="print one JSON object instead of tables"
    )
    listing.set_defaults(command=_list)
    simulate = _add_command(commands, "simulate", "run a scenario in this process, without ROS")
    simulate.add_argument(
        "--open-loop", action="store_true", help="apply the reference's inputs without feedback"
    )
    simulate.set_defaults(command=_simulate)
    run = _add_command(commands, "run", "run a scenario as ROS 2 nodes in processes of their own")
    run.add_argument(
        "--speed-factor",
        type=_number(0),
        default=1.0,
        metavar="X",
        help="simulated over real time, 0 = as fast as possible",
    )
    run.add_argument(
        "--lockstep",
        action="store_true",
        help="the plant waits in each step for the command that answers its state",
    )
    run.add_argument(
        "--display",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="run the display node as well: markers for rviz and Foxglove",
    )
    run.add_argument(
        "--no-record",
        action="store_true",
        help="run the nodes only: no recording, and so no figures and no table",
    )
    run.set_defaults(command=_run)
    return parser


def _add_command(commands, name: str, text: str) -> argparse.ArgumentParser:
    """A command on a scenario with the options that `simulate` and `run` share."""
    parser = commands.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        usage=f"nh_control {name} SCENARIO [options]",
        formatter_class=_Help,
    )
    add = parser.add_argument
    add("scenario", metavar="SCENARIO", help="what to run; `nh_control list` shows all")
    add(
        "--urdf",
        default="",
        metavar="FILE",
        help="robot of the scenario urdf (default: a double pendulum)",
    )
    add(
        "--base",
        choices=("fixed", "floating"),
        default="fixed",
        help="whether the root link of that robot is fixed or floating",
    )
    add(
        "--reference",
        default="",
        metavar="NAME",
        help="motion to track (default: the scenario's first)",
    )
    add(
        "--integrator",
        default="",
        metavar="NAME",
        help="integrator of the tracker's model (default: the scenario's first)",
    )
    add(
        "--step",
        type=_number(0, open_=True),
        default=0.0,
        metavar="S",
        help="step of model and commands in s (default: the scenario's)",
    )
    add(
        "--duration",
        type=_number(0, open_=True),
        default=0.0,
        metavar="S",
        help="simulated time in s (default: the reference's length)",
    )
    add(
        "--integral",
        action="store_true",
        help="let the tracker estimate a constant disturbance and compensate it",
    )
    add(
        "--plant-integrator",
        default="",
        metavar="NAME",
        help="integrator of the plant (default: the model's)",
    )
    add(
        "--plant-substeps",
        type=_integer(1),
        default=1,
        metavar="N",
        help="steps of the plant in one step of the model",
    )
    text = (
        "physical parameter of the plant, numbers separated by commas where there are "
        "several; repeatable"
    )
    add(
        "--plant-parameter",
        type=_assignment,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=text,
    )
    add(
        "--perturb-position",
        type=_number(),
        default=0.1,
        metavar="M",
        help="initial position error in m",
    )
    add(
        "--perturb-heading",
        type=_number(),
        default=0.1,
        metavar="RAD",
        help="initial heading error in rad",
    )
    add(
        "--perturb-momentum",
        type=_number(),
        default=0.1,
        metavar="FRACTION",
        help="initial relative error of the momenta",
    )
    add(
        "--perturb-swing",
        type=_number(),
        default=0.0,
        metavar="RAD",
        help="initial swing of every link away from the reference's in rad",
    )
    add(
        "--perturb-tilt",
        type=_number(),
        default=0.0,
        metavar="RAD",
        help="initial tilt of every quadrotor away from the reference's in rad",
    )
    add(
        "--perturb-seed",
        type=_integer(-1),
        default=-1,
        metavar="N",
        help="draw the error's direction and signs from this seed; -1: left, turned left, faster",
    )
    add(
        "--wind-force",
        type=_number(),
        nargs=3,
        default=(0.0, 0.0, 0.0),
        metavar=("X", "Y", "Z"),
        help="constant wind force on the payload in N",
    )
    add(
        "--wind-start",
        type=_number(0),
        default=0.0,
        metavar="S",
        help="simulated time at which the wind begins in s",
    )
    add(
        "--wind-duration",
        type=_number(0),
        default=0.0,
        metavar="S",
        help="how long the wind blows in s, 0 = for ever after",
    )
    add(
        "--output",
        default=None,
        metavar="DIR",
        help="folder of the results (default: a new nh_control_output/<scenario>-<reference>)",
    )
    add("--overwrite", action="store_true", help="replace results in a given --output")
    add("--no-plots", action="store_true", help="draw no figures")
    add("--json", action="store_true", help="print one JSON object instead of the table")
    return parser


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Adds defaults of numbers only; of the others the help text speaks where needed."""

    def _get_help_string(self, action):
        return (
            super()._get_help_string(action)
            if isinstance(action.default, float) and action.default
            else action.help
        )


def _number(minimum: float = -math.inf, open_: bool = False):
    def number(text: str) -> float:
        value = float(text)
        if not math.isfinite(value) or value < minimum or (open_ and value == minimum):
            bound = "" if minimum == -math.inf else f" {'>' if open_ else '>='} {minimum:g}"
            raise argparse.ArgumentTypeError(f"must be a finite number{bound}, got {text!r}")
        return value

    return number


def _integer(minimum: int):
    def integer(text: str) -> int:
        value = int(text)
        if value < minimum:
            raise argparse.ArgumentTypeError(f"must be an integer >= {minimum}, got {text!r}")
        return value

    return integer


def _assignment(text: str) -> tuple[str, float | tuple[float, ...]]:
    name, _, value = text.partition("=")
    try:
        values = tuple(float(part) for part in value.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be NAME=VALUE with a number or several, e.g. m=1.1 or lengths=0.6,0.7, got "
            f"{text!r}"
        ) from None
    return name, values if len(values) > 1 else values[0]


# Commands ----------------------------------------------------------------------------------------


def _list(args) -> int:
    from nh_control import scenarios

    entries = [_entry(scenarios.get(name)) for name in scenarios.names()]
    if args.json:
        print(json.dumps({entry.pop("scenario"): entry for entry in entries}, indent=2))
        return 0
    from rich.console import Console
    from rich.table import Table

    for entry in entries:
        out = Table(
            title=f"{entry['scenario']}: {entry['title']}",
            title_justify="left",
            show_header=False,
            box=None,
            padding=(0, 2, 0, 0),
        )
        for label in ("references", "integrators"):
            first, *others = entry[label]
            out.add_row(label, ", ".join([f"{first} (default)", *others]))
        out.add_row("step", f"{entry['step_s']:g} s")
        out.add_row(
            "parameters",
            ", ".join(f"{name} = {_text(value)}" for name, value in entry["parameters"].items()),
        )
        for name, (lower, upper, unit) in entry["actuators"].items():
            out.add_row("actuator", f"{name}, {lower:g} ... {upper:g} {unit}")
        Console().print(out)
    return 0


def _text(value: float | tuple[float, ...]) -> str:
    return ",".join(f"{number:g}" for number in (value if isinstance(value, tuple) else (value,)))


def _entry(scenario) -> dict:
    system = scenario.make_system(scenario.parameters)
    names = system.inputs + system.prescribed
    limits = zip(
        names,
        system.input_bounds.tolist(),
        (*(system.input_units or [""] * system.nu), *[""] * len(system.prescribed)),
    )
    return {
        "scenario": scenario.name,
        "title": scenario.title,
        "references": list(scenario.references),
        "integrators": list(scenario.integrators),
        "step_s": scenario.step_s,
        "parameters": asdict(scenario.parameters),
        "actuators": {name: (*bounds, unit) for name, bounds, unit in limits},
    }


def _simulate(args) -> int:
    from nh_control.numerics.progress import Progress
    from nh_control.runs.experiment import Result

    with Progress() as progress:
        experiment = _experiment(args, progress)
        folder = _folder(args, experiment)
        start = time.perf_counter()
        loop = experiment.run(not args.open_loop, progress.steps("simulating", experiment.steps))
        wall_s = time.perf_counter() - start
        open_loop = loop if args.open_loop else experiment.run(feedback=False)
        stopped = "" if loop.failure is None else str(loop.failure)
        result = Result(experiment, loop, open_loop, wall_s, not args.open_loop, stopped)
        files = _save(result, folder, args, progress)
    _report(result, files, folder, args)
    if stopped:
        print(f"nh_control: error: {stopped}", file=sys.stderr)
    return FAILED if stopped else 0


def _run(args) -> int:
    from nh_control.numerics.progress import Progress
    from nh_control.runs import launcher

    try:
        launcher.require_ros(record=not args.no_record)
    except launcher.RosMissing as error:
        raise UsageError(str(error)) from error
    if args.no_record and args.json:
        raise UsageError("--json prints what the recording says: leave --no-record out")
    error, stopped, result, files = "", "", None, {}
    with Progress() as progress:
        experiment = _experiment(args, progress)
        folder = _folder(args, experiment)
        options = launcher.Options(
            args.speed_factor, args.lockstep, args.display, not args.no_record
        )
        progress.phase("starting nodes")
        start = time.perf_counter()
        try:
            finished = launcher.run(
                experiment,
                options,
                folder,
                progress.clock(
                    "running", experiment.steps * experiment.model.h, options.speed_factor
                ),
            )
            stopped = "" if finished else "interrupted"
        except launcher.NodeFailed as failure:
            finished, error, stopped = True, str(failure), failure.reason
        wall_s = time.perf_counter() - start
        if options.record:
            result, error = _recorded(experiment, folder, wall_s, stopped, error)
        if result is not None:
            files = _save(result, folder, args, progress)
    if result is not None:
        _report(result, files, folder, args)
        error = error or (result.stopped if finished else "")
    else:
        print(f"logs in {folder / launcher.LOGS}/")
    if error:
        print(f"nh_control: error: {error}", file=sys.stderr)
    return FAILED if error else 0 if finished else INTERRUPTED


def _recorded(experiment, folder: Path, wall_s: float, stopped: str, error: str):
    """The result read back from the recording, None if it cannot be, and the error."""
    from nh_control.runs import output, recording

    try:
        recorded = recording.read(folder / output.RECORDING, experiment.scenario, experiment.model)
    except recording.RecordingError as unreadable:
        return None, error or str(unreadable)
    return recording.result(recorded, experiment, wall_s, stopped), error


def _experiment(args, progress):
    from nh_control import scenarios
    from nh_control.discrete.results import StepFailed
    from nh_control.runs.experiment import Experiment
    from nh_control.scenarios import Gust, Perturbation, PlantOptions

    progress.phase("preparing model, reference and gains")
    perturbation = Perturbation(
        **{field.name: getattr(args, f"perturb_{field.name}") for field in fields(Perturbation)}
    )
    gust = (
        Gust(tuple(args.wind_force), args.wind_start, args.wind_duration)
        if any(args.wind_force)
        else None
    )
    try:
        options = PlantOptions(
            args.plant_integrator, args.plant_substeps, dict(args.plant_parameter)
        )
        scenario = scenarios.get(args.scenario, args.urdf, args.base)
        return Experiment.make(
            scenario,
            args.reference,
            args.integrator,
            args.step,
            options,
            perturbation,
            args.integral,
            args.duration,
            gust,
        )
    except (ValueError, OSError, StepFailed) as error:
        raise UsageError(str(error)) from error


def _folder(args, experiment) -> Path:
    from nh_control.runs import output

    try:
        return output.folder(
            f"{experiment.scenario.name}-{experiment.tracker.reference.name}",
            args.output,
            args.overwrite,
        )
    except OSError as error:
        raise UsageError(str(error)) from error


# Results -----------------------------------------------------------------------------------------


def _save(result, folder: Path, args, progress) -> dict[str, str]:
    """Write the files of a result into the folder; returns {name: file}."""
    from nh_control.runs.summary import summarize

    files = {"results": str(folder / "results.npz"), "summary": str(folder / "summary.json")}
    result.save(files["results"])
    Path(files["summary"]).write_text(json.dumps(summarize(result), indent=2) + "\n")
    if not args.no_plots and len(result.loop.trajectory):
        from nh_control import figures

        files |= figures.save_all(result, folder, lambda name: progress.phase(f"drawing {name}"))
    return files


def _report(result, files: dict[str, str], folder: Path, args) -> None:
    from nh_control.runs.summary import summarize, table

    if args.json:
        print(json.dumps({**summarize(result), "output": str(folder), "files": files}))
        return
    from rich.console import Console

    Console().print(table(summarize(result)))
    print(f"\nresults in {folder}/")
