"""External forces on coordinates, points and bodies, such as wind, as additional inputs of a
system.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import SE2, Product, Rn, Space
from nh_control.mechanics.system import System
from nh_control.numerics.expressions import Graph, as_expression

FORCE, TORQUE = ("force_x", "force_y", "force_z"), ("torque_x", "torque_y", "torque_z")


@dataclass(frozen=True)
class ForceTarget:
    """A target of external forces. `force(q, v, w, p)` is the generalized force (nw) that results
    from the components w, in `units`, at the system's parameters p. For a target that changes the
    ground, `friction(w)` multiplies the friction in all contacts and grips.
    """

    name: str
    components: tuple[str, ...]
    units: tuple[str, ...]
    force: Callable[[Graph, Graph, Graph, Any], Graph]
    description: str = ""
    friction: Callable[[Graph], Graph] | None = None

    @property
    def n(self) -> int:
        """Number of components."""
        return len(self.components)

    @property
    def n_forces(self) -> int:
        """Number of leading force components, or number of all components if all are torques."""
        return sum(not c.startswith("torque") for c in self.components) or self.n


def with_external_forces(system: System, targets: Iterable[ForceTarget]) -> System:
    """The system with the components of all targets as additional inputs:
    `f(q, v, (u, w)) = f(q, v, u) + sum f_i(q, v, w_i)`. These inputs have the names
    `<target>_<component>` and no limits. In a discrete system, the next values of prescribed
    coordinates are still the last inputs.
    """
    targets = tuple(targets)
    nu, added = system.nu, sum(target.n for target in targets)

    def force(q: Graph, v: Graph, u: Graph, *p: Any) -> Graph:
        internal = ca.SX(system.space.nw, 1)
        if system.force is not None:
            internal = as_expression(system.force(q, v, u[:nu], *p))
        total, i = ca.vertcat(internal), nu
        for target in targets:
            total += target.force(q, v, u[i : i + target.n], p[0] if p else system.parameters)
            i += target.n
        return total

    def friction_factor(q: Graph, u: Graph, *p: Any) -> Graph:
        factor, i = ca.SX(1), nu
        if system.friction_factor is not None:
            factor = as_expression(system.friction_factor(q, u[:nu], *p))
        for target in targets:
            if target.friction is not None:
                factor *= target.friction(u[i : i + target.n])
            i += target.n
        return factor

    # external forces have no limits
    free = np.tile([-np.inf, np.inf], (added, 1))

    # forces, external forces, prescribed coordinates
    def extended(limits: np.ndarray) -> np.ndarray:
        return np.vstack([limits[:nu], free, limits[nu:]])

    limits, rate = system.input_limits, system.first_order_rate
    return replace(
        system,
        name=f"{system.name}_disturbed",
        inputs=system.inputs + tuple(f"{t.name}_{c}" for t in targets for c in t.components),
        input_units=(system.input_units or ("",) * nu)
        + tuple(u for t in targets for u in t.units),
        input_limits=(
            (lambda p: extended(np.asarray(limits(p))))
            if callable(limits)
            else extended(system.input_bounds)
        ),
        force=force,
        outputs=tuple(
            output.behind(system.space.nq, system.space.nw, lambda q, v, u, *p: u[:nu])
            for output in system.outputs
        ),
        friction_factor=friction_factor if system.has_contacts else None,
        first_order_rate=rate and (lambda q, v, u, *p: rate(q, v, u[:nu], *p)),
    )


def in_space(targets: Mapping[str, ForceTarget]) -> dict[str, ForceTarget]:
    """The targets, by name, whose components are forces and torques along spatial axes."""
    along = {*FORCE, *TORQUE}
    return {name: target for name, target in targets.items() if set(target.components) <= along}


def on_point(
    space: Space, name: str, position: Callable[[Graph, Any], Graph], description: str = ""
) -> ForceTarget:
    """A force (N) at the point `position(q, p)` (3) in m, in the axes of this position. The
    generalized force is `J(q)^T w`, where J is the derivative of the position.
    """
    return ForceTarget(
        name,
        FORCE,
        ("N",) * 3,
        lambda q, v, w, p: _dual(space, q, lambda moved: ca.dot(w, position(moved, p))),
        description or f"force at {name}",
    )


def on_body(
    space: Space,
    name: str,
    pose: Callable[[Graph, Any], tuple[Graph, Graph]],
    description: str = "",
) -> ForceTarget:
    """A force (N) at the origin of a body and a torque (N m) on it, both in the axes in which
    `pose(q, p)` (position (3), rotation (3, 3)) is expressed.
    """

    def force(q: Graph, v: Graph, w: Graph, p: Any) -> Graph:
        rotation = pose(q, p)[1]

        def work(moved: Graph) -> Graph:
            # f . x + tau . phi, with phi the small rotation from the pose at q
            position, moved_rotation = pose(moved, p)
            return ca.dot(w[:3], position) + ca.dot(
                w[3:], _rotation_vector(moved_rotation @ rotation.T)
            )

        return _dual(space, q, work)

    units = ("N",) * 3 + ("N m",) * 3
    return ForceTarget(
        name, FORCE + TORQUE, units, force, description or f"force at the origin of {name}, torque"
    )


def on_planar_body(
    space: Space, name: str, pose: Callable[[Graph, Any], Graph], description: str = ""
) -> ForceTarget:
    """A force (N) along the x and y axes at the origin of a planar body with the pose `pose(q, p)`
    (theta, x, y), and a torque (N m) about the vertical.
    """

    def force(q: Graph, v: Graph, w: Graph, p: Any) -> Graph:
        def work(moved: Graph) -> Graph:
            theta, x, y = ca.vertsplit(ca.vertcat(pose(moved, p)))
            return w[0] * x + w[1] * y + w[2] * theta

        return _dual(space, q, work)

    return ForceTarget(
        name,
        ("force_x", "force_y", "torque_z"),
        ("N", "N", "N m"),
        force,
        description or f"force at the origin of {name}, torque about the vertical",
    )


LEAST_FRICTION = 1e-3
"""Minimum friction factor, reached on ice."""


def on_ground(space: Space) -> ForceTarget:
    """The target "ground", which models ice. Its component `loss` (0 to 1) multiplies the friction
    in all contacts and grips by `max(1 - loss, 0.001)`.
    """
    return ForceTarget(
        "ground",
        ("friction_loss",),
        ("1",),
        lambda q, v, w, p: ca.SX(space.nw, 1),
        "share of all friction that is lost, as on ice, 0 ... 1",
        friction=lambda w: ca.fmax(1 - w, LEAST_FRICTION),
    )


def on_coordinates(
    space: Space, prescribed: Collection[str] = (), units: dict[str, str] | None = None
) -> tuple[ForceTarget, ...]:
    """A generalized force, dual to the velocity, on every coordinate that is not prescribed.

    Components are named after the tangent vectors. On spheres, the force acts on the direction in
    space, and components are named after the configuration. `units` overrides the units "N" and "N
    m" by coordinate.
    """
    targets, i = [], 0
    for factor in _factors(space):
        # on a sphere, the force acts on the vector in space
        names = factor.tangent_names if factor.nv == factor.nw else factor.names
        for j, name in enumerate(names):
            known = _unit(factor, name, j)
            if name not in prescribed:
                unit = (units or {}).get(name, known)
                targets.append(_on_velocity(name, unit, i + j, space.nw))
        i += factor.nw
    return tuple(targets)


def _on_velocity(name: str, unit: str, i: int, nw: int) -> ForceTarget:
    def force(q: Graph, v: Graph, w: Graph, p: Any) -> Graph:
        out = ca.SX(nw, 1)
        out[i] = w
        return out

    kind = {"N": "force", "N m": "torque"}.get(unit, "force or torque")
    return ForceTarget(name, ("external",), (unit,), force, f"{kind} on the coordinate {name}")


def _unit(factor: Space, name: str, j: int) -> str:
    """The unit of the force on a coordinate of Rn, or on component j of a group or sphere. A group
    has torques for rotations, then forces for translations.
    """
    if isinstance(factor, Rn):
        return {"m": "N", "rad": "N m"}.get(factor.units.get(name, ""), "N or N m")
    rotations = 1 if isinstance(factor, SE2) else 3
    return "N m" if j < rotations else "N"


def _dual(space: Space, q: Graph, work: Callable[[Graph], Graph]) -> Graph:
    """The generalized force (nw) whose virtual work along velocities is the first variation of
    `work(q)`.

    The velocity of a direction is its derivative as a vector in space, so the component of a force
    along the direction does no work.
    """
    # gradient of work(retract(q, e)) at e = 0; on spheres, of work(q + e)
    e, moved, i, j = ca.SX.sym("e", space.nw), [], 0, 0
    for factor in _factors(space):
        # a direction varies as a vector in R^3
        part, change = q[i : i + factor.nq], e[j : j + factor.nw]
        moved.append(factor.retract(part, change) if factor.nv == factor.nw else part + change)
        i, j = i + factor.nq, j + factor.nw
    gradient = ca.gradient(work(ca.vertcat(*moved)), e)
    return ca.substitute(gradient, e, ca.SX.zeros(space.nw))


def _factors(space: Space) -> tuple[Space, ...]:
    return space.factors if isinstance(space, Product) else (space,)


def _rotation_vector(rotation: Graph) -> Graph:
    """The rotation vector (3) for a small rotation, to first order."""
    # vee of the skew part
    r = rotation
    return ca.vertcat(r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]) / 2
