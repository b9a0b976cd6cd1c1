"""`nh_control identify`: estimate physical parameters from a recording of a run or of a robot."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nh_control.command.replay_run import add_recording, measured, readable, stored_run
from nh_control.command.usage import PROGRAM, UsageError, usage_errors

if TYPE_CHECKING:
    from nh_control.control.identification import Identification
    from nh_control.control.input_history import Inputs
    from nh_control.control.parameter_fit import MotionSegment
    from nh_control.discrete.system import DiscreteSystem
    from nh_control.runs.experiment import Experiment, Result
    from nh_control.runs.measured_run import MeasuredRun
    from nh_control.runs.measurements import Measurements

SEGMENT_S = 0.5
LEAST = 3
"""Least number of measurements in a segment of motion."""


def add_to(commands: Any) -> None:
    """Add the command to a parser's commands."""
    parser = commands.add_parser(
        "identify",
        help="estimate physical parameters of the plant or of a robot from a run or a recording, "
        "with standard deviations; refuse parameters that the motion does not determine",
    )
    add_recording(parser)
    add = parser.add_argument
    name = "parameter to estimate, lengths[0] for a number of a tuple; repeatable"
    add("--parameter", action="append", default=[], metavar="NAME", help=name)
    pieces = "length of the fitted segments of motion, in s (default: %(default)g)"
    add("--segment", type=float, default=SEGMENT_S, metavar="S", help=pieces)
    delay = (
        "of a robot: time from the recording of a command to its effect, in s (default: estimated "
        "with the parameters)"
    )
    add("--actuation", type=float, metavar="S", help=delay)
    parser.set_defaults(command=_identify)


def _identify(args: Namespace) -> int:
    with usage_errors():
        from nh_control.control.identification import identify

        if not (np.isfinite(args.segment) and args.segment > 0):
            raise UsageError(f"--segment must be a number of seconds > 0, got {args.segment}")
        model, pieces = _pieces(args)
        identification = identify(model, args.parameter, pieces)
    if args.json:
        print(json.dumps(_summary(model, identification)))
    else:
        _show(model, identification)
    return 0


def _pieces(
    args: Namespace,
) -> tuple[DiscreteSystem, Sequence[MotionSegment] | Callable[[float], Sequence[MotionSegment]]]:
    """Return the nominal model and the recorded segments."""
    if not args.scenario and (result := _simulated(Path(args.run))) is not None:
        from nh_control.runs.measured_run import of_simulation

        faults = [str(fault) for fault in result.experiment.options.faults]
        return result.experiment.model, _of_run(
            args, result.experiment, of_simulation(result), faults
        )
    with readable():
        if (run := stored_run(args)) is not None:
            from nh_control.runs import recording, run_folder

            e, folder = run.experiment, run_folder.recording(Path(args.run))
            read = recording.read_measured(folder, e.scenario, e.model)
            return e.model, _of_run(args, e, read, run.faults)
        _, model, states = measured(args)
    if args.actuation is not None:
        return model, of_robot(model, states, args.segment, args.actuation)
    return model, partial(of_robot, model, states, args.segment)


def _simulated(path: Path) -> Result | None:
    """Return the run that `nh_control simulate` has left, None for anything else."""
    from nh_control.runs import run_folder, saved_results
    from nh_control.runs.output import RESULTS

    file = path / RESULTS if path.is_dir() else path
    if run_folder.is_run(file.parent) or file.suffix != ".npz" or not file.is_file():
        return None
    return saved_results.stored(file).result


def _of_run(
    args: Namespace, e: Experiment, measured: MeasuredRun, faults: Sequence[str]
) -> list[MotionSegment]:
    from nh_control.control.identification import segments
    from nh_control.control.input_history import NANOSECONDS

    h = e.model.h
    if faults:
        print(
            f"{PROGRAM}: {args.run} had simulated faults ({', '.join(faults)}): the measured "
            f"states and the commands are used, as of a robot",
            file=sys.stderr,
        )
    inputs: list[Inputs] = [
        [(u, h) for u in measured.commands[first:last]]
        for first, last in zip(measured.steps, measured.steps[1:])
    ]
    times = np.round(measured.steps * h * NANOSECONDS).astype(np.int64)
    return segments(e.model, times, measured.q, inputs, args.segment)


def of_robot(
    model: DiscreteSystem, states: Measurements, length_s: float, actuation_s: float
) -> list[MotionSegment]:
    """Return segments from the first command to the last, because inputs outside this time are
    unknown. Raises ValueError if there are none.
    """
    from nh_control.control.identification import segments

    inputs: list[Inputs] = list(states.inputs(model.idle(model.state_space.origin), actuation_s))
    rows = slice(None)
    if len(states.sent_ns):
        first, last = np.searchsorted(states.times_ns, (states.sent_ns[0], states.sent_ns[-1]))
        rows = slice(first, max(first, last))
        if last - first < LEAST:
            raise ValueError(
                f"{max(0, last - first)} of {len(states)} states lie between the first command "
                f"and the last, expected {LEAST} or more: record stamps of the recorder's clock"
            )
    times, q = states.times_ns[rows], states.q[rows]
    return segments(model, times, q, inputs[rows][: max(0, len(q) - 1)], length_s)


def _summary(model: DiscreteSystem, fit: Identification) -> dict[str, Any]:
    return {
        "model": str(model),
        "parameters": {
            name: {"start": float(start), "value": float(value), "deviation": float(deviation)}
            for name, start, value, deviation in zip(
                fit.names, fit.start, fit.values, fit.deviations
            )
        },
        "covariance": fit.covariance.tolist(),
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
    print(
        f"residuals of {fit.count} numbers: root mean square {fit.rms_before:.3g} -> "
        f"{fit.rms:.3g} (m, rad), correlation of successive residuals {fit.correlation:.2g}"
    )
    if fit.delay is not None:
        delay, deviation = (1e3 * number for number in fit.delay)
        print(f"commands act {delay:.3g} +- {deviation:.2g} ms after their recording")
