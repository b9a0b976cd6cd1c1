"""One C text of several files: a library that is compiled in one call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

NATIVE = Path(__file__).parent / "native"
"""The C files of this folder's algorithms."""
INCLUDE = re.compile(r'#include "([^"]+)"')


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
    lines = (line for file in files for line in _lines(file, folders, given, seen))
    return "".join(line for line in lines if marked or not line.startswith("\n#line"))


def _lines(
    name: str, folders: Sequence[Path], given: Mapping[str, str], seen: set[str]
) -> Iterator[str]:
    if name in seen:
        return
    seen.add(name)
    yield f'\n#line 1 "{name}"\n'
    for number, line in enumerate(_text(name, folders, given).splitlines(keepends=True), 1):
        included = INCLUDE.match(line)
        if included is None:
            yield line
        else:
            yield from _lines(included[1], folders, given, seen)
            yield f'\n#line {number + 1} "{name}"\n'


def _text(name: str, folders: Sequence[Path], given: Mapping[str, str]) -> str:
    if name in given:
        return given[name]
    for folder in folders:
        if (file := folder.joinpath(name)).is_file():
            return file.read_text()
    raise FileNotFoundError(f"no file {name!r} in {', '.join(map(str, folders))}")
