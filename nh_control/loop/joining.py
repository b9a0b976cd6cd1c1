"""How a tracker joins a run that began without it, for example after the tracker has restarted."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from nh_control.control.closed_loop import ClosedLoopRunner, LoopRecord
from nh_control.control.controller import ControllerTracker
from nh_control.control.trackers import linear
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.loop.error_bounds import ErrorBounds
from nh_control.loop.reference_sequence import ReferenceLeg, ReferenceSequence
from nh_control.scenarios import Scenario
from nh_control.scenarios.vehicle_guidance import VehicleGuidance

REPEAT_S, REST = 1.0, 10.0
"""Minimum time (s) after which a tracker that cannot join tries again, and the minimum ratio of
this time to the duration of the last try.
"""
SETTLE_S = 5.0
"""Minimum duration (s) of a trial along a reference whose final state is held."""
POINTS, APART_S = 4, 0.5
"""Number of points on the reference that are tried, and the minimum time (s) between them."""

Plan = Callable[[int, np.ndarray], ReferenceLeg]
"""A function that returns the leg of a motion from a step and a state (nx). Raises ValueError and
StepFailed.
"""
Joined = Callable[[ReferenceLeg | None, str], None]
"""A callback that receives the new leg, if there is one, and a text about how it joins the run."""
FAILURES = (StepFailed, ValueError, ArithmeticError, np.linalg.LinAlgError)


class Joining:
    """Lets the tracker of a `sequence` follow a run from its start. A tracker that arrives later
    tries the following motions from the present state in trials with the model. It joins the run
    with the first motion that succeeds:

    1. the reference at its present time,
    2. the reference, shifted in time, from one of its points that are closest to the state in
       terms of the tracker's cost `e^T P e`,
    3. a motion planned by `plan`. If the plant has moved on during planning, the motion begins at
       the next state after another trial.

    A trial tracks the reference with the model from the present state to the end of the reference,
    and for at least SETTLE_S if the final state is held. The trial succeeds if the error is then
    within the `bounds`. There is nothing to try once the reference has ended if its final state is
    not held. `joined(leg, text)` is called when the tracker joins the run; leg is None for the
    reference at its present time.
    """

    def __init__(
        self,
        sequence: ReferenceSequence,
        bounds: ErrorBounds | None = None,
        plan: Plan | None = None,
        joined: Joined = lambda leg, text: None,
    ):
        self._sequence, self._plan, self._joined_callback = sequence, plan, joined
        nv = sequence.dsys.system.space.nv
        self._bounds = bounds or ErrorBounds(np.ones(nv, dtype=bool))
        self.reset()

    def reset(self) -> None:
        """Prepare for another run."""
        self._joined, self._try_at, self._obstacle = False, 0, ""
        self._planned: tuple[int, ReferenceLeg] | None = None

    def join(self, k: int, x: np.ndarray) -> str:
        """Join the run at step k and state x (nx) unless the tracker already follows it. Returns
        the reason why joining is impossible, or "" if the tracker follows the run.
        """
        if self._planned is not None:
            planned_at, leg = self._planned
            self._begin(planned_at, leg, k, x)
        if self._joined or not k:
            self._joined = True
        elif k >= self._try_at:
            # no second try while the first one is running
            began, self._try_at = time.monotonic(), sys.maxsize
            self._obstacle = self._try(k, x)
            self._joined = not self._obstacle
            # slow trials are repeated less often: they take at most 1 / (1 + REST) of the time
            wait_s = max(REPEAT_S, REST * (time.monotonic() - began))
            self._try_at = k + round(wait_s / self._sequence.dsys.h)
        return "" if self._joined else self._obstacle

    def _begin(self, planned_at: int, leg: ReferenceLeg, k: int, x: np.ndarray) -> None:
        """Begin the planned motion at the first state after the one used for planning."""
        if k == planned_at:
            return
        self._planned = None
        # the next state is on the planned motion; a later state needs another trial
        if k == planned_at + 1:
            return
        leg = replace(leg, start=k)
        self._joined = not obstacle(leg, k, x, self._bounds)
        if self._joined:
            self._sequence.replace(leg)
        else:
            self._try_at = k

    def _try(self, k: int, x: np.ndarray) -> str:
        present, t = self._sequence.leg(k), k * self._sequence.dsys.h
        # 1. the reference at its present time
        over = k >= present.end and not present.tracker.hold
        failed = "" if over else obstacle(present, k, x, self._bounds)
        if not failed:
            self._joined_callback(None, f"joins the run at t = {t:.3f} s")
            return ""
        # 2. and 3. the reference shifted in time, then a planned motion
        for leg, text in self._others(present, k, x):
            if not obstacle(leg, k, x, self._bounds):
                self._sequence.replace(leg)
                self._joined_callback(
                    leg, f"joins the run at t = {t:.3f} s {text}, because {failed}"
                )
                return ""
        self._planned = None
        return (
            f"the tracker does not join the run at t = {t:.3f} s and sends no commands, so the "
            f"plant's fallback acts: {failed}, and the tracker found no other way to the "
            f"reference; set another `reference`, or reset the run"
        )

    def _others(
        self, present: ReferenceLeg, k: int, x: np.ndarray
    ) -> Iterator[tuple[ReferenceLeg, str]]:
        """Yield other legs that may join the run, with a description of each."""
        h = self._sequence.dsys.h
        for j in nearest(present, x):
            after_s = (k - j - present.start) * h
            late = f"{abs(after_s):.2f} s {'late' if after_s > 0 else 'early'}"
            yield replace(present, start=k - j), f"with the reference {late} from now on"
        if self._plan is not None:
            try:
                leg = self._plan(k, x)
            except FAILURES:
                return
            self._planned = k, leg
            yield leg, f"by a motion of {(leg.end - k) * h:.3g} s to the reference's end"


def obstacle(leg: ReferenceLeg, k: int, x: np.ndarray, bounds: ErrorBounds) -> str:
    """Track the leg with the model from the state x (nx) at step k. Returns the reason why the
    error does not come within the bounds, or "" if it does.
    """
    if isinstance(leg.tracker, ControllerTracker):
        return ""  # the tracker may have an internal state, which a trial must not change
    tracker, first = linear(leg.tracker), k - leg.start
    dsys, last = tracker.dsys, len(tracker.reference)
    if tracker.hold:
        last = max(last, first + round(SETTLE_S / dsys.h))
    # a trial from step `first` of the leg to its end
    steps = max(0, last - first)
    record = LoopRecord.empty(dsys, dsys, first + steps)
    external = np.zeros((first + steps, 0))
    runner = ClosedLoopRunner(dsys, tracker, x, record, external, first=first)
    try:
        runner.run()
    except FAILURES as reason:
        t = (leg.start + runner.k) * dsys.h
        return f"tracked from there, the model fails at t = {t:.3f} s, {reason}"
    size = float(bounds.size(record.errors[-1]))
    if not size <= bounds.error:
        return (
            f"tracked from there, the model is still {size:.3g} (m, rad) off after "
            f"{steps * dsys.h:.3g} s"
        )
    return ""


def nearest(leg: ReferenceLeg, x: np.ndarray) -> Sequence[int]:
    """Return the steps of the leg's reference at which the error e of the state x (nx) has the
    smallest cost `e^T P e`. The steps are at least APART_S apart; there are at most POINTS of
    them, and the best one comes first.
    """
    if isinstance(leg.tracker, ControllerTracker):
        return []
    tracker, dsys = linear(leg.tracker), leg.tracker.dsys
    errors = np.array([dsys.local(target, x) for target in tracker.reference.states])
    # a distant state may have no local coordinates: its NaN or infinite cost comes last
    with np.errstate(all="ignore"):
        costs = np.einsum("ki,kij,kj->k", errors, tracker.gains.P, errors)
    chosen: list[int] = []
    for j in np.argsort(np.nan_to_num(costs, nan=np.inf)).tolist():
        if all(abs(j - other) * dsys.h >= APART_S for other in chosen):
            chosen.append(j)
        if len(chosen) == POINTS:
            break
    return chosen


def planned_motion(scenario: Scenario, sequence: ReferenceSequence) -> Plan | None:
    """Return a function that plans motions from any state to the final state of a sequence's
    present reference, or None if the scenario cannot plan motions.
    """
    drive, body, dsys = scenario.drive, scenario.body, sequence.dsys
    if drive is not None and body is not None:
        guidance, first = VehicleGuidance(dsys, drive), body.place(dsys.system.space)[0]

        def drive_there(k: int, x: np.ndarray) -> ReferenceLeg:
            leg = sequence.leg(k)
            goal = dsys.configuration(leg.tracker.reference.states[-1])[first : first + 3]
            reference = guidance.to_goal(x, goal)
            return ReferenceLeg(k, leg.tracker.with_reference(reference))

        return drive_there
    if scenario.guidance is not None and scenario.to_bodies is not None:

        def move_there(k: int, x: np.ndarray) -> ReferenceLeg:
            leg = sequence.leg(k)
            if leg.guidance is None:
                raise ValueError("the present leg has no guidance")
            start, end = (
                # to the present position, where the motion starts, and from there to the end
                _position(scenario, dsys, state)
                for state in (x, leg.tracker.reference.states[-1])
            )
            rest = leg.guidance.to_goal(len(leg.guidance.reference), start)
            motion = rest.to_goal(len(rest.reference), end)
            return ReferenceLeg(k, leg.tracker.with_reference(motion.reference), motion)

        return move_there
    return None


def _position(scenario: Scenario, dsys: DiscreteSystem, x: np.ndarray) -> np.ndarray:
    """Return the position (3) of the first body in space at a state x (nx)."""
    to_bodies = scenario.to_bodies
    if to_bodies is None:
        raise ValueError(f"{scenario.name} has no bodies in space")
    parameters = dsys.system.parameters
    return to_bodies(parameters, dsys.configuration(x), dsys.velocity(x))[0].position
