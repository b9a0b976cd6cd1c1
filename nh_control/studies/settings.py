"""Settings that a study may fix or vary in a run: the options of `nh_control simulate`, the
tracker's weights and the parameters of its model, by name:

    NAME               physical parameter of the plant only; NAME.0, ... for several numbers
    model.NAME         of the model, and of the plant unless the plant has its own value
    perturb.NAME       initial error
    disturb.TARGET.NAME  a value of the disturbance of this target: start, force.0, ...
    fault.[TARGET:]KIND  number of a fault; with .NAME another value of it, see `fault_settings`
    weight.NAME        factor on the weight of a coordinate of the state's error, or of an input
    reference, ...     the options in OPTIONS
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nh_control.control.weights import StateWeight, weight_names
from nh_control.discrete.system import DiscreteSystem
from nh_control.mechanics.parameters import Declaration, declarations
from nh_control.runs.faults import FaultLines
from nh_control.scenarios import MpcOptions, PlantOptions, Scenario, UnknownName
from nh_control.scenarios.disturbance import Disturbance
from nh_control.scenarios.fault import Fault
from nh_control.studies import fault_settings
from nh_control.studies.fault_settings import FAULT
from nh_control.studies.variation import Value

MODEL, PERTURB, DISTURB, WEIGHT = "model", "perturb", "disturb", "weight"
LQR, MPC = "lqr", "mpc"
OPTIONS: Mapping[str, Declaration] = {
    d.name: d
    for d in (
        Declaration("reference", "", "", "motion that the tracker follows"),
        Declaration("integrator", "", "", "integrator of the model"),
        Declaration("step", 0.0, "s", "step of model and commands", at_least=0.0),
        Declaration("duration", 0.0, "s", "simulated time", at_least=0.0),
        Declaration("integral", False, "", "whether the tracker estimates a disturbance"),
        Declaration("open_loop", False, "", "whether there is no feedback"),
        Declaration("plant_integrator", "", "", "integrator of the plant"),
        Declaration("plant_substeps", 1, "", "steps of the plant in one step of the model", 0.0),
        Declaration("controller", LQR, "", "lqr or mpc"),
        Declaration("mpc_horizon", 0.0, "s", "how far mpc plans", at_least=0.0),
        Declaration("mpc_iterations", 3, "", "iterations of mpc in a step", 0.0),
        Declaration("mpc_late", 0.0, "", "share of mpc's plans that are late", at_least=0.0),
        Declaration("mpc_seed", 0, "", "seed with which these are drawn", at_least=0.0),
    )
}
"""The options of `nh_control simulate` that take one value."""
PREDICTIVE = tuple(name for name in OPTIONS if name.startswith("mpc_"))
DESIGN = ("reference", "integrator", "step", "duration", "integral", "controller", *PREDICTIVE)
"""Options that the tracker depends on, besides the model's parameters and the weights."""

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
        if isinstance(entry.value, str | bool):
            value = str(value) if isinstance(entry.value, str) else value
            if not isinstance(value, type(entry.value)):
                raise ValueError(f"{name} must be true or false, got {value}")
            return value
        return entry.check(value, self.scenario.name)

    def option(self, values: Values, name: str) -> Any:
        """Return the value of an option, or its default."""
        return values.get(name, OPTIONS[name].value)

    def design(self, values: Values) -> tuple[tuple[str, Value], ...]:
        """Return the values that the tracker depends on."""
        prefixes = (f"{MODEL}.", f"{WEIGHT}.")
        return tuple((n, v) for n, v in values.items() if n in DESIGN or n.startswith(prefixes))

    def mpc(self, values: Values) -> MpcOptions | None:
        """Return the options of the predictive tracker, None of LQR; raises ValueError for another
        controller, and options that this one does not have.
        """
        kind, option = self.option(values, "controller"), self.option
        if kind == MPC:
            late, seed = option(values, "mpc_late"), int(option(values, "mpc_seed"))
            horizon_s, iterations = option(values, "mpc_horizon"), option(values, "mpc_iterations")
            return MpcOptions(horizon_s, int(iterations), late=late, seed=seed)
        if kind != LQR:
            raise ValueError(f"unknown controller {kind!r}, choose {LQR} or {MPC}")
        if given := [name for name in PREDICTIVE if name in values]:
            raise ValueError(f"{', '.join(given)} need controller={MPC}")
        return None

    def with_design(self, values: Values) -> Scenario:
        """Return the scenario with the model parameters and weights of these values."""
        scenario = self.scenario
        if changed := _gather_fields(scenario.parameters, _values_of_group(values, MODEL)):
            scenario = replace(scenario, parameters=replace(scenario.parameters, **changed))
        if factors := _values_of_group(values, WEIGHT):
            scenario = replace(scenario, weights=_weighted(scenario, factors))
        return scenario

    def perturbation(self, values: Values) -> Any:
        """Return the scenario's initial error with the changes of these values."""
        return replace(self.scenario.perturbation, **_values_of_group(values, PERTURB))

    def plant_options(self, values: Values, scenario: Scenario) -> PlantOptions:
        """Return the differences between the plant and the model of a scenario `with_design`."""
        own = {n: v for n, v in values.items() if n not in OPTIONS and _group(n) is None}
        changes = _values_of_group(values, DISTURB)
        return PlantOptions(
            self.option(values, "plant_integrator"),
            int(self.option(values, "plant_substeps")),
            _gather_fields(scenario.parameters, own),
            tuple(_disturbance(d, changes) for d in self.disturbances),
            fault_settings.with_values(self.faults, values),
        )


