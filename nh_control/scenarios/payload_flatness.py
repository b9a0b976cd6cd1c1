"""Motions of quadrotors with a payload from the payload's path alone: the system is differentially
flat.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import casadi as ca
import numpy as np

from nh_control.control.paths import ORDER, Path
from nh_control.control.projection import project_trajectory
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry import quaternion
from nh_control.geometry.rotations import normalize
from nh_control.mechanics import parametric
from nh_control.numerics.compiled import Functions
from nh_control.numerics.expressions import Vector
from nh_control.systems.quadrotor_payload import Formation, QuadrotorPayloadParameters


class InfeasiblePath(ValueError):
    """A path needs more than the system's limits; the message names the limit, the time and the
    needed value."""


@dataclass(frozen=True)
class FlatMotion:
    """Exact continuous motion at N times: configurations q (N, nq), velocities v (N, nw), inputs u
    (N, nu), link tensions (N, n) in N.
    """

    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    tensions: np.ndarray


def norm(a: ca.SX) -> ca.SX:
    """Length of a, differentiable by `jtimes` away from zero."""
    return ca.sqrt(ca.sumsqr(a))


def shortest_rotation(b: ca.SX) -> ca.SX:
    """Unit quaternion of the least rotation that takes z to the unit vector b; singular at b =
    -z.
    """
    return normalize(ca.vertcat(1 + b[2], -b[1], b[0], 0))


@lru_cache(maxsize=16)
def _flat_map(n: int) -> Functions:
    """q, v, u and tensions of n quadrotors as functions of the payload's position and its
    derivatives up to order 6, (21), of the numbers of `QuadrotorPayloadParameters`, and of the
    horizontal vectors s_i in m/s^2, (3 n).

    Flat outputs are the payload's position y, the quadrotors' yaw (0: the least rotation that
    tilts them) and the links' forces on the payload
    `F_i = F/n + m_y s_i,  F = m_y (y'' + g e3)` with constant horizontal s_i, `sum s_i = 0`, that
    give the formation in hover. Then
    `q_i = F_i / |F_i|,  x_i = y + l_i q_i,  T_i R_i e3 = m_i (x_i'' + g e3) + F_i,  M_i = J
    Omega_i' + Omega_i x J Omega_i`.
    """
    numbers, p = parametric.symbolic(QuadrotorPayloadParameters(lengths=(1.0,) * n))
    jet, spread = ca.SX.sym("jet", 3, ORDER + 1), ca.SX.sym("spread", 3, n)
    shifted = ca.horzcat(jet[:, 1:], ca.SX(3, 1))

    def rate(expression: ca.SX) -> ca.SX:
        return ca.jtimes(expression, jet, shifted)

    gravity, inertia = ca.vertcat(0, 0, p.g), ca.vertcat(p.Jx, p.Jy, p.Jz)
    force = p.payload_mass * (jet[:, 2] + gravity)
    columns: tuple[list[ca.SX], ...] = [], [], [], [], [], []
    for i, l in enumerate(p.lengths):
        # force, direction and rate of the link; thrust from Newton's law of the quadrotor
        link_force = force / n + p.payload_mass * spread[:, i]
        link = normalize(link_force)
        link_rate = rate(link)
        thrust = p.quadrotor_mass * (jet[:, 2] + l * rate(link_rate) + gravity) + link_force
        # attitude along the thrust; body rates and torque by Euler's equation
        attitude = shortest_rotation(normalize(thrust))
        omega = 2 * quaternion.multiply(quaternion.conjugate(attitude), rate(attitude))[1:]
        torque = inertia * rate(omega) + ca.cross(omega, inertia * omega)
        for column, value in zip(
            columns,
            (attitude, omega, link, link_rate, ca.vertcat(norm(thrust), torque), norm(link_force)),
        ):
            column.append(value)
    attitudes, omegas, links, link_rates, inputs, tensions = columns
    q = ca.vertcat(jet[:, 0], *attitudes, *links)
    v = ca.vertcat(jet[:, 1], *omegas, *link_rates)
    outputs = [q, v, ca.vertcat(*inputs), ca.vertcat(*tensions)]
    arguments, names = [ca.vec(jet), numbers, ca.vec(spread)], ["jet", "parameters", "spread"]
    flat = ca.Function("flat", arguments, outputs, names, ["q", "v", "u", "tension"])
    return Functions("quadrotor_payload_flat", [flat])


def _flat(
    p: QuadrotorPayloadParameters, formation: Formation
) -> Callable[[np.ndarray], tuple[np.ndarray, ...]]:
    """q, v, u and tensions as functions of the payload's position and its derivatives, (21)."""
    spread = p.g / p.n * np.tan(formation.angle) * formation.horizontal(p.n)
    flat, numbers, away = _flat_map(p.n), parametric.values(p), spread.ravel()
    return lambda jet: flat("flat", jet, numbers, away)


