"""`nh.identify` estimates a model's physical parameters from files and tables of measurements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nh_control.control import motion_table
from nh_control.control.identification import SEGMENT_S, Identification
from nh_control.control.identification import identify as fit
from nh_control.control.input_history import NANOSECONDS
from nh_control.control.measured_values import meant
from nh_control.control.motion_table import MeasuredMotion
from nh_control.control.parameter_fit import MotionSegment
from nh_control.discrete.system import DiscreteSystem
from nh_control.runs.measured_run import MeasuredRun
from nh_control.scenarios import Scenario

if TYPE_CHECKING:
    from nh_control.runs.measurements import Measurements

LEAST = 3
"""Minimum number of a robot's states between its first and its last command."""


def identify(
    model: DiscreteSystem | Scenario,
    data: Any,
    parameters: Sequence[str],
    *,
    columns: Mapping[str, str] | None = None,
    measured: Sequence[str] | None = None,
    start: Mapping[str, float] | None = None,
    segment_s: float = SEGMENT_S,
    actuation_s: float | None = 0.0,
) -> Identification:
    """Fit the model's `parameters` to a measured motion, with standard deviations.

    `data` is a .csv or .npz file, a pandas.DataFrame, a mapping from names to columns, a
    Trajectory or, if the model is a scenario, the recording of a robot (a .mcap file or its
    folder). The columns have the names of coordinates, velocities, outputs and inputs.
    Alternatively, `columns` maps these names and "time" to columns, as in
    `{"theta": "encoder_1:deg", "force": "0"}` (see `motion_table.read`). Times may be unevenly
    spaced. Empty cells stand for values that were not measured.

    The quantities in `measured` are fitted, by default all coordinates and outputs in the data.
    The motion is fitted in pieces of `segment_s` with unknown initial states. `start` contains
    guesses for coordinates and velocities that are not measured. Inputs act `actuation_s` after
    the time of their row or recording. If `actuation_s` is None, this delay is estimated. See
    `control.identification.identify` for the equations and the errors. Notes say how the data were
    read, and warnings say what the data do not determine.
    """
    motion: MeasuredMotion
    if isinstance(data, str | Path) and is_recording(Path(data)):
        if not isinstance(model, Scenario):
            raise ValueError(
                f"{data}: a recording contains messages of a scenario: pass the scenario as the "
                f"model, nh.scenarios.get(NAME), got {model}"
            )
        dsys = model.model()
        motion = of_recording(Path(data), model, dsys, measured)
    else:
        dsys = model.model() if isinstance(model, Scenario) else model
        if not isinstance(dsys, DiscreteSystem):
            raise ValueError(
                "identify needs a discrete system, such as nh.midpoint(system, 0.01), or a "
                f"scenario, got {type(dsys).__name__}"
            )
        joints = joint_columns(model) if isinstance(model, Scenario) else {}
        motion = motion_table.read(dsys, data, columns, measured, joints)
    return of_motion(dsys, motion, parameters, start, segment_s, actuation_s)


def of_motion(
    dsys: DiscreteSystem,
    motion: MeasuredMotion,
    parameters: Sequence[str],
    start: Mapping[str, float] | None = None,
    segment_s: float = SEGMENT_S,
    actuation_s: float | None = 0.0,
) -> Identification:
    """Fit parameters to a motion that has been read (see `identify`)."""
    names = [parameters] if isinstance(parameters, str) else parameters
    unmeasured = [n for n in dsys.system.space.names if n not in motion.names]
    if unmeasured and dsys.system.n_holonomic_constraints:
        raise ValueError(
            f"{dsys}: {', '.join(unmeasured)} not measured; a system with holonomic constraints "
            "needs all its coordinates"
        )
    pieces: Sequence[MotionSegment] | Callable[[float], Sequence[MotionSegment]]
    # if the delay is unknown, the pieces are functions of the delay
    if actuation_s is None:
        pieces = partial(motion.pieces, dsys, segment_s)
    else:
        pieces = motion.pieces(dsys, segment_s, actuation_s)
    state = first_state(dsys, start or {})
    identified = fit(dsys, names, pieces, motion.names, state)
    return replace(identified, notes=motion.notes)


