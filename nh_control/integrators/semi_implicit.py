"""The semi-implicit reversible discrete Lagrange-d'Alembert integrator."""

from __future__ import annotations

import casadi as ca

from nh_control.discrete.method import Method, StepSymbols
from nh_control.discrete.system import DiscreteSystem
from nh_control.integrators.coordinate_systems import Coordinates, coordinates
from nh_control.integrators.refusals import if_unfit
from nh_control.integrators.registry import Integrator
from nh_control.mechanics.system import System


def si_dla(system: System, h: float) -> DiscreteSystem:
    """Semi-implicit discrete Lagrange-d'Alembert integrator. A step consists of two half drifts
    around a kick at the middle, with constraints at the nodes. The method has order 2 in q and rho
    [McLachlan and Perlmutter 2006 (4.18); celledoni2016 4].

    `qh = q0 + h/2 v-,  q1 = qh + h/2 v+,  M(qh) v- + c = lift(q0, rho)`,
    `M(qh) (v+ - v-) = h/2 [(dL/dq + f)(qh, v-) + (dL/dq + f)(qh, v+)] + A(qh)^T K`,
    `A M^{-1} p1 = 0` at q1 for `p1 = M(qh) v+ + c`, `rho1 = X(q1)^T p1`, where c is dL/dv at rest.

    For constant mass matrices, this is the printed form, v- is known, and only the m impulses K
    are coupled: nz = n + m. For M(q) the printed form is not symmetric. This form is symmetric,
    because it evaluates M at the middle for both halves (nz = 2n + m). The I-DLA in the same paper
    is `nonholonomic_midpoint`. The mass matrix is derived from the Lagrangian. `coordinates`
    chooses the coordinates. Raises ValueError for systems that `if_unfit` refuses.
    """
    space = coordinates(system, "si_dla")
    n, m = space.n, space.n_velocity_constraints
    known = space.constant_mass
    n_velocities = n if known else 2 * n

    def ends(symbols: StepSymbols) -> tuple[Coordinates, ca.SX, ca.SX, ca.SX, ca.SX]:
        q, rho, u, z, h, gradients = symbols
        after, before = z[:n], space.node(q, q, rho)[0] if known else z[n:n_velocities]
        # q1 = q0 + h/2 (v- + v+)
        local, q0 = space.about(q, h / 2 * (before + after))
        middle = q0 + h / 2 * before
        p0, force0 = local.derivatives(gradients, middle, before, u)
        p1, force1 = local.derivatives(gradients, middle, after, u)
        # M (v+ - v-) = h/2 (f- + f+) + A^T K
        kick = h / 2 * (force0 + force1) + local.reaction(middle, z[n_velocities:])
        lifted = ca.SX(0, 1) if known else p0 - local.node(q, q0, rho)[1]
        return local, middle + h / 2 * after, p1, p1 - p0 - kick, lifted

    def residual(symbols: StepSymbols) -> ca.SX:
        local, q1, p1, balance, lifted = ends(symbols)
        return ca.vertcat(balance, lifted, local.slip(q1, p1))

    def readout(symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        local, q1, p1, *_ = ends(symbols)
        return local.position(q1), local.stored(q1, p1)

    return DiscreteSystem(system, h, Method("si_dla", n_velocities + m, residual, readout))


INTEGRATORS = (
    Integrator(
        name="si_dla",
        make=si_dla,
        order=2,
        symmetric=True,
        explicit=False,
        preserves=("velocity constraints at the nodes",),
        refuses=if_unfit,
        source="McLachlan and Perlmutter (2006) (4.18), SI-DLA; celledoni2016 4",
    ),
)
