"""A study: many runs of a scenario with varied settings; the index of a run determines its
settings.
"""

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
MOST_RUNS = 10_000_000
"""Largest final tracking error of a successful run, in m and rad."""


@dataclass(frozen=True)
class Study:
    """Runs of a `scenario` (given by the nodes' parameters that define it) with the variations
    `vary`.

        fixed     settings with the same value in all runs, see `settings`
        disturb   disturbances of all runs, in the syntax of `simulate`
        fault     faults of all runs, in the syntax of `simulate`; a fault with a varied or fixed
                  setting need not be listed here
        sampling  `grid` of all levels, `monte_carlo` (independent points), `latin_hypercube`,
                  `sobol` (a scrambled sequence), `saltelli` (for Sobol' indices)
        points    number of points, except for a grid
        seeds     runs at every point; run k uses the seed k for its initial error and noises.
                  Without points every seed has its own point. 0: one run a point, fixed seeds
        seed      seed of the sampling
        success   largest final tracking error of a successful run
        monitor   whether the scenario's monitored output and its system's declared outputs
                  are metrics
    """

    scenario: tuple[tuple[str, str | bool], ...]
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
            raise ValueError(f"each setting may vary once or be set once, got {names}")
        self._check_sampling()

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields only: other processes build the scenario themselves."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def _check_sampling(self) -> None:
        if self.sampling == GRID:
            for v in self.vary:
                if not v.levels:
                    raise ValueError(
                        f"{v.name}={v} has no number of levels for a grid; add it, as in "
                        f"{v.name}={v}:5, or choose another sampling"
                    )
            if self.points:
                raise ValueError("the levels determine the points of a grid; leave points out")
            if not (self.vary or self.seeds):
                raise ValueError("nothing varies; add vary or seeds")
        elif not (self.points or self.seeds):
            raise ValueError(f"sampling {self.sampling} needs a number of points or of seeds")
        n = self.points or self.seeds
        if self.sampling in (SOBOL, SALTELLI) and n & (n - 1):
            raise ValueError(f"sampling {self.sampling} takes a power of 2 of points, got {n}")
        if self.sampling == SALTELLI and (self.seeds or not self.vary):
            raise ValueError(
                f"sampling {SALTELLI} takes no seeds, and needs a setting that varies"
            )
        if self.total > MOST_RUNS:
            raise ValueError(
                f"the study has {self.total} runs, expected at most {MOST_RUNS:_}; take fewer "
                f"levels, points or seeds"
            )

    # Runs ----------------------------------------------------------------------------------------

    @property
    def total(self) -> int:
        """The number of runs."""
        return self._points * (self._repeats or 1)

    @property
    def _repeats(self) -> int:
        """The number of runs with different seeds at every point; 0 if seeds are fixed or vary
        with the points.
        """
        return self.seeds if self.sampling == GRID or self.points else 0

    @property
    def _points(self) -> int:
        return sampling.count(self.sampling, self.vary, self.points or self.seeds)

    def point(self, index: int) -> tuple[Value, ...]:
        """Return the varied values of the run of this index; raises IndexError."""
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
        """Return the seed of the run of this index, or None if seeds are fixed."""
        return index % (self._repeats or self.total) if self.seeds else None

    def values(self, index: int) -> dict[str, Value]:
        """Return all settings of the run of this index except the scenario's."""
        seed = self.run_seed(index)
        seeds = {} if seed is None else dict.fromkeys(self.seeded, seed)
        varied = dict(zip((v.name for v in self.vary), self.point(index)))
        return {**seeds, **dict(self.fixed), **varied}

    @cached_property
    def seeded(self) -> tuple[str, ...]:
        """The settings that receive a run's seed: all seeds that are neither fixed nor varied."""
        own = {v.name for v in self.vary} | {name for name, _ in self.fixed}
        return tuple(
            name
            for name in self.settings.declared
            if name.rpartition(".")[2] == "seed" and name not in own
        )

    @cached_property
    def settings(self) -> Settings:
        """The available settings; loads and builds the scenario."""
        names = [name for name, _ in self.fixed] + [v.name for v in self.vary]
        return Settings.of(
            self.load(),
            [disturbance.parse(text) for text in self.disturb],
            fault_settings.with_named_faults([fault.parse(text) for text in self.fault], names),
        )

    def load(self) -> Scenario:
        """Build the scenario from the nodes' parameters."""
        return scenarios.of_origin(dict(self.scenario))

    def check(self) -> None:
        """Raise UnknownName or ValueError if a setting cannot be fixed or varied as requested."""
        scenario = self.settings.scenario
        watched = scenario.monitor or scenario.make_system(scenario.parameters).outputs
        if self.monitor and not watched:
            raise ValueError(
                f"{scenario.name} has no monitored output and its system declares none; leave "
                "monitor out"
            )
        for name, value in self.fixed:
            self._check_value(name, value)
        for v in self.vary:
            default = self.settings.entry(v.name).value
            if v.kind != VALUES and not isinstance(default, float):
                raise ValueError(
                    f"{v.name} cannot vary over a range: list its values, separated by commas"
                )
            for value in v.levels:
                self._check_value(v.name, value)
        if self._repeats and not self.seeded:
            raise ValueError("no setting of this study uses a seed; leave seeds out")

    def _check_value(self, name: str, value: Value) -> None:
        self.settings.checked(name, value)
        fault_settings.with_values(self.settings.faults, {name: value})