def first_state(dsys: DiscreteSystem, start: Mapping[str, float]) -> np.ndarray:
    """Return the state of the nominal configuration at rest, but with the coordinates and
    velocities in `start`, given by name. Raises ValueError for an unknown name.
    """
    space = dsys.system.space
    q, v = dsys.system.nominal_configuration.copy(), np.zeros(space.nw)
    for name, value in start.items():
        if name in space.names:
            q[space.names.index(name)] = value
        elif name in space.velocity_names:
            v[space.velocity_names.index(name)] = value
        else:
            known = [*space.names, *space.velocity_names]
            raise ValueError(f"start: {dsys} has no {name!r}{meant(name, known)}")
    return dsys.measured_state(q, v)


def joint_columns(scenario: Scenario) -> dict[str, str]:
    """Return, for each coordinate that a joint shows, the column with the name of this joint."""
    return {joint.coordinate: "-" * (joint.sign < 0) + joint.name for joint in scenario.joints}


def is_recording(path: Path) -> bool:
    """Whether a path is a recording: a folder or a file in such a folder."""
    return path.is_dir() or path.suffix in (".mcap", ".db3", ".bag")


def of_recording(
    path: Path, scenario: Scenario, dsys: DiscreteSystem, measured: Sequence[str] | None = None
) -> MeasuredMotion:
    """Return the configurations between the first and the last command of a recording. Coordinates
    that the recording never contains are left out. Raises ValueError if there are too few
    configurations.
    """
    from nh_control.runs import measurements, run_folder  # needs rosbags

    folder = run_folder.recording(path)
    return of_robot(dsys, measurements.read(folder, scenario, dsys, partly=True), measured)


def of_robot(
    dsys: DiscreteSystem, states: Measurements, measured: Sequence[str] | None = None
) -> MeasuredMotion:
    """Return the measurements of the coordinates in `measured` (by default all in the recording)
    from the first command to the last. Outside this interval, the inputs are unknown.
    """
    rows = slice(None)
    if len(states.sent_ns):
        first = np.searchsorted(states.times_ns, states.sent_ns[0])
        last = np.searchsorted(states.times_ns, states.sent_ns[-1], side="right")
        # states between the first command and the last
        rows = slice(first, max(first, last))
        if last - first < LEAST:
            raise ValueError(
                f"{max(0, last - first)} of {len(states)} states lie between the first command "
                f"and the last, expected {LEAST} or more: record stamps of the recorder's clock"
            )
    space = dsys.system.space
    table = np.hstack([states.q, states.v])[rows]
    columns = dict(zip((*space.names, *space.velocity_names), table.T))
    columns = {name: column for name, column in columns.items() if not np.isnan(column).all()}
    names = tuple(measured or (name for name in space.names if name in columns))
    for name in names:
        if name not in columns:
            raise ValueError(f"the recording has no {name!r}{meant(name, list(columns))}")
    # their initial values are unknown unless `start` contains guesses
    missing = [name for name in space.names if name not in names]
    notes = [f"not measured, so their start is unknown: {', '.join(missing)}"] if missing else []
    return MeasuredMotion(
        states.times_ns[rows],
        names,
        np.column_stack([columns[name] for name in names]),
        states.sent_ns,
        states.u,
        tuple(notes),
    )


def of_run(
    dsys: DiscreteSystem, run: MeasuredRun, measured: Sequence[str] | None = None
) -> MeasuredMotion:
    """Return the coordinates in `measured` (by default all) as a run's sensors measured them, with
    the run's commands. Raises ValueError for an unknown coordinate.
    """
    steps, known = np.arange(len(run.commands)), dsys.system.space.names
    names = tuple(measured or known)
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"{dsys}: the run has no {unknown[0]!r}{meant(unknown[0], known)}")
    return MeasuredMotion(
        _ns(run.steps * dsys.h),
        names,
        run.q[:, [known.index(name) for name in names]],
        _ns(steps * dsys.h),
        run.commands,
    )


def _ns(times_s: np.ndarray) -> np.ndarray:
    return np.round(times_s * NANOSECONDS).astype(np.int64)
