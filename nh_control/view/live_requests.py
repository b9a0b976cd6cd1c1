"""Requests of a live page, parsed from bytes that anybody may have sent."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

LARGEST = 4096
"""Largest number of bytes of a request."""
Vector = tuple[float, float, float]
FIELDS: dict[str, tuple[str, ...]] = {
    "pause": ("on",),
    "step": (),
    "reset": (),
    "arm": ("on",),
    "goal": ("position",),
    "pull": ("target", "force"),
    "change": ("parameter", "value"),
}
"""Requests by name, each with its fields."""


class RequestError(ValueError):
    """A request that cannot be read; the message says what was expected."""


@dataclass(frozen=True)
class Asked:
    """A request: its name; whether a pause or the armed time begins or ends; the position (3) in m
    of a goal; a target that is pulled, with the force (3) in N; a parameter and its value as text.
    """

    name: str
    on: bool = False
    position: Vector = (0.0, 0.0, 0.0)
    target: str = ""
    force: Vector = (0.0, 0.0, 0.0)
    parameter: str = ""
    value: str = ""


def parsed(body: bytes) -> Asked:
    """Parse a request in JSON, `{"name": "goal", "position": [1, 0, 1.5]}`.

    Raises RequestError for anything else: unknown, missing and repeated fields, numbers that are
    not finite, true and false as numbers.
    """
    try:
        given = json.loads(
            body.decode("utf-8"), parse_constant=_no_number, object_pairs_hook=_once
        )
    except (ValueError, RecursionError) as error:
        raise RequestError(f"expected a request in JSON: {error}") from error
    if not isinstance(given, dict):
        raise RequestError("expected an object with a name")
    name = given.pop("name", None)
    fields = FIELDS.get(name) if isinstance(name, str) else None
    if fields is None:
        raise RequestError(f"expected one of {', '.join(FIELDS)} as name")
    if set(given) != set(fields):
        raise RequestError(f"{name}: expected {', '.join(fields) or 'nothing'} besides the name")
    if "on" in given and not isinstance(given["on"], bool):
        raise RequestError(f"{name}: expected true or false as on")
    for field in ("position", "force"):
        if field in given:
            given[field] = _vector(name, field, given[field])
    for field in ("target", "parameter", "value"):
        if field in given and not (isinstance(given[field], str) and given[field].isprintable()):
            raise RequestError(f"{name}: expected a line of text as {field}")
    return Asked(name, **given)


def _vector(name: str, field: str, given: Any) -> Vector:
    """Three finite numbers."""
    expected = f"{name}: expected three finite numbers as {field}"
    if not isinstance(given, list) or len(given) != 3:
        raise RequestError(expected)
    if not all(type(number) in (int, float) for number in given):
        raise RequestError(expected)
    try:
        x, y, z = (float(number) for number in given)
    except OverflowError:
        raise RequestError(expected) from None
    if not all(map(math.isfinite, (x, y, z))):
        raise RequestError(expected)
    return x, y, z


def _no_number(text: str) -> float:
    raise RequestError(f"{text} is not a number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A dictionary of the pairs; raises ValueError for a repeated name."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise RequestError("expected every name once")
    return entries
