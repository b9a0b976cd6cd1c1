"""Integrators compared on one motion of any system: error against processor time, energy and
constraints, with SciPy's solvers on the reduced equations beside them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import casadi as ca
import numpy as np

from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.integrators.registry import Integrator
from nh_control.mechanics.system import System
from nh_control.studies.motion import Flow, Motion

SCIPY = ("DOP853", "RK45", "LSODA")
TOLERANCES = tuple(10.0 ** (-k / 2) for k in range(4, 27))
TIGHTEST = 1e-13
COARSEST, FINER, HOPELESS = 8, 2**0.25, 3000
"""Number of steps of the first attempt (at least one for every input), the factor to the next
number, and the number of steps per input after which a failing method is given up.
"""
REPEATS = 5


@dataclass(frozen=True)
class WorkPoint:
    """One run: `setting` is the number of steps, or the tolerance of a solver with variable steps.
    The others are the thread's processor time in s, the least of several runs, and the distance of
    the last configuration from the reference's, in the local coordinates of the space (rad, m).
    """

    setting: float
    seconds: float
    error: float


@dataclass(frozen=True)
class Drift:
    """Along a motion: times (N), the difference of the energy and the reference's, divided by the
    largest kinetic energy (N), and the largest of `|A(q) v - b(q)|` and `|h(q)|` (N).
    """

    times: np.ndarray
    energy: np.ndarray
    constraint: np.ndarray


class Reference:
    """The accurate motion: DOP853 at the tightest tolerance on the reduced equations; its
    `uncertainty` is the distance of its end from the end at ten times the tolerance.
    """

    def __init__(self, motion: Motion):
        self.motion, self._flow = motion, Flow(motion)
        self.equations = self._flow.equations
        self.end, _ = self.solve("DOP853", TIGHTEST)
        self.uncertainty = self.error(self.solve("DOP853", 10 * TIGHTEST)[0])

    def solve(
        self, solver: str, tolerance: float, times: Sequence[float] | np.ndarray = ()
    ) -> tuple[np.ndarray, np.ndarray]:
        """Last configuration, and w at the times (N, n), by one of SciPy's solvers; raises
        RuntimeError if it fails.
        """
        end, path = self._flow.solve(solver, times, rtol=max(tolerance, 2.3e-14), atol=tolerance)
        return end[: self.motion.system.space.nq], path

    def error(self, q: np.ndarray) -> float:
        """Distance of a last configuration from the reference's."""
        return float(np.linalg.norm(self.motion.system.space.local(self.end, q)))


def work_precision(
    reference: Reference, integrator: Integrator, longest_s: float = 0.1
) -> tuple[WorkPoint, ...]:
    """Points of an integrator from coarse to fine steps, down to the reference's uncertainty or up
    to `longest_s`; step sizes at which a step fails are left out.
    """
    motion, dsys = reference.motion, None
    each = max(1.0, COARSEST / motion.intervals)
    points: list[WorkPoint] = []
    while not (_enough(points[-1], reference, longest_s) if points else each > HOPELESS):
        steps = round(each)
        h = motion.duration / (steps * motion.intervals)
        dsys = integrator.make(motion.system, h) if dsys is None else dsys.with_step(h)
        each = max(FINER * each, steps + 1)
        try:
            seconds, end = timed(_whole(dsys, motion, steps))
        except StepFailed:
            continue
        points.append(WorkPoint(steps * motion.intervals, seconds, reference.error(end)))
    return tuple(points)


def solver_precision(
    reference: Reference, solver: str, longest_s: float = 0.1
) -> tuple[WorkPoint, ...]:
    """Points of one of SciPy's solvers from loose to tight tolerances."""
    points: list[WorkPoint] = []
    for tolerance in TOLERANCES:
        seconds, (end, _) = timed(partial(reference.solve, solver, tolerance))
        points.append(WorkPoint(tolerance, seconds, reference.error(end)))
        if _enough(points[-1], reference, longest_s):
            break
    return tuple(points)


def timed(run: Callable[[], Any], repeats: int = REPEATS) -> tuple[float, Any]:
    """Least processor time of this thread in s over several runs, and the result."""
    result, best = run(), np.inf
    for _ in range(repeats):
        before = time.thread_time()
        run()
        best = min(best, time.thread_time() - before)
    return best, result


def seconds_at(points: Sequence[WorkPoint], error: float) -> float:
    """Least processor time of a point with at most that error; infinite without one."""
    return min((p.seconds for p in points if p.error <= error), default=np.inf)


def _enough(point: WorkPoint, reference: Reference, longest_s: float) -> bool:
    return point.seconds >= longest_s or point.error <= 3 * reference.uncertainty


def _whole(dsys: DiscreteSystem, motion: Motion, every: int) -> Callable[[], np.ndarray]:
    """A run of `every` steps an input in one call, which gives the last configuration."""
    x = dsys.state(motion.q, motion.v, motion.u[0])
    return lambda: dsys.configuration(dsys.simulate(x, motion.u, every=every).states[-1])


