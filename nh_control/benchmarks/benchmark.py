"""Benchmarks: published numbers for a mechanism, and a function that computes them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

PRINTED, CLOSED_FORM, INVARIANT = "printed", "closed form", "invariant"
"""Kinds of references: a printed number, a formula evaluated in double precision, or a quantity
that the exact motion conserves.
"""
DOUBLE = 15
"""Number of digits of a reference that is not printed."""


@dataclass(frozen=True)
class Benchmark:
    """One problem from the literature.

    `published` contains the reference numbers by name: strings as printed in the `source`, or the
    values of a formula or an invariant, depending on `reference`. `compute()` returns this
    package's numbers by the same names, and `method` describes how they are computed. A `note`
    explains digits that do not agree.
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
            _value(name, number, float(computed[name])) for name, number in self.published.items()
        )
        return Result(self, values, seconds)


@dataclass(frozen=True)
class Value:
    """A reference number, the computed number, and how many digits of the reference agree."""

    name: str
    published: str
    computed: float
    digits: int
    of: int


@dataclass(frozen=True)
class Result:
    """The values of a benchmark, and the time in seconds that `compute` took."""

    benchmark: Benchmark
    values: tuple[Value, ...]
    seconds: float

    @property
    def worst(self) -> Value:
        """The value with the largest number of digits that do not agree."""
        return max(self.values, key=lambda value: (value.of - value.digits, -value.digits))


def _value(name: str, published: str | float, computed: float) -> Value:
    digits, of = agreement(computed, published)
    return Value(name, str(published), computed, digits, of)


def agreement(computed: float, published: str | float) -> tuple[int, int]:
    """Return the number of significant digits to which a number agrees with the published one, and
    the number of published digits. `|computed - published|` is at most half a unit in the last
    digit that agrees.
    """
    # Use decimal numbers, because the binary value of a printed number differs from it.
    printed = isinstance(published, str)
    exact = Decimal(published)
    digits = len(exact.as_tuple().digits) if printed else DOUBLE
    last = exact.adjusted() + 1 - digits
    error = abs(Decimal(float(computed)) - exact) * 2
    # Half a unit in the last digit. A tie may have been rounded up or down.
    if error <= Decimal(10) ** last * Decimal("1.000001"):
        return digits, digits
    lost = math.ceil(error.log10() - last)
    return max(0, digits - lost), digits
