"""Maximal coordinates: every body of a multibody system has a floating frame, and the joints are
constraints [mueller2013].
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
"""The name of a body's floating frame is the name of its frame with this suffix."""
DEPENDENT = 1e-9
"""Relative norm, in the mass metric, of the part of a constraint row that is independent of the
rows before it, below which the row counts as dependent.
"""


def maximal_coordinates(
    model: Multibody, spaces: str | Mapping[str, str] = "SE3", name: str = ""
) -> Multibody:
    """The same bodies in maximal coordinates: each on a floating frame `<frame>_center` at its
    center of mass, with the joints of the tree as constraints named after their coordinates.

    `spaces` is the configuration space of all bodies, or of each by the name of its frame (SE3 by
    default): "SE3" with twists in the body's axes, or "SO3xR3" with linear velocities in the axes
    of the world; on both the mass matrix is constant, because the frames are at the centers of
    mass. Two joints without a body between them become one universal or cylindrical joint.
    Springs, dampers and inputs on revolute, prismatic and helical joints stay. `maximal_state`
    converts configurations and velocities.

    Raises ValueError for any other joint without a body, for joints that mimic or are prescribed,
    for springs, dampers and inputs on other joints, and for unknown names.
    """
    inertias = {part.frame: part for part in model.spatial_inertias}
    _check(model, inertias, spaces)
    frames: list[Frame] = []
    bodies, joints = [], []
    for frame in model.frames:
        if frame.is_fixed and model.tree.anchors[frame.name][0] in (WORLD, *inertias):
            frames.append(frame)
        elif frame.name in inertias:
            space = spaces if isinstance(spaces, str) else spaces.get(frame.name, "SE3")
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
    """Configuration (nq) and velocity (nw) of the model in maximal coordinates `maximal` at which
    all bodies have the poses and velocities that they have in `model` at q and v.

    Raises ValueError if constraints are dependent there, because their multipliers would not be
    unique; the message names them.
    """
    from scipy.spatial.transform import Rotation  # takes long to import

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
    """Reactions of all `JointConstraint`s by name: the force (3, N) and the torque (3, N m) on the
    body of point b, about that point, in the axes of the world.

    The multipliers solve the index-1 system `[M, -C^T; C, 0] (v', lam) = (F, -C' v)`.
    [mueller2013 (3)] has `M v' + C^T lam`, so its multipliers are minus the reactions (the text
    leaves out the sign). Of redundant constraints they are those with the least norm.
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
            f"{model.name}: no bodies on moving frames {unknown}, choose of {sorted(inertias)}"
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
    """The constraint of a body's joint, or of two joints without a body between them."""
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
        ends = Point(anchor, position), frame.name
        return JointConstraint(frame.coordinate, kind, *ends, axis, rotation, pitch=pitch)
    first = model.tree.frames[anchor]
    base, base_position, base_rotation = _placement(model, first)
    combined = _combined_joint(first.joint, frame.joint, rotation)
    if combined is None or any(position) or not (base == WORLD or base in inertias):
        raise ValueError(
            f"{model.name}: no body on {first.name!r}, between the joints of {first.name!r} and "
            f"{frame.name!r}; in maximal coordinates only universal and cylindrical joints go "
            f"without one (`universal`, `cylindrical`); add a body with mass and inertia"
        )
    kind, *axes = combined
    point = Point(base, base_position)
    rotation = base_rotation @ rotation
    return JointConstraint(frame.coordinate, kind, point, frame.name, axes[0], rotation, axes[1])


def _combined_joint(
    first: Joint, second: Joint, rotation: np.ndarray
) -> tuple[str, Vector, str | Vector] | None:
    """The kind of the one joint that two joints in a row make, and its axes in the frame of the
    second, which has this rotation (3, 3) in the first; None if they are not universal or
    cylindrical together.
    """
    if not (isinstance(first, Revolute | Prismatic) and isinstance(second, Revolute | Prismatic)):
        return None
    axis = rotation.T @ first.axis
    parallel = np.linalg.norm(np.cross(axis, second.axis)) < DEPENDENT
    if isinstance(first, Revolute) and isinstance(second, Revolute) and not parallel:
        return "universal", tuple(axis), second.axis
    return (
        ("cylindrical", second.axis, "x") if type(first) is not type(second) and parallel else None
    )


def _placement(
    model: Multibody, frame: Frame
) -> tuple[str, tuple[float, float, float], np.ndarray]:
    """The moving frame (or the world) that carries the joint of a frame, and the placement of the
    joint in it.
    """
    anchor, position, rotation = model.tree.anchors[frame.parent]
    x, y, z = position + rotation @ frame.position
    return anchor, (x, y, z), rotation @ np.array(frame.rotation)


def _numbers(expression: ca.SX) -> np.ndarray:
    return np.asarray(ca.DM(expression))
