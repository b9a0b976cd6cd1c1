"""C text of a system: its sizes and constants, and the headers that follow from Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from nh_control.mechanics.states import ROUNDED
from nh_control.numerics import newton
from nh_control.numerics.amalgamation import amalgamation
from nh_control.numerics.contact_problem import Block, impulse_count, slip_count

CONSTANTS = (
    "TARGET",
    "ACCEPT",
    "LEAST",
    "REFRESH",
    "MAX_ITERATIONS",
    "MAX_HALVINGS",
    "MAX_RATIO",
)


def definitions(shapes: Iterable[str]) -> str:
    """The text of the header `definitions.h`: places of a workspace's arrays in its list,
    statuses, starts and constants of Newton's iteration.
    """
    places = "".join(f"    {array.upper()},\n" for array in shapes)
    statuses, starts = (
        "".join(f"    {name},\n" for name in names) for names in (newton.STATUS, newton.STARTS)
    )
    constants = {name: getattr(newton, name) for name in CONSTANTS} | {"ROUNDED": ROUNDED}
    return (
        "#ifndef NH_DEFINITIONS_H\n#define NH_DEFINITIONS_H\n"
        "/* Written by discrete/native_text.py: `definitions`. */\n\n"
        f"/* Arrays of a workspace in its list. */\nenum array {{\n{places}}};\n\n"
        f"/* How a step ends. */\nenum status {{\n{statuses}}};\n\n"
        f"/* Where a step starts its search. */\nenum start {{\n{starts}}};\n\n"
        f"/* Constants of newton.py. */\n{macros(constants)}#endif\n"
    )


def macros(values: Mapping[str, object]) -> str:
    """C text that defines some values."""
    return "".join(f"#define {name} {value}\n" for name, value in values.items())


def native_text(sizes: Mapping[str, object], shapes: Iterable[str], *files: str) -> str:
    """C text of files of numerics/native for one system of these sizes and arrays."""
    return amalgamation(files, fixed_headers(sizes, shapes))


def fixed_headers(
    sizes: Mapping[str, object],
    shapes: Iterable[str],
    first: int = 0,
    blocks: Sequence[Block] = (),
) -> dict[str, str]:
    """Headers by their names for code that is compiled for one system, whose impulses of contacts
    begin at the place `first` among the unknowns. The rank N_RANK of r_z is N_Z by default.
    """
    system = macros({"N_RANK": "N_Z"} | dict(sizes))
    if blocks:
        counts = first, impulse_count(blocks), slip_count(blocks), len(blocks)
        names = "N_FIRST", "N_IMPULSES", "N_SLIPS", "N_CONTACTS"
        rows = ", ".join(f"{{{', '.join(map(str, block))}}}" for block in blocks)
        system += (
            f"{macros(dict(zip(names, counts)))}static const struct block {{\n"
            f"    int normal, tangent, k, psi;\n}} BLOCKS[N_CONTACTS] = {{{rows}}};\n"
        )
    includes = '#include "definitions.h"\n#include "fixed_system.h"\n'
    return {"system.h": system + includes, "definitions.h": definitions(shapes)}
