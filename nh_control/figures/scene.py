"""Geometry for figures of runs: the solids, cables and outlines of the scenario's visual model,
the axes of bodies, and their tracks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from transforms3d.axangles import axangle2mat
from transforms3d.quaternions import quat2mat

from nh_control.runs.experiment import Experiment
from nh_control.scenarios import BodyState
from nh_control.scenarios.visual_model import Color, Pose, Shape, VisualModel

AXIS_M = 0.22
MIN_MOTION = 0.1
"""Minimum motion between two drawn scenes, relative to the size of the system."""
AXIS_COLORS = ("#d1495b", "#2a9d6f", "#1f4fb4")
CIRCLE = np.column_stack(
    [np.cos(np.linspace(0, 2 * np.pi, 25)), np.sin(np.linspace(0, 2 * np.pi, 25)), np.zeros(25)]
)
RECTANGLE = np.array([[-1, 0, -1], [1, 0, -1], [1, 0, 1], [-1, 0, 1]])
"""Corners of a square in the x-z plane."""


@dataclass(frozen=True)
class Solid:
    """The faces of a shape, each (n, 3) in m, with their color and opacity."""

    faces: list[np.ndarray]
    color: Color
    opacity: float


@dataclass(frozen=True)
class Scene:
    """The visible geometry of a state: solids, cables and outlines as lines (n, 3) in m, and body
    axes as colored lines.
    """

    solids: list[Solid] = field(default_factory=list)
    cables: list[np.ndarray] = field(default_factory=list)
    outlines: list[np.ndarray] = field(default_factory=list)
    axes: list[tuple[np.ndarray, str]] = field(default_factory=list)

    @property
    def points(self) -> np.ndarray:
        """All points (n, 3) in the scene."""
        solids = [face for solid in self.solids for face in solid.faces]
        return np.vstack(
            [
                np.empty((0, 3)),
                *solids,
                *self.cables,
                *self.outlines,
                *(line for line, _ in self.axes),
            ]
        )


def scene(experiment: Experiment, x: np.ndarray) -> Scene:
    """Return the scene of the plant in state x (nx) of the model. Bodies that are driven by inputs
    have axes. If the scenario has no visual model, the scene contains only the axes of all bodies
    or, if there are no bodies, the default visual model.
    """
    scenario, parameters = experiment.scenario, experiment.plant_parameters
    poses = _body_poses(experiment, x)
    # The default visual model of a body would only repeat these axes.
    if scenario.visual is None and poses:
        return Scene(axes=[line for pose in poses.values() for line in _axes(pose)])
    visual = scenario.visual_model(parameters, experiment.tracker.reference.name)
    # Arrows that show inputs mark the driven bodies.
    driven = {arrow.frame for arrow in visual.arrows}
    axes = [line for frame, pose in poses.items() if frame in driven for line in _axes(pose)]
    return replace(visual_scene(visual, parameters, experiment.model.configuration(x)), axes=axes)


def distinct_scenes(scenes: Sequence[Scene]) -> list[int]:
    """Return the indices of scenes that do not cover each other: the first scene, and each scene
    in which a point has moved by at least MIN_MOTION times the size since the last chosen scene.
    """
    chosen = [0]
    size = np.linalg.norm(np.ptp(scenes[0].points, axis=0))
    for i, candidate in enumerate(scenes):
        distances = np.linalg.norm(candidate.points - scenes[chosen[-1]].points, axis=1)
        if distances.max(initial=0.0) >= MIN_MOTION * size and i:
            chosen.append(i)
    return chosen


def visual_scene(visual: VisualModel, parameters: Any, q: np.ndarray) -> Scene:
    """Return the scene of the visual model at configuration q (nq), without axes."""
    poses = visual.poses(parameters, q)
    return Scene(
        [
            Solid(_placed(_faces(shape), shape, poses[shape.frame]), shape.color, shape.opacity)
            for shape in visual.line_shapes
        ],
        [
            np.array([poses[cable.start].position, poses[cable.end].position])
            for cable in visual.cables
        ],
        _outlines(visual, poses),
    )


def tracks(
    experiment: Experiment,
    states: np.ndarray,
    bodies: Sequence[Sequence[BodyState]] | None = None,
) -> dict[str, np.ndarray]:
    """Return positions (N, 3) at the states (N, nx) by name. They belong to the spatial bodies, to
    the planar body, or to the visual model's trail, if there is one. `bodies` is the result of
    `Experiment.bodies`, if it is known.
    """
    scenario, parameters = experiment.scenario, experiment.plant_parameters
    model = experiment.model
    if scenario.to_bodies is not None:
        return {
            column[0].frame: np.array([body.position for body in column])
            for column in zip(*(experiment.bodies(states) if bodies is None else bodies))
        }
    if scenario.body is not None:
        xy = [model.state_names.index(coordinate) for coordinate in scenario.body.coordinates[1:]]
        # The height of a planar body is constant.
        z = np.full(len(states), scenario.body.z)
        return {scenario.body.frame: np.column_stack([states[:, xy], z])}
    visual = scenario.visual_model(parameters)
    if not visual.trail:
        return {}
    return {
        visual.trail: np.array(
            [
                visual.poses(parameters, model.configuration(x))[visual.trail].position
                for x in states
            ]
        )
    }


def _body_poses(experiment: Experiment, x: np.ndarray) -> dict[str, Pose]:
    """Return the poses of the plant's spatial bodies or of its planar body, by frame, in state x
    (nx) of the model.
    """
    scenario, model = experiment.scenario, experiment.model
    poses = {
        body.frame: Pose(body.position, quat2mat(body.quaternion_wxyz))
        for body in experiment.bodies(x[None])[0]
    }
    if scenario.body is not None:
        theta, planar_x, planar_y = (
            x[model.state_names.index(name)] for name in scenario.body.coordinates
        )
        poses[scenario.body.frame] = scenario.body.pose(theta, planar_x, planar_y)
    return poses


def _axes(pose: Pose) -> list[tuple[np.ndarray, str]]:
    return [
        (np.array([pose.position, pose.position + AXIS_M * e]), color)
        for e, color in zip(pose.rotation.T, AXIS_COLORS)
    ]


def _outlines(visual: VisualModel, poses: Mapping[str, Pose]) -> list[np.ndarray]:
    return (
        [np.array([poses[frame].position for frame in (*visual.outline, visual.outline[0])])]
        if visual.outline
        else []
    )


def _placed(faces: list[np.ndarray], shape: Shape, pose: Pose) -> list[np.ndarray]:
    # From shape to frame: offset + R_roll y. From frame to world: x + R y.
    rotation = axangle2mat([1.0, 0.0, 0.0], shape.roll)
    return [
        pose.position + (np.array(shape.offset) + face @ rotation.T) @ pose.rotation.T
        for face in faces
    ]


def _faces(shape: Shape) -> list[np.ndarray]:
    """Return the faces of a shape, relative to its center. A box has six faces, a cylinder has its
    two ends and two rectangles through its axis, and a sphere has three circles.
    """
    half = np.array(shape.extents) / 2
    if shape.kind == "box":
        # The corners differ in their signs. On each face one sign is fixed, and the corners run
        # through the other two.
        corners = {signs: half * signs for signs in product((-1, 1), repeat=3)}
        return [
            np.array(
                [
                    corners[_corner(axis, side, a, b)]
                    for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))
                ]
            )
            for axis in range(3)
            for side in (-1, 1)
        ]
    if shape.kind == "cylinder":
        # The extents are diameters, and the circle has radius 1.
        ends = [half * CIRCLE + [0.0, 0.0, side * half[2]] for side in (-1, 1)]
        return ends + [half * RECTANGLE, half * RECTANGLE[:, [1, 0, 2]]]
    return [half * np.roll(CIRCLE, axis, axis=1) for axis in range(3)]


def _corner(axis: int, side: int, a: int, b: int) -> tuple[int, ...]:
    signs = [a, b]
    signs.insert(axis, side)
    return tuple(signs)
