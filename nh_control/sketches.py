"""How systems look: outlines and lines, in the plane or in space, for figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from transforms3d.quaternions import quat2mat

from nh_control.experiment import Experiment
from nh_control.scenarios import BodyState

ARM_M, ROTOR_M, AXIS_M = 0.17, 0.1, 0.22
"""Drawn sizes of a quadrotor: half its diagonal, a rotor's radius, the body axes."""
AXIS_COLORS = ("#d1495b", "#2a9d6f", "#1f4fb4")


@dataclass(frozen=True)
class Shape:
    """Points (n, 2) or (n, 3) in m of a line of `width` (pt) or, if `closed`, of an outline filled with opacity `fill`; `color` overrules the system's."""

    points: np.ndarray
    closed: bool = False
    fill: float = 0.0
    width: float = 1.2
    color: str = ""


def sketch(experiment: Experiment, x: np.ndarray) -> list[Shape]:
    """Shapes of the plant in state x (nx) of the model: in space if the scenario has bodies there, else in the plane, the body's outline first.

    Without a hint for the scenario bodies in space are their axes and a planar body is an arrow.
    """
    scenario, model, parameters = experiment.scenario, experiment.model, experiment.plant.system.parameters
    if scenario.to_bodies is not None:
        bodies = {body.frame: body for body in scenario.to_bodies(parameters, model.configuration(x), model.velocity(x))}
        return _SPATIAL.get(scenario.name, _axes_of_all)(bodies)
    q = dict(zip(model.state_names, x))
    theta, px, py = (q[c] for c in scenario.body.coordinates)
    make = _PLANAR.get(scenario.name, _arrow)
    return [replace(s, points=_placed(s.points, theta, px, py)) for s in make(parameters, q)]


def _axes_of_all(bodies: Mapping[str, BodyState]) -> list[Shape]:
    return [shape for body in bodies.values() for shape in _axes(body)]


def _axes(body: BodyState) -> list[Shape]:
    directions = quat2mat(body.quaternion_wxyz).T
    return [Shape(np.array([body.position, body.position + AXIS_M * e]), width=1.3, color=color) for e, color in zip(directions, AXIS_COLORS)]


def _quadrotors_with_payload(bodies: Mapping[str, BodyState]) -> list[Shape]:
    """The payload as an octahedron, links, and quadrotors as crossed arms with four rotors and body axes."""
    payload, *quadrotors = bodies.values()
    links = [Shape(np.array([payload.position, body.position]), width=1.4) for body in quadrotors]
    return [*_octahedron(payload.position, 0.06), *links, *(shape for body in quadrotors for shape in _quadrotor(body))]


def _quadrotor(body: BodyState) -> list[Shape]:
    turn = quat2mat(body.quaternion_wxyz)
    tips = ARM_M * np.array([[1, 1, 0], [-1, 1, 0], [-1, -1, 0], [1, -1, 0]]) / np.sqrt(2)
    rotor = np.column_stack([_circle(ROTOR_M), np.zeros(25)])
    arms = [Shape(body.position + tips[[i, i + 2]] @ turn.T, width=1.6) for i in (0, 1)]
    rotors = [Shape(body.position + (tip + rotor) @ turn.T, closed=True, fill=0.3) for tip in tips]
    return [*arms, *rotors, *_axes(body)]


def _octahedron(center: np.ndarray, radius: float) -> list[Shape]:
    corners = [[np.array([[sx, 0, 0], [0, sy, 0], [0, 0, sz]]) for sx in (-1, 1)] for sy in (-1, 1) for sz in (-1, 1)]
    return [Shape(center + radius * corner, closed=True, fill=0.8) for pair in corners for corner in pair]


_SPATIAL: dict[str, Callable[[Mapping[str, BodyState]], list[Shape]]] = {"quadrotor_payload": _quadrotors_with_payload}


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


_PLANAR = {"snakeboard": _snakeboard}


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
