"""Control on the exact linearization of a discrete system, in local coordinates of its states.

- LQR: `lqr` (time-varying, stationary, periodic), `stationary`, `linear_quadratic`
- tracking: `LqrTracker`, `Controller`, `damping`, `equilibrium`, `feedback_law`
- optimal control: `costs`, `constraints`, `path_constraints`, `optimize`, `optimal` (native
  interior point, MPC), `projected_descent`, `collocation` (DMOC), `projection`
- estimation: `estimation` (Kalman filter), `identification` (of parameters), `input_history`
- runs: `closed_loop`, `rollout`, `run_data`
- references: `joint_trajectory` (files, splines), `joint_reference` (inverse dynamics), `paths`
"""

from nh_control.control import lqr
from nh_control.control.equilibrium import NoEquilibrium, equilibrium
from nh_control.control.projection import project_trajectory
from nh_control.control.tracking import Command, Controller, DisturbanceEstimate, LqrTracker

__all__ = [
    "Command",
    "Controller",
    "DisturbanceEstimate",
    "LqrTracker",
    "NoEquilibrium",
    "equilibrium",
    "lqr",
    "project_trajectory",
]
