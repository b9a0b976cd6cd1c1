"""A study: many runs of a scenario with varied settings. The index of a run determines its
settings.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from nh_control import scenarios
from nh_control.runs.settings import EXTERNAL, RunSettings, is_user_controller
from nh_control.scenarios import Scenario, UnknownName, disturbance, fault, user_controller
from nh_control.studies import fault_settings, quantities, sampling
from nh_control.studies.metrics import ERROR, metrics_of
from nh_control.studies.requirements import Requirement
from nh_control.studies.sampling import GRID, SALTELLI, SAMPLINGS, SOBOL
from nh_control.studies.settings import PERTURB, Settings
from nh_control.studies.variation import NAMED, VALUES, Value, Variation

SUCCESS = 0.05
"""Maximum final tracking error of a successful run, in m and rad."""
MOST_RUNS = 10_000_000
ALL_SUCCEED = "success >= 100 %"
"""The default requirement for a study that only has requirements on its runs."""
MOST_SEED = 1_000_000


@dataclass(frozen=True)
class Study:
    """Runs of a `scenario`, given by the node parameters that define it, with variations `vary`.

    fixed     settings with the same value in all runs (see `settings`)
    disturb   disturbances in all runs, in the syntax of `simulate`
    fault     faults in all runs, in the syntax of `simulate`; a fault with a varied or fixed
              setting need not be listed here
    sampling  `grid` of all levels, `monte_carlo` (independent points), `latin_hypercube`,
              `sobol` (a scrambled sequence), `saltelli` (for Sobol' indices)
    points    number of points, except for a grid. Each drawn point is run with every listed
              name, except for Sobol' indices
    seeds     number of runs at every point; run k uses seed k for its initial error and
              noises. Without `points`, each seed has a different point. 0: one run per point
    seed      seed for the sampling
    success   maximum final tracking error of a successful run, if no requirements on runs
              define success
    monitor   whether the scenario's monitored output and its system's declared outputs
              are metrics
    same_noise  whether the noises in faults and disturbances have the same seeds in all runs
              if `seeds` is 0; in a grid and for Sobol' indices, they always do
    require   requirements on the study and on its runs (see `requirements`)
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
    same_noise: bool = False
    require: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.sampling not in SAMPLINGS:
            raise UnknownName("sampling", self.sampling, SAMPLINGS)
        if min(self.points, self.seeds, self.seed) < 0 or not self.success > 0:
            raise ValueError(
                f"points, seeds and seed must be at least 0 and success > 0, got {self.points}, "
                f"{self.seeds}, {self.seed} and {self.success}"
            )
        canonical = fault_settings.canonical
        vary = tuple(replace(v, name=canonical(v.name)) for v in self.vary)
        object.__setattr__(self, "vary", vary)
        fixed = tuple((canonical(name), value) for name, value in self.fixed)
        object.__setattr__(self, "fixed", fixed)
        names = [v.name for v in self.vary] + [name for name, _ in self.fixed]
        if len(set(names)) < len(names):
            raise ValueError(f"each setting may vary once or be set once, got {names}")
        self.requirements  # noqa: B018  (raises ValueError for invalid texts)
        self._check_sampling()

    def __getstate__(self) -> dict[str, Any]:
        """Return only the fields, because other processes build the scenario themselves."""
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
        # Sobol' sequences are balanced for powers of 2. Only for these, n & (n - 1) is 0.
        n = self.points or self.seeds
        if self.sampling in (SOBOL, SALTELLI) and n & (n - 1):
            raise ValueError(
                f"sampling {self.sampling} needs a number of points that is a power of 2, got {n}"
            )
        if self.sampling == SALTELLI and (self.seeds or not self.vary):
            raise ValueError(
                f"sampling {SALTELLI} takes no seeds, and needs a setting that varies"
            )
        if self.total > MOST_RUNS:
            raise ValueError(
                f"the study has {self.total} runs, expected at most {MOST_RUNS:_}; choose fewer "
                f"levels, points or seeds"
            )

    # Runs ----------------------------------------------------------------------------------------

    @property
    def total(self) -> int:
        """The number of runs."""
        return self._points * (self._repeats or 1)

    @property
    def _repeats(self) -> int:
        """The number of runs with different seeds at every point. It is 0 if seeds are fixed or
        vary with the points.
        """
        return self.seeds if self.sampling == GRID or self.points else 0

    @property
    def _points(self) -> int:
        return sampling.count(self.sampling, self.vary, self.points or self.seeds)

    def point(self, index: int) -> tuple[Value, ...]:
        """Return the varied values for the run with the given index. Raises IndexError."""
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
        """Return the seed for the run with the given index, or None if seeds are fixed. Without
        `seeds`, each drawn point has a randomly drawn seed.
        """
        if self._repeats:
            return index % self._repeats
        # All names at a drawn point share its seed, so they are compared under the same noise.
        drawn = index // sampling.crossed(self.sampling, self.vary)
        if self.seeds:
            return drawn
        if not self.seeded:
            return None
        sequence = np.random.SeedSequence(self.seed, spawn_key=(drawn, 1))
        return int(np.random.default_rng(sequence).integers(MOST_SEED))

    @cached_property
    def requirements(self) -> tuple[Requirement, ...]:
        """The requirements. If no requirement concerns `success`, all runs must succeed."""
        requirements = tuple(map(Requirement, self.require))
        if not requirements or any("success" in r.names for r in requirements):
            return requirements
        return (*requirements, Requirement(ALL_SUCCEED))

    @property
    def run_requirements(self) -> tuple[Requirement, ...]:
        """The requirements on a run, which define its success."""
        return tuple(r for r in self.requirements if not r.of_study)

    @property
    def largest_error(self) -> float:
        """The maximum final error of a successful run, or infinity if there is no bound."""
        if not self.run_requirements:
            return self.success
        return min(requirement.upper_bound(ERROR) for requirement in self.run_requirements)

    def values(self, index: int) -> dict[str, Value]:
        """Return all settings for the run with the given index, except those of the scenario."""
        seed = self.run_seed(index)
        seeds = {} if seed is None else dict.fromkeys(self.seeded, seed)
        varied = dict(zip((v.name for v in self.vary), self.point(index)))
        return {**seeds, **dict(self.fixed), **varied}

    @cached_property
    def seeded(self) -> tuple[str, ...]:
        """The settings that receive the seed of a run. Settings that are fixed or varied are
        excluded. With `seeds`, all seed settings are included. Otherwise, the noise seeds are
        included if points are drawn and `same_noise` is false.
        """
        chosen = {v.name for v in self.vary} | {name for name, _ in self.fixed}
        free = [n for n in self.settings.declared if n.endswith(".seed") and n not in chosen]
        if self.seeds:
            return tuple(free)
        if self.same_noise or self.sampling in (GRID, SALTELLI):
            return ()
        return tuple(name for name in free if not name.startswith(f"{PERTURB}."))

    @cached_property
    def settings(self) -> Settings:
        """The available settings. This loads and builds the scenario."""
        names = [name for name, _ in self.fixed] + [v.name for v in self.vary]
        return Settings.of(
            self.load(),
            [disturbance.parse(text) for text in self.disturb],
            fault_settings.with_named_faults([fault.parse(text) for text in self.fault], names),
        )

    def load(self) -> Scenario:
        """Build the scenario from the parameters of its nodes."""
        return scenarios.of_origin(dict(self.scenario))

    def check(self) -> None:
        """Raise UnknownName or ValueError if a setting cannot be fixed or varied as requested."""
        scenario = self.settings.scenario
        watched = scenario.monitor or scenario.system.outputs
        if self.monitor and not watched:
            raise ValueError(
                f"{scenario.name} has no monitored output and its system declares no outputs; "
                "leave monitor out"
            )
        examples = quantities.examples(scenario, self.settings.model, metrics_of(self))
        for requirement in self.run_requirements:
            requirement.check(examples)
        for name, value in self.fixed:
            self._check_value(name, value)
        for v in self.vary:
            default = self.settings.entry(v.name).value
            if v.kind != VALUES and not isinstance(default, float):
                raise ValueError(
                    f"{v.name} cannot vary over a range; list its values, separated by commas"
                )
            for value in v.levels:
                self._check_value(v.name, value)
        if self._repeats and not self.seeded:
            raise ValueError("no setting of this study uses a seed; leave seeds out")

    @property
    def is_external(self) -> bool:
        """Whether commands come from a user process. Such runs are not performed in parallel."""
        values = [value for name, value in self.fixed if name == NAMED]
        values += [value for v in self.vary if v.name == NAMED for value in v.levels]
        return EXTERNAL in values

    def _check_value(self, name: str, value: Value) -> None:
        self.settings.checked(name, value)
        if name == NAMED and is_user_controller(RunSettings(controller=str(value)).controller):
            user_controller.find(str(value))
        fault_settings.with_values(self.settings.faults, {name: value})
