"""Settings that a study may fix or vary in a run. They are the options of `nh_control simulate`,
the tracker's weights and its model's parameters, by name:

    NAME               physical parameter of the plant alone; NAME.0, ... if it has several numbers
    model.NAME         parameter of the model, and of the plant if NAME is not set
    perturb.NAME       initial error
    disturb.TARGET.NAME  value of the disturbance on the target: start, force.0, ...
    fault.[TARGET:]KIND  number of a fault; with .NAME, another value (see `fault_settings`)
    weight.NAME        factor on the weight of a coordinate of the state error or of an input
    autopilot.NAME     option of the flight controller: noise, seed, rotor1, ...
    reference, ...     options of `simulate` (see OPTIONS); spaces separate several names
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nh_control.discrete.system import DiscreteSystem
from nh_control.loop.faults import FaultLines
from nh_control.mechanics.parameters import Declaration, declarations
from nh_control.runs.design import weighted_coordinates, weighted_inputs
from nh_control.runs.settings import OPTIONS, RunSettings
from nh_control.scenarios import Scenario, UnknownName
from nh_control.scenarios.disturbance import Disturbance
from nh_control.scenarios.fault import Fault
from nh_control.studies import fault_settings
from nh_control.studies.fault_settings import FAULT
from nh_control.studies.variation import Value

MODEL, PERTURB, DISTURB, WEIGHT = "model", "perturb", "disturb", "weight"
AUTOPILOT = "autopilot"
GROUPS = (MODEL, PERTURB, DISTURB, FAULT, WEIGHT, AUTOPILOT)
OF_RUN = ("open_loop", "plant_integrator", "plant_substeps")
"""Options that do not affect the tracker."""

Values = Mapping[str, Value]


@dataclass(frozen=True)
class Settings:
    """The settings of a scenario with the given disturbances and faults. `declared` contains the
    settings' declarations with defaults, by name, and `model` is the scenario's default model.
    """

    scenario: Scenario
    disturbances: tuple[Disturbance, ...]
    faults: tuple[Fault, ...]
    declared: Mapping[str, Declaration]
    model: DiscreteSystem

    @staticmethod
    def of(
        scenario: Scenario,
        disturbances: Sequence[Disturbance] = (),
        faults: Sequence[Fault] = (),
    ) -> Settings:
        """Return all settings of a scenario. This builds the scenario's default model, which
        determines the names of the weights.

        Raises UnknownName and ValueError for faults that do not fit the model.
        """
        model = scenario.model()
        FaultLines.of(faults, model)
        entries = (*_declared(scenario, model, disturbances), *fault_settings.declared(faults))
        known = {d.name: d for d in entries}
        return Settings(scenario, tuple(disturbances), tuple(faults), known, model)

    def entry(self, name: str) -> Declaration:
        """Return the declaration of a setting. Raises UnknownName."""
        if name not in self.declared:
            raise UnknownName(f"setting of {self.scenario.name}", name, self.declared)
        return self.declared[name]

    def checked(self, name: str, value: Value) -> Value:
        """Convert a value to the setting's type. Raises UnknownName and ValueError."""
        entry = self.entry(name)
        if isinstance(entry.value, str) or entry.is_list:
            entry.read(str(value), self.scenario.name)
            return str(value)
        return entry.check(value, self.scenario.name)

    def option(self, values: Values, name: str) -> Any:
        """Return the value of an option, or its default."""
        return values.get(name, OPTIONS[name].value)

    def design(self, values: Values) -> tuple[tuple[str, Value], ...]:
        """Return the values that affect the tracker."""
        return tuple(
            (name, value)
            for name, value in values.items()
            if _group(name) in (MODEL, WEIGHT) or (name in OPTIONS and name not in OF_RUN)
        )

    def autopilot(self, values: Values) -> str:
        """Return the flight controller with its options, or "" if there is none."""
        options = self.scenario.autopilot
        if options is None:
            return ""
        return str(options.with_values(_values_of_group(values, AUTOPILOT)))

    def run(self, values: Values) -> RunSettings:
        """Return the settings for a run with the given values. Raises ValueError for options that
        need a different controller.
        """
        # The plant has the parameters of the model unless a setting changes them.
        nominal = self.scenario.parameters
        model = _gather_fields(nominal, _values_of_group(values, MODEL))
        changed = replace(nominal, **model) if model else nominal
        plant = {n: v for n, v in values.items() if n not in OPTIONS and _group(n) is None}
        pushes = _values_of_group(values, DISTURB)
        options = {OPTIONS[n].name: _option(n, v) for n, v in values.items() if n in OPTIONS}
        return RunSettings.of(
            {
                **options,
                "autopilot": self.autopilot(values),
                "model_parameters": model,
                "weight_factors": _values_of_group(values, WEIGHT),
                "plant.parameters": _gather_fields(changed, plant),
                "perturb": _values_of_group(values, PERTURB),
                "disturb": [str(_disturbance(d, pushes)) for d in self.disturbances],
                "fault": [*map(str, fault_settings.with_values(self.faults, values))],
            }
        )


