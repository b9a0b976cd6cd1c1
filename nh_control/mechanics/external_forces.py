"""Forces from outside, such as wind, as further inputs of a system: on coordinates, points and
bodies.
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
    """A target of external forces: `force(q, v, w, p)` is the generalized force (nw) of its
    components w, in `units`, at the system's parameters p. If it changes the ground, `friction(w)`
    multiplies the friction of all contacts and grips.
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
        """Number of leading force components; all components if all are torques."""
        return sum(not c.startswith("torque") for c in self.components) or self.n


def with_external_forces(system: System, targets: Iterable[ForceTarget]) -> System:
    """The system with the components of all targets as further inputs without limits, named
    `<target>_<component>`, after its own: `f(q, v, (u, w)) = f(q, v, u) + sum f_i(q, v, w_i)`.

    In a discrete system the next values of prescribed coordinates still come last.
    """
    targets = tuple(targets)
    nu, added = system.nu, sum(target.n for target in targets)

    def force(q: Graph, v: Graph, u: Graph, *p: Any) -> Graph:
        own = ca.SX(system.space.nw, 1)
        if system.force is not None:
            own = as_expression(system.force(q, v, u[:nu], *p))
        total, i = ca.vertcat(own), nu
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

    free = np.tile([-np.inf, np.inf], (added, 1))

    def extended(limits: np.ndarray) -> np.ndarray:
        return np.vstack([limits[:nu], free, limits[nu:]])

    given, rate = system.input_limits, system.first_order_rate
    return replace(
        system,
        name=f"{system.name}_disturbed",
        inputs=system.inputs + tuple(f"{t.name}_{c}" for t in targets for c in t.components),
        input_units=(system.input_units or ("",) * nu)
        + tuple(u for t in targets for u in t.units),
        input_limits=(
            (lambda p: extended(np.asarray(given(p))))
            if callable(given)
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
    """Targets whose components are forces and torques along the axes, by name."""
    along = {*FORCE, *TORQUE}
    return {name: one for name, one in targets.items() if set(one.components) <= along}


def on_point(
    space: Space, name: str, position: Callable[[Graph, Any], Graph], description: str = ""
) -> ForceTarget:
    """A force (N) at the point `position(q, p)` (3) in m, along the axes of this position:
    `J(q)^T w` with J the derivative of the position.
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
    """A force (N) at the origin of a body with the pose (position (3), rotation (3, 3)) of
    `pose(q, p)`, and a torque (N m), both in the axes that the pose is given in.
    """

    def force(q: Graph, v: Graph, w: Graph, p: Any) -> Graph:
        rotation = pose(q, p)[1]

        def work(moved: Graph) -> Graph:
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
    """A force (N) at the origin of a planar body with the pose (theta, x, y) of `pose(q, p)`, in
    the axes of x and y, and a torque (N m) about the vertical.
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
"""Smallest factor of the friction on ice."""


def on_ground(space: Space) -> ForceTarget:
    """Ice: the target "ground" has one component `loss` from 0 to 1, which multiplies the friction
    of all contacts and grips by `max(1 - loss, 0.001)`.
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
    """A generalized force on every coordinate that is not prescribed, dual to its velocity.

    The components have the names of the tangent vectors; on spheres, where the force acts on the
    direction in space, the names of the configuration. `units` overrides the units "N" and "N m"
    by coordinate.
    """
    targets, i = [], 0
    for factor in _factors(space):
        names = factor.tangent_names if factor.nv == factor.nw else factor.names
        for j, name in enumerate(names):
            known = "N or N m" if isinstance(factor, Rn) else _unit(factor, j)
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


def _unit(factor: Space, j: int) -> str:
    """Units of a group's or sphere's components: torques of rotations, then forces of
    translations."""
    rotations = 1 if isinstance(factor, SE2) else 3
    return "N m" if j < rotations else "N"


def _dual(space: Space, q: Graph, work: Callable[[Graph], Graph]) -> Graph:
    """Generalized force (nw) that does the virtual work `work(q)` along velocities, to first
    order.

    The velocity of a direction is its derivative as a vector in space, so that the component of a
    force along the direction does no work.
    """
    e, moved, i, j = ca.SX.sym("e", space.nw), [], 0, 0
    for factor in _factors(space):
        part, change = q[i : i + factor.nq], e[j : j + factor.nw]
        moved.append(factor.retract(part, change) if factor.nv == factor.nw else part + change)
        i, j = i + factor.nq, j + factor.nw
    gradient = ca.gradient(work(ca.vertcat(*moved)), e)
    return ca.substitute(gradient, e, ca.SX.zeros(space.nw))


def _factors(space: Space) -> tuple[Space, ...]:
    return space.factors if isinstance(space, Product) else (space,)


def _rotation_vector(rotation: Graph) -> Graph:
    """Rotation vector (3) of a small rotation, to first order."""
    r = rotation
    return ca.vertcat(r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]) / 2