class Drifts:
    """Energy and constraints along the motion at up to `nodes` times, by any integrator at one
    step h, and by SciPy's solvers.
    """

    def __init__(self, reference: Reference, h: float, nodes: int = 200):
        motion = reference.motion
        each = max(1, round(motion.duration / (h * motion.intervals)))
        self._every = max(1, min(each, each * motion.intervals // nodes))
        seen = each // self._every
        self._reference, self._inputs = reference, np.repeat(motion.u, seen, axis=0)
        self._h = motion.duration / (len(self._inputs) * self._every)
        self.times = np.linspace(0.0, motion.duration, len(self._inputs) + 1)
        self._values = _energy_and_constraint(motion.system)
        exact = self._of_solver("DOP853", TIGHTEST)
        rest = np.array([self._values(q, 0 * v)[0] for q, v in exact])
        self._energy = np.array([self._values(q, v)[0] for q, v in exact])
        self._scale = max(np.max(np.abs(self._energy - rest)), 1e-300)

    def of_integrator(self, integrator: Integrator) -> Drift:
        """By an integrator of the package; raises StepFailed."""
        motion = self._reference.motion
        dsys = integrator.make(motion.system, self._h)
        x = dsys.state(motion.q, motion.v, motion.u[0])
        run = dsys.simulate(x, self._inputs, every=self._every)
        return self._drift((dsys.configuration(x), dsys.velocity(x)) for x in run.states)

    def of_solver(self, solver: str, tolerance: float) -> Drift:
        """By one of SciPy's solvers."""
        return self._drift(self._of_solver(solver, tolerance))

    def _of_solver(self, solver: str, tolerance: float) -> list[tuple[np.ndarray, np.ndarray]]:
        path = self._reference.solve(solver, tolerance, self.times)[1]
        return [self._reference.equations.phase(w) for w in path]

    def _drift(self, phases: Iterable[tuple[np.ndarray, np.ndarray]]) -> Drift:
        energy, constraint = np.transpose([self._values(q, v) for q, v in phases])
        return Drift(self.times, (energy - self._energy) / self._scale, constraint)


def _energy_and_constraint(system: System) -> Callable[..., tuple[float, float]]:
    system = system.numeric
    q, v = ca.SX.sym("q", system.space.nq), ca.SX.sym("v", system.space.nw)
    rolling = system.constraint_matrix(q) @ v - system.drift(q)
    defect = ca.vertcat(ca.SX(1, 1), rolling, system.holonomic(q))
    f = ca.Function("values", [q, v], [system.mechanics.energy(q, v), ca.norm_inf(defect)])

    def values(q: np.ndarray, v: np.ndarray) -> tuple[float, float]:
        energy, constraint = f(q, v)
        return float(energy), float(constraint)

    return values


@dataclass(frozen=True)
class Comparison:
    """Result of a comparison: work points and drifts by name, in the order of the names; and the
    reasons why methods are left out.
    """

    motion: Motion
    uncertainty: float
    step_s: float
    work: Mapping[str, tuple[WorkPoint, ...]]
    drifts: Mapping[str, Drift]
    refused: Mapping[str, str]


def compare(
    motion: Motion,
    integrators: Mapping[str, Integrator],
    step_s: float,
    solvers: Sequence[str] = SCIPY,
    longest_s: float = 0.1,
    progress: Callable[[str], None] = lambda name: None,
) -> Comparison:
    """Compare integrators of a registry and SciPy's solvers on a motion. Energies and constraints
    are those at the step `step_s`, and of the solvers at the tolerance 1e-6. A curve ends with the
    first point that costs more than `longest_s`.
    """
    reference = Reference(motion)
    drifts, work = Drifts(reference, step_s), {}
    energies, refused = {}, {}
    for name, integrator in integrators.items():
        if reason := integrator.reason(motion.system):
            refused[name] = reason
            continue
        progress(name)
        work[name] = work_precision(reference, integrator, longest_s)
        try:
            energies[name] = drifts.of_integrator(integrator)
        except StepFailed as failure:
            refused[name] = f"no energy at h = {step_s:g} s: {failure.reason}"
    for solver in solvers:
        progress(solver)
        work[solver] = solver_precision(reference, solver, longest_s)
        energies[solver] = drifts.of_solver(solver, 1e-6)
    return Comparison(motion, reference.uncertainty, step_s, work, energies, refused)


@dataclass(frozen=True)
class MethodRow:
    """Properties of an integrator and, on a system that it takes, the sizes of a state and of the
    unknowns, and the least processor time of a step in us, in a native trajectory; None for values
    that were not measured.
    """

    integrator: Integrator
    refused: str = ""
    state_size: int | None = None
    unknowns: int | None = None
    microseconds: float | None = None


def method_table(
    integrators: Mapping[str, Integrator], motion: Motion, h: float, steps: int = 200
) -> Iterator[MethodRow]:
    """A row for every integrator on the system of the motion, timed at step h."""
    for integrator in integrators.values():
        if reason := integrator.reason(motion.system):
            yield MethodRow(integrator, reason)
            continue
        dsys = integrator.make(motion.system, h)
        n = dsys.method.nz * len(dsys.method.substeps)
        try:
            inputs, x = (
                motion.inputs_at(h * np.arange(steps)),
                dsys.state(motion.q, motion.v, motion.u[0]),
            )
            seconds, _ = timed(partial(dsys.simulate, x, inputs))
        except StepFailed as failure:
            yield MethodRow(integrator, f"fails at h = {h:g} s: {failure.reason}", dsys.nx, n)
            continue
        yield MethodRow(integrator, "", dsys.nx, n, 1e6 * seconds / steps)
