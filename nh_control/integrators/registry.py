"""All integrators in the package with their properties. The command, scenarios, documents and
tests use them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from nh_control.discrete.system import DiscreteSystem
from nh_control.mechanics.system import System

Make = Callable[[System, float], DiscreteSystem]
Refusal = Callable[[System], str]


@dataclass(frozen=True)
class Integrator:
    """One integrator. `make(system, h)` returns the discrete system. `order` is the order in q and
    rho.

    `preserves` names the invariants that the integrator conserves exactly. An integrator is
    `symmetric` if a step -h undoes a step h, and `explicit` if it does not solve equations.
    `first_order`, `contacts` and `redundant` tell whether it supports first-order coordinates,
    contacts and grips, and redundant holonomic constraints. Undeclared properties are None.
    `refuses(system)` returns another reason why the integrator cannot integrate a system, or "" if
    there is none. `reason` covers all reasons. `source` is the paper's key and the equation
    number. Calling the integrator with a system and h returns the discrete system.
    """

    name: str
    make: Make
    order: int | None = None
    symmetric: bool | None = None
    explicit: bool | None = None
    preserves: tuple[str, ...] = ()
    refuses: Refusal = lambda system: ""
    source: str = ""
    first_order: bool | None = False
    contacts: bool | None = False
    redundant: bool | None = False

    def __call__(self, system: System, h: float) -> DiscreteSystem:
        """The discrete system with step h (s). Raises ValueError for a system that the integrator
        refuses.
        """
        if reason := self.reason(system):
            raise ValueError(f"{self.name} cannot take {system.name}, which {reason}")
        return self.make(system, h)

    def takes(self, system: System) -> bool:
        """Whether the integrator can integrate the system."""
        return not self.reason(system)

    def reason(self, system: System) -> str:
        """The reason why the integrator cannot integrate a system, or "" if it can. It is also ""
        for a user-defined function without declared properties.
        """
        if system.first_order and self.first_order is False:
            return f"has first-order coordinates {system.first_order}"
        if system.has_contacts and self.contacts is False:
            return "has contacts or grips"
        if system.n_redundant and self.redundant is False:
            return "has redundant holonomic constraints"
        return self.refuses(system)


class Registry(Mapping[str, Integrator]):
    """Integrators by name, in the order in which they were added."""

    def __init__(self) -> None:
        self._entries: dict[str, Integrator] = {}

    def add(self, *integrators: Integrator) -> None:
        """Add integrators. Raises ValueError for a name that already exists."""
        for integrator in integrators:
            if integrator.name in self._entries:
                raise ValueError(f"an integrator {integrator.name!r} already exists")
            self._entries[integrator.name] = integrator

    def fitting(self, system: System) -> dict[str, Integrator]:
        """The integrators that can integrate a system."""
        return {
            name: integrator
            for name, integrator in self._entries.items()
            if integrator.takes(system)
        }

    def with_additional(self, makers: Mapping[str, Make]) -> dict[str, Integrator]:
        """All integrators, plus the entries of `makers` whose names are not registered. A function
        `make(system, h)` has no declared properties.
        """
        # registered names take precedence
        added = {name: make for name, make in makers.items() if name not in self._entries}
        return self._entries | {
            name: replace(make, name=name)
            if isinstance(make, Integrator)
            else Integrator(name, make, first_order=None, contacts=None, redundant=None)
            for name, make in added.items()
        }

    def __getitem__(self, name: str) -> Integrator:
        if name not in self._entries:
            raise KeyError(f"no integrator {name!r}, choose from: {', '.join(self._entries)}")
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def first_of(*reasons: Refusal) -> Refusal:
    """A refusal that returns the first reason that applies."""
    return lambda system: next((text for reason in reasons if (text := reason(system))), "")


def if_prescribed(system: System) -> str:
    """Refuses prescribed coordinates."""
    return f"has prescribed coordinates {system.prescribed}" if system.prescribed else ""


def if_constrained(system: System) -> str:
    """Refuses velocity constraints."""
    return "has velocity constraints" if system.n_velocity_constraints else ""


def if_drifting(system: System) -> str:
    """Refuses moving ground, because its reactions do work and the energy is not conserved."""
    return "" if system.velocity_drift is None else "has a velocity drift, which does work"


def if_driven(system: System) -> str:
    """Refuses prescribed coordinates and moving ground."""
    obstacles = {
        "prescribed coordinates": bool(system.prescribed),
        "a velocity drift": system.velocity_drift is not None,
    }
    return _having(obstacle for obstacle, exists in obstacles.items() if exists)


def if_beyond_rolling(system: System) -> str:
    """Refuses all systems except those whose only constraints are A(q) v = 0."""
    holonomic = "has holonomic constraints" if system.n_holonomic_constraints else ""
    reasons = (holonomic, if_driven(system))
    return _having(reason.removeprefix("has ") for reason in reasons if reason)


def if_spherical(system: System) -> str:
    """Refuses spheres, whose velocities have more stored components than local coordinates."""
    return "has spheres" if system.space.nw != system.space.nv else ""


def if_combined(system: System) -> str:
    """Refuses all systems except those whose only constraints are A(q) v = 0 on spaces without
    spheres.
    """
    reasons = (if_beyond_rolling(system), if_spherical(system))
    return _having(reason.removeprefix("has ") for reason in reasons if reason)


def _having(obstacles: Iterable[str]) -> str:
    text = " and ".join(obstacles)
    return f"has {text}" if text else ""
