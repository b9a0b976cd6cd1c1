"""A mass that is pushed, on a spring whose other end is moved."""

import casadi as ca

from nh_control.geometry.spaces import Rn
from nh_control.mechanics.system import System

LIFTED = System(
    name="lifted",
    space=Rn("x", "hand"),
    lagrangian=lambda q, v: (v[0] ** 2 - (q[0] - q[1]) ** 2) / 2,
    prescribed=("hand",),
    inputs=("push",),
    force=lambda q, v, u: ca.vertcat(u, 0),
)
