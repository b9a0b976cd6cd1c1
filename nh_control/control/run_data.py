"""The data of the runs in a rollout: parameters and external forces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.system import DiscreteSystem


@dataclass(frozen=True)
class RunSystems:
    """A discrete system, optionally with separate parameter `values` (R, n) for every run."""

    dsys: DiscreteSystem
    values: np.ndarray | None

    @classmethod
    def of(
        cls, dsys: DiscreteSystem, parameters: ArrayLike | Mapping[str, ArrayLike] | None
    ) -> RunSystems:
        """The systems with parameters (R, n), or with values (R) or (R, k) by name. Raises
        ValueError for a wrong shape or an unknown name.
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
        """The number of runs that have values, or None if there are no values."""
        return None if self.values is None else len(self.values)

    def distinct(self, runs: range) -> range:
        """The first of the runs if all runs have the same parameters, otherwise all runs."""
        return runs[:1] if self.values is None else runs

    def __call__(self, run: int) -> DiscreteSystem:
        """The system of a run. Raises ValueError for invalid parameters."""
        if self.values is None:
            return self.dsys
        # the step h is the last parameter
        return self.dsys.with_parameter_values(np.append(self.values[run], self.dsys.h))


def _by_name(dsys: DiscreteSystem, parameters: Mapping[str, ArrayLike]) -> np.ndarray:
    """The values (R, n) of all parameters, from the values of some parameters by name."""
    columns = {name: i for i, name in enumerate(dsys.system.parameter_names)}
    places = {}
    for name in parameters:
        # a tuple parameter has the columns name[0], name[1], ...
        places[name] = [i for n, i in columns.items() if n == name or n.startswith(f"{name}[")]
        if not places[name]:
            raise ValueError(f"{dsys}: no parameter {name!r}, choose from {list(columns)}")
    by_name = {name: np.array(value, dtype=float) for name, value in parameters.items()}
    for name, value in by_name.items():
        n = len(places[name])
        if value.shape[1:] != (() if value.ndim == 1 and n == 1 else (n,)) or not value.ndim:
            raise ValueError(
                f"{dsys}: parameter {name!r} must have shape (runs{f', {n}' if n > 1 else ''}), "
                f"got {value.shape}"
            )
    runs = number_of_runs(dsys, {name: len(value) for name, value in by_name.items()})
    values = np.tile(dsys.system.parameter_values, (runs, 1))
    for name, value in by_name.items():
        values[:, places[name]] = value.reshape(runs, -1)
    return values


@dataclass(frozen=True)
class ExternalForces:
    """The additional inputs (steps, k) of a plant, which its model does not have. They are the
    `disturbances` (steps, k) or (R, steps, k) plus normal noise.
    """

    disturbances: np.ndarray
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
        """External forces from a user's arrays. Raises ValueError for a wrong shape."""
        n = plant.nu - model.nu
        if n < 0:
            raise ValueError(f"{plant} has fewer inputs than the controller's model, {model}")
        forces = np.zeros((steps, n)) if disturbances is None else np.array(disturbances, float)
        if forces.ndim not in (2, 3) or forces.shape[-2:] != (steps, n):
            raise ValueError(
                f"{plant}: disturbances must have shape (runs, {steps}, {n}) or ({steps}, {n}), "
                f"got {forces.shape}"
            )
        deviations = np.zeros(n) if noise is None else np.array(noise, dtype=float)
        if deviations.shape != (n,) or not (deviations >= 0).all():
            raise ValueError(
                f"{plant}: noise must be {n} standard deviations, one for every input that the "
                f"model does not have, got {deviations.tolist()}"
            )
        return cls(forces, deviations, seed)

    @property
    def runs(self) -> int | None:
        """The number of runs that have separate disturbances, or None if there are none."""
        return len(self.disturbances) if self.disturbances.ndim == 3 else None

    @property
    def steps(self) -> int:
        """The number of steps."""
        return self.disturbances.shape[-2]

    def __call__(self, run: int) -> np.ndarray:
        """The forces in a run. They do not depend on the number of runs."""
        forces = self.disturbances[run] if self.disturbances.ndim == 3 else self.disturbances
        if not self.noise.any():
            return forces
        # child `run` of the seed sequence, independent of other runs and threads
        draw = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(run,)))
        return forces + self.noise * draw.standard_normal(forces.shape)


def number_of_runs(dsys: DiscreteSystem, counts: Mapping[str, int | None]) -> int:
    """The number of runs implied by `counts`, which maps names of data to their numbers of runs,
    or 1 if all counts are None. Raises ValueError, naming the data, if the counts differ.
    """
    numbers = {name: n for name, n in counts.items() if n is not None}
    if len(set(numbers.values())) > 1:
        text = ", ".join(f"{n} for {name}" for name, n in numbers.items())
        raise ValueError(f"{dsys}: the numbers of runs must agree, got {text}")
    return next(iter(numbers.values()), 1)
