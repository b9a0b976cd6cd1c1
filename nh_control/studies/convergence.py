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
from nh_control.studies.motion import Flow, Motion

OneMethod: TypeAlias = str | Integrator | Make
Methods: TypeAlias = OneMethod | Iterable[OneMethod] | Mapping[str, OneMethod]
ABOVE, ROUND_OFF = 10, 1e-12
"""A fit takes errors above ABOVE times the reference's uncertainty, and above ROUND_OFF times the
size of the reference.
"""
PARTS = ("configuration", "velocity")


@dataclass(frozen=True)
class Errors:
    """Errors (N) of one method at the end of the motion for each number of steps, of the
    configuration in the local coordinates of the space, and of the velocity; NaN if a step failed.
    The orders are slopes of log(error) over log(h), fitted to the errors above the reference's
    accuracy, NaN for less than two such errors.
    """

    configuration: np.ndarray
    velocity: np.ndarray
    configuration_order: float
    velocity_order: float


@dataclass(frozen=True)
class Convergence:
    """Errors and fitted orders of methods on a motion, by name, for numbers of `steps` (N) of `h`
    (N) s.

    `uncertainty` of the reference, and `floor`, the least error that a fit takes, are pairs of
    numbers for configuration and velocity. `failures` has the reasons of failed steps by name and
    number of steps. `str()` is the table.
    """

    motion: Motion
    steps: np.ndarray
    errors: Mapping[str, Errors]
    uncertainty: tuple[float, float]
    floor: tuple[float, float]
    failures: Mapping[tuple[str, int], str] = field(default_factory=dict)

    @property
    def h(self) -> np.ndarray:
        """Steps (N) in s."""
        return self.motion.duration / self.steps

    @property
    def orders(self) -> dict[str, float]:
        """Fitted order of the configuration by name, NaN where it cannot be fitted."""
        return {name: errors.configuration_order for name, errors in self.errors.items()}

    def table(self, part: str = "configuration") -> str:
        """Rows of h with the error of every method, and its order since the row before; the last
        row has the fitted orders. `part` is "configuration" or "velocity"; raises ValueError for
        another one.
        """
        if part not in PARTS:
            raise ValueError(f"expected a part of {PARTS}, got {part!r}")
        columns = {name: getattr(errors, part) for name, errors in self.errors.items()}
        floor = self.floor[PARTS.index(part)]
        local = {name: _local_orders(self.h, one, floor) for name, one in columns.items()}
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
        """Draw the errors of configuration and velocity over h, in matplotlib's `axes` if two are
        given; returns the axes. Raises ValueError for another number of axes.
        """
        import nh_control  # hands out the room that draws: nothing here depends on it

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
    """Errors at the end of a motion for several numbers of `steps`, and fitted orders, of methods:
    names of `nh.integrators.INTEGRATORS`, functions `make(system, h)` that return a
    DiscreteSystem, or both in a dictionary by other names.

    The motion starts from q (nq) and the admissible part of the velocity v (nw), lasts `duration`
    s, and has one input u (nu), zero by default, or several (N, nu), each held for duration / N.
    The reference is DOP853 at the tightest tolerance on the equations of motion. Raises ValueError
    for steps that are not increasing multiples of the number of inputs, for unknown methods and
    methods that cannot take the system, and for wrong shapes; RuntimeError if the reference fails.
    """
    numbers = _numbers_of_steps(steps)
    given = np.zeros(system.nu) if u is None else np.array(u, dtype=float)
    motion = Motion(system, np.asarray(q), np.asarray(v), duration, given)
    if off := [int(n) for n in numbers if n % motion.intervals]:
        raise ValueError(
            f"{system.name}: steps must be multiples of the number of inputs, "
            f"{motion.intervals}, got {off}"
        )
    made = {
        name: _made(name, method, system, duration / numbers[0])
        for name, method in _by_name(methods).items()
    }
    some = next(iter(made.values()))
    admissible = some.velocity(some.state(motion.q, motion.v))
    motion = Motion(system, motion.q, admissible, duration, motion.u)
    end, uncertainty = _reference(motion)
    floor = tuple(
        max(ABOVE * known, ROUND_OFF * max(1e-300, float(np.max(np.abs(value), initial=0.0))))
        for known, value in zip(uncertainty, end)
    )
    failures: dict[tuple[str, int], str] = {}
    errors = {
        name: _errors(name, dsys, motion, numbers, end, (floor[0], floor[1]), failures)
        for name, dsys in made.items()
    }
    return Convergence(motion, numbers, errors, uncertainty, (floor[0], floor[1]), failures)


def fitted_order(h: np.ndarray, errors: np.ndarray, floor: float) -> float:
    """Slope of log(error) over log(h), (N), of the errors above the floor; NaN for less than
    two.
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
        names = [_name(one) for one in listed]
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


def _made(name: str, method: OneMethod, system: System, h: float) -> DiscreteSystem:
    """The discrete system of a method; raises ValueError where there is none."""
    if isinstance(method, str):
        if method not in INTEGRATORS:
            raise ValueError(f"no integrator {method!r}, choose of: {', '.join(INTEGRATORS)}")
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
    made = method(system, h)
    if not isinstance(made, DiscreteSystem):
        raise ValueError(f"{name}: make(system, h) must return a DiscreteSystem, got {made!r}")
    return made


def _reference(motion: Motion) -> tuple[tuple[np.ndarray, np.ndarray], tuple[float, float]]:
    """Last configuration and velocity, and their distances from the results at ten times the
    tolerance.
    """
    flow = Flow(motion)
    fine, coarse = (
        flow.equations.phase(flow.solve("DOP853", rtol=max(t, 2.3e-14), atol=t)[0])
        for t in (TIGHTEST, 10 * TIGHTEST)
    )
    return fine, _distances(motion.system, fine, *coarse)


def _distances(
    system: System, end: tuple[np.ndarray, np.ndarray], q: np.ndarray, v: np.ndarray
) -> tuple[float, float]:
    off = system.space.local(end[0], q), v - end[1]
    return float(np.linalg.norm(off[0])), float(np.linalg.norm(off[1]))


def _errors(
    name: str,
    dsys: DiscreteSystem,
    motion: Motion,
    numbers: np.ndarray,
    end: tuple[np.ndarray, np.ndarray],
    floor: tuple[float, float],
    failures: dict[tuple[str, int], str],
) -> Errors:
    """The errors of a method; notes steps that fail."""
    table = np.full((2, len(numbers)), np.nan)
    for i, n in enumerate(map(int, numbers)):
        one = dsys.with_step(motion.duration / n)
        try:
            x = one.state(motion.q, motion.v, motion.u[0])
            last = one.simulate(x, motion.u, every=n // motion.intervals).states[-1]
        except StepFailed as failure:
            failures[name, n] = str(failure)
            continue
        table[:, i] = _distances(motion.system, end, one.configuration(last), one.velocity(last))
    h = motion.duration / numbers
    return Errors(*table, *(fitted_order(h, *part) for part in zip(table, floor)))


def _local_orders(h: np.ndarray, errors: np.ndarray, floor: float) -> np.ndarray:
    """Orders (N) between each step and the one before, NaN for the first and where an error is
    not above the floor.
    """
    pairs = (
        fitted_order(h[i - 1 : i + 1], errors[i - 1 : i + 1], floor) for i in range(1, len(h))
    )
    return np.array([np.nan, *pairs])


def _number(value: float, how: str) -> str:
    return "-" if np.isnan(value) else f"{value:{how}}"
