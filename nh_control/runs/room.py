"""Checks whether a run fits into the memory of this machine."""

from __future__ import annotations

import os

from nh_control.discrete.system import DiscreteSystem

LINEARIZED, SIMULATED = True, False
"""Whether the steps of a run are linearized, for gains, or only simulated."""
NUMBER_BYTES = 8


def bytes_needed(model: DiscreteSystem, steps: int, linearized: bool) -> int:
    """Bytes of the arrays of a run of `steps` steps: A, B, K and P of every step if `linearized`,
    else the states, errors and inputs of the run and of its open loop.
    """
    n, m = model.ndx, model.nu
    numbers = 2 * n * n + 2 * n * m if linearized else 4 * model.nx + 2 * n + 3 * m
    return NUMBER_BYTES * numbers * steps


def memory_bytes() -> int:
    """Memory of this machine in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def require_room(model: DiscreteSystem, steps: int, linearized: bool) -> None:
    """Raise ValueError for more steps than fit into the memory of this machine."""
    needed, there = bytes_needed(model, steps, linearized), memory_bytes()
    if needed > there:
        raise ValueError(
            f"{model}: {steps} steps need {needed / 2**30:.3g} GiB, this machine has "
            f"{there / 2**30:.3g} GiB; choose a longer step or a shorter duration"
        )
