"""Nonholonomic methods with Lobatto points, namely SPARK and partitioned Runge-Kutta methods."""

from __future__ import annotations

from functools import partial

import casadi as ca

from nh_control.discrete.method import Method, StepSymbols
from nh_control.discrete.system import DiscreteSystem
from nh_control.integrators.coordinate_systems import Coordinates, coordinates
from nh_control.integrators.refusals import if_irregular, if_unfit
from nh_control.integrators.registry import Integrator
from nh_control.integrators.stages import Stages, lobatto_tables, parts, stages, weighted
from nh_control.mechanics.system import System

STAGES = (2, 3, 4)
REACTIONS = ("B", "C", "C*", "D")


def spark(system: System, h: float, s: int = 2, reactions: str = "B") -> DiscreteSystem:
    """Specialized partitioned additive Runge-Kutta method with s Lobatto points, of order 2s - 2
    in q and rho, from the family IIIA-B-C-C*-D [Jay 2003; celledoni2016 4].

    `Q_i = q0 + h sum_j a_ij V_j` (IIIA),
    `P_i = lift(q0, rho) + h sum_j B_ij (dL/dq + f)_j + sum_j T_ij A(Q_j)^T K_j = dL/dv(Q_i, V_i)`
    (IIIB for forces, T for reactions),  `sum_j a_ij A(Q_j) V_j = 0` for i = 2 ... s,
    `A M^{-1} p1 = 0` at q1 with `p1 = lift + h sum_j b_j (dL/dq + f)_j + sum_j b_j A_j^T K_j`,
    `rho1 = X(q1)^T p1`. The unknowns are V_i (n) and the impulses K_i (m), with nz = s (n + m),
    and the state is (q, rho).

    celledoni2016 does not state which coefficients act on which term. We assume that velocities
    use IIIA, forces use IIIB, and T = `reactions` is IIIB by default. There are s - 1 mean
    constraints and one constraint at the end, as in Jay's methods for index 2. (We did not have
    Jay's paper, but the measured orders 2, 4, 6 support this form.) "B" and "D" are reversible,
    and "C" and "C*" are not. With IIIA for T, the equations are singular. With s = 2, "B" and a
    constant mass matrix, the method is Lagrange-d'Alembert with the trapezoidal Lagrangian and the
    mean of the constraints. Inputs may jump between steps. The mass matrix is derived from the
    Lagrangian. `coordinates` chooses the coordinates.

    Holonomic constraints have the impulses `Dh(Q_j)^T K_j`, which use IIIB for all `reactions`.
    They satisfy h(Q_i) = 0 for i = 2 ... s and Dh v = 0 at the end, as index 3 requires [Jay
    1996]. With s = 2 and without velocity constraints, the method is RATTLE. Raises ValueError for
    other values of s or `reactions`, and for systems that `if_irregular` refuses.
    """
    _check("spark", s)
    if reactions not in REACTIONS:
        raise ValueError(f"spark: unknown reactions {reactions!r}, choose one of {REACTIONS}")
    space, table = coordinates(system, "spark", if_irregular), lobatto_tables(s)
    a, b, forces, split = table["A"], table["b"], table["B"], table[reactions]
    n_velocities, nz = s * space.n, s * (space.n + space.n_constraints)

    def step(symbols: StepSymbols) -> tuple[Coordinates, Stages, ca.SX]:
        q, rho, u, z, h, gradients = symbols
        v = parts(z[:n_velocities], s)
        local, q0 = space.about(q, h * weighted(b, v))
        p0 = local.node(q, q0, rho)[1]
        nodes = stages(local, a, gradients, q0, p0, u, v, z[n_velocities:], h)
        return local, nodes, nodes.momentum(h, b, b)

    def residual(symbols: StepSymbols) -> ca.SX:
        h = symbols.h
        local, nodes, p1 = step(symbols)
        # lift + h sum_j B_ij W_j + sum_j T_ij R_j = dL/dv(Q_i, V_i)
        balance = [nodes.momentum(h, forces[i], split[i]) - nodes.p[i] for i in range(s)]
        # sum_j a_ij A(Q_j) V_j = 0
        slips = [local.parts(local.constraint(q_i) @ v_i)[0] for q_i, v_i in zip(nodes.q, nodes.v)]
        means = [weighted(row, slips) for row in a[1:]]
        # h(Q_i) = 0, which Q_1 = q0 satisfies already
        surfaces = [system.holonomic(local.position(q_i)) for q_i in nodes.q[1:]]
        return ca.vertcat(*balance, *means, *surfaces, local.slip(nodes.q[-1], p1))

    def readout(symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        local, nodes, p1 = step(symbols)
        return local.position(nodes.q[-1]), local.stored(nodes.q[-1], p1)

    name = f"spark_{s}" if reactions == "B" else f"spark_{s}({reactions})"
    return DiscreteSystem(system, h, Method(name, nz, residual, readout))


def nprk(system: System, h: float, s: int = 2, carried: bool = False) -> DiscreteSystem:
    """Nonholonomic partitioned Runge-Kutta method with s Lobatto IIIA-B points, of order 2s - 2 in
    q and rho [Martin de Diego and Sato Martin de Almagro 2018].

    `Q_i = q0 + h sum_j a_ij V_j` (IIIA),  `W_j = (dL/dq + f)_j + A(Q_j)^T lam_j`,
    `lift(q0, rho) + h sum_j B_ij W_j = dL/dv(Q_i, V_i)` (IIIB),
    `A(Q_i) M^{-1} (lift + h sum_j a_ij W_j) = 0` for i = 2 ... s,
    `p1 = lift + h sum_j b_j W_j,  rho1 = X(q1)^T p1`. The unknowns are V_i (n) and the impulses
    `h lam_i` (m) for i = 2 ... s, with nz = s n + (s - 1) m.

    By default, lam_1 is the multiplier of the continuous motion at (q0, rho, u). The state is
    (q, rho) and inputs may jump, but a step is not reversible. With `carried`, lam_1 is lam_s from
    the previous step, as in the paper. The state is then (q, rho, lam) with lam in N or N m, and a
    step is reversible. However, it only has order 2 where an input jumps (measured), and at the
    initial state, where the input is unknown. With s = 2, `carried` and a constant mass matrix,
    the method is `gni` with lam = 2 sigma / h. `coordinates` chooses the coordinates. Raises
    ValueError for other values of s, and for systems that `if_unfit` refuses.
    """
    _check("nprk", s)
    step = _PartitionedStep(system, s, carried)
    method = Method(
        f"nprk_{s}(carried)" if carried else f"nprk_{s}",
        step.n_velocities + (s - 1) * step.space.n_velocity_constraints,
        step.residual,
        step.readout,
        memory=step.memory,
        start=step.first_multipliers if step.memory else None,
    )
    return DiscreteSystem(system, h, method)


class _PartitionedStep:
    """The equations of `nprk`. The unknowns are V_1 ... V_s (n_velocities components) and the
    impulses h lam_2 ... h lam_s.
    """

    def __init__(self, system: System, s: int, carried: bool):
        self._system, self._s, self._carried = system, s, carried
        self.space, table = coordinates(system, "nprk"), lobatto_tables(s)
        self._a, self._b, self._b_forces = table["A"], table["b"], table["B"]
        self.n_velocities = s * self.space.n
        n = self.space.n_velocity_constraints if carried else 0
        self.memory = tuple(f"lam_{i + 1}" for i in range(n))

    def residual(self, symbols: StepSymbols) -> ca.SX:
        h, (local, nodes) = symbols.h, self._stages(symbols)
        # lift + h sum_j B_ij W_j - dL/dv(Q_i, V_i)
        balance = [nodes.momentum(h, b, b) - p for b, p in zip(self._b_forces, nodes.p)]
        # A(Q_i) M^{-1} (lift + h sum_j a_ij W_j)
        slips = [
            local.slip(q_i, nodes.momentum(h, a, a)) for q_i, a in zip(nodes.q[1:], self._a[1:])
        ]
        return ca.vertcat(*balance, *slips)

    def readout(self, symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        z, h, b = symbols.z, symbols.h, self._b
        local, nodes = self._stages(symbols)
        rho1 = local.stored(nodes.q[-1], nodes.momentum(h, b, b))
        n = len(self.memory)
        lam1 = z[z.shape[0] - n :] / h if n else ca.SX(0, 1)
        return local.position(nodes.q[-1]), ca.vertcat(rho1, lam1)

    def first_multipliers(self, q: ca.SX, rho: ca.SX, u: ca.SX, h: ca.SX) -> ca.SX:
        """lam_1 of the continuous motion."""
        return self.space.multipliers(self._system.mechanics.gradients, q, rho, u)

    def _stages(self, symbols: StepSymbols) -> tuple[Coordinates, Stages]:
        q, rho, u, z, h, gradients = symbols
        space, n = self.space, rho.shape[0] - len(self.memory)
        v = parts(z[: self.n_velocities], self._s)
        local, q0 = space.about(q, h * weighted(self._b, v))
        p0 = local.node(q, q0, rho[:n])[1]
        first = rho[n:] if self._carried else space.multipliers(gradients, q, rho[:n], u)
        impulses = (
            ca.vertcat(h * first, z[self.n_velocities :])
            if space.n_velocity_constraints
            else ca.SX(0, 1)
        )
        return local, stages(local, self._a, gradients, q0, p0, u, v, impulses, h)


def _check(name: str, s: int) -> None:
    if s not in STAGES:
        raise ValueError(f"{name}: s must be one of {STAGES} stages, got {s}")


def _entries(s: int) -> tuple[Integrator, ...]:
    preserved = ("velocity constraints at the nodes",)
    order = 2 * s - 2
    jay = f"Jay (2003), Lobatto IIIA-B, {s} stages, assumed coefficients; celledoni2016 4"
    return (
        Integrator(
            name=f"spark_{s}",
            make=partial(spark, s=s),
            order=order,
            symmetric=True,
            explicit=False,
            preserves=(*preserved, "holonomic constraints"),
            refuses=if_irregular,
            source=jay,
        ),
        Integrator(
            name=f"spark_{s}_d",
            make=partial(spark, s=s, reactions="D"),
            order=order,
            symmetric=True,
            explicit=False,
            preserves=(*preserved, "holonomic constraints"),
            refuses=if_irregular,
            source=jay.replace("IIIA-B", "IIIA-B-D"),
        ),
        Integrator(
            name=f"nprk_{s}",
            make=partial(nprk, s=s),
            order=order,
            symmetric=False,
            explicit=False,
            preserves=preserved,
            refuses=if_unfit,
            source=f"Martin de Diego and Sato Martin de Almagro (2018), {s} stages",
        ),
    )


INTEGRATORS = tuple(entry for s in STAGES for entry in _entries(s))
