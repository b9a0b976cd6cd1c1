"""Kinematics and dynamics of a robot under their usual names, such as Jacobians, inverse
kinematics and inverse dynamics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.multibody.model import Multibody, Pose
from nh_control.multibody.robot_functions import RobotFunctions

TOLERANCE, STARTS = 1e-8, 30
"""Distance (m, rad) within which a pose counts as reached, and the maximum number of initial
guesses to reach it.
"""


class NoSolution(ValueError):
    """Inverse kinematics found no configuration. The error contains the nearest configuration q
    (nq) and its distances from the pose, in m and rad.
    """

    def __init__(self, message: str, q: np.ndarray, distance_m: float, angle_rad: float):
        super().__init__(message)
        self.q, self.distance_m, self.angle_rad = q, distance_m, angle_rad


@dataclass(frozen=True, eq=False)
class Robot:
    """Kinematics and dynamics of a `Multibody`, such as a model from `load_urdf`. All functions
    accept a configuration q (nq) and return one result, or accept a table of configurations
    (N, nq) and return a table of results.

    Velocities v, accelerations a and forces (nw) are in the order of `velocity_names`, in SI
    units. A twist is `(angular, linear)` and a wrench `(torque, force)`. This is the order in
    [featherstone2008, 2.1], not the order in Pinocchio. Raises ValueError for a model with
    constraints or prescribed coordinates. All functions raise ValueError for unknown frames and
    wrong shapes.
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
        """Joints with one coordinate, except those that follow other joints, in the order of a
        configuration.
        """
        return tuple(self.model.tree.scalars)

    @property
    def velocity_names(self) -> tuple[str, ...]:
        """Names of the velocity components (nw)."""
        return tuple(self.model.space.velocity_names)

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Names of the frames, which are the links of a URDF."""
        return tuple(self.model.tree.anchors)

    def frame_pose(self, q: ArrayLike, frame: str) -> Pose:
        """Rotation (3, 3) and position (3) of a frame in the world."""
        pose = self._values(self._functions.pose(frame), q)
        return Pose(pose[..., :3], pose[..., 3])

    def frame_jacobian(self, q: ArrayLike, frame: str, axes: str = "world") -> np.ndarray:
        """Jacobian J (6, nw) of a frame's twist at its origin, `(omega, r') = J v`, in the world
        axes, or in the frame's axes for "body". Raises ValueError for other axes.
        """
        if axes not in ("world", "body"):
            raise ValueError(f"axes must be 'world' or 'body', got {axes!r}")
        return self._values(self._functions.jacobian(frame, axes), q)

    def mass_matrix(self, q: ArrayLike) -> np.ndarray:
        """Mass matrix M (nw, nw)."""
        return self._values(self._functions.mass_matrix, q)

    def gravity(self, q: ArrayLike) -> np.ndarray:
        """Forces (nw) that hold the weight of the robot at rest. Spring forces are not
        included.
        """
        return self._values(self._functions.gravity, q)[..., 0]

    @property
    def total_mass(self) -> float:
        """Mass of all bodies that are not fixed to the world, in kg."""
        return self._functions.total_mass

    def center_of_mass(self, q: ArrayLike) -> np.ndarray:
        """Center of mass r (3) of the bodies that are not fixed to the world, in m. Raises
        ValueError for a robot without mass.
        """
        self._require_mass()
        return self._values(self._functions.center_of_mass, q)[..., 0]

    def center_of_mass_jacobian(self, q: ArrayLike) -> np.ndarray:
        """Jacobian J (3, nw) of the center of mass, `r' = J v`, in the world axes. Raises
        ValueError for a robot without mass.
        """
        self._require_mass()
        return self._values(self._functions.center_of_mass_jacobian, q)

    def coriolis_forces(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """Coriolis and centrifugal forces c (nw) in `M a + c(q, v) + g(q) = f`."""
        return self._values(self._functions.coriolis_forces, q, v)[..., 0]

    def forward_dynamics(self, q: ArrayLike, v: ArrayLike, force: ArrayLike) -> np.ndarray:
        """Accelerations a = v' (nw) under the input forces `force` (nw) and the spring and damper
        forces. Without springs and dampers, they are `M^-1 (force - c(q, v) - g(q))`. This
        function is the inverse of `inverse_dynamics`.
        """
        forces = self._checked(force, self.model.space.nw, "a force")
        # M a = f - (c + g), and inverse dynamics at a = 0 returns c + g
        excess = forces - self.inverse_dynamics(q, v, np.zeros_like(forces))
        return np.linalg.solve(self.mass_matrix(q), excess[..., None])[..., 0]

    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> np.ndarray:
        """Input forces (nw) that cause the accelerations a = v' (nw; m/s^2 and rad/s^2). They are
        `M a + c(q, v) + g(q)` minus the spring and damper forces [featherstone2008, ch. 5].
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
        """Configuration (nq), within the ranges of the joints, at which a frame has the given
        position (3) and, if not None, rotation (3, 3) in the world.

        Solves bounded least-squares problems with the exact Jacobian, first from `start` (nq, by
        default the origin of the space), then from random configurations within the ranges, which
        `seed` makes reproducible. Returns the first solution within the tolerance (m, rad).
        Coordinates named in `fixed`, for example those of a floating base, keep their initial
        values. Raises NoSolution with the nearest configuration if there is no solution, and
        ValueError for unknown names and for a matrix that is not a rotation.
        """
        space, name = self.model.space, self.model.tree.checked_frame(frame)
        if unknown := [name for name in fixed if name not in space.tangent_names]:
            raise ValueError(
                f"{self.model.name}: unknown coordinates {unknown} in `fixed`, choose from "
                f"{list(space.tangent_names)}"
            )
        free = np.array([n not in fixed for n in space.tangent_names])
        origin = np.asarray(space.origin if start is None else start, dtype=float)
        lower, upper = self._ranges(self._checked(origin, space.nq, "a configuration"))
        target = _target(position, rotation)
        random, nearest = np.random.default_rng(seed), (np.inf, origin, np.inf, np.inf)
        for k in range(starts):
            # a change (nv) of the initial guess, within the ranges
            change = np.clip(np.zeros(space.nv), lower, upper)
            if k:
                low, high = _sampling_range(lower, upper)
                change = random.uniform(low, high)
            change[~free] = 0.0
            q = self._closest(name, target, origin, change, free, (lower, upper))
            distance, angle = self._distance(name, target, q)
            nearest = min(nearest, (distance + angle, q, distance, angle), key=itemgetter(0))
            if max(distance, angle) <= tolerance:
                return q
        _, q, distance, angle = nearest
        raise NoSolution(
            f"{self.model.name}: found no configuration within the ranges that brings {frame} to "
            f"the pose; the nearest of {starts} tries misses it by {distance:.2g} m and "
            f"{angle:.2g} rad; choose a reachable pose, a `start` close to a solution, or more "
            "`starts`",
            q,
            distance,
            angle,
        )

    # solving for a pose --------------------------------------------------------------------------

    def _ranges(self, origin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Minimum and maximum changes (nv) of a configuration within the joints' ranges."""
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
        """Configuration (nq) at a local minimum of the squared distance. The search begins at the
        origin plus a change.
        """
        from scipy.optimize import least_squares  # slow to import

        difference = self._functions.pose_error(frame)
        bounds = tuple(bound[free] for bound in ranges)
        moving = bounds[0] < bounds[1]  # a joint with a range of zero length is fixed
        places = np.flatnonzero(free)[moving]
        # a target without rotation has NaN in its first nine entries
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
        """Distance in m and angle in rad between a frame and its target pose."""
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

    def _require_mass(self) -> None:
        if not self.total_mass > 0:
            raise ValueError(
                f"{self.model.name} has no mass: give its bodies masses, <inertial> in a URDF"
            )

    # values --------------------------------------------------------------------------------------

    def _values(self, function: ca.Function, *arguments: ArrayLike) -> np.ndarray:
        """The value of a function at one state, or at each row of tables."""
        names = ("a configuration", "a velocity", "an acceleration")
        tables = [
            self._checked(argument, function.size1_in(i), names[i])
            for i, argument in enumerate(arguments)
        ]
        if len({table.shape[:-1] for table in tables}) > 1:
            raise ValueError(
                f"{self.model.name}: expected the same number of rows in all tables, got shapes "
                f"{[table.shape for table in tables]}"
            )
        rows, columns = function.size_out(0)
        # CasADi maps a function over columns, so N states return (rows, N columns)
        values = np.asarray(function(*(table.T for table in tables)))
        if tables[0].ndim == 1:
            return values
        return values.reshape(rows, -1, columns).swapaxes(0, 1)

    def _checked(self, values: ArrayLike, n: int, what: str) -> np.ndarray:
        array = np.asarray(values, dtype=float)
        if array.ndim not in (1, 2) or array.shape[-1] != n:
            raise ValueError(
                f"{self.model.name}: {what} must have shape ({n},), or (N, {n}) for a table, got "
                f"{array.shape}"
            )
        return array


def _sampling_range(lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ranges of random changes. They are the whole range of a joint, or one turn if that range is
    infinite.
    """
    whole_turn = 2 * np.pi
    low = np.where(
        np.isfinite(lower),
        lower,
        np.where(np.isfinite(upper), upper - whole_turn, -whole_turn / 2),
    )
    return low, np.where(np.isfinite(upper), upper, low + whole_turn)


def _target(position: ArrayLike, rotation: ArrayLike | None) -> np.ndarray:
    """Rotation, row by row, followed by the position (12). The rotation is NaN if it has no
    target.
    """
    point = np.asarray(position, dtype=float)
    if point.shape != (3,) or not np.isfinite(point).all():
        raise ValueError(f"a position must be 3 finite numbers, got {point.tolist()}")
    if rotation is None:
        return np.concatenate([np.full(9, np.nan), point])
    matrix = np.asarray(rotation, dtype=float)
    if (
        matrix.shape != (3, 3)
        or not np.allclose(matrix.T @ matrix, np.eye(3), atol=1e-9)
        or np.linalg.det(matrix) < 0
    ):
        raise ValueError(f"a rotation must be a rotation matrix (3, 3), got {matrix.tolist()}")
    return np.concatenate([matrix.ravel(), point])
