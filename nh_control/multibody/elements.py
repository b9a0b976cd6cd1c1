"""Force elements between the frames of a tree, such as springs, dampers and inputs."""

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
"""Default rate (rad/s or m/s) over which dry friction changes sign."""


@dataclass(frozen=True)
class Element:
    """A force element. It defines a potential energy, or the virtual power of its forces, which
    determines the generalized forces. Raises ValueError for numbers that are not finite.
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
        """Power (W) of the forces at k for virtual velocities. It is linear in the virtual
        velocities.
        """
        return ca.SX(0)


@dataclass(frozen=True)
class Spring(Element):
    """Linear spring between two points (each a `Point` or a frame's name), with the energy
    `V = stiffness (distance - rest_length)^2 / 2`, where `stiffness` is in N/m and `rest_length`
    in m.

    If the rest length is not zero, the points must not coincide, because the force would have no
    direction.
    """

    a: Point | str
    b: Point | str
    stiffness: float
    rest_length: float = 0.0

    def potential(self, k: Kinematics) -> ca.SX:
        # without a rest length, V = stiffness |a - b|^2 / 2 is smooth everywhere
        square = ca.sumsqr(k.position(self.a) - k.position(self.b))
        return (
            self.stiffness
            / 2
            * (square if self.rest_length == 0 else (ca.sqrt(square) - self.rest_length) ** 2)
        )


@dataclass(frozen=True)
class JointSpring(Element):
    """Torsion spring (N m/rad) or linear spring (N/m) on a joint's coordinate, with the energy
    `V = stiffness (q - rest)^2 / 2`.
    """

    coordinate: str
    stiffness: float
    rest: float = 0.0

    def potential(self, k: Kinematics) -> ca.SX:
        return self.stiffness / 2 * (k.coordinate(self.coordinate) - self.rest) ** 2


@dataclass(frozen=True)
class NonlinearJointSpring(Element):
    """Spring on a joint's coordinate q that exerts `F = -force(scale q + offset)` (N m or N),
    where `force` is a spline. Its potential energy V, with `V' = -F`, is zero at the first knot.

    Raises ValueError if the scale is zero, because the force would then be constant.
    """

    coordinate: str
    force: Spline
    scale: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.force, Spline):
            raise ValueError(
                f"{self}: force must be a Spline, such as nh.Spline(x, y); nh.Spline.of converts "
                "curves of SciPy"
            )
        if self.scale == 0:
            raise ValueError(f"{self}: the scale must not be zero; a ConstantWrench is constant")

    def potential(self, k: Kinematics) -> ca.SX:
        x = self.scale * k.coordinate(self.coordinate) + self.offset
        # d/dq S(scale q + offset) / scale = force(scale q + offset) with S' = force
        return self.force.antiderivative()(x) / self.scale


@dataclass(frozen=True)
class Damper(Element):
    """Linear damper between two points. Its force is `-damping` (N s/m) times the rate of change
    of their distance, and acts along the line through them. The points must not coincide.
    """

    a: Point | str
    b: Point | str
    damping: float

    def power(self, k: Kinematics, virtual: Kinematics) -> ca.SX:
        line = k.position(self.a) - k.position(self.b)
        # with d = a - b, F = -damping (d . v / |d|) and its power is F (d . v' / |d|)
        rate, virtual_rate = (
            ca.dot(line, motion.velocity(self.a) - motion.velocity(self.b))
            for motion in (k, virtual)
        )
        return -self.damping * rate * virtual_rate / ca.sumsqr(line)


@dataclass(frozen=True)
class JointDamper(Element):
    """Viscous friction on a joint's coordinate, `-damping` (N m s/rad or N s/m) times its rate."""

    coordinate: str
    damping: float

    def power(self, k: Kinematics, virtual: Kinematics) -> ca.SX:
        return -self.damping * k.rate(self.coordinate) * virtual.rate(self.coordinate)


@dataclass(frozen=True)
class JointFriction(Element):
    """Dry (Coulomb) friction on a joint's coordinate, smoothed so that all derivatives exist. It
    is `-friction rate / sqrt(rate^2 + friction_velocity^2)`, with `friction` in N m or N. At the
    `friction_velocity` (rad/s or m/s), 71 % of the `friction` acts. Below this rate, the joint
    creeps instead of sticking.

    A step h slows down a joint with inertia M without reversing it if
    `h friction <= 2 M friction_velocity`. Otherwise the rate still decays, but with alternating
    signs. With the "left" forcing of `midpoint`, it does not decay. Raises ValueError if the
    friction is negative or the friction velocity is not positive.
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
        # 1/sqrt(2) = 71 % at rate = friction_velocity
        part = rate / ca.sqrt(rate**2 + self.friction_velocity**2)
        return -self.friction * part * virtual.rate(self.coordinate)


AXES = ("body", "world", "spatial")
"""Axes of a wrench. They are the frame's axes ("body"), or the world axes with the force at the
point ("world") or at the world's origin ("spatial").
"""


def twist_of(k: Kinematics, point: Point | str, axes: str) -> ca.SX:
    """The twist (6) that is power-conjugate to a wrench (torque, force). It consists of the
    angular velocity of the point's frame and the velocity of the point. For "spatial" axes, the
    latter is the velocity of the frame's material at the origin of the world.
    """
    if axes == "body":
        return ca.vertcat(k.angular_velocity(point, axes), k.velocity(point, axes))
    omega, velocity = k.angular_velocity(point), k.velocity(point)
    if axes == "spatial":
        # velocity at the origin of the world: v - omega x r
        velocity -= ca.cross(omega, k.position(point))
    return ca.vertcat(omega, velocity)


def _require_axes(what: str, axes: str) -> None:
    if axes not in AXES:
        raise ValueError(f"{what}: axes must be one of {', '.join(AXES)}, got {axes!r}")


@dataclass(frozen=True)
class ConstantWrench(Element):
    """A constant torque (3, N m) on a frame and a constant force (3, N) at a point fixed in the
    frame. With "body" `axes`, the wrench rotates with the frame. Otherwise it is expressed in the
    world axes, and the force acts at the point ("world") or along a line through the origin of the
    world ("spatial"). Raises ValueError for other axes.
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
    """Inputs u (n) of a model. Each input has a name, a unit and limits."""

    @abstractmethod
    def names(self, tree: Tree) -> tuple[str, ...]:
        """Names of the n inputs."""

    @abstractmethod
    def units(self, tree: Tree) -> tuple[str, ...]:
        """Units of the inputs."""

    @abstractmethod
    def limits(self) -> np.ndarray:
        """Lower and upper limits of the inputs, (n, 2)."""

    @abstractmethod
    def power(self, virtual: Kinematics, u: ca.SX) -> ca.SX:
        """Power (W) of the inputs u (n) for the virtual velocities."""


@dataclass(frozen=True)
class JointInput(Input):
    """Torque (N m) or force (N) of an actuator on a joint's coordinate. The input is called
    `<coordinate>_torque` or `<coordinate>_force` unless it has a `name`.

    `limit` is its maximum absolute value, or a pair (lower, upper).
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
        # effort times rate
        return u[0] * virtual.rate(self.coordinate)


WRENCH = ("torque_x", "torque_y", "torque_z", "force_x", "force_y", "force_z")


@dataclass(frozen=True)
class Wrench(Input):
    """Torque (N m) on a frame and force (N) at a point fixed in the frame, as inputs
    `<name>_<component>`. The `axes` are "body", "world" or "spatial", as in `ConstantWrench`.

    `components` are any of torque_x ... force_z. `limit` is the maximum absolute value of each
    component, or a pair (lower, upper).
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
    # one number bounds the absolute value
    lower, upper = limits if limits.ndim else (-limits, limits)
    return float(lower), float(upper)
