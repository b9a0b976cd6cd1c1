"""Discrete-time integrators, each a residual and a read-out; `INTEGRATORS` lists them all."""

from nh_control.integrators import composition, reduced, variational
from nh_control.integrators.reduced import rdp
from nh_control.integrators.registry import Integrator, Registry
from nh_control.integrators.variational import midpoint, nonholonomic_midpoint

INTEGRATORS = Registry()
for _family in (variational, reduced, composition):
    INTEGRATORS.add(*_family.INTEGRATORS)

__all__ = ["INTEGRATORS", "Integrator", "midpoint", "nonholonomic_midpoint", "rdp"]
