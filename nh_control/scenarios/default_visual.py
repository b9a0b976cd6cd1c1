"""The visual model of a system that declares none: sticks for coordinates that turn, balls for
points, and the axes of every body.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from transforms3d.quaternions import quat2mat

from nh_control.geometry.rotations import S2, SE3, SO3
from nh_control.geometry.spaces import SE2, Product, Rn, Space
from nh_control.mechanics.system import System
from nh_control.multibody.model import MultibodySystem
from nh_control.multibody.motion import plane_axes
from nh_control.scenarios import urdf_visual
from nh_control.scenarios.visual_model import (
    AXIS_COLORS,
    BLUE,
    ORANGE,
    STEEL,
    Pose,
    Shape,
    VisualModel,
)

STICK_M, BALL_M, AXIS_M = 1.0, 0.16, 0.3
BODY_M = (0.5, 0.3, 0.1)
APART_M = 1.2
"""Distance of bodies without a position among the coordinates."""
ALONG = re.compile(r"(?:^|_)([xyz])_?\d*$")
"""Endings of the names of coordinates along an axis."""
WORLD = "odom"

Place = Callable[[Pose, np.ndarray], Pose]


class Part(NamedTuple):
    """A frame that `place(parent's pose, numbers)` puts where the slice `numbers` of a
    configuration says.
    """

    frame: str
    parent: str
    numbers: slice
    place: Place


def balls(
    parent: str, poses: Callable[[Any, np.ndarray], Mapping[str, Pose]], frames: Iterable[str]
) -> VisualModel:
    """A ball with its axes for every frame; the first one leaves a trail."""
    frames = tuple(frames)
    shapes = tuple(s for f in frames for s in (_ball(f, 0.3), *axes(f, 0.4)))
    return VisualModel(parent, poses, shapes, trail=frames[0] if frames else "")


def axes(frame: str, length: float = AXIS_M) -> tuple[Shape, ...]:
    """Rods along x (red), y (green) and z (blue) of a frame, of this length (m)."""
    thick, half = 0.06 * length, length / 2
    return (
        Shape("box", (length, thick, thick), AXIS_COLORS[0], frame, (half, 0.0, 0.0)),
        Shape("box", (thick, length, thick), AXIS_COLORS[1], frame, (0.0, half, 0.0)),
        Shape("box", (thick, thick, length), AXIS_COLORS[2], frame, (0.0, 0.0, half)),
    )


def with_axes(
    visual: VisualModel, parameters: Any, origin: Callable[[], np.ndarray]
) -> VisualModel:
    """The visual model; if it has no shapes, cables and outline, with axes for its frames."""
    if visual.shapes or visual.cables or visual.outline:
        return visual
    shapes = (shape for frame in visual.poses(parameters, origin()) for shape in axes(frame))
    return replace(visual, shapes=tuple(shapes))


def system_visual(system: System, units: Mapping[str, str] | None = None) -> VisualModel:
    """The visual model of a system: the skeleton of a `Multibody`; for other systems a box with
    axes for every pose or rotation, a stick for every direction and every coordinate that turns,
    and a ball for coordinates along x, y and z.

    `units` are units of coordinates by name; without them, coordinates whose names end with x, y
    or z are lengths and others are angles. An angle turns a stick 1 m long about y, from the
    downward vertical, or upwards if the potential energy is higher at 0. If the energy couples two
    angles, the second one turns its stick relative to the first stick.
    """
    model = system.model if isinstance(system, MultibodySystem) else None
    if model is not None:
        return urdf_visual.visual_model(model)
    skeleton = _Skeleton(system, units or {})
    return VisualModel(
        WORLD,
        partial(_poses, skeleton.parts),
        tuple(skeleton.shapes),
        trail=skeleton.last,
    )


def _poses(parts: Sequence[Part], _: Any, q: np.ndarray) -> dict[str, Pose]:
    frames = {WORLD: Pose(np.zeros(3), np.eye(3))}
    for part in parts:
        frames[part.frame] = part.place(frames[part.parent], np.asarray(q)[part.numbers])
    return frames


class _Skeleton:
    """The parts and shapes of a system's configuration space: poses and points, then angles and
    directions on the last of them.
    """

    def __init__(self, system: System, units: Mapping[str, str]):
        self.parts: list[Part] = []
        self.shapes: list[Shape] = []
        self._energy = _potential_energy(system)
        self._units, self._at, self._on = units, 0, WORLD
        self._unseen = set(system.first_order)
        self._flat, self._angle = False, -1
        self._boxes: set[str] = set()
        space = system.space
        factors = space.factors if isinstance(space, Product) else (space,)
        starts = np.cumsum([0, *(factor.nq for factor in factors)])
        passes: tuple[tuple[type[Space], Callable[[Any], None]], ...] = (
            (SE2, self._planar),
            (SE3, self._pose),
            (Rn, self._points),
            (SO3, self._rotation),
            (Rn, self._sticks),
            (S2, self._direction),
        )
        for kind, add in passes:
            for factor, start in zip(factors, starts):
                if isinstance(factor, kind):
                    self._at = int(start)
                    add(factor)

    @property
    def last(self) -> str:
        """The last frame that carries other frames or ends a stick; "" without one."""
        ends = [part.frame for part in self.parts if part.place is not _turned_flat]
        return self._on if self._on != WORLD else (ends or [""])[-1]

    def _add(self, frame: str, parent: str, numbers: slice, place: Place) -> None:
        self.parts.append(Part(frame, parent, numbers, place))

    def _whole(self, factor: Space) -> slice:
        return slice(self._at, self._at + factor.nq)

    def _points(self, factor: Rn) -> None:
        for names in self._groups(factor.names):
            self._on = WORLD
            for i in names:
                name = factor.names[i]
                along = ALONG.search(name)
                axis = "xyz".index(along[1]) if along else 0
                numbers = slice(self._at + i, self._at + i + 1)
                self._add(name, self._on, numbers, partial(_slid, axis))
                self._on = name
            self.shapes.append(_ball(self._on, BALL_M))

    def _sticks(self, factor: Rn) -> None:
        for i, name in enumerate(factor.names):
            if self._turns(name) and name not in self._unseen:
                self._stick(name, slice(self._at + i, self._at + i + 1))

    def _turns(self, name: str) -> bool:
        return self._units.get(name, "m" if ALONG.search(name) else "rad") != "m"

    def _groups(self, names: Sequence[str]) -> list[list[int]]:
        """The numbers of the coordinates that form a point."""
        groups: list[list[int]] = []
        last: tuple[str, set[str]] = ("", set("xyz"))
        for i, name in enumerate(names):
            along = ALONG.search(name)
            prefix, axis = (name[: along.start()], along[1]) if along else (name, "x")
            if self._turns(name) or name in self._unseen:
                last = "", set("xyz")
            elif last[0] == prefix and axis not in last[1]:
                groups[-1].append(i)
                last[1].add(axis)
            else:
                groups.append([i])
                last = prefix, {axis}
        return groups

    def _stick(self, name: str, angle: slice) -> None:
        """A stick on the last body, or else on the end of the last stick."""
        if self._flat:
            self._add(name, self._on, angle, _turned_flat)
            self.shapes.append(Shape("box", (0.4, 0.05, 0.05), STEEL, name, (0.15, 0, BODY_M[2])))
            return
        up = 1.0 if self._higher_at_zero(angle.start) else -1.0
        relative = self._angle >= 0 and self._coupled(self._angle, angle.start)
        self._add(name, self._on, angle, partial(_swung, up, relative))
        end = f"{name} end"
        self._add(end, name, slice(0, 0), partial(_at, (0.0, 0.0, up * STICK_M)))
        self._shape(
            Shape("cylinder", (0.05, 0.05, STICK_M), STEEL, name, (0.0, 0.0, up * STICK_M / 2)),
            _ball(end, BALL_M),
        )
        if self._on not in self._boxes:
            self._on, self._angle = end, angle.start

    def _planar(self, factor: SE2) -> None:
        name = self._free("body")
        self._add(name, WORLD, self._whole(factor), lambda _, q: Pose.planar(*q))
        self._shape(Shape("box", BODY_M, BLUE, name, (0.0, 0.0, BODY_M[2] / 2)), *axes(name))
        self._on, self._flat = name, True

    def _pose(self, factor: SE3) -> None:
        name = self._free("body")
        self._add(name, WORLD, self._whole(factor), lambda _, q: Pose(q[4:], quat2mat(q[:4])))
        self._box(name)

    def _rotation(self, factor: SO3) -> None:
        """A box at the position of the preceding coordinates, or beside the last body."""
        name = self._free("body")
        on = "" if self._on in self._boxes else self._on
        aside = APART_M * len(self._boxes) if on in ("", WORLD) else 0.0
        self._add(name, on or WORLD, self._whole(factor), partial(_attitude, aside))
        self.shapes = [s for s in self.shapes if s.frame != on]  # the box is in the ball's place
        self._box(name)

    def _direction(self, factor: S2) -> None:
        name = self._free("link")
        self._add(name, self._on, self._whole(factor), _pointed)
        end = f"{name} end"
        self._add(end, name, slice(0, 0), partial(_at, (0.0, 0.0, STICK_M)))
        self._shape(
            Shape("cylinder", (0.05, 0.05, STICK_M), STEEL, name, (0.0, 0.0, STICK_M / 2)),
            _ball(end, BALL_M),
        )

    def _box(self, name: str) -> None:
        self._shape(Shape("box", (0.5, 0.3, 0.2), BLUE, name), *axes(name, 0.45))
        self._boxes.add(name)
        self._on = name

    def _shape(self, *shapes: Shape) -> None:
        self.shapes += shapes

    def _free(self, name: str) -> str:
        taken = {part.frame for part in self.parts}
        names = (f"{name}{k}" if k else name for k in range(len(taken) + 1))
        return next(one for one in names if one not in taken)

    def _higher_at_zero(self, i: int) -> bool:
        """Whether the potential energy is higher at angle 0 than at half a turn."""
        low, high = (self._energy({i: angle}) for angle in (np.pi, 0.0))
        return bool(high > low + 1e-9 * abs(high - low))

    def _coupled(self, i: int, j: int) -> bool:
        """Whether the potential energy is not a sum of functions of these two angles."""
        a, b = 0.7, 0.4
        both = self._energy({i: a, j: b}) + self._energy({})
        alone = self._energy({i: a}) + self._energy({j: b})
        return bool(abs(both - alone) > 1e-9 * (abs(both) + abs(alone)))


def _potential_energy(system: System) -> Callable[[Mapping[int, float]], float]:
    """The energy V = -L(q, 0) at the nominal configuration with some of its numbers changed."""
    q = ca.SX.sym("q", system.space.nq)
    plain = system.numeric
    still = ca.SX(system.space.nw, 1)
    energy = ca.Function("potential_energy", [q], [-plain.lagrangian_at(q, still)])
    nominal = np.array(system.space.origin, dtype=float)

    def energy_with(changes: Mapping[int, float]) -> float:
        changed = nominal.copy()
        for i, value in changes.items():
            changed[i] = value
        return float(energy(changed))

    return energy_with


def _ball(frame: str, diameter: float) -> Shape:
    return Shape("sphere", (diameter,) * 3, ORANGE, frame)


def _at(offset: tuple[float, float, float], parent: Pose, _: np.ndarray) -> Pose:
    return parent.rotated(0.0, offset)


def _slid(axis: int, parent: Pose, q: np.ndarray) -> Pose:
    return Pose(parent.position + q[0] * np.eye(3)[axis], parent.rotation)


def _swung(up: float, relative: bool, parent: Pose, q: np.ndarray) -> Pose:
    """Turned towards x: about y from above, about -y from below."""
    start = parent if relative else Pose(parent.position, np.eye(3))
    return start.rotated(q[0], (0.0, 0.0, 0.0), (0.0, up, 0.0))


def _turned_flat(parent: Pose, q: np.ndarray) -> Pose:
    return parent.rotated(q[0], (0.0, 0.0, 0.0))


def _attitude(aside: float, parent: Pose, q: np.ndarray) -> Pose:
    return Pose(parent.position + [0.0, aside, 0.0], quat2mat(q))


def _pointed(parent: Pose, q: np.ndarray) -> Pose:
    return Pose(parent.position, np.column_stack([plane_axes(q), q]))
