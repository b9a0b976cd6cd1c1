"""`nh_control replay` applies a recorded run's commands to the plant, or passes a robot's
recorded states to the tracker, and shows the differences.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nh_control.command.options import add_robot
from nh_control.command.usage import (
    FAILED,
    PROGRAM,
    UsageError,
    find_scenario,
    usage_errors,
)
from nh_control.command.values import bounded_number

if TYPE_CHECKING:
    from nh_control.runs.measurements import Measurements
    from nh_control.runs.run_folder import Run
    from nh_control.scenarios import Scenario

RUN = "folder written by `nh_control run`, or a robot's recording with --scenario"
ESTIMATORS = ("kalman", "none")


def add_to(commands: Any) -> None:
    """Add the command to a parser's commands."""
    parser = commands.add_parser("replay")
    add_recording(parser)
    parser.add_argument(
        "--reference", default="", metavar="NAME", help="for a robot: reference of its tracker"
    )
    parser.add_argument(
        "--estimator",
        choices=ESTIMATORS,
        default=ESTIMATORS[0],
        help="for a robot: how to estimate states from measurements (default: %(default)s)",
    )
    parser.add_argument(
        "--no-compensation",
        action="store_true",
        help="for a robot: compute commands for the measured states, not for the states that are "
        "predicted for the time when the commands act",
    )
    parser.set_defaults(command=_replay)


def add_recording(parser: Any, text: str = RUN) -> None:
    """Add the arguments that describe the recording and its robot."""
    add = parser.add_argument
    add("run", metavar="RUN", help=text)
    add("--scenario", default="", metavar="NAME", help="scenario, file or module of the robot")
    add_robot(parser.add_argument)
    add("--integrator", default="", metavar="NAME", help="integrator of a robot's model")
    add(
        "--step",
        type=bounded_number(0),
        default=0.0,
        metavar="S",
        help="step of a robot's model in s",
    )
    add("--json", action="store_true", help="print one JSON object")


@contextmanager
def readable() -> Iterator[None]:
    """Raise UsageError for a recording that cannot be read."""
    try:
        import rosbags  # noqa: F401
    except ImportError as missing:
        raise UsageError(f"recordings need rosbags ({missing}): pip install rosbags") from missing
    from nh_control.runs.decoding import RecordingError

    with usage_errors():
        try:
            yield
        except RecordingError as unreadable:
            raise UsageError(str(unreadable)) from unreadable


def stored_run(args: Namespace) -> Run | None:
    """Return the run that `nh_control run` saved in the folder, or None if --scenario names a
    robot's scenario.
    """
    from nh_control.runs import run_folder

    if args.scenario:
        return None
    if not run_folder.is_run(Path(args.run)):
        raise UsageError(
            f"{args.run} is not a folder written by `{PROGRAM} run`; for a recording, "
            "add --scenario NAME"
        )
    return run_folder.load(Path(args.run))


def measured(args: Namespace, partly: bool = False) -> tuple[Scenario, Any, Measurements]:
    """Return the scenario, the model and the measurements of a robot's recording. With `partly`,
    some joints may be missing from the recording.
    """
    from nh_control.runs import measurements, run_folder

    scenario = find_scenario(args.scenario, args)
    model = scenario.model(args.integrator, args.step)
    return (
        scenario,
        model,
        measurements.read(run_folder.recording(Path(args.run)), scenario, model, partly),
    )


def _replay(args: Namespace) -> int:
    with readable():
        run = stored_run(args)
        summary = _of_robot(args) if run is None else _of_run(args, run)
    if args.json:
        print(json.dumps(summary))
    else:
        show(summary)
    if summary["stopped"]:
        print(f"{PROGRAM}: error: {summary['stopped']}", file=sys.stderr)
    return FAILED if summary["stopped"] else 0


