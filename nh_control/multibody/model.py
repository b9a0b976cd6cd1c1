"""Multibody systems as a `System`, built from a tree of frames with bodies, springs, dampers,
inputs and constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.mechanics.checks import check_declaration
from nh_control.mechanics.system import System
from nh_control.multibody.checks import check_masses, check_parts, generic_configuration
from nh_control.multibody.contact_laws import unilateral_constraints
from nh_control.multibody.frame_motion import constant, three_numbers
from nh_control.multibody.frames import following_leaders
from nh_control.multibody.joint_inertia import moves_mass
from nh_control.multibody.kinematics import Kinematics, Point
from nh_control.multibody.parameters import ModelConstants, require_scale
from nh_control.multibody.parts import MultibodyParts
from nh_control.multibody.redundant_rows import named_rows, named_velocity_rows
from nh_control.multibody.wheel_rows import WheelRows

SEQUENCES = (
    "frames",
    "bodies",
    "elements",
    "inputs",
    "constraints",
    "prescribed",
    "parameters",
    "contacts",
    "wheels",
)


class Pose(NamedTuple):
    """Rotation matrix (3, 3) and position (3) of a frame in the world."""

    rotation: np.ndarray
    position: np.ndarray


@dataclass(frozen=True)
class Multibody(MultibodyParts):
    """A mechanical system built from a tree of `frames` with `bodies`, `elements`
    (springs, dampers), `inputs` and `constraints`. The root is "world", and each frame is listed
    after its parent.

    `system` is the `System` with `L = sum_i m_i |v_i + omega_i x c_i|^2 / 2 + omega_i^T J_i
    omega_i / 2 + m_i g . (r_i + R_i c_i) - V`, with velocities in the bodies' frames. A
    configuration consists of the poses of the joints with several coordinates, in the order of the
    frames, followed by an Rn for the joints with one coordinate.

    `prescribed` lists coordinates whose next values are inputs. These coordinates come last in the
    Rn. If `prescribed` lists the name of a `Distance`'s length, the length becomes an additional
    coordinate. The `contacts` between bodies and the ground open and close (see
    `multibody.contacts`). Their barrier has the height `smoothing` (J) (see `System`). The
    `wheels` roll or glide on the ground (see `multibody.wheels`). They add rows to the system's
    velocity constraint, and each wheel that the frames do not hold on the ground adds a holonomic
    constraint. `gravity` is in m/s^2, in the world axes. All masses and inertias are multiplied by
    the positive `mass_scale`. `parameters` lists the `constants` that are parameters of the
    system. Parameters can change at run time, and steps have derivatives with respect to them.

    Raises ValueError for duplicate or unknown names, and for coordinates that do not move any
    mass.
    """

    def __post_init__(self) -> None:
        for field in SEQUENCES:
            object.__setattr__(self, field, tuple(getattr(self, field)))
        object.__setattr__(self, "frames", following_leaders(self.frames))
        object.__setattr__(self, "gravity", three_numbers(self.gravity, f"{self.name}: gravity"))
        names = [c.name for c in self.constraints]
        if len(set(names)) < len(names):
            raise ValueError(f"{self.name}: constraint names must differ, got {names}")
        names = [name for i in self.inputs for name in i.names(self.tree)]
        if len(set(names)) < len(names):
            raise ValueError(f"{self.name}: input names must differ, got {names}")
        require_scale(self.name, self.mass_scale)
        q, v = self._symbols
        check_parts(self, self.kinematics(q, v))

    def __repr__(self) -> str:
        counts = f"{len(self.frames)} frames, {len(self.bodies)} bodies"
        loops = f", {len(self.constraints)} constraints" if self.constraints else ""
        return f"{type(self).__name__}({self.name!r}, {counts}{loops}, {self.space})"

    @cached_property
    def system(self) -> MultibodySystem:
        """The `System` of this model. Its `model` attribute refers back to this model."""
        # the mass matrix needs an expression only if the joints alone do not prove it regular
        if not self.is_known_regular:
            self.check_masses()
        wheels = self.wheel_rows
        return MultibodySystem(
            name=self.name,
            space=self.space,
            lagrangian=self._lagrangian,
            inputs=tuple(name for i in self.inputs for name in i.names(self.tree)),
            input_units=tuple(unit for i in self.inputs for unit in i.units(self.tree)),
            input_limits=np.vstack([i.limits() for i in self.inputs]) if self.inputs else None,
            force=self._force_if_any,
            velocity_constraint=wheels.rolling if wheels.n_rolling else None,
            velocity_drift=wheels.drift if wheels.n_rolling and wheels.moves_ground else None,
            holonomic_constraint=self._constraint if self.n_holonomic_parts else None,
            grips=wheels.grips,
            prescribed=tuple(self.prescribed),
            nominal=tuple(self._generic_configuration),
            parameters=self.constants.parameters,
            contacts=unilateral_constraints(self._with_parameters) if self.contacts else (),
            smoothing=self.smoothing,
            declaration=self,
        )

    @cached_property
    def constants(self) -> ModelConstants[Multibody]:
        """The model's constants by name. They are masses, centers, inertias, placements, and the
        dampers, friction and springs of joints.
        """
        return ModelConstants(self)

    def configuration(self, values: Mapping[str, float] = {}) -> np.ndarray:
        """Configuration (nq) with the named values. The other coordinates have their values at the
        space's origin. Raises ValueError for an unknown name.
        """
        return self._with_values(self.space.origin, self.space.names, values)

    def velocity(self, values: Mapping[str, float] = {}) -> np.ndarray:
        """Velocity (nw) with the named values. The other velocities are zero. Raises ValueError
        for an unknown name.
        """
        return self._with_values(np.zeros(self.space.nw), self.space.velocity_names, values)

    def poses(self, q: ArrayLike) -> dict[str, Pose]:
        """Poses of all frames by name at configuration q (nq)."""
        # each result column contains the nine entries of R in column order, then the position
        columns = np.asarray(self._poses(self._checked(q))).T.reshape(-1, 4, 3)
        return {name: Pose(c[:3].T, c[3]) for name, c in zip(self.tree.anchors, columns)}

    def pose(self, q: ArrayLike, frame: str) -> Pose:
        """Pose of a frame at configuration q (nq). Raises ValueError for an unknown frame."""
        return self.poses(q)[self.tree.checked_frame(frame)]

    def point(self, q: ArrayLike, point: Point | str) -> np.ndarray:
        """World position (3) of a point or of a frame's origin at configuration q (nq)."""
        point = point if isinstance(point, Point) else Point(point)
        pose = self.pose(q, point.frame)
        return pose.position + pose.rotation @ np.asarray(point.position)

    def check_masses(self) -> None:
        """Raises ValueError if the mass matrix of the free coordinates is singular at a
        configuration without aligned axes. The message names the velocities and frames that move
        no mass.
        """
        check_masses(self, self.mass_matrix(self._generic_configuration))

    def mass_matrix(self, q: ArrayLike) -> np.ndarray:
        """Mass matrix of the stored velocities, (nw, nw), at configuration q (nq). The prescribed
        coordinates are last.
        """
        return np.asarray(self._momentum(self._checked(q), np.eye(self.space.nw)))

    def constraint_residuals(self, q: ArrayLike) -> dict[str, np.ndarray]:
        """h(q) by name, for each constraint and for each wheel that the frames do not hold on the
        ground.
        """
        k = self.kinematics(ca.SX(self._checked(q)), ca.SX(self.space.nw, 1))
        residuals = {c.name: c.residual(k) for c in self.constraints}
        residuals |= {
            self.wheels[i].name: self.wheels[i].touch(k).gap for i in self.wheel_rows.heights_of
        }
        return {name: np.asarray(ca.DM(h)).reshape(-1) for name, h in residuals.items()}

    @cached_property
    def is_known_regular(self) -> bool:
        """Whether every joint, when only that joint moves, gives kinetic energy to the bodies on
        its frame. Followers that carry no mass are ignored.

        If so, the mass matrix is regular, by induction from the root, even if joints follow
        others. If not, the mass matrix may be regular or singular.
        """
        parts = {part.frame: part for part in self.spatial_inertias}
        carriers = set(parts)
        # find the frames that carry a body, from the leaves to the root
        for frame in reversed(self.frames):
            if frame.name in carriers:
                carriers.add(self.tree.anchors[frame.parent].frame)
        # a joint that moves mass alone adds a positive pivot to the mass matrix
        return all(
            frame.name in parts and moves_mass(frame, parts[frame.name])
            for frame in self.frames
            if not (frame.is_fixed or frame.coordinate in self.prescribed)
            and not (frame.mimic and frame.name not in carriers)
        )

    @cached_property
    def wheel_rows(self) -> WheelRows:
        """The rows of the wheels."""
        return WheelRows(self._with_parameters)

    @property
    def n_holonomic_parts(self) -> int:
        """Number of constraints, plus the number of wheels that the frames do not hold on the
        ground.
        """
        return len(self.constraints) + len(self.wheel_rows.heights_of)

    @property
    def is_constrained(self) -> bool:
        """Whether the model has constraints or wheels."""
        return bool(self.constraints or self.wheels)

    @property
    def _force_if_any(self) -> Callable[..., ca.SX] | None:
        return self._force if self.elements or self.inputs else None

    def _with_parameters(self, values: Any) -> Multibody:
        return self if values is None else self.constants.model_with(vars(values))

    def _lagrangian(self, q: ca.SX, v: ca.SX, values: Any = None) -> ca.SX:
        # L = T - V
        k = (model := self._with_parameters(values)).kinematics(q, v)
        return model._kinetic(k) - model._potential(k)

    def _kinetic(self, k: Kinematics) -> ca.SX:
        energy = ca.SX(0)
        for part in self.spatial_inertias:
            motion, inertia = k.motion(part.frame), constant(part.inertia)
            # T = m |v_c|^2 / 2 + omega^T J_c omega / 2
            energy += part.mass / 2 * k.squared_speed(Point(part.frame, part.center))
            energy += ca.dot(motion.omega, inertia @ motion.omega) / 2
        return energy

    def _potential(self, k: Kinematics) -> ca.SX:
        gravity = constant(self.gravity)
        # V = sum V_element - sum m g . r_c
        weights = (
            part.mass * ca.dot(gravity, k.position(Point(part.frame, part.center)))
            for part in self.spatial_inertias
        )
        return sum((e.potential(k) for e in self.elements), ca.SX(0)) - sum(weights, ca.SX(0))

    def _force(self, q: ca.SX, v: ca.SX, u: ca.SX, values: Any = None) -> ca.SX:
        """Generalized forces, computed as the derivative of the power with respect to a virtual
        velocity w.
        """
        model, w = self._with_parameters(values), ca.SX.sym("w", self.space.nw)
        k, virtual = model.kinematics(q, v), model.kinematics(q, w)
        power = sum((e.power(k, virtual) for e in model.elements), ca.SX(0))
        i = 0
        for entry in self.inputs:
            n = len(entry.names(self.tree))
            power += entry.power(virtual, u[i : i + n])
            i += n
        return ca.gradient(power, w)

    def _constraint(self, q: ca.SX, values: Any = None) -> ca.SX:
        k = self._with_parameters(values).kinematics(q, ca.SX(self.space.nw, 1))
        closures = (c.residual(k) for c in self.constraints)
        return ca.vertcat(*closures, self.wheel_rows.heights(q, values))

    @cached_property
    def _generic_configuration(self) -> np.ndarray:
        return generic_configuration(self)

    @cached_property
    def _symbols(self) -> tuple[ca.SX, ca.SX]:
        return ca.SX.sym("q", self.space.nq), ca.SX.sym("v", self.space.nw)

    @cached_property
    def _momentum(self) -> ca.Function:
        q, v = self._symbols
        # M e_i is the momentum dT/dv at v = e_i, so calls with v = 1 evaluate M
        return ca.Function(
            "momentum", [q, v], [ca.densify(ca.gradient(self._kinetic(self.kinematics(q, v)), v))]
        )

    @cached_property
    def _poses(self) -> ca.Function:
        q, v = self._symbols
        k = self.kinematics(q, v)
        columns = [
            ca.vertcat(ca.vec(k.motion(name).R), k.motion(name).r) for name in self.tree.anchors
        ]
        return ca.Function("poses", [q], [ca.densify(ca.horzcat(*columns))])

    def _checked(self, q: ArrayLike) -> np.ndarray:
        q = np.asarray(q, dtype=float)
        if q.shape != (self.space.nq,):
            raise ValueError(
                f"{self.name}: a configuration must have shape ({self.space.nq},), got {q.shape}"
            )
        return q

    def _with_values(
        self, start: np.ndarray, names: Sequence[str], values: Mapping[str, float]
    ) -> np.ndarray:
        out = np.array(start)
        for name, value in values.items():
            if name not in names:
                raise ValueError(f"{self.name}: unknown name {name!r}; choose from {list(names)}")
            out[names.index(name)] = value
        return out


@dataclass(frozen=True, repr=False)
class MultibodySystem(System):
    """The `System` of a `Multibody`, which is its `model`. The model is None for a copy made by
    `dataclasses.replace`, because the copy's functions may differ.

    A system without constraints and with a mass on every joint is regular. No expression is then
    needed to check it.
    """

    declaration: InitVar[Multibody | None] = None

    def __post_init__(self, declaration: Multibody | None) -> None:
        object.__setattr__(self, "_model", declaration)
        if (
            declaration is not None
            and declaration.is_known_regular
            and not declaration.is_constrained
        ):
            check_declaration(self)
        else:
            super().__post_init__()

    @property
    def model(self) -> Multibody | None:
        """The model that defines the functions of this system."""
        return self.__dict__["_model"]

    def named_velocity_rows(self, rows: Sequence[int]) -> str:
        if self.model is None:
            return super().named_velocity_rows(rows)
        return named_velocity_rows(self.model, rows)

    def named_rows(self, rows: Sequence[int]) -> str:
        if self.model is None:
            return super().named_rows(rows)
        return named_rows(self.model, self.model.wheel_rows.heights_of, rows)
