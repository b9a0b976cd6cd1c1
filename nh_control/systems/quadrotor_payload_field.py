"""Quadrotors that carry a payload as a vector field on T R^3 x (T SO(3))^n x (T S^2)^n."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca

from nh_control.geometry import quaternion
from nh_control.geometry.groups import SO3Group
from nh_control.geometry.homogeneous import (
    HomogeneousSpace,
    LeftMultiplication,
    ProductAction,
    TangentSphereAction,
    TranslationAction,
)
from nh_control.mechanics import parametric
from nh_control.systems.quadrotor_payload import QuadrotorPayloadParameters

E3 = ca.DM([0, 0, 1])
"""The upward direction."""


class PayloadState(NamedTuple):
    """Parts of a state, namely the payload position y (3) and velocity v (3), attitudes R_i
    (unit quaternions), body rates Omega_i (3), link directions q_i (3) and inertial angular
    velocities w_i (3).
    """

    y: ca.SX
    v: ca.SX
    attitudes: list[ca.SX]
    omegas: list[ca.SX]
    links: list[ca.SX]
    spins: list[ca.SX]


def split(x: ca.SX, n: int) -> PayloadState:
    """Parts of x = (y, v, R_1, Omega_1, ..., R_n, Omega_n, q_1, w_1, ..., q_n, w_n)."""
    bodies = [x[6 + 7 * i : 13 + 7 * i] for i in range(n)]
    links = [x[6 + 7 * n + 6 * i : 12 + 7 * n + 6 * i] for i in range(n)]
    return PayloadState(
        x[:3],
        x[3:6],
        [b[:4] for b in bodies],
        [b[4:] for b in bodies],
        [l[:3] for l in links],
        [l[3:] for l in links],
    )


def quadrotor_payload_field(
    parameters: QuadrotorPayloadParameters = QuadrotorPayloadParameters(),
) -> tuple[ProductAction, ca.Function]:
    """`quadrotor_payload` as `x' = generator(x) f` under R^6 x (SO(3) x R^3)^n x SE(3)^n
    [celledoni2021 6.1], with z up and states x as in `split`:
    `f = (v, v', R_i Omega_i, Omega_i', w_i, q_i x w_i')`.

    The field is a function `f(x, u, p)` of the state (6 + 13 n), the inputs (T_i, M_i) for each
    quadrotor (4 n), and the parameter values p.
    """
    n = parameters.n
    numbers, params = parametric.symbolic(parameters)
    x, u = ca.SX.sym("x", 6 + 13 * n), ca.SX.sym("u", 4 * n)
    s = split(x, n)
    forces = [quaternion.rotate(R, ca.vertcat(0, 0, u[4 * i])) for i, R in enumerate(s.attitudes)]
    v_dot, w_dots = accelerations(params, s.links, s.spins, forces)
    inertia, parts = ca.vertcat(params.Jx, params.Jy, params.Jz), [s.v, v_dot]
    for i, (R, omega) in enumerate(zip(s.attitudes, s.omegas)):
        # J Omega' = M - Omega x J Omega
        moment = u[4 * i + 1 : 4 * i + 4] - ca.cross(omega, inertia * omega)
        parts += [quaternion.rotate(R, omega), moment / inertia]
    for q, w, w_dot in zip(s.links, s.spins, w_dots):
        parts += [w, ca.cross(q, w_dot)]
    names = ["x", "u", "p"]
    field = ca.Function(
        "field", [x, u, numbers], [ca.vertcat(*parts)], names, ["f"], {"cse": True}
    )
    return _action(n), field


def accelerations(
    params: QuadrotorPayloadParameters,
    links: Sequence[ca.SX],
    spins: Sequence[ca.SX],
    forces: Sequence[ca.SX],
) -> tuple[ca.SX, list[ca.SX]]:
    """Expressions for v' (3) and w_i' (n of 3), with forces f_i (3) on the quadrotors, in the
    world frame. `quadrotor_payload_continuous.accelerations` contains the equations
    [celledoni2021 (37), (38)].
    """
    m, mass, along = params.quadrotor_mass, params.payload_mass * ca.SX.eye(3), ca.SX(3, 1)
    for q, w, force, l in zip(links, spins, forces, params.lengths):
        # Mq (v' + g e3) = sum q_i (q_i . f_i + m_i l_i |w_i|^2)
        mass += m * q @ q.T
        along += q * (ca.dot(q, force) + m * l * ca.sumsqr(w))
    proper = ca.solve(mass, along)
    w_dots = [
        ca.cross(q, force / m - proper) / l for q, force, l in zip(links, forces, params.lengths)
    ]
    return proper - params.g * E3, w_dots


def _action(n: int) -> ProductAction:
    quads = [f"quad{i + 1}_" for i in range(n)]
    factors: list[HomogeneousSpace] = [
        TranslationAction(*(f"payload_{c}" for c in ("x", "y", "z", "v_x", "v_y", "v_z")))
    ]
    for quad in quads:
        factors.append(LeftMultiplication(SO3Group(), [f"{quad}q{c}" for c in "wxyz"]))
        factors.append(TranslationAction(*(f"{quad}omega_{c}" for c in "xyz")))
    for i in range(n):
        names = [f"link{i + 1}_{c}" for c in ("x", "y", "z", "w_x", "w_y", "w_z")]
        factors.append(TangentSphereAction(names))
    return ProductAction(*factors)
