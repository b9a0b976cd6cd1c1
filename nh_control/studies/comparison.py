"""Comparisons of integrators on one motion of any system: error against processor time, energy and
constraints. SciPy's solvers for the reduced equations are compared as well.
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
from nh_control.studies.motion import Flow, InitialValueProblem

SCIPY = ("DOP853", "RK45", "LSODA")
TOLERANCES = tuple(10.0 ** (-k / 2) for k in range(4, 27))
TIGHTEST = 1e-13
COARSEST, FINER, HOPELESS = 8, 2**0.25, 3000
"""Number of steps in the first attempt (at least one for every input), the factor between
successive attempts, and the number of steps per input after which a failing method is abandoned.
"""
REPEATS = 5


@dataclass(frozen=True)
class WorkPoint:
    """One run. `setting` is the number of steps, or the tolerance of a solver with variable steps.
    `seconds` is the thread's processor time, the minimum over several runs. `error` is the
    distance between the last configuration and the reference's last configuration, in the space's
    local coordinates (rad, m).
    """

    setting: float
    seconds: float
    error: float


@dataclass(frozen=True)
class Drift:
    """Errors along a motion at `times` (N): the energy minus the reference's energy, divided by
    the largest kinetic energy (N), and the maximum of `|A(q) v - b(q)|` and `|h(q)|` (N).
    """

    times: np.ndarray
    energy: np.ndarray
    constraint: np.ndarray


class Reference:
    """The accurate motion, computed by DOP853 for the reduced equations at the tightest tolerance.
    `uncertainty` is the distance between its last configuration and the one computed at ten times
    the tolerance.
    """

    def __init__(self, motion: InitialValueProblem):
        self.motion, self._flow = motion, Flow(motion)
        self.equations = self._flow.equations
        self.end, _ = self.solve("DOP853", TIGHTEST)
        self.uncertainty = self.error(self.solve("DOP853", 10 * TIGHTEST)[0])

    def solve(
        self, solver: str, tolerance: float, times: Sequence[float] | np.ndarray = ()
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the last configuration, and w (N, n) at `times`, computed by one of SciPy's
        solvers. Raises RuntimeError if the solver fails.
        """
        # 2.3e-14 is the smallest relative tolerance that SciPy accepts without a warning.
        end, path = self._flow.solve(solver, times, rtol=max(tolerance, 2.3e-14), atol=tolerance)
        return end[: self.motion.system.space.nq], path

    def error(self, q: np.ndarray) -> float:
        """Return the distance between a last configuration and the reference's."""
        return float(np.linalg.norm(self.motion.system.space.local(self.end, q)))


def work_precision(
    reference: Reference, integrator: Integrator, longest_s: float = 0.1
) -> tuple[WorkPoint, ...]:
    """Return an integrator's points from coarse to fine steps, until the error reaches the
    reference's uncertainty or a run takes `longest_s`. Step sizes that make a step fail are
    omitted.
    """
    motion, dsys = reference.motion, None
    each = max(1.0, COARSEST / motion.intervals)
    points: list[WorkPoint] = []
    while not (_enough(points[-1], reference, longest_s) if points else each > HOPELESS):
        steps = round(each)
        # h is an argument of the compiled functions, so all step sizes share them.
        h = motion.duration / (steps * motion.intervals)
        dsys = integrator.make(motion.system, h) if dsys is None else dsys.with_step(h)
        # Add at least one step per input. Otherwise, rounding would repeat a number of steps.
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
    """Return the points for one of SciPy's solvers, from loose to tight tolerances."""
    points: list[WorkPoint] = []
    for tolerance in TOLERANCES:
        seconds, (end, _) = timed(partial(reference.solve, solver, tolerance))
        points.append(WorkPoint(tolerance, seconds, reference.error(end)))
        if _enough(points[-1], reference, longest_s):
            break
    return tuple(points)


def timed(run: Callable[[], Any], repeats: int = REPEATS) -> tuple[float, Any]:
    """Return the minimum processor time of this thread in s over several runs, and the result."""
    # The first run may compile code, so it is not timed.
    result, best = run(), np.inf
    for _ in range(repeats):
        before = time.thread_time()
        run()
        best = min(best, time.thread_time() - before)
    return best, result


def seconds_at(points: Sequence[WorkPoint], error: float) -> float:
    """Return the minimum processor time of the points with at most the given error, or infinity if
    there are none.
    """
    return min((point.seconds for point in points if point.error <= error), default=np.inf)


