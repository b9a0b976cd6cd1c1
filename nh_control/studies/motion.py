"""One motion of a system for all integrators and solvers: a start and a sequence of constant
inputs.
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
"""Number of inputs of a motion if possible: no step is longer than an input is held, and SciPy's
solvers start again with each.
"""
SAMPLES, RESTS = 200, 1e-6
"""Number of times of a motion that are checked, and distance (rad, m) from which a reference
counts as moving.
"""
SLOWER, SPARE = 8, 0.1
"""Largest number of halvings of a motion's velocity, and fraction of the distance to the end of
the model's domain that must remain.
"""


@dataclass(frozen=True)
class Motion:
    """The motion on which integrators are compared: from configuration q (nq) and velocity v (nw),
    which keeps the constraints, for `duration` s under the inputs u (N, nu), each held for
    duration / N; one input (nu) is held throughout. Raises ValueError for wrong shapes or values.
    """

    system: System
    q: np.ndarray
    v: np.ndarray
    duration: float
    u: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        s = self.system
        rows = max(1, len(self.u)) if np.ndim(self.u) == 2 else 1
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
        """The inputs (n, nu) that are held at times (n)."""
        rows = np.floor(times / self.duration * self.intervals).astype(int)
        return self.u[np.clip(rows, 0, self.intervals - 1)]


class Flow:
    """A motion by SciPy's solvers on the reduced equations. They start again with every input,
    because their error estimates do not hold across a jump.
    """

    def __init__(self, motion: Motion):
        self.motion, self.equations = motion, ReducedEquations(motion.system)
        self._rates = [self.equations.rates(u) for u in motion.u]
        self._ends = np.linspace(0.0, motion.duration, motion.intervals + 1)

    def solve(
        self, solver: str, times: Sequence[float] | np.ndarray = (), **options: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """The last w (n) and the values at increasing times (N, n); further options are for
        `solve_ivp`. Raises RuntimeError if the solver fails or an event ends it.
        """
        m, times = self.motion, np.asarray(times, dtype=float)
        w, path = self.equations.start(m.q, m.v), []
        bounds = np.searchsorted(times, self._ends)
        bounds[-1] = len(times)
        for k, rates in enumerate(self._rates):
            span = self._ends[k], self._ends[k + 1]
            wanted = times[bounds[k] : bounds[k + 1]]
            seen = np.union1d(wanted, span[1:]) if len(times) else None
            run = solve_ivp(rates, span, w, solver, t_eval=seen, **options)
            if run.status != 0:
                raise RuntimeError(f"{m.system.name} by {solver}: {run.message}")
            w = run.y[:, -1]
            path += list(run.y.T[: len(wanted)])
        return w, np.reshape(path, (len(times), len(w)))


def motion_of(scenario: Scenario, duration: float = 0.0, reference: str = "") -> Motion:
    """The motion of a scenario's model from the start of a reference ("": the first). Its inputs
    are the means of the reference's over INTERVALS equal times, or over a half, a quarter, ... of
    them until the motion stays in the domain of the model; constant inputs are one input. The
    duration 0 stands for the reference's, up to LONGEST_S.

    If the reference is at rest, the motion starts with unit velocities, which are halved until it
    stays in the domain. Raises ValueError for prescribed coordinates, for a moving reference that
    is shorter than the motion, and if no motion stays in the domain.
    """
    model = scenario.model()
    if model.system.prescribed:
        raise ValueError(
            f"{scenario.name}: the coordinates {model.system.prescribed} are prescribed, so there "
            "is no motion by itself to compare integrators on"
        )
    path = scenario.reference(model, reference)
    duration = duration or min(LONGEST_S, path.duration)
    for motion in _candidates(model, path, duration):
        if _stays(motion):
            return motion
    raise ValueError(
        f"{scenario.name}: no motion of {duration:g} s found that stays where the model holds; "
        "choose a shorter one"
    )


def _candidates(model: DiscreteSystem, path: Trajectory, duration: float) -> Iterator[Motion]:
    x, u = path.states[0], path.inputs
    q, v, system = model.configuration(x), model.velocity(x), model.system
    if max(np.linalg.norm(model.local(x, other)) for other in path.states) < RESTS:
        admissible = model.velocity(model.state(q, np.ones(system.space.nw)))
        for halvings in range(SLOWER + 1):
            yield Motion(system, q, admissible / 2**halvings, duration, u[0])
    elif np.max(np.ptp(u, axis=0), initial=0.0) <= 1e-9 * np.max(np.abs(u), initial=0.0):
        yield Motion(system, q, v, duration, u[0])
    elif duration > path.duration * (1 + 1e-9):
        raise ValueError(
            f"{system.name}: the reference {path.name} ends after {path.duration:g} s, and no "
            f"motion of {duration:g} s can have its inputs; choose a shorter one"
        )
    else:
        for halvings in range(int(np.log2(max(1.0, len(path) / INTERVALS))) + 1):
            yield Motion(system, q, v, duration, _means(path, duration, INTERVALS * 2**halvings))


def _means(path: Trajectory, duration: float, intervals: int) -> np.ndarray:
    """Means of the inputs over equal intervals, (intervals, nu)."""
    impulses = np.vstack([np.zeros(path.inputs.shape[1]), path.h * path.inputs.cumsum(axis=0)])
    ends = np.linspace(0.0, duration, intervals + 1)
    at_ends = np.transpose([np.interp(ends, path.times, column) for column in impulses.T])
    return np.diff(at_ends, axis=0) * intervals / duration


def _stays(motion: Motion) -> bool:
    """Whether the motion stays in the model's domain, with a margin."""
    system, flow = motion.system, Flow(motion)
    configuration = ca.SX.sym("q", system.space.nq)
    domain = ca.Function("domain", [configuration], [system.domain_at(configuration)])
    least = SPARE * np.asarray(domain(motion.q))

    def spare(_: float, w: np.ndarray) -> float:
        return float(np.min(np.asarray(domain(w[: system.space.nq])) - least, initial=1.0))

    spare.terminal = True  # type: ignore[attr-defined]
    seen = motion.duration / SAMPLES  # a long step would not see that it left and came back
    try:
        flow.solve("DOP853", events=spare, rtol=1e-6, max_step=seen)
    except RuntimeError:
        return False
    return True
