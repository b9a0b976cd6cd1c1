"""The length of a run. It is at most the length of the reference, unless the last state can be
held.
"""

from __future__ import annotations

import numpy as np

from nh_control.control import lqr
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory


def rests_at_end(dsys: DiscreteSystem, reference: Trajectory) -> bool:
    """Whether the last state of a reference is an equilibrium under zero forces."""
    x = reference.states[-1]
    # |local(x, f(x, 0))| <= FEASIBLE
    return bool(np.abs(dsys.local(x, dsys.step(x, dsys.idle(x)))).max() <= lqr.FEASIBLE)


def run_steps(
    dsys: DiscreteSystem, reference: Trajectory, duration_s: float = 0.0, hold: bool = False
) -> int:
    """The number of steps of a run with `duration_s` (0: the length of the reference). Raises
    ValueError if the run is longer than a reference that ends in motion, unless the tracker holds
    the last state.
    """
    steps = max(1, round(duration_s / dsys.h)) if duration_s else len(reference)
    if steps > len(reference) and not (hold or rests_at_end(dsys, reference)):
        raise ValueError(
            f"{dsys}: reference {reference.name!r} ends in motion after {reference.duration:g} s, "
            f"so its last state cannot be held; a run can last that long, but not {duration_s:g} s"
        )
    return steps
