"""The coadjoint action of the groups of configuration spaces on momenta in the body frame."""

from __future__ import annotations

import casadi as ca

from nh_control.geometry.groups import LieGroup
from nh_control.geometry.homogeneous import GroupAction, pose_action, simple_factors
from nh_control.geometry.rotations import S2
from nh_control.geometry.spaces import Space


def coadjoint(group: LieGroup, g: ca.SX, mu: ca.SX) -> ca.SX:
    """`Ad*_g mu` (dim), `<Ad*_g mu, v> = <mu, Ad_g v>`: a right action, `R^T mu` on so(3)*."""
    v = ca.SX.sym("v", group.dim)
    return ca.jtimes(group.adjoint(g, v), v, mu, True)


def transported(space: Space, d: ca.SX, p: ca.SX) -> ca.SX:
    """`Ad*_{exp(d)} p` (nv): the body momentum at `g exp(d)` of what is p at g, while the momentum
    in the frame at rest does not change. Momenta of R^n stay. The space has no spheres.
    """
    parts = []
    for factor, _, w in simple_factors(space):
        action, at = pose_action(factor), [*w]
        if isinstance(action, GroupAction):
            g = action.group.settle(action.group.tau(d[at]))
            parts.append(coadjoint(action.group, g, p[at]))
        else:
            parts.append(p[at])
    return ca.vertcat(*parts)


def if_no_group(space: Space) -> str:
    """Why a space is no Lie group whose coadjoint action is known, "" if it is one."""
    for factor, _, _ in simple_factors(space):
        if isinstance(factor, S2):
            return "has directions in S^2, which are no group"
        try:
            pose_action(factor)
        except ValueError:
            return f"has a {type(factor).__name__}, which is no known group"
    return ""