# Names -------------------------------------------------------------------------------------------


def _declared(
    scenario: Scenario, model: DiscreteSystem, disturbances: Sequence[Disturbance]
) -> Iterator[Declaration]:
    yield from OPTIONS.values()
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
    for name in (*_coordinates(scenario, model), *_inputs(scenario)):
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


def _coordinates(scenario: Scenario, model: DiscreteSystem) -> tuple[str, ...]:
    """Return the names of the coordinates that the scenario's weight Q applies to."""
    Q = scenario.weights[0]
    if isinstance(Q, Mapping):
        return tuple(Q)
    n = model.ndx - len(model.method.memory)
    is_local = np.shape(Q) == (n, n)
    return model.state_space.tangent_names[:n] if is_local else weight_names(model)


def _inputs(scenario: Scenario) -> tuple[str, ...]:
    system = scenario.make_system(scenario.parameters)
    return (*system.inputs, *system.prescribed)


def _group(name: str) -> str | None:
    """Return the group before the first dot of a name, or None if the name has no group."""
    first, dot, _ = name.partition(".")
    return first if dot and first in (MODEL, PERTURB, DISTURB, FAULT, WEIGHT) else None


def _values_of_group(values: Values, group: str) -> dict[str, Any]:
    return {n.removeprefix(f"{group}."): v for n, v in values.items() if _group(n) == group}


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


def _weighted(
    scenario: Scenario, factors: Mapping[str, float]
) -> tuple[StateWeight, np.ndarray, StateWeight | None]:
    """Return `S Q S`, `T R T` and `S Qf S`. S and T have the square roots of the factors on their
    diagonals, so the weights stay positive semidefinite.
    """
    Q, R, Qf = scenario.weights

    def scaled(weight: StateWeight, names: Sequence[str]) -> Any:
        if isinstance(weight, Mapping):
            return {name: value * factors.get(name, 1.0) for name, value in weight.items()}
        roots = np.sqrt([factors.get(name, 1.0) for name in names])
        return weight * np.outer(roots, roots)

    coordinates = _coordinates(scenario, scenario.model())
    return (
        scaled(Q, coordinates),
        scaled(R, _inputs(scenario)),
        None if Qf is None else scaled(Qf, coordinates),
    )
