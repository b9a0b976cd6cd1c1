"""Sizes of the benchmarks: whole, or with NH_CONTROL_SHORT in the environment (`--short` of pytest
sets it) the least with which everything is run once, to see that it runs, not how fast.
"""

import os
from typing import TypeVar

T = TypeVar("T")
SHORT = "NH_CONTROL_SHORT" in os.environ


def sized(whole: T, short: T) -> T:
    """The size of this run."""
    return short if SHORT else whole
