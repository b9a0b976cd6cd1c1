"""Discrete-time integrators, each a residual and a read-out; `INTEGRATORS` lists them all."""

from nh_control.integrators import (
    composition,
    discrete_gradients,
    energy_collocation,
    gonzalez_full,
    reduced,
    variational,
    variational_gauss,
)
from nh_control.integrators.reduced import rdp
from nh_control.integrators.registry import Integrator, Registry
from nh_control.integrators.variational import midpoint, nonholonomic_midpoint

FAMILIES = (
    variational,
    variational_gauss,
    reduced,
    discrete_gradients,
    gonzalez_full,
    energy_collocation,
    composition,
)

INTEGRATORS = Registry()
for _family in FAMILIES:
    INTEGRATORS.add(*_family.INTEGRATORS)

__all__ = ["INTEGRATORS", "Integrator", "midpoint", "nonholonomic_midpoint", "rdp"]
