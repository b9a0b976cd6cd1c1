"""Messages that are wrong in every way that their types allow."""

from __future__ import annotations

import copy
import math
from array import array

import numpy as np

FLOATS = (math.nan, math.inf, -math.inf, 5e-324, -1e308, 1.7e308, 1e30, 1e9, -0.0, 0.0, 1.0)
SECONDS = (-(2**31), 2**31 - 1, -1, 0, 1, 1_790_000_000)
NANOSECONDS = (0, 1, 999_999_999, 10**9, 2**32 - 1)
TEXTS = ("", "odom", "payload", "rotor_joint", "no such name", "\u00e9\n\t'\"", "x" * 10_000)
MANY = 2000
BITS = 8
"""Bits of a serialized message that are turned over, at most."""


class Fuzzer:
    """Wrong copies of right messages, with lists of up to `many` items."""

    def __init__(self, seed: int, many: int = MANY):
        self._rng, self.many = np.random.default_rng(seed), many

    def pick(self, values):
        return values[self._rng.integers(len(values))]

    def chance(self, share: float) -> bool:
        return self._rng.random() < share

    def wrong(self, message):
        message = copy.deepcopy(message)
        for _ in range(self._rng.integers(1, 4)):
            self._spoil(message)
        return message

    def garbled(self, data: bytes) -> bytes:
        """A serialized message cut off, continued, or with bits turned over; its encapsulation is
        left as it is, or nobody would look at the rest.
        """
        wrong = bytearray(data)
        way = self._rng.integers(4)
        if way == 0:
            return bytes(wrong[: self._rng.integers(4, len(wrong) + 1)])
        if way == 1:
            return bytes(wrong) + self._rng.bytes(self._rng.integers(1, 64))
        if way == 2 and len(wrong) > 8:  # a length, or what stands there
            at = 4 * int(self._rng.integers(1, len(wrong) // 4))
            wrong[at : at + 4] = self.pick((b"\xff" * 4, b"\x00\x00\x00\x80", b"\xff\xfe\xc0\x80"))
            return bytes(wrong)
        for _ in range(self._rng.integers(1, BITS + 1) if len(wrong) > 4 else 0):
            wrong[self._rng.integers(4, len(wrong))] ^= 1 << self._rng.integers(8)
        return bytes(wrong)

    def _spoil(self, message) -> None:
        names = list(message.get_fields_and_field_types())
        if not names:
            return
        name = self.pick(names)
        value = getattr(message, name)
        if hasattr(value, "get_fields_and_field_types"):
            self._spoil(value)
        elif isinstance(value, (list, array)) and self._rng.random() < 0.5:
            self._spoil_an_item(message, name, value)
        else:
            kind = message.get_fields_and_field_types()[name]
            setattr(message, name, self._wrong_value(name, value, kind))

    def _spoil_an_item(self, message, name, values) -> None:
        if not len(values):
            return
        i = int(self._rng.integers(len(values)))
        if hasattr(values[i], "get_fields_and_field_types"):
            self._spoil(values[i])
        else:
            kind = message.get_fields_and_field_types()[name]
            values[i] = self._wrong_value(name, values[i], kind)

    def _wrong_value(self, name, value, kind):
        if isinstance(value, bool):
            return not value
        if isinstance(value, float):
            return self.pick(FLOATS)
        if isinstance(value, int):
            if "int64" in kind or "uint8" in kind:
                limits = (0, 255) if "uint8" in kind else (-(2**63) * ("u" not in kind), 2**63 - 1)
                return int(self._rng.integers(*limits, endpoint=True))
            return self.pick(NANOSECONDS if name == "nanosec" else SECONDS)
        if isinstance(value, str):
            return self.pick(TEXTS)
        if isinstance(value, np.ndarray):  # of fixed length
            return np.full_like(value, self.pick(FLOATS))
        return self._wrong_list(value)

    def _wrong_list(self, values):
        n = len(values)
        some = values[:1] or (array(values.typecode, [1]) if isinstance(values, array) else values)
        kinds = [values[:0], values[: n // 2], values + values, values + some, some * self.many]
        kinds.append(values[::-1])
        return self.pick(kinds)


def numbers(message):
    """All floats of a message, those of messages in it too."""
    for name in message.get_fields_and_field_types():
        yield from _numbers(getattr(message, name))


def _numbers(value):
    if isinstance(value, float):
        yield value
    elif hasattr(value, "get_fields_and_field_types"):
        yield from numbers(value)
    elif isinstance(value, (array, np.ndarray)):
        yield from (float(x) for x in value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _numbers(item)
