"""How systems look from above: shapes in the plane, for figures."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nh_control.experiment import Experiment


@dataclass(frozen=True)
class Shape:
    """Points (n, 2) in m of a line of `width` (pt) or, if `closed`, of an outline that is filled with opacity `fill`."""

    points: np.ndarray
    closed: bool = False
    fill: float = 0.0
    width: float = 1.2


def sketch(experiment: Experiment, x: np.ndarray) -> list[Shape]:
    """Shapes of the plant in state x (nx) of the model, the body's outline first; an arrow along the body for systems that declare none."""
    q = dict(zip(experiment.model.state_names, x))
    theta, px, py = (q[c] for c in experiment.scenario.body.coordinates)
    make = _SHAPES.get(experiment.plant.system.name, _arrow)
    return [replace(s, points=_placed(s.points, theta, px, py)) for s in make(experiment.plant.system.parameters, q)]


def _arrow(parameters, q) -> list[Shape]:
    return [Shape(np.array([[-0.2, -0.08], [0.2, 0], [-0.2, 0.08]]), closed=True, fill=0.2)]


def _snakeboard(p, q) -> list[Shape]:
    """Deck, rear truck turned by phi, front truck (dark) by -phi, and the rotor turned by psi with a dark end."""
    deck = Shape(_capsule(p.l, 0.05 * p.l), closed=True, fill=0.08)
    rear, front = _truck(0.16 * p.l, 0.25), _truck(0.16 * p.l, 0.9)
    bar = np.array([[-0.3 * p.l, 0], [0.3 * p.l, 0]])
    rotor = [Shape(bar)] + [Shape(end + _circle(0.06 * p.l), closed=True, fill=fill) for end, fill in zip(bar, (0.15, 0.9))]
    placed = ((rear, q["phi"], -p.l), (front, -q["phi"], p.l), (rotor, q["psi"], 0.0))
    return [deck] + [replace(s, points=_placed(s.points, angle, at, 0.0)) for shapes, angle, at in placed for s in shapes]


_SHAPES = {"snakeboard": _snakeboard}


def _truck(half_track: float, fill: float) -> list[Shape]:
    wheels = [Shape(_box(0.6 * half_track, 0.22 * half_track) + [0, side * half_track], closed=True, fill=fill) for side in (-1, 1)]
    return [Shape(np.array([[0, -half_track], [0, half_track]])), *wheels]


def _placed(points: np.ndarray, angle: float, x: float, y: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return points @ np.array([[c, s], [-s, c]]) + [x, y]


def _circle(radius: float) -> np.ndarray:
    angles = np.linspace(0, 2 * np.pi, 25)
    return radius * np.column_stack([np.cos(angles), np.sin(angles)])


def _box(half_length: float, half_width: float) -> np.ndarray:
    return np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * [half_length, half_width]


def _capsule(half_length: float, radius: float) -> np.ndarray:
    angles = np.linspace(-np.pi / 2, np.pi / 2, 13)
    front = radius * np.column_stack([np.cos(angles), np.sin(angles)]) + [half_length, 0]
    return np.vstack([front, -front])
