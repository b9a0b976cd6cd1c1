"""The satellite scenario: slews from rest to rest with reaction wheels. LQR tracks the slews."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import casadi as ca
import numpy as np
from transforms3d.quaternions import axangle2quat, qmult, quat2mat

from nh_control.control.constraints import Constraint
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry import quaternion
from nh_control.integrators import midpoint
from nh_control.mechanics.external_forces import ForceTarget, on_body
from nh_control.mechanics.system import System
from nh_control.scenarios.constraints import OBSTACLES, ScenarioConstraint
from nh_control.scenarios.perturbation import SeededPerturbation, error_seed, initial_error
from nh_control.scenarios.satellite_visual import visual_model
from nh_control.scenarios.scenario import BodyState, Joint, MonitoredOutput, Scenario
from nh_control.scenarios.visual_model import ODOM, ORANGE, Shape
from nh_control.systems.satellite import SatelliteParameters, axles, satellite

SHARE = 0.5
"""Share of the motor torque that a slew uses. The rest is left for feedback."""
STILL_S = 4.0
"""Time (s) at rest after each slew."""


@dataclass(frozen=True)
class Slew:
    """A rotation by `angle` (rad) about an `axis` of the body, from rest to rest."""

    axis: tuple[float, float, float]
    angle: float


MANEUVERS: dict[str, tuple[Slew, ...]] = {
    "slew": (Slew((1.0, 2.0, 2.0), 2 * np.pi / 3),),
    "about_face": (Slew((0.0, 0.0, 1.0), np.pi),),
    "three_targets": (
        Slew((0.0, 1.0, 0.0), np.pi / 4),
        Slew((1.0, 0.0, 1.0), -np.pi / 2),
        Slew((0.0, 1.0, 1.0), np.pi / 3),
    ),
}


SUN = np.array([0.30, 0.78, -0.58]) / np.linalg.norm([0.30, 0.78, -0.58])
CONE, SUN_M = np.radians(12.0), 1.5
"""Half angle (rad) of the cone around the sun that the telescope must avoid, and distance (m) at
which the sun is drawn.
"""
QUIET = 150.0
"""Rate (rad/s) above which a wheel shakes the telescope."""


def momentum_split(parameters: SatelliteParameters) -> tuple[np.ndarray, np.ndarray]:
    """The body's inertia J (3, 3), and the pseudo-inverse A^+ (n, 3) of the axles A. The wheel
    momenta `h = A^+ (total - J Omega)` have the smallest norm.
    """
    J = np.diag([parameters.Jx, parameters.Jy, parameters.Jz])
    return J, np.linalg.pinv(np.asarray(axles(parameters)))


def maneuver(dsys: DiscreteSystem, slews: Sequence[Slew], wheel_rate: float = 0.0) -> Trajectory:
    """A sequence of slews, each followed by a rest. All wheels initially turn at `wheel_rate`
    (rad/s). The satellite conserves the resulting momentum, and the wheels carry it while the body
    is at rest.

    The angle of a slew follows the minimum-jerk polynomial `s^3 (10 - 15 s + 6 s^2)`, as fast as
    the fraction `SHARE` of the torque would allow without this momentum. All methods change the
    wheels' momenta by `h u` in a step, so the inputs follow from the differences between the
    momenta at the nodes. The reference is the model's motion with these inputs. It misses the
    angle by O(h^2), and it ends exactly at rest if the total momentum is zero.
    """
    parameters = dsys.system.parameters
    J, least = momentum_split(parameters)
    attitudes, omegas = _attitudes(parameters, slews, dsys.h)
    spin = np.asarray(parameters.wheel_inertias) * wheel_rate
    # The total momentum in world axes is constant.
    total = quat2mat(attitudes[0]) @ np.asarray(axles(parameters)) @ spin
    # Conservation of momentum in body axes: A h_k = R_k^T total - J Omega_k.
    of_wheels = [least @ (quat2mat(q).T @ total - J @ w) for q, w in zip(attitudes, omegas)]
    inputs = np.diff(of_wheels, axis=0) / dsys.h
    start = dsys.system.space.origin
    rates = of_wheels[0] / parameters.wheel_inertias
    return dsys.simulate(dsys.state(start, [0.0, 0.0, 0.0, *rates]), inputs)


def _attitudes(
    parameters: SatelliteParameters, slews: Sequence[Slew], h: float
) -> tuple[np.ndarray, np.ndarray]:
    """The attitudes (N + 1, 4) and angular velocities (N + 1, 3) at the nodes."""
    J, least = momentum_split(parameters)
    attitudes, omegas = [np.array([1.0, 0.0, 0.0, 0.0])], [np.zeros(3)]
    for slew in slews:
        axis = np.divide(slew.axis, np.linalg.norm(slew.axis))
        # The largest |s''| is 10 / sqrt(3), so u_max = |A^+ J a| angle 10 / (sqrt(3) T^2).
        hardest = np.abs(least @ J @ axis).max() * 10 / np.sqrt(3) * abs(slew.angle)
        steps = int(np.ceil(np.sqrt(hardest / (SHARE * parameters.torque_limit)) / h))
        start = attitudes[-1]
        for s in np.arange(1, steps + 1) / steps:
            angle = slew.angle * s**3 * (10 - 15 * s + 6 * s**2)
            attitudes.append(qmult(start, axangle2quat(axis, angle)))
            omegas.append(slew.angle * 30 * s**2 * (1 - s) ** 2 / (steps * h) * axis)
        # Rest after the slew, with the same attitude and a rate of zero.
        rest = round(STILL_S / h)
        attitudes += [attitudes[-1]] * rest
        omegas += [np.zeros(3)] * rest
    return np.array(attitudes), np.array(omegas)


def stare(dsys: DiscreteSystem) -> Trajectory:
    """The satellite keeps the same attitude for 30 s."""
    rest = dsys.state(dsys.system.space.origin, np.zeros(3 + dsys.nu))
    return dsys.simulate(rest, np.zeros((round(30.0 / dsys.h), dsys.nu)))


def weights(parameters: SatelliteParameters) -> tuple[np.ndarray, np.ndarray, None]:
    """The LQR weights on the attitude (rad) and on the angular velocity (rad/s)
    `Omega = J^{-1} (total - A h)`, and small weights on wheel momenta that cancel each other.

    The wheel angles have no weight, and neither does the total momentum, because the motors cannot
    change it.
    """
    J, least = momentum_split(parameters)
    A, n = np.asarray(axles(parameters)), parameters.n
    # Omega as a linear function of (total, h), and the part of h in the null space of A.
    rate = np.linalg.solve(J, np.hstack([np.eye(3), -A]))
    idle = np.hstack([np.zeros((n, 3)), np.eye(n) - least @ A])
    Q = np.zeros((6 + 2 * n, 6 + 2 * n))
    Q[:3, :3] = np.eye(3)
    # The state consists of the rotation (3), wheel angles (n), total momentum (3), and wheel
    # momenta (n).
    Q[3 + n :, 3 + n :] = rate.T @ rate + 0.5 * idle.T @ idle
    return Q, 10.0 * np.eye(n), None


@dataclass(frozen=True)
class SatellitePerturbation(SeededPerturbation):
    """The initial error of a satellite."""

    attitude: float = initial_error("rad", "rotation about the axis (1, 1, 1), or a random one")
    rate: float = initial_error("rad/s", "rate of the body about that axis")
    seed: int = error_seed()


def perturbed(
    model: DiscreteSystem, x: np.ndarray, perturbation: SatellitePerturbation
) -> np.ndarray:
    """The state x (nx) with the body rotated and its rate increased. The rates of the wheels
    relative to the body do not change. Raises ValueError for half a turn or more.
    """
    if abs(perturbation.attitude) >= np.pi:
        raise ValueError(
            f"SatellitePerturbation.attitude must be below half a turn, got "
            f"{perturbation.attitude} rad"
        )
    axis = np.ones(3)
    if perturbation.seed >= 0:
        axis = np.random.default_rng(perturbation.seed).normal(size=3)
    axis /= np.linalg.norm(axis)
    q, v = model.configuration(x).copy(), model.velocity(x).copy()
    q[:4] = qmult(q[:4], axangle2quat(axis, perturbation.attitude))
    v[:3] += perturbation.rate * axis
    return model.state(q, v)


def to_bodies(_: SatelliteParameters, q: np.ndarray, v: np.ndarray) -> tuple[BodyState, ...]:
    """The state of the satellite, which rotates about a fixed center. Its wheels are joints."""
    return (BodyState("satellite", ODOM, np.zeros(3), q[:4], np.zeros(3), v[:3]),)


def from_bodies(bodies: Sequence[BodyState]) -> tuple[np.ndarray, np.ndarray]:
    """The attitude (4) and angular velocity (3) of the body. Raises ValueError for other
    bodies.
    """
    if [body.frame for body in bodies] != ["satellite"]:
        raise ValueError(f"expected the body satellite, got {[body.frame for body in bodies]}")
    attitude = bodies[0].quaternion_wxyz
    return np.divide(attitude, np.linalg.norm(attitude)), bodies[0].angular_velocity_body


def on_satellite(system: System) -> tuple[ForceTarget]:
    """The disturbance target: an external torque on the satellite."""
    return (
        on_body(
            system.space,
            "satellite",
            lambda q, parameters: (ca.SX.zeros(3), quaternion.matrix(q[:4])),
            "torque in the axes of odom; a force at its center does nothing",
        ),
    )


def margins(
    parameters: SatelliteParameters,
    q: np.ndarray,
    v: np.ndarray,
    u: np.ndarray,
    external: Mapping[str, np.ndarray],
) -> np.ndarray:
    """The margin (n, rad/s) between each wheel's speed and the speed limit."""
    return parameters.speed_limit - np.abs(v[3:])


