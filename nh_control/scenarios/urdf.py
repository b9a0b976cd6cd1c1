"""A robot from a URDF file as a scenario. The joint actuators stabilize an equilibrium, or the
robot moves freely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, make_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nh_control.control import equilibrium
from nh_control.control.constraints import Constraint
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.integrators import midpoint, nonholonomic_midpoint
from nh_control.mechanics.consistent_states import satisfy_constraints
from nh_control.mechanics.contact_rows import ContactRows
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.system import System
from nh_control.multibody import JointDamper, JointFriction, Multibody, load_urdf
from nh_control.multibody.contact_shapes import Disc
from nh_control.multibody.joint_types import Floating, Planar
from nh_control.multibody.kinematics import Tree
from nh_control.multibody.urdf_source import PACKAGE, urdf_path
from nh_control.scenarios.constraints import ScenarioConstraint
from nh_control.scenarios.driven_joints import driven_joints
from nh_control.scenarios.frames import on_frames
from nh_control.scenarios.free_motion import FREE_S
from nh_control.scenarios.joints import JointPerturbation
from nh_control.scenarios.perturbation import perturb_state
from nh_control.scenarios.robot_bodies import (
    floating_bodies,
    from_bodies,
    planar_body,
    to_bodies,
)
from nh_control.scenarios.scenario import Joint, Scenario
from nh_control.scenarios.urdf_base import base_of_robot
from nh_control.scenarios.urdf_visual import robot
from nh_control.scenarios.wheeled_base import WheeledBase

DEFAULT = Path(__file__).parents[1] / "data" / "double_pendulum.urdf"
"""The default robot."""
HOLD_S = 10.0
HEIGHT = 6
"""Index of a floating base's height (m) in a configuration."""
FIELDS: dict[str, tuple[str, str, dict[str, float]]] = {
    "mass": ("kg", "of the link", {}),
    "inertia": ("kg m^2", "xx, yy, zz, xy, xz, yz about the center", {"above": -np.inf}),
    "damping": ("N m s or N s/m", "viscous friction of the joint", {"at_least": 0.0}),
    "friction": ("N m or N", "dry friction of the joint", {"at_least": 0.0}),
    "friction_velocity": ("rad/s or m/s", "over which dry friction changes its sign", {}),
}
"""Unit, meaning and bounds of the robot constants that become parameters."""
CONTACT_FIELDS = {"friction": ("", "of the contact with the ground", {"at_least": 0.0})}
LARGE_ERROR, LARGE_RATE, LARGE_EFFORT = 0.1, 1.0, 10.0
"""Bryson's rule: if the file has no limits, a joint error (rad or m), a joint rate and an effort
with these values each contribute 1 to the cost.
"""
NO_LIMIT = 1e5
"""Limits of rates (rad/s, m/s) and efforts (N m, N) above this value are treated as no limit."""
PART_OF_RANGE = 0.05
"""Maximum error of a joint as a fraction of its range."""


@dataclass(frozen=True)
class UrdfParameters(Parameters):
    """Differences between the plant and its URDF."""

    mass_scale: float = parameter(1.0, "", "factor on all masses and inertias")


def urdf(
    file: str | Path = "", base: str = "fixed", accept_any_inertia: bool = False, wheels: str = ""
) -> Scenario:
    """The scenario for the robot in a URDF file (see `of_robot`), which is a double pendulum by
    default.

    The `base` is fixed or floating. `accept_any_inertia` accepts inertias that no rigid body can
    have. `wheels` are the names of links, separated by commas (see `load_urdf`). Raises UrdfError,
    OSError, and ValueError for floating or planar joints that messages cannot show.
    """
    # A trailing comma produces an empty name.
    rolling = [name.strip() for name in wheels.split(",") if name.strip()]
    model = load_urdf(file or DEFAULT, base, accept_any_inertia=accept_any_inertia, wheels=rolling)
    source: dict[str, str | bool] = {"urdf": _found_again(file)} if file else {}
    source |= {"base": base} | ({"accept_any_inertia": True} if accept_any_inertia else {})
    source |= {"wheels": wheels} if wheels else {}
    return replace(of_robot(model, file or DEFAULT), source=source)