def _enough(point: WorkPoint, reference: Reference, longest_s: float) -> bool:
    return point.seconds >= longest_s or point.error <= 3 * reference.uncertainty


def _whole(
    dsys: DiscreteSystem, motion: InitialValueProblem, every: int
) -> Callable[[], np.ndarray]:
    """Return a function that makes `every` steps per input in one native call and returns the last
    configuration.
    """
    x = dsys.state(motion.q, motion.v, motion.u[0])
    return lambda: dsys.configuration(dsys.simulate(x, motion.u, every=every).states[-1])


class Drifts:
    """The energy and the constraints along the motion at up to `nodes` times, for integrators with
    the step size h and for SciPy's solvers.
    """

    def __init__(self, reference: Reference, h: float, nodes: int = 200):
        motion = reference.motion
        # The number of steps per input is a multiple of the number of steps between stored states.
        each = max(1, round(motion.duration / (h * motion.intervals)))
        self._every = max(1, min(each, each * motion.intervals // nodes))
        seen = each // self._every
        self._reference, self._inputs = reference, np.repeat(motion.u, seen, axis=0)
        self._h = motion.duration / (len(self._inputs) * self._every)
        self.times = np.linspace(0.0, motion.duration, len(self._inputs) + 1)
        self._values = _energy_and_constraint(motion.system)
        # Errors are relative to the largest kinetic energy, E(q, v) - E(q, 0).
        exact = self._of_solver("DOP853", TIGHTEST)
        rest = np.array([self._values(q, 0 * v)[0] for q, v in exact])
        self._energy = np.array([self._values(q, v)[0] for q, v in exact])
        self._scale = max(np.max(np.abs(self._energy - rest)), 1e-300)

    def of_integrator(self, integrator: Integrator) -> Drift:
        """Return the drift of an integrator. Raises StepFailed."""
        motion = self._reference.motion
        dsys = integrator.make(motion.system, self._h)
        x = dsys.state(motion.q, motion.v, motion.u[0])
        run = dsys.simulate(x, self._inputs, every=self._every)
        return self._drift((dsys.configuration(x), dsys.velocity(x)) for x in run.states)

    def of_solver(self, solver: str, tolerance: float) -> Drift:
        """Return the drift of one of SciPy's solvers."""
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
    # The zero is for systems without constraints.
    defect = ca.vertcat(ca.SX(1, 1), rolling, system.holonomic(q))
    f = ca.Function("values", [q, v], [system.mechanics.energy(q, v), ca.norm_inf(defect)])

    def values(q: np.ndarray, v: np.ndarray) -> tuple[float, float]:
        energy, constraint = f(q, v)
        return float(energy), float(constraint)

    return values


@dataclass(frozen=True)
class Comparison:
    """Work points and drifts by name, and the reasons why methods were refused."""

    motion: InitialValueProblem
    uncertainty: float
    step_s: float
    work: Mapping[str, tuple[WorkPoint, ...]]
    drifts: Mapping[str, Drift]
    refused: Mapping[str, str]


def compare(
    motion: InitialValueProblem,
    integrators: Mapping[str, Integrator],
    step_s: float,
    solvers: Sequence[str] = SCIPY,
    longest_s: float = 0.1,
    progress: Callable[[str], None] = lambda name: None,
) -> Comparison:
    """Compare integrators from a registry and SciPy's solvers on a motion. For energies and
    constraints, the integrators use the step size `step_s`, and the solvers use the tolerance
    1e-6. A curve ends at the first point that takes longer than `longest_s`.
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
    """An integrator. If it accepts the system, the row also contains the size of a state, the
    number of unknowns, and the minimum processor time in us of a step within a native trajectory.
    Values that were not measured are None.
    """

    integrator: Integrator
    refused: str = ""
    state_size: int | None = None
    unknowns: int | None = None
    microseconds: float | None = None


def method_table(
    integrators: Mapping[str, Integrator], motion: InitialValueProblem, h: float, steps: int = 200
) -> Iterator[MethodRow]:
    """Yield a row for every integrator on the motion's system, timed with the step size h."""
    for integrator in integrators.values():
        if reason := integrator.reason(motion.system):
            yield MethodRow(integrator, reason)
            continue
        dsys = integrator.make(motion.system, h)
        # A composition solves one set of unknowns per substep.
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
