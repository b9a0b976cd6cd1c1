"""`nh_control study` executes many runs with varied settings, and reports their statistics."""

from __future__ import annotations

import argparse
import json
import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from nh_control.command.options import SHOWN, add_robot
from nh_control.command.run_scenario import reserved
from nh_control.command.usage import (
    FAILED,
    INTERRUPTED,
    PROGRAM,
    UsageError,
    usage_errors,
    writing,
)
from nh_control.command.values import bounded_integer
from nh_control.runs.settings import OPTIONS, ORIGIN, SETTINGS, is_user_controller

if TYPE_CHECKING:
    from nh_control.numerics.progress import Progress
    from nh_control.studies import Store, Study
    from nh_control.studies.pools import WorkerPool

TEXTS = (
    *ORIGIN[1:],
    *("sampling", "points", "seeds", "seed", "same_noise", "success", "monitor"),
)
"""Options that are also keys in a study file."""
DESCRIPTION = f"""\
Many runs of a scenario with varied settings: on a grid, by Monte Carlo, Latin hypercube or
Sobol sequences. Each run is saved when it ends: after Ctrl-C, a power cut or the loss of a
worker, `{PROGRAM} study FOLDER` executes the missing runs.

Settings that can be varied or set: parameters of the plant by name; model.NAME, parameters of the
model and the plant; perturb.NAME, initial errors; disturb.TARGET.NAME, values of a --disturb;
fault.KIND or fault.TARGET:KIND, faults as in --fault (fault.delay=0:0.01); weight.NAME, factors on
the tracker's weights; autopilot.NAME, options of a flight controller (noise, seed, rotor1, ...);
and the options of simulate (separate several names by spaces):
{fill(", ".join(OPTIONS), 95)}.

Requirements, for continuous integration; exit code 1 if one is not met:
  success >= 95 %                          of the study; also failed (share), runs (number)
  max(abs(error.position)) < 0.1 and effort.max < 5      of a run, which succeeds if it meets all
Conditions compare numbers, names, + - * / **, abs, max, min, mean, rms, final; join them with and,
or, not. Names for a run: final_error and the other metrics; the series error, effort, state,
output, monitor, time, energy, with .NAME for one component, as in error.theta, error.position (all
lengths), error.angle; and for a series .max (largest magnitude), .mean, .rms, .final. The error
for an unknown name lists all names.
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the arguments of the command."""
    parser = commands.add_parser(
        "study",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("source", metavar="SOURCE", help="FILE.yaml, a SCENARIO, or FOLDER of a study to continue")
    ranges = "LOW:HIGH, LOW:HIGH:COUNT, log:LOW:HIGH, normal:MEAN:STD or VALUE,VALUE,..."
    _repeated(add, "--vary", "NAME=VALUES", f"vary a setting: {ranges}; repeatable")
    _repeated(add, "--set", "NAME=VALUE", "set a value for all runs; repeatable")
    for name in ("disturb", "fault"):
        text = f"{SETTINGS[name].text}; repeatable"
        add(f"--{name}", action="append", metavar=SHOWN[name], help=text)
    controller = SETTINGS["controller"].text
    add("--controller", metavar="NAME", help=f"{controller}; the same as --set controller=NAME")
    samplings = "grid, monte_carlo, latin_hypercube, sobol, or saltelli for Sobol' indices"
    where = "(default: grid if all ranges have a COUNT, otherwise monte_carlo)"
    add("--sampling", metavar="NAME", help=f"{samplings} {where}")
    add(
        "--points",
        metavar="N",
        help="number of points, except in a grid; each random point has a run with every listed "
        "name, such as controller=lqr,mpc",
    )
    add(
        "--seeds",
        metavar="N",
        help="runs per point, with seeds 0, 1, ... of initial error and noise; without --points, "
        "each seed has its own point",
    )
    add("--seed", metavar="N", help="seed of the sampling (default: 0)")
    add(
        "--same-noise",
        action="store_const",
        const="true",
        help="use the same noise of faults and disturbances in all runs (default: new noise at "
        "each random point, but not in grids or for Sobol' indices)",
    )
    add(
        "--require",
        action="append",
        metavar="CONDITION",
        help="requirement for the study, such as 'success >= 95 %%', or for each run, such as "
        "'effort.max < 5', which defines the success of a run; all runs must succeed unless "
        "another requirement says how many; repeatable",
    )
    add("--success", metavar="X", help="deprecated, see --require: largest final error of a "
        "success (default: 0.05 m, rad)")  # fmt: skip
    least = (
        "add metrics: the smallest value of the scenario's monitored output, such as a cable's "
        "tension, and the largest sizes of its system's declared outputs"
    )
    add("--monitor", action="store_const", const="true", help=f"{least}; slow")
    add_robot(parser.add_argument)
    parser.set_defaults(**dict.fromkeys(ORIGIN[1:]))
    _add_how(add)
    parser.set_defaults(command=run)


def _add_how(add: Any) -> None:
    add(
        "--scheduler",
        default="",
        metavar="ADDRESS",
        help="execute the runs on the Dask cluster of this scheduler, tcp://HOST:PORT; local "
        "starts a cluster on this machine (default: processes, without Dask)",
    )
    add(
        "--domain",
        type=bounded_integer(0),
        default=-1,
        metavar="N",
        help="DDS domain in which an external controller answers the runs, one after another "
        "(default: ROS_DOMAIN_ID)",
    )
    add("--workers", type=int, default=0, metavar="N", help="processes (default: one per core)")
    add(
        "--command-of", type=int, metavar="RUN", help="only print the simulate command of this run"
    )
    add("--output", metavar="DIR", help="folder of the results (default: a new folder)")
    add("--overwrite", action="store_true", help="delete the runs in --output")
    add("--parquet", action="store_true", help="also write all runs to runs.parquet")
    add("--no-plots", action="store_true", help="draw no figures")
    add("--json", action="store_true", help="print one JSON object instead of tables")
    add("--junit", metavar="FILE", help="write requirements and runs as JUnit XML")


def _repeated(add: Any, option: str, metavar: str, text: str) -> None:
    add(option, action="append", type=_assignment, default=[], metavar=metavar, help=text)


def _assignment(text: str) -> tuple[str, str]:
    name, assigned, value = text.partition("=")
    if not (assigned and name.strip() and value.strip()):
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    return name.strip(), value.strip()


def run(args: Namespace) -> int:
    """Execute the study's missing runs and report the statistics of all runs. Returns the exit
    code.
    """
    from nh_control.command import study_report
    from nh_control.numerics.progress import Progress
    from nh_control.runs.output import RUNS
    from nh_control.studies import Store, WorkersLost
    from nh_control.studies.statistics import accepted

    study, folder = study_and_folder(args)
    if args.success is not None:
        print(
            f"{PROGRAM}: --success is deprecated: use --require 'final_error <= "
            f"{args.success}' and, for how many runs must succeed, --require 'success >= 95 %'",
            file=sys.stderr,
        )
    if args.command_of is not None:
        return _print_command(study, args.command_of)
    _refuse(args, study)
    with Progress() as progress:
        with usage_errors():
            folder = folder or _folder(args, study)
        with usage_errors(files=False), writing(folder):
            store = Store.make(folder, study)
        # the statistics are also written after Ctrl-C, for the runs so far
        try:
            with _continuation_hint(folder), usage_errors(files=False), writing(folder), store:
                done = run_all(store, args, progress)
                numbers, files = save_statistics(store, args, progress)
        except WorkersLost as lost:
            print(f"{PROGRAM}: error: {lost}", file=sys.stderr)
            return FAILED
    files = {"runs": str(folder / RUNS), **files}
    if args.json:
        print(json.dumps({**numbers, "output": str(folder), "files": files}))
    else:
        study_report.show(study, numbers)
        print(f"results in {folder}/: {', '.join(Path(file).name for file in files.values())}")
    if not done:
        _print_how_to_continue(folder, numbers["runs"], study.total)
        return INTERRUPTED
    if accepted(numbers):
        return 0
    for requirement in numbers["requirements"]:
        if not requirement["met"]:
            print(
                f"{PROGRAM}: not met: {requirement['text']} ({requirement['reason']})",
                file=sys.stderr,
            )
    if numbers["failures"]:
        first = numbers["failures"][0]
        print(
            f"{PROGRAM}: {numbers['failed']['count']} runs failed, such as run "
            f"{first['first_run']}: {first['reason']}",
            file=sys.stderr,
        )
    return FAILED


def _print_command(study: Study, index: int) -> int:
    from nh_control.studies import command

    try:
        print(command(study, index))
    except (IndexError, ValueError) as error:
        raise UsageError(str(error)) from error
    return 0


def _refuse(args: Namespace, study: Study) -> None:
    """Raise UsageError for options that cannot work, before the study starts."""
    from nh_control.studies.pools import LOCAL, MissingExtra

    if args.parquet and find_spec("pyarrow") is None:
        raise UsageError(str(MissingExtra("pyarrow", "study", "--parquet")))
    if args.scheduler and find_spec("distributed") is None:
        raise UsageError(str(MissingExtra("dask.distributed", "dask", "--scheduler")))
    if args.workers < 0 or (args.workers and args.scheduler not in ("", LOCAL)):
        raise UsageError(
            f"--workers is the number of processes on this machine, 1 or more; got {args.workers}"
            + f" for {args.scheduler}, which has its own workers" * bool(args.scheduler)
        )
    if study.is_external:
        _refuse_external(args)


def _refuse_external(args: Namespace) -> None:
    """Raise UsageError for options that an external controller does not support."""
    from nh_control.runs import dds_domain, launcher

    if args.scheduler or args.workers > 1:
        raise UsageError(
            "an external controller answers one run after another: omit --workers and --scheduler"
        )
    try:
        launcher.require_ros()
    except launcher.RosMissing as missing:
        raise UsageError(str(missing)) from missing
    if dds_domain.fixed_domain(args.domain) is None:
        raise UsageError(
            "an external controller needs a domain that is known to both: add --domain N, and "
            f"start the controller with {dds_domain.VARIABLE}=N"
        )


def study_and_folder(args: Namespace) -> tuple[Study, Path | None]:
    """Return the requested study, and its folder if an existing study continues."""
    from nh_control.runs.output import STUDY
    from nh_control.studies import Store, make_study, read

    with usage_errors():
        folder = Path(args.source)
        if folder.is_dir():
            if not Store.exists(folder):
                raise UsageError(
                    f"{folder} has no study: the file {STUDY} is missing; name a study's folder"
                )
            # options may add to a study that continues, but not change its runs
            begun = read(folder / STUDY)
            return make_study(merged_settings(begun, args)), folder
        is_file = folder.suffix in (".yaml", ".yml")
        data = read(folder) if is_file else {"scenario": args.source}
        return make_study(merged_settings(data, args)), None


def merged_settings(data: dict[str, Any], args: Namespace) -> dict[str, Any]:
    """Return a file's contents with the changes that the options make."""
    options = {key: getattr(args, key) for key in TEXTS if getattr(args, key) is not None}
    out = {**data, **options}
    # options override the file, name by name
    out["vary"] = {**data.get("vary", {}), **dict(args.vary)}
    out["set"] = {**data.get("set", {}), **dict(args.set)}
    if args.controller:
        out["set"]["controller"] = args.controller
    if is_user_controller(str(out["set"].get("controller", ""))):
        from nh_control.scenarios.user_controller import resolved

        # workers may have a different current directory
        out["set"]["controller"] = resolved(out["set"]["controller"])
    several = ("disturb", "fault", "require")
    out |= {key: texts for key in several if (texts := getattr(args, key))}
    return out


def _folder(args: Namespace, study: Study) -> Path:
    """Return a new folder, or the folder in the arguments if it already contains a study."""
    from nh_control.runs import output
    from nh_control.studies import Store

    # the same study continues; the store refuses a different one
    if args.output and not args.overwrite and Store.exists(Path(args.output)):
        return Path(args.output)
    name = f"{study.settings.scenario.label or study.settings.scenario.name}-study"
    return output.folder(name, args.output, args.overwrite)


def run_all(store: Store, args: Namespace, progress: Progress) -> bool:
    from nh_control.studies import run_missing

    total = store.study.total
    # no workers are started if nothing is missing
    if len(store) == total:
        return True
    progress.phase("starting workers")
    with _workers(args, store.study) as workers, args.interruption.waiting():
        return run_missing(
            store,
            workers,
            progress.steps(f"running {total} of {store.study.settings.scenario.name}", total),
            lambda: args.interruption.requested,
        )


@contextmanager
def _workers(args: Namespace, study: Study) -> Iterator[WorkerPool]:
    """Provide the workers. For an external controller, there is a single worker in a reserved DDS
    domain.
    """
    from nh_control.runs import dds_domain
    from nh_control.studies import ProcessPool

    if not study.is_external:
        with worker_pool(args) as pool:
            yield pool
        return
    with reserved(args.domain) as domain:
        # worker processes inherit the domain
        os.environ[dds_domain.VARIABLE] = str(domain)
        with ProcessPool(1) as pool:
            yield pool


def worker_pool(args: Namespace) -> WorkerPool:
    from nh_control.studies import DaskCluster, ProcessPool

    return (
        DaskCluster(args.scheduler, args.workers) if args.scheduler else ProcessPool(args.workers)
    )


def save_statistics(
    store: Store, args: Namespace, progress: Progress
) -> tuple[dict[str, Any], dict[str, str]]:
    """Write statistics and figures. Returns the statistics and the files."""
    from nh_control.runs.output import STATISTICS
    from nh_control.studies import junit
    from nh_control.studies.statistics import statistics

    progress.phase("statistics")
    columns = store.columns()
    numbers = statistics(store.study, columns)
    (store.folder / STATISTICS).write_text(json.dumps(numbers, indent=2) + "\n")
    files = {"statistics": str(store.folder / STATISTICS)}
    if args.junit:
        junit.write(args.junit, store.study, columns, numbers)
        files["junit"] = args.junit
    if args.parquet:
        files["parquet"] = str(store.write_parquet())
    if not args.no_plots and len(columns["run"]):
        from nh_control.figures import study as figures

        progress.phase("drawing figures")
        files |= figures.save_all(store.study, columns, numbers, store.folder)
    return numbers, files


@contextmanager
def _continuation_hint(folder: Path) -> Iterator[None]:
    """After an error, print the command that continues the study."""
    try:
        yield
    except BaseException:
        print(f"{PROGRAM}: `{PROGRAM} study {folder}` continues this study", file=sys.stderr)
        raise


def _print_how_to_continue(folder: Path, runs: int, total: int) -> None:
    print(
        f"{PROGRAM}: interrupted; {runs} of {total} runs are saved; "
        f"`{PROGRAM} study {folder}` executes the missing runs",
        file=sys.stderr,
    )
