"""`nh_control identify` estimates physical parameters from a table of measurements, or from a
recording of a run or a robot.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nh_control.command.replay_run import add_recording, measured, readable, stored_run
from nh_control.command.usage import (
    PROGRAM,
    UsageError,
    find_scenario,
    usage_errors,
    writing,
)
from nh_control.command.values import assignment

if TYPE_CHECKING:
    from nh_control.control.identification import Identification
    from nh_control.control.motion_table import MeasuredMotion
    from nh_control.discrete.system import DiscreteSystem
    from nh_control.runs.experiment import Result

SEGMENT_S = 0.5
TABLES = (".csv", ".tsv", ".txt", ".npz")
RUN = (
    "with --scenario, a table of measurements (.csv or .npz) or a recording of a robot; or the "
    "folder of a `nh_control run` or `simulate`"
)


def add_to(commands: Any) -> None:
    """Add the command to a parser's commands."""
    parser = commands.add_parser("identify")
    add_recording(parser, RUN)
    add = parser.add_argument
    name = "parameter to estimate; lengths[0] for a number of a tuple; repeatable"
    add("--parameter", action="append", default=[], metavar="NAME", help=name)
    columns = (
        "for a table: the column of a coordinate, velocity, output, input or of `time`, as in "
        "theta=encoder_1, theta=encoder_1:deg, or force=0 for a constant; separated by commas, "
        "repeatable (default: the names that `nh_control list SCENARIO` shows, and time_s)"
    )
    add("--columns", action="append", default=[], metavar="NAME=COLUMN", help=columns)
    quantities = "quantity to fit, repeatable (default: all measured coordinates and outputs)"
    add("--measured", action="append", default=[], metavar="NAME", help=quantities)
    guess = "initial guess of a coordinate or velocity that is not measured; repeatable"
    add("--start", action="append", type=assignment, default=[], metavar="NAME=VALUE", help=guess)
    pieces = "length of the fitted segments of motion, in s (default: %(default)g)"
    add("--segment", type=float, default=SEGMENT_S, metavar="S", help=pieces)
    delay = (
        "time from the row of a command, or its recording, to its effect, in s (default: 0 for a "
        "table; for a recording, it is estimated with the parameters)"
    )
    add("--actuation", type=float, metavar="S", help=delay)
    add("--plot", default="", metavar="FILE", help="draw the residuals over time (.png or .pdf)")
    parser.set_defaults(command=_identify)


def _identify(args: Namespace) -> int:
    with usage_errors():
        from nh_control.runs.identification import of_motion

        if not (np.isfinite(args.segment) and args.segment > 0):
            raise UsageError(f"--segment must be a number of seconds > 0, got {args.segment}")
        model, motion, actuation_s = _motion(args)
        for note in motion.notes:
            print(f"{PROGRAM}: {note}", file=sys.stderr)
        identified = of_motion(
            model, motion, args.parameter, dict(args.start), args.segment, actuation_s
        )
    if args.plot:
        _save_plot(identified, Path(args.plot))
    if args.json:
        print(json.dumps(_summary(model, identified)))
    else:
        _show(model, identified)
    for warning in identified.warnings:
        print(f"{PROGRAM}: warning: {warning}", file=sys.stderr)
    return 0


def _motion(args: Namespace) -> tuple[DiscreteSystem, MeasuredMotion, float | None]:
    """Return the nominal model, the measured motion, and the delay of its inputs. A delay of None
    means that it is estimated.
    """
    from nh_control.control import motion_table
    from nh_control.runs.identification import joint_columns, of_robot, of_run

    path, quantities = Path(args.run), args.measured or None
    # 1. a table, which needs the scenario
    if path.suffix in TABLES and args.scenario:
        scenario = find_scenario(args.scenario, args)
        model, joints = scenario.model(args.integrator, args.step), joint_columns(scenario)
        motion = motion_table.read(model, path, _columns(args.columns), quantities, joints)
        return model, motion, args.actuation or 0.0
    if args.columns:
        raise UsageError(f"--columns is for tables, {', '.join(TABLES)}, with --scenario")
    # 2. the results of a simulation, which name their scenario
    if not args.scenario and (result := _simulated(path)) is not None:
        from nh_control.runs.measured_run import of_simulation

        faults = [str(fault) for fault in result.experiment.options.faults]
        run = of_simulation(result)
        _tell_of_faults(args, faults)
        return result.experiment.model, of_run(result.experiment.model, run, quantities), 0.0
    if path.suffix in TABLES:
        raise UsageError(f"{args.run} is a table: add --scenario NAME, the model of its motion")
    # 3. the recording of a run, and 4. that of a robot
    with readable():
        if (stored := stored_run(args)) is not None:
            from nh_control.runs import recording, run_folder

            e = stored.experiment
            run = recording.read_measured(run_folder.recording(path), e.scenario, e.model)
            _tell_of_faults(args, stored.faults)
            return e.model, of_run(e.model, run, quantities), 0.0
        _, model, states = measured(args, partly=True)
    return model, of_robot(model, states, quantities), args.actuation


