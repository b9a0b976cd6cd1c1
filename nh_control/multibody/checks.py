"""Checks that all names in a multibody model are known and that every coordinate moves mass."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from nh_control.mechanics.checks import scaled_spectrum
from nh_control.multibody.constraints import Distance
from nh_control.multibody.elements import JointInput
from nh_control.multibody.kinematics import Kinematics, Tree
from nh_control.multibody.parts import MultibodyParts
from nh_control.numerics.expressions import Expression, require_written_out


def check_parts(model: MultibodyParts, k: Kinematics) -> None:
    """Raises ValueError if a part of the model names an unknown frame or coordinate.

    Every part evaluates its expression in the kinematics k, and k refuses unknown names.
    """
    for body in model.bodies:
        model.tree.checked_frame(body.frame)
    for entry in model.inputs:
        if isinstance(entry, JointInput) and entry.coordinate in model.prescribed:
            raise ValueError(
                f"{model.name}: the input on {entry.coordinate!r} has no effect, because its "
                f"motion is prescribed; remove the input or the prescribed coordinate"
            )
        power = entry.power(k, ca.SX.sym("u", len(entry.names(model.tree))))
        _require_written_out(model, entry, power)
    for element in model.elements:
        for value in (element.potential(k), element.power(k, k)):
            _require_written_out(model, element, value)
    for constraint in model.constraints:
        _require_written_out(model, constraint, constraint.residual(k))
    # contacts and wheels are identified by their names
    for kind, parts in ("contacts", model.contacts), ("wheels", model.wheels):
        names = [part.name for part in parts]
        if len(set(names)) < len(names):
            raise ValueError(
                f"{model.name}: names of {kind} must differ, got {names}; set `name` if one "
                "frame has several"
            )
    for contact in model.contacts:
        contact.touches(k)
    for wheel in model.wheels:
        wheel.directions(k, wheel.touch(k))
    for name in model.tree.length_coordinates:
        if name not in {c.length for c in model.constraints if isinstance(c, Distance)}:
            raise ValueError(
                f"{model.name}: the prescribed coordinate {name!r} is neither that of a joint "
                f"nor the length of a Distance"
            )


def _require_written_out(model: MultibodyParts, part: object, value: Expression) -> None:
    require_written_out(f"{model.name}: {type(part).__name__}", ca.SX(value))


def check_masses(model: MultibodyParts, mass_matrix: np.ndarray) -> None:
    """Raises ValueError if the mass matrix of the free coordinates is singular. The matrix should
    be evaluated at a configuration without aligned axes. The message names the velocities and
    frames that move no mass.
    """
    space, free = model.space, model.space.nw - len(model.prescribed)
    mass = mass_matrix[:free, :free]
    massless = [name for name, m in zip(space.velocity_names, np.diag(mass)) if m <= 0]
    if massless:
        raise ValueError(
            f"{model.name}: the velocities {massless} of {_moved_by(model, massless)} move no "
            f"mass; add a body with mass and inertia there, or fix the frame"
        )
    # the eigenvector of a zero eigenvalue combines the velocities that move no mass
    values, vectors = scaled_spectrum(mass)
    if values[0] <= 1e-12:
        involved = [space.velocity_names[i] for i in np.flatnonzero(np.abs(vectors[:, 0]) > 1e-3)]
        raise ValueError(
            f"{model.name}: the mass matrix is singular: the velocities {involved} of "
            f"{_moved_by(model, involved)} together move no mass; add inertia between them"
        )


def _moved_by(model: MultibodyParts, velocities: Sequence[str]) -> str:
    """The names of the frames that the given velocities move, for a message."""
    moved = [
        f.name
        for f in model.frames
        if set(velocities) & set(f.joint.space(f.coordinate).velocity_names)
    ]
    return f"the frame{'s' * (len(moved) > 1)} {', '.join(map(repr, moved))}"


def generic_configuration(model: MultibodyParts) -> np.ndarray:
    """A random configuration (nq) near the origin, with angles below 1 rad and translations below
    the model's size. The size is the largest distance between frames or from a frame to a center
    of mass, or the largest radius of gyration.
    """
    tree = model.tree
    change = np.random.default_rng(0).uniform(-1, 1, tree.space.nv)
    change[_translations(tree)] *= _size(model)
    return tree.space.retract(tree.space.origin, change)


def _translations(tree: Tree) -> list[int]:
    """Indices of the tangent coordinates that rotate no frame."""
    turns = set()
    for frame in tree.frames.values():
        if frame.mimic or frame.is_fixed:
            continue
        space, (_, places) = frame.joint.space(frame.coordinate), tree.slices(frame.coordinate)
        for i, v in enumerate(np.eye(space.nv)):
            # column i of the map from velocities to the angular velocity of the joint
            omega = np.asarray(ca.DM(frame.joint.motion(ca.SX(space.origin), ca.SX(v)).omega))
            if omega.any():
                turns.add(places.start + i)
    return [i for i in range(tree.space.nv) if i not in turns]


def _size(model: MultibodyParts) -> float:
    """The largest length in the model (m), or 1 for a model without lengths."""
    lengths = [np.linalg.norm(frame.position) for frame in model.frames]
    for body in model.bodies:
        lengths.append(np.linalg.norm(body.center))
        if body.mass:
            # radius of gyration sqrt(tr J / m)
            lengths.append(np.sqrt(np.trace(np.array(body.inertia)) / body.mass))
    return float(max(lengths, default=0.0)) or 1.0