def _found_again(file: str | Path) -> str:
    """The name with which processes in other folders find the URDF: the absolute path of a
    file.
    """
    path = urdf_path(file)
    return str(file) if path is None or str(file).startswith(PACKAGE) else str(path.absolute())


def of_robot(model: Multibody, file: str | Path) -> Scenario:
    """The scenario for a robot. The robot is drawn with the shapes in its URDF file.

    A robot with actuators on a fixed base stays at rest with its joints at 0, or as close to 0 as
    their ranges allow. If it has fewer actuators than joints, it rests at an equilibrium near this
    configuration. A robot with contacts and actuators on a floating base stands on the ground in
    the same way. If the robot stands on feet, LQR ignores the directions that the feet constrain
    (see `Stance`). Any other robot starts in this configuration and moves freely. Messages contain
    joints, bodies on floating joints in the world, and a body on a planar joint in the world (x, y
    and heading). Raises ValueError for other floating and planar joints.
    """
    model = _with_resistances(model)
    floats, body = floating_bodies(model), planar_body(model)
    moves = bool(floats or body)
    # A moving base can only rest on contacts, and the robot needs actuators to stay at rest.
    holds = (not moves or bool(model.contacts)) and bool(model.inputs)
    joints = tuple(
        Joint(c, c, unit="m" if model.tree.effort(c)[1] == "N" else "rad")
        for c in model.tree.scalars
    )
    return Scenario(
        name="urdf",
        title=f"The robot {model.name}",
        label=model.name,
        parameters=urdf_parameters(model),
        make_system=partial(_system, model),
        integrators={"nonholonomic_midpoint": nonholonomic_midpoint}
        if model.wheels
        else {"midpoint": midpoint},
        references={"hold": partial(_hold, model)} if holds else {"free": partial(_free, model)},
        meanings={"hold": "at rest at an equilibrium", "free": "a free motion from rest"},
        weights=_weights(model, holds),
        perturbation=JointPerturbation(position=0.1, angle=0.1, momentum=0.1),
        perturb=partial(_perturbed, model.tree),
        joints=joints,
        base=partial(_base, model, joints) if model.wheels else None,
        body=body,
        to_bodies=partial(to_bodies, floats) if floats else None,
        from_bodies=partial(from_bodies, floats) if floats else None,
        external=lambda _: on_frames(model, (f.name for f in model.frames if not f.is_fixed)),
        visual=partial(robot, model, file),
        step_s=0.005,
        hold=holds,
        stance=holds and _stands_on_feet(model),
        constraints={"joint_ranges": ScenarioConstraint(partial(joint_ranges, model))}
        if _limited(model)
        else {},
        horizon_s=0.25,
    )


def _base(model: Multibody, joints: Sequence[Joint], _: Any) -> WheeledBase | None:
    """The wheels of a robot that vehicle controllers command, or None."""
    system = model.system
    return base_of_robot(model, {drive.name for drive in driven_joints(joints, system, system.nu)})


def _stands_on_feet(model: Multibody) -> bool:
    """Whether the model has contacts that do not move, unlike wheel contacts."""
    return bool(model.contacts) and not any(isinstance(c.shape, Disc) for c in model.contacts)


def _perturbed(
    tree: Tree, model: DiscreteSystem, x: np.ndarray, perturbation: JointPerturbation
) -> np.ndarray:
    """The state x (nx) with each joint rotated by `angle` (rad) or displaced by `position` (m), a
    floating base rotated by the same angle and moved to its left by the same distance, and all
    momenta scaled. The signs are drawn from the seed.
    """
    space = model.system.space
    change = np.zeros(space.nv)
    for coordinate in tree.scalars:
        slides = tree.effort(coordinate)[1] == "N"
        # The unit of the effort distinguishes prismatic joints (N) from revolute joints (N m).
        change[tree.scalar_indices(coordinate)[1]] = (
            perturbation.position if slides else perturbation.angle
        )
    for frame in tree.frames.values():
        if isinstance(frame.joint, (Floating, Planar)):
            start = tree.slices(frame.coordinate)[1].start
            # The tangent of a floating base is (rotation, position), and that of a planar base is
            # (theta, x, y).
            yaw, left = (2, 4) if isinstance(frame.joint, Floating) else (0, 2)
            change[[start + yaw, start + left]] = perturbation.angle, perturbation.position
    return perturb_state(model, x, change, perturbation.momentum, perturbation.signs(model.ndx))


