"""The quadrotor payload scenario: quadrotors in formation carry a payload along smooth paths. LQR
or predictive control tracks the motion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from operator import mul, sub
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control import paths
from nh_control.control.constraints import Constraint
from nh_control.control.path_constraints import tension_limit
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry import quaternion
from nh_control.geometry.spaces import Space
from nh_control.integrators import midpoint
from nh_control.mechanics.external_forces import ForceTarget, on_body, on_point
from nh_control.mechanics.system import System
from nh_control.numerics.expressions import Graph
from nh_control.scenarios.constraints import ScenarioConstraint
from nh_control.scenarios.flight import Craft, Flight
from nh_control.scenarios.limits import SafetyLimits
from nh_control.scenarios.names import UnknownName
from nh_control.scenarios.obstacles import clear_of, through_windows
from nh_control.scenarios.payload_flatness import cached_reference
from nh_control.scenarios.payload_guidance import PayloadGuidance
from nh_control.scenarios.perturbation import (
    SeededPerturbation,
    error_seed,
    initial_error,
    momentum_error,
)
from nh_control.scenarios.quadrotor_payload_visual import visual_model
from nh_control.scenarios.scenario import (
    BodyState,
    MonitoredOutput,
    Scenario,
)
from nh_control.scenarios.visual_model import ODOM
from nh_control.systems.quadrotor_payload import (
    Formation,
    QuadrotorPayloadParameters,
    payload_space,
    quadrotor_payload,
    split_configuration,
    split_velocity,
)
from nh_control.systems.quadrotor_payload_continuous import link_tensions
from nh_control.systems.rotors import Airframe

FORMATION = Formation(angle=np.radians(80))
"""Perpendicular to the plane of two links, only the link tensions restore the payload's position.
Their stiffness is `sum T_i / l_i = m_y g sum(1 / l_i) / (n cos angle)`. This is 33 N/m here, but
only 6.6 N/m for links at 30 degrees. In that case, a wind force of 2 N moves the payload away
before the quadrotors can follow. The disadvantage is a thrust of 14.5 N instead of 9.4 N.
"""

TAUT = Formation(angle=np.radians(30))
"""A formation with links at 30 degrees, which a predictive tracker keeps taut in wind."""

PATHS: dict[str, Callable[[], paths.Path]] = {
    "figure_of_eight": partial(
        paths.figure_of_eight, length=3.0, width=2.0, speed=2.0, laps=2, ramp=3.0, height=1.0
    ),
    "hover": partial(paths.point, (0.0, 0.0, 1.0), duration=8.0),
    "line": partial(paths.line, (0.0, 0.0, 1.0), (3.0, 1.0, 2.0), duration=5.0),
    "circle": partial(paths.circle, radius=1.5, speed=2.0, laps=2, ramp=3.0, height=1.0),
    "parabola": paths.parabola,
    "taut_hover": partial(paths.point, (0.0, 0.0, 1.0), duration=6.0),
    "spheres": partial(paths.line, (0.0, 0.0, 1.0), (4.0, 0.0, 1.0), duration=6.0),
    "windows": partial(paths.line, (0.0, 0.0, 1.0), (4.5, 0.0, 1.0), duration=7.0),
}
FORMATIONS = {"taut_hover": TAUT, "spheres": TAUT, "windows": TAUT}
SPHERES = (((1.3, 0.35, 0.8), 0.45), ((2.7, -0.25, 1.35), 0.45))
WINDOWS = (((1.4, 0.3, 1.1), 0.25), ((3.0, -0.3, 0.9), 0.25))
"""Centers and radii (m) of balls next to the path `spheres`, and of windows near the path
`windows`. The windows are open at the top to let the links pass.
"""
LEAST_TENSION = 0.3
"""Minimum tension (N) in the links under predictive control."""


def weights(n: int) -> tuple[np.ndarray, np.ndarray, None]:
    """The LQR weights for n quadrotors. They are chosen so that the system returns to hover from
    simultaneous errors of 0.5 m, 30 degrees of link swing and 60 degrees of tilt.

    Thrust has a small weight, and torque has a larger weight. With a smaller weight on torque, the
    system would resist wind better, but quadrotors that start tilted would be lost because their
    torques saturate.
    """
    # Order: the payload's position, the attitudes and the links, then their momenta.
    configuration = [*[20.0] * 3, *[30.0] * 3 * n, *[10.0] * 2 * n]
    momenta = [*[1.0] * 3, *[1.0] * 3 * n, *[0.4] * 2 * n]
    return np.diag(configuration + momenta), np.diag([0.05, 0.4, 0.4, 0.4] * n), None


def _reference(name: str, dsys: DiscreteSystem) -> Trajectory:
    formation = FORMATIONS.get(name, FORMATION)
    return cached_reference(dsys, PATHS[name](), formation, name)


def guidance(dsys: DiscreteSystem, reference: Trajectory) -> PayloadGuidance:
    """The guidance along a reference whose name is one of PATHS. Raises UnknownName for other
    references.
    """
    if reference.name not in PATHS:
        raise UnknownName("quadrotor_payload reference", reference.name, PATHS)
    formation = FORMATIONS.get(reference.name, FORMATION)
    return PayloadGuidance(dsys, reference, PATHS[reference.name](), formation)


@dataclass(frozen=True)
class PayloadPerturbation(SeededPerturbation):
    """The initial error of a payload and the quadrotors that carry it."""

    position: float = initial_error("m", "displacement of the whole system from the reference")
    heading: float = initial_error("rad", "rotation of every quadrotor about its z axis")
    momentum: float = momentum_error()
    seed: int = error_seed()
    swing: float = initial_error("rad", "rotation of every link from the reference's direction")
    tilt: float = initial_error("rad", "rotation of every quadrotor about a horizontal body axis")


def perturbed(
    model: DiscreteSystem, x: np.ndarray, perturbation: PayloadPerturbation
) -> np.ndarray:
    """The state x (nx) with the payload displaced, each link swung, each quadrotor rotated by
    `heading` about its z axis and then tilted, and all momenta scaled.

    If the seed is negative, the payload moves along y, the links and quadrotors rotate about their
    first axes, and the momenta increase. Raises ValueError for half a turn or more.
    """
    n = model.system.parameters.n
    for name in ("heading", "swing", "tilt"):
        if abs(angle := getattr(perturbation, name)) >= np.pi:
            raise ValueError(
                f"PayloadPerturbation.{name} must be below half a turn, got {angle} rad"
            )
    # Without a seed, move along y and turn about the first axes, with positive signs.
    direction, turns, signs = (
        np.array([0.0, 1.0, 0.0]),
        np.zeros((2, n)),
        np.ones(n + model.system.nrho),
    )
    if perturbation.seed >= 0:
        draw = np.random.default_rng(perturbation.seed)
        direction = draw.normal(size=3)
        direction /= np.linalg.norm(direction)
        turns, signs = draw.uniform(0, 2 * np.pi, (2, n)), draw.choice([-1.0, 1.0], len(signs))
    nq, nv = model.system.space.nq, model.system.space.nv
    # The momenta, relative to the state with the same configuration and zero momenta.
    momenta = model.local(np.concatenate([x[:nq], np.zeros(len(x) - nq)]), x)[nv:]
    first, second = np.zeros(model.ndx), np.zeros(model.ndx)
    first[:3] = perturbation.position * direction
    first[5 : 3 + 3 * n : 3] = signs[:n] * perturbation.heading
    first[nv:] = perturbation.momentum * signs[n:] * momenta
    second[3 : 3 + 3 * n].reshape(n, 3)[:, :2] = perturbation.tilt * _unit(turns[0])
    second[3 + 3 * n : 3 + 5 * n] = (perturbation.swing * _unit(turns[1])).ravel()
    # The heading comes before the tilt, because rotations do not commute.
    for angles in (first, second):
        x = model.retract(x, _local_of_turns(model, x, angles))
    return x


def _local_of_turns(model: DiscreteSystem, x: np.ndarray, turns: np.ndarray) -> np.ndarray:
    """The local coordinates (ndx) that change x by rotation vectors, for any retraction."""
    space, q = model.system.space, model.configuration(x)
    by_angles = _by_angles(model.system.parameters.n)
    reached = by_angles.retract(q, turns[: space.nv])
    return np.concatenate([space.local(q, reached), turns[space.nv :]])


@cache
def _by_angles(n: int) -> Space:
    """The configuration space for n quadrotors, with a retraction that takes rotation vectors."""
    return payload_space(n, "exp", "exp")


def _unit(angles: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def to_bodies(
    parameters: QuadrotorPayloadParameters, q: np.ndarray, v: np.ndarray
) -> tuple[BodyState, ...]:
    """The states of the payload and the quadrotors at a configuration (nq) with a velocity (nw).
    The payload does not rotate, and the quadrotors are at `x_i = y + l_i q_i`.
    """
    (y, attitudes, links), (y_dot, omegas, rates) = (
        split_configuration(q, parameters.n),
        split_velocity(v, parameters.n),
    )
    payload = BodyState("payload", ODOM, y, np.array([1.0, 0.0, 0.0, 0.0]), y_dot, np.zeros(3))
    quadrotors = (
        BodyState(f"quad{i + 1}", ODOM, y + l * link, attitude, y_dot + l * rate, omega)
        for i, (l, link, rate, attitude, omega) in enumerate(
            zip(parameters.lengths, links, rates, attitudes, omegas)
        )
    )
    return payload, *quadrotors


def from_bodies(bodies: Sequence[BodyState]) -> tuple[np.ndarray, np.ndarray]:
    """The configuration (nq) and velocity (nw) for the states of the payload and the quadrotors,
    in that order. The positions determine the directions of the links, regardless of the
    distances.

    Raises ValueError for other bodies, and for a quadrotor at the position of the payload.
    """
    frames = [body.frame for body in bodies]
    if frames != ["payload", *(f"quad{i + 1}" for i in range(len(bodies) - 1))] or len(frames) < 2:
        raise ValueError(f"expected the bodies payload, quad1, ..., got {frames}")
    # For a few floats, Python is faster than NumPy.
    payload, *quadrotors = bodies
    y, y_dot = _floats(payload.position), _floats(payload.linear_velocity)
    attitudes, omegas, links, rates = list[float](), list[float](), list[float](), list[float]()
    for body in quadrotors:
        x, x_dot = _floats(body.position), _floats(body.linear_velocity)
        attitude = _floats(body.quaternion_wxyz)
        offset, speed = [*map(sub, x, y)], [*map(sub, x_dot, y_dot)]
        length, norm = math.hypot(*offset), math.hypot(*attitude)
        if not length > 0:
            raise ValueError(f"{body.frame} is at the payload: its link has no direction")
        # q_i = (x_i - y) / |x_i - y|, and q_i' is the part of the relative velocity that is normal
        # to q_i.
        link = [component / length for component in offset]
        along = sum(map(mul, link, speed))
        attitudes += [component / norm for component in attitude]
        omegas += _floats(body.angular_velocity_body)
        links += link
        rates += [(v - along * e) / length for v, e in zip(speed, link)]
    return np.array([*y, *attitudes, *links]), np.array([*y_dot, *omegas, *rates])


def _floats(values: ArrayLike) -> list[float]:
    return np.asarray(values, dtype=float).tolist()


def _position(n: int, i: int, q: Graph, parameters: Any) -> Graph:
    """The position `x_i = y + l_i q_i` of quadrotor i of n."""
    y, _, links = split_configuration(q, n)
    return y + parameters.lengths[i] * links[i]


def on_bodies(system: System) -> tuple[ForceTarget, ...]:
    """The disturbance targets: the payload, which is a point, and the quadrotors."""
    n, space = system.parameters.n, system.space

    payload = on_point(
        space,
        "payload",
        lambda q, parameters: q[:3],
        "force on the payload, e.g. wind, in the world's axes",
    )
    quadrotors = (
        on_body(
            space,
            f"quad{i + 1}",
            lambda q, parameters, i=i: (  # type: ignore[misc]
                _position(n, i, q, parameters),
                quaternion.matrix(split_configuration(q, n)[1][i]),
            ),
            f"force on quadrotor {i + 1} and torque, in the axes of odom",
        )
        for i in range(n)
    )
    return payload, *quadrotors


def tensions(
    parameters: QuadrotorPayloadParameters,
    q: np.ndarray,
    v: np.ndarray,
    u: np.ndarray,
    external: Mapping[str, np.ndarray],
) -> np.ndarray:
    """The tensions (N) in the links (n) for the inputs u (4 n) and external forces. If all
    arguments are tables, the result is a table of tensions.

    An external force on the coordinates of a link is a couple that rotates the link: a force on
    the quadrotor and the opposite force on the payload.
    """
    n, first = parameters.n, 3 + 4 * parameters.n
    # The `...` allows both single states and tables of states.
    links = q[..., first:].reshape(*q.shape[:-1], n, 3)
    on = np.zeros((*q.shape[:-1], n + 1, 3))
    for name, values in external.items():
        if name in ("payload", *(f"quad{i + 1}" for i in range(n))):
            i = 0 if name == "payload" else int(name.removeprefix("quad"))
            on[..., i, :] += values[..., :3]
        # The names of targets are bodies, payload_x, ..., link1_x, ...
        elif name.startswith("payload_"):
            on[..., 0, "xyz".index(name[-1])] += values[..., 0]
        elif name.startswith("link"):
            i = int(name.removeprefix("link").split("_")[0]) - 1
            link, axis = links[..., i, :], "xyz".index(name[-1])
            size = values[..., 0, None] / parameters.lengths[i]
            # Only the component normal to the link rotates it: (I - q q^T) e / l.
            couple = size * (np.eye(3)[axis] - link * link[..., axis, None])
            on[..., i + 1, :] += couple
            on[..., 0, :] -= couple
    forces = on.reshape(*q.shape[:-1], 3 * n + 3)
    return link_tensions(parameters, q, v, np.concatenate([u, forces], axis=-1))


def taut(dsys: DiscreteSystem) -> Constraint:
    """The constraint that all links stay taut."""
    return tension_limit(dsys, LEAST_TENSION, weight=1e3)


def crafts(system: System) -> tuple[Craft, ...]:
    """The quadrotors as the craft that flight controllers fly."""
    n = system.parameters.n

    def velocity(i: int, q: Graph, v: Graph, parameters: Any) -> Graph:
        y_dot, _, rates = split_velocity(v, n)
        # Velocity of a quadrotor: x_i' = y' + l_i q_i'.
        return y_dot + parameters.lengths[i] * rates[i]

    return tuple(
        Craft(
            f"quad{i + 1}",
            position=partial(_position, n, i),
            attitude=lambda q, i=i: split_configuration(q, n)[1][i],  # type: ignore[misc]
            velocity=partial(velocity, i),
        )
        for i in range(n)
    )


QUADROTOR_PAYLOAD = Scenario(
    name="quadrotor_payload",
    title="Two quadrotors carrying a payload",
    parameters=QuadrotorPayloadParameters(),
    make_system=quadrotor_payload,
    nodes={"fallback": "hold", "on_finish": "continue"},  # goals may arrive at any time
    integrators={"midpoint": midpoint},
    meanings={
        "figure_of_eight": "twice along a figure of eight of 3 m x 2 m, from rest to hover",
        "hover": "the payload at rest at 1 m",
        "line": "from rest to rest, 3.3 m along a rising line",
        "circle": "twice around a circle of radius 1.5 m, from rest to hover",
        "parabola": "the parabola of [celledoni2021 6.2], from a motion to hover",
        "taut_hover": "the payload at rest under steep links",
        "spheres": "4 m straight ahead past two balls near the path, for predictive control",
        "windows": "4.5 m straight ahead through two windows, for predictive control",
    },
    references={name: partial(_reference, name) for name in PATHS},
    weights=weights(2),
    perturbation=PayloadPerturbation(position=0.1, heading=0.1, momentum=0.1),
    perturb=perturbed,
    external=on_bodies,
    to_bodies=to_bodies,
    from_bodies=from_bodies,
    visual=visual_model,
    monitor=MonitoredOutput(
        "tension",
        ("link1", "link2"),
        "N",
        tensions,
        minimum=0.0,
        warning="a slack cable",
        takes_tables=True,
    ),
    disturbance_gain=0.5,
    hold=True,
    limits=SafetyLimits(ranges=("quad1.tilt:0:1.5", "quad2.tilt:0:1.5")),
    guidance=guidance,
    constraints={
        "tension": ScenarioConstraint(taut, "N"),
        "spheres": clear_of([lambda q: q[:3]], SPHERES, 1e3, ("spheres",)),
        "windows": through_windows(lambda q: q[:3], WINDOWS, 0.3, 1e3, ("windows",)),
    },
    horizon_s=0.8,
    flight=Flight(
        crafts,
        Airframe.x(0.3, max_thrust=12.0, drag_ratio=0.05),
        ("hover", "figure_of_eight", "line", "circle", "taut_hover"),
        time_constant=0.12,
        tuning=(
            *("set p_roll = 70", "set i_roll = 40", "set p_pitch = 70", "set i_pitch = 40"),
            *("set p_yaw = 200", "set i_yaw = 20"),
        ),
    ),
)
