"""Discrete-time integrators, each a residual and a read-out over `discrete.Method`."""

from nh_control.integrators.reduced import rdp
from nh_control.integrators.variational import midpoint, nonholonomic_midpoint

__all__ = ["midpoint", "nonholonomic_midpoint", "rdp"]
