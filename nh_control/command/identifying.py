"""`nh_control identify`: physical parameters from a recording of a run or of a robot."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nh_control.command.replaying import add_recording, measured, readable, stored_run
from nh_control.command.usage import UsageError

if TYPE_CHECKING:
    from nh_control.control.identification import Identification
    from nh_control.control.input_history import Inputs
    from nh_control.discrete.system import DiscreteSystem
    from nh_control.runs.measurements import Measurements
    from nh_control.runs.stored import Run

SEGMENT_S = 0.5

Data = tuple[np.ndarray, np.ndarray, "list[Inputs]"]
"""Times (n) in ns, configurations (n, nq), and the inputs between them."""


def add_to(commands: Any) -> None:
    """Add the command to a parser's."""
    parser = commands.add_parser(
        "identify",
        help="physical parameters of the plant, or of a robot, from a recording: estimates with "
        "standard deviations, or which ones the motion does not determine",
    )
    add_recording(parser)
    add = parser.add_argument
    what = "parameter to estimate, lengths[0] in a list; repeatable"
    add("--parameter", action="append", default=[], metavar="NAME", help=what)
    pieces = "length of the pieces of the motion that are fitted, in s (default: %(default)g)"
    add("--segment", type=float, default=SEGMENT_S, metavar="S", help=pieces)
    delay = "of a robot: time from the sending of a command to its effect, in s"
    add("--actuation", type=float, default=0.0, metavar="S", help=delay)
    parser.set_defaults(command=_identify)


def _identify(args: Namespace) -> int:
    with readable():
        from nh_control.control.identification import identify, segments

        if not (np.isfinite(args.segment) and args.segment > 0):
            raise UsageError(f"--segment must be a number of seconds > 0, got {args.segment}")
        model, data = _data(args)
        found = identify(model, args.parameter, segments(model, *data, args.segment))
    if args.json:
        print(json.dumps(_summary(model, found)))
    else:
        _show(model, found)
    return 0


def _data(args: Namespace) -> tuple[DiscreteSystem, Data]:
    """The model that knows no better, and what was recorded."""
    run = stored_run(args)
    if run is not None:
        return run.experiment.model, _of_run(args, run)
    _, model, states = measured(args)
    return model, _of_robot(model, states, args.actuation)


def _of_run(args: Namespace, run: Run) -> Data:
    from nh_control.control.input_history import NANOSECONDS
    from nh_control.runs import recording, stored

    e = run.experiment
    recorded = recording.read(stored.recording(Path(args.run)), e.scenario, e.model)
    known, h = np.array(recorded.known), e.model.h
    inputs: list[Inputs] = [
        [(u, h) for u in recorded.inputs[first:last]] for first, last in zip(known, known[1:])
    ]
    return np.round(known * h * NANOSECONDS).astype(np.int64), recorded.q[known], inputs


def _of_robot(model: DiscreteSystem, states: Measurements, actuation_s: float) -> Data:
    """From the first command to the last: what happens without is not known."""
    inputs: list[Inputs] = list(states.inputs(model.idle(model.state_space.origin), actuation_s))
    if not len(states.sent_ns):
        return states.times_ns, states.q, inputs
    first, last = np.searchsorted(states.times_ns, (states.sent_ns[0], states.sent_ns[-1]))
    rows = slice(first, max(first, last))
    return states.times_ns[rows], states.q[rows], inputs[first : max(first, last - 1)]


def _summary(model: DiscreteSystem, found: Identification) -> dict[str, Any]:
    return {
        "model": str(model),
        "parameters": {
            name: {"start": float(start), "value": float(value), "deviation": float(deviation)}
            for name, start, value, deviation in zip(
                found.names, found.start, found.values, found.deviations
            )
        },
        "covariance": found.covariance.tolist(),
        "residual_rms_before": found.rms_before,
        "residual_rms": found.rms,
        "residuals": found.count,
    }


def _show(model: DiscreteSystem, found: Identification) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=str(model), title_justify="left", box=None, padding=(0, 2, 0, 0))
    for column in ("parameter", "start", "estimate", "standard deviation"):
        table.add_column(column)
    for name, start, value, deviation in zip(
        found.names, found.start, found.values, found.deviations
    ):
        table.add_row(name, f"{start:.6g}", f"{value:.6g}", f"{deviation:.2g}")
    Console().print(table, markup=False)
    print(
        f"residuals of {found.count} numbers: root mean square {found.rms_before:.3g} -> "
        f"{found.rms:.3g} (m, rad)"
    )