def payload_parameters(dsys: DiscreteSystem) -> QuadrotorPayloadParameters:
    """Parameters of a system of quadrotors with a payload; raises TypeError for another system."""
    parameters = dsys.system.parameters
    if not isinstance(parameters, QuadrotorPayloadParameters):
        raise TypeError(
            f"{dsys}: expected the system `quadrotor_payload`, got {dsys.system.name!r} with "
            f"parameters {parameters!r}"
        )
    return parameters


def flat_motion(
    parameters: QuadrotorPayloadParameters,
    path: Path,
    times: Vector,
    formation: Formation = Formation(),
) -> FlatMotion:
    """Motion under which the payload follows the path exactly, at `times` (N) in s; raises
    InfeasiblePath where a link or a thrust loses its direction.
    """
    flat = _flat(parameters, formation)
    rows = [[out[:, 0] for out in flat(jet.ravel())] for jet in path.jets(times)]
    motion = FlatMotion(*(np.array(column) for column in zip(*rows)))
    regular = np.isfinite(np.hstack([motion.q, motion.v, motion.u, motion.tensions])).all(axis=1)
    if not regular.all():
        k = int(np.argmin(regular))
        raise InfeasiblePath(
            f"at t = {times[k]:g} s a link's force or a thrust has no direction: the payload's "
            f"acceleration cannot come near -g"
        )
    return motion


def flat_reference(
    dsys: DiscreteSystem,
    path: Path,
    formation: Formation = Formation(),
    settle_s: float = 2.0,
    name: str = "",
    start: np.ndarray | None = None,
) -> Trajectory:
    """Discretely feasible reference along which the payload follows the path and then stays for
    `settle_s` s, from the state `start` (nx) if given.

    States of the flat motion at the nodes and its inputs at the middles of the steps are projected
    with weights that favor the payload's position; the result differs from the path by O(h^2).
    Raises InfeasiblePath where the inputs exceed the system's limits, or the payload would fall as
    fast as freely.
    """
    parameters = payload_parameters(dsys)
    hover = _flat(parameters, formation)(np.zeros(3 * (ORDER + 1)))[2].T
    _require_within_limits(
        dsys,
        [0.0],
        hover,
        f"hover with links at {np.degrees(formation.angle):.3g} degrees",
        "choose links closer to the vertical",
    )
    nodes = dsys.h * np.arange(round((path.duration + settle_s) / dsys.h) + 1)
    motion = flat_motion(parameters, path, nodes, formation)
    middles = nodes[:-1] + dsys.h / 2
    inputs = flat_motion(parameters, path, middles, formation).u
    _require_tight(dsys, nodes, path)
    _require_within_limits(dsys, middles, inputs, "the path", "make it slower")
    states = dsys.state(motion.q, motion.v)
    if start is not None:
        states[0] = start
    desired = Trajectory(dsys.h, states, inputs, dsys.state_names, dsys.inputs, name, dsys)
    nv = dsys.system.space.nv
    Q = np.diag(np.r_[np.full(3, 100.0), np.ones(nv - 3), np.full(nv, 0.01)])
    return project_trajectory(dsys, desired, Q, 1e-4 * np.eye(dsys.nu))


def _require_tight(dsys: DiscreteSystem, times: Vector, path: Path) -> None:
    down = -path.jets(times)[:, 2, 2]
    k, g = int(np.argmax(down)), payload_parameters(dsys).g
    if down[k] >= g:
        raise InfeasiblePath(
            f"{dsys}: the payload falls with {down[k]:.3g} m/s^2 at t = {times[k]:g} s: cables "
            f"go slack at g = {g:g} m/s^2, make it slower"
        )


def _require_within_limits(
    dsys: DiscreteSystem, times: Vector, inputs: np.ndarray, what: str, remedy: str
) -> None:
    lower, upper = dsys.system.input_bounds.T
    excess = np.maximum(lower - inputs, inputs - upper)
    k, i = map(int, np.unravel_index(np.argmax(excess), excess.shape))
    if excess[k, i] > 0:
        raise InfeasiblePath(
            f"{dsys}: {what} needs {dsys.inputs[i]} = {inputs[k, i]:.3g} at t = {times[k]:g} s, "
            f"allowed are {lower[i]:g} ... {upper[i]:g}: {remedy}"
        )
