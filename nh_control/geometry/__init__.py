"""Configuration spaces and Lie groups as CasADi expressions.

- configuration spaces: `Rn`, `S2`, `SO3`, `SE2`, `SE3` and `Product`, which are subclasses of
  `Space` with `retract` and `local`; `PhaseSpace` is the space of their states (q, p)
- Lie groups and their actions: `groups`, `cotangent`, `homogeneous`
- maps on individual groups: `quaternion` for SO(3) and `se2` for SE(2), with coefficients from
  `even_functions`
- parts of integrators: `chart` for coordinates about a point and `arcs` for steps along geodesics
"""

from nh_control.geometry.rotations import S2, SE3, SO3
from nh_control.geometry.space import Space
from nh_control.geometry.spaces import SE2, PhaseSpace, Product, Rn

__all__ = ["S2", "SE2", "SE3", "SO3", "PhaseSpace", "Product", "Rn", "Space"]
