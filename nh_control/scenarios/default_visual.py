"""The visual model of a system that does not declare one: sticks for angles, balls for points, and
the axes of each body.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
from transforms3d.axangles import axangle2mat
from transforms3d.quaternions import quat2mat

from nh_control.geometry.rotations import S2, SE3, SO3
from nh_control.geometry.spaces import SE2, Product, Rn, Space
from nh_control.mechanics.system import System
from nh_control.multibody.frame_motion import AXES, plane_axes
from nh_control.multibody.model import MultibodySystem
from nh_control.scenarios import urdf_visual
from nh_control.scenarios.declared_frames import (
    ORIGIN,
    Frame,
    FrameTree,
    fixed,
    floating,
    planar,
    prismatic,
    revolute,
)
from nh_control.scenarios.shown import BodyState, PlanarBody
from nh_control.scenarios.visual_model import (
    AXIS_COLORS,
    BLUE,
    ODOM,
    ORANGE,
    STEEL,
    Pose,
    Shape,
    Vector,
    VisualModel,
)

STICK_M, BALL_M, AXIS_M = 1.0, 0.16, 0.3
BODY_M = (0.5, 0.3, 0.1)
APART_M = 1.2
"""Distance (m) between bodies whose positions are not coordinates."""
ALONG = re.compile(r"(?:^|_)([xyz])_?\d*$")
"""Suffixes in the names of coordinates along an axis."""


def bodies_visual(
    space: Space, bodies: Callable[[np.ndarray], Sequence[BodyState]]
) -> VisualModel:
    """A ball with axes for each spatial body. `bodies(q)` returns the states of the bodies at rest
    at q (nq).
    """

    def pose(i: int, q: np.ndarray) -> Pose:
        return Pose(bodies(q)[i].position, quat2mat(bodies(q)[i].quaternion_wxyz))

    start = bodies(np.array(space.origin, dtype=float))
    parent = start[0].parent
    frames = [
        floating(b.frame, parent, space.names, partial(pose, i)) for i, b in enumerate(start)
    ]
    return _balls(space, parent, frames)


def body_visual(space: Space, body: PlanarBody) -> VisualModel:
    """A ball with axes for a planar body."""
    frame = planar(body.frame, body.parent, body.coordinates, (0.0, 0.0, body.z))
    return _balls(space, body.parent, [frame])


def _balls(space: Space, parent: str, frames: Sequence[Frame]) -> VisualModel:
    """A ball with axes for each frame. The first frame leaves a trail."""
    shapes = tuple(s for f in frames for s in (_ball(f.name, 0.3), *axes(f.name, 0.4)))
    return VisualModel(parent, FrameTree(space.names, frames), shapes, trail=frames[0].name)


def axes(frame: str, length: float = AXIS_M) -> tuple[Shape, ...]:
    """Rods of the given length (m) along the x (red), y (green) and z (blue) axes of a frame."""
    thick, half = 0.06 * length, length / 2
    return (
        Shape("box", (length, thick, thick), AXIS_COLORS[0], frame, (half, 0.0, 0.0)),
        Shape("box", (thick, length, thick), AXIS_COLORS[1], frame, (0.0, half, 0.0)),
        Shape("box", (thick, thick, length), AXIS_COLORS[2], frame, (0.0, 0.0, half)),
    )


def with_axes(
    visual: VisualModel, parameters: Any, origin: Callable[[], np.ndarray]
) -> VisualModel:
    """The visual model, with axes added to its frames if it has no shapes, cables or outline."""
    if visual.shapes or visual.cables or visual.outline:
        return visual
    shapes = (shape for frame in visual.poses(parameters, origin()) for shape in axes(frame))
    return replace(visual, shapes=tuple(shapes))


def system_visual(system: System, units: Mapping[str, str] | None = None) -> VisualModel:
    """The visual model of a system. A `Multibody` is drawn as a skeleton. Other systems get a box
    with axes for each pose or rotation, a stick for each direction and each angle, and a ball for
    coordinates along x, y and z.

    `units` are units of coordinates by name, in addition to those that the space declares.
    Coordinates without a unit are lengths if their names end with x, y or z, and angles otherwise.
    An angle rotates a stick of 1 m about y. At 0 the stick points downward, or upward if this is
    the angle with the higher potential energy. If the energy couples two angles, the second stick
    rotates relative to the first.
    """
    model = system.model if isinstance(system, MultibodySystem) else None
    if model is not None:
        return urdf_visual.visual_model(model)
    skeleton = _Skeleton(system, system.space.units | dict(units or {}))
    tree = FrameTree(
        system.space.names,
        skeleton.frames,
        no_bodies="its energy is a Lagrangian, which names no bodies",
    )
    return VisualModel(ODOM, tree, tuple(skeleton.shapes), trail=skeleton.last)


class _Skeleton:
    """The frames and shapes for a system's configuration space. Poses and points come first.
    Angles and directions follow, and are attached to the last of the poses and points.
    """

    def __init__(self, system: System, units: Mapping[str, str]):
        self.frames: list[Frame] = []
        self.shapes: list[Shape] = []
        self._energy = _potential_energy(system)
        self._units, self._at, self._on = units, 0, ODOM
        self._unseen = set(system.first_order)
        self._flat, self._angle = False, -1
        self._boxes: set[str] = set()
        self._turning: set[str] = set()
        self._names = system.space.names
        space = system.space
        factors = space.factors if isinstance(space, Product) else (space,)
        starts = np.cumsum([0, *(factor.nq for factor in factors)])
        # Poses and points come first, because sticks and directions are attached to them.
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
        """The last frame that carries other frames or marks the tip of a stick, or "" if there is
        none.
        """
        if self._on != ODOM or not self.frames:
            return self._on.removeprefix(ODOM)
        return self.frames[-1].name

    def _add(self, frame: Frame, turns: bool = False) -> None:
        self.frames.append(frame)
        if turns or frame.parent in self._turning:
            self._turning.add(frame.name)

    def _upright(
        self, name: str, parent: str, names: Sequence[str], motion: Callable[[np.ndarray], Pose]
    ) -> None:
        """Add a frame at the origin of a parent. Its `motion` is a function of its coordinates,
        and is expressed in world axes even if the parent rotates.
        """
        if parent not in self._turning:
            self._add(floating(name, parent, names, motion), turns=True)
            return
        # Only the position of a rotating parent matters, so the frame is attached to the world.
        chain = FrameTree(self._names, tuple(self.frames))

        def placed(q: np.ndarray) -> Pose:
            return Pose.at(chain(None, q)[parent].position) @ motion(q[places])

        places = [self._names.index(name) for name in names]
        self._add(floating(name, ODOM, self._names, placed), turns=True)

    def _whole(self, factor: Space) -> tuple[str, ...]:
        """The names of the factor's entries in a configuration of the system."""
        return tuple(self._names[self._at : self._at + factor.nq])

    def _points(self, factor: Rn) -> None:
        for numbers in self._groups(factor.names):
            self._on = ODOM
            for i in numbers:
                name = factor.names[i]
                along = ALONG.search(name)
                axis = AXES["x" if along is None else along[1]]
                frame = self._free(name)
                self._add(prismatic(frame, self._on, name, axis))
                self._on = frame
            self.shapes.append(_ball(self._on, BALL_M))

    def _sticks(self, factor: Rn) -> None:
        for i, name in enumerate(factor.names):
            if self._turns(name) and name not in self._unseen:
                self._stick(name, self._at + i)

    def _turns(self, name: str) -> bool:
        return self._units.get(name, "m" if ALONG.search(name) else "rad") != "m"

    def _groups(self, names: Sequence[str]) -> list[list[int]]:
        """The indices of coordinates in groups, where each group forms a point."""
        groups: list[list[int]] = []
        last: tuple[str, set[str]] = ("", set("xyz"))
        for i, name in enumerate(names):
            along = ALONG.search(name)
            prefix, axis = (name[: along.start()], along[1]) if along else (name, "x")
            if self._turns(name) or name in self._unseen:
                last = "", set("xyz")
            # With the same prefix and a new axis, the coordinate belongs to the same point as the
            # previous one.
            elif last[0] == prefix and axis not in last[1]:
                groups[-1].append(i)
                last[1].add(axis)
            else:
                groups.append([i])
                last = prefix, {axis}
        return groups

    def _stick(self, name: str, at: int) -> None:
        """Add a stick to the last body or, if there is none, to the tip of the last stick."""
        frame = self._free(name)
        if self._flat:
            self._add(revolute(frame, self._on, name))
            bar = Shape("box", (0.4, 0.05, 0.05), STEEL, frame, (0.15, 0, BODY_M[2]))
            self.shapes.append(bar)
            return
        up = 1.0 if self._higher_at_zero(at) else -1.0
        axis = (0.0, up, 0.0)  # positive angles turn towards x: about y (up) or about -y (down)
        relative = self._angle >= 0 and self._coupled(self._angle, at)
        if relative or self._on not in self._turning:
            self._add(revolute(frame, self._on, name, axis), turns=True)
        else:
            self._upright(frame, self._on, (name,), partial(_turned, axis))
        end = self._rod(frame, up)
        if self._on not in self._boxes:
            self._on, self._angle = end, at

    def _planar(self, factor: SE2) -> None:
        name = self._free("body")
        self._add(planar(name, ODOM, self._whole(factor)), turns=True)
        self._shape(Shape("box", BODY_M, BLUE, name, (0.0, 0.0, BODY_M[2] / 2)), *axes(name))
        self._on, self._flat = name, True

    def _pose(self, factor: SE3) -> None:
        name, names = self._free("body"), self._whole(factor)
        self._add(floating(name, ODOM, (*names[4:], *names[:4])), turns=True)
        self._box(name)

    def _rotation(self, factor: SO3) -> None:
        """Add a box at the position given by the preceding coordinates, or next to the last
        body.
        """
        name = self._free("body")
        on = "" if self._on in self._boxes else self._on
        aside = APART_M * len(self._boxes) if on in ("", ODOM) else 0.0
        attitude = partial(_attitude, aside)
        self._upright(name, on or ODOM, self._whole(factor), attitude)
        self.shapes = [s for s in self.shapes if s.frame != on]  # the box replaces the ball
        self._box(name)

    def _direction(self, factor: S2) -> None:
        name = self._free("link")
        self._upright(name, self._on, self._whole(factor), _pointed)
        self._rod(name, 1.0)

    def _rod(self, frame: str, up: float) -> str:
        """Add a stick along the z axis of a frame, in the direction `up`, with a ball at the tip.
        Return the name of the frame at the tip.
        """
        end = f"{frame} end"
        self._add(fixed(end, frame, (0.0, 0.0, up * STICK_M)))
        middle = (0.0, 0.0, up * STICK_M / 2)
        rod = Shape("cylinder", (0.05, 0.05, STICK_M), STEEL, frame, middle)
        self._shape(rod, _ball(end, BALL_M))
        return end

    def _box(self, name: str) -> None:
        self._shape(Shape("box", (0.5, 0.3, 0.2), BLUE, name), *axes(name, 0.45))
        self._boxes.add(name)
        self._on = name

    def _shape(self, *shapes: Shape) -> None:
        self.shapes += shapes

    def _free(self, name: str) -> str:
        taken = {frame.name for frame in self.frames}
        names = (f"{name}{k}" if k else name for k in range(len(taken) + 1))
        return next(candidate for candidate in names if candidate not in taken)

    def _higher_at_zero(self, i: int) -> bool:
        """Whether the potential energy at angle 0 is higher than after half a turn."""
        # Check V(0) > V(pi) with a margin for rounding errors.
        low, high = (self._energy({i: angle}) for angle in (np.pi, 0.0))
        return bool(high > low + 1e-9 * abs(high - low))

    def _coupled(self, i: int, j: int) -> bool:
        """Whether the potential energy couples two angles, so it is not a sum of functions of
        either angle.
        """
        a, b = 0.7, 0.4
        # V is separable only if V(a, b) + V(0, 0) = V(a, 0) + V(0, b). Check this for two generic
        # angles.
        both = self._energy({i: a, j: b}) + self._energy({})
        alone = self._energy({i: a}) + self._energy({j: b})
        return bool(abs(both - alone) > 1e-9 * (abs(both) + abs(alone)))


def _potential_energy(system: System) -> Callable[[Mapping[int, float]], float]:
    """The energy V = -L(q, 0) at the nominal configuration after changing some entries."""
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


def _turned(axis: Vector, q: np.ndarray) -> Pose:
    return Pose.at(ORIGIN, axangle2mat(axis, q[0]))


def _attitude(aside: float, q: np.ndarray) -> Pose:
    return Pose.at((0.0, aside, 0.0), quat2mat(q))


def _pointed(q: np.ndarray) -> Pose:
    return Pose.at(ORIGIN, np.column_stack([plane_axes(q), q]))
