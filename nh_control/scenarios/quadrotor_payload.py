"""The quadrotor payload scenario: quadrotors that carry a payload in formation along smooth paths,
tracked by LQR.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

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
from nh_control.scenarios.limits import SafetyLimits
from nh_control.scenarios.names import UnknownName
from nh_control.scenarios.obstacles import clear_of, through_windows
from nh_control.scenarios.payload_flatness import flat_reference
from nh_control.scenarios.payload_guidance import PayloadGuidance
from nh_control.scenarios.perturbation import (
    SeededPerturbation,
    error_seed,
    initial_error,
    momentum_error,
)
from nh_control.scenarios.quadrotor_payload_visual import WORLD, visual_model
from nh_control.scenarios.scenario import (
    BodyState,
    MonitoredOutput,
    Scenario,
)
from nh_control.systems.quadrotor_payload import (
    Formation,
    QuadrotorPayloadParameters,
    payload_space,
    quadrotor_payload,
    split_configuration,
    split_velocity,
)
from nh_control.systems.quadrotor_payload_continuous import link_tensions

FORMATION = Formation(angle=np.radians(80))
"""Across the plane of two links only their tension holds the payload, as springs of
`sum T_i / l_i = m_y g sum(1 / l_i) / (n cos angle)` would: 33 N/m here, 6.6 N/m for links at 30
degrees, with which 2 N of wind carry the payload away before the quadrotors can follow. The price:
14.5 N of thrust, not 9.4 N."""

TAUT = Formation(angle=np.radians(30))
"""Formation with links at 30 degrees, which a predictive tracker keeps taut under wind."""

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
"""Centers and radii (m) of balls beside the way of `spheres`, and of windows, open above for the
links, beside that of `windows`.
"""
"""All end in hover; parabola is that of [celledoni2021 6.2] for 5 s and starts in motion, the
others start at rest.
"""


LEAST_TENSION = 0.3
"""Tension (N) that a predictive tracker keeps in the links."""


def weights(n: int) -> tuple[np.ndarray, np.ndarray, None]:
    """LQR weights for n quadrotors, chosen so that hover is recovered from 0.5 m, 30 degrees of
    link swing and 60 degrees of tilt together.

    Thrust is cheap and torque is not: cheaper torque holds the payload better against wind, but it
    saturates and loses quadrotors that start tilted.
    """
    configuration = [*[20.0] * 3, *[30.0] * 3 * n, *[10.0] * 2 * n]
    momenta = [*[1.0] * 3, *[1.0] * 3 * n, *[0.4] * 2 * n]
    return np.diag(configuration + momenta), np.diag([0.05, 0.4, 0.4, 0.4] * n), None


def _reference(name: str, dsys: DiscreteSystem) -> Trajectory:
    formation = FORMATIONS.get(name, FORMATION)
    return flat_reference(dsys, PATHS[name](), formation, name=name)


def guidance(dsys: DiscreteSystem, reference: Trajectory) -> PayloadGuidance:
    """Guidance along a reference of the scenario with this name; raises UnknownName."""
    if reference.name not in PATHS:
        raise UnknownName("quadrotor_payload reference", reference.name, PATHS)
    formation = FORMATIONS.get(reference.name, FORMATION)
    return PayloadGuidance(dsys, reference, PATHS[reference.name](), formation)


@dataclass(frozen=True)
class PayloadPerturbation(SeededPerturbation):
    """The initial error of a payload and the quadrotors that carry it."""

    position: float = initial_error("m", "distance of everything from the reference's position")
    heading: float = initial_error("rad", "turn of every quadrotor about its own vertical axis")
    momentum: float = momentum_error()
    seed: int = error_seed()
    swing: float = initial_error("rad", "turn of every link away from the reference's direction")
    tilt: float = initial_error(
        "rad", "turn of every quadrotor about a horizontal axis of its own"
    )


def perturbed(
    model: DiscreteSystem, x: np.ndarray, perturbation: PayloadPerturbation
) -> np.ndarray:
    """State x (nx) with the payload moved, every link swung, every quadrotor turned by `heading`
    about its z and then tilted, and the momenta scaled.

    With seed < 0 the payload moves along y, links and quadrotors turn about their first axis and
    momenta grow. Raises ValueError for half a turn or more.
    """
    p, n = perturbation, model.system.parameters.n
    for name in ("heading", "swing", "tilt"):
        if abs(getattr(p, name)) >= np.pi:
            raise ValueError(
                f"PayloadPerturbation.{name} must be below half a turn, got {getattr(p, name)} rad"
            )
    direction, turns, signs = (
        np.array([0.0, 1.0, 0.0]),
        np.zeros((2, n)),
        np.ones(n + model.system.nrho),
    )
    if p.seed >= 0:
        draw = np.random.default_rng(p.seed)
        direction = draw.normal(size=3)
        direction /= np.linalg.norm(direction)
        turns, signs = draw.uniform(0, 2 * np.pi, (2, n)), draw.choice([-1.0, 1.0], len(signs))
    nq, nv = model.system.space.nq, model.system.space.nv
    momenta = model.local(np.concatenate([x[:nq], np.zeros(len(x) - nq)]), x)[nv:]
    first, second = np.zeros(model.ndx), np.zeros(model.ndx)
    first[:3] = p.position * direction
    first[5 : 3 + 3 * n : 3] = signs[:n] * p.heading
    first[nv:] = p.momentum * signs[n:] * momenta
    second[3 : 3 + 3 * n].reshape(n, 3)[:, :2] = p.tilt * _unit(turns[0])
    second[3 + 3 * n : 3 + 5 * n] = (p.swing * _unit(turns[1])).ravel()
    for angles in (first, second):
        x = model.retract(x, _local_of_turns(model, x, angles))
    return x


def _local_of_turns(model: DiscreteSystem, x: np.ndarray, turns: np.ndarray) -> np.ndarray:
    """Local coordinates (ndx) of a change of x by rotation vectors, for any retraction."""
    space, q = model.system.space, model.configuration(x)
    by_angles = _by_angles(model.system.parameters.n)
    reached = by_angles.retract(q, turns[: space.nv])
    return np.concatenate([space.local(q, reached), turns[space.nv :]])


@cache
def _by_angles(n: int) -> Space:
    """The configurations with n quadrotors, moved by rotation vectors."""
    return payload_space(n, "exp", "exp")


def _unit(angles: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def to_bodies(
    parameters: QuadrotorPayloadParameters, q: np.ndarray, v: np.ndarray
) -> tuple[BodyState, ...]:
    """The payload, which does not turn, and the quadrotors, `x_i = y + l_i q_i`, of a
    configuration (nq) and velocity (nw).
    """
    (y, attitudes, links), (y_dot, omegas, rates) = (
        split_configuration(q, parameters.n),
        split_velocity(v, parameters.n),
    )
    payload = BodyState("payload", WORLD, y, np.array([1.0, 0.0, 0.0, 0.0]), y_dot, np.zeros(3))
    quadrotors = (
        BodyState(f"quad{i + 1}", WORLD, y + l * link, attitude, y_dot + l * rate, omega)
        for i, (l, link, rate, attitude, omega) in enumerate(
            zip(parameters.lengths, links, rates, attitudes, omegas)
        )
    )
    return payload, *quadrotors


def from_bodies(bodies: Sequence[BodyState]) -> tuple[np.ndarray, np.ndarray]:
    """Configuration (nq) and velocity (nw) of the payload followed by the quadrotors; the links'
    directions follow from the positions, at any distance.

    Raises ValueError for other bodies, and for a quadrotor at the place of the payload.
    """
    frames = [body.frame for body in bodies]
    if frames != ["payload", *(f"quad{i + 1}" for i in range(len(bodies) - 1))] or len(frames) < 2:
        raise ValueError(f"expected the bodies payload, quad1, ..., got {frames}")
    payload, *quadrotors = bodies
    links, rates = [], []
    for body in quadrotors:
        offset, speed = (
            np.subtract(body.position, payload.position),
            np.subtract(body.linear_velocity, payload.linear_velocity),
        )
        length = np.linalg.norm(offset)
        if not length > 0:
            raise ValueError(f"{body.frame} is at the payload: its link has no direction")
        link = offset / length
        links.append(link)
        rates.append((speed - link * (link @ speed)) / length)
    attitudes = [
        np.divide(body.quaternion_wxyz, np.linalg.norm(body.quaternion_wxyz))
        for body in quadrotors
    ]
    q = np.concatenate([payload.position, *attitudes, *links])
    return q, np.concatenate(
        [payload.linear_velocity, *(body.angular_velocity_body for body in quadrotors), *rates]
    )


def on_bodies(system: System) -> tuple[ForceTarget, ...]:
    """Disturbances act on the payload, a point, and on the quadrotors at `x_i = y + l_i q_i`."""
    n, space = system.parameters.n, system.space

    def pose(i: int, q: Graph, p: Any) -> tuple[Graph, Graph]:
        y, attitudes, links = split_configuration(q, n)
        return y + p.lengths[i] * links[i], quaternion.matrix(attitudes[i])

    payload = on_point(
        space,
        "payload",
        lambda q, p: q[:3],
        "force on the payload, e.g. wind, in the world's axes",
    )
    quadrotors = (
        on_body(
            space,
            f"quad{i + 1}",
            partial(pose, i),
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
    """Tensions (N) of the links (n) under the inputs u (4 n) and external forces.

    An external force on the coordinates of a link is a couple that turns it: a force on the
    quadrotor and the opposite force on the payload.
    """
    p, links = parameters, split_configuration(q, parameters.n)[2]
    on = np.zeros((p.n + 1, 3))
    for name, values in external.items():
        if name in ("payload", *(f"quad{i + 1}" for i in range(p.n))):
            on[0 if name == "payload" else int(name.removeprefix("quad"))] += values[:3]
        elif name.startswith("payload_"):
            on[0, "xyz".index(name[-1])] += values[0]
        elif name.startswith("link"):
            i = int(name.removeprefix("link").split("_")[0]) - 1
            couple = np.zeros(3)
            couple["xyz".index(name[-1])] = values[0] / p.lengths[i]
            couple -= links[i] * (links[i] @ couple)
            on[i + 1] += couple
            on[0] -= couple
    return link_tensions(p, q, v, np.concatenate([u, on.ravel()]))


def taut(dsys: DiscreteSystem) -> Constraint:
    """All links pull."""
    return tension_limit(dsys, LEAST_TENSION, weight=1e3)


QUADROTOR_PAYLOAD = Scenario(
    name="quadrotor_payload",
    title="Two quadrotors carrying a payload",
    parameters=QuadrotorPayloadParameters(),
    make_system=quadrotor_payload,
    nodes={"fallback": "hold", "on_finish": "continue"},  # goals may come at any time
    integrators={"midpoint": midpoint},
    references={name: partial(_reference, name) for name in PATHS},
    weights=weights(2),
    perturbation=PayloadPerturbation(position=0.1, heading=0.1, momentum=0.1),
    perturb=perturbed,
    external=on_bodies,
    to_bodies=to_bodies,
    from_bodies=from_bodies,
    visual=visual_model,
    monitor=MonitoredOutput(
        "tension", ("link1", "link2"), "N", tensions, minimum=0.0, warning="a slack cable"
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
)
