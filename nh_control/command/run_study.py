"""`nh_control study`: make many runs with varied settings, their statistics and figures."""

from __future__ import annotations

import argparse
import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from nh_control.command.options import SHOWN, add_robot
from nh_control.command.usage import (
    FAILED,
    INTERRUPTED,
    PROGRAM,
    UsageError,
    usage_errors,
)
from nh_control.runs.settings import OPTIONS, ORIGIN, SETTINGS

if TYPE_CHECKING:
    from nh_control.numerics.progress import Progress
    from nh_control.studies import Store, Study
    from nh_control.studies.pools import WorkerPool

TEXTS = (
    *ORIGIN[1:],
    *("sampling", "points", "seeds", "seed", "success", "monitor"),
)
"""Options that are also keys of a study's file."""
DESCRIPTION = f"""\
Many runs of a scenario with varied settings: on a grid, by Monte Carlo, Latin hypercube or
Sobol sequences. Every run is saved when it ends: after Ctrl-C, a power cut or the loss of a
worker, `{PROGRAM} study FOLDER` makes the missing runs.

Settings that may vary or be set: parameters of the plant by name, model.NAME of model and plant,
perturb.NAME initial errors, disturb.TARGET.NAME values of a --disturb, fault.KIND or
fault.TARGET:KIND faults as in --fault (fault.delay=0:0.01), weight.NAME factors of the tracker's
weights, and the options of simulate, with spaces between several names:
{fill(", ".join(OPTIONS), 95)}.
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the arguments of the command."""
    parser = commands.add_parser(
        "study",
        help="make many runs with varied settings: grids, Monte Carlo, Latin hypercubes; "
        "statistics, basins, sensitivities; on all cores or a Dask cluster",
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
    samplings = "grid, monte_carlo, latin_hypercube, sobol, or saltelli for Sobol' indices"
    where = "(default: grid where all ranges have a COUNT, else monte_carlo)"
    add("--sampling", metavar="NAME", help=f"{samplings} {where}")
    add("--points", metavar="N", help="number of points, unless in a grid")
    add(
        "--seeds",
        metavar="N",
        help="runs at every point, with seeds 0, 1, ... of initial error and noises; without "
        "--points every seed has a point of its own",
    )
    add("--seed", metavar="N", help="seed of the sampling (default: 0)")
    add("--success", metavar="X", help="largest final error of a success (default: 0.05 m, rad)")
    least = (
        "add metrics: least value of the scenario's monitored output, such as a cable's tension, "
        "and largest sizes of its system's declared outputs"
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
        help="make the runs on the Dask cluster of this scheduler, tcp://HOST:PORT; local starts "
        "a cluster on this machine (default: processes, without Dask)",
    )
    add("--workers", type=int, default=0, metavar="N", help="processes (default: one per core)")
    add(
        "--command-of", type=int, metavar="RUN", help="only print the simulate command of this run"
    )
    add("--output", metavar="DIR", help="folder of the results (default: a new folder)")
    add("--overwrite", action="store_true", help="delete the runs in a given --output")
    add("--parquet", action="store_true", help="also write all runs to runs.parquet")
    add("--no-plots", action="store_true", help="draw no figures")
    add("--json", action="store_true", help="print one JSON object instead of tables")


def _repeated(add: Any, option: str, metavar: str, text: str) -> None:
    add(option, action="append", type=_assignment, default=[], metavar=metavar, help=text)


def _assignment(text: str) -> tuple[str, str]:
    name, assigned, value = text.partition("=")
    if not (assigned and name.strip() and value.strip()):
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    return name.strip(), value.strip()


def run(args: Namespace) -> int:
    """Make the study's missing runs and report the statistics of all runs; returns the exit
    code.
    """
    from nh_control.command import study_report
    from nh_control.numerics.progress import Progress
    from nh_control.runs.output import RUNS
    from nh_control.studies import Store, WorkersLost

    study, folder = study_and_folder(args)
    if args.command_of is not None:
        return _print_command(study, args.command_of)
    _refuse(args)
    with Progress() as progress:
        with usage_errors():
            folder = folder or _folder(args, study)
            store = Store.make(folder, study)
        try:
            with _continuation_hint(folder), usage_errors(), store:
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
    return FAILED if numbers["failed"]["count"] == numbers["runs"] else 0


def _print_command(study: Study, index: int) -> int:
    from nh_control.studies import command

    try:
        print(command(study, index))
    except (IndexError, ValueError) as error:
        raise UsageError(str(error)) from error
    return 0


def _refuse(args: Namespace) -> None:
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
            begun = read(folder / STUDY)
            return make_study(merged_settings(begun, args)), folder
        is_file = folder.suffix in (".yaml", ".yml")
        data = read(folder) if is_file else {"scenario": args.source}
        return make_study(merged_settings(data, args)), None


def merged_settings(data: dict[str, Any], args: Namespace) -> dict[str, Any]:
    """Return the contents of a file with the changes of the options."""
    options = {key: getattr(args, key) for key in TEXTS if getattr(args, key) is not None}
    out = {**data, **options}
    out["vary"] = {**data.get("vary", {}), **dict(args.vary)}
    out["set"] = {**data.get("set", {}), **dict(args.set)}
    out |= {key: given for key in ("disturb", "fault") if (given := getattr(args, key))}
    return out


def _folder(args: Namespace, study: Study) -> Path:
    """Return a new folder, or the given one if it contains this study."""
    from nh_control.runs import output
    from nh_control.studies import Store

    if args.output and not args.overwrite and Store.exists(Path(args.output)):
        return Path(args.output)
    name = f"{study.settings.scenario.label or study.settings.scenario.name}-study"
    return output.folder(name, args.output, args.overwrite)


def run_all(store: Store, args: Namespace, progress: Progress) -> bool:
    from nh_control.studies import run_missing

    total = store.study.total
    if len(store) == total:
        return True
    progress.phase("starting workers")
    with worker_pool(args) as workers, args.interruption.waiting():
        return run_missing(
            store,
            workers,
            progress.steps(f"running {total} of {store.study.settings.scenario.name}", total),
            lambda: args.interruption.requested,
        )


def worker_pool(args: Namespace) -> WorkerPool:
    from nh_control.studies import DaskCluster, ProcessPool

    return (
        DaskCluster(args.scheduler, args.workers) if args.scheduler else ProcessPool(args.workers)
    )


def save_statistics(
    store: Store, args: Namespace, progress: Progress
) -> tuple[dict[str, Any], dict[str, str]]:
    """Write statistics and figures; returns the statistics and the files."""
    from nh_control.runs.output import STATISTICS
    from nh_control.studies.statistics import statistics

    progress.phase("statistics")
    columns = store.columns()
    numbers = statistics(store.study, columns)
    (store.folder / STATISTICS).write_text(json.dumps(numbers, indent=2) + "\n")
    files = {"statistics": str(store.folder / STATISTICS)}
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
        f"`{PROGRAM} study {folder}` makes the missing runs",
        file=sys.stderr,
    )
