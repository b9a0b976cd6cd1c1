"""Motions of quadrotors with a payload. They are computed from the payload's path, because the
system is differentially flat.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path as FilePath

import casadi as ca
import numpy as np

from nh_control.control import lqr, projection
from nh_control.control.paths import ORDER, Path
from nh_control.control.projection import project_trajectory
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry import quaternion
from nh_control.geometry.rotations import normalize
from nh_control.mechanics import parametric
from nh_control.numerics.compiled import Functions
from nh_control.numerics.expressions import Vector
from nh_control.numerics.result_cache import cached_result
from nh_control.systems.quadrotor_payload import Formation, QuadrotorPayloadParameters


class InfeasiblePath(ValueError):
    """A path exceeds the system's limits. The message contains the limit, the time and the
    required value.
    """


@dataclass(frozen=True)
class FlatMotion:
    """An exact continuous motion sampled at N times: configurations q (N, nq), velocities v (N,
    nw), inputs u (N, nu) and link tensions (N, n) in N.
    """

    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    tensions: np.ndarray


def norm(a: ca.SX) -> ca.SX:
    """The Euclidean norm of a, which `jtimes` can differentiate except at zero."""
    return ca.sqrt(ca.sumsqr(a))


def shortest_rotation(b: ca.SX) -> ca.SX:
    """The unit quaternion of the smallest rotation that takes z to the unit vector b. It is
    singular at b = -z.
    """
    return normalize(ca.vertcat(1 + b[2], -b[1], b[0], 0))


@lru_cache(maxsize=16)
def _flat_map(n: int) -> Functions:
    """q, v, u and the tensions for n quadrotors, as functions of the payload's position and its
    derivatives up to order 6 (21), the values of `QuadrotorPayloadParameters`, and the horizontal
    vectors s_i (3 n) in m/s^2.

    The flat outputs are the payload's position y, the quadrotors' yaw (0 stands for the smallest
    rotation that tilts them) and the forces of the links on the payload,
    `F_i = F/n + m_y s_i,  F = m_y (y'' + g e3)`. The constant horizontal vectors s_i with
    `sum s_i = 0` determine the formation in hover. The motion follows from
    `q_i = F_i / |F_i|,  x_i = y + l_i q_i,  T_i R_i e3 = m_i (x_i'' + g e3) + F_i,
    M_i = J Omega_i' + Omega_i x J Omega_i`.
    """
    numbers, parameters = parametric.symbolic(QuadrotorPayloadParameters(lengths=(1.0,) * n))
    jet, spread = ca.SX.sym("jet", 3, ORDER + 1), ca.SX.sym("spread", 3, n)
    # Time derivative of the jet (y, y', ..., y^(6)). Total derivatives are directional derivatives
    # along it.
    shifted = ca.horzcat(jet[:, 1:], ca.SX(3, 1))

    def rate(expression: ca.SX) -> ca.SX:
        return ca.jtimes(expression, jet, shifted)

    gravity, inertia = (
        ca.vertcat(0, 0, parameters.g),
        ca.vertcat(parameters.Jx, parameters.Jy, parameters.Jz),
    )
    force = parameters.payload_mass * (jet[:, 2] + gravity)
    columns: tuple[list[ca.SX], ...] = [], [], [], [], [], []
    for i, l in enumerate(parameters.lengths):
        # Force, direction and rate of the link, and thrust from Newton's law for the quadrotor.
        link_force = force / n + parameters.payload_mass * spread[:, i]
        link = normalize(link_force)
        link_rate = rate(link)
        thrust = (
            parameters.quadrotor_mass * (jet[:, 2] + l * rate(link_rate) + gravity) + link_force
        )
        # The attitude is along the thrust. Body rates are 2 conj(a) a', and the torque follows
        # from Euler's equation.
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
    parameters: QuadrotorPayloadParameters, formation: Formation
) -> Callable[[np.ndarray], tuple[np.ndarray, ...]]:
    """q, v, u and the tensions as functions of the payload's position and its derivatives (21)."""
    # In hover, F_i / m_y = g e3 / n + s_i, so |s_i| = g tan(angle) / n.
    spread = (
        parameters.g / parameters.n * np.tan(formation.angle) * formation.horizontal(parameters.n)
    )
    flat, numbers, away = _flat_map(parameters.n), parametric.values(parameters), spread.ravel()
    return lambda jet: flat("flat", jet, numbers, away)


