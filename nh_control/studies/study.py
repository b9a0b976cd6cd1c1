"""A study: many runs of a scenario that differ in what varies; each follows from its index."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from nh_control import scenarios
from nh_control.scenarios import Scenario, UnknownName, disturbance, fault
from nh_control.studies import fault_settings, sampling
from nh_control.studies.sampling import GRID, SALTELLI, SAMPLINGS, SOBOL
from nh_control.studies.settings import Settings
from nh_control.studies.variation import VALUES, Value, Variation

SUCCESS = 0.05
"""Largest tracking error at the end, in m and rad, of a run that counts as a success."""


@dataclass(frozen=True)
class Study:
    """Runs of a `scenario` (the nodes' parameters that make it, by name) in which `vary` varies.

    fixed     settings that are the same in all runs, see `settings`
    disturb   disturbances of all runs, as `simulate` takes them
    fault     faults of all runs, as `simulate` takes them; those that vary, or are set, need not
              be named here
    sampling  `grid` of all levels, `monte_carlo` (each point drawn by itself), `latin_hypercube`,
              `sobol` (a scrambled sequence), `saltelli` (for Sobol' indices)
    points    number of points, unless in a grid
    seeds     runs at every point, whose seeds 0, 1, ... the initial error and noises get; without
              points every seed has a point of its own; 0: one run a point, seeds as they are set
    seed      of the sampling
    success   largest tracking error at the end of a run that counts as a success
    monitor   whether what the scenario monitors is a metric, too
    """

    scenario: tuple[tuple[str, str], ...]
    vary: tuple[Variation, ...] = ()
    fixed: tuple[tuple[str, Value], ...] = ()
    disturb: tuple[str, ...] = ()
    fault: tuple[str, ...] = ()
    sampling: str = GRID
    points: int = 0
    seeds: int = 0
    seed: int = 0
    success: float = SUCCESS
    monitor: bool = False

    def __post_init__(self) -> None:
        if self.sampling not in SAMPLINGS:
            raise UnknownName("sampling", self.sampling, SAMPLINGS)
        if min(self.points, self.seeds, self.seed) < 0 or not self.success > 0:
            raise ValueError(
                f"points, seeds and seed must be at least 0 and success > 0, got {self.points}, "
                f"{self.seeds}, {self.seed} and {self.success}"
            )
        names = [v.name for v in self.vary] + [name for name, _ in self.fixed]
        if len(set(names)) < len(names):
            raise ValueError(f"every setting varies once, or is set once, got {names}")
        self._check_sampling()

    def __getstate__(self) -> dict[str, Any]:
        """What is sent to other processes: what makes the study, not the scenario built of it."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def _check_sampling(self) -> None:
        if self.sampling == GRID:
            for v in self.vary:
                if not v.levels:
                    raise ValueError(
                        f"{v.name}={v} has no levels for a grid; write how many, as in "
                        f"{v.name}={v}:5, or choose another sampling"
                    )
            if self.points:
                raise ValueError("a grid has the points of its levels; leave points out")
            if not (self.vary or self.seeds):
                raise ValueError("nothing varies; add vary or seeds")
        elif not (self.points or self.seeds):
            raise ValueError(f"sampling {self.sampling}: say how many points, or seeds")
        n = self.points or self.seeds
        if self.sampling in (SOBOL, SALTELLI) and n & (n - 1):
            raise ValueError(f"sampling {self.sampling} takes a power of 2 of points, got {n}")
        if self.sampling == SALTELLI and (self.seeds or not self.vary):
            raise ValueError(f"sampling {SALTELLI} takes no seeds, and something must vary")

    # Runs ----------------------------------------------------------------------------------------

    @property
    def total(self) -> int:
        """Number of runs."""
        return self._points * (self._repeats or 1)

    @property
    def _repeats(self) -> int:
        """Runs with other seeds at every point; 0 where seeds are as they are set, or go along
        with the points.
        """
        return self.seeds if self.sampling == GRID or self.points else 0

    @property
    def _points(self) -> int:
        return sampling.count(self.sampling, self.vary, self.points or self.seeds)

    def point(self, index: int) -> tuple[Value, ...]:
        """What the variations are in the run of that index; raises IndexError."""
        if not 0 <= index < self.total:
            raise IndexError(f"run {index}: the runs are 0 ... {self.total - 1}")
        return sampling.point(
            self.sampling,
            self.vary,
            self.points or self.seeds,
            self.seed,
            index // (self._repeats or 1),
        )

    def run_seed(self, index: int) -> int | None:
        """The seed of the run of that index, None where seeds are as they are set."""
        return index % (self._repeats or self.total) if self.seeds else None

    def values(self, index: int) -> dict[str, Value]:
        """All settings of the run of that index that are not the scenario's."""
        seed = self.run_seed(index)
        seeds = {} if seed is None else dict.fromkeys(self.seeded, seed)
        varied = dict(zip((v.name for v in self.vary), self.point(index)))
        return {**seeds, **dict(self.fixed), **varied}

    @cached_property
    def seeded(self) -> tuple[str, ...]:
        """The settings that get a run's seed: all seeds that are not set and do not vary."""
        own = {v.name for v in self.vary} | {name for name, _ in self.fixed}
        return tuple(
            name
            for name in self.settings.declared
            if name.rpartition(".")[2] == "seed" and name not in own
        )

    @cached_property
    def settings(self) -> Settings:
        """What may be set; loads and builds the scenario."""
        names = [name for name, _ in self.fixed] + [v.name for v in self.vary]
        return Settings.of(
            self.load(),
            [disturbance.parse(text) for text in self.disturb],
            fault_settings.with_those_of([fault.parse(text) for text in self.fault], names),
        )

    def load(self) -> Scenario:
        """The scenario, which the nodes' parameters make again."""
        origin = dict(self.scenario)
        return scenarios.get(
            origin["scenario"], origin.get("urdf", ""), origin.get("base", "fixed")
        )

    def check(self) -> None:
        """Raise UnknownName or ValueError unless all that is set and varies can be."""
        if self.monitor and self.settings.scenario.monitor is None:
            raise ValueError(f"{self.settings.scenario.name} monitors nothing; leave monitor out")
        for name, value in self.fixed:
            self._check_value(name, value)
        for v in self.vary:
            default = self.settings.entry(v.name).value
            if v.kind != VALUES and not isinstance(default, float):
                raise ValueError(f"{v.name} has no ranges: list its values, separated by commas")
            for value in v.levels:
                self._check_value(v.name, value)
        if self._repeats and not self.seeded:
            raise ValueError("nothing is drawn from seeds here; leave them out")

    def _check_value(self, name: str, value: Value) -> None:
        self.settings.checked(name, value)
        fault_settings.changed(self.settings.faults, {name: value})
