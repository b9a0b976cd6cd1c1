"""A motion on which integrators and solvers are compared: an initial value problem with piecewise
constant inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.mechanics.reduced import ReducedEquations
from nh_control.mechanics.system import System
from nh_control.scenarios.scenario import Scenario

LONGEST_S = 10.0
INTERVALS = 16
"""Number of inputs of a motion, if possible. Few inputs allow large steps, because a step ends at
each change of the input. SciPy's solvers also restart at each change.
"""
SAMPLES, RESTS = 200, 1e-6
"""Number of times at which a motion is checked, and the distance (rad, m) below which a reference
counts as resting.
"""
MOST_HALVINGS, MARGIN = 8, 0.1
"""Maximum number of times that a motion's velocity is halved, and the fraction of the initial
distance from the boundary of the model's domain that must remain.
"""


@dataclass(frozen=True)
class InitialValueProblem:
    """An initial value problem with configuration q (nq) and velocity v (nw), which satisfies the
    constraints. It lasts `duration` s under the inputs u (N, nu), each applied for duration / N. A
    single input (nu) is constant. Raises ValueError for wrong shapes or values.
    """

    system: System
    q: np.ndarray
    v: np.ndarray
    duration: float
    u: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        s = self.system
        rows = max(1, len(self.u)) if np.ndim(self.u) == 2 else 1
        # A single input (nu) becomes one row.
        object.__setattr__(self, "u", np.atleast_2d(np.asarray(self.u, dtype=float)))
        for name, shape in (("q", (s.space.nq,)), ("v", (s.space.nw,)), ("u", (rows, s.nu))):
            value = np.array(getattr(self, name), dtype=float)
            if value.shape != shape or not np.isfinite(value).all():
                raise ValueError(f"{s.name}: {name} must be {shape} and finite, got {value}")
            object.__setattr__(self, name, value)
        if not (np.isfinite(self.duration) and self.duration > 0):
            raise ValueError(f"{s.name}: duration must be positive, got {self.duration}")

    @property
    def intervals(self) -> int:
        """Number of inputs."""
        return len(self.u)

    def inputs_at(self, times: np.ndarray) -> np.ndarray:
        """Return the inputs (n, nu) at times (n)."""
        rows = np.floor(times / self.duration * self.intervals).astype(int)
        return self.u[np.clip(rows, 0, self.intervals - 1)]


class Flow:
    """A motion computed by SciPy's solvers for the reduced equations. The solvers restart at every
    change of the input, because their error estimates do not hold across a jump.
    """

    def __init__(self, motion: InitialValueProblem):
        self.motion, self.equations = motion, ReducedEquations(motion.system)
        self._rates = [self.equations.rates(u) for u in motion.u]
        self._ends = np.linspace(0.0, motion.duration, motion.intervals + 1)

    def solve(
        self, solver: str, times: Sequence[float] | np.ndarray = (), **options: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the last w (n) and the values (N, n) at increasing times. `options` are passed to
        `solve_ivp`. Raises RuntimeError if the solver fails or an event stops it.
        """
        m, times = self.motion, np.asarray(times, dtype=float)
        w, path = self.equations.start(m.q, m.v), []
        # The entries bounds[k] to bounds[k + 1] of `times` lie in the interval of input k.
        bounds = np.searchsorted(times, self._ends)
        bounds[-1] = len(times)
        for k, rates in enumerate(self._rates):
            span = self._ends[k], self._ends[k + 1]
            requested = times[bounds[k] : bounds[k + 1]]
            # The end of the interval is always evaluated, because the next interval starts there.
            evaluated = np.union1d(requested, span[1:]) if len(times) else None
            run = solve_ivp(rates, span, w, solver, t_eval=evaluated, **options)
            if run.status != 0:
                raise RuntimeError(f"{m.system.name} by {solver}: {run.message}")
            w = run.y[:, -1]
            path += list(run.y.T[: len(requested)])
        return w, np.reshape(path, (len(times), len(w)))