def urdf_parameters(model: Multibody) -> UrdfParameters:
    """The parameters of a robot: `mass_scale`; for each link, `<link>_mass` and `<link>_inertia`
    (xx, yy, zz, xy, xz, yz); for each joint, `<joint>_damping`, `<joint>_friction` and
    `<joint>_friction_velocity`; and for each contact, `<contact>_friction`.
    """
    constants, entries = model.constants, list[tuple[str, type, Any]]()
    for name, location in constants.locations.items():
        # The friction parameters of contacts and joints have different units.
        known = CONTACT_FIELDS if location.parts == "contacts" else FIELDS
        if location.field in known:
            unit, text, options = known[location.field]
            value = constants.value(name)
            entries.append((name, type(value), parameter(value, unit, text, **options)))
    parameters = make_dataclass("UrdfParameters", entries, bases=(UrdfParameters,), frozen=True)
    return parameters()


def _with_resistances(model: Multibody) -> Multibody:
    """The robot with a damper and friction on each joint with one coordinate, so that both are
    parameters. They are 0 if the file contains none. Any inertia is accepted.
    """
    elements = list(model.elements)
    for kind in (JointDamper, JointFriction):
        declared = {e.coordinate for e in model.elements if isinstance(e, kind)}
        elements += [kind(c, 0.0) for c in model.tree.scalars if c not in declared]
    # A study may vary inertias beyond those that rigid bodies can have.
    bodies = [replace(body, accept_any_inertia=True) for body in model.bodies]
    return replace(model, bodies=bodies, elements=elements)


def _system(model: Multibody, parameters: UrdfParameters) -> System:
    values = {field.name: getattr(parameters, field.name) for field in fields(parameters)}
    names = tuple(values)
    # The constants become symbols, so all robots with this structure share compiled code.
    changed = replace(model, parameters=names).constants.model_with(values)
    return replace(changed, parameters=names).system


def _start(model: Multibody, dsys: DiscreteSystem) -> np.ndarray:
    """The state at rest with the wheels on the ground and the joints at 0, or as close to 0 as
    their ranges allow.
    """
    ranges = {frame.coordinate: frame.limits for frame in model.frames}
    q = model.configuration(
        # The value closest to 0 in the range of each joint.
        {c: min(max(0.0, ranges[c].lower), ranges[c].upper) for c in model.tree.scalars}
    )
    if model.n_holonomic_parts:
        q = satisfy_constraints(model.system, q)
    return dsys.state(q, np.zeros(model.space.nw))


def _hold(model: Multibody, dsys: DiscreteSystem) -> Trajectory:
    """An equilibrium that lasts for HOLD_S. A robot on the ground keeps its initial joint
    angles.
    """
    start = _start(model, dsys)
    if model.contacts:
        x, u = standing(dsys, start[: model.space.nq], model.tree.scalars)
        return at_rest(dsys, x, u)
    # If there is an actuator for each velocity, any configuration can be an equilibrium.
    hold = model.tree.scalars if dsys.nu == model.space.nv else ()
    x, u = equilibrium(dsys, start, np.zeros(dsys.nu), hold)
    return at_rest(dsys, x, u)


