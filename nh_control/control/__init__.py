"""Controllers on the exact linearization of a discrete system."""

from nh_control.control import lqr
from nh_control.control.tracking import Command, DisturbanceEstimate, LqrTracker

__all__ = ["Command", "DisturbanceEstimate", "LqrTracker", "lqr"]