def payload_parameters(dsys: DiscreteSystem) -> QuadrotorPayloadParameters:
    """The parameters of a system of quadrotors with a payload. Raises TypeError for other
    systems.
    """
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
    """The motion at `times` (N) in s in which the payload follows the path exactly. Raises
    InfeasiblePath if a link force or a thrust vanishes, because its direction is then undefined.
    """
    flat = _flat(parameters, formation)
    rows = [[out[:, 0] for out in flat(jet.ravel())] for jet in path.jets(times)]
    q, v, u, tensions = (np.array(column) for column in zip(*rows))
    motion = FlatMotion(q, v, u, tensions)
    regular = np.isfinite(np.hstack([motion.q, motion.v, motion.u, motion.tensions])).all(axis=1)
    if not regular.all():
        k = int(np.argmin(regular))
        raise InfeasiblePath(
            f"at t = {times[k]:g} s the force of a link or a thrust vanishes: the payload's "
            f"acceleration must not come near -g"
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
    """A discretely feasible reference, in which the payload follows the path and then stays in
    place for `settle_s` s. The reference begins at the state `start` (nx), if one is given.

    The reference is a projection of the flat motion, with states sampled at the nodes and inputs
    at the midpoints of the steps. The weights favor the payload's position, which differs from the
    path by O(h^2). Raises InfeasiblePath if inputs exceed the system's limits or the payload would
    have to be in free fall.
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
    # The first three coordinates are the payload's position. Momenta have small weights.
    Q = np.diag(np.r_[np.full(3, 100.0), np.ones(nv - 3), np.full(nv, 0.01)])
    return project_trajectory(dsys, desired, Q, 1e-4 * np.eye(dsys.nu))


def cached_reference(
    dsys: DiscreteSystem, path: Path, formation: Formation, name: str
) -> Trajectory:
    """The `flat_reference`, from the cache if any process has computed it for the same steps, path
    and formation.
    """
    # the version, the code that computes the reference, steps, limits, and the path at the nodes
    files = __file__, projection.__file__, lqr.__file__
    key: list[str | np.ndarray] = [FilePath(file).read_text() for file in files]
    key += [*dsys.serialized_step(), dsys.parameter_values, np.array(dsys.method.substeps)]
    key += [version("nh_control"), dsys.system.input_bounds]
    key += [repr(formation), np.array([dsys.h, path.duration])]
    key += [path.jets(np.arange(0.0, path.duration, dsys.h))]

    def computed() -> dict[str, np.ndarray]:
        reference = flat_reference(dsys, path, formation)
        return {"states": reference.states, "inputs": reference.inputs}

    stored = cached_result("payload_reference", key, computed, "")
    names = dsys.state_names, dsys.inputs
    return Trajectory(dsys.h, stored["states"], stored["inputs"], *names, name, dsys)


def _require_tight(dsys: DiscreteSystem, times: Vector, path: Path) -> None:
    down = -path.jets(times)[:, 2, 2]
    k, g = int(np.argmax(down)), payload_parameters(dsys).g
    if down[k] >= g:
        raise InfeasiblePath(
            f"{dsys}: the payload falls with {down[k]:.3g} m/s^2 at t = {times[k]:g} s, but "
            f"cables go slack at g = {g:g} m/s^2; make it slower"
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
            f"but its limits are {lower[i]:g} ... {upper[i]:g}: {remedy}"
        )
