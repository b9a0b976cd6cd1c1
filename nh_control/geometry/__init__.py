"""Configuration spaces and Lie groups as CasADi expressions.

- configuration spaces: `Rn`, `S2`, `SO3`, `SE2`, `SE3`, `Product`, all of them a `Space` with
  `retract` and `local`; `PhaseSpace` has their states (q, p)
- Lie groups and their actions: `groups`, `cotangent`, `homogeneous`
- maps of one group: `quaternion` for SO(3), `se2` for SE(2), with coefficients from
  `even_functions`
- parts of integrators: `chart` for coordinates about a point, `arcs` for steps along geodesics
"""

from nh_control.geometry.rotations import S2, SE3, SO3
from nh_control.geometry.space import Space
from nh_control.geometry.spaces import SE2, PhaseSpace, Product, Rn

__all__ = ["S2", "SE2", "SE3", "SO3", "PhaseSpace", "Product", "Rn", "Space"]
