"""References along joint trajectories by inverse dynamics of the discrete steps, the timing of
joint trajectories within velocity and effort limits, and motions of minimum effort.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.costs import Limits, quadratic_cost
from nh_control.control.joint_trajectory import JointTrajectory
from nh_control.control.optimize import optimize
from nh_control.control.optimum import Optimum
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry.spaces import Rn
from nh_control.mechanics.system import System
from nh_control.multibody.frames import NO_LIMITS, CoordinateLimits
from nh_control.multibody.model import MultibodySystem

SETTLING = 4
"""Number of steps at rest after the end of the trajectory, during which the remaining error
decays.
"""
ITERATIONS = 2
"""Number of corrections of an input. The next step corrects the remaining error."""
MOST_STEPS = 1_000_000
"""Maximum number of steps of a trajectory. It prevents a wrong time from exhausting the memory."""
PRECISION, SLOWEST = 1e-3, 64.0
"""Relative tolerance of a time factor, and the maximum time factor."""
JOINED = 0.01
"""Distance (rad, m) up to which a point counts as equal to the current position."""
TOLERANCE = 1e-6
"""Tolerated relative violation of a limit."""


class InfeasibleTrajectory(ValueError):
    """The joints cannot follow a joint trajectory within their limits. The message contains the
    joint, the time and a remedy.
    """


def joint_reference(
    dsys: DiscreteSystem, trajectory: JointTrajectory, check: bool = True
) -> Trajectory:
    """The trajectory of the discrete system along a joint trajectory of its coordinates, from rest
    to rest. Each step leads exactly to the next state, so an LQR tracker follows the trajectory
    without error.

    The error `e = local(x*_{k+1}, f(x_k, u_k))` is relative to the next configuration and momentum
    of the spline. The input is the mean of the input that reaches the configuration and the one
    that reaches the momentum, `B_q^{-1} e_q + B_p^{-1} e_p = 0`. For a double integrator, this is
    a dead-beat controller in two steps: the spline's errors O(h^3) do not add up, and the inputs
    do not alternate, as they would if each step reached its configuration. A few steps at rest are
    appended. With `check`, the joints must stay within their ranges and speed limits
    (`joint_limits`), and the inputs within their limits. Raises InfeasibleTrajectory, and
    ValueError if the joints are not those of the system, for a system with coordinates that are
    not joints, and for joints without an input.
    """
    require_actuated(dsys)
    ordered = trajectory.of(dsys.system.space.names)
    reference = along(dsys, ordered.curve(), ordered.duration, trajectory.name)
    if check:
        require_limits(dsys, reference)
    return reference


def is_actuated(system: System) -> bool:
    """Whether the coordinates are joints with one input each, on Rn and without constraints."""
    return (
        isinstance(system.space, Rn)
        and not (system.prescribed or system.first_order)
        and not (system.n_velocity_constraints or system.n_holonomic_constraints)
        and system.nu == system.space.nv
    )


def require_actuated(dsys: DiscreteSystem) -> None:
    """Raise ValueError unless the system `is_actuated`."""
    if not is_actuated(dsys.system):
        raise ValueError(
            f"{dsys} cannot follow joint trajectories: all coordinates must be joints with an "
            f"actuator, without constraints; it has {dsys.system.space.nv} coordinates and "
            f"{dsys.nu} inputs"
        )


def along(
    dsys: DiscreteSystem,
    curve: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    duration_s: float,
    name: str,
    start: ArrayLike | None = None,
) -> Trajectory:
    """The trajectory along a curve, computed by inverse dynamics (see `joint_reference`).
    `curve(t)` returns positions and velocities (m, nv) at times t (m). The first state is `start`
    (nx), by default the state of the curve at time 0.
    """
    steps = int(np.ceil(duration_s / dsys.h - 1e-9)) + SETTLING
    if steps > MOST_STEPS:
        raise InfeasibleTrajectory(
            f"joint trajectory {name!r}: {duration_s:g} s require {steps} steps of {dsys.h:g} s, "
            f"the maximum is {MOST_STEPS}; divide it, or use a larger step"
        )
    # the targets x* = (q, p) at the nodes
    positions, velocities = curve(dsys.h * np.arange(steps + 1))
    x = dsys.state(positions[0], velocities[0]) if start is None else np.array(start, dtype=float)
    states, inputs, u, nv = [x], list[np.ndarray](), dsys.idle(x), dsys.system.space.nv
    for q, v in zip(positions[1:], velocities[1:]):
        target = dsys.state(q, v)
        for _ in range(ITERATIONS):
            try:
                step = dsys.linearize(states[-1], u)
            except StepFailed as failure:
                raise InfeasibleTrajectory(
                    f"joint trajectory {name!r} cannot be followed in steps of {dsys.h:g} s after "
                    f"{len(inputs) * dsys.h:.3f} s: {failure}; stretch it"
                ) from failure
            # u <- u - (B_q^{-1} e_q + B_p^{-1} e_p) / 2
            e = dsys.local(target, step.x1)
            reach_q = np.linalg.solve(step.B[:nv], e[:nv])
            u = u - (reach_q + np.linalg.solve(step.B[nv : 2 * nv], e[nv : 2 * nv])) / 2
        inputs.append(u)
        states.append(dsys.step(states[-1], u))
    return Trajectory(
        dsys.h,
        np.array(states),
        np.array(inputs),
        dsys.state_names,
        dsys.inputs,
        name,
        dsys=dsys,
    )


def continued(
    dsys: DiscreteSystem, reference: Trajectory, k: int, trajectory: JointTrajectory
) -> Trajectory:
    """The trajectory (see `joint_reference`) that leaves a reference at step k and follows another
    joint trajectory, which has time 0 at this step. If k is after the end of the reference, the
    trajectory leaves from the last state.

    If there is a point at time 0, it must be within JOINED of the current position. Raises
    InfeasibleTrajectory.
    """
    require_actuated(dsys)
    trajectory = trajectory.of(dsys.system.space.names)
    node = min(k, len(reference))
    x, v = reference.states[node], dsys.velocity(reference.states[node])
    following = dsys.velocity(reference.states[min(node + 1, len(reference))])
    q = dsys.configuration(x)
    if trajectory.times[0] == 0 and np.abs(trajectory.positions[0] - q).max() > JOINED:
        raise InfeasibleTrajectory(
            f"the trajectory begins at {trajectory.positions[0].tolist()}, but the joints will be "
            f"at {q.round(4).tolist()}"
        )
    # continue with the reference's velocity and acceleration
    curve = trajectory.starting_at(q, v, (following - v) / dsys.h)
    continuation = along(dsys, curve, trajectory.duration, trajectory.name, x)
    require_limits(dsys, continuation)
    return continuation


def joint_limits(dsys: DiscreteSystem) -> list[CoordinateLimits]:
    """The range and the maximum speed of every coordinate (nv). For a `Multibody`, these are the
    limits of its frames, for example from a URDF file. Other systems have no limits. A range of
    zero width and a speed of 0 are ignored, because the joint moves.
    """
    model = dsys.system.model if isinstance(dsys.system, MultibodySystem) else None
    frames = () if model is None else model.frames
    by_name = {frame.coordinate: frame.limits for frame in frames if frame.mimic is None}
    return [_nonzero(by_name.get(name, NO_LIMITS)) for name in dsys.system.space.names]


def _nonzero(limits: CoordinateLimits) -> CoordinateLimits:
    """The limits, without ranges of zero width or speeds of 0."""
    lower, upper = (
        (limits.lower, limits.upper) if limits.lower < limits.upper else (-np.inf, np.inf)
    )
    return CoordinateLimits(lower, upper, limits.velocity or np.inf)


def require_limits(dsys: DiscreteSystem, reference: Trajectory) -> None:
    """Raise InfeasibleTrajectory if a joint leaves its range or exceeds its maximum speed, or if
    an input exceeds its limits.
    """
    names, limits = dsys.system.space.names, joint_limits(dsys)
    positions, speeds = dsys.configuration(reference.states), np.abs(reference.velocities)
    ranges = np.array([(limit.lower, limit.upper) for limit in limits])
    what = f"joint trajectory {reference.name!r}"
    slower = "; stretch it (`JointTrajectory.stretched`, `within_limits`)"
    _require(what, "position", positions, ranges, names, dsys.h, "; choose points in the range")
    fastest = np.array([(-np.inf, limit.velocity) for limit in limits])
    _require(what, "speed", speeds, fastest, names, dsys.h, slower)
    bounds = dsys.system.input_bounds
    _require(what, "input", reference.inputs, bounds, dsys.inputs, dsys.h, slower)


def _require(
    what: str,
    kind: str,
    values: np.ndarray,
    bounds: np.ndarray,
    names: tuple[str, ...],
    h: float,
    remedy: str,
) -> None:
    """Raise InfeasibleTrajectory, with the largest violation, if values (n, k) violate bounds
    (k, 2).
    """
    # bounds with a magnitude of at most 1 get an absolute tolerance
    slack = TOLERANCE * np.maximum(1.0, np.abs(np.where(np.isfinite(bounds), bounds, 0.0)))
    excess = np.maximum(bounds[:, 0] - slack[:, 0] - values, values - bounds[:, 1] - slack[:, 1])
    k, i = np.unravel_index(np.argmax(excess), excess.shape)
    if excess[k, i] > 0:
        raise InfeasibleTrajectory(
            f"{what}: {kind} {values[k, i]:.4g} of {names[i]} at {k * h:.3f} s is outside "
            f"[{bounds[i, 0]:.4g}, {bounds[i, 1]:.4g}]{remedy}"
        )


def within_limits(
    dsys: DiscreteSystem, trajectory: JointTrajectory, margin: float = 1.0, faster: bool = False
) -> JointTrajectory:
    """The trajectory, stretched in time by the smallest factor (to 0.1 %) that keeps speeds and
    inputs within the fraction `margin` of their limits. The factor is at least 1 unless `faster`.

    Speeds are inversely proportional to the factor, and the efforts that accelerate the joints to
    its square. Efforts against gravity do not change. Raises InfeasibleTrajectory if no factor up
    to 64 suffices, and ValueError if the margin is not in (0, 1].
    """
    if not 0 < margin <= 1:
        raise ValueError(f"margin must lie in (0, 1], got {margin}")
    require_actuated(dsys)
    trajectory = trajectory.of(dsys.system.space.names)
    low, high = (1 / SLOWEST if faster else 1.0), 1.0
    # bracket the smallest feasible factor between low and high
    while (load := _load(dsys, trajectory.stretched(high), margin)) > 1:
        low, high = high, 2 * high
        if high > SLOWEST:
            raise InfeasibleTrajectory(
                f"{trajectory!r} needs {load:.3g} times the limits of {dsys} even if it takes "
                f"{SLOWEST:g} times as long: the weight is too large; choose other points"
            )
    while faster and high > low and _load(dsys, trajectory.stretched(high / 2), margin) <= 1:
        high /= 2
    low = max(low, high / 2)
    # bisection
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        if _load(dsys, trajectory.stretched(middle), margin) > 1:
            low = middle
        else:
            high = middle
    return trajectory.stretched(high)


def _load(dsys: DiscreteSystem, trajectory: JointTrajectory, margin: float) -> float:
    """The largest speed or input along a trajectory, divided by its limit and by the margin."""
    try:
        motion = along(dsys, trajectory.curve(), trajectory.duration, trajectory.name)
    except InfeasibleTrajectory:
        return np.inf
    fastest = np.array([limit.velocity for limit in joint_limits(dsys)])
    lower, upper = dsys.system.input_bounds.T
    rate = (np.abs(motion.velocities) / fastest).max()
    # limits need not be symmetric: use the distance from the midpoint, divided by half the range
    span = np.where(np.isfinite(upper - lower), upper - lower, np.inf)
    middle = np.where(np.isfinite(span), (upper + lower) / 2, 0.0)
    effort = (2 * np.abs(motion.inputs - middle) / span).max()
    return float(max(rate, effort) / margin)


def through(
    dsys: DiscreteSystem, positions: ArrayLike, margin: float = 0.9, spline: str = "quintic"
) -> JointTrajectory:
    """The fastest spline from rest to rest through positions (n, nv) of all coordinates, n >= 2,
    that keeps speeds and inputs within the fraction `margin` of their limits.

    The time between two points is proportional to the largest change of a coordinate. If a joint
    has a speed limit, its change is divided by this limit. Raises the errors of `within_limits`.
    """
    require_actuated(dsys)
    points = np.asarray(positions, dtype=float)
    if points.ndim != 2 or len(points) < 2 or points.shape[1] != dsys.system.space.nv:
        raise ValueError(
            f"positions must have shape (n, {dsys.system.space.nv}) with n >= 2, got "
            f"{points.shape}"
        )
    speeds = np.array([min(limits.velocity, 1e3) for limits in joint_limits(dsys)])
    # joints without a speed limit
    speeds[speeds >= 1e3] = 1.0
    lengths = (np.abs(np.diff(points, axis=0)) / speeds).max(axis=1)
    if not lengths.all():
        raise ValueError(f"successive points must differ, got {points.tolist()}")
    # relative times, which `within_limits` scales
    times = np.r_[0.0, np.cumsum(lengths)]
    trajectory = JointTrajectory(dsys.system.space.names, times, points, spline=spline)
    return within_limits(dsys, trajectory, margin, faster=True)


def minimum_effort(
    dsys: DiscreteSystem, start: ArrayLike, end: ArrayLike, duration_s: float, **options: Any
) -> Optimum:
    """The motion of minimum effort from rest at the configuration `start` (nq) to rest at `end`
    (nq) in `duration_s`, within the input limits and the joint ranges.

    The effort is the sum of the squared inputs, each divided by its limit if it has one. The
    initial guess is the quintic polynomial from `start` to `end`. The `options` are passed to
    `optimize`. Raises the errors of `joint_reference` and `optimize`.
    """
    require_actuated(dsys)
    names, ends = dsys.system.space.names, np.array([start, end], dtype=float)
    path = JointTrajectory(names, np.array([0.0, duration_s]), ends, name="minimum effort")
    guess = joint_reference(dsys, path, check=False)[: round(duration_s / dsys.h)]
    largest = np.abs(dsys.system.input_bounds).max(axis=1)
    # effort sum_i (u_i / limit_i)^2
    R = np.diag(1 / np.where(np.isfinite(largest), largest, 1.0) ** 2)
    idle = Trajectory(dsys.h, guess.states, np.zeros_like(guess.inputs))
    cost = quadratic_cost(dsys, idle, Q=np.zeros((dsys.ndx, dsys.ndx)), R=R)
    ranges = {
        name: (limit.lower, limit.upper)
        for name, limit in zip(names, joint_limits(dsys))
        if limit.lower < limit.upper and np.isfinite([limit.lower, limit.upper]).any()
    }
    limits = {**Limits.of(dsys), **ranges}
    at_rest = dsys.state(ends[1], np.zeros(dsys.system.space.nw))
    defaults: dict[str, Any] = {"end": at_rest, "limits": limits, "hessian": "exact"}
    return optimize(dsys, cost, guess, **(defaults | options))
