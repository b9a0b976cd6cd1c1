"""Control-loop messages as CDR bytes, the form in which the middleware sends them.

rclpy takes 10 to 110 us to convert such a message to bytes or back. Between steps, only times and
numbers change, while names, frames and lengths stay the same. Therefore a `Template` lets rclpy
serialize the message once, and then writes and reads the numbers at their positions. The numbers
of a state go from its codec to the bytes without being stored in the message.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate, chain
from typing import Any, TypeAlias

from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.serialization import deserialize_message, serialize_message

from nh_control.loop.clocks import NANOSECONDS
from nh_control.loop.reports import Refusal
from nh_control.ros.messages.conversions import ConversionError

HEADER = 4
"""Number of bytes before the first value: two for the version and the byte order, and two for
options, which are not used here.
"""
CDR = (b"\0\0", b"\0\1")
"""Encoding versions with the layout that `_Layout` describes, for both byte orders."""
LETTERS = {"double": "d", "int32": "i", "uint32": "I"}
"""Types of numbers that may change, with their letters in `struct`. Each number is aligned to its
size.
"""
_STAMP = struct.Struct("=iI")


class Template:
    """The bytes of a `message` with the current values of its numbers.

    Doubles, integers and sequences of doubles may change, even in nested messages, as long as the
    nested messages remain the same objects. Everything else is constant: strings, lengths, and
    fixed-length arrays such as covariances. Raises TypeError for a message with a field of another
    type, and ValueError if ROS uses another serialization.
    """

    def __init__(self, message: Any):
        self.message = message
        layout = _Layout(message)
        self._runs = layout.runs
        # the runs after the stamp, with their parts of all numbers after it
        ends = [0, *accumulate(run.count for run in layout.runs[1:])]
        self._parts = list(zip(layout.runs[1:], map(slice, ends, ends[1:])))
        self._count = ends[-1]
        self._bytes, mask = bytearray(HEADER + layout.end), bytearray(HEADER + layout.end)
        serialized = serialize_message(message)
        # other middlewares may use another encoding or alignment
        if serialized[:2] not in CDR:
            raise ValueError(
                f"expected a message serialized as CDR, its header 0000 or 0001; got "
                f"{serialized[:2].hex()}; use RMW_IMPLEMENTATION=rmw_fastrtps_cpp"
            )
        # the mask excludes numbers, which change, and padding, whose bytes are arbitrary
        for part in layout.fixed:
            self._bytes[part] = serialized[part]
            mask[part] = b"\xff" * (part.stop - part.start)
        self._mask, self._fixed = (int.from_bytes(part, "little") for part in (mask, self._bytes))

    def encode(self) -> bytes:
        """The message's bytes. Raises struct.error if the length of a sequence has changed."""
        for run in self._runs:
            run.format.pack_into(self._bytes, run.start, *run.get())
        return bytes(self._bytes)

    def stamped(self, stamp_ns: int, numbers: Sequence[float] = ()) -> bytes:
        """The bytes with a stamp (ns), with which the message must begin, and all `numbers` after
        it, in the order of the fields. Does not change the message. Raises struct.error for
        another count of numbers.
        """
        if len(numbers) != self._count:
            raise struct.error(f"expected {self._count} numbers, got {len(numbers)}")
        _STAMP.pack_into(self._bytes, HEADER, *divmod(stamp_ns, NANOSECONDS))
        for run, part in self._parts:
            run.format.pack_into(self._bytes, run.start, *numbers[part])
        return bytes(self._bytes)

    def numbers(self, data: bytes) -> tuple[float, ...]:
        """All numbers after the stamp, in the order of the fields, in bytes that fit this message,
        which does not change.
        """
        runs = [run.format.unpack_from(data, run.start) for run, _ in self._parts]
        return tuple(chain.from_iterable(runs))

    def write(self, numbers: Sequence[float]) -> None:
        """Write all `numbers` after the stamp into the message, in the order of the fields."""
        for run, part in self._parts:
            run.set(numbers[part])

    def fits(self, data: bytes) -> bool:
        """Whether the bytes equal those of this message, apart from its numbers, its padding and
        any bytes after its end.
        """
        head = data[: len(self._bytes)]
        complete = len(head) == len(self._bytes)
        return complete and int.from_bytes(head, "little") & self._mask == self._fixed

    def decode(self, data: bytes) -> Any:
        """The message in the bytes: `message` itself with the numbers in `data` if the bytes fit,
        otherwise a new message from rclpy. Raises ConversionError if the bytes are not a message
        of its type.
        """
        if not self.fits(data):
            return deserialized(data, type(self.message))
        for run in self._runs:
            run.set(run.format.unpack_from(data, run.start))
        return self.message