def standing(
    dsys: DiscreteSystem, q: np.ndarray, fixed: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """The state x (nx) and input u (nu) of a robot on a floating base that stands near a
    configuration q (nq). The coordinates in `fixed` do not change. The robot is lowered until its
    lowest contact touches the ground, and then an `equilibrium` is computed. Raises the same
    errors as `equilibrium`.
    """
    q, symbol = np.array(q, dtype=float), dsys.system.symbols[0]
    gaps = dsys.system.value(ContactRows(dsys.system.mechanics).gaps(symbol), q)
    # Lower the robot by the smallest gap.
    q[HEIGHT] -= np.nanmin(gaps)
    x = dsys.state(q, np.zeros(dsys.system.space.nw))
    return equilibrium(dsys, x, np.zeros(dsys.nu), fixed)


def at_rest(dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray) -> Trajectory:
    """A constant state and a constant input for HOLD_S."""
    steps = round(HOLD_S / dsys.h)
    states, inputs = np.tile(x, (steps + 1, 1)), np.tile(u, (steps, 1))
    return Trajectory(dsys.h, states, inputs, dsys.state_names, dsys.inputs, dsys=dsys)


def joint_ranges(model: Multibody, dsys: DiscreteSystem) -> Constraint:
    """The constraint that the joints stay within their ranges in the URDF."""
    names = dsys.system.space.names
    limited = _limited(model)
    rows = [names.index(coordinate) for coordinate in limited]
    lower, upper = np.array(list(limited.values())).T
    return Constraint(
        "joint_ranges", lambda x, u, w: x[rows], lower, upper, weight=1e4, rows=list(limited)
    )


def _limited(model: Multibody) -> dict[str, tuple[float, float]]:
    """The ranges of the joints that have both a lower and an upper limit."""
    ranges = {frame.coordinate: frame.limits for frame in model.frames}
    return {
        c: (ranges[c].lower, ranges[c].upper)
        for c in model.tree.scalars
        if np.isfinite([ranges[c].lower, ranges[c].upper]).all()
        and ranges[c].lower < ranges[c].upper
    }


def _free(model: Multibody, dsys: DiscreteSystem) -> Trajectory:
    """The motion without efforts for FREE_S."""
    return dsys.simulate(_start(model, dsys), np.zeros((round(FREE_S / dsys.h), dsys.nu)))


def _weights(model: Multibody, holds: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The weights according to Bryson's rule: the maximum error of each coordinate, velocity and
    effort contributes 1 to the cost. The maximum error of a joint is PART_OF_RANGE times its
    range, but at most LARGE_ERROR. The maximum rates and efforts are their limits, if these are
    below NO_LIMIT. Velocities are `v = M^{-1} p` with M at the initial configuration. Raises
    ValueError if M is singular.
    """
    model.check_masses()
    mass, n = model.mass_matrix(model.configuration()), model.space.nv
    # The empty table covers models without inputs.
    limits = np.vstack([np.zeros((0, 2)), *(entry.limits() for entry in model.inputs)])
    largest, (errors, rates) = np.abs(limits).max(axis=1), _largest_errors(model)
    # The momentum weights are p' S^T S p with S = diag(1 / rates) M^{-1}.
    slow = np.linalg.solve(mass, np.eye(n)) / rates[:, None]
    Q = np.block([[np.diag(1 / errors**2), np.zeros((n, n))], [np.zeros((n, n)), slow.T @ slow]])
    R = np.diag(1 / np.where(largest < NO_LIMIT, largest, LARGE_EFFORT) ** 2)
    return Q, R, None if holds else Q


def _largest_errors(model: Multibody) -> tuple[np.ndarray, np.ndarray]:
    """The coordinate errors and rates (nv) that contribute 1 to the cost."""
    errors, rates = np.full((2, model.space.nv), [[LARGE_ERROR], [LARGE_RATE]])
    for frame in model.frames:
        if frame.mimic is None and frame.coordinate in model.tree.scalars:
            i, limits = model.tree.scalar_indices(frame.coordinate)[1], frame.limits
            if 0 < limits.upper - limits.lower < np.inf:
                # A joint with a small range tolerates only small errors.
                errors[i] = min(LARGE_ERROR, PART_OF_RANGE * (limits.upper - limits.lower))
            if 0 < limits.velocity < NO_LIMIT:
                rates[i] = limits.velocity
    return errors, rates
