"""`nh_control simulate` and `nh_control run`: a closed loop in this process or as nodes, and its
results.
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

PICTURES = {"path": "the motion", "error": "the tracking error"}
"""The most important figures."""
SLOW = 0.95
"""Fraction of the requested rate below which a run counts as too slow."""


def simulate(args: Namespace) -> int:
    """Run in this process. Returns the exit code."""
    from nh_control.numerics.progress import Progress
    from nh_control.runs import output
    from nh_control.runs.settings import EXTERNAL

    if args.controller == EXTERNAL:
        raise UsageError(
            "--controller external answers the messages of nodes, but simulate starts none: use "
            f"`{PROGRAM} run`, or name a controller in Python, --controller path/to/file.py:NAME"
        )
    with Progress() as progress:
        experiment = make_experiment(args, progress)
        folder = results_folder(args, experiment)
        # in `waiting`, Ctrl-C ends the simulation in an orderly way and keeps its steps so far
        with output.removed_if_empty(folder), args.interruption.waiting():
            result = _simulated(experiment, args, progress)
        summary, files = save_results(result, folder, args, progress)
    print_results(summary, files, folder, args)
    if args.interruption.requested:
        print(f"{PROGRAM}: interrupted; the finished steps are saved", file=sys.stderr)
        return INTERRUPTED
    if result.stopped:
        print(f"{PROGRAM}: error: {result.stopped}", file=sys.stderr)
    return FAILED if result.stopped else 0


def _simulated(experiment: Experiment, args: Namespace, progress: Progress) -> Result:
    """Return the run and, for comparison, the open loop from the same initial state. Ctrl-C ends
    both.
    """
    from nh_control.runs.experiment import Result

    def interrupted() -> bool:
        return args.interruption.requested

    feedback, steps = not args.open_loop and experiment.model.nu > 0, experiment.steps
    start = time.perf_counter()
    flown = experiment.scenario.autopilot is not None
    with usage_errors(files=flown):
        loop = experiment.run(feedback, progress.steps("simulating", steps), interrupted)
    wall_s = time.perf_counter() - start
    stopped = "" if loop.failure is None else str(loop.failure)
    # Ctrl-C after the last step interrupts nothing
    if interrupted() and len(loop.trajectory) < steps:
        stopped = f"interrupted after {len(loop.trajectory)} of {steps} steps"
    compared = feedback and not flown  # without feedback a craft falls, and a flight takes minutes
    open_loop = experiment.run(feedback=False, stop=interrupted) if compared else loop
    return Result(
        experiment, loop, None if interrupted() or flown else open_loop, wall_s, feedback, stopped
    )


def run(args: Namespace) -> int:
    """Run as nodes. Returns the exit code."""
    from nh_control.command.options import settings
    from nh_control.numerics.progress import Progress
    from nh_control.runs import launcher, output
    from nh_control.runs.fork_server import ForkServerFailed

    _require_programs(args)
    with usage_errors(args.scenario.file):
        options = settings(args)
    error, stopped, finished = "", "", True
    result: Result | None = None
    summary: dict[str, Any] = {}
    files: dict[str, str] = {}
    with reserved(args.domain) as domain, Progress() as progress:
        experiment = make_experiment(args, progress)
        with usage_errors(experiment.scenario.file):
            experiment.scenario.require_messages(experiment.model.system)
        folder = results_folder(args, experiment)
        running = progress.clock(
            "running", experiment.steps * experiment.model.h, options.speed_factor
        )
        if options.view:
            running = launcher.with_view_address(
                lambda line: print(line, file=sys.stderr, flush=True), folder, running
            )
        progress.phase("starting nodes")
        start = time.perf_counter()
        try:
            with writing(folder):
                finished = launcher.run(experiment, options, folder, domain, args.server, running)
            stopped = "" if finished else "interrupted"
        except launcher.NodeFailed as failure:
            error, stopped = str(failure), failure.reason
        except ForkServerFailed as failure:
            error = stopped = str(failure)
        wall_s = time.perf_counter() - start
        # read it also after a failure, because the finished part of the run has results
        if options.record:
            result, error = read_recording(experiment, folder, wall_s, stopped, error)
        if result is not None:
            summary, files = save_results(result, folder, args, progress)
    if result is not None:
        print_results(summary, files, folder, args)
        error = error or (result.stopped if finished else "")
        for text in (too_slow(result, options), *command_warnings(result)):
            if text:
                print(f"{PROGRAM}: {text}", file=sys.stderr)
    else:
        print(f"logs in {folder / output.LOGS}/")
    if error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
    return FAILED if error else 0 if finished else INTERRUPTED


@contextmanager
def reserved(number: int) -> Iterator[int]:
    """Reserve a DDS domain for nodes, and print it. Raises UsageError if another run uses the
    domain that the number or the environment fixes.
    """
    from nh_control.runs import dds_domain

    with ExitStack() as stack:
        with usage_errors():
            fixed = dds_domain.fixed_domain(number)
            domain = stack.enter_context(dds_domain.reserved_domain(fixed))
        print(f"{PROGRAM}: nodes are in the DDS domain {domain}", file=sys.stderr, flush=True)
        yield domain


def _require_programs(args: Namespace) -> None:
    """Raise UsageError if ROS or the page's web server is missing, or if options disagree."""
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
        raise UsageError("--json prints results of the recording: omit --no-record")