def header_stamp(data: bytes) -> int:
    """Stamp (ns) of a message that begins with a header, from its bytes in this machine's byte
    order.
    """
    seconds, nanoseconds = _STAMP.unpack_from(data, HEADER)
    return int(seconds * NANOSECONDS + nanoseconds)


def deserialized(data: bytes, message_type: type) -> Any:
    """The message of the given type in the bytes. Raises ConversionError for other bytes."""
    try:
        return deserialize_message(data, message_type)
    except rclpy_implementation.RMWError as reason:
        text = f"{len(data)} bytes that are not a {message_type.__name__}"
        raise ConversionError(Refusal.LENGTH, text) from reason


class _Scalars:
    """Consecutive scalar fields without padding between them."""

    def __init__(self, start: int):
        self.start, self._letters = start, ""
        self._owners: list[Any] = []
        self._names: list[str] = []

    def add(self, letter: str, owner: Any, name: str) -> None:
        """Add the field `name` of `owner` at the end."""
        self._letters += letter
        self._owners.append(owner)
        self._names.append(name)

    @property
    def count(self) -> int:
        """The number of fields."""
        return len(self._names)

    @property
    def end(self) -> int:
        """The position after the last field."""
        return self.start + struct.calcsize("=" + self._letters)

    @cached_property
    def format(self) -> struct.Struct:
        """The format of all fields."""
        return struct.Struct("=" + self._letters)

    def get(self) -> Sequence[float]:
        """The values of the fields."""
        return list(map(getattr, self._owners, self._names))

    def set(self, values: Sequence[float]) -> None:
        """Set the values of the fields."""
        for owner, name, value in zip(self._owners, self._names, values):
            setattr(owner, name, value)


class _Doubles:
    """A sequence of doubles."""

    def __init__(self, start: int, owner: Any, name: str):
        self.start, self._owner, self._name = start, owner, name
        self.count = len(self.get())
        self.format = struct.Struct(f"={self.count}d")

    def get(self) -> Sequence[float]:
        """The numbers in the sequence."""
        values: Sequence[float] = getattr(self._owner, self._name)
        return values

    def set(self, values: Sequence[float]) -> None:
        """Set the numbers, whose count must not change."""
        setattr(self._owner, self._name, array("d", values))


_Run: TypeAlias = _Scalars | _Doubles


class _Layout:
    """The positions of a message's values: `runs` of numbers, and slices of `fixed` bytes. Every
    value is aligned to its size relative to the end of the header. Strings and sequences begin
    with their lengths.
    """

    def __init__(self, message: Any):
        self.end = 0
        self.runs: list[_Run] = []
        self.fixed = [slice(0, 2)]
        self._add_message(message, "message")

    def _add_message(self, message: Any, kind: str) -> None:
        if not hasattr(message, "get_fields_and_field_types"):
            known = ", ".join(LETTERS)
            raise TypeError(f"expected fields of {known}, texts or messages; got {kind}")
        # fields are serialized in the order of the message definition
        for name, field in message.get_fields_and_field_types().items():
            self._add(message, name, field)

    def _add(self, owner: Any, name: str, kind: str) -> None:
        value = getattr(owner, name)
        if kind in LETTERS:
            self._add_number(LETTERS[kind], owner, name)
        elif kind == "string":
            self._add_text(value)
        elif kind.startswith("double["):
            self._fix(8, len(value))
        elif kind.startswith("sequence<"):
            self._fix(4)
            self._add_items(owner, name, kind)
        else:
            self._add_message(value, kind)

    def _add_number(self, letter: str, owner: Any, name: str) -> None:
        start = self._place(struct.calcsize("=" + letter))
        run = self.runs[-1] if self.runs else None
        # padding ends a run, because `struct` would not skip it
        if not isinstance(run, _Scalars) or run.end != start:
            run = _Scalars(start)
            self.runs.append(run)
        run.add(letter, owner, name)

    def _add_items(self, owner: Any, name: str, kind: str) -> None:
        value = getattr(owner, name)
        if kind == "sequence<double>":
            if len(value):
                self.runs.append(_Doubles(self._place(8, len(value)), owner, name))
        elif kind == "sequence<string>":
            for text in value:
                self._add_text(text)
        else:
            for part in value:
                self._add_message(part, kind)

    def _add_text(self, text: str) -> None:
        self._fix(4)
        # the length includes the terminating zero
        self._fix(1, len(text.encode()) + 1)

    def _fix(self, size: int, count: int = 1) -> None:
        start = self._place(size, count)
        self.fixed.append(slice(start, start + size * count))

    def _place(self, size: int, count: int = 1) -> int:
        """Reserve aligned bytes for `count` values of the given size, and return their
        position.
        """
        start = self.end + -self.end % size  # next multiple of the size
        self.end = start + size * count
        return HEADER + start
