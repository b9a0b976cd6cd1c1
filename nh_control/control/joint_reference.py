"""References along joint trajectories by inverse dynamics of the discrete steps, timed so that
velocities and efforts keep their limits, and motions of least effort.
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
from nh_control.multibody.frames import NO_LIMITS
from nh_control.multibody.frames import Limits as JointLimits
from nh_control.multibody.model import MultibodySystem

SETTLING = 4
"""Number of steps at rest after the end, in which the remaining error decays."""
ITERATIONS = 2
"""Corrections of an input; the next step corrects the remainder."""
MOST_STEPS = 1_000_000
"""Largest number of steps of a trajectory, so that a wrong time does not fill the memory."""
PRECISION, SLOWEST = 1e-3, 64.0
"""Relative tolerance of a time factor, and the largest time factor."""
JOINED = 0.01
"""Distance (rad, m) from the present position of joints within which a point counts as reached."""
TOLERANCE = 1e-6
"""Relative excess of a limit that counts as none."""


class InfeasibleTrajectory(ValueError):
    """A joint trajectory that the joints cannot follow within their limits; the message says which
    joint, when, and the remedy.
    """


def joint_reference(
    dsys: DiscreteSystem, trajectory: JointTrajectory, check: bool = True
) -> Trajectory:
    """The trajectory of the discrete system along a joint trajectory of its coordinates, from rest
    to rest: every step leads to the next state exactly, so an LQR tracker has no error on it.

    With the error `e = local(x*_{k+1}, f(x_k, u_k))` from the spline's next configuration and
    momentum, the input is the mean of the inputs that reach the configuration and that reach the
    momentum, `B_q^{-1} e_q + B_p^{-1} e_p = 0`. On a double integrator this is a dead beat of two
    steps: errors O(h^3) of the spline do not add up, and inputs do not alternate, as they would if
    every configuration were reached. Some steps at rest follow the end. With `check`, ranges and
    speeds of the joints (`joint_limits`) and the limits of the inputs must hold. Raises
    InfeasibleTrajectory, ValueError for other joints, and for a system with other coordinates than
    joints or without one input for each.
    """
    require_actuated(dsys)
    own = trajectory.of(dsys.system.space.names)
    made = along(dsys, own.curve(), own.duration, trajectory.name)
    if check:
        require_limits(dsys, made)
    return made


def is_actuated(system: System) -> bool:
    """Whether all coordinates are joints on an Rn, each with an input, without constraints."""
    return (
        isinstance(system.space, Rn)
        and not (system.prescribed or system.first_order)
        and not (system.n_velocity_constraints or system.n_holonomic_constraints)
        and system.nu == system.space.nv
    )


def require_actuated(dsys: DiscreteSystem) -> None:
    """Raises ValueError unless the system `is_actuated`."""
    if not is_actuated(dsys.system):
        raise ValueError(
            f"{dsys} cannot follow joint trajectories: they need a system whose coordinates are "
            f"joints, each with an actuator, without constraints; it has "
            f"{dsys.system.space.nv} coordinates and {dsys.nu} inputs"
        )


def along(
    dsys: DiscreteSystem,
    curve: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    duration_s: float,
    name: str,
    start: ArrayLike | None = None,
) -> Trajectory:
    """The trajectory along `curve(t)`, positions and velocities (m, nv) at times (m), by inverse
    dynamics (see `joint_reference`), from a state `start` (nx), by default the curve's state at 0.
    """
    steps = int(np.ceil(duration_s / dsys.h - 1e-9)) + SETTLING
    if steps > MOST_STEPS:
        raise InfeasibleTrajectory(
            f"joint trajectory {name!r}: {duration_s:g} s are {steps} steps of {dsys.h:g} s, more "
            f"than {MOST_STEPS}: divide it, or take a longer step"
        )
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
    """The trajectory (see `joint_reference`) that leaves a reference at step k, or its last state
    past the end, along another joint trajectory, whose times count from there.

    A point at time 0 must be within JOINED of the present position. Raises InfeasibleTrajectory.
    """
    require_actuated(dsys)
    trajectory = trajectory.of(dsys.system.space.names)
    node = min(k, len(reference))
    x, v = reference.states[node], dsys.velocity(reference.states[node])
    following = dsys.velocity(reference.states[min(node + 1, len(reference))])
    q = dsys.configuration(x)
    if trajectory.times[0] == 0 and np.abs(trajectory.positions[0] - q).max() > JOINED:
        raise InfeasibleTrajectory(
            f"the trajectory begins at {trajectory.positions[0].tolist()} but the joints will be "
            f"at {q.round(4).tolist()}"
        )
    curve = trajectory.starting_at(q, v, (following - v) / dsys.h)
    made = along(dsys, curve, trajectory.duration, trajectory.name, x)
    require_limits(dsys, made)
    return made


def joint_limits(dsys: DiscreteSystem) -> list[JointLimits]:
    """Range and largest speed of every coordinate (nv): the limits of a `Multibody`'s frames, such
    as a URDF's; no limits for other systems. A range without width and a speed of 0 count as not
    given, because the joint moves.
    """
    model = dsys.system.model if isinstance(dsys.system, MultibodySystem) else None
    frames = () if model is None else model.frames
    by_name = {frame.coordinate: frame.limits for frame in frames if frame.mimic is None}
    return [_given(by_name.get(name, NO_LIMITS)) for name in dsys.system.space.names]


def _given(limits: JointLimits) -> JointLimits:
    """The limits without ranges of no width and speeds of 0."""
    ends = (limits.lower, limits.upper) if limits.lower < limits.upper else (-np.inf, np.inf)
    return JointLimits(*ends, limits.velocity or np.inf)


def require_limits(dsys: DiscreteSystem, reference: Trajectory) -> None:
    """Raises InfeasibleTrajectory where a joint leaves its range or exceeds its speed, or an input
    its limits.
    """
    names, limits = dsys.system.space.names, joint_limits(dsys)
    positions, speeds = dsys.configuration(reference.states), np.abs(reference.velocities)
    ranges = np.array([(one.lower, one.upper) for one in limits])
    what = f"joint trajectory {reference.name!r}"
    slower = "; stretch it (`JointTrajectory.stretched`, `within_limits`)"
    _require(what, "position", positions, ranges, names, dsys.h, "; choose points in the range")
    fastest = np.array([(-np.inf, one.velocity) for one in limits])
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
    """Raises InfeasibleTrajectory for the largest excess of values (n, k) over bounds (k, 2)."""
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
    """The trajectory stretched by the smallest factor at which speeds and inputs stay within the
    fraction `margin` of their limits, to 0.1 %; the factor is at least 1 unless the trajectory may
    be `faster`.

    Speeds fall with the factor, efforts of acceleration with its square; efforts against gravity
    stay. Raises InfeasibleTrajectory if no factor up to 64 is enough, ValueError for a margin
    outside (0, 1].
    """
    if not 0 < margin <= 1:
        raise ValueError(f"margin must lie in (0, 1], got {margin}")
    require_actuated(dsys)
    trajectory = trajectory.of(dsys.system.space.names)
    low, high = (1 / SLOWEST if faster else 1.0), 1.0
    while (load := _load(dsys, trajectory.stretched(high), margin)) > 1:
        low, high = high, 2 * high
        if high > SLOWEST:
            raise InfeasibleTrajectory(
                f"{trajectory!r} needs {load:.3g} times the limits of {dsys} even if it takes "
                f"{SLOWEST:g} times as long: it holds too much weight; choose other points"
            )
    while faster and high > low and _load(dsys, trajectory.stretched(high / 2), margin) <= 1:
        high /= 2
    low = max(low, high / 2)
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        if _load(dsys, trajectory.stretched(middle), margin) > 1:
            low = middle
        else:
            high = middle
    return trajectory.stretched(high)


def _load(dsys: DiscreteSystem, trajectory: JointTrajectory, margin: float) -> float:
    """Largest speed or input along a trajectory, divided by its limit and by the margin."""
    try:
        made = along(dsys, trajectory.curve(), trajectory.duration, trajectory.name)
    except InfeasibleTrajectory:
        return np.inf
    fastest = np.array([one.velocity for one in joint_limits(dsys)])
    lower, upper = dsys.system.input_bounds.T
    rate = (np.abs(made.velocities) / fastest).max()
    # limits need not be symmetric: the part of the way from the middle
    span = np.where(np.isfinite(upper - lower), upper - lower, np.inf)
    middle = np.where(np.isfinite(span), (upper + lower) / 2, 0.0)
    effort = (2 * np.abs(made.inputs - middle) / span).max()
    return float(max(rate, effort) / margin)


def through(
    dsys: DiscreteSystem, positions: ArrayLike, margin: float = 0.9, spline: str = "quintic"
) -> JointTrajectory:
    """The fastest timing of a spline from rest to rest through positions (n, nv), n >= 2, of all
    coordinates, at which speeds and inputs stay within the fraction `margin` of their limits. The
    time between points is in proportion to the largest change, divided by the joint's speed if it
    has a limit. Raises as `within_limits`.
    """
    require_actuated(dsys)
    points = np.asarray(positions, dtype=float)
    if points.ndim != 2 or len(points) < 2 or points.shape[1] != dsys.system.space.nv:
        raise ValueError(
            f"positions must have shape (n, {dsys.system.space.nv}) with n >= 2, got "
            f"{points.shape}"
        )
    speeds = np.array([min(limits.velocity, 1e3) for limits in joint_limits(dsys)])
    speeds[speeds >= 1e3] = 1.0
    lengths = (np.abs(np.diff(points, axis=0)) / speeds).max(axis=1)
    if not lengths.all():
        raise ValueError(f"points must differ from the next, got {points.tolist()}")
    times = np.r_[0.0, np.cumsum(lengths)]
    made = JointTrajectory(dsys.system.space.names, times, points, spline=spline)
    return within_limits(dsys, made, margin, faster=True)


def minimum_effort(
    dsys: DiscreteSystem, start: ArrayLike, end: ArrayLike, duration_s: float, **options: Any
) -> Optimum:
    """The motion from rest at a configuration `start` (nq) to rest at `end` (nq) in `duration_s`
    with the least sum of squares of the inputs over their limits (1 where they have none), within
    the limits of inputs and the ranges of joints.

    `options` go to `optimize`; it begins with the quintic polynomial between both ends.
    Raises ValueError as `joint_reference` and `optimize`.
    """
    require_actuated(dsys)
    names, ends = dsys.system.space.names, np.array([start, end], dtype=float)
    path = JointTrajectory(names, np.array([0.0, duration_s]), ends, name="minimum effort")
    guess = joint_reference(dsys, path, check=False)[: round(duration_s / dsys.h)]
    largest = np.abs(dsys.system.input_bounds).max(axis=1)
    R = np.diag(1 / np.where(np.isfinite(largest), largest, 1.0) ** 2)
    idle = Trajectory(dsys.h, guess.states, np.zeros_like(guess.inputs))
    cost = quadratic_cost(dsys, idle, Q=np.zeros((dsys.ndx, dsys.ndx)), R=R)
    ranges = {
        name: (one.lower, one.upper)
        for name, one in zip(names, joint_limits(dsys))
        if one.lower < one.upper and np.isfinite([one.lower, one.upper]).any()
    }
    limits = {**Limits.of(dsys), **ranges}
    at_rest = dsys.state(ends[1], np.zeros(dsys.system.space.nw))
    given = {"end": at_rest, "limits": limits, "hessian": "exact", **options}
    return optimize(dsys, cost, guess, **given)
