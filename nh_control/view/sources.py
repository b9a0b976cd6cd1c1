"""Animations of scenario runs, result files, recordings, and trajectories."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry.spaces import Space
from nh_control.runs.experiment import Result
from nh_control.runs.intervals import intervals
from nh_control.runs.saved_results import Stored, stored
from nh_control.scenarios import Scenario, error_metrics
from nh_control.scenarios.default_visual import system_visual
from nh_control.scenarios.joint_motion import reference_label
from nh_control.scenarios.visual_model import VisualModel
from nh_control.view.animation import (
    RATE_HZ,
    Animation,
    Curves,
    Poses,
    by_unit,
    chosen_rows,
    largest_first,
)
from nh_control.view.contacts import ContactArrows, contact_curves


def load(path: str | Path, scenario: str = "", rate_hz: float = RATE_HZ) -> Animation:
    """The animation of a run. The path is a folder written by `nh_control simulate` or `run`, the
    results.npz in such a folder, or a recording. `scenario` is required if the files do not
    contain the name of the scenario.

    Raises FileNotFoundError, RecordingError, UnknownName, and ValueError for a file without a run.
    """
    return of_stored(stored(Path(path), scenario), rate_hz)


def of_result(result: Result, rate_hz: float = RATE_HZ) -> Animation:
    """The animation of a result in memory."""
    return of_stored(Stored.of(result), rate_hz)


def of_stored(run: Stored, rate_hz: float = RATE_HZ) -> Animation:
    """The animation of a stored run."""
    scenario, arrays = run.scenario, run.arrays
    rows = chosen_rows(arrays["times"], rate_hz)
    parameters = run.parameters
    # Obstacles depend on the reference.
    visual = scenario.visual_model(parameters, run.reference)
    system = scenario.system
    nq = system.space.nq
    q, target = (arrays[name][rows, :nq] for name in ("states", "reference_states"))
    # Inputs belong to steps, so the last input is repeated at the last node.
    inputs = {name: _at_nodes(arrays[name])[rows] for name in ("inputs", "reference_inputs")}
    names = [str(name) for name in arrays["input_names"]]
    monitor, watched = scenario.monitor, arrays.get("monitored")
    curves = error_curves(scenario, system.space, q, target)
    curves += by_unit(
        "input", names, error_metrics.input_units(scenario, system), inputs["inputs"]
    )
    if monitor is not None and watched is not None:
        watched = _at_nodes(watched)[rows]
        curves.append(Curves(monitor.title, monitor.unit, tuple(monitor.names), watched))
    arrows = arrow_lengths(visual, dict(zip(names, inputs["inputs"].T)), len(rows))
    # Contact arrows need frames at their positions, in the poses of both the run and the
    # reference.
    contacts = ContactArrows.of(arrays, rows)
    energy = np.column_stack([arrays[name][rows] for name in ("energy", "reference_energy")])
    curves.append(Curves("energy", "J", ("run", "reference"), energy))
    curves += [*_residuals(arrays["constraint"], rows), *contact_curves(arrays, rows)]
    curves += coordinate_curves(scenario, system.space, q)
    poses = Poses.of(visual, parameters, q)
    return Animation(
        f"{scenario.label or scenario.name}, {reference_label(run.reference)}",
        contacts.shown_by(visual),
        arrays["times"][rows],
        contacts.with_frames(poses),
        contacts.with_frames(Poses.of(visual, parameters, target)),
        tuple(curves),
        cable_loads(visual, monitor, watched, len(rows)),
        np.hstack([arrows, contacts.lengths(visual, poses)]),
        intervals(run.options, float(arrays["times"][-1])),
    )


def of_trajectory(
    trajectory: Trajectory, visual: VisualModel | None = None, rate_hz: float = RATE_HZ
) -> Animation:
    """The animation of a trajectory. By default it uses the visual model of the trajectory's
    system. Raises ValueError for a trajectory without a discrete system.
    """
    dsys = trajectory.state_map_for("drawn")
    rows = chosen_rows(trajectory.times, rate_hz)
    states, system = trajectory.states[rows], dsys.system
    visual = visual or system_visual(system)
    q = states[:, : system.space.nq]
    inputs = _at_nodes(trajectory.inputs)[rows]
    velocities = np.array([dsys.velocity(x) for x in states])
    units = (*(system.input_units or ("",) * system.nu), *("",) * len(system.prescribed))
    curves = [
        largest_first(Curves("configuration", "", system.space.names, q)),
        largest_first(Curves("velocity", "", system.space.velocity_names, velocities)),
        *by_unit("input", dsys.inputs, units, inputs),
        Curves("energy", "J", ("energy",), dsys.energies(states)[:, None]),
        *_residuals(
            dsys.constraint_residuals(trajectory.states[:-1], trajectory.states[1:]), rows
        ),
    ]
    return Animation(
        trajectory.name or system.name,
        visual,
        trajectory.times[rows],
        Poses.of(visual, system.parameters, q),
        None,
        tuple(curves),
        # A trajectory has no monitored output, so the loads are unknown.
        np.full((len(rows), len(visual.cables)), np.nan),
        arrow_lengths(visual, dict(zip(dsys.inputs, inputs.T)), len(rows)),
    )


def error_curves(
    scenario: Scenario, space: Space, q: np.ndarray, target: np.ndarray, whole: bool = False
) -> list[Curves]:
    """The parts of the tracking error of configurations (N, nq), with a plot for each unit. Parts
    that are always 0 are omitted unless all parts are 0 or `whole` is true.
    """
    parts: dict[str, list[error_metrics.Part]] = {}
    tracked = _tracked_only(scenario, space, q, target)
    for part in error_metrics.error_parts(scenario, space, tracked, target):
        parts.setdefault(part.unit, []).append(part)
    curves = []
    for unit, group in parts.items():
        # Live pages always need the same curves, so they keep the parts that are 0.
        same = group if whole else [part for part in group if part.values.any()] or group
        values = np.column_stack([part.values for part in same])
        curves.append(Curves("error", unit, tuple(part.name for part in same), values, True))
    return curves


def _tracked_only(
    scenario: Scenario, space: Space, q: np.ndarray, target: np.ndarray
) -> np.ndarray:
    """Configurations (N, nq) without the errors in coordinates that have no weight, such as wheel
    angles.
    """
    configurations = q.copy()
    for name, tracked in zip(space.tangent_names, scenario.tracked(space)):
        if not tracked and name in space.names:
            i = space.names.index(name)
            configurations[:, i] = target[:, i]
    return configurations


def _at_nodes(inputs: np.ndarray) -> np.ndarray:
    """Extend the values in steps (N, n) to nodes (N + 1, n). The last value is repeated."""
    return np.vstack([inputs, inputs[-1:] if len(inputs) else np.zeros((1, inputs.shape[1]))])


def _residuals(constraint: np.ndarray, rows: np.ndarray) -> list[Curves]:
    """The largest constraint residual in the step before each node."""
    if not constraint.shape[1]:
        return []
    largest = np.abs(constraint).max(axis=1)
    # Residuals belong to steps, so node k shows the residual of the step before it.
    values = np.r_[largest[:1], largest][rows, None]
    return [Curves("constraint residual", "m", ("largest",), values, True)]


def coordinate_curves(scenario: Scenario, space: Space, q: np.ndarray) -> list[Curves]:
    """The coordinates, with a plot for each unit. Quaternions and directions have no unit."""
    units = error_metrics.coordinate_units(scenario, space)
    return by_unit("configuration", space.names, [units.get(n, "") for n in space.names], q)


def cable_loads(
    visual: VisualModel, monitor: Any, watched: np.ndarray | None, n: int
) -> np.ndarray:
    """The monitored values (n, cables) of the cables, which are NaN for cables without such a
    value.
    """
    loads = np.full((n, len(visual.cables)), np.nan)
    for i, cable in enumerate(visual.cables):
        if monitor is not None and watched is not None and cable.monitored in monitor.names:
            loads[:, i] = watched[:, monitor.names.index(cable.monitored)]
    return loads


def arrow_lengths(visual: VisualModel, inputs: Mapping[str, np.ndarray], n: int) -> np.ndarray:
    """The lengths (n, arrows) in m of the arrows for the inputs by name, which are 0 for missing
    inputs.
    """
    columns = [a.scale * inputs.get(a.input, np.zeros(n)) for a in visual.arrows]
    return np.column_stack(columns) if columns else np.zeros((n, 0))
