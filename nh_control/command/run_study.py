"""`nh_control study`: many runs that differ in what varies, their statistics and figures."""

from __future__ import annotations

import argparse
import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nh_control.command.usage import FAILED, INTERRUPTED, PROGRAM, UsageError, usage_errors

if TYPE_CHECKING:
    from nh_control.numerics.progress import Progress
    from nh_control.studies import Store, Study
    from nh_control.studies.pools import WorkerPool

TEXTS = ("urdf", "base", "sampling", "points", "seeds", "seed", "success", "monitor")
"""Options that are keys of a study's file as well."""
DESCRIPTION = f"""\
Many runs of a scenario that differ in what varies: on a grid, by Monte Carlo, Latin hypercube or
Sobol sequences. Every run is written as it comes: after Ctrl-C, a power cut, or with a worker
lost, `{PROGRAM} study FOLDER` makes the missing ones.

What can vary, or be set: parameters of the plant by their names, model.NAME of model and plant,
perturb.NAME initial errors, disturb.TARGET.NAME values of a --disturb, fault.KIND or
fault.TARGET:KIND faults as in --fault (fault.delay=0:0.01), weight.NAME factors on the tracker's
weights, and reference, integrator, step, duration, integral, open_loop,
plant_integrator, plant_substeps.
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the arguments of the command."""
    parser = commands.add_parser(
        "study",
        help="many runs that differ in what varies: grids, Monte Carlo, Latin hypercubes; "
        "statistics, basins, sensitivities; on all cores or a Dask cluster",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("what", metavar="WHAT", help="FILE.yaml, a SCENARIO, or the FOLDER of a study to go on")
    ranges = "LOW:HIGH, LOW:HIGH:COUNT, log:LOW:HIGH, normal:MEAN:STD or VALUE,VALUE,..."
    _repeated(add, "--vary", "NAME=VALUES", f"what varies: {ranges}; repeatable")
    _repeated(add, "--set", "NAME=VALUE", "what is the same in all runs; repeatable")
    for option, metavar, what in (
        ("--disturb", "TARGET:KIND:VALUES", "disturbance"),
        ("--fault", "KIND=NUMBER", "fault of sensors or actuators"),
    ):
        add(option, action="append", metavar=metavar, help=f"{what} as simulate takes it")
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
        "least value of what the scenario monitors, such as a cable's tension, as a metric, too"
    )
    add("--monitor", action="store_const", const="true", help=f"{least}; slow")
    add("--urdf", metavar="FILE", help="robot of the scenario urdf")
    add("--base", choices=("fixed", "floating"), help="root link of that robot")
    _add_how(add)
    parser.set_defaults(command=run)


def _add_how(add: Any) -> None:
    add(
        "--scheduler",
        default="",
        metavar="ADDRESS",
        help="make the runs on the Dask cluster of this scheduler, tcp://HOST:PORT, or on one "
        "that is started here, local (default: processes, without Dask)",
    )
    add("--workers", type=int, default=0, metavar="N", help="processes (default: one a core)")
    add("--command-of", type=int, metavar="RUN", help="print this run's simulate, and do nothing")
    add("--output", metavar="DIR", help="folder of the results (default: a new one), or to go on")
    add("--overwrite", action="store_true", help="throw away what is in a given --output")
    add("--parquet", action="store_true", help="write all runs as runs.parquet as well")
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
    """Make the study's missing runs, and say what all of them come down to; returns the exit
    code.
    """
    from nh_control.command import study_report
    from nh_control.numerics.progress import Progress
    from nh_control.runs.output import RUNS
    from nh_control.studies import Store, WorkersLost

    study, folder = _study(args)
    if args.command_of is not None:
        return _print_command(study, args.command_of)
    _refuse(args)
    with Progress() as progress:
        with usage_errors():
            folder = folder or _folder(args, study)
            store = Store.make(folder, study)
        try:
            with _going_on(folder), usage_errors(), store:
                done = _run_missing(store, args, progress)
                numbers, files = _saved(store, args, progress)
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
        _say_how_to_go_on(folder, numbers["runs"], study.total)
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
    """Raise UsageError for what cannot be done, before anything is begun."""
    from nh_control.studies.pools import LOCAL, MissingExtra

    if args.parquet and find_spec("pyarrow") is None:
        raise UsageError(str(MissingExtra("pyarrow", "study", "--parquet")))
    if args.scheduler and find_spec("distributed") is None:
        raise UsageError(str(MissingExtra("dask.distributed", "dask", "--scheduler")))
    if args.workers < 0 or (args.workers and args.scheduler not in ("", LOCAL)):
        raise UsageError(
            f"--workers starts processes on this machine, 1 or more; got {args.workers}"
            + f" for the workers that {args.scheduler} has" * bool(args.scheduler)
        )


def _study(args: Namespace) -> tuple[Study, Path | None]:
    """The study that is asked for, and its folder where it goes on in one."""
    from nh_control.runs.output import STUDY
    from nh_control.studies import Store, make_study, read

    with usage_errors():
        folder = Path(args.what)
        if folder.is_dir():
            if not Store.exists(folder):
                raise UsageError(f"{folder} has no study: there is no {STUDY}")
            begun = read(folder / STUDY)
            return make_study(_merged(begun, args)), folder
        is_file = folder.suffix in (".yaml", ".yml")
        data = read(folder) if is_file else {"scenario": args.what}
        return make_study(_merged(data, args)), None


def _merged(data: dict[str, Any], args: Namespace) -> dict[str, Any]:
    """What a file says, with what the options say instead or besides."""
    given = {key: getattr(args, key) for key in TEXTS if getattr(args, key) is not None}
    out = {**data, **given}
    out["vary"] = {**data.get("vary", {}), **dict(args.vary)}
    out["set"] = {**data.get("set", {}), **dict(args.set)}
    out |= {key: given for key in ("disturb", "fault") if (given := getattr(args, key))}
    return out


def _folder(args: Namespace, study: Study) -> Path:
    """A new folder, or the given one where this study has been begun."""
    from nh_control.runs import output
    from nh_control.studies import Store

    if args.output and not args.overwrite and Store.exists(Path(args.output)):
        return Path(args.output)
    name = f"{study.settings.scenario.name}-study"
    return output.folder(name, args.output, args.overwrite)


def _run_missing(store: Store, args: Namespace, progress: Progress) -> bool:
    from nh_control.studies import run_missing

    total = store.study.total
    if len(store) == total:
        return True
    progress.phase("starting workers")
    with _workers(args) as workers, args.interruption.waiting():
        return run_missing(
            store,
            workers,
            progress.steps(f"running {total} of {store.study.settings.scenario.name}", total),
            lambda: args.interruption.requested,
        )


def _workers(args: Namespace) -> WorkerPool:
    from nh_control.studies import DaskCluster, ProcessPool

    return (
        DaskCluster(args.scheduler, args.workers) if args.scheduler else ProcessPool(args.workers)
    )


def _saved(
    store: Store, args: Namespace, progress: Progress
) -> tuple[dict[str, Any], dict[str, str]]:
    """The statistics and the files they are in, with the figures."""
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
def _going_on(folder: Path) -> Iterator[None]:
    """What ends a study says how to go on."""
    try:
        yield
    except BaseException:
        print(f"{PROGRAM}: `{PROGRAM} study {folder}` goes on with this study", file=sys.stderr)
        raise


def _say_how_to_go_on(folder: Path, runs: int, total: int) -> None:
    print(
        f"{PROGRAM}: interrupted; {runs} of {total} runs are saved, and "
        f"`{PROGRAM} study {folder}` makes the others",
        file=sys.stderr,
    )
