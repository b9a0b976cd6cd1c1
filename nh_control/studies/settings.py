"""Settings that a study may fix or vary in a run: the options of `nh_control simulate`, the
tracker's weights and the parameters of its model, by name:

    NAME               physical parameter of the plant only; NAME.0, ... for several numbers
    model.NAME         of the model, and of the plant unless the plant has its own value
    perturb.NAME       initial error
    disturb.TARGET.NAME  a value of the disturbance of this target: start, force.0, ...
    fault.[TARGET:]KIND  number of a fault; with .NAME another value of it, see `fault_settings`
    weight.NAME        factor on the weight of a coordinate of the state's error, or of an input
    reference, ...     the options of `simulate` in OPTIONS; several names have spaces between them
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
OF_RUN = ("open_loop", "plant_integrator", "plant_substeps")
"""Options that the tracker does not depend on."""

Values = Mapping[str, Value]


@dataclass(frozen=True)
class Settings:
    """The settings of a scenario under these disturbances and faults; `declared` contains the
    declarations with their defaults, by name.
    """

    scenario: Scenario
    disturbances: tuple[Disturbance, ...]
    faults: tuple[Fault, ...]
    declared: Mapping[str, Declaration]

    @staticmethod
    def of(
        scenario: Scenario,
        disturbances: Sequence[Disturbance] = (),
        faults: Sequence[Fault] = (),
    ) -> Settings:
        """Return all settings of a scenario; builds its default model to find the names of the
        weights.

        Raises UnknownName and ValueError for faults that the model cannot have.
        """
        model = scenario.model()
        FaultLines.of(faults, model)
        entries = (*_declared(scenario, model, disturbances), *fault_settings.declared(faults))
        known = {d.name: d for d in entries}
        return Settings(scenario, tuple(disturbances), tuple(faults), known)

    def entry(self, name: str) -> Declaration:
        """Return the declaration of a setting; raises UnknownName."""
        if name not in self.declared:
            raise UnknownName(f"setting of {self.scenario.name}", name, self.declared)
        return self.declared[name]

    def checked(self, name: str, value: Value) -> Value:
        """Return the value after conversion to the type of the setting; raises UnknownName,
        ValueError.
        """
        entry = self.entry(name)
        if isinstance(entry.value, str) or entry.is_list:
            entry.read(str(value), self.scenario.name)
            return str(value)
        return entry.check(value, self.scenario.name)

    def option(self, values: Values, name: str) -> Any:
        """Return the value of an option, or its default."""
        return values.get(name, OPTIONS[name].value)

    def design(self, values: Values) -> tuple[tuple[str, Value], ...]:
        """Return the values that the tracker depends on."""
        return tuple(
            (name, value)
            for name, value in values.items()
            if _group(name) in (MODEL, WEIGHT) or (name in OPTIONS and name not in OF_RUN)
        )

    def run(self, values: Values) -> RunSettings:
        """Return the settings of a run with these values; raises ValueError for options that need
        another controller.
        """
        nominal = self.scenario.parameters
        model = _gather_fields(nominal, _values_of_group(values, MODEL))
        changed = replace(nominal, **model) if model else nominal
        own = {n: v for n, v in values.items() if n not in OPTIONS and _group(n) is None}
        pushes = _values_of_group(values, DISTURB)
        options = {OPTIONS[n].name: _option(n, v) for n, v in values.items() if n in OPTIONS}
        return RunSettings.of(
            {
                **options,
                "model_parameters": model,
                "weight_factors": _values_of_group(values, WEIGHT),
                "plant.parameters": _gather_fields(changed, own),
                "perturb": _values_of_group(values, PERTURB),
                "disturb": [str(_disturbance(one, pushes)) for one in self.disturbances],
                "fault": [str(one) for one in fault_settings.with_values(self.faults, values)],
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


def _numbers(entries: Sequence[Declaration]) -> Iterator[Declaration]:
    """Yield the declarations, with one declaration for every number of a tuple: lengths.0,
    lengths.1, ...
    """
    for d in entries:
        several = isinstance(d.value, tuple)
        names = [f"{d.name}.{i}" for i in range(len(d.value))] if several else [d.name]
        for name, value in zip(names, d.value if several else (d.value,)):
            yield replace(d, name=name, value=value)


def _group(name: str) -> str | None:
    """Return the group before the first dot of a name, or None if the name has no group."""
    first, dot, _ = name.partition(".")
    return first if dot and first in (MODEL, PERTURB, DISTURB, FAULT, WEIGHT) else None


def _values_of_group(values: Values, group: str) -> dict[str, Any]:
    return {n.removeprefix(f"{group}."): v for n, v in values.items() if _group(n) == group}


def _option(name: str, value: Value) -> Any:
    """Return the value of an option as its setting has it."""
    return str(value).split() if OPTIONS[name].is_list else value


# Values ------------------------------------------------------------------------------------------


def _gather_fields(owner: Any, values: Values) -> dict[str, Any]:
    """Return values of whole fields from values of single numbers: `lengths.1` changes the second
    number of the owner's field `lengths`.
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
    own = {n.removeprefix(prefix): v for n, v in changes.items() if n.startswith(prefix)}
    return replace(
        disturbance,
        signal=replace(disturbance.signal, **_gather_fields(disturbance.signal, own)),
    )
