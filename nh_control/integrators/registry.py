"""All integrators of the package with their properties, for the command, scenarios, documents and
tests.
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
    """One integrator: `make(system, h)` is the discrete system; `order` in q and rho.

    `preserves` names the invariants that it keeps exactly; `symmetric`: a step by -h undoes a step
    by h; `explicit`: it solves no equations; None for properties that are not declared.
    `first_order`: it moves first-order coordinates; `contacts`: it takes contacts and grips;
    `redundant`: it takes redundant holonomic constraints.
    `refuses(system)` is another reason why it cannot take a system, "" if there is none; `reason`
    includes all. `source` is the paper's key and number. A call with a system and h makes the
    discrete system.
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
        """The discrete system with step h (s); raises ValueError for a system that it refuses."""
        if reason := self.reason(system):
            raise ValueError(f"{self.name} cannot take {system.name}, which {reason}")
        return self.make(system, h)

    def takes(self, system: System) -> bool:
        """Whether it can integrate the system."""
        return not self.reason(system)

    def reason(self, system: System) -> str:
        """The reason why it cannot take a system, "" if it can, or if a user's function declares
        nothing.
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
        """Add integrators; raises ValueError for a name that is taken."""
        for one in integrators:
            if one.name in self._entries:
                raise ValueError(f"there is an integrator {one.name!r} already")
            self._entries[one.name] = one

    def fitting(self, system: System) -> dict[str, Integrator]:
        """The integrators that can take a system."""
        return {name: one for name, one in self._entries.items() if one.takes(system)}

    def with_own(self, own: Mapping[str, Make]) -> dict[str, Integrator]:
        """All integrators, and a user's `own` under names that are not registered; a function
        `make(system, h)` has no declared properties.
        """
        added = {name: make for name, make in own.items() if name not in self._entries}
        return self._entries | {
            name: replace(make, name=name)
            if isinstance(make, Integrator)
            else Integrator(name, make, first_order=None, contacts=None, redundant=None)
            for name, make in added.items()
        }

    def __getitem__(self, name: str) -> Integrator:
        if name not in self._entries:
            raise KeyError(f"no integrator {name!r}, choose of: {', '.join(self._entries)}")
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def first_of(*reasons: Refusal) -> Refusal:
    """The first of several reasons that applies."""
    return lambda system: next((text for reason in reasons if (text := reason(system))), "")


def if_prescribed(system: System) -> str:
    """Refuses prescribed coordinates."""
    return f"has prescribed coordinates {system.prescribed}" if system.prescribed else ""


def if_constrained(system: System) -> str:
    """Refuses velocity constraints."""
    return "has velocity constraints" if system.n_velocity_constraints else ""


def if_drifting(system: System) -> str:
    """Refuses ground that moves: its reactions do work, so that no energy is kept."""
    return "" if system.velocity_drift is None else "has a velocity drift, which does work"


def if_driven(system: System) -> str:
    """Refuses prescribed coordinates and ground that moves."""
    kinds = {
        "prescribed coordinates": bool(system.prescribed),
        "a velocity drift": system.velocity_drift is not None,
    }
    return _having(kind for kind, there in kinds.items() if there)


def if_beyond_rolling(system: System) -> str:
    """Refuses all systems but those with A(q) v = 0."""
    held = "has holonomic constraints" if system.n_holonomic_constraints else ""
    reasons = (held, if_driven(system))
    return _having(reason.removeprefix("has ") for reason in reasons if reason)


def if_spherical(system: System) -> str:
    """Refuses spheres, whose velocities have more stored numbers than local coordinates."""
    return "has spheres" if system.space.nw != system.space.nv else ""


def if_combined(system: System) -> str:
    """Refuses all systems but those with A(q) v = 0 on spaces without spheres."""
    reasons = (if_beyond_rolling(system), if_spherical(system))
    return _having(reason.removeprefix("has ") for reason in reasons if reason)


def _having(obstacles: Iterable[str]) -> str:
    text = " and ".join(obstacles)
    return f"has {text}" if text else ""
