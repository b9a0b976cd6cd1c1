"""An action that calls compiled functions, for steps that are too large for one expression."""

from __future__ import annotations

import casadi as ca

from nh_control.geometry.homogeneous import HomogeneousSpace
from nh_control.numerics.expressions import Graph


class CalledAction(HomogeneousSpace):
    """The same action as another object's, but on CasADi's MX graphs."""

    def __init__(self, action: HomogeneousSpace):
        self.names, self.dim = action.names, action.dim
        u, v = ca.SX.sym("u", action.dim), ca.SX.sym("v", action.dim)
        x = ca.SX.sym("x", action.nx)
        self._act = _called("act", [v, x], action.act(v, x))
        self._bracket = _called("bracket", [u, v], action.bracket(u, v))
        self._dtau_inverse = _called("dtau_inverse", [u, v], action.dtau_inverse(u, v))
        self._normalize = _called("normalize", [x], action.normalize(x))

    def act(self, v: Graph, x: Graph) -> Graph:
        return self._act(v, x)

    def bracket(self, u: Graph, v: Graph) -> Graph:
        return self._bracket(u, v)

    def dtau_inverse(self, u: Graph, v: Graph) -> Graph:
        return self._dtau_inverse(u, v)

    def normalize(self, x: Graph) -> Graph:
        return self._normalize(x)


def _called(name: str, inputs: list[ca.SX], value: ca.SX) -> ca.Function:
    return ca.Function(name, inputs, [ca.densify(value)], {"cse": True})
