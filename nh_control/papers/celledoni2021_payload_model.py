"""The controlled payload in [celledoni2021 6.2], formulated as problems for Lie group methods."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import casadi as ca
import numpy as np

from nh_control.control.paths import ORDER
from nh_control.geometry.homogeneous import ProductAction, TangentSphereAction, TranslationAction
from nh_control.mechanics import parametric
from nh_control.numerics.compiled import Functions
from nh_control.papers.celledoni2021_flow import METHODS, Problem, Steps, Untouched
from nh_control.papers.celledoni2021_payload_control import (
    GeometricGains,
    desired_thrusts,
    quadrotor_inputs,
)
from nh_control.systems import quadrotor_payload_continuous as continuous
from nh_control.systems.quadrotor_payload import Formation, QuadrotorPayloadParameters
from nh_control.systems.quadrotor_payload_field import (
    accelerations,
    quadrotor_payload_field,
    split,
)

PARAMETERS, GAINS = QuadrotorPayloadParameters(), GeometricGains()
FORMATION = Formation(np.pi / 6, azimuth=-np.pi / 2)
"""r_i = (+-sin 30 deg, 0, cos 30 deg), s_d = (0, -1, 0)."""
DURATION_S, STEP_S = 5.0, 0.01
TILT = np.radians(80)
LINKS = np.array([[-np.sin(TILT), 0, np.cos(TILT)], [np.sin(TILT), 0, np.cos(TILT)]])
START_Y = np.array([-2.0, 0.0, 0.0])


class PayloadMotion(NamedTuple):
    """Times (N) of a run, payload positions y (N, 3) and velocities v (N, 3), and link directions
    q (N, 2, 3) and angular velocities w (N, 2, 3).
    """

    times: np.ndarray
    y: np.ndarray
    v: np.ndarray
    q: np.ndarray
    w: np.ndarray


def reference_position(t: np.ndarray) -> np.ndarray:
    """Return y_d (N, 3) at times (N)."""
    return np.stack([t - 2.5, 0 * t, 7 - (t - 2.5) ** 2], axis=-1)


def _jet(t: ca.SX) -> ca.SX:
    """Return y_d and its derivatives (21) at time t."""
    # The polynomial has few nonzero derivatives, but the control law needs all up to ORDER.
    y = [ca.vertcat(t - 2.5, 0, 7 - (t - 2.5) ** 2)]
    for _ in range(ORDER):
        y.append(ca.jacobian(y[-1], t))
    return ca.densify(ca.vertcat(*y))


def without_attitudes() -> Problem:
    """Return the paper's simplified model with the geometric controller. Thrusts may have any
    direction. R^6 x SE(3)^2 x R acts on x = (y, v, q_1, w_1, q_2, w_2, t), which includes the time
    t.
    """
    action = ProductAction(
        TranslationAction(*(f"payload_{c}" for c in ("x", "y", "z", "v_x", "v_y", "v_z"))),
        TangentSphereAction(),
        TangentSphereAction(),
        TranslationAction("time"),
    )
    x = ca.SX.sym("x", action.nx)
    y, v, q, w, t = x[:3], x[3:6], [x[6:9], x[12:15]], [x[9:12], x[15:18]], x[18]
    thrusts = desired_thrusts(PARAMETERS, FORMATION, GAINS, _jet(t), (y, v, q, w)).forces
    # The field maps x to the algebra: (w, q x w') generates a motion on T S^2.
    v_dot, w_dots = accelerations(PARAMETERS, q, w, [thrusts[:, 0], thrusts[:, 1]])
    link_rates = [part for a in zip(w, map(ca.cross, q, w_dots)) for part in a]
    x0 = np.concatenate([START_Y, np.zeros(3), np.ravel(np.hstack([LINKS, 0 * LINKS])), [0.0]])
    return _problem("payload_thrusts", action, x, ca.vertcat(v, v_dot, *link_rates, 1), x0)


def with_attitudes() -> Problem:
    """Return the complete model on T R^3 x (T SO(3))^2 x (T S^2)^2, with x as in
    `quadrotor_payload_field`, followed by the time. Thrusts act along the bodies' z axes, and
    moments control the attitudes.
    """
    system, field = quadrotor_payload_field(PARAMETERS)
    action = ProductAction(*system.factors, TranslationAction("time"))
    x = ca.SX.sym("x", action.nx)
    s, t = split(x, 2), x[-1]
    thrusts = desired_thrusts(PARAMETERS, FORMATION, GAINS, _jet(t), (s.y, s.v, s.links, s.spins))
    u = quadrotor_inputs(PARAMETERS, GAINS, thrusts, s.attitudes, s.omegas)
    # Closed loop: the system's field with the controller's inputs, and t' = 1.
    f = ca.vertcat(field(x[:-1], u, parametric.values(PARAMETERS)), 1)
    upright = np.tile([1.0, 0, 0, 0, 0, 0, 0], 2)
    x0 = np.concatenate(
        [START_Y, np.zeros(3), upright, np.ravel(np.hstack([LINKS, 0 * LINKS])), [0.0]]
    )
    return _problem("payload_attitudes", action, x, f, x0)


def _problem(name: str, action: ProductAction, x: ca.SX, f: ca.SX, x0: np.ndarray) -> Problem:
    arguments, names = [x, ca.SX.sym("u", 0), ca.SX.sym("p", 0)], ["x", "u", "p"]
    field = ca.Function("field", arguments, [ca.densify(f)], names, ["f"], {"cse": True})
    return Problem(name, action, field, np.zeros(0), x0)


@lru_cache(maxsize=1)
def methods() -> tuple[Problem, Steps]:
    """Return the simplified model and its compiled steps for all methods. Points are not
    normalized.
    """
    problem = without_attitudes()
    untouched = problem.on(Untouched)
    table = {name: (method, untouched) for name, method in METHODS.items()}
    table |= {"RKMK5": ("rkmk54", untouched), "RK4": ("rkmk4", problem.flat)}
    return problem, Steps("celledoni2021_payload", table)


@lru_cache(maxsize=2)
def run(method: str = "RKMK4") -> PayloadMotion:
    """Run the simplified model from rest onto the parabola."""
    problem, steps = methods()
    states = steps.run(method, problem, STEP_S, round(DURATION_S / STEP_S))
    return _motion(states[:, 18], states, states[:, 6:18])


@lru_cache(maxsize=1)
def run_with_attitudes(h: float = 0.0025) -> PayloadMotion:
    """Run the complete model with RKMK4."""
    problem = with_attitudes()
    steps = Steps("celledoni2021_payload_attitudes", {"RKMK4": ("rkmk4", problem)})
    states = steps.run("RKMK4", problem, h, round(DURATION_S / h))
    return _motion(states[:, 32], states, states[:, 20:32])


def _motion(times: np.ndarray, states: np.ndarray, links: np.ndarray) -> PayloadMotion:
    """Return the motion given by states (N, nx), which begin with y and v, and links (N, 12)."""
    pairs = links.reshape(-1, 2, 6)  # (q_i, w_i) of both links
    y, v = states[:, :3], states[:, 3:6]
    return PayloadMotion(times, y, v, q=pairs[..., :3], w=pairs[..., 3:])


def tensions(motion: PayloadMotion) -> np.ndarray:
    """Return the link tensions (N, 2) in N. They follow from Newton's law for the quadrotors along
    the links.
    """
    m, out = PARAMETERS.quadrotor_mass, []
    for q, w, force in zip(motion.q, motion.w, control_inputs(motion)[0]):
        none = np.zeros((2, 3))
        v_dot, _w_dot, _omega_dot = continuous.accelerations(PARAMETERS, q, w, none, force, none)
        # T = q . (u - m (y'' + g e3)) + m l |w|^2
        pull = force - m * (v_dot + PARAMETERS.g * continuous.E3)
        centripetal = m * np.array(PARAMETERS.lengths) * np.sum(w**2, axis=1)
        out.append(np.sum(q * pull, axis=1) + centripetal)
    return np.array(out)


def control_inputs(motion: PayloadMotion) -> tuple[np.ndarray, np.ndarray]:
    """Return the controller's thrusts in N and the desired link directions along a run, (N, 2, 3)
    each.
    """
    x = ca.SX.sym("x", 19)
    parts = x[1:4], x[4:7], [x[7:10], x[13:16]], [x[10:13], x[16:19]]
    thrusts = desired_thrusts(PARAMETERS, FORMATION, GAINS, _jet(x[0]), parts)
    law = ca.Function("law", [x], [thrusts.forces, thrusts.links])
    compiled = Functions("celledoni2021_payload_law", [law])
    pairs = np.concatenate([motion.q, motion.w], axis=2).reshape(-1, 12)
    # Arguments of the control law: t, y, v and the pairs (q_i, w_i).
    rows = np.column_stack([motion.times, motion.y, motion.v, pairs])
    both = [compiled("law", row) for row in rows]
    return np.array([a.T for a, _ in both]), np.array([b.T for _, b in both])