def _of_run(args: Namespace, run: Run) -> dict[str, Any]:
    """Return the summary of the plant under the recorded commands. For a run in lock-step, which
    repeats exactly, a difference counts as a failure.
    """
    from nh_control.runs import recording, run_folder
    from nh_control.runs.replay import replay

    e = run.experiment
    if run.faults:
        raise UsageError(
            f"{args.run} had simulated faults ({', '.join(run.faults)}): the recorded states and "
            "commands contain them, so a replay would differ; replay a run without --fault"
        )
    recorded = recording.read(run_folder.recording(Path(args.run)), e.scenario, e.model)
    outcome, space = replay(e, recorded), e.model.system.space
    stopped = outcome.stopped
    # in lock-step, each command acted on the state that it answers, so the result must be bitwise
    # identical
    if run.lockstep and outcome.largest > 0:
        stopped = stopped or (
            f"this run was in lock-step, but its replay differs from step {outcome.first} on: "
            "replay it with the same version on the same machine"
        )
    return {
        "scenario": e.scenario.name,
        "plant": str(e.plant),
        "reference": e.tracker.reference.name,
        "lockstep": run.lockstep,
        "steps": len(outcome.steps) - 1,
        "states_missing": recorded.missing,
        "commands_missing": recorded.n_repeated_commands,
        "largest_difference": outcome.largest,
        "first_step_with_difference": outcome.first,
        "differences": {
            **_largest(space.names, outcome.configurations),
            **_largest(space.velocity_names, outcome.velocities),
        },
        "stopped": stopped,
    }


def _of_robot(args: Namespace) -> dict[str, Any]:
    """Return the summary of the tracker's commands, compared with the recorded commands."""
    from nh_control.loop.hardware_estimate import FilteredState, MeasuredState
    from nh_control.loop.hardware_tracker import HardwareTracker, Timing
    from nh_control.loop.reference_sequence import ReferenceSequence
    from nh_control.runs.tracker_replay import replay

    scenario, model, states = measured(args)
    reference = scenario.reference(model, args.reference)
    estimate = (
        # 1 mm or 1 mrad of noise, and unknown accelerations of 1 m/s^2 or rad/s^2
        FilteredState(model, 1e-3, 1.0) if args.estimator == "kalman" else MeasuredState(model)
    )
    timing = Timing(compensate=not args.no_compensation)
    sequence = ReferenceSequence(scenario.tracker(model, reference))
    outcome = replay(HardwareTracker(sequence, estimate, timing, body=scenario.body), states)
    if not outcome.answers:
        reason = outcome.stopped or outcome.refused[-1]
        raise UsageError(
            f"{args.run}: the tracker computed no command for any of {len(states)} states, the "
            f"last time because of: {reason}; stamps must come from the recorder's clock; "
            f"--no-compensation accepts other stamps"
        )
    difference, error = outcome.difference, np.abs(outcome.errors[:, : model.system.space.nv])
    return {
        "scenario": scenario.name,
        "model": str(model),
        "reference": reference.name,
        "states": len(states),
        "states_refused": len(outcome.refused),
        "last_refusal": outcome.refused[-1] if outcome.refused else "",
        "commands_recorded": len(states.u),
        "commands_compared": len(difference),
        "differences": _largest(model.inputs, np.abs(difference)),
        "differences_rms": dict(
            zip(model.inputs, np.sqrt(np.mean(difference**2, axis=0)).tolist())
            if len(difference)
            else ()
        ),
        "largest_error": _largest(model.state_space.tangent_names, error),
        "stopped": outcome.stopped,
    }


def _largest(names: Sequence[str], rows: np.ndarray) -> dict[str, float]:
    return dict(zip(names, rows.max(axis=0, initial=0.0).tolist()))


def show(summary: dict[str, Any]) -> None:
    """Print a summary as a table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for key, value in summary.items():
        if isinstance(value, dict):
            value = ", ".join(f"{name} {number:.3g}" for name, number in value.items())
        # empty values would be empty rows
        if value not in ("", None):
            table.add_row(
                key.replace("_", " "), f"{value:.3g}" if isinstance(value, float) else str(value)
            )
    Console().print(table, markup=False)
