"""Orders of convergence of integrators, measured on one motion of any system."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.integrators import INTEGRATORS
from nh_control.integrators.registry import Integrator, Make
from nh_control.mechanics.system import System
from nh_control.studies.comparison import TIGHTEST
from nh_control.studies.motion import Flow, InitialValueProblem

OneMethod: TypeAlias = str | Integrator | Make
Methods: TypeAlias = OneMethod | Iterable[OneMethod] | Mapping[str, OneMethod]
ABOVE, ROUND_OFF = 10, 1e-12
"""A fit uses errors greater than ABOVE times the reference's uncertainty and greater than
ROUND_OFF times the size of the reference.
"""
PARTS = ("configuration", "velocity")


@dataclass(frozen=True)
class Errors:
    """Errors (N) of one method at the end of the motion, one for each number of steps.
    Configuration errors are measured in the space's local coordinates. An error is NaN if a step
    failed. The orders are slopes of log(error) against log(h), fitted to the errors above the
    reference's accuracy. An order is NaN if fewer than two such errors exist.
    """

    configuration: np.ndarray
    velocity: np.ndarray
    configuration_order: float
    velocity_order: float


@dataclass(frozen=True)
class Convergence:
    """Errors and fitted orders of several methods for one motion, keyed by method name. `steps`
    (N) are the step counts, and `h` (N) are the step sizes in s.

    `uncertainty` is the error of the reference, and `floor` is the smallest error that a fit uses.
    Both contain one value for the configuration and one for the velocity. `failures` contains the
    reasons why steps failed, keyed by method name and step count. `str()` returns the table.
    """

    motion: InitialValueProblem
    steps: np.ndarray
    errors: Mapping[str, Errors]
    uncertainty: tuple[float, float]
    floor: tuple[float, float]
    failures: Mapping[tuple[str, int], str] = field(default_factory=dict)

    @property
    def h(self) -> np.ndarray:
        """Step sizes (N) in s."""
        return self.motion.duration / self.steps

    @property
    def orders(self) -> dict[str, float]:
        """Fitted orders of the configuration by name. An order that cannot be fitted is NaN."""
        return {name: errors.configuration_order for name, errors in self.errors.items()}

    def table(self, part: str = "configuration") -> str:
        """Return a table. The row for each h contains the error of every method, and its order
        with respect to the previous row. The last row contains the fitted orders. `part` is
        "configuration" or "velocity". Raises ValueError for any other part.
        """
        if part not in PARTS:
            raise ValueError(f"part must be one of {PARTS}, got {part!r}")
        columns = {name: getattr(errors, part) for name, errors in self.errors.items()}
        floor = self.floor[PARTS.index(part)]
        local = {name: _local_orders(self.h, column, floor) for name, column in columns.items()}
        width = {name: max(len(name), 15) for name in columns}
        lines = [f"{'steps':>7} {'h (s)':>10}" + "".join(f"  {n:>{width[n]}}" for n in columns)]
        for i, (steps, h) in enumerate(zip(self.steps, self.h)):
            cells = (
                f"{_number(column[i], '.2e')} {_number(local[name][i], '.2f'):>5}"
                for name, column in columns.items()
            )
            line = "".join(f"  {cell:>{width[n]}}" for n, cell in zip(columns, cells))
            lines.append(f"{steps:7d} {h:10.3g}" + line)
        fitted = {name: getattr(errors, f"{part}_order") for name, errors in self.errors.items()}
        ends = "".join(f"  {_number(fitted[n], '.2f'):>{width[n]}}" for n in columns)
        return "\n".join([*lines, f"{'fitted order':>18}" + ends])

    def plot(self, axes: Any = None) -> Any:
        """Plot the errors in the configuration and the velocity against h, in two given matplotlib
        axes or in new ones. Returns the axes. Raises ValueError unless two axes are given.
        """
        import nh_control  # subpackages below `figures` do not import it

        return nh_control.figures.plot_convergence(self, axes)

    def __str__(self) -> str:
        head = f"{self.motion.system.name}, {self.motion.duration:g} s"
        parts = (
            f"error of the {part} and order (the reference's uncertainty: {known:.1e})\n"
            f"{self.table(part)}"
            for part, known in zip(PARTS, self.uncertainty)
        )
        failed = (
            f"{name}, {steps} steps: {reason}" for (name, steps), reason in self.failures.items()
        )
        return "\n".join([head, *parts, *failed])


def convergence(
    system: System,
    methods: Methods,
    steps: Sequence[int],
    *,
    q: ArrayLike,
    v: ArrayLike,
    duration: float,
    u: ArrayLike | None = None,
) -> Convergence:
    """Measure the errors of methods at the end of a motion for several numbers of `steps`, and fit
    their orders. Methods are names in `nh.integrators.INTEGRATORS`, functions `make(system, h)`
    that return a DiscreteSystem, or a dictionary that maps other names to either.

    The motion starts from q (nq) and the admissible part of the velocity v (nw), and lasts
    `duration` s. It has one constant input u (nu), by default zero, or several inputs (N, nu),
    each applied for duration / N. The reference is computed by DOP853 for the equations of motion
    at the tightest tolerance. Raises ValueError for steps that are not increasing multiples of the
    number of inputs, for unknown methods, for methods that do not accept the system, and for wrong
    shapes. Raises RuntimeError if the reference fails.
    """
    numbers = _numbers_of_steps(steps)
    inputs = np.zeros(system.nu) if u is None else np.array(u, dtype=float)
    motion = InitialValueProblem(system, np.asarray(q), np.asarray(v), duration, inputs)
    if off := [int(n) for n in numbers if n % motion.intervals]:
        raise ValueError(
            f"{system.name}: steps must be multiples of the number of inputs, "
            f"{motion.intervals}, got {off}"
        )
    models = {
        name: _make_model(name, method, system, duration / numbers[0])
        for name, method in _by_name(methods).items()
    }
    # Any method can project v onto the admissible velocities, since state(q, v) stores only this
    # part.
    some = next(iter(models.values()))
    admissible = some.velocity(some.state(motion.q, motion.v))
    motion = InitialValueProblem(system, motion.q, admissible, duration, motion.u)
    end, uncertainty = _reference(motion)
    # Below this error, the uncertainty of the reference or round-off would bend a fit.
    floor = tuple(
        max(ABOVE * known, ROUND_OFF * max(1e-300, float(np.max(np.abs(value), initial=0.0))))
        for known, value in zip(uncertainty, end)
    )
    failures: dict[tuple[str, int], str] = {}
    errors = {
        name: _errors(name, dsys, motion, numbers, end, (floor[0], floor[1]), failures)
        for name, dsys in models.items()
    }
    return Convergence(motion, numbers, errors, uncertainty, (floor[0], floor[1]), failures)


def fitted_order(h: np.ndarray, errors: np.ndarray, floor: float) -> float:
    """Return the slope of log(error) against log(h), both (N), fitted to the errors above the
    floor. The slope is NaN if fewer than two such errors exist.
    """
    above = np.isfinite(errors) & (errors > floor)
    if above.sum() < 2:
        return float("nan")
    return float(np.polyfit(np.log(h[above]), np.log(errors[above]), 1)[0])


def _numbers_of_steps(steps: Sequence[int]) -> np.ndarray:
    numbers = np.array(steps)
    whole = numbers.ndim == 1 and numbers.size and np.issubdtype(numbers.dtype, np.integer)
    if not whole or numbers[0] < 1 or (np.diff(numbers) <= 0).any():
        raise ValueError(f"steps must be increasing numbers of steps, at least 1, got {steps!r}")
    return numbers


def _by_name(methods: Methods) -> dict[str, OneMethod]:
    if isinstance(methods, Mapping):
        named = dict(methods)
    else:
        alone = isinstance(methods, (str, Integrator)) or callable(methods)
        listed = [methods] if alone else list(methods)  # type: ignore[arg-type]
        names = [_name(method) for method in listed]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"several methods are named {twice}; give them as a dict by name")
        named = dict(zip(names, listed))
    if not named:
        raise ValueError("expected one method or more, got none")
    return named


def _name(method: Any) -> str:
    if isinstance(method, str):
        return method
    return str(getattr(method, "name", None) or getattr(method, "__name__", None) or method)


def _make_model(name: str, method: OneMethod, system: System, h: float) -> DiscreteSystem:
    """Return a method's discrete system. Raises ValueError if the method cannot make it."""
    if isinstance(method, str):
        if method not in INTEGRATORS:
            raise ValueError(f"no integrator {method!r}, choose from: {', '.join(INTEGRATORS)}")
        method = INTEGRATORS[method]
    if isinstance(method, Integrator):
        if reason := method.reason(system):
            raise ValueError(f"{name} cannot take {system.name}, which {reason}")
        method = method.make
    if not callable(method):
        raise ValueError(
            f"{name}: expected the name of an integrator, an Integrator or a function "
            f"make(system, h), got {method!r}"
        )
    dsys = method(system, h)
    if not isinstance(dsys, DiscreteSystem):
        raise ValueError(f"{name}: make(system, h) must return a DiscreteSystem, got {dsys!r}")
    return dsys


