"""Force elements between the frames of a tree: springs, dampers and inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields

import casadi as ca
import numpy as np

from nh_control.multibody.frame_motion import three_numbers
from nh_control.multibody.kinematics import Kinematics, Point, Tree
from nh_control.numerics.expressions import Vector
from nh_control.numerics.spline import Spline

FRICTION_VELOCITY = 0.05
"""Rate (rad/s or m/s) over which dry friction changes its sign unless another one is given."""


@dataclass(frozen=True)
class Element:
    """A force element: it has a potential energy, or generalized forces that follow from the
    virtual power of its forces. Raises ValueError for numbers that are not finite.
    """

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, (int, float)) and not np.isfinite(value):
                raise ValueError(f"{self}: {field.name} must be finite")

    def potential(self, k: Kinematics) -> ca.SX:
        """Potential energy (J) at k."""
        return ca.SX(0)

    def power(self, k: Kinematics, virtual: Kinematics) -> ca.SX:
        """Power (W) of the forces at k on virtual velocities, in which it is linear."""
        return ca.SX(0)


@dataclass(frozen=True)
class Spring(Element):
    """Linear spring between two points (a `Point` or a frame's name),
    `V = stiffness (distance - rest_length)^2 / 2`, N/m and m.

    With a rest length the points must not coincide, because the force has no direction there.
    """

    a: Point | str
    b: Point | str
    stiffness: float
    rest_length: float = 0.0

    def potential(self, k: Kinematics) -> ca.SX:
        square = ca.sumsqr(k.position(self.a) - k.position(self.b))
        return (
            self.stiffness
            / 2
            * (square if self.rest_length == 0 else (ca.sqrt(square) - self.rest_length) ** 2)
        )


@dataclass(frozen=True)
class JointSpring(Element):
    """Spring on a joint's coordinate, `V = stiffness (q - rest)^2 / 2`: torsion spring (N m/rad)
    or linear spring (N/m).
    """

    coordinate: str
    stiffness: float
    rest: float = 0.0

    def potential(self, k: Kinematics) -> ca.SX:
        return self.stiffness / 2 * (k.coordinate(self.coordinate) - self.rest) ** 2


@dataclass(frozen=True)
class NonlinearJointSpring(Element):
    """Spring on a joint's coordinate whose force (N m or N) is a spline of it,
    `F = -force(scale q + offset)`, with the potential energy `V' = -F` from the first knot on.

    Raises ValueError for a scale of zero, which makes the force constant.
    """

    coordinate: str
    force: Spline
    scale: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.force, Spline):
            raise ValueError(
                f"{self}: force must be a Spline, such as nh.Spline(x, y); nh.Spline.of takes "
                "curves of SciPy"
            )
        if self.scale == 0:
            raise ValueError(f"{self}: the scale must not be zero; a ConstantWrench is constant")

    def potential(self, k: Kinematics) -> ca.SX:
        x = self.scale * k.coordinate(self.coordinate) + self.offset
        return self.force.antiderivative()(x) / self.scale


@dataclass(frozen=True)
class Damper(Element):
    """Linear damper between two points: a force of `-damping` (N s/m) times the rate of their
    distance along the line through them; the points must not coincide.
    """

    a: Point | str
    b: Point | str
    damping: float

    def power(self, k: Kinematics, virtual: Kinematics) -> ca.SX:
        line = k.position(self.a) - k.position(self.b)
        rate, virtual_rate = (
            ca.dot(line, motion.velocity(self.a) - motion.velocity(self.b))
            for motion in (k, virtual)
        )
        return -self.damping * rate * virtual_rate / ca.sumsqr(line)


@dataclass(frozen=True)
class JointDamper(Element):
    """Viscous friction on a joint's coordinate, `-damping` times its rate; N m s/rad or N s/m."""

    coordinate: str
    damping: float

    def power(self, k: Kinematics, virtual: Kinematics) -> ca.SX:
        return -self.damping * k.rate(self.coordinate) * virtual.rate(self.coordinate)


@dataclass(frozen=True)
class JointFriction(Element):
    """Dry (Coulomb) friction on a joint's coordinate, smoothed so that all derivatives exist:
    `-friction rate / sqrt(rate^2 + friction_velocity^2)`, `friction` in N m or N; 71 % of it acts
    at the `friction_velocity` (rad/s or m/s), below which the joint creeps instead of sticking.

    A step of h slows a joint of inertia M down without turning it back while `h friction <= 2 M
    friction_velocity`; beyond, it still decays, with changing signs ("left" forcing of `midpoint`
    has none). Raises ValueError for a negative friction, or a velocity that is not positive.
    """

    coordinate: str
    friction: float
    friction_velocity: float = FRICTION_VELOCITY

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.friction < 0 or self.friction_velocity <= 0:
            raise ValueError(
                f"{self}: expected friction >= 0 and friction_velocity > 0; a smaller velocity "
                "sticks better and needs smaller steps"
            )

    def power(self, k: Kinematics, virtual: Kinematics) -> ca.SX:
        rate = k.rate(self.coordinate)
        part = rate / ca.sqrt(rate**2 + self.friction_velocity**2)
        return -self.friction * part * virtual.rate(self.coordinate)


AXES = ("body", "world", "spatial")
"""Axes of a wrench: those of the frame, of the world at the point, of the world at its origin."""


def twist_of(k: Kinematics, point: Point | str, axes: str) -> ca.SX:
    """The twist (6) with which a wrench (torque, force) has power: angular velocity of the point's
    frame, and velocity of the point, or for "spatial" axes of the point of the frame that is at
    the origin of the world.
    """
    if axes == "body":
        return ca.vertcat(k.angular_velocity(point, axes), k.velocity(point, axes))
    omega, velocity = k.angular_velocity(point), k.velocity(point)
    if axes == "spatial":
        velocity -= ca.cross(omega, k.position(point))
    return ca.vertcat(omega, velocity)


def _require_axes(what: str, axes: str) -> None:
    if axes not in AXES:
        raise ValueError(f"{what}: axes must be one of {', '.join(AXES)}, got {axes!r}")


@dataclass(frozen=True)
class ConstantWrench(Element):
    """A constant torque (3, N m) on a frame and a constant force (3, N) at a point of it. `axes`
    are those of the frame ("body"), with which the wrench turns, or of the world: the force acts
    at the point ("world"), or along a line through the origin of the world ("spatial"). Raises
    ValueError for other axes.
    """

    point: Point | str
    torque: Vector = (0.0, 0.0, 0.0)
    force: Vector = (0.0, 0.0, 0.0)
    axes: str = "body"

    def __post_init__(self) -> None:
        for name in ("torque", "force"):
            numbers = three_numbers(getattr(self, name), f"constant wrench: {name}")
            object.__setattr__(self, name, numbers)
        _require_axes("constant wrench", self.axes)

    def power(self, k: Kinematics, virtual: Kinematics) -> ca.SX:
        wrench = ca.SX([*self.torque, *self.force])
        return ca.dot(wrench, twist_of(virtual, self.point, self.axes))


class Input(ABC):
    """Inputs u (n) of a model, each with a name, a unit and limits."""

    @abstractmethod
    def names(self, tree: Tree) -> tuple[str, ...]:
        """Names of the n inputs."""

    @abstractmethod
    def units(self, tree: Tree) -> tuple[str, ...]:
        """Their units."""

    @abstractmethod
    def limits(self) -> np.ndarray:
        """Their lower and upper limits, (n, 2)."""

    @abstractmethod
    def power(self, virtual: Kinematics, u: ca.SX) -> ca.SX:
        """Power (W) of the inputs u (n) on the virtual velocities."""


@dataclass(frozen=True)
class JointInput(Input):
    """Torque (N m) or force (N) of an actuator on a joint's coordinate, named
    `<coordinate>_torque` or `<coordinate>_force` unless given a `name`.

    `limit` is its largest size, or a pair (lower, upper).
    """

    coordinate: str
    limit: float | Sequence[float] = np.inf
    name: str = ""

    def names(self, tree: Tree) -> tuple[str, ...]:
        return (self.name or f"{self.coordinate}_{tree.effort(self.coordinate)[0]}",)

    def units(self, tree: Tree) -> tuple[str, ...]:
        return (tree.effort(self.coordinate)[1],)

    def limits(self) -> np.ndarray:
        return np.array([_pair(self.limit)])

    def power(self, virtual: Kinematics, u: ca.SX) -> ca.SX:
        return u[0] * virtual.rate(self.coordinate)


WRENCH = ("torque_x", "torque_y", "torque_z", "force_x", "force_y", "force_z")


@dataclass(frozen=True)
class Wrench(Input):
    """Torque (N m) on a frame and force (N) at a point of it, in the axes of the frame ("body") or
    of the world ("world"), or at the origin of the world ("spatial"), as of `ConstantWrench`;
    inputs `<name>_<component>`.

    `components` are some of torque_x ... force_z, `limit` is the largest size of each, or a pair
    (lower, upper).
    """

    name: str
    point: Point | str
    axes: str = "body"
    components: Sequence[str] = WRENCH
    limit: float | Sequence[float] = np.inf

    def __post_init__(self) -> None:
        _require_axes(f"wrench {self.name!r}", self.axes)
        for component in self.components:
            if component not in WRENCH:
                raise ValueError(
                    f"wrench {self.name!r}: unknown component {component!r}, choose some of "
                    f"{', '.join(WRENCH)}"
                )

    def names(self, tree: Tree) -> tuple[str, ...]:
        return tuple(f"{self.name}_{component}" for component in self.components)

    def units(self, tree: Tree) -> tuple[str, ...]:
        return tuple(
            "N m" if component.startswith("torque") else "N" for component in self.components
        )

    def limits(self) -> np.ndarray:
        return np.array([_pair(self.limit)] * len(self.components))

    def power(self, virtual: Kinematics, u: ca.SX) -> ca.SX:
        twist = twist_of(virtual, self.point, self.axes)
        return ca.dot(u, twist[[WRENCH.index(component) for component in self.components]])


def _pair(limit: float | Sequence[float]) -> tuple[float, float]:
    limits = np.array(limit, dtype=float)
    lower, upper = limits if limits.ndim else (-limits, limits)
    return float(lower), float(upper)
