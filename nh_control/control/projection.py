"""The projection operator of Hauser and Saccon: a closed loop with LQR gains converts a desired
trajectory into a feasible one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control import lqr
from nh_control.control.weights import StateWeight
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory


def project_trajectory(
    dsys: DiscreteSystem,
    desired: Trajectory,
    Q: StateWeight,
    R: ArrayLike,
    Qf: StateWeight | None = None,
    stance: bool = False,
) -> Trajectory:
    """A feasible trajectory near `desired` with the same initial state. If `desired` is feasible,
    the result equals it.

    `u_k = u_d,k - K_k local(x_d,k, x_k), x_{k+1} = f(x_k, u_k)` with the gains of the time-varying
    LQR problem (Q, R, Qf), linearized along the desired states and inputs (Hauser and Saccon,
    [johnson2014] reference 23). With `stance`, the gains act only in the directions that contacts
    leave free, as in `lqr.finite_horizon`. Raises StepFailed with the number of the step at which
    the closed loop leaves the domain of the model.
    """
    return follow_with_gains(
        dsys, desired, lqr.finite_horizon(dsys, desired, Q, R, Qf, np.inf, stance).K
    )


def follow_with_gains(dsys: DiscreteSystem, desired: Trajectory, K: np.ndarray) -> Trajectory:
    """The closed-loop trajectory from the first desired state under the gains K (N, nu, ndx).
    Raises StepFailed with the number of the step.
    """
    states, inputs = desired.states.copy(), desired.inputs.copy()
    for k in range(len(desired)):
        # u = u_d - K local(x_d, x)
        inputs[k] -= K[k] @ dsys.local(desired.states[k], states[k])
        try:
            states[k + 1] = dsys.step(states[k], inputs[k])
        except StepFailed as failure:
            raise failure.at_step(k) from None
    return Trajectory(dsys.h, states, inputs, dsys.state_names, dsys.inputs, desired.name, dsys)
