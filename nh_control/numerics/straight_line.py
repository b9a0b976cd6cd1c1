"""Splits the long C functions without branches that CasADi generates into short ones.

The time that a compiler needs to allocate a function's registers grows faster than the length of
the function. A function of 35,000 statements takes 10 s to compile. Cut into pieces of 500
statements, it takes 3 s and runs as fast.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

PIECE = 500
"""Number of statements in a piece."""
LONG = 2000
"""Maximum number of statements in a function that is not cut."""
ON_STACK = 10_000
"""Maximum number of variables on the stack."""

FUNCTION = re.compile(
    r"^(static int (casadi_f\d+)\(const casadi_real\*\* arg, casadi_real\*\* res, "
    r"casadi_int\* iw, casadi_real\* w, int mem\) \{\n)(.*?)^  return 0;\n\}\n",
    re.MULTILINE | re.DOTALL,
)
DECLARATION = re.compile(r"  casadi_real a\d+(, a\d+)*;")
STATEMENT = re.compile(r"  (?:(a\d+)=|if \(res\[\d+\]!=0\) res\[\d+\]\[\d+\]=)([^;{}]*);")
VARIABLE = re.compile(r"\ba\d+\b")


class _Statement(NamedTuple):
    """The text of a statement, the variable that the statement sets, if any, and the variables
    that it reads.
    """

    text: str
    target: str
    reads: list[str]


def in_pieces(text: str) -> str:
    """The C text of CasADi functions, in which each long function calls its pieces. Variables that
    several pieces use are stored in an array. A function with statements other than assignments is
    not changed.
    """
    return FUNCTION.sub(lambda match: _cut(match[1], match[2], match[3]) or match[0], text)


def _cut(heading: str, name: str, body: str) -> str | None:
    lines = body.splitlines()
    if len(lines) <= LONG:
        return None
    statements = [_parsed(line) for line in lines if not DECLARATION.fullmatch(line)]
    known = [statement for statement in statements if statement is not None]
    # a statement that is not understood: leave the function whole
    if len(known) < len(statements):
        return None
    # go backward over the pieces, because each stores the variables that later ones need
    pieces = [known[k : k + PIECE] for k in range(0, len(known), PIECE)]
    texts, needed = list[str](), set[str]()
    for k, piece in reversed([*enumerate(pieces)]):
        texts.append(
            "static __attribute__((noinline)) void "
            f"{name}_{k}(const casadi_real** arg, casadi_real** res, casadi_real* v) {{\n"
            + "".join(f"{line}\n" for line in _lines(piece, needed))
            + "}\n"
        )
    # v[i] holds variable a_i between pieces
    size = 1 + max(_place(s.target) for s in known if s.target)
    where = "static _Thread_local " if size > ON_STACK else ""
    calls = "".join(f"  {name}_{k}(arg, res, v);\n" for k in range(len(pieces)))
    variables = f"  {where}casadi_real v[{size}];\n"
    return "".join((*reversed(texts), heading, variables, calls, "  return 0;\n}\n"))


def _parsed(line: str) -> _Statement | None:
    match = STATEMENT.fullmatch(line)
    return match and _Statement(line, match[1] or "", VARIABLE.findall(match[2]))


def _lines(piece: Sequence[_Statement], needed: set[str]) -> Iterator[str]:
    """The statements of a piece. The piece loads variables from earlier pieces before it reads
    them, and stores the `needed` variables after it has set them for the last time. `needed` is
    updated to the variables that this piece and later pieces need.
    """
    last = {s.target: i for i, s in enumerate(piece) if s.target}
    known, lines = set[str](), list[str]()
    loaded = set[str]()
    for i, (text, target, reads) in enumerate(piece):
        for variable in reads:
            if variable not in known:
                known.add(variable)
                loaded.add(variable)
                lines.append(f"  {variable}=v[{_place(variable)}];")
        lines.append(text)
        if target:
            known.add(target)
            if last[target] == i and target in needed:
                lines.append(f"  v[{_place(target)}]={target};")
    needed.difference_update(last)
    needed |= loaded
    yield f"  casadi_real {', '.join(sorted(known))};"
    yield from lines


def _place(variable: str) -> int:
    return int(variable[1:])
