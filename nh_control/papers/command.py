"""What the command of every paper does: arguments, a folder, figures as PNG and numbers as
JSON.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from matplotlib.figure import Figure

from nh_control.figures.style import save
from nh_control.numerics.progress import Progress
from nh_control.runs.output import folder

Results = tuple[Mapping[str, Callable[[], Figure]], dict]
"""What draws every figure, by name, and the numbers."""


def run(
    paper: str, about: str, compute: Callable[[Progress], Results], argv: list[str] | None = None
) -> int:
    """Write the figures and numbers.json of a paper's experiments into a folder; returns the exit
    code.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m nh_control.papers.{paper}", description=about
    )
    parser.add_argument(
        "--output",
        default=None,
        metavar="DIR",
        help=f"folder of the results (default: a new nh_control_output/{paper})",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace results in a given --output"
    )
    args = parser.parse_args(argv)
    out: Path = folder(paper, args.output, args.overwrite)
    with Progress() as progress:
        figures, numbers = compute(progress)
    for name, draw in figures.items():
        save(draw, out / f"{name}.png")
    (out / "numbers.json").write_text(json.dumps(numbers, indent=2) + "\n")
    print(f"{out}: {', '.join(f'{name}.png' for name in figures)}, numbers.json")
    return 0