def _save_plot(identified: Identification, file: Path) -> None:
    """Plot the residuals to a file. Raises UsageError for an unsupported kind of file."""
    from nh_control.figures import plot, style

    if file.suffix not in style.PROGRAM_KEY:
        kinds = ", ".join(style.PROGRAM_KEY)
        raise UsageError(f"--plot {file}: expected a file {kinds}")
    with writing(file.parent):
        style.save(lambda: plot.residuals(identified)[0].figure, file)


def _columns(texts: Sequence[str]) -> dict[str, str]:
    """Return the columns by quantity name. Raises UsageError."""
    from nh_control.control.motion_table import SYNTAX

    out = {}
    # options may be repeated, and each may contain several columns
    for part in ",".join(texts).split(",") if texts else ():
        name, separator, column = part.partition("=")
        if not (separator and name.strip() and column.strip()):
            raise UsageError(f"--columns: expected {SYNTAX}, got {part!r}")
        out[name.strip()] = column.strip()
    return out


def _simulated(path: Path) -> Result | None:
    """Return the run that `nh_control simulate` saved, or None for anything else."""
    from nh_control.runs import run_folder, saved_results
    from nh_control.runs.output import RESULTS

    # a folder of `nh_control run` also contains results.npz, but its recording is used instead
    file = path / RESULTS if path.is_dir() else path
    if run_folder.is_run(file.parent) or file.suffix != ".npz" or not file.is_file():
        return None
    return saved_results.stored(file).result


def _tell_of_faults(args: Namespace, faults: Sequence[str]) -> None:
    if faults:
        print(
            f"{PROGRAM}: {args.run} had simulated faults ({', '.join(faults)}): the measured "
            f"states and the commands are used, as for a robot",
            file=sys.stderr,
        )


def _summary(model: DiscreteSystem, fit: Identification) -> dict[str, Any]:
    return {
        "model": str(model),
        "parameters": {
            name: {"start": float(start), "value": float(value), "deviation": float(deviation)}
            for name, start, value, deviation in zip(
                fit.names, fit.start, fit.values, fit.deviations
            )
        },
        "undetermined": list(fit.undetermined),
        "warnings": list(fit.warnings),
        "covariance": fit.covariance.tolist(),
        "noise": dict(fit.noise),
        "delay_s": None
        if fit.delay is None
        else {"value": fit.delay[0], "deviation": fit.delay[1]},
        "residual_rms_before": fit.rms_before,
        "residual_rms": fit.rms,
        "residuals": fit.count,
        "residual_correlation": fit.correlation,
    }


def _show(model: DiscreteSystem, fit: Identification) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=str(model), title_justify="left", box=None, padding=(0, 2, 0, 0))
    for column in ("parameter", "start", "estimate", "standard deviation"):
        table.add_column(column)
    for name, start, value, deviation in zip(
        fit.names,
        fit.start,
        fit.values,
        fit.deviations,
    ):
        table.add_row(name, f"{start:.6g}", f"{value:.6g}", f"{deviation:.2g}")
    Console().print(table, markup=False)
    noise = ", ".join(f"{name} {value:.3g}" for name, value in fit.noise.items())
    print(
        f"residuals of {fit.count} numbers: root mean square {fit.rms_before:.3g} -> "
        f"{fit.rms:.3g}, correlation of successive residuals {fit.correlation:.2g}\n"
        f"noise: {noise}"
    )
    if fit.delay is not None:
        delay, deviation = (1e3 * number for number in fit.delay)
        print(f"commands act {delay:.3g} +- {deviation:.2g} ms after their recording")
