"""Benchmark results as table rows, and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nh_control.benchmarks.benchmark import Result, Value

SUMMARY = (
    "benchmark",
    "reference",
    "number that agrees least",
    "published",
    "here",
    "digits",
    "s",
)
VALUES = ("number", "published", "here", "digits")


def summary(result: Result) -> tuple[str, ...]:
    """Return the cells for the columns SUMMARY. The value with the worst agreement represents all
    values.
    """
    worst, count = result.worst, len(result.values)
    name = worst.name if count == 1 else f"{worst.name} (of {count})"
    where = result.benchmark.name, result.benchmark.reference
    return (*where, name, *_cells(result, worst), f"{result.seconds:.1f}")


def values(result: Result) -> list[tuple[str, ...]]:
    """Return the cells for the columns VALUES, with one row for each number."""
    return [(value.name, *_cells(result, value)) for value in result.values]


def plain(results: Iterable[Result]) -> dict[str, Any]:
    """Return all numbers as plain values, by benchmark and name."""
    return {
        result.benchmark.name: {
            "title": result.benchmark.title,
            "source": result.benchmark.source,
            "reference": result.benchmark.reference,
            "method": result.benchmark.method,
            "note": result.benchmark.note,
            "seconds": result.seconds,
            "values": {
                value.name: {
                    "published": value.published,
                    "computed": value.computed,
                    "digits": value.digits,
                    "of": value.of,
                }
                for value in result.values
            },
        }
        for result in results
    }


def _cells(result: Result, value: Value) -> tuple[str, str, str]:
    """Return the published number, the computed number with the same number of digits, and how
    many digits agree.
    """
    # A printed number determines the number of decimals, and whether there is an exponent.
    published = result.benchmark.published[value.name]
    if isinstance(published, str):
        mantissa, exponent, _ = published.partition("e")
        form = f".{len(mantissa.partition('.')[2])}{'e' if exponent else 'f'}"
    else:
        published, form = f"{published:.{value.of}g}", f".{value.of}g"
    return published, f"{value.computed:{form}}", f"{value.digits} of {value.of}"
