"""One C text of several files: a library that is compiled in one call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

NATIVE = Path(__file__).parent / "native"
"""The C files of this folder's algorithms."""
INCLUDE = re.compile(r'^#include "([^"]+)".*\n', re.MULTILINE)


def amalgamation(
    files: Sequence[str],
    given: Mapping[str, str],
    folders: Sequence[Path] = (NATIVE,),
    marked: bool = True,
) -> str:
    """The text of `files` with the headers that they include, each file once; `given` are texts of
    headers by their names, others are looked up in the `folders` in turn. If it is `marked`,
    `#line` tells compilers and debuggers which file a line is from. Raises FileNotFoundError for
    an unknown name.
    """
    seen = set[str]()
    return "".join(_expanded(file, folders, given, seen, marked) for file in files)


def _expanded(
    name: str,
    folders: Sequence[Path],
    given: Mapping[str, str],
    seen: set[str],
    marked: bool,
) -> str:
    """The text of a file that is not among the `seen`, with its headers where it includes them."""
    if name in seen:
        return ""
    seen.add(name)
    text, *rest = INCLUDE.split(_text(name, folders, given))
    pieces, line = list[str](), 1
    for header, following in zip(("", *rest[::2]), (text, *rest[1::2]), strict=True):
        if header:
            pieces.append(_expanded(header, folders, given, seen, marked))
            line += 1  # the line of the #include
        if marked:
            pieces.append(f'\n#line {line} "{name}"\n')
        pieces.append(following)
        line += following.count("\n")
    return "".join(pieces)


def _text(name: str, folders: Sequence[Path], given: Mapping[str, str]) -> str:
    if name in given:
        return given[name]
    for folder in folders:
        if (file := folder.joinpath(name)).is_file():
            return file.read_text()
    raise FileNotFoundError(f"no file {name!r} in {', '.join(map(str, folders))}")
