"""Outputs `y = c(q, v, u)` of a system: declared once, with names and units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca

from nh_control.geometry.spaces import Product, Rn, Space
from nh_control.mechanics.lagrangian_system import LagrangianSystem
from nh_control.numerics.expressions import Returned, require_written_out


@dataclass(frozen=True)
class Output:
    """An output `y = value(q, v, u)` (n) with a name, of a system with parameters `value(q, v, u,
    p)`; v is the velocity of the state, u the inputs that act.

    It has one number, or those named in `components`, in the `units`, one for each or one for
    all. Values that are no vectors lie in `space`, as an attitude in SO3: noise, innovations and
    derivatives are in its local coordinates, and the components have its names.
    """

    name: str
    value: Callable[..., Returned] | None = None
    components: tuple[str, ...] = ()
    units: tuple[str, ...] | str = ()
    space: Space | None = None

    def __post_init__(self) -> None:
        if self.space is not None and self.components:
            raise ValueError(
                f"output {self.name}: the components of values in a space have its names "
                f"{self.space.names}; leave out components {self.components}"
            )
        if not isinstance(self.units, str) and len(self.units) not in (0, len(self.names)):
            raise ValueError(
                f"output {self.name}: {len(self.names)} numbers {self.names} but "
                f"{len(self.units)} units"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its numbers, `<name>_<component>`, or its own name if it has one number."""
        parts = self.space.names if self.space is not None else self.components
        return tuple(f"{self.name}_{part}" for part in parts) or (self.name,)

    @property
    def number_units(self) -> tuple[str, ...]:
        """A unit for every number, "" where none is given."""
        if isinstance(self.units, str):
            return (self.units,) * len(self.names)
        return self.units or ("",) * len(self.names)

    @property
    def values(self) -> Space:
        """The space of its values."""
        return self.space or Rn(*self.names)

    def of(self, system: LagrangianSystem, q: ca.SX, v: ca.SX, u: ca.SX) -> ca.SX:
        """The values (n) at expressions; raises ValueError for another number of them."""
        if self.value is None:
            raise ValueError(f"output {self.name} has no function value(q, v, u)")
        y = ca.densify(ca.vertcat(system.evaluated(self.value, q, v, u)))
        if y.shape != (len(self.names), 1):
            raise ValueError(
                f"{system.name}: the output {self.name} must have {len(self.names)} numbers "
                f"{self.names}, got shape {y.shape}"
            )
        require_written_out(f"{system.name}: the output {self.name}", y)
        return y

    def behind(self, nq: int, nw: int, inputs: Callable[..., ca.SX]) -> Output:
        """The same output of a larger system. It takes the first nq coordinates, the first nw
        velocities, and `inputs(q, v, u)` as its inputs.
        """
        own = self.value
        if own is None:
            return self

        def value(q: ca.SX, v: ca.SX, u: ca.SX, *p: Any) -> Returned:
            return own(q[:nq], v[:nw], inputs(q, v, u, *p), *p)

        return replace(self, value=value)


def combined_space(outputs: Sequence[Output]) -> Space:
    """The space of the values of several outputs, one after another."""
    return outputs[0].values if len(outputs) == 1 else Product(*(o.values for o in outputs))
