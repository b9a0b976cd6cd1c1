"""The data of each run of a rollout: parameters and external forces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.system import DiscreteSystem


@dataclass(frozen=True)
class RunSystems:
    """A discrete system, with the parameters' `values` (R, n) of every run if there are any."""

    dsys: DiscreteSystem
    values: np.ndarray | None

    @classmethod
    def of(
        cls, dsys: DiscreteSystem, parameters: ArrayLike | Mapping[str, ArrayLike] | None
    ) -> RunSystems:
        """Parameters from values (R, n), or from values (R) or (R, k) by name; raises ValueError
        for another shape or name.
        """
        if parameters is None:
            return cls(dsys, None)
        if isinstance(parameters, Mapping):
            return cls(dsys, _by_name(dsys, parameters))
        values, names = np.array(parameters, dtype=float), dsys.system.parameter_names
        if values.ndim != 2 or values.shape[1] != len(names):
            raise ValueError(
                f"{dsys}: parameters must have shape (runs, {len(names)}) for {names}, got "
                f"{values.shape}"
            )
        return cls(dsys, values)

    @property
    def runs(self) -> int | None:
        """Number of runs with values, None without values."""
        return None if self.values is None else len(self.values)

    def __call__(self, run: int) -> DiscreteSystem:
        """The system of a run; raises ValueError for values that the parameters refuse."""
        if self.values is None:
            return self.dsys
        return self.dsys.with_parameter_values(np.append(self.values[run], self.dsys.h))


def _by_name(dsys: DiscreteSystem, parameters: Mapping[str, ArrayLike]) -> np.ndarray:
    """Values (R, n) of all parameters; parameters without a given value have the nominal one."""
    columns = {name: i for i, name in enumerate(dsys.system.parameter_names)}
    places = {}
    for name in parameters:
        places[name] = [i for n, i in columns.items() if n == name or n.startswith(f"{name}[")]
        if not places[name]:
            raise ValueError(f"{dsys}: no parameter {name!r}, choose of {list(columns)}")
    given = {name: np.array(value, dtype=float) for name, value in parameters.items()}
    for name, value in given.items():
        n = len(places[name])
        if value.shape[1:] != (() if value.ndim == 1 and n == 1 else (n,)) or not value.ndim:
            raise ValueError(
                f"{dsys}: parameter {name!r} must have shape (runs{f', {n}' if n > 1 else ''}), "
                f"got {value.shape}"
            )
    runs = number_of_runs(dsys, {name: len(value) for name, value in given.items()})
    values = np.tile(dsys.system.parameter_values, (runs, 1))
    for name, value in given.items():
        values[:, places[name]] = value.reshape(runs, -1)
    return values


@dataclass(frozen=True)
class ExternalForces:
    """The inputs (steps, k) of a plant that its model does not have: given ones, (steps, k) or (R,
    steps, k), plus normal noise.
    """

    given: np.ndarray
    noise: np.ndarray
    seed: int

    @classmethod
    def of(
        cls,
        plant: DiscreteSystem,
        model: DiscreteSystem,
        steps: int,
        disturbances: ArrayLike | None,
        noise: ArrayLike | None,
        seed: int,
    ) -> ExternalForces:
        """External forces from a user's array; raises ValueError for a wrong shape."""
        n = plant.nu - model.nu
        if n < 0:
            raise ValueError(f"{plant} has fewer inputs than the controller's model, {model}")
        given = np.zeros((steps, n)) if disturbances is None else np.array(disturbances, float)
        if given.ndim not in (2, 3) or given.shape[-2:] != (steps, n):
            raise ValueError(
                f"{plant}: disturbances must have shape (runs, {steps}, {n}) or ({steps}, {n}), "
                f"got {given.shape}"
            )
        deviations = np.zeros(n) if noise is None else np.array(noise, dtype=float)
        if deviations.shape != (n,) or not (deviations >= 0).all():
            raise ValueError(
                f"{plant}: noise must be {n} standard deviations, one for every input that the "
                f"model does not have, got {deviations.tolist()}"
            )
        return cls(given, deviations, seed)

    @property
    def runs(self) -> int | None:
        """Number of runs with forces of their own, None without such forces."""
        return len(self.given) if self.given.ndim == 3 else None

    @property
    def steps(self) -> int:
        """Number of steps."""
        return self.given.shape[-2]

    def __call__(self, run: int) -> np.ndarray:
        """The forces of a run, which do not depend on the number of runs."""
        given = self.given[run] if self.given.ndim == 3 else self.given
        if not self.noise.any():
            return given
        draw = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(run,)))
        return given + self.noise * draw.standard_normal(given.shape)


def number_of_runs(dsys: DiscreteSystem, given: Mapping[str, int | None]) -> int:
    """The number of runs that the given data agree on, 1 without any data; raises ValueError with
    the names of data that do not agree.
    """
    numbers = {name: n for name, n in given.items() if n is not None}
    if len(set(numbers.values())) > 1:
        counts = ", ".join(f"{n} of {name}" for name, n in numbers.items())
        raise ValueError(f"{dsys}: the numbers of runs must agree, got {counts}")
    return next(iter(numbers.values()), 1)
