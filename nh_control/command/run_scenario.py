"""`nh_control simulate` and `nh_control run`: a closed loop in this process or as nodes, and its
results.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from nh_control.command.usage import (
    FAILED,
    INTERRUPTED,
    PROGRAM,
    UsageError,
    usage_errors,
    writing,
)

if TYPE_CHECKING:
    from nh_control.numerics.progress import Progress
    from nh_control.runs.experiment import Experiment, Result
    from nh_control.runs.settings import RunSettings

SLOW = 0.95
"""Fraction of the requested rate below which a run was too slow."""


def simulate(args: Namespace) -> int:
    """Run in this process; returns the exit code."""
    from nh_control.numerics.progress import Progress

    with Progress() as progress:
        experiment = make_experiment(args, progress)
        folder = results_folder(args, experiment)
        with args.interruption.waiting():
            result = _simulated(experiment, args, progress)
        files = save_results(result, folder, args, progress)
    print_results(result, files, folder, args)
    if args.interruption.requested:
        print(f"{PROGRAM}: interrupted; the finished steps are saved", file=sys.stderr)
        return INTERRUPTED
    if result.stopped:
        print(f"{PROGRAM}: error: {result.stopped}", file=sys.stderr)
    return FAILED if result.stopped else 0


def _simulated(experiment: Experiment, args: Namespace, progress: Progress) -> Result:
    """Return the run and, for comparison, the open loop from the same start, up to Ctrl-C."""
    from nh_control.runs.experiment import Result

    def interrupted() -> bool:
        return args.interruption.requested

    feedback, steps = not args.open_loop and experiment.model.nu > 0, experiment.steps
    start = time.perf_counter()
    loop = experiment.run(feedback, progress.steps("simulating", steps), interrupted)
    wall_s = time.perf_counter() - start
    stopped = "" if loop.failure is None else str(loop.failure)
    if interrupted() and len(loop.trajectory) < steps:
        stopped = f"interrupted after {len(loop.trajectory)} of {steps} steps"
    open_loop = experiment.run(feedback=False, stop=interrupted) if feedback else loop
    return Result(
        experiment, loop, None if interrupted() else open_loop, wall_s, feedback, stopped
    )


def run(args: Namespace) -> int:
    """Run as nodes; returns the exit code."""
    from nh_control.command.options import settings
    from nh_control.numerics.progress import Progress
    from nh_control.runs import launcher, output

    _require_programs(args)
    error, stopped, finished = "", "", True
    result: Result | None = None
    files: dict[str, str] = {}
    with Progress() as progress:
        experiment = make_experiment(args, progress)
        with usage_errors(experiment.scenario.file):
            experiment.scenario.require_messages(experiment.model.system)
        folder = results_folder(args, experiment)
        options = settings(args)
        running = progress.clock(
            "running", experiment.steps * experiment.model.h, options.speed_factor
        )
        if options.view:
            running = launcher.telling(
                lambda line: print(line, file=sys.stderr, flush=True), folder, running
            )
        progress.phase("starting nodes")
        start = time.perf_counter()
        try:
            finished = launcher.run(
                experiment,
                options,
                folder,
                running,
            )
            stopped = "" if finished else "interrupted"
        except launcher.NodeFailed as failure:
            error, stopped = str(failure), failure.reason
        wall_s = time.perf_counter() - start
        if options.record:
            result, error = read_recording(experiment, folder, wall_s, stopped, error)
        if result is not None:
            files = save_results(result, folder, args, progress)
    if result is not None:
        print_results(result, files, folder, args)
        error = error or (result.stopped if finished else "")
        if slow := too_slow(result, options):
            print(f"{PROGRAM}: {slow}", file=sys.stderr)
    else:
        print(f"logs in {folder / output.LOGS}/")
    if error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
    return FAILED if error else 0 if finished else INTERRUPTED


def _require_programs(args: Namespace) -> None:
    """Raise UsageError if ROS or the web server of the page is missing, or options disagree."""
    from nh_control.runs import launcher

    try:
        launcher.require_ros(record=args.record)
    except launcher.RosMissing as missing:
        raise UsageError(str(missing)) from missing
    if args.view:
        from nh_control.view import live_server

        try:
            live_server.require_aiohttp()
        except live_server.ViewMissing as missing:
            raise UsageError(str(missing)) from missing
    if args.json and not args.record:
        raise UsageError("--json prints results of the recording: leave --no-record out")


def too_slow(result: Result, options: RunSettings) -> str:
    """Return a sentence if the nodes were slower than asked for, or missed many steps, else ""."""
    if result.ros is None or not options.speed_factor or options.lockstep:
        return ""
    wanted_hz, steps = (
        options.speed_factor / result.experiment.model.h,
        len(result.loop.trajectory),
    )
    rate_hz, missed = result.ros["rate_hz"], result.ros["missed_steps"]
    if rate_hz >= SLOW * wanted_hz and missed <= (1 - SLOW) * steps:
        return ""
    return (
        f"this machine was too slow for real time: {rate_hz:.4g} of {wanted_hz:.4g} steps/s, "
        f"{missed} of {steps} steps late; use a smaller --speed-factor, a longer --step, "
        f"--no-display or --lockstep"
    )


def read_recording(
    experiment: Experiment, folder: Path, wall_s: float, stopped: str, error: str
) -> tuple[Result | None, str]:
    """Return the result of the recording, or None if it cannot be read, and the error."""
    from nh_control.runs import output, recording

    try:
        recorded = recording.read(folder / output.RECORDING, experiment.scenario, experiment.model)
    except recording.RecordingError as unreadable:
        if stopped == "interrupted":  # before the first message
            print(f"{PROGRAM}: interrupted; nothing was recorded", file=sys.stderr)
            return None, ""
        return None, error or str(unreadable)
    return recording.result(recorded, experiment, wall_s, stopped), error


def make_experiment(args: Namespace, progress: Progress) -> Experiment:
    """Return the experiment that the arguments ask for."""
    from nh_control.command.options import settings
    from nh_control.runs.build import build

    progress.phase("preparing model, reference and gains")
    with usage_errors(args.scenario.file):
        return build(settings(args), args.scenario)


def results_folder(args: Namespace, experiment: Experiment) -> Path:
    """Return the folder of the results: a new one, or the given one."""
    from nh_control.runs import output

    try:
        return output.folder("-".join(experiment.labels), args.output, args.overwrite)
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from error


# Results -----------------------------------------------------------------------------------------


def save_results(
    result: Result, folder: Path, args: Namespace, progress: Progress
) -> dict[str, str]:
    """Write the files of a result into the folder; returns {name: file}."""
    from nh_control.numerics.files import whole_file
    from nh_control.runs import output
    from nh_control.runs.summary import summarize

    files = {"results": str(folder / output.RESULTS), "summary": str(folder / output.SUMMARY)}
    with writing(folder):
        result.save(files["results"])
        with whole_file(files["summary"]) as file:
            file.write((json.dumps(summarize(result), indent=2) + "\n").encode())
    if not args.no_plots and len(result.loop.trajectory):
        from nh_control import figures

        def drawing(name: str) -> None:
            progress.phase(f"drawing {name}")

        with writing(folder), usage_errors(result.experiment.scenario.file, files=False):
            files |= figures.save_all(result, folder, drawing)
    return files


def print_results(result: Result, files: dict[str, str], folder: Path, args: Namespace) -> None:
    """Print the summary and the files of a result."""
    from nh_control.runs.summary import summarize, table

    if args.json:
        print(json.dumps({**summarize(result), "output": str(folder), "files": files}))
        return
    from rich.console import Console

    Console().print(table(summarize(result)))
    print(f"\nresults in {folder}/")
