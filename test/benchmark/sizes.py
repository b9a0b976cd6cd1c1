"""Sizes of the benchmarks: full, or the smallest ones with NH_CONTROL_SHORT in the environment
(`--short` of pytest sets it), which check that everything runs, not its speed.
"""

import os
from typing import TypeVar

T = TypeVar("T")
SHORT = "NH_CONTROL_SHORT" in os.environ


def sized(whole: T, short: T) -> T:
    """Return the size of this run."""
    return short if SHORT else whole