def motion_of(
    scenario: Scenario, duration: float = 0.0, reference: str = ""
) -> InitialValueProblem:
    """Return a motion of a scenario's model from the initial state of a reference ("" means the
    first one). The motion's inputs are the means of the reference's inputs over INTERVALS equal
    intervals. The intervals are halved until the motion stays in the domain of the model. A
    constant input needs one interval. A duration of 0 means the reference's duration, but at most
    LONGEST_S.

    If the reference is at rest, the motion starts with unit velocities, which are halved until the
    motion stays in the domain. Raises ValueError for prescribed coordinates, for a moving
    reference that is shorter than the motion, and if no motion stays in the domain.
    """
    model = scenario.model()
    if model.system.prescribed:
        raise ValueError(
            f"{scenario.name}: the coordinates {model.system.prescribed} are prescribed, so "
            "integrators cannot be compared on a free motion"
        )
    path = scenario.reference(model, reference)
    duration = duration or min(LONGEST_S, path.duration)
    for motion in _candidates(model, path, duration):
        if _stays(motion):
            return motion
    raise ValueError(
        f"{scenario.name}: found no motion of {duration:g} s that stays in the domain of the "
        "model; choose a shorter duration"
    )


def _candidates(
    model: DiscreteSystem, path: Trajectory, duration: float
) -> Iterator[InitialValueProblem]:
    x, u = path.states[0], path.inputs
    q, v, system = model.configuration(x), model.velocity(x), model.system
    if max(np.linalg.norm(model.local(x, other)) for other in path.states) < RESTS:
        # The reference is at rest: use unit velocities, projected onto the constraints.
        admissible = model.velocity(model.state(q, np.ones(system.space.nw)))
        for halvings in range(MOST_HALVINGS + 1):
            yield InitialValueProblem(system, q, admissible / 2**halvings, duration, u[0])
    # The inputs are constant.
    elif np.max(np.ptp(u, axis=0), initial=0.0) <= 1e-9 * np.max(np.abs(u), initial=0.0):
        yield InitialValueProblem(system, q, v, duration, u[0])
    elif duration > path.duration * (1 + 1e-9):
        raise ValueError(
            f"{system.name}: the reference {path.name} ends after {path.duration:g} s and has no "
            f"inputs for a motion of {duration:g} s; choose a shorter duration"
        )
    else:
        for halvings in range(int(np.log2(max(1.0, len(path) / INTERVALS))) + 1):
            yield InitialValueProblem(
                system, q, v, duration, _means(path, duration, INTERVALS * 2**halvings)
            )


def _means(path: Trajectory, duration: float, intervals: int) -> np.ndarray:
    """Return the means (intervals, nu) of the inputs over equal intervals."""
    # The means are differences of the inputs' integral, which is linear between the nodes.
    impulses = np.vstack([np.zeros(path.inputs.shape[1]), path.h * path.inputs.cumsum(axis=0)])
    ends = np.linspace(0.0, duration, intervals + 1)
    at_ends = np.transpose([np.interp(ends, path.times, column) for column in impulses.T])
    return np.diff(at_ends, axis=0) * intervals / duration


def _stays(motion: InitialValueProblem) -> bool:
    """Return whether the motion stays in the model's domain, with a margin."""
    system, flow = motion.system, Flow(motion)
    configuration = ca.SX.sym("q", system.space.nq)
    domain = ca.Function("domain", [configuration], [system.domain_at(configuration)])
    least = MARGIN * np.asarray(domain(motion.q))

    def margin(_: float, w: np.ndarray) -> float:
        return float(np.min(np.asarray(domain(w[: system.space.nq])) - least, initial=1.0))

    margin.terminal = True  # type: ignore[attr-defined]
    longest = motion.duration / SAMPLES  # a longer step could leave the domain and come back
    try:
        flow.solve("DOP853", events=margin, rtol=1e-6, max_step=longest)
    except RuntimeError:
        return False
    return True
