"""C code for a system: its sizes and constants, and headers that are generated from Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from nh_control.mechanics.states import ROUNDED
from nh_control.numerics import newton
from nh_control.numerics.amalgamation import amalgamation
from nh_control.numerics.contact_problem import Block, impulse_count, slip_count

CONSTANTS = (
    "TOLERANCE",
    "ACCEPT",
    "LEAST",
    "REFRESH",
    "CLOSE",
    "MAX_ITERATIONS",
    "MAX_HALVINGS",
    "MAX_RATIO",
)


def definitions(shapes: Iterable[str]) -> str:
    """The text of the header `definitions.h`. It contains the indices of a workspace's arrays in
    its list, and the statuses, initial guesses and constants for Newton's iteration.
    """
    # enum of the indices in a workspace's list of addresses
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
    """C macros that define these values."""
    return "".join(f"#define {name} {value}\n" for name, value in values.items())


def native_text(sizes: Mapping[str, object], shapes: Iterable[str], *files: str) -> str:
    """The C text of files in numerics/native, for one system with these sizes and arrays."""
    return amalgamation(files, fixed_headers(sizes, shapes))


def fixed_headers(
    sizes: Mapping[str, object],
    shapes: Iterable[str],
    first: int = 0,
    blocks: Sequence[Block] = (),
) -> dict[str, str]:
    """Headers, by name, for code that is compiled for one system. The contact impulses begin at
    the index `first` of the unknowns. N_RANK, the rank of r_z, is N_Z by default.
    """
    system = macros({"N_RANK": "N_Z"} | dict(sizes))
    # the contacts of a fixed system are constants of its C code
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
