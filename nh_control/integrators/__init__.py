"""Discrete-time integrators, each a residual and a read-out; `INTEGRATORS` lists them all."""

from nh_control.integrators import (
    geometric_nonholonomic,
    lobatto,
    nonholonomic_gauss,
    reduced,
    runge_kutta,
    semi_implicit,
    variational,
)
from nh_control.integrators.geometric_nonholonomic import gni, rattle, shake
from nh_control.integrators.reduced import rdp
from nh_control.integrators.registry import Integrator, Registry
from nh_control.integrators.variational import midpoint, nonholonomic_midpoint

INTEGRATORS = Registry()
for _family in (
    variational,
    reduced,
    geometric_nonholonomic,
    semi_implicit,
    lobatto,
    nonholonomic_gauss,
    runge_kutta,
):
    INTEGRATORS.add(*_family.INTEGRATORS)

__all__ = [
    "INTEGRATORS",
    "Integrator",
    "gni",
    "midpoint",
    "nonholonomic_midpoint",
    "rattle",
    "rdp",
    "shake",
]
