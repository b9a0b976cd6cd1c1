"""Results of benchmarks as rows of a table, and as plain values for JSON."""

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
    """Cells under SUMMARY: the value with the fewest agreeing digits stands for all."""
    one, count = result.worst, len(result.values)
    name = one.name if count == 1 else f"{one.name} (of {count})"
    where = result.benchmark.name, result.benchmark.reference
    return (*where, name, *_cells(result, one), f"{result.seconds:.1f}")


def values(result: Result) -> list[tuple[str, ...]]:
    """Cells under VALUES, a row for each number."""
    return [(one.name, *_cells(result, one)) for one in result.values]


def plain(results: Iterable[Result]) -> dict[str, Any]:
    """All numbers by benchmark and name."""
    return {
        result.benchmark.name: {
            "title": result.benchmark.title,
            "source": result.benchmark.source,
            "reference": result.benchmark.reference,
            "method": result.benchmark.method,
            "note": result.benchmark.note,
            "seconds": result.seconds,
            "values": {
                one.name: {
                    "published": one.published,
                    "computed": one.computed,
                    "digits": one.digits,
                    "of": one.of,
                }
                for one in result.values
            },
        }
        for result in results
    }


def _cells(result: Result, value: Value) -> tuple[str, str, str]:
    """Published, computed with as many digits, and how many agree."""
    published = result.benchmark.published[value.name]
    if isinstance(published, str):
        mantissa, exponent, _ = published.partition("e")
        form = f".{len(mantissa.partition('.')[2])}{'e' if exponent else 'f'}"
    else:
        published, form = f"{published:.{value.of}g}", f".{value.of}g"
    return published, f"{value.computed:{form}}", f"{value.digits} of {value.of}"
