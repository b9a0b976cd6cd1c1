"""Controllers on the exact linearization of a discrete system."""

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
