"""The structure of a paper's experiments: figures with their numbers, and comparisons of published
and computed results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from matplotlib.figure import Figure

from nh_control.numerics.progress import Progress


@dataclass(frozen=True)
class Statement:
    """One row of a paper's table: the place of a claim, the claim, the computed result, whether
    they agree (None for processor times, which depend on the machine, and for claims about more
    steps than a short run has), and corrections or assumptions.
    """

    where: str
    paper: str
    ours: str
    holds: bool | None
    corrected: str = ""


@dataclass(frozen=True)
class Outcome:
    """The result of one experiment: its figure, its numbers as plain values, and its rows of the
    table.
    """

    draw: Callable[[], Figure]
    numbers: dict[str, Any]
    statements: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """One figure of a paper by its number, or a named experiment on one of its claims;
    `compute(progress)` makes it, `short(progress)` with few steps, if it takes minutes otherwise,
    and `long(progress)` in the paper's length, if that takes more than half an hour.
    """

    number: str
    title: str
    compute: Callable[[Progress], Outcome]
    short: Callable[[Progress], Outcome] | None = None
    long: Callable[[Progress], Outcome] | None = None

    @property
    def file(self) -> str:
        """The name of its figure and of its numbers."""
        return f"figure_{self.number}" if self.number.isdigit() else self.number


@dataclass(frozen=True)
class Paper:
    """A paper with its key and its experiments in the paper's order."""

    key: str
    title: str
    experiments: tuple[Experiment, ...] = field(repr=False)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Numbers and names of the experiments."""
        return tuple(experiment.number for experiment in self.experiments)

    def experiment(self, number: str) -> Experiment:
        """Return one experiment; raises KeyError, which lists all numbers, for an unknown
        number.
        """
        for experiment in self.experiments:
            if experiment.number == number:
                return experiment
        raise KeyError(
            f"{self.key} has no figure {number!r} here, choose of: {', '.join(self.numbers)}"
        )
