"""Checks whether a run fits into the memory of this machine."""

from __future__ import annotations

import os

from nh_control.discrete.system import DiscreteSystem

LINEARIZED, SIMULATED = True, False
"""Whether the steps of a run are linearized for gains, or only simulated."""
NUMBER_BYTES = 8


def bytes_needed(model: DiscreteSystem, steps: int, linearized: bool) -> int:
    """Return the size in bytes of the arrays for a run of `steps` steps. The arrays are A, B, K
    and P of each step if `linearized`, otherwise the states, errors and inputs of the run and its
    open loop.
    """
    n, m = model.ndx, model.nu
    # linearized: A, P (n x n) and B, K (n x m) per step
    numbers = 2 * n * n + 2 * n * m if linearized else 4 * model.nx + 2 * n + 3 * m
    return NUMBER_BYTES * numbers * steps


def memory_bytes() -> int:
    """Return this machine's memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def require_memory(model: DiscreteSystem, steps: int, linearized: bool) -> None:
    """Raise ValueError for more steps than fit into the memory of this machine."""
    needed, available = bytes_needed(model, steps, linearized), memory_bytes()
    if needed > available:
        raise ValueError(
            f"{model}: {steps} steps need {needed / 2**30:.3g} GiB, this machine has "
            f"{available / 2**30:.3g} GiB; choose a longer step or a shorter duration"
        )
