"""Control based on the exact linearization of a discrete system, in local coordinates of its
states.

- LQR: `lqr` (time-varying, stationary, periodic), `stationary`, `linear_quadratic`
- tracking: `LqrTracker`, `damping`, `equilibrium`, `feedback_law`; `controller` (user-defined)
- optimal control: `costs`, `constraints`, `path_constraints`, `optimize`, `optimal` (native
  interior point, MPC), `projected_descent`, `collocation` (DMOC), `projection`
- estimation: `estimation` (Kalman filter), `identification` (parameters), `input_history`
- runs: `closed_loop`, `rollout`, `run_data`
- references: `joint_trajectory` (files, splines), `joint_reference` (inverse dynamics), `paths`
"""

from nh_control.control import lqr
from nh_control.control.controller import Controller, ControllerTracker
from nh_control.control.equilibrium import NoEquilibrium, equilibrium
from nh_control.control.projection import project_trajectory
from nh_control.control.reference_tracker import Command
from nh_control.control.tracking import DisturbanceEstimate, LqrTracker

__all__ = [
    "Command",
    "Controller",
    "ControllerTracker",
    "DisturbanceEstimate",
    "LqrTracker",
    "NoEquilibrium",
    "equilibrium",
    "lqr",
    "project_trajectory",
]