# Names -------------------------------------------------------------------------------------------


def _declared(
    scenario: Scenario, model: DiscreteSystem, disturbances: Sequence[Disturbance]
) -> Iterator[Declaration]:
    yield from (replace(entry, name=name) for name, entry in OPTIONS.items())
    parameters = list(_numbers(declarations(scenario.parameters)))
    yield from parameters
    yield from (replace(d, name=f"{MODEL}.{d.name}") for d in parameters)
    for d in declarations(scenario.perturbation):
        yield replace(d, name=f"{PERTURB}.{d.name}")
    targets = [d.target for d in disturbances]
    if len(set(targets)) < len(targets):
        raise ValueError(f"a study takes at most one disturbance of each target, got {targets}")
    for disturbance in disturbances:
        for d in _numbers(declarations(disturbance.signal)):
            yield replace(d, name=f"{DISTURB}.{disturbance.target}.{d.name}")
    for name in (*weighted_coordinates(scenario, model), *weighted_inputs(scenario)):
        yield Declaration(
            f"{WEIGHT}.{name}", 1.0, "", f"factor on the weight of {name}", at_least=0.0
        )
    if scenario.autopilot is not None and scenario.flight is not None:
        for d in scenario.autopilot.declared(scenario.flight.airframe):
            yield replace(d, name=f"{AUTOPILOT}.{d.name}")


def _numbers(entries: Sequence[Declaration]) -> Iterator[Declaration]:
    """Yield the declarations, one for every number in a tuple: lengths.0, lengths.1, ..."""
    for d in entries:
        several = isinstance(d.value, tuple)
        names = [f"{d.name}.{i}" for i in range(len(d.value))] if several else [d.name]
        for name, value in zip(names, d.value if several else (d.value,)):
            yield replace(d, name=name, value=value)


def _group(name: str) -> str | None:
    """Return the group before the first dot of a name, or None if the name has no group."""
    first, dot, _ = name.partition(".")
    return first if dot and first in GROUPS else None


def _values_of_group(values: Values, group: str) -> dict[str, Any]:
    return {n.removeprefix(f"{group}."): v for n, v in values.items() if _group(n) == group}


def _option(name: str, value: Value) -> Any:
    """Return the value of an option in the form that its setting has."""
    return str(value).split() if OPTIONS[name].is_list else value


# Values ------------------------------------------------------------------------------------------


def _gather_fields(owner: Any, values: Values) -> dict[str, Any]:
    """Combine values of single numbers into values of whole fields: `lengths.1` changes the second
    number in the owner's field `lengths`.
    """
    out: dict[str, Any] = {}
    for name, value in values.items():
        field, dot, place = name.rpartition(".")
        if not dot:
            out[name] = value
            continue
        numbers = list(out.get(field, getattr(owner, field)))
        numbers[int(place)] = value
        out[field] = tuple(numbers)
    return out


def _disturbance(disturbance: Disturbance, changes: Values) -> Disturbance:
    prefix = f"{disturbance.target}."
    numbers = {n.removeprefix(prefix): v for n, v in changes.items() if n.startswith(prefix)}
    return replace(
        disturbance,
        signal=replace(disturbance.signal, **_gather_fields(disturbance.signal, numbers)),
    )
