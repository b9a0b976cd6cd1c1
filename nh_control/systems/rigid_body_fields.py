"""The free rigid body and the heavy top as vector fields on so(3)*, se(3)*, T*SO(3) and the
cotangent bundle of the larger group SO(3) x R^3.

Each field is a function `f(x, u, p)` of the state x, an empty input u and the parameter values p.
z is up, so Gamma0 = e3, and the potential is `M g l (Q chi)_z`. With Gamma0 = (0, 0, -9.81), as
printed, the top would fall upward.
"""

from __future__ import annotations

import casadi as ca

from nh_control.geometry import quaternion
from nh_control.geometry.cotangent import CotangentGroup
from nh_control.geometry.groups import SE3Group, SO3Group
from nh_control.geometry.homogeneous import (
    CoadjointAction,
    HomogeneousSpace,
    LeftMultiplication,
    ProductAction,
    TranslationAction,
)
from nh_control.mechanics import parametric
from nh_control.systems.rigid_body import HeavyTopParameters, RigidBodyParameters

UP = ca.DM([0, 0, 1])
ATTITUDE = tuple(f"q{c}" for c in "wxyz")
MOMENTUM = tuple(f"pi_{c}" for c in "xyz")


def rigid_body_momentum(
    parameters: RigidBodyParameters = RigidBodyParameters(),
) -> tuple[HomogeneousSpace, ca.Function]:
    """Euler's equations on so(3)* for the body momentum mu, under the coadjoint action of SO(3):
    `mu' = mu x I^{-1} mu`, so `f = -I^{-1} mu` [celledoni2021 Ex. 1] (sign corrected).
    """
    numbers, params = parametric.symbolic(parameters)
    mu = ca.SX.sym("mu", 3)
    return CoadjointAction(SO3Group(), [f"mu_{c}" for c in "xyz"]), _field(
        mu, numbers, -mu / _inertia(params)
    )


def rigid_body_attitude(
    parameters: RigidBodyParameters = RigidBodyParameters(),
) -> tuple[HomogeneousSpace, ca.Function]:
    """Attitude Q and spatial momentum pi of a free body on T*SO(3), under left multiplication by
    SO(3) x so(3)*: `Q' = hat(omega) Q`, pi' = 0, so `f = (omega, pi x omega)` with
    `omega = Q I^{-1} Q^T pi`.
    """
    numbers, params = parametric.symbolic(parameters)
    x = ca.SX.sym("x", 7)
    omega = _spin(x, params)
    # the second component transports the momentum, so pi' = 0
    f = ca.vertcat(omega, ca.cross(x[4:], omega))
    return LeftMultiplication(CotangentGroup(SO3Group()), (*ATTITUDE, *MOMENTUM)), _field(
        x, numbers, f
    )


def heavy_top_cotangent(
    parameters: HeavyTopParameters = HeavyTopParameters(),
) -> tuple[HomogeneousSpace, ca.Function]:
    """The top on T*SO(3) with spatial momenta, x = (Q, pi) [celledoni2021 (21), (22)]:
    `f = (omega, M g l Gamma0 x Q chi + pi x omega)`. The second term transports the momentum. It
    is missing in the paper's f2 (corrected).
    """
    numbers, params = parametric.symbolic(parameters)
    x = ca.SX.sym("x", 7)
    pull = params.M * params.g * params.l * quaternion.rotate(x[:4], ca.vertcat(*params.chi))
    return LeftMultiplication(CotangentGroup(SO3Group()), (*ATTITUDE, *MOMENTUM)), _field(
        x, numbers, _top(x, pull, params)
    )


def heavy_top_coadjoint(
    parameters: HeavyTopParameters = HeavyTopParameters(),
) -> tuple[HomogeneousSpace, ca.Function]:
    """The top on se(3)*, x = (Pi, Gamma) with the body momentum Pi and the upward direction Gamma
    in the body, under the coadjoint action of SE(3) [celledoni2021 (23), (24)]:
    `Pi' = Pi x I^{-1} Pi + M g l Gamma x chi,  Gamma' = Gamma x I^{-1} Pi`, so
    `f = -dH/d(Pi, Gamma)`. |Gamma| and Pi . Gamma are conserved.
    """
    numbers, params = parametric.symbolic(parameters)
    x = ca.SX.sym("x", 6)
    # H = Pi . I^-1 Pi / 2 + M g l Gamma . chi
    f = -ca.vertcat(
        x[:3] / _inertia(params), params.M * params.g * params.l * ca.vertcat(*params.chi)
    )
    names = [f"{name}_{c}" for name in ("Pi", "Gamma") for c in "xyz"]
    return CoadjointAction(SE3Group(), names), _field(x, numbers, f)


def heavy_top_quadratic(
    parameters: HeavyTopParameters = HeavyTopParameters(),
) -> tuple[ProductAction, ca.Function]:
    """The top with a quadratic Hamiltonian on T*(SO(3) x R^3), x = (Q, pi, p, q)
    [celledoni2021 (29)-(32)]. The momentum `p = -M g l chi` is conserved, and
    `pi' = -Gamma0 x Q p,  q' = p - Q^T Gamma0`.
    """
    numbers, params = parametric.symbolic(parameters)
    x = ca.SX.sym("x", 13)
    attitude, momentum = x[:4], x[7:10]
    # q' = p - Q^T Gamma0
    rate = momentum - quaternion.rotate_back(attitude, ca.SX(UP))
    pull = -quaternion.rotate(attitude, momentum)
    f = ca.vertcat(_top(x, pull, params), ca.SX(3, 1), rate)
    top = LeftMultiplication(CotangentGroup(SO3Group()), (*ATTITUDE, *MOMENTUM))
    rest = TranslationAction(*(f"{name}_{c}" for name in "pq" for c in "xyz"))
    return ProductAction(top, rest), _field(x, numbers, f)


def _top(x: ca.SX, pull: ca.SX, params: HeavyTopParameters) -> ca.SX:
    """(omega, Gamma0 x pull + pi x omega) (6) with pull = M g l Q chi in N m."""
    omega = _spin(x, params)
    return ca.vertcat(omega, ca.cross(ca.SX(UP), pull) + ca.cross(x[4:7], omega))


def _spin(x: ca.SX, params: RigidBodyParameters | HeavyTopParameters) -> ca.SX:
    """`omega = Q I^{-1} Q^T pi` (3) for x = (Q, pi, ...)."""
    return quaternion.rotate(x[:4], quaternion.rotate_back(x[:4], x[4:7]) / _inertia(params))


def _inertia(params: RigidBodyParameters | HeavyTopParameters) -> ca.SX:
    return ca.SX(ca.vertcat(params.Jx, params.Jy, params.Jz))


def _field(x: ca.SX, numbers: ca.SX, f: ca.SX) -> ca.Function:
    arguments, names = [x, ca.SX.sym("u", 0), numbers], ["x", "u", "p"]
    return ca.Function("field", arguments, [ca.densify(f)], names, ["f"], {"cse": True})
