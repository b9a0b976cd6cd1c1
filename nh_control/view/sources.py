"""Animations from all sources: runs of scenarios, results in files, recordings, trajectories."""

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
    """The animation of a run: a folder of `nh_control simulate` or `run`, its results.npz, or a
    recording; `scenario` is needed if the files do not name it.

    Raises FileNotFoundError, RecordingError, UnknownName, ValueError for a file without a run.
    """
    return of_stored(stored(Path(path), scenario), rate_hz)


def of_result(result: Result, rate_hz: float = RATE_HZ) -> Animation:
    """The animation of a run that has just been made."""
    return of_stored(Stored.of(result), rate_hz)


def of_stored(run: Stored, rate_hz: float = RATE_HZ) -> Animation:
    """The animation of a run in files."""
    scenario, arrays = run.scenario, run.arrays
    rows = chosen_rows(arrays["times"], rate_hz)
    parameters = run.parameters
    visual = scenario.visual_model(parameters, run.reference)
    system = scenario.make_system(scenario.parameters)
    nq = system.space.nq
    q, target = (arrays[name][rows, :nq] for name in ("states", "reference_states"))
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
    """The animation of a trajectory that knows its discrete system, with the visual model of the
    system unless another one is given. Raises ValueError for a trajectory without a system.
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
        np.full((len(rows), len(visual.cables)), np.nan),
        arrow_lengths(visual, dict(zip(dsys.inputs, inputs.T)), len(rows)),
    )


def error_curves(
    scenario: Scenario, space: Space, q: np.ndarray, target: np.ndarray, whole: bool = False
) -> list[Curves]:
    """Parts of the tracking error of configurations (N, nq) in a plot for every unit. Parts that
    are always 0 are left out, unless all parts are 0, or `whole` is true.
    """
    parts: dict[str, list[error_metrics.Part]] = {}
    tracked = _tracked_only(scenario, space, q, target)
    for part in error_metrics.error_parts(scenario, space, tracked, target):
        parts.setdefault(part.unit, []).append(part)
    curves = []
    for unit, group in parts.items():
        same = group if whole else [part for part in group if part.values.any()] or group
        values = np.column_stack([part.values for part in same])
        curves.append(Curves("error", unit, tuple(p.name for p in same), values, True))
    return curves


def _tracked_only(
    scenario: Scenario, space: Space, q: np.ndarray, target: np.ndarray
) -> np.ndarray:
    """Configurations (N, nq) without the errors of coordinates that have no weight, such as turns
    of wheels.
    """
    kept = q.copy()
    for name, tracked in zip(space.tangent_names, scenario.tracked(space)):
        if not tracked and name in space.names:
            i = space.names.index(name)
            kept[:, i] = target[:, i]
    return kept


def _at_nodes(inputs: np.ndarray) -> np.ndarray:
    """Values over steps (N, n) at the nodes (N + 1, n); the last one is repeated."""
    return np.vstack([inputs, inputs[-1:] if len(inputs) else np.zeros((1, inputs.shape[1]))])


def _residuals(constraint: np.ndarray, rows: np.ndarray) -> list[Curves]:
    """The largest constraint residual of the steps before the nodes."""
    if not constraint.shape[1]:
        return []
    largest = np.abs(constraint).max(axis=1)
    values = np.r_[largest[:1], largest][rows, None]
    return [Curves("constraint residual", "m", ("largest",), values, True)]


def coordinate_curves(scenario: Scenario, space: Space, q: np.ndarray) -> list[Curves]:
    """The coordinates in a plot for every unit; numbers of rotations and directions have none."""
    units = error_metrics.coordinate_units(scenario, space)
    return by_unit("configuration", space.names, [units.get(n, "") for n in space.names], q)


def cable_loads(
    visual: VisualModel, monitor: Any, watched: np.ndarray | None, n: int
) -> np.ndarray:
    """Values of the monitor for the cables, (n, cables)."""
    loads = np.full((n, len(visual.cables)), np.nan)
    for i, cable in enumerate(visual.cables):
        if monitor is not None and watched is not None and cable.monitored in monitor.names:
            loads[:, i] = watched[:, monitor.names.index(cable.monitored)]
    return loads


def arrow_lengths(visual: VisualModel, inputs: Mapping[str, np.ndarray], n: int) -> np.ndarray:
    """Lengths (n, arrows) in m of the arrows under the inputs by name; 0 without the input."""
    columns = [a.scale * inputs.get(a.input, np.zeros(n)) for a in visual.arrows]
    return np.column_stack(columns) if columns else np.zeros((n, 0))