def slow_wheels(name: str, dsys: DiscreteSystem) -> Constraint:
    """The constraint that the wheel rates (rad/s) stay within their limit, or within QUIET. The
    rates are `theta_i' = h_i / j_i - a_i . Omega` with `Omega = J^{-1} (p - A h)`.
    """
    parameters, nq = dsys.system.parameters, dsys.system.space.nq
    J = np.array([parameters.Jx, parameters.Jy, parameters.Jz])
    A = ca.DM(np.asarray(axles(parameters)))

    def rates(x: ca.SX, u: ca.SX, w: ca.SX) -> ca.SX:
        # In the state, the momenta come after the configuration.
        total, h = x[nq : nq + 3], x[nq + 3 : nq + 3 + parameters.n]
        return h / np.array(parameters.wheel_inertias) - A.T @ ((total - A @ h) / J)

    most = parameters.speed_limit if name == "wheel_rates" else QUIET
    wheels = [f"wheel{i + 1}" for i in range(parameters.n)]
    return Constraint(name, rates, -most, most, weight=1.0, rows=wheels)


def away_from_sun(dsys: DiscreteSystem) -> Constraint:
    """The constraint that the angle (rad) between the telescope's x axis and the sun is at least
    CONE.
    """
    sun = ca.DM(SUN)

    def angle(x: ca.SX, u: ca.SX, w: ca.SX) -> ca.SX:
        axis = quaternion.rotate(x[:4], ca.SX([1.0, 0.0, 0.0]))
        # The angle is atan2(|a x s|, a . s). The small constant keeps it differentiable at 0 and
        # pi.
        return ca.atan2(ca.sqrt(ca.sumsqr(ca.cross(axis, sun)) + 1e-12), ca.dot(axis, sun))

    return Constraint("sun", angle, lower=CONE, weight=100.0)


