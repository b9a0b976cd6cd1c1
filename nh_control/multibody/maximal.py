"""Maximal coordinates, in which each body of a multibody system has a floating frame and the
joints are constraints [mueller2013].
"""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.multibody.bodies import Body, SpatialInertia
from nh_control.multibody.frames import WORLD, Frame, fixed, floating
from nh_control.multibody.joint_types import (
    CONFIGURATION_SPACES,
    Floating,
    Helical,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    ScalarJoint,
    Spherical,
)
from nh_control.multibody.joints import JointConstraint
from nh_control.multibody.kinematics import Point
from nh_control.multibody.model import Multibody
from nh_control.numerics.expressions import Vector

KINDS: dict[type[Joint], str] = {
    Revolute: "revolute",
    Helical: "helical",
    Prismatic: "prismatic",
    Planar: "planar",
    Spherical: "spherical",
}
CENTER_SUFFIX = "_center"
"""Suffix that is appended to the name of a body's frame to name its floating frame."""
PARALLEL = 1e-9
"""Sine of the angle below which two axes count as parallel."""


def maximal_coordinates(
    model: Multibody, spaces: str | Mapping[str, str] = "SE3", name: str = ""
) -> Multibody:
    """The same bodies in maximal coordinates. Each body has a floating frame `<frame>_center` at
    its center of mass, and the joints of the tree become constraints named after their
    coordinates.

    `spaces` is the configuration space for all bodies, or maps the name of a body's frame to its
    space (SE3 by default). The space is "SE3" with twists in the body's axes, or "SO3xR3" with
    linear velocities in the world axes. On both spaces, the mass matrix is constant, because the
    frames are at the centers of mass. Two joints without a body between them become one universal
    or cylindrical joint. Springs, dampers and inputs on revolute, prismatic and helical joints are
    kept. `maximal_state` converts configurations and velocities.

    Raises ValueError for any other joint without a body, for mimic or prescribed joints, for
    springs, dampers and inputs on other joints, and for unknown names.
    """
    inertias = {part.frame: part for part in model.spatial_inertias}
    _check(model, inertias, spaces)
    frames: list[Frame] = []
    bodies, joints = [], []
    for frame in model.frames:
        # frames fixed to the world or to a body remain; frames without a body between joints are
        # removed
        if frame.is_fixed and model.tree.anchors[frame.name][0] in (WORLD, *inertias):
            frames.append(frame)
        elif frame.name in inertias:
            space = spaces if isinstance(spaces, str) else spaces.get(frame.name, "SE3")
            # with the frame at the center of mass, the mass matrix is constant
            part, center = inertias[frame.name], frame.name + CENTER_SUFFIX
            frames.append(floating(center, coordinate=frame.name, space=space))
            frames.append(fixed(frame.name, center, position=tuple(-part.center)))
            body = Body(center, part.mass, inertia=part.inertia, accept_any_inertia=True)
            bodies.append(body)
            if not isinstance(frame.joint, Floating):
                joints.append(_joint(model, frame, inertias))
    return Multibody(
        name or f"{model.name}_{spaces if isinstance(spaces, str) else 'mixed'}",
        frames,
        bodies,
        model.elements,
        model.inputs,
        (*joints, *model.constraints),
        model.tree.length_coordinates,
        model.gravity,
        contacts=model.contacts,
        smoothing=model.smoothing,
        wheels=model.wheels,
    )


def maximal_state(
    model: Multibody, q: ArrayLike, v: ArrayLike, maximal: Multibody
) -> tuple[np.ndarray, np.ndarray]:
    """Configuration (nq) and velocity (nw) at which all bodies of `maximal`, the model in maximal
    coordinates, have the same poses and velocities as in `model` at q and v.

    """
    from scipy.spatial.transform import Rotation  # slow to import

    inertias = {part.frame: part for part in model.spatial_inertias}
    k = model.kinematics(ca.SX(np.asarray(q, float)), ca.SX(np.asarray(v, float)))
    values: dict[str, float] = {}
    rates: dict[str, float] = {}
    for frame in maximal.frames:
        if not isinstance(frame.joint, Floating):
            continue
        body, world = frame.coordinate, frame.joint.configuration_space != "SE3"
        center = Point(body, tuple(inertias[body].center))
        rotation = Rotation.from_matrix(_numbers(k.rotation(body)))
        # SciPy orders quaternions as (x, y, z, w), and the space orders them as (w, x, y, z)
        pose = rotation.as_quat(canonical=True)[[3, 0, 1, 2]], _numbers(k.position(center))[:, 0]
        velocity = k.velocity(center, "world" if world else "body")
        twist = _numbers(ca.vertcat(k.motion(body).omega, velocity))[:, 0]
        space = frame.joint.space(body)
        values |= dict(zip(space.names, np.concatenate(pose)))
        rates |= dict(zip(space.velocity_names, twist))
    configuration = maximal.configuration(values)
    return configuration, maximal.velocity(rates)


