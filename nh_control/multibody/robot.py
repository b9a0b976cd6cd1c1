"""Kinematics and dynamics of a robot by the names of the field: Jacobians, inverse kinematics,
inverse dynamics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.multibody.model import Multibody, Pose
from nh_control.multibody.robot_functions import RobotFunctions

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
        """Joints with one coordinate, in the order of a configuration, without joints that follow
        others.
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
        pose = self._values(self._functions.pose(frame), q)
        return Pose(pose[..., :3], pose[..., 3])

    def frame_jacobian(self, q: ArrayLike, frame: str, axes: str = "world") -> np.ndarray:
        """Jacobian J (6, nw) of a frame's twist at its origin, `(omega, p') = J v`, in the axes of
        the world, or of the frame for "body". Raises ValueError for other axes.
        """
        if axes not in ("world", "body"):
            raise ValueError(f"axes must be 'world' or 'body', got {axes!r}")
        return self._values(self._functions.jacobian(frame, axes), q)

    def mass_matrix(self, q: ArrayLike) -> np.ndarray:
        """Mass matrix M (nw, nw)."""
        return self._values(self._functions.mass_matrix, q)

    def gravity(self, q: ArrayLike) -> np.ndarray:
        """Forces (nw) that hold the weight of the robot at rest, without forces of springs."""
        return self._values(self._functions.gravity, q)[..., 0]

    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> np.ndarray:
        """Forces (nw) of the inputs under which v changes by a, per component, in m/s^2 and
        rad/s^2: `M a + c(q, v) + g(q)`, less the forces of springs and dampers
        [featherstone2008, ch. 5].
        """
        return self._values(self._functions.inverse_dynamics, q, v, a)[..., 0]

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

        difference = self._functions.pose_error(frame)
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

    @cached_property
    def _functions(self) -> RobotFunctions:
        return RobotFunctions(self.model)

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
