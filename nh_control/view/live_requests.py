"""Requests from a live page, parsed from bytes that may come from anyone."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

LARGEST = 4096
"""Maximum number of bytes in a request."""
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
"""The names of the requests, with their fields."""


class RequestError(ValueError):
    """A request is invalid. The message says what was expected."""


@dataclass(frozen=True)
class ViewRequest:
    """A request with its name and fields. The fields are: whether a pause or the armed state
    begins or ends (`on`); the position (3) in m of a goal; a target and the force (3) in N that
    pulls it; or a parameter and its value as text.
    """

    name: str
    on: bool = False
    position: Vector = (0.0, 0.0, 0.0)
    target: str = ""
    force: Vector = (0.0, 0.0, 0.0)
    parameter: str = ""
    value: str = ""


def parsed(body: bytes) -> ViewRequest:
    """Parse a JSON request, such as `{"name": "goal", "position": [1, 0, 1.5]}`.

    Raises RequestError for anything else, including unknown, missing or repeated fields, numbers
    that are not finite, and Boolean values in place of numbers.
    """
    try:
        fields = json.loads(
            body.decode("utf-8"), parse_constant=_no_number, object_pairs_hook=_once
        )
    except (ValueError, RecursionError) as error:
        raise RequestError(f"expected a request in JSON: {error}") from error
    if not isinstance(fields, dict):
        raise RequestError("expected an object with a name")
    name = fields.pop("name", None)
    known = FIELDS.get(name) if isinstance(name, str) else None
    if known is None:
        raise RequestError(f"expected one of {', '.join(FIELDS)} as name")
    # Both missing and unknown fields are refused.
    if set(fields) != set(known):
        raise RequestError(f"{name}: expected {', '.join(known) or 'nothing'} besides the name")
    if "on" in fields and not isinstance(fields["on"], bool):
        raise RequestError(f"{name}: expected true or false as on")
    for field in ("position", "force"):
        if field in fields:
            fields[field] = _vector(name, field, fields[field])
    for field in ("target", "parameter", "value"):
        text = fields.get(field, "")
        if not (isinstance(text, str) and text.isprintable()):
            raise RequestError(f"{name}: expected a line of text as {field}")
    return ViewRequest(name, **fields)


def _vector(name: str, field: str, value: Any) -> Vector:
    """Return three finite numbers. Raises RequestError for anything else."""
    expected = f"{name}: expected three finite numbers as {field}"
    if not isinstance(value, list) or len(value) != 3:
        raise RequestError(expected)
    # Check `type` instead of `isinstance`, because bool is a subclass of int.
    if not all(type(number) in (int, float) for number in value):
        raise RequestError(expected)
    try:
        x, y, z = (float(number) for number in value)
    except OverflowError:
        raise RequestError(expected) from None
    if not all(map(math.isfinite, (x, y, z))):
        raise RequestError(expected)
    return x, y, z


def _no_number(text: str) -> float:
    raise RequestError(f"{text} is not a number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a dictionary of the pairs. Raises RequestError for a repeated name."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise RequestError("expected every name once")
    return entries
