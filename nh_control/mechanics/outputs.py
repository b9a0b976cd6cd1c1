"""Declared outputs `y = c(q, v, u)` of a system, with names and units."""

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
    """A named output `y = value(q, v, u)` (n), or `value(q, v, u, p)` for a system with
    parameters, where v is the velocity of the state and u contains the acting inputs.

    The value is a number, or a vector whose entries are named in `components`. `units` contains
    one unit for each entry or one for all. Values that are not vectors are elements of `space`,
    for example an attitude in SO3. Noise, innovations and derivatives are then in the local
    coordinates of this space, which also names the components.
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
                f"{self.space.names}; omit components {self.components}"
            )
        if not isinstance(self.units, str) and len(self.units) not in (0, len(self.names)):
            raise ValueError(
                f"output {self.name}: {len(self.names)} numbers {self.names} but "
                f"{len(self.units)} units"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the entries, `<name>_<component>`, or `<name>` if the value is a number."""
        parts = self.space.names if self.space is not None else self.components
        return tuple(f"{self.name}_{part}" for part in parts) or (self.name,)

    @property
    def number_units(self) -> tuple[str, ...]:
        """The unit of every entry, by default ""."""
        if isinstance(self.units, str):
            return (self.units,) * len(self.names)
        return self.units or ("",) * len(self.names)

    @property
    def values(self) -> Space:
        """The space of the values."""
        return self.space or Rn(*self.names)

    def of(self, system: LagrangianSystem, q: ca.SX, v: ca.SX, u: ca.SX) -> ca.SX:
        """The values (n) for symbolic q, v and u; raises ValueError for a wrong number of
        values.
        """
        if self.value is None:
            raise ValueError(f"output {self.name} has no function value(q, v, u)")
        # one column, even for a list of numbers
        y = ca.densify(ca.vertcat(system.evaluated(self.value, q, v, u)))
        if y.shape != (len(self.names), 1):
            raise ValueError(
                f"{system.name}: the output {self.name} must have {len(self.names)} numbers "
                f"{self.names}, got shape {y.shape}"
            )
        require_written_out(f"{system.name}: the output {self.name}", y)
        return y

    def behind(self, nq: int, nw: int, inputs: Callable[..., ca.SX]) -> Output:
        """The same output for a larger system. It depends on the first nq coordinates, the first
        nw velocities, and `inputs(q, v, u)` instead of u.
        """
        value_function = self.value
        if value_function is None:
            return self

        def value(q: ca.SX, v: ca.SX, u: ca.SX, *p: Any) -> Returned:
            return value_function(q[:nq], v[:nw], inputs(q, v, u, *p), *p)

        return replace(self, value=value)


def combined_space(outputs: Sequence[Output]) -> Space:
    """The space of the stacked values of several outputs."""
    return outputs[0].values if len(outputs) == 1 else Product(*(o.values for o in outputs))
