"""Discrete-time integrators. Each integrator consists of a residual and a read-out. `INTEGRATORS`
lists all of them.
"""

from nh_control.integrators import (
    composition,
    discrete_gradients,
    energy_collocation,
    geometric_nonholonomic,
    gonzalez_full,
    index_one,
    lie_group,
    lie_poisson,
    lobatto,
    pontryagin,
    projected_gauss,
    runge_kutta,
    semi_implicit,
    symplectic_lie_group,
    variational,
    variational_gauss,
)
from nh_control.integrators.discrete_gradients import gonzalez, itoh_abe, mean_value
from nh_control.integrators.geometric_nonholonomic import gni, rattle, shake
from nh_control.integrators.gonzalez_full import gonzalez_f
from nh_control.integrators.lie_poisson import lie_mean_value, lie_midpoint
from nh_control.integrators.lobatto import nprk, spark
from nh_control.integrators.pontryagin import rdp
from nh_control.integrators.projected_gauss import nonholonomic_gauss
from nh_control.integrators.registry import Integrator, Registry
from nh_control.integrators.runge_kutta import explicit_runge_kutta, implicit_midpoint
from nh_control.integrators.semi_implicit import si_dla
from nh_control.integrators.symplectic_lie_group import slgi
from nh_control.integrators.variational import midpoint, nonholonomic_midpoint

FAMILIES = (
    variational,
    variational_gauss,
    symplectic_lie_group,
    pontryagin,
    geometric_nonholonomic,
    semi_implicit,
    lobatto,
    projected_gauss,
    discrete_gradients,
    gonzalez_full,
    energy_collocation,
    composition,
    runge_kutta,
    lie_group,
    lie_poisson,
    index_one,
)

# the registry lists methods in the order of these families
INTEGRATORS = Registry()
for _family in FAMILIES:
    INTEGRATORS.add(*_family.INTEGRATORS)

__all__ = [
    "INTEGRATORS",
    "Integrator",
    "explicit_runge_kutta",
    "gni",
    "gonzalez",
    "gonzalez_f",
    "implicit_midpoint",
    "itoh_abe",
    "lie_mean_value",
    "lie_midpoint",
    "mean_value",
    "midpoint",
    "nonholonomic_gauss",
    "nonholonomic_midpoint",
    "nprk",
    "rattle",
    "rdp",
    "shake",
    "si_dla",
    "slgi",
    "spark",
]
