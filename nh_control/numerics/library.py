"""The native library: C algorithms that do not depend on the system. They are compiled when the
package is installed.

setup.py runs this file to build the library before other packages are installed, so it imports
only modules from the standard library.
"""

from __future__ import annotations

import ctypes
import hashlib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
"""The folder of the package."""
FOLDER = Path(__file__).parent
"""The folder that contains the library."""
SOURCES = (
    "multibody/native/kernel.c",
    *(
        f"control/optimal/native/{name}.c"
        for name in (
            *("horizon", "interior_point", "mixing", "real_time", "riccati", "search"),
            *("slacks", "threads", "tracking"),
        )
    ),
    *(
        f"numerics/native/{name}.c"
        for name in (
            *("adaptive", "closed_loop", "contact_step", "digest", "hessian", "impulse_library"),
            *("linearize", "motion", "newton_step", "stepper", "virtual_machine"),
        )
    ),
)
INCLUDES = ("numerics/native", "multibody/native", "control/optimal/native")
PROCESSORS = ((), ("avx2",), ("avx512f", "avx512vl"))
"""Processor features (x86-64) for which there is a separate library. The names are those in
/proc/cpuinfo. With the prefix `-m`, they are also compiler flags. Other processors use the first
library.
"""
FLAGS = ("-O3", "-fPIC", "-shared", "-pthread", "-ffp-contract=off", "-Wno-psabi", "-Werror=vla")
"""Without contraction, all libraries compute the same bits. Variable-length arrays are errors
because they would overflow the stack for a large model.
"""


def file_name(features: tuple[str, ...]) -> str:
    """The name of the library for processors with these features."""
    return "-".join(("libnh_control", *features)) + ".so"


def digest() -> str:
    """The hash of the C files and flags from which the library is built."""
    files = sorted(file for folder in INCLUDES for file in (ROOT / folder).glob("*.[ch]"))
    texts = (file.read_bytes() for file in files)
    return hashlib.sha256(b"\0".join((*texts, *map(str.encode, FLAGS)))).hexdigest()


def command(features: tuple[str, ...], compiler: tuple[str, ...], target: Path) -> list[str]:
    """The command that builds the library for processors with these features."""
    return [
        *compiler,
        *FLAGS,
        *(f"-m{feature}" for feature in features),
        f'-DNH_DIGEST="{digest()}"',
        *(f"-I{ROOT / folder}" for folder in INCLUDES),
        *(str(ROOT / source) for source in SOURCES),
        "-o",
        str(target),
        "-lm",
    ]


@cache
def library() -> ctypes.PyDLL:
    """The library for this processor. Raises OSError if the library is missing or if the C files
    have changed since it was built.
    """
    # the most specific feature set that this processor supports and for which a library was built
    features = next(
        names
        for names in reversed(PROCESSORS)
        if {*names} <= processor_features() and (FOLDER / file_name(names)).is_file() or not names
    )
    path = FOLDER / file_name(features)
    remedy = "install the package again (in a checkout: `pip install -e .`)"
    if not path.is_file():
        raise OSError(f"the native library {path} is missing: {remedy}")
    loaded = ctypes.PyDLL(str(path))
    # a stale library would have different data layouts
    built_from = loaded["nh_digest"]
    built_from.restype = ctypes.c_char_p
    if built_from().decode() != digest():
        raise OSError(f"the native library {path} was built from different C files: {remedy}")
    return loaded


@cache
def releasing_library() -> ctypes.CDLL:
    """The library for calls that may take a long time. Other Python threads run during these
    calls. Calls through `library()` keep Python's interpreter lock, because reacquiring the lock
    would take longer than a step.
    """
    return ctypes.CDLL(library()._name)


def processor_features() -> set[str]:
    """The features of this processor; none if Linux does not list them."""
    try:
        return {*Path("/proc/cpuinfo").read_text().split()}
    except OSError:
        return set()