NOMINAL = SatelliteParameters()
WHEELS = tuple(f"wheel{i + 1}" for i in range(NOMINAL.n))

SUN_SHAPE = Shape(
    "sphere",
    (2 * SUN_M * np.tan(CONE),) * 3,
    ORANGE,
    OBSTACLES,
    tuple((SUN_M * SUN).tolist()),
    opacity=0.6,
)
"""A ball as large as the cone at the ball's distance."""

SATELLITE = Scenario(
    name="satellite",
    title="Satellite slewing by reaction wheels",
    parameters=NOMINAL,
    make_system=satellite,
    integrators={"midpoint": midpoint},
    meanings={
        "slew": "a turn by 120 degrees, from rest to rest",
        "about_face": "a turn by 180 degrees, from rest to rest",
        "three_targets": "three turns one after the other, each from rest to rest",
        "biased_slew": "the turn by 120 degrees with wheels that spin at 100 rad/s",
        "slew_past_sun": "the turn by 120 degrees past the sun, for predictive control",
    },
    references={
        **{name: partial(maneuver, slews=slews) for name, slews in MANEUVERS.items()},
        "biased_slew": partial(maneuver, slews=MANEUVERS["slew"], wheel_rate=100.0),
        "slew_past_sun": partial(maneuver, slews=MANEUVERS["slew"], wheel_rate=120.0),
        "stare": stare,
    },
    weights=weights(NOMINAL),
    perturbation=SatellitePerturbation(attitude=0.3, rate=0.01),
    perturb=perturbed,
    joints=tuple(Joint(f"{wheel}_joint", wheel) for wheel in WHEELS),
    to_bodies=to_bodies,
    from_bodies=from_bodies,
    external=on_satellite,
    monitor=MonitoredOutput(
        "speed margin", WHEELS, "rad/s", margins, minimum=0.0, warning="a saturated wheel"
    ),
    visual=visual_model,
    step_s=0.02,
    hold=True,
    excluded=(*(f"p_rotation_{c}" for c in "xyz"), *WHEELS),
    constraints={
        "wheel_rates": ScenarioConstraint(partial(slow_wheels, "wheel_rates"), "rad/s"),
        "quiet_wheels": ScenarioConstraint(
            partial(slow_wheels, "quiet_wheels"), "rad/s", ("slew_past_sun",)
        ),
        "sun": ScenarioConstraint(away_from_sun, "rad", ("slew_past_sun",), (SUN_SHAPE,)),
    },
    horizon_s=3.0,
)
