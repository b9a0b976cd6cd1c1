"""How states (q, rho) of a system are stored: where momenta stand, and what they are called."""

from __future__ import annotations

from nh_control.geometry.spaces import PhaseSpace, Product, Rn, Space
from nh_control.mechanics.elimination import Elimination
from nh_control.mechanics.lagrangian_system import LagrangianSystem


def stores_components(system: LagrangianSystem, elimination: Elimination) -> bool:
    """Whether momenta are stored as their components `X^T p` (n_rho): with velocity constraints,
    but not beside spheres, whose bases turn; otherwise they are stored like velocities.
    """
    return bool(system.m) and not elimination.on_spheres


def state_space(system: LagrangianSystem, elimination: Elimination) -> Space:
    """Space of the states: the configuration space, and that of the stored momenta with the
    velocities of prescribed coordinates at their end.
    """
    if stores_components(system, elimination):
        rho = (f"rho_{i + 1}" for i in range(system.n_rho))
        return Product(system.space, Rn(*rho, *(f"v_{name}" for name in system.prescribed)))
    space = system.space
    stored, local = (
        [_momentum_name(system, name.removesuffix("_dot")) for name in names]
        for names in (space.velocity_names, space.tangent_names)
    )
    return PhaseSpace(space, stored, local, elimination.dropped, elimination.dependent)


def _momentum_name(system: LagrangianSystem, name: str) -> str:
    """Name of the stored momentum of a velocity, or of the velocity if it is prescribed."""
    if name in system.prescribed:
        return f"v_{name}"
    return f"rho_{name}" if system.m else f"p_{name}"
