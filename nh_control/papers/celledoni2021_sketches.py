"""The systems in Figs. 1 and 12 of [celledoni2021]."""

from __future__ import annotations

import numpy as np
from transforms3d.quaternions import quat2mat

from nh_control.papers.celledoni2021_payload_model import FORMATION, PARAMETERS
from nh_control.papers.sketch import Sketched, experiment
from nh_control.scenarios import quadrotor_payload_visual
from nh_control.scenarios.visual_model import BLUE, ORANGE, STEEL, Pose, Shape, VisualModel
from nh_control.systems.rigid_body import HeavyTopParameters

TILT = np.cos(np.radians(30)), np.sin(np.radians(30)), 0.0, 0.0
"""Attitude (w, x, y, z) of the top in Fig. 1: the body's y axis, chi, is 30 degrees from upright.
"""


def top_poses(parameters: HeavyTopParameters, q: np.ndarray) -> dict[str, Pose]:
    """Return the poses of the fixed point and of the center of mass at `l Q chi`, both with the
    body's axes.
    """
    attitude = quat2mat(q)
    center = parameters.l * attitude @ np.array(parameters.chi)
    return {"fixed": Pose(np.zeros(3), attitude), "center": Pose(center, attitude)}


def top_visual(parameters: HeavyTopParameters) -> VisualModel:
    """Return a flywheel on a shaft along the body's y axis. One end of the shaft is fixed."""
    # A cylinder's axis is z. A roll by pi/2 turns it to y.
    l = parameters.l
    shapes = (
        Shape("sphere", (0.08 * l,) * 3, ORANGE, "fixed"),
        Shape("cylinder", (0.04 * l, 0.04 * l, l), STEEL, "fixed", (0.0, l / 2, 0.0), np.pi / 2),
        Shape("cylinder", (0.6 * l, 0.6 * l, 0.12 * l), BLUE, "center", roll=np.pi / 2),
    )
    return VisualModel("odom", top_poses, shapes)


def heavy_top() -> Sketched:
    """Return the sketch of Fig. 1."""
    parameters = HeavyTopParameters()
    marks = {"fixed": "O", "center": "CM"}
    return Sketched("Heavy top", top_visual(parameters), parameters, np.array(TILT), marks)


def quadrotors() -> Sketched:
    """Return the sketch of Fig. 12, with upright quadrotors in the formation from 6.2."""
    visual = quadrotor_payload_visual.visual_model(PARAMETERS)
    c, s = np.cos(FORMATION.angle), np.sin(FORMATION.angle)
    # q = (payload position, two unit quaternions, two link directions)
    upright, links = np.tile([1.0, 0.0, 0.0, 0.0], 2), np.array([-s, 0, c, s, 0, c])
    q = np.concatenate([np.zeros(3), upright, links])
    marks = {"payload": "m_y", "quad1": "m₁", "quad2": "m₂"}
    return Sketched("Two quadrotors and a payload", visual, PARAMETERS, q, marks)


FIGURE_1 = experiment("1", "the heavy top", heavy_top())
FIGURE_12 = experiment("12", "two quadrotors and a payload", quadrotors())