def joint_reactions(
    model: Multibody, q: ArrayLike, v: ArrayLike, u: ArrayLike = ()
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Reactions of every `JointConstraint` by name. Each reaction consists of the force (3, N) on
    the body of point b and the torque (3, N m) about that point, in the world axes.

    The multipliers solve the index-1 system `[M, -C^T; C, 0] (v', lam) = (F, -C' v)`. In
    [mueller2013 (3)], the equation contains `M v' + C^T lam`, so the multipliers are the negative
    reactions, although the text omits the sign. If constraints are redundant, the multipliers with
    the minimum norm are used.
    """
    lam = ContinuousSystem(model.system).multipliers(q, v, u)
    k = model.kinematics(ca.SX(np.asarray(q, float)), ca.SX(np.asarray(v, float)))
    reactions, i = {}, 0
    for constraint in model.constraints:
        n = constraint.residual(k).shape[0]
        if isinstance(constraint, JointConstraint):
            force, torque = constraint.wrench(k, ca.SX(lam[i : i + n]))
            reactions[constraint.name] = _numbers(force)[:, 0], _numbers(torque)[:, 0]
        i += n
    return reactions


def _check(
    model: Multibody, inertias: Mapping[str, SpatialInertia], spaces: str | Mapping[str, str]
) -> None:
    for space in [spaces] if isinstance(spaces, str) else spaces.values():
        if space not in CONFIGURATION_SPACES:
            raise ValueError(
                f"{model.name}: unknown configuration space {space!r}, choose one of "
                f"{', '.join(CONFIGURATION_SPACES)}"
            )
    if not isinstance(spaces, str) and (unknown := sorted(set(spaces) - set(inertias))):
        raise ValueError(
            f"{model.name}: no bodies on moving frames {unknown}, choose from {sorted(inertias)}"
        )
    with_coordinate = {
        f.coordinate
        for f in model.frames
        if f.name in inertias
        and isinstance(f.joint, ScalarJoint)
        and model.tree.anchors[f.parent][0] in (WORLD, *inertias)
    }
    unsupported = [f.name for f in model.frames if f.mimic]
    unsupported += [name for name in model.prescribed if name not in model.tree.length_coordinates]
    unsupported += [
        part.coordinate
        for part in (*model.elements, *model.inputs)
        if hasattr(part, "coordinate") and part.coordinate not in with_coordinate
    ]
    if unsupported:
        raise ValueError(
            f"{model.name}: in maximal coordinates {unsupported} cannot mimic, be prescribed or "
            f"carry springs, dampers or inputs: only revolute, prismatic and helical joints "
            f"between bodies have coordinates there; add bodies, or use joint coordinates"
        )


def _joint(
    model: Multibody, frame: Frame, inertias: Mapping[str, SpatialInertia]
) -> JointConstraint:
    """The constraint for a body's joint, or for two joints without a body between them."""
    anchor, position, rotation = _placement(model, frame)
    if anchor == WORLD or anchor in inertias:
        if type(frame.joint) not in KINDS:
            raise ValueError(
                f"{model.name}: no constraint for the {type(frame.joint).__name__} joint of "
                f"{frame.name!r} in maximal coordinates; use joint coordinates"
            )
        kind, pitch = KINDS[type(frame.joint)], getattr(frame.joint, "pitch", 0.0)
        if kind == "helical" and not pitch:
            kind = "revolute"
        axis = getattr(frame.joint, "axis", "z")
        point = Point(anchor, position)
        return JointConstraint(
            frame.coordinate, kind, point, frame.name, axis, rotation, pitch=pitch
        )
    # if the frame that carries the joint has no body, combine its joint with this one
    first = model.tree.frames[anchor]
    base, base_position, base_rotation = _placement(model, first)
    combined = _combined_joint(first.joint, frame.joint, rotation)
    if combined is None or any(position) or not (base == WORLD or base in inertias):
        raise ValueError(
            f"{model.name}: no body on {first.name!r}, between the joints of {first.name!r} and "
            f"{frame.name!r}; in maximal coordinates only universal and cylindrical joints need "
            f"none (`universal`, `cylindrical`); add a body with mass and inertia"
        )
    kind, *axes = combined
    point = Point(base, base_position)
    rotation = base_rotation @ rotation
    return JointConstraint(frame.coordinate, kind, point, frame.name, axes[0], rotation, axes[1])


def _combined_joint(
    first: Joint, second: Joint, rotation: np.ndarray
) -> tuple[str, Vector, str | Vector] | None:
    """The kind of joint that two consecutive joints form, and its axes in the second frame, or
    None if they form neither a universal nor a cylindrical joint. `rotation` (3, 3) is the
    rotation of the second frame in the first.
    """
    if not (isinstance(first, Revolute | Prismatic) and isinstance(second, Revolute | Prismatic)):
        return None
    # the first axis in the frame of the second joint, at zero coordinates
    axis = rotation.T @ first.axis
    parallel = np.linalg.norm(np.cross(axis, second.axis)) < PARALLEL
    if isinstance(first, Revolute) and isinstance(second, Revolute) and not parallel:
        return "universal", tuple(axis), second.axis
    return (
        ("cylindrical", second.axis, "x") if type(first) is not type(second) and parallel else None
    )


def _placement(
    model: Multibody, frame: Frame
) -> tuple[str, tuple[float, float, float], np.ndarray]:
    """The moving frame (or the world) that carries a frame's joint, and the joint's position and
    rotation in that moving frame.
    """
    anchor, position, rotation = model.tree.anchors[frame.parent]
    x, y, z = position + rotation @ frame.position
    return anchor, (x, y, z), rotation @ np.array(frame.rotation)


def _numbers(expression: ca.SX) -> np.ndarray:
    return np.asarray(ca.DM(expression))
