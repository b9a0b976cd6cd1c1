"""Maximal coordinates: every body of a multibody system moves freely, and its joints are
constraints [mueller2013].
"""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.multibody.bodies import Body, SpatialInertia
from nh_control.multibody.frames import (
    CONFIGURATION_SPACES,
    WORLD,
    Floating,
    Frame,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    fixed,
    floating,
)
from nh_control.multibody.joints import JointConstraint
from nh_control.multibody.kinematics import Point
from nh_control.multibody.model import Multibody
from nh_control.numerics.expressions import Vector

KINDS: dict[type[Joint], str] = {
    Revolute: "revolute",
    Prismatic: "prismatic",
    Planar: "planar",
    Spherical: "spherical",
}
CENTER_SUFFIX = "_center"
"""What the name of a body's floating frame adds to that of its frame."""
DEPENDENT = 1e-9
"""Part of a constraint's row, in the mass metric, below which it says nothing that the rows before
do not.
"""


def maximal_coordinates(
    model: Multibody, spaces: str | Mapping[str, str] = "SE3", name: str = ""
) -> Multibody:
    """The same bodies, each on a floating frame `<frame>_center` at its center of mass, with the
    joints of the tree as constraints, by the names of their coordinates, beside those that the
    model has.

    `spaces` is the configuration space of all bodies or, by their frames' names, of each (SE3 by
    default): "SE3", where velocities are twists in the body's axes, or "SO3xR3", where linear
    velocities are in the world's; with the frames at the centers of mass the mass matrix is
    constant on both. Two joints with no body between are one where they make a universal or a
    cylindrical one. `maximal_state` gives the motion.
    Springs, dampers and inputs on revolute and prismatic joints stay.
    Raises ValueError for another joint without a body, for joints that mimic or are prescribed,
    for springs, dampers and inputs on other joints, and for unknown names.
    """
    masses = {part.frame: part for part in model.spatial_inertias}
    _check(model, masses, spaces)
    frames: list[Frame] = []
    bodies, joints = [], []
    for frame in model.frames:
        if frame.is_fixed and model.tree.anchors[frame.name][0] in (WORLD, *masses):
            frames.append(frame)
        elif frame.name in masses:
            space = spaces if isinstance(spaces, str) else spaces.get(frame.name, "SE3")
            part, center = masses[frame.name], frame.name + CENTER_SUFFIX
            frames.append(floating(center, coordinate=frame.name, space=space))
            frames.append(fixed(frame.name, center, position=tuple(-part.center)))
            body = Body(center, part.mass, inertia=part.inertia, accept_any_inertia=True)
            bodies.append(body)
            if not isinstance(frame.joint, Floating):
                joints.append(_joint(model, frame, masses))
    return Multibody(
        name or f"{model.name}_{spaces if isinstance(spaces, str) else 'mixed'}",
        frames,
        bodies,
        model.elements,
        model.inputs,
        (*joints, *model.constraints),
        model.tree.length_coordinates,
        model.gravity,
    )


def maximal_state(
    model: Multibody, q: ArrayLike, v: ArrayLike, maximal: Multibody
) -> tuple[np.ndarray, np.ndarray]:
    """Configuration (nq) and velocity (nw) of the model in maximal coordinates in which all bodies
    move as those of `model` at q and v.

    Raises ValueError where constraints are dependent there, naming them: no multipliers would be
    theirs alone.
    """
    from scipy.spatial.transform import Rotation  # takes long to import

    masses = {part.frame: part for part in model.spatial_inertias}
    k = model.kinematics(ca.SX(np.asarray(q, float)), ca.SX(np.asarray(v, float)))
    values: dict[str, float] = {}
    rates: dict[str, float] = {}
    for frame in maximal.frames:
        if not isinstance(frame.joint, Floating):
            continue
        body, world = frame.coordinate, frame.joint.configuration_space != "SE3"
        center = Point(body, tuple(masses[body].center))
        turn = Rotation.from_matrix(_numbers(k.rotation(body)))
        pose = turn.as_quat(canonical=True)[[3, 0, 1, 2]], _numbers(k.position(center))[:, 0]
        velocity = k.velocity(center, "world" if world else "body")
        twist = _numbers(ca.vertcat(k.motion(body).omega, velocity))[:, 0]
        space = frame.joint.space(body)
        values |= dict(zip(space.names, np.concatenate(pose)))
        rates |= dict(zip(space.velocity_names, twist))
    configuration = maximal.configuration(values)
    _check_independent(maximal, configuration)
    return configuration, maximal.velocity(rates)


