"""Kinematics and dynamics of a robot by the names of the field: Jacobians, inverse kinematics,
inverse dynamics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.multibody.kinematics import Point
from nh_control.multibody.model import Multibody, Pose
from nh_control.multibody.motion import constant

TOLERANCE, STARTS = 1e-8, 30
"""Distance (m, rad) at which a pose counts as reached, and how many starts are tried for it."""


class NoSolution(ValueError):
    """Inverse kinematics found no configuration; carries the nearest one q (nq) and its distances
    from the pose in m and rad.
    """

    def __init__(self, message: str, q: np.ndarray, distance_m: float, angle_rad: float):
        super().__init__(message)
        self.q, self.distance_m, self.angle_rad = q, distance_m, angle_rad


@dataclass(frozen=True, eq=False)
class Robot:
    """Kinematics and dynamics of a `Multibody`, such as one of `load_urdf`, at configurations q
    (nq) or tables of them (N, nq); results are one or a table alike.

    Velocities v, accelerations a and forces (nw) are in the order of `velocity_names`, in SI
    units. A twist is `(angular, linear)`, as a wrench is `(torque, force)`: the order of
    [featherstone2008, 2.1], not that of Pinocchio. Raises ValueError for a model with constraints
    or prescribed coordinates, and in all functions for unknown frames and shapes that do not fit.
    """

    model: Multibody

    def __post_init__(self) -> None:
        for what in ("constraints", "prescribed"):
            if getattr(self.model, what):
                raise ValueError(
                    f"{self.model.name} has {what}, which a Robot's dynamics do not contain; use "
                    "the functions of its `system`"
                )

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Joints with one coordinate, in the order of a configuration; of joints that follow
        others, the followed ones only.
        """
        return tuple(self.model.tree.scalars)

    @property
    def velocity_names(self) -> tuple[str, ...]:
        """Names of the numbers of a velocity (nw)."""
        return tuple(self.model.space.velocity_names)

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Frames: the links of a URDF."""
        return tuple(self.model.tree.anchors)

    def frame_pose(self, q: ArrayLike, frame: str) -> Pose:
        """Rotation `R` (3, 3) and position `p` (3) of a frame in the world."""
        pose = self._values(self._made("pose", frame, lambda: self._pose(frame)), q)
        return Pose(pose[..., :3], pose[..., 3])

    def frame_jacobian(self, q: ArrayLike, frame: str, axes: str = "world") -> np.ndarray:
        """Jacobian J (6, nw) of a frame's twist at its origin, `(omega, p') = J v`, in the axes of
        the world, or of the frame for "body". Raises ValueError for other axes.
        """
        if axes not in ("world", "body"):
            raise ValueError(f"axes must be 'world' or 'body', got {axes!r}")
        jacobian = self._made(axes, frame, lambda: self._jacobian(frame, axes))
        return self._values(jacobian, q)

    def mass_matrix(self, q: ArrayLike) -> np.ndarray:
        """Mass matrix M (nw, nw)."""
        return self._values(self._mass_matrix, q)

    def gravity(self, q: ArrayLike) -> np.ndarray:
        """Forces (nw) that hold the weight of the robot at rest, without forces of springs."""
        return self._values(self._gravity, q)[..., 0]

    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> np.ndarray:
        """Forces (nw) of the inputs under which v changes by a, per component, in m/s^2 and
        rad/s^2: `M a + c(q, v) + g(q)`, less the forces of springs and dampers
        [featherstone2008, ch. 5].
        """
        return self._values(self._inverse_dynamics, q, v, a)[..., 0]

    def inverse_kinematics(
        self,
        frame: str,
        position: ArrayLike,
        rotation: ArrayLike | None = None,
        start: ArrayLike | None = None,
        *,
        fixed: Sequence[str] = (),
        tolerance: float = TOLERANCE,
        starts: int = STARTS,
        seed: int = 0,
    ) -> np.ndarray:
        """Configuration (nq) within the ranges of the joints at which a frame has a position (3)
        and, if it is given, a rotation (3, 3) in the world.

        Bounded least squares with the exact Jacobian, from `start` (nq; the origin of the space
        unless it is given) and then from random places within the ranges, which `seed` repeats;
        the first one within the tolerance (m, rad) is returned. Coordinates named in `fixed`, as
        those of a floating base, stay as in the start. Raises NoSolution with the nearest
        configuration, and ValueError for unknown names and a matrix that is no rotation.
        """
        space, name = self.model.space, self.model.tree.checked_frame(frame)
        if unknown := [one for one in fixed if one not in space.tangent_names]:
            raise ValueError(
                f"{self.model.name}: cannot keep {unknown}, choose of {list(space.tangent_names)}"
            )
        free = np.array([n not in fixed for n in space.tangent_names])
        origin = np.asarray(space.origin if start is None else start, dtype=float)
        lower, upper = self._ranges(self._checked(origin, space.nq, "a configuration"))
        target = _target(position, rotation)
        random, nearest = np.random.default_rng(seed), (np.inf, origin, np.inf, np.inf)
        for k in range(starts):
            # a change from the start (nv), within the ranges
            change = np.clip(np.zeros(space.nv), lower, upper)
            if k:
                change = random.uniform(*_tried(lower, upper))
            change[~free] = 0.0
            q = self._closest(name, target, origin, change, free, (lower, upper))
            distance, angle = self._distance(name, target, q)
            nearest = min(nearest, (distance + angle, q, distance, angle), key=lambda one: one[0])
            if max(distance, angle) <= tolerance:
                return q
        _, q, distance, angle = nearest
        raise NoSolution(
            f"{self.model.name}: no configuration within the ranges brings {frame} to the pose; "
            f"the nearest of {starts} tries misses it by {distance:.2g} m and {angle:.2g} rad; "
            "give a pose within reach, a `start` close to a solution, or more `starts`",
            q,
            distance,
            angle,
        )

    # solving for a pose --------------------------------------------------------------------------

    def _ranges(self, origin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest changes (nv) from a configuration that the joints' ranges allow."""
        space = self.model.space
        lower, upper = np.full(space.nv, -np.inf), np.full(space.nv, np.inf)
        for frame in self.model.frames:
            if frame.coordinate in self.joint_names and frame.mimic is None:
                i = space.tangent_names.index(frame.coordinate)
                middle = origin[self.model.tree.scalar_indices(frame.coordinate)[0]]
                lower[i], upper[i] = frame.limits.lower - middle, frame.limits.upper - middle
        return lower, upper

    def _closest(
        self,
        frame: str,
        target: np.ndarray,
        origin: np.ndarray,
        change: np.ndarray,
        free: np.ndarray,
        ranges: tuple[np.ndarray, np.ndarray],
    ) -> np.ndarray:
        """Configuration (nq) of the least squared distance near a change from the origin."""
        from scipy.optimize import least_squares  # takes long to import

        difference = self._made("difference", frame, lambda: self._difference(frame))
        bounds = tuple(bound[free] for bound in ranges)
        moving = bounds[0] < bounds[1]  # a joint of range zero is fixed
        places = np.flatnonzero(free)[moving]
        rows = np.isfinite(target)

        def moved(d: np.ndarray) -> np.ndarray:
            whole = change.copy()
            whole[places] = d
            return whole

        solution = least_squares(
            lambda d: np.asarray(difference(origin, moved(d), target)[0])[rows, 0],
            change[places],
            lambda d: np.asarray(difference(origin, moved(d), target)[1])[rows][:, places],
            tuple(bound[moving] for bound in bounds),
            ftol=1e-15,
            xtol=1e-15,
            gtol=1e-15,
        )
        return np.asarray(self.model.space.retract(origin, moved(solution.x)))

    def _distance(self, frame: str, target: np.ndarray, q: np.ndarray) -> tuple[float, float]:
        """Distance in m and angle in rad of a frame from its pose."""
        rotation, position = self.frame_pose(q, frame)
        distance = float(np.linalg.norm(position - target[9:]))
        if not np.isfinite(target[0]):
            return distance, 0.0
        # |R - R*| = 2 sqrt(2) |sin(angle / 2)|
        chord = np.linalg.norm(rotation.ravel() - target[:9]) / np.sqrt(8)
        return distance, float(2 * np.arcsin(min(chord, 1.0)))

    def _difference(self, frame: str) -> ca.Function:
        """`difference(q, d, target) -> r, J`: of a frame's pose (12) at a change d (nv) from q,
        the rotation's over sqrt(2), which makes it an angle where it is small; Jacobian by d.
        """
        space, target = self.model.space, ca.SX.sym("target", 12)
        q, d = ca.SX.sym("q", space.nq), ca.SX.sym("d", space.nv)
        motion = self.model.kinematics(space.retract(q, d), ca.SX(space.nw, 1)).motion(frame)
        pose = ca.vertcat(ca.vec(motion.R.T), motion.p)
        scale = ca.DM([1 / np.sqrt(2)] * 9 + [1.0] * 3)
        difference = ca.densify(scale * (pose - target))
        jacobian = ca.densify(ca.jacobian(difference, d))
        return ca.Function("difference", [q, d, target], [difference, jacobian])

    # expressions ---------------------------------------------------------------------------------

    @cached_property
    def _functions(self) -> dict[tuple[str, str], ca.Function]:
        return {}

    def _made(self, name: str, frame: str, make: Callable[[], ca.Function]) -> ca.Function:
        """A function of a frame, made when it is first asked for."""
        checked = self.model.tree.checked_frame(frame)
        if (name, checked) not in self._functions:
            self._functions[name, checked] = make()
        return self._functions[name, checked]

    def _pose(self, frame: str) -> ca.Function:
        q, v = self._symbols
        motion = self.model.kinematics(q, v).motion(frame)
        return ca.Function("pose", [q], [ca.densify(ca.horzcat(motion.R, motion.p))])

    def _jacobian(self, frame: str, axes: str) -> ca.Function:
        q, v = self._symbols
        k = self.model.kinematics(q, v)
        twist = ca.vertcat(k.angular_velocity(frame, axes), k.velocity(frame, axes))
        return ca.Function("jacobian", [q], [ca.densify(ca.jacobian(twist, v))])

    @cached_property
    def _symbols(self) -> tuple[ca.SX, ca.SX]:
        return ca.SX.sym("q", self.model.space.nq), ca.SX.sym("v", self.model.space.nw)

    @cached_property
    def _mass_matrix(self) -> ca.Function:
        n = self.model.space.nw
        a = ca.SX.sym("a", n)
        matrix = ca.jacobian(self._forces(a, ca.SX.zeros(n), gravity=False), a)
        return ca.Function("mass_matrix", [self._symbols[0]], [ca.densify(matrix)])

    @cached_property
    def _gravity(self) -> ca.Function:
        rest = ca.SX.zeros(self.model.space.nw)
        return ca.Function(
            "gravity", [self._symbols[0]], [ca.densify(self._forces(rest, rest, gravity=True))]
        )

    @cached_property
    def _inverse_dynamics(self) -> ca.Function:
        q, v = self._symbols
        a, w = ca.SX.sym("a", v.numel()), ca.SX.sym("w", v.numel())
        k, virtual = self.model.kinematics(q, v), self.model.kinematics(q, w)
        potential = sum((e.potential(k) for e in self.model.elements), ca.SX(0))
        damping = sum((e.power(k, virtual) for e in self.model.elements), ca.SX(0))
        # forces of springs: the power of -V along w is that of a rate of the configuration
        springs = ca.jtimes(potential, q, self._rate(q, w))
        own = ca.gradient(damping - springs, w)
        forces = self._forces(a, v, gravity=True) - own
        return ca.Function("inverse_dynamics", [q, v, a], [ca.densify(forces)])

    def _forces(self, a: ca.SX, v: ca.SX, gravity: bool) -> ca.SX:
        """Forces (nw) by the virtual power of all bodies, for virtual velocities w,
        `sum_i m_i v_i(w) . (v_i' - g) + omega_i(w) . (J_i omega_i' + omega_i x J_i omega_i)`,
        velocities of centers of mass in the world, angular ones in the bodies' axes.
        """
        q, rate = self._symbols
        w = ca.SX.sym("w", rate.numel())
        k, virtual = self.model.kinematics(q, rate), self.model.kinematics(q, w)
        weight = constant(self.model.gravity) if gravity else ca.DM.zeros(3)

        def derivative(of: ca.SX) -> ca.SX:
            return ca.jtimes(of, q, self._rate(q, rate)) + ca.jtimes(of, rate, a)

        power = ca.SX(0)
        for part in self.model.spatial_inertias:
            center, inertia = Point(part.frame, part.center), constant(part.inertia)
            linear = derivative(k.velocity(center)) - weight
            power += part.mass * ca.dot(virtual.velocity(center), linear)
            omega = k.motion(part.frame).omega
            angular = inertia @ derivative(omega) + ca.cross(omega, inertia @ omega)
            power += ca.dot(virtual.motion(part.frame).omega, angular)
        return ca.substitute(ca.gradient(power, w), rate, v)

    def _rate(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """Rate of the numbers of a configuration (nq) under a velocity v (nw)."""
        space = self.model.space
        d = ca.SX.sym("d", space.nv)
        rate = ca.jtimes(space.retract(q, d), d, space.frame(q).T @ v)
        return ca.substitute(rate, d, ca.SX.zeros(space.nv))

    # values --------------------------------------------------------------------------------------

    def _values(self, function: ca.Function, *arguments: ArrayLike) -> np.ndarray:
        """A function of one state, or of each row of tables."""
        names = ("a configuration", "a velocity", "an acceleration")
        given = [
            self._checked(argument, function.size1_in(i), names[i])
            for i, argument in enumerate(arguments)
        ]
        if len({value.shape[:-1] for value in given}) > 1:
            raise ValueError(
                f"{self.model.name}: expected as many rows of each, got shapes "
                f"{[value.shape for value in given]}"
            )
        rows, columns = function.size_out(0)
        table = np.asarray(function(*(value.T for value in given)))
        if given[0].ndim == 1:
            return table
        return table.reshape(rows, -1, columns).swapaxes(0, 1)

    def _checked(self, values: ArrayLike, n: int, what: str) -> np.ndarray:
        array = np.asarray(values, dtype=float)
        if array.ndim not in (1, 2) or array.shape[-1] != n:
            raise ValueError(
                f"{self.model.name}: {what} must have shape ({n},), or (N, {n}) for a table, got "
                f"{array.shape}"
            )
        return array


def _tried(lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ranges of random changes: the whole range of a joint, one turn where it has no end."""
    whole_turn = 2 * np.pi
    low = np.where(
        np.isfinite(lower),
        lower,
        np.where(np.isfinite(upper), upper - whole_turn, -whole_turn / 2),
    )
    return low, np.where(np.isfinite(upper), upper, low + whole_turn)


def _target(position: ArrayLike, rotation: ArrayLike | None) -> np.ndarray:
    """Rotation, row by row, and position (12); NaN where no rotation is asked for."""
    p = np.asarray(position, dtype=float)
    if p.shape != (3,) or not np.isfinite(p).all():
        raise ValueError(f"a position must be 3 finite numbers, got {p.tolist()}")
    if rotation is None:
        return np.concatenate([np.full(9, np.nan), p])
    matrix = np.asarray(rotation, dtype=float)
    if (
        matrix.shape != (3, 3)
        or not np.allclose(matrix.T @ matrix, np.eye(3), atol=1e-9)
        or np.linalg.det(matrix) < 0
    ):
        raise ValueError(f"a rotation must be a rotation matrix (3, 3), got {matrix.tolist()}")
    return np.concatenate([matrix.ravel(), p])
