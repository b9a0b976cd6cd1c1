"""Discrete-time integrators, each a residual and a read-out; `INTEGRATORS` lists them all."""

from nh_control.integrators import (
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

INTEGRATORS = Registry()
for _family in (
    variational,
    reduced,
    variational_gauss,
    discrete_gradients,
    gonzalez_full,
    energy_collocation,
):
    INTEGRATORS.add(*_family.INTEGRATORS)

__all__ = ["INTEGRATORS", "Integrator", "midpoint", "nonholonomic_midpoint", "rdp"]
