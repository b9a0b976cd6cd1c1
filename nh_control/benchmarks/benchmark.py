"""A benchmark: published numbers of a mechanism and a function that computes them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

PRINTED, CLOSED_FORM, INVARIANT = "printed", "closed form", "invariant"
"""Kinds of references: a printed number; a formula, evaluated in double precision; a number that
the exact motion keeps.
"""
DOUBLE = 15
"""Digits of a reference that is not printed."""


@dataclass(frozen=True)
class Benchmark:
    """One problem of the literature.

    `published` has the reference numbers by name: strings as the `source` prints them, or numbers
    of a formula or an invariant, as `reference` says. `compute()` returns the same names with the
    numbers of this package, and `method` is how it gets them. A `note` explains digits that do not
    agree.
    """

    name: str
    title: str
    source: str
    reference: str
    published: Mapping[str, str | float] = field(repr=False)
    compute: Callable[[], Mapping[str, float]] = field(repr=False)
    method: str
    note: str = ""

    def run(self) -> Result:
        """Compute the numbers and compare them."""
        start = time.perf_counter()
        computed = self.compute()
        seconds = time.perf_counter() - start
        values = tuple(
            Value(name, str(number), float(computed[name]), *agreement(computed[name], number))
            for name, number in self.published.items()
        )
        return Result(self, values, seconds)


@dataclass(frozen=True)
class Value:
    """A reference number, the computed one, and how many of the reference's digits agree."""

    name: str
    published: str
    computed: float
    digits: int
    of: int


@dataclass(frozen=True)
class Result:
    """The values of a benchmark, and the seconds that `compute` took."""

    benchmark: Benchmark
    values: tuple[Value, ...]
    seconds: float

    @property
    def worst(self) -> Value:
        """The value with the most digits that do not agree."""
        return max(self.values, key=lambda value: (value.of - value.digits, -value.digits))


def agreement(computed: float, published: str | float) -> tuple[int, int]:
    """Number of significant digits to which a number agrees with the published one, and how many
    that one has: `|computed - published|` is at most half a unit of the last digit that agrees.
    """
    printed = isinstance(published, str)
    exact = Decimal(published)
    digits = len(exact.as_tuple().digits) if printed else DOUBLE
    last = exact.adjusted() + 1 - digits
    error = abs(Decimal(float(computed)) - exact) * 2
    if error <= Decimal(10) ** last * Decimal("1.000001"):  # a tie is a number rounded up or down
        return digits, digits
    lost = math.ceil(error.log10() - last)
    return max(0, digits - lost), digits
