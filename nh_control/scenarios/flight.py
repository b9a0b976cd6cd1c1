"""Scenarios whose craft are flown by flight controllers. The tracker commands thrusts and body
rates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from nh_control.mechanics.parameters import Declaration
from nh_control.mechanics.system import System
from nh_control.numerics.expressions import Graph
from nh_control.systems.rotors import Airframe

AUTOPILOTS = ("betaflight", "px4", "ardupilot")
RATES, POSITION = "rates", "position"
"""Setpoints for a flight controller: thrusts and rates from the outer loop of this package, or
positions along the reference for the flight controller's own position control.
"""
LARGEST_RATE = 4.0
"""Maximum rate (rad/s) that outer loops command."""


@dataclass(frozen=True)
class Craft:
    """A multirotor in a system: the `position(q, parameters)` (3) and `attitude(q)` (wxyz) of its
    sensors, and the `velocity(q, v, parameters)` (3) of the sensors' position in world axes.
    """

    name: str
    position: Callable[[Graph, Any], Graph]
    attitude: Callable[[Graph], Graph]
    velocity: Callable[[Graph, Graph, Any], Graph]


@dataclass(frozen=True)
class Flight:
    """Describes how flight controllers fly the craft in a scenario. The scenario's system has a
    thrust and three torques for each craft.

    `crafts(system)` returns the craft, each of which has the given `airframe`. The tracker's model
    has a rate loop with the given `time_constant` (s), and its `weights` are the weight on a
    thrust and the weight on each rate. Only the given `references` may be flown. `tuning` consists
    of lines for Betaflight's command line. The `disturbance_gain` of the tracker's integral action
    is small. The model does not include the lag of the rotors and rates, so a fast estimate would
    mistake this lag for a disturbance and oscillate.
    """

    crafts: Callable[[System], tuple[Craft, ...]]
    airframe: Airframe
    references: tuple[str, ...]
    time_constant: float = 0.08
    weights: tuple[float, float] = (0.05, 2.0)
    disturbance_gain: float = 0.05
    tuning: tuple[str, ...] = ()


def _setpoints(text: str) -> str:
    """The text, if it is a kind of setpoint. Raises ValueError otherwise."""
    if text not in (RATES, POSITION):
        raise ValueError(text)
    return text


def _switch(text: str) -> bool:
    """Whether the text is 1. Raises ValueError unless the text is 0 or 1."""
    if text not in ("0", "1"):
        raise ValueError(text)
    return text == "1"


@dataclass(frozen=True)
class AutopilotOptions:
    """A flight controller of the given `kind`, and its options.

    `rotors` maps rotor numbers, which start at 1, to the remaining share of the rotor's thrust.
    `noise` is a factor for the sensor noise, which is drawn with `seed`. `host` and `port` are the
    address of an attached simulator or of hardware. A firmware process that is `isolated` runs in
    a separate network namespace. `setpoints` is RATES or POSITION.
    """

    kind: str
    rotors: Mapping[int, float] = field(default_factory=dict)
    noise: float = 1.0
    seed: int = 0
    host: str = "127.0.0.1"
    port: int = 0
    isolated: bool = True
    setpoints: str = RATES

    @staticmethod
    def parse(text: str) -> AutopilotOptions:
        """Return the options written as `KIND[:NAME=VALUE,...]`. The names are the fields of this
        class, or rotor1, rotor2, ... Raises ValueError.
        """
        kind, _, rest = text.partition(":")
        syntax = (
            f"expected {', '.join(AUTOPILOTS)} with options KIND:NAME=VALUE,... of rotor1, "
            f"rotor2, ..., noise, seed, host, port, isolated (0 or 1), setpoints ({RATES} or "
            f"{POSITION}), got {text!r}"
        )
        if kind not in AUTOPILOTS:
            raise ValueError(f"autopilot: {syntax}")
        rotors: dict[int, float] = {}
        values: dict[str, Any] = {}
        readers: Mapping[str, Callable[[str], Any]] = {
            "noise": float,
            "seed": int,
            "host": str,
            "port": int,
            "isolated": _switch,
            "setpoints": _setpoints,
        }
        for part in filter(None, rest.split(",")):
            name, equals, value = part.partition("=")
            # "rotor3" is a numbered option. All other names have a reader.
            number = name.removeprefix("rotor")
            try:
                if equals and name != number and int(number) > 0:
                    rotors[int(number)] = float(value)
                elif equals and name in readers:
                    values[name] = readers[name](value)
                else:
                    raise ValueError
            except ValueError as error:
                raise ValueError(f"autopilot: {part!r} is not an option; {syntax}") from error
        # Betaflight only controls rates.
        if kind == "betaflight" and values.get("setpoints") == POSITION:
            raise ValueError(
                f"autopilot: betaflight has no position control, got {text!r}; omit "
                f"setpoints={POSITION} to fly it by the rates of our outer loop, or use px4 or "
                "ardupilot"
            )
        return AutopilotOptions(kind, rotors, **values)

    def __str__(self) -> str:
        """The text that `parse` reads. Default values are omitted."""
        parts = [f"rotor{rotor}={float(share)!r}" for rotor, share in self.rotors.items()]
        parts += [
            f"{option.name}={int(value) if isinstance(value, bool) else value}"
            for option in fields(self)[2:]
            if (value := getattr(self, option.name)) != option.default
        ]
        return f"{self.kind}:{','.join(parts)}" if parts else self.kind

    def declared(self, of: Airframe) -> tuple[Declaration, ...]:
        """The values that a study may fix or vary in flights with the given airframe."""
        share = "share of the thrust of this rotor of each craft"
        return (
            Declaration("noise", self.noise, "", "factor on the noise of the sensors", at_least=0),
            Declaration("seed", self.seed, "", "seed of the noise of the sensors", at_least=0),
            *(
                Declaration(f"rotor{i}", self.rotors.get(i, 1.0), "", share, above=0.0)
                for i in range(1, of.n + 1)
            ),
        )

    def with_values(self, values: Mapping[str, Any]) -> AutopilotOptions:
        """A copy of these options with the given values, named as in `declared`."""
        # "rotor1" in a study is entry 1 of `rotors`.
        rotors = {int(n.removeprefix("rotor")): v for n, v in values.items() if "rotor" in n}
        others = {name: value for name, value in values.items() if "rotor" not in name}
        return replace(self, rotors={**self.rotors, **rotors}, **others)

    def airframe(self, of: Airframe) -> Airframe:
        """The airframe with weakened rotors. Raises ValueError for rotors that do not exist."""
        for rotor, share in self.rotors.items():
            if rotor > of.n:
                raise ValueError(f"autopilot: rotor{rotor} of an airframe with {of.n} rotors")
            # Users count rotors from 1.
            of = of.weakened(rotor - 1, share)
        return of