def too_slow(result: Result, options: RunSettings) -> str:
    """Return a sentence if the nodes were slower than requested or missed many steps, or ""."""
    from nh_control.runs.settings import LQR, MPC

    if result.ros is None or not options.speed_factor or options.lockstep:
        return ""
    wanted_hz, steps = (
        options.speed_factor / result.experiment.model.h,
        len(result.loop.trajectory),
    )
    rate_hz, missed = result.ros["rate_hz"], result.ros["missed_steps"]
    # the rate may be right although many steps were late, and vice versa
    if rate_hz >= SLOW * wanted_hz and missed <= (1 - SLOW) * steps:
        return ""
    who = "this machine" + " or the controller" * (options.controller not in (LQR, MPC))
    return (
        f"{who} was too slow for real time: {rate_hz:.4g} of {wanted_hz:.4g} steps/s, "
        f"{missed} of {steps} steps late; use a smaller --speed-factor, a longer --step, "
        f"--no-display or --lockstep"
    )


def command_warnings(result: Result) -> tuple[str, str]:
    """Return two sentences: one about commands that were not recorded, and one about a controller
    that was silent for a considerable part of the run at its end. Each is "" if there is nothing
    to report.
    """
    ros, steps, h = result.ros or {}, len(result.loop.trajectory), result.experiment.model.h
    lost, silent, unrecorded = ros.get("commands_missing_in_recording", 0), "", ""
    if lost:
        unrecorded = (
            f"warning: the recording lacks {lost} commands that the plant received: its inputs, "
            "also in the table, repeat earlier ones, or are 0 before the first one"
        )
    # the step after the last one for which a command was recorded
    since = ros.get("last_command_step", -1) + 1
    without = min(steps - since, ros.get("fallback_steps", 0))
    if not lost and without > (1 - SLOW) * steps:
        silent = (
            f"warning: no command from the controller since t = {since * h:.4g} s: the fallback "
            f"acted in {without} of the last {steps - since} steps; has the controller ended?"
        )
    return unrecorded, silent


def read_recording(
    experiment: Experiment, folder: Path, wall_s: float, stopped: str, error: str
) -> tuple[Result | None, str]:
    """Return the recording's result, which is None if it cannot be read, and the error."""
    from nh_control.runs import output, recording

    try:
        recorded = recording.read(folder / output.RECORDING, experiment.scenario, experiment.model)
    except recording.RecordingError as unreadable:
        if stopped == "interrupted":  # before the first message was recorded
            print(f"{PROGRAM}: interrupted; nothing was recorded", file=sys.stderr)
            return None, ""
        return None, error or str(unreadable)
    return recording.result(recorded, experiment, wall_s, stopped), error


def make_experiment(args: Namespace, progress: Progress) -> Experiment:
    """Build the experiment from the arguments."""
    from nh_control.command.options import settings
    from nh_control.runs.build import build

    progress.phase("preparing model, reference and gains")
    with usage_errors(args.scenario.file):
        return build(settings(args), args.scenario)


def results_folder(args: Namespace, experiment: Experiment) -> Path:
    """Return the results folder, which is new or given by the arguments."""
    from nh_control.runs import output

    try:
        return output.folder("-".join(experiment.labels), args.output, args.overwrite)
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from error


# Results -----------------------------------------------------------------------------------------


def save_results(
    result: Result, folder: Path, args: Namespace, progress: Progress
) -> tuple[dict[str, Any], dict[str, str]]:
    """Write a result's files to the folder. Returns its summary and {name: file}."""
    from nh_control.numerics.files import whole_file
    from nh_control.runs import output
    from nh_control.runs.summary import summarize

    summary = summarize(result)
    files = {"results": str(folder / output.RESULTS), "summary": str(folder / output.SUMMARY)}
    with writing(folder):
        result.save(files["results"])
        with whole_file(files["summary"]) as file:
            file.write((json.dumps(summary, indent=2) + "\n").encode())
    if not args.no_plots and len(result.loop.trajectory):
        from nh_control import figures

        figures.import_without_docstrings()

        def drawing(name: str) -> None:
            progress.phase(f"drawing {name}")

        with writing(folder), usage_errors(result.experiment.scenario.file, files=False):
            files |= figures.save_all(result, folder, drawing)
    return summary, files


def print_results(
    summary: dict[str, Any], files: dict[str, str], folder: Path, args: Namespace
) -> None:
    """Print a page about a result: the run, how well it tracked, and the next steps."""
    if args.json:
        print(json.dumps({**summary, "output": str(folder), "files": files}))
        return
    from rich.console import Console

    from nh_control.runs.summary import table

    Console().print(table(summary))
    print()
    for line in _next_steps(files, folder, args):
        print(line)


def _next_steps(files: dict[str, str], folder: Path, args: Namespace) -> Iterator[str]:
    """Yield lines about the figures, and about commands that show the motion."""
    drawn = {name: file for name, file in files.items() if file.endswith(".png")}
    if drawn:
        named = {name: f"{name}.png ({text})" for name, text in PICTURES.items() if name in drawn}
        # the most important figures come first, with a description
        others = [f"{name}.png" for name in drawn if name not in named]
        yield f"look at     {', '.join([*named.values(), *others])}"
    yield f"play back   {PROGRAM} view {folder}"
    if command := live_command(args):
        yield f"watch live  {command}"
    yield f"results in {folder}/, all numbers in {Path(files['summary']).name}"


def live_command(args: Namespace) -> str:
    """Return the command that repeats the run with a live page. Returns "" if the run already had
    such a page, and for an open loop, because nodes do not run open loops.
    """
    from nh_control.command.options import settings, words_of

    if getattr(args, "view", False) or getattr(args, "open_loop", False):
        return ""
    live = replace(settings(args), view=True)
    if "lockstep" not in args:  # commands of `simulate` are never late
        live = replace(live, lockstep=True)
    return shlex.join([PROGRAM, "run", *words_of(live, args.scenario)])
