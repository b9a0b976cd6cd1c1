"""Reads the results of a run and its scenario from files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from nh_control import scenarios
from nh_control.discrete.trajectory import Trajectory
from nh_control.runs import run_folder
from nh_control.runs.build import build
from nh_control.runs.experiment import Experiment, Result
from nh_control.runs.option_values import plant_options
from nh_control.runs.output import RESULTS
from nh_control.runs.settings import MPC, RunSettings
from nh_control.runs.simulation import ClosedLoop
from nh_control.scenarios import PlantOptions, Scenario

REMEDY = "expected a folder of `nh_control simulate` or `nh_control run`, its results.npz, or a \
recording (MCAP)"

EARLIER = {
    "perturbation": "perturb",
    "plant_integrator": "plant.integrator",
    "plant_substeps": "plant.substeps",
    "plant_parameters": "plant.parameters",
    "disturbances": "disturb",
    "faults": "fault",
}
"""Names of settings in results from the last release, with their present names."""


@dataclass(frozen=True)
class Stored:
    """A run of a scenario with the arrays and the description that `Result.save` writes. Without a
    description, only the arrays are known.
    """

    scenario: Scenario
    arrays: dict[str, np.ndarray]
    description: dict[str, Any]

    @staticmethod
    def of(result: Result) -> Stored:
        """Return a run that has just ended."""
        return Stored(result.experiment.scenario, result.arrays, result.description)

    @property
    def reference(self) -> str:
        """The name of the reference, "" if unknown."""
        return self.description.get("reference", "")

    @property
    def settings(self) -> RunSettings:
        """The settings of the run. Files from earlier versions have other names for some of
        them.
        """
        values = {EARLIER.get(name, name): value for name, value in self.description.items()}
        if values.pop("mpc", None):
            values |= {"mpc": self.description["mpc"]}
            values.setdefault("controller", MPC)
        return RunSettings.of({**values, **values.pop("origin", {})})

    @property
    def options(self) -> PlantOptions:
        """The options of the plant: its differences from the model."""
        return plant_options(self.settings)

    @property
    def parameters(self) -> Any:
        """The plant's physical parameters."""
        return self.scenario.plant_parameters(self.options)

    @property
    def result(self) -> Result:
        """The run as it was simulated. Raises ValueError without a description."""
        description, arrays = self.description, self.arrays
        if not {"perturb", "perturbation"} & description.keys():
            raise ValueError(
                f"the results of {self.scenario.name} do not contain the settings of the run: "
                "repeat the run with this version"
            )
        experiment = build(self.settings, self.scenario)
        opened = arrays.get("open_loop_states")
        return Result(
            experiment,
            self._loop(experiment, arrays["states"], arrays["errors"]),
            None if opened is None else self._loop(experiment, opened, arrays["open_loop_errors"]),
            description["wall_s"],
            description["feedback"],
            description["stopped"],
        )

    def _loop(self, e: Experiment, states: np.ndarray, errors: np.ndarray) -> ClosedLoop:
        """Return the run, or its open loop, which may have ended earlier."""
        steps, a, model = len(states) - 1, self.arrays, e.model
        name = e.tracker.reference.name
        return ClosedLoop(
            Trajectory(
                model.h, states, a["inputs"][:steps], model.state_names, model.inputs, name, model
            ),
            errors,
            a["saturated"][:steps],
            a["energy"][: steps + 1],
            a["constraint"][:steps],
            commands=a.get("commands"),
            motors=a.get("motors"),
            forces=a.get("forces"),
        )


def stored(path: Path, scenario: str = "") -> Stored:
    """Read the run in a folder, a results.npz, or a recording. A recording belongs to the run in
    its folder, or to `scenario` and its first reference.

    Raises FileNotFoundError, ValueError for files without a run, RecordingError and UnknownName.
    """
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; {REMEDY}")
    if path.suffix == ".npz":
        return _of_npz(path, scenario)
    folder = path if path.is_dir() else path.parent
    if (folder / RESULTS).is_file() and path.suffix != ".mcap":
        return _of_npz(folder / RESULTS, scenario)
    # a recording is in the folder of its run
    home = next((f for f in (folder, folder.parent) if run_folder.is_run(f)), None)
    recorded = run_folder.recording(folder)
    if not recorded.is_dir() or not any(recorded.glob("*.mcap")):
        raise ValueError(f"{path} contains no run; {REMEDY}")
    if home is not None:
        experiment = run_folder.load(home).experiment
    elif scenario:
        experiment = Experiment.make(scenarios.get(scenario))
    else:
        raise ValueError(f"{path} does not name its scenario: add --scenario NAME")
    return _of_recording(recorded, experiment)


def _of_recording(folder: Path, experiment: Experiment) -> Stored:
    from nh_control.runs import recording  # needs rosbags

    read = recording.read(folder, experiment.scenario, experiment.model)
    loop = recording.closed_loop(read, experiment)
    return Stored.of(Result(experiment, loop, None, read.wall_s))


def _of_npz(file: Path, name: str) -> Stored:
    try:
        with np.load(file, allow_pickle=False) as saved:
            arrays = {key: saved[key] for key in saved.files}
    except (ValueError, OSError, BadZipFile) as error:
        raise ValueError(f"{file} cannot be read ({error}); {REMEDY}") from error
    if missing := sorted({"times", "states", "inputs", "reference_states"} - arrays.keys()):
        raise ValueError(f"{file} has no {', '.join(missing)}; {REMEDY}")
    text = arrays.pop("description", None)
    if text is None and not name:
        raise ValueError(f"{file} does not name its scenario: add --scenario NAME")
    description = {} if text is None else json.loads(str(text))
    # the user's choice takes precedence over the file's
    origin = {"scenario": name} if name else description.get("origin", description)
    scenario = scenarios.of_origin(origin)
    # files from earlier versions lack it
    arrays.setdefault("reference_energy", np.full(len(arrays["times"]), np.nan))
    return Stored(scenario, arrays, description)
