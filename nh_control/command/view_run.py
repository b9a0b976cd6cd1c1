"""`nh_control view`, `nh_control film` and `nh_control plot` show a completed run as a page, a
film or figures.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nh_control.command.usage import PROGRAM, CannotWrite, UsageError, usage_errors
from nh_control.command.values import bounded_integer, bounded_number

if TYPE_CHECKING:
    from nh_control.view.animation import Animation

RUN = "folder of `nh_control simulate` or `run`, its results.npz, or a recording (MCAP)"
PAGE = "view.html"
STYLES = ("screen", "paper", "paper-wide")
FORMATS = ("png", "svg", "pdf")


def add_to(commands: Any) -> None:
    """Add the three commands to a parser's commands."""
    view = commands.add_parser("view")
    _add_run(view)
    view.add_argument(
        "other",
        nargs="?",
        default="",
        metavar="OTHER",
        help="another run of the scenario, shown in place of the reference, with differences",
    )
    view.add_argument(
        "--output",
        default="",
        metavar="FILE",
        help=f"file of the page (default: {PAGE} in the run's folder)",
    )
    view.add_argument(
        "--runs",
        default="",
        metavar="NUMBERS",
        help="for a study's folder: numbers of runs, separated by commas (default: the 12 worst)",
    )
    view.add_argument("--no-open", action="store_true", help="open no browser")
    view.set_defaults(command=_view)
    film = commands.add_parser("film")
    _add_run(film)
    film.add_argument("file", metavar="FILE", help="film: .mp4 (needs ffmpeg), .webp, .gif, .png")
    _add_film(film.add_argument)
    film.set_defaults(command=_film)
    plot = commands.add_parser("plot")
    _add_run(plot)
    plot.add_argument(
        "--output", default="", metavar="DIR", help="folder of the figures (default: the run's)"
    )
    plot.add_argument(
        "--format",
        default="png",
        metavar="NAMES",
        help=f"formats of the figures, of {', '.join(FORMATS)}, separated by commas",
    )
    plot.add_argument(
        "--style",
        default="screen",
        choices=STYLES,
        help="paper: width of one column (3.5 in), without titles; paper-wide: two (7.16 in)",
    )
    plot.set_defaults(command=_plot)


def _add_run(parser: Any) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument(
        "--scenario",
        default="",
        metavar="NAME",
        help="scenario, file or module of a run that does not name its scenario",
    )


def _add_film(add: Any) -> None:
    positive = bounded_number(0, open_=True)
    add("--rate", type=positive, default=30.0, metavar="HZ", help="pictures per second (30)")
    add("--speed", type=positive, default=1.0, metavar="X", help="speed relative to the run (1)")
    add(
        "--width",
        type=bounded_integer(16),
        default=960,
        metavar="PX",
        help="width of the film (960)",
    )
    add(
        "--height",
        type=bounded_integer(16),
        default=540,
        metavar="PX",
        help="height of the film (540)",
    )


def _view(args: Namespace) -> int:
    import webbrowser

    from nh_control.view.page import page
    from nh_control.view.sources import load
    from nh_control.view.study_runs import is_study
    from nh_control.view.two_runs import together

    if is_study(Path(args.run)):
        text = _page_of_study(args)
    else:
        animation = _animation(args)
        if args.other:
            with _readable():
                animation = together(animation, load(args.other, args.scenario))
        text = page(animation)
    file = Path(args.output) if args.output else _beside(args.run) / PAGE
    with usage_errors():
        file.write_text(text, encoding="utf-8")
    print(file)
    if not args.no_open and not webbrowser.open(file.absolute().as_uri()):
        print(f"{PROGRAM}: no browser found; open the file in one", file=sys.stderr)
    return 0


def _page_of_study(args: Namespace) -> str:
    """Return the page of a study's runs."""
    from nh_control.numerics.progress import Progress
    from nh_control.view import study_runs
    from nh_control.view.page import page_of_runs

    if args.other:
        raise UsageError("a second run can be shown next to a run, but not next to a study")
    try:
        chosen = [int(part) for part in args.runs.split(",") if part.strip()]
    except ValueError:
        raise UsageError(
            f"--runs: expected numbers, separated by commas, got {args.runs!r}"
        ) from None
    with usage_errors(), Progress() as progress:
        progress.phase("repeating the runs")
        return page_of_runs(study_runs.load(Path(args.run), chosen))


def _film(args: Namespace) -> int:
    from nh_control.numerics.progress import Progress
    from nh_control.view import film

    # a slow-motion film needs more frames per simulated second
    animation, file = _animation(args, args.rate / args.speed), Path(args.file)
    if not file.parent.is_dir():
        raise UsageError(f"{file}: the folder {file.parent} does not exist; create it first")
    try:
        with usage_errors(files=False), Progress() as progress:
            size, count = (args.width, args.height), progress.counter("painting")
            film.write(
                animation, file, rate_hz=args.rate, size=size, speed=args.speed, progress=count
            )
    except (RuntimeError, OSError) as failed:
        raise CannotWrite(f"cannot write {file}: {failed}") from failed
    print(args.file)
    return 0


def _plot(args: Namespace) -> int:
    from nh_control import figures
    from nh_control.numerics.progress import Progress
    from nh_control.runs.saved_results import stored

    formats = args.format.split(",")
    if unknown := [name for name in formats if name not in FORMATS]:
        raise UsageError(
            f"--format: unknown {', '.join(unknown)}; choose from {', '.join(FORMATS)}"
        )
    with _readable(), Progress() as progress:
        figures.import_without_docstrings()
        result = stored(Path(args.run), args.scenario).result
        folder = Path(args.output) if args.output else _beside(args.run)
        folder.mkdir(parents=True, exist_ok=True)
        files = figures.save_all(
            result, folder, lambda name: progress.phase(f"drawing {name}"), formats, args.style
        )
    print(f"{folder}: {', '.join(Path(file).stem for file in files.values())}")
    return 0


def _animation(args: Namespace, rate_hz: float = 0.0) -> Animation:
    from nh_control.view.animation import RATE_HZ
    from nh_control.view.sources import load

    with _readable():
        # at least the usual rate, so that slow films are smooth
        return load(args.run, args.scenario, max(rate_hz, RATE_HZ))


@contextmanager
def _readable() -> Iterator[None]:
    """Raise UsageError for a run that cannot be read."""
    from nh_control.runs.decoding import RecordingError

    with usage_errors():
        try:
            yield
        except RecordingError as unreadable:
            raise UsageError(str(unreadable)) from unreadable
        except ImportError as missing:
            raise UsageError(f"{missing}: `pip install rosbags` reads recordings, `pip install "
                             f"nh_control[plot]` draws") from missing  # fmt: skip


def _beside(run: str) -> Path:
    """Return the run's folder."""
    path = Path(run)
    return path if path.is_dir() else path.parent
