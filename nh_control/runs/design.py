"""The design of a tracker: parameters of its model, and factors on its weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nh_control.control.weights import StateWeight, weight_names
from nh_control.discrete.system import DiscreteSystem
from nh_control.mechanics.parameters import declarations
from nh_control.scenarios import Scenario, UnknownName


@dataclass(frozen=True)
class Design:
    """Changes to a scenario: `parameters` of the model, and `weights`, which are factors on the
    weights of the error coordinates and inputs.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)

    def of(self, scenario: Scenario) -> Scenario:
        """Return the scenario with these changes. Raises UnknownName, and ValueError for values
        that the scenario refuses.
        """
        if self.parameters:
            require_known(scenario, "parameter", self.parameters, names_of(scenario.parameters))
            parameters = replace(scenario.parameters, **self.parameters)
            scenario = replace(scenario, parameters=parameters)
        if self.weights:
            scenario = replace(scenario, weights=_weighted(scenario, self.weights))
        return scenario


def names_of(parameters: Any) -> tuple[str, ...]:
    """Return the names of declared parameters."""
    return tuple(entry.name for entry in declarations(parameters))


def require_known(
    scenario: Scenario, what: str, values: Mapping[str, Any], names: Sequence[str]
) -> None:
    """Raise UnknownName if a value has an unknown name."""
    for name in values:
        if name not in names:
            raise UnknownName(f"{scenario.name} {what}", name, names)


def weighted_coordinates(scenario: Scenario, model: DiscreteSystem) -> tuple[str, ...]:
    """Return the names of the coordinates that the scenario's weight Q applies to."""
    Q = scenario.weights[0]
    if isinstance(Q, Mapping):
        return tuple(Q)
    # a weight has the size of the local coordinates, or that of configuration and velocity
    n = model.ndx - len(model.method.memory)
    is_local = np.shape(Q) == (n, n)
    return model.state_space.tangent_names[:n] if is_local else weight_names(model)


def weighted_inputs(scenario: Scenario) -> tuple[str, ...]:
    """Return the names of the inputs that the scenario's weight R applies to."""
    system = scenario.system
    return (*system.inputs, *system.prescribed)


def _weighted(
    scenario: Scenario, factors: Mapping[str, float]
) -> tuple[StateWeight, np.ndarray, StateWeight | None]:
    """Return `S Q S`, `T R T` and `S Qf S`. S and T have the square roots of the factors on their
    diagonals, so the weights stay positive semidefinite.
    """
    Q, R, Qf = scenario.weights
    coordinates = weighted_coordinates(scenario, scenario.model())
    inputs = weighted_inputs(scenario)
    require_known(scenario, "weight", factors, (*coordinates, *inputs))
    for name, factor in factors.items():
        if not (np.isfinite(factor) and factor >= 0):
            raise ValueError(
                f"{scenario.name}: the factor on the weight of {name} must be a finite number "
                f">= 0, got {factor}"
            )

    # S Q S: element i, j is multiplied by the square roots of both factors
    def scaled(weight: StateWeight, names: Sequence[str]) -> Any:
        if isinstance(weight, Mapping):
            return {name: value * factors.get(name, 1.0) for name, value in weight.items()}
        roots = np.sqrt([factors.get(name, 1.0) for name in names])
        return weight * np.outer(roots, roots)

    return (
        scaled(Q, coordinates),
        scaled(R, inputs),
        None if Qf is None else scaled(Qf, coordinates),
    )
