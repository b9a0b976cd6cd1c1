"""What a live page may ask for, read from bytes that anybody may have written."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

LARGEST = 4096
"""Bytes of the longest request."""
FIELDS: dict[str, tuple[str, ...]] = {
    "pause": ("on",),
    "step": (),
    "reset": (),
    "arm": ("on",),
    "goal": ("position",),
}
"""Requests by name, each with what it says besides."""


class RequestError(ValueError):
    """A request that cannot be read; the message says what was expected."""


@dataclass(frozen=True)
class Asked:
    """A request: its name, whether a pause or the armed time begins or ends, and a goal's
    position (3) in m."""

    name: str
    on: bool = False
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)


def parsed(body: bytes) -> Asked:
    """The request of a body in JSON, `{"name": "goal", "position": [1, 0, 1.5]}`.

    Raises RequestError for everything else: unknown, missing and repeated fields, numbers that are
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
    if "position" in given:
        given["position"] = _position(given["position"])
    return Asked(name, **given)


def _position(given: Any) -> tuple[float, float, float]:
    """Three finite numbers."""
    expected = "goal: expected three finite numbers as position"
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
    """An object whose names are all different."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RequestError("expected every name once")
    return found
