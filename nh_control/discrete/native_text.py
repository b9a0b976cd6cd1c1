"""C text of a system: its sizes and constants, and the headers that follow from Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from nh_control.discrete import contact_path, contact_step
from nh_control.discrete.method import ContactUnknowns
from nh_control.mechanics.states import ROUNDED
from nh_control.numerics import contact_problem, newton
from nh_control.numerics.amalgamation import amalgamation

CONSTANTS = (
    "TARGET",
    "ACCEPT",
    "LEAST",
    "REFRESH",
    "MAX_ITERATIONS",
    "MAX_HALVINGS",
    "MAX_RATIO",
)
CONTACT_CONSTANTS = {
    "CONE_FLOOR": contact_problem.FLOOR,
    "CONTACT_ITERATIONS": contact_problem.MOST_ITERATIONS,
    "CONTACT_CLOSE": contact_problem.CLOSE,
    "CONTACT_ROUND_OFF": contact_problem.ROUND_OFF,
    "CONTACT_FEASIBLE": contact_problem.FEASIBLE,
    "CONTACT_CENTERING": contact_problem.CENTERING,
    "CONTACT_LEAST": contact_problem.LEAST_SPEED,
    "CONTACT_NEAR": contact_problem.NEAR,
    "CONTACT_BACK": contact_problem.BACK,
    "CONTACT_SHORT": contact_problem.SHORT,
    "CONTACT_OUTER_ITERATIONS": contact_step.MOST_OUTER_ITERATIONS,
    "CONTACT_SETTLED": contact_step.SETTLED,
    "CONTACT_STALLED": contact_step.STALLED,
    "CONTACT_CORRECTIONS": contact_step.CORRECTIONS,
    "PATH_HIGHER": contact_path.HIGHER,
    "PATH_STEPS": contact_path.MOST_STEPS,
    "PATH_FIRST": contact_path.FIRST,
    "PATH_LONGEST": contact_path.LONGEST,
    "PATH_LEAST": contact_path.LEAST,
    "PATH_SHORTER": contact_path.SHORTER,
    "PATH_LONGER": contact_path.LONGER,
    "PATH_EASY": contact_path.EASY,
    "PATH_CORRECTIONS": contact_path.MOST_CORRECTIONS,
    "PATH_HALVINGS": contact_path.MOST_HALVINGS,
    "PATH_CLOSE": contact_path.CLOSE,
    "PATH_SMALL": contact_path.SMALL,
    "PATH_RETURN": contact_path.MOST_RETURN_STEPS,
}


def definitions(shapes: Iterable[str]) -> str:
    """The text of the header `definitions.h`: places of a workspace's arrays in its list,
    statuses, starts and constants of Newton's iteration.
    """
    places = "".join(f"    {array.upper()},\n" for array in shapes)
    statuses, starts = (
        "".join(f"    {name},\n" for name in names) for names in (newton.STATUS, newton.STARTS)
    )
    constants = {name: getattr(newton, name) for name in CONSTANTS} | {"ROUNDED": ROUNDED}
    constants |= CONTACT_CONSTANTS
    return (
        "#ifndef NH_DEFINITIONS_H\n#define NH_DEFINITIONS_H\n"
        "/* Written by discrete/native_text.py: `definitions`. */\n\n"
        f"/* Arrays of a workspace in its list. */\nenum array {{\n{places}}};\n\n"
        f"/* How a step ends. */\nenum status {{\n{statuses}}};\n\n"
        f"/* Where a step starts its search. */\nenum start {{\n{starts}}};\n\n"
        f"/* Constants of newton.py, and of contacts. */\n{macros(constants)}#endif\n"
    )


def macros(values: Mapping[str, object]) -> str:
    """C text that defines some values."""
    return "".join(f"#define {name} {value}\n" for name, value in values.items())


def native_text(
    sizes: Mapping[str, object],
    shapes: Iterable[str],
    *files: str,
    given: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """C text of files of numerics/native for a system of these sizes and arrays, with further
    headers by their names.
    """
    system = macros(sizes) + '#include "definitions.h"\n'
    own = {"system.h": system, "definitions.h": definitions(shapes), **given}
    return amalgamation(files, own)


def contact_sizes(contacts: ContactUnknowns) -> str:
    """The text of the header `contact_sizes.h`: sizes and rows of the contacts."""
    blocks = contacts.blocks
    sizes = {
        "N_FIRST": contacts.first,
        "N_IMPULSES": contact_problem.impulse_count(blocks),
        "N_SLIPS": contact_problem.slip_count(blocks),
        "N_CONTACTS": len(blocks),
    }
    rows = ", ".join(f"{{{', '.join(map(str, block))}}}" for block in blocks)
    return (
        f"{macros(sizes)}static const struct block {{\n    int normal, tangent, k, psi;\n"
        f"}} BLOCKS[N_CONTACTS] = {{{rows}}};\n"
    )
