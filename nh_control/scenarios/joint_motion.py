"""Scenario references that follow joint trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nh_control.control.joint_reference import is_actuated, joint_reference, require_actuated
from nh_control.control.joint_trajectory import JointTrajectory
from nh_control.control.joint_trajectory_files import ENDINGS
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.mechanics.system import System
from nh_control.scenarios.shown import Joint


def is_file(reference: str) -> bool:
    """Whether the name of a reference is the path of a joint trajectory file."""
    return Path(reference).suffix in ENDINGS


def reference_label(reference: str) -> str:
    """The name of a reference in titles and folders. For a file, it is the stem of the file name.
    For a free motion, it is the name without the initial state.
    """
    return Path(reference).stem if is_file(reference) else reference.partition(":")[0]


def joint_motion(joints: Sequence[Joint], model: DiscreteSystem, file: str) -> Trajectory:
    """The reference along the joint trajectory in a file (see `JointTrajectory.load`). Its name is
    the absolute path, so that nodes can find the file too. Raises OSError; InfeasibleTrajectory if
    the trajectory exceeds limits; and ValueError for unknown joints and for joints that do not
    have one actuator each.
    """
    path = Path(file).expanduser().absolute()
    along = on_coordinates(joints, model, JointTrajectory.load(path))
    return replace(joint_reference(model, along), name=str(path))


def follows_joints(joints: Sequence[Joint], system: System) -> bool:
    """Whether all coordinates of a system are joints with one actuator each."""
    shown = {joint.coordinate for joint in joints}
    return is_actuated(system) and shown == {*system.space.names}


def shown_positions(
    joints: Sequence[Joint], model: DiscreteSystem, x: np.ndarray
) -> tuple[tuple[str, ...], np.ndarray]:
    """The names (k) of a scenario's joints, and the joints' positions (k) in state x (nx)."""
    q, names = model.configuration(x), model.system.space.names
    values = [joint.sign * q[names.index(joint.coordinate)] for joint in joints]
    return tuple(joint.name for joint in joints), np.array(values)


def on_coordinates(
    joints: Sequence[Joint], model: DiscreteSystem, trajectory: JointTrajectory
) -> JointTrajectory:
    """Convert a trajectory of a scenario's joints to the model's coordinates. The value of a
    coordinate is the joint's position times the joint's sign. Raises ValueError for unknown
    joints, and for a model with coordinates that are not actuated joints.
    """
    require_actuated(model)
    names = model.system.space.names
    shown = {joint.coordinate: joint for joint in joints}
    if missing := [name for name in names if name not in shown]:
        raise ValueError(f"{model}: no joint shows the coordinates {missing}")
    ordered = trajectory.of([shown[name].name for name in names])
    signs = np.array([shown[name].sign for name in names])
    tables: dict[str, Any] = {
        field: None if (table := getattr(ordered, field)) is None else table * signs
        for field in ("positions", "velocities", "accelerations")
    }
    return replace(ordered, names=names, **tables)
