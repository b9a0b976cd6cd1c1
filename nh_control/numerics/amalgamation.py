"""Combines several C files into one text, which is compiled in one call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

NATIVE = Path(__file__).parent / "native"
"""The folder that contains this subpackage's C files."""
INCLUDE = re.compile(r'^#include "([^"]+)".*\n', re.MULTILINE)


def amalgamation(
    files: Sequence[str],
    headers: Mapping[str, str],
    folders: Sequence[Path] = (NATIVE,),
    marked: bool = True,
) -> str:
    """The text of `files` and the headers that they include, each only once. `headers` contains
    header texts by name. Other headers are searched for in the `folders`, in order. If the text is
    `marked`, `#line` directives tell compilers and debuggers the file and line of the original
    code. Raises FileNotFoundError for an unknown name.
    """
    seen = set[str]()
    return "".join(_expanded(file, folders, headers, seen, marked) for file in files)


def _expanded(
    name: str,
    folders: Sequence[Path],
    headers: Mapping[str, str],
    seen: set[str],
    marked: bool,
) -> str:
    """The text of a file, in which the headers' texts replace the `#include` lines; "" for a file
    that is already in `seen`.
    """
    if name in seen:
        return ""
    # include each file once, as with an include guard
    seen.add(name)
    text, *rest = INCLUDE.split(_text(name, folders, headers))
    pieces, line = list[str](), 1
    for header, following in zip(("", *rest[::2]), (text, *rest[1::2]), strict=True):
        if header:
            pieces.append(_expanded(header, folders, headers, seen, marked))
            line += 1  # the line of the #include
        if marked:
            # line numbers in the original file
            pieces.append(f'\n#line {line} "{name}"\n')
        pieces.append(following)
        line += following.count("\n")
    return "".join(pieces)


def _text(name: str, folders: Sequence[Path], headers: Mapping[str, str]) -> str:
    if name in headers:
        return headers[name]
    for folder in folders:
        if (file := folder.joinpath(name)).is_file():
            return file.read_text()
    raise FileNotFoundError(f"no file {name!r} in {', '.join(map(str, folders))}")
