"""Reasons why methods in coordinates refuse a system."""

from __future__ import annotations

import casadi as ca
import numpy as np

from nh_control.geometry.chart import has_symmetric_retraction
from nh_control.geometry.homogeneous import simple_factors
from nh_control.geometry.spaces import SE2, Rn, Space
from nh_control.integrators.registry import first_of, if_beyond_rolling, if_driven
from nh_control.mechanics.checks import scaled_spectrum
from nh_control.mechanics.system import System

SINGULAR = 1e-12
"""Eigenvalue of the scaled mass matrix below which the matrix counts as singular."""


def with_masses(system: System, mass: ca.SX) -> ca.SX:
    """The mass matrix with 1 on the diagonal for the velocities of first-order coordinates. Their
    momentum is 0, so the matrix would be singular without it.
    """
    diagonal = ca.SX(system.space.nw, 1)
    diagonal[system.space.nw - len(system.first_order) :] = 1
    return mass + ca.diag(diagonal) if system.first_order else mass


def factors_of(space: Space) -> tuple[Space, ...]:
    """The factors of a space that are not products."""
    return tuple(factor for factor, *_ in simple_factors(space))


def is_flat(system: System) -> bool:
    """Whether global coordinates exist for the whole space."""
    return all(isinstance(factor, Rn | SE2) for factor in factors_of(system.space))


def _curved(system: System) -> str:
    kind = type(system.space).__name__
    return "" if is_flat(system) else f"has a {kind} with rotations in space or unit vectors"


def _without_charts(system: System) -> str:
    """SE(2) does not need charts, whatever its retraction."""
    fits = is_flat(system) or has_symmetric_retraction(system.space)
    return "" if fits else "has a retraction with retract(retract(q, d), -d) != q"


def _singular(system: System) -> str:
    q, v = ca.SX.sym("q", system.space.nq), ca.SX.sym("v", system.space.nw)
    mass, frame = ca.hessian(system.lagrangian_at(q, v), v)[0], system.space.frame(q)
    # use tangent coordinates, because the stored velocities of spheres have a null direction
    mass = frame.T @ with_masses(system, mass) @ frame
    value = ca.Function("mass", [q, system.parameter_symbols], [mass])
    position = np.asarray(value(system.space.origin, system.parameter_values))
    # scaling by the diagonal requires positive entries
    positive = np.isfinite(position).all() and (np.diag(position) > 0).all()
    regular = positive and scaled_spectrum(position)[0][0] > SINGULAR
    return "" if regular else "has a mass matrix that is singular off its constraints"


if_unfit = first_of(if_beyond_rolling, _without_charts, _singular)
"""Refuses systems without `Coordinates`, which are systems with holonomic constraints, prescribed
coordinates, drift, or mass matrices that are regular only on the constraints.
"""

if_irregular = first_of(if_driven, _without_charts, _singular)
"""Refuses the same systems as `if_unfit`, except those with holonomic constraints."""

if_curved = first_of(if_unfit, _curved)
"""Also refuses spatial rotations and unit vectors. It is for explicit methods, because they do not
know the middle of a step.
"""
