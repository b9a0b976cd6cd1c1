"""Animated WebP, PNG and GIF. They are written picture by picture, because Pillow would keep all
pictures of a film in memory. Only the part of a picture that differs from the previous picture is
stored.

Sources: Google's WebP container specification; the PNG specification, third edition; and the
Graphics Interchange Format, version 89a.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any, BinaryIO, NamedTuple, TypeAlias

from PIL import GifImagePlugin, Image, ImageChops

Pictures: TypeAlias = Iterable[Image.Image]
UNCHANGED = 255
"""Index of the transparent color in a GIF."""
OVERLAY: dict[str, Any] = {"disposal": 1, "transparency": UNCHANGED, "include_color_table": True}
"""Pillow options for a part of a GIF that is drawn over the previous pictures."""


@dataclass(frozen=True)
class Film:
    """The width and height of a film in pixels, its number of pictures per second, and its total
    number of pictures.
    """

    size: tuple[int, int]
    rate_hz: float
    n_pictures: int


class Change(NamedTuple):
    """A part of a picture, the position of its upper left pixel, and its duration in ticks.
    `unchanged` is a mask of the pixels that are equal to those in the previous picture, or None
    for the first picture.
    """

    part: Image.Image
    left: int
    top: int
    ticks: int
    unchanged: Image.Image | None


def changes(pictures: Pictures, ticks_per_picture: float) -> Iterator[Change]:
    """The changes from picture to picture. The cumulative ticks are rounded to avoid drift."""
    before, shown = None, 0
    for k, picture in enumerate(pictures, 1):
        ticks, shown = max(1, round(k * ticks_per_picture) - shown), round(k * ticks_per_picture)
        if before is None:
            yield Change(picture, 0, 0, ticks, None)
        else:
            # The bounding box of the pixels that differ, or two pixels if there are none.
            difference = ImageChops.difference(picture, before)
            left, top, right, bottom = difference.getbbox() or (0, 0, 2, 2)
            left, top = left // 2 * 2, top // 2 * 2  # WebP stores the offsets divided by two
            box = left, top, right, bottom
            red, green, blue = difference.crop(box).split()
            largest = ImageChops.lighter(ImageChops.lighter(red, green), blue)
            same = largest.point([255] + [0] * 255, "1")
            yield Change(picture.crop(box), left, top, ticks, same)
        before = picture


def write_webp(out: BinaryIO, pictures: Pictures, film: Film) -> None:
    """Write an animated WebP that repeats forever."""
    out.write(b"RIFF\0\0\0\0WEBP")
    width, height = (_int24(length - 1) for length in film.size)
    # VP8X: flag 2 marks an animation, followed by width - 1 and height - 1.
    _write_riff(out, b"VP8X", struct.pack("<I", 2) + width + height)
    _write_riff(out, b"ANIM", struct.pack("<IH", 0xFFFFFFFF, 0))
    for change in changes(pictures, 1000 / film.rate_hz):
        file = BytesIO()
        change.part.save(file, "WEBP", quality=80, method=3)
        place = (change.left // 2, change.top // 2, change.part.width - 1, change.part.height - 1)
        # ANMF: position / 2, size - 1, duration (ms) and flags, followed by the image without its
        # RIFF header.
        header = b"".join(map(_int24, (*place, change.ticks)))
        _write_riff(out, b"ANMF", header + b"\2" + file.getvalue()[12:])
    # The RIFF header contains the length of the rest of the file, which is only known now.
    length = out.tell()
    out.seek(4)
    out.write(struct.pack("<I", length - 8))


def write_png(out: BinaryIO, pictures: Pictures, film: Film) -> None:
    """Write an animated PNG that repeats forever."""
    out.write(b"\x89PNG\r\n\x1a\n")
    _write_png(out, b"IHDR", struct.pack(">IIBBBBB", *film.size, 8, 2, 0, 0, 0))
    _write_png(out, b"acTL", struct.pack(">II", film.n_pictures, 0))
    number = 0
    for k, change in enumerate(changes(pictures, 1000 / film.rate_hz)):
        place = (*change.part.size, change.left, change.top)
        # fcTL: sequence number, size, position, delay as a fraction, disposal and blending.
        control = struct.pack(">IIIIIHHBB", number, *place, change.ticks, 1000, 0, 0)
        _write_png(out, b"fcTL", control)
        number += 1
        for data in _image_data(change.part):
            if k == 0:
                _write_png(out, b"IDAT", data)
            else:
                _write_png(out, b"fdAT", struct.pack(">I", number) + data)
                number += 1
    _write_png(out, b"IEND", b"")


def write_gif(out: BinaryIO, pictures: Pictures, film: Film) -> None:
    """Write an animated GIF that repeats forever. Each change has its own color table."""
    out.write(b"GIF89a" + struct.pack("<HHBBB", *film.size, 0, 0, 0))
    out.write(b"\x21\xff\x0bNETSCAPE2.0\3\1\0\0\0")
    for change in changes(pictures, 100 / film.rate_hz):
        indexed = change.part.quantize(UNCHANGED)
        if change.unchanged is not None:
            indexed.paste(UNCHANGED, mask=change.unchanged)
        place, ticks = (change.left, change.top), 10 * change.ticks
        for data in GifImagePlugin.getdata(indexed, place, duration=ticks, **OVERLAY):
            out.write(data)
    out.write(b";")


WRITERS = {".webp": write_webp, ".png": write_png, ".gif": write_gif}
"""The functions that write films, by the suffix of the file."""


def _write_riff(out: BinaryIO, name: bytes, data: bytes) -> None:
    out.write(name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2))


def _write_png(out: BinaryIO, name: bytes, data: bytes) -> None:
    length, check = struct.pack(">I", len(data)), struct.pack(">I", zlib.crc32(name + data))
    out.write(length + name + data + check)


def _image_data(picture: Image.Image) -> Iterator[bytes]:
    """The contents of the IDAT chunks of a picture encoded as PNG."""
    file = BytesIO()
    picture.save(file, "PNG")
    data, at = file.getvalue(), 8
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        if data[at + 4 : at + 8] == b"IDAT":
            yield data[at + 8 : at + 8 + length]
        at += 12 + length


def _int24(value: int) -> bytes:
    return value.to_bytes(3, "little")
