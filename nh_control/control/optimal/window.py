"""The reference of a horizon that reaches past its end."""

from __future__ import annotations

import numpy as np

from nh_control.control.damping import damping_or_idle
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory


def continued(dsys: DiscreteSystem, reference: Trajectory, steps: int) -> Trajectory:
    """The reference and, from its end on, the model's motion under the damping that acts there for
    so many steps, or as far as it can be stepped: a motion does not stop where its reference does.
    """
    states, inputs = [reference.states[-1]], []
    try:
        for _ in range(steps):
            u = damping_or_idle(dsys, states[-1])
            states.append(dsys.step(states[-1], u))
            inputs.append(u)
    except StepFailed:
        pass  # the last state repeats
    return Trajectory(
        reference.h,
        np.vstack([reference.states, *states[1:]]),
        np.vstack([reference.inputs, *inputs]),
    )