def joint_reactions(
    model: Multibody, q: ArrayLike, v: ArrayLike, u: ArrayLike = ()
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Force (3, N) and torque (3, N m) by the name of every `JointConstraint` that it exerts on
    the body of its point b, about that point, in the axes of the world.

    From the index-1 system `[M, -C^T; C, 0] (v', lam) = (F, -C' v)`; [mueller2013 (3)] has
    `M v' + C^T lam`, so that its multipliers are minus the reactions (the text leaves out the
    sign).
    """
    lam = ContinuousSystem(model.system).multipliers(q, v, u)
    k = model.kinematics(ca.SX(np.asarray(q, float)), ca.SX(np.asarray(v, float)))
    found, i = {}, 0
    for constraint in model.constraints:
        n = constraint.residual(k).shape[0]
        if isinstance(constraint, JointConstraint):
            force, torque = constraint.wrench(k, ca.SX(lam[i : i + n]))
            found[constraint.name] = _numbers(force)[:, 0], _numbers(torque)[:, 0]
        i += n
    return found


def _check(
    model: Multibody, masses: Mapping[str, SpatialInertia], spaces: str | Mapping[str, str]
) -> None:
    for space in [spaces] if isinstance(spaces, str) else spaces.values():
        if space not in CONFIGURATION_SPACES:
            raise ValueError(
                f"{model.name}: unknown configuration space {space!r}, choose one of "
                f"{', '.join(CONFIGURATION_SPACES)}"
            )
    if not isinstance(spaces, str) and (unknown := sorted(set(spaces) - set(masses))):
        raise ValueError(
            f"{model.name}: no moving bodies on {unknown}, choose of {sorted(masses)}"
        )
    kept = {
        f.coordinate
        for f in model.frames
        if f.name in masses
        and isinstance(f.joint, Revolute | Prismatic)
        and model.tree.anchors[f.parent][0] in (WORLD, *masses)
    }
    lost = [f.name for f in model.frames if f.mimic]
    lost += [name for name in model.prescribed if name not in model.tree.length_coordinates]
    lost += [
        part.coordinate
        for part in (*model.elements, *model.inputs)
        if hasattr(part, "coordinate") and part.coordinate not in kept
    ]
    if lost:
        raise ValueError(
            f"{model.name}: in maximal coordinates {lost} cannot mimic, be prescribed or carry "
            f"springs, dampers or inputs: only revolute and prismatic joints between bodies have "
            f"coordinates there; add bodies, or use joint coordinates"
        )


def _joint(
    model: Multibody, frame: Frame, masses: Mapping[str, SpatialInertia]
) -> JointConstraint:
    """The constraint that a body's joint, or two joints with no body between, puts on it."""
    anchor, at, turn = _placement(model, frame)
    if anchor == WORLD or anchor in masses:
        kind = KINDS[type(frame.joint)]
        axis = getattr(frame.joint, "axis", "z")
        return JointConstraint(frame.coordinate, kind, Point(anchor, at), frame.name, axis, turn)
    first = model.tree.frames[anchor]
    base, base_at, base_turn = _placement(model, first)
    found = _two_as_one(first.joint, frame.joint, turn)
    if found is None or any(at) or not (base == WORLD or base in masses):
        raise ValueError(
            f"{model.name}: no body on {first.name!r}, between the joints of {first.name!r} and "
            f"{frame.name!r}; in maximal coordinates only universal and cylindrical joints go "
            f"without one (`universal`, `cylindrical`); add a body with mass and inertia"
        )
    kind, *axes = found
    point = Point(base, base_at)
    turn = base_turn @ turn
    return JointConstraint(frame.coordinate, kind, point, frame.name, axes[0], turn, axes[1])


def _two_as_one(
    first: Joint, second: Joint, turn: np.ndarray
) -> tuple[str, Vector, str | Vector] | None:
    """The kind of joint that two with one coordinate each make, and its axes in those of the
    second one, which stands turned in the first; None if it is none here.
    """
    if not (isinstance(first, Revolute | Prismatic) and isinstance(second, Revolute | Prismatic)):
        return None
    axis = turn.T @ first.axis
    parallel = np.linalg.norm(np.cross(axis, second.axis)) < DEPENDENT
    if isinstance(first, Revolute) and isinstance(second, Revolute) and not parallel:
        return "universal", tuple(axis), second.axis
    return (
        ("cylindrical", second.axis, "x") if type(first) is not type(second) and parallel else None
    )


def _placement(
    model: Multibody, frame: Frame
) -> tuple[str, tuple[float, float, float], np.ndarray]:
    """The moving frame, or the world, in which a frame's joint is, and where it is there."""
    anchor, at, turn = model.tree.anchors[frame.parent]
    return anchor, tuple(at + turn @ frame.position), turn @ np.array(frame.rotation)


def _check_independent(model: Multibody, q: np.ndarray) -> None:
    """Rows of constraints, one after the other, less what those before say, in the mass metric."""
    system = model.system
    known: list[np.ndarray] = []
    slope = system.value(system.holonomic_jacobian(system.symbols[0]), q)
    free = slope[:, : len(slope.T) - len(system.prescribed)]
    root = np.linalg.cholesky(model.mass_matrix(q)[: free.shape[1], : free.shape[1]])
    rows = np.linalg.solve(root, free.T).T
    repeated: dict[str, int] = {}
    k, i = model.kinematics(ca.SX(q), ca.SX(system.space.nw, 1)), 0
    for constraint in model.constraints:
        for row in rows[i : i + constraint.residual(k).shape[0]]:
            i += 1
            rest = row
            for _ in range(2):  # the second time takes off what round-off left
                rest = rest - sum((unit * (unit @ rest) for unit in known), np.zeros(len(row)))
            if np.linalg.norm(rest) > DEPENDENT * np.linalg.norm(row):
                known.append(rest / np.linalg.norm(rest))
            else:
                repeated[constraint.name] = repeated.get(constraint.name, 0) + 1
    if repeated:
        raise ValueError(
            f"{model.name}: the constraints are dependent: of the rows of {repeated} so many "
            f"repeat those before, so that reactions are not unique; replace one of the joints by "
            f"one that holds less, e.g. a revolute joint of a plane loop by a spherical and "
            f"another by a universal one"
        )


def _numbers(expression: ca.SX) -> np.ndarray:
    return np.asarray(ca.DM(expression))
