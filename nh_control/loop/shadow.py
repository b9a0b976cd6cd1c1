"""A model that runs alongside a robot. It predicts every measurement from the previous one under
the inputs that acted, and computes the innovations.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np

from nh_control.control.input_history import InputHistory, Inputs, predict
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.loop.clocks import NANOSECONDS
from nh_control.loop.hardware_tracker import LONGEST_S, Estimate
from nh_control.loop.reports import Refusal, Report
from nh_control.loop.state_estimate import is_whole

NEVER_NS = 2**63
"""A stamp later than all others."""


class Statistics:
    """Running mean, standard deviation and largest absolute value of rows (n) of numbers."""

    def __init__(self) -> None:
        self._start(0)

    def _start(self, n: int) -> None:
        self.count = 0
        self.mean, self._squares, self.largest = np.zeros(n), np.zeros(n), np.zeros(n)

    def add(self, row: np.ndarray) -> None:
        """Add a row; a row of a different length starts new statistics."""
        if not self.count or len(row) != len(self.mean):
            self._start(len(row))
        self.count += 1
        # Welford's update: mean += d / count, squares += d (row - new mean)
        change = row - self.mean
        self.mean = self.mean + change / self.count
        self._squares = self._squares + change * (row - self.mean)
        self.largest = np.maximum(self.largest, np.abs(row))

    @property
    def deviation(self) -> np.ndarray:
        """Standard deviation (n), 0 for a single row."""
        return np.sqrt(self._squares / max(1, self.count - 1))


@dataclass(frozen=True)
class Residual:
    """The difference `local(predicted, measured)` between a measurement and its prediction at a
    given time. It is the difference in the configuration (nv) or, if all velocities are measured,
    in the state (ndx).
    """

    time_ns: int
    values: np.ndarray


class Shadow:
    """Predicts with the model `dsys` from one measurement to the next, starting from the state
    that `estimate` computes from the earlier measurements.

    A measurement is compared with its prediction once the commands before it are known. If
    commands answer states (`answering`), this is the case when the answer to the previous state or
    `patience` more measurements have arrived. Nothing is predicted from a state older than the
    first answered state, because its input is unknown.
    """

    def __init__(
        self, dsys: DiscreteSystem, estimate: Estimate, patience: int = 1, answering: bool = False
    ):
        self._dsys, self._estimate, self._patience = dsys, estimate, patience
        self._answering = answering
        self._limits = dsys.system.input_bounds.T
        self._inputs = InputHistory(dsys.idle(dsys.state_space.origin))
        self.statistics, self.refused = Statistics(), Counter[str]()
        self.failed, self.unanswered, self.trouble = 0, 0, ""
        self.reset()

    def reset(self) -> None:
        """Forget measurements and inputs; the statistics are unchanged."""
        self._inputs.clear()
        self._waiting: deque[tuple[int, list[float], list[float] | None]] = deque()
        self._newest_ns, self._answered_ns, self._first_answered_ns = -1, -1, NEVER_NS
        self._forget()

    def _forget(self) -> None:
        """Start again with the next measurement."""
        self._estimate.reset()
        self._known: tuple[int, np.ndarray] | None = None

    def refuse(self, kind: Refusal, reason: str) -> None:
        """Note a measurement that could not be used."""
        self.refused[kind.value] += 1
        self.trouble = reason

    def command(self, u: Sequence[float], time_ns: int, answered_ns: int) -> None:
        """Note that the input u (nu) acts from `time_ns` in answer to the state with the stamp
        `answered_ns`. The input is clipped to the limits of the actuators.
        """
        lower, upper = self._limits
        self._inputs.add(time_ns, np.clip(u, lower, upper))
        self._answered_ns = max(self._answered_ns, answered_ns)
        self._first_answered_ns = min(self._first_answered_ns, answered_ns)

    def measured(
        self, time_ns: int, q: Sequence[float], v: Sequence[float] | None
    ) -> list[Residual]:
        """Process the configuration q (nq) and the velocity v (nw). A velocity that is not
        measured is None or NaN. Returns the residuals that are now known. If the measurement is
        more than LONGEST_S newer than the last one, the shadow starts again.
        """
        if time_ns <= self._newest_ns:
            return []
        residuals: list[Residual] = []
        if 0 <= self._newest_ns < time_ns - LONGEST_S * NANOSECONDS:
            ahead_s = (time_ns - self._newest_ns) / NANOSECONDS
            residuals = self.settle()
            self.reset()
            self.trouble = f"the states' time jumped ahead by {ahead_s:.3g} s"
        self._newest_ns = time_ns
        self._waiting.append((time_ns, list(q), None if v is None else list(v)))
        return residuals + self._looked_at(self._patience)

    def settle(self) -> list[Residual]:
        """Return the residuals of all measurements that still wait for commands."""
        return self._looked_at(0)

    def _looked_at(self, patience: int) -> list[Residual]:
        residuals = []
        while self._waiting and (len(self._waiting) > patience or self._complete()):
            time_ns, q, v = self._waiting.popleft()
            residual = self._compare(time_ns, q, v)
            if residual is not None:
                self.statistics.add(residual.values)
                residuals.append(residual)
        return residuals

    def _complete(self) -> bool:
        before_ns = -1 if self._known is None else self._known[0]
        return self._answering and (before_ns < 0 or self._answered_ns >= before_ns)

    def _compare(self, time_ns: int, q: list[float], v: list[float] | None) -> Residual | None:
        # work on a copy: an unusable state must not change the estimate
        estimate = copy(self._estimate)
        try:
            residual = None
            inputs: list[tuple[np.ndarray, float]] = []
            if self._known is not None:
                inputs = list(self._inputs.between(self._known[0], time_ns))
                if self._answering and self._known[0] < self._first_answered_ns:
                    self.unanswered += 1
                else:
                    residual = Residual(time_ns, self._difference(self._known[1], inputs, q, v))
            x = estimate.state(time_ns, q, v, inputs, self._at_rest(q))
        except StepFailed as failure:
            self.failed, self.trouble = self.failed + 1, f"no prediction: {failure}"
            self._forget()
            return None
        except ValueError as reason:
            self.refuse(Refusal.MODEL, f"a state's numbers cannot be used: {reason}")
            return None
        self._estimate, self._known = estimate, (time_ns, x)
        return residual

    def _difference(
        self, x: np.ndarray, inputs: Inputs, q: list[float], v: list[float] | None
    ) -> np.ndarray:
        d = self._dsys
        expected = predict(d, x, inputs)
        # without measured velocities, the predicted ones are used, and only nv components are
        # compared
        if v is None or not is_whole(v):
            measured = np.concatenate([q, expected[d.system.space.nq :]])
            return d.local(expected, measured)[: d.system.space.nv]
        return d.local(expected, d.measured_state(q, v))

    def _at_rest(self, q: list[float]) -> np.ndarray:
        return self._dsys.measured_state(q, np.zeros(self._dsys.system.space.nw))

    @property
    def names(self) -> list[str]:
        """Names of a residual's components."""
        count = len(self.statistics.mean) if self.statistics.count else self._dsys.system.space.nv
        return list(self._dsys.state_space.tangent_names[:count])

    def report(self) -> Report:
        """Return the running statistics."""
        s = self.statistics
        values: dict[str, object] = {
            "residuals": s.count,
            "states_refused": self.refused.total(),
            **{f"refused: {kind}": count for kind, count in self.refused.items()},
            "predictions_failed": self.failed,
            "states_unanswered": self.unanswered,
        }
        if s.count:
            for what, row in (("mean", s.mean), ("std", s.deviation), ("max", s.largest)):
                values |= {f"{what}: {n}": float(x) for n, x in zip(self.names, row)}
        if not s.count:
            waiting = "commands" if self.unanswered else "states"
            return Report("warn", self.trouble or f"waiting for {waiting}", values)
        trouble, self.trouble = self.trouble, ""
        return Report("warn" if trouble else "ok", trouble or "comparing", values)