def _reference(
    motion: InitialValueProblem,
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[float, float]]:
    """Return the last configuration and velocity, and their distances from those computed at ten
    times the tolerance.
    """
    flow = Flow(motion)
    fine, coarse = (
        flow.equations.phase(flow.solve("DOP853", rtol=max(t, 2.3e-14), atol=t)[0])
        for t in (TIGHTEST, 10 * TIGHTEST)
    )
    q, v = coarse
    return fine, _distances(motion.system, fine, q, v)


def _distances(
    system: System, end: tuple[np.ndarray, np.ndarray], q: np.ndarray, v: np.ndarray
) -> tuple[float, float]:
    off = system.space.local(end[0], q), v - end[1]
    return float(np.linalg.norm(off[0])), float(np.linalg.norm(off[1]))


def _errors(
    name: str,
    dsys: DiscreteSystem,
    motion: InitialValueProblem,
    numbers: np.ndarray,
    end: tuple[np.ndarray, np.ndarray],
    floor: tuple[float, float],
    failures: dict[tuple[str, int], str],
) -> Errors:
    """Return the errors of a method, and add the reasons why steps failed to `failures`."""
    table = np.full((2, len(numbers)), np.nan)
    for i, n in enumerate(map(int, numbers)):
        model = dsys.with_step(motion.duration / n)
        try:
            x = model.state(motion.q, motion.v, motion.u[0])
            last = model.simulate(x, motion.u, every=n // motion.intervals).states[-1]
        except StepFailed as failure:
            failures[name, n] = str(failure)
            continue
        q, v = model.configuration(last), model.velocity(last)
        table[:, i] = _distances(motion.system, end, q, v)
    h = motion.duration / numbers
    orders = [fitted_order(h, errors, least) for errors, least in zip(table, floor)]
    return Errors(table[0], table[1], orders[0], orders[1])


def _local_orders(h: np.ndarray, errors: np.ndarray, floor: float) -> np.ndarray:
    """Return the orders (N) between each step size and the previous one. They are NaN for the
    first step size and for errors that are not above the floor.
    """
    pairs = (
        fitted_order(h[i - 1 : i + 1], errors[i - 1 : i + 1], floor) for i in range(1, len(h))
    )
    return np.array([np.nan, *pairs])


def _number(value: float, how: str) -> str:
    return "-" if np.isnan(value) else f"{value:{how}}"
