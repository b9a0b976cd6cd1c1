"""Requests for motions, which a replanner plans while the tracker answers states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from rclpy.node import Node

from nh_control.loop.reference_sequence import ReferenceLeg, ReferenceSequence
from nh_control.loop.replanner import LEAD_S, Replanner
from nh_control.loop.reports import Refusal
from nh_control.loop.tracker_report import TrackerReport
from nh_control.ros.runtime.callback_errors import ThrottledLog
from nh_control.ros.runtime.inbox import Inbox


class GoalObserver(Protocol):
    """Callbacks for a goal's client."""

    def accepted(self, leg: ReferenceLeg) -> None:
        """Called when the tracker follows the goal with this leg."""

    def ended(self, refusal: Refusal | None, reason: str) -> None:
        """Called when the tracker does not follow the goal, or stops following it."""


@dataclass(frozen=True)
class RequestContext:
    """The objects that motion requests use: the node and its inbox, the tracker's sequence and
    report, and `now()`, the current time of the states in ns.
    """

    node: Node
    inbox: Inbox
    sequence: ReferenceSequence
    report: TrackerReport
    now: Callable[[], int]


class MotionRequests:
    """Plans legs of a sequence for requests. A new request, or a restart of the run, replaces the
    current request and calls its observer. The first plan begins `lead_s` in the future. The lead
    time of a later plan is the time that the previous plan took.
    """

    def __init__(self, context: RequestContext, lead_s: float = LEAD_S):
        self.sequence, self.report, self._now = context.sequence, context.report, context.now
        self._log = context.node.get_logger()
        self._warn = ThrottledLog(lambda text: self._log.warning(text))
        post, accepted, refused = context.inbox.post, self._accepted, self.on_refused
        self._replanner = Replanner(context.sequence, post, accepted, refused, lead_s)
        # a request is first planned, and then followed
        self._planned: GoalObserver | None = None
        self._followed: GoalObserver | None = None

    def forget(self, why: str) -> None:
        """Drop the planned and the followed request, because a new reference begins."""
        self._replanner.forget()
        for observer in (self._planned, self._followed):
            if observer is not None:
                observer.ended(None, why)
        self._planned = self._followed = None

    def renew(self) -> None:
        """Renew a plan that ends before its request. Called after every answer."""

    def close(self) -> None:
        """Stop planning."""
        self._replanner.close()

    def refuse(self, what: str, reason: str, kind: Refusal, observer: GoalObserver | None) -> None:
        """Count a refused request, report it to its observer, and log it at a limited rate."""
        if observer is not None:
            observer.ended(kind, reason)
        self.report.refuse_goal(kind, f"{what} refused: {reason}")
        self._warn(f"{what} refused: {reason}")

    def plan(
        self, what: str, leg: Callable[[int], ReferenceLeg], observer: GoalObserver | None
    ) -> None:
        """Plan `leg(k)`, which starts at step k of the sequence. `what` names the plan in
        texts.
        """
        if self._planned is not None:
            self._planned.ended(None, f"replaced by {what} while it was planned")
        self._planned = observer
        self._replanner.request(what, leg)

    def on_accepted(self, what: str, leg: ReferenceLeg) -> None:
        """Count and log the leg that the tracker will follow."""
        self.report.accept_goal()
        h = self.sequence.dsys.h
        self._log.info(
            f"{what} accepted: starts at t = {leg.start * h:.3f} s, at rest at "
            f"t = {leg.end * h:.3f} s"
        )

    def on_refused(self, what: str, reason: str) -> None:
        """Refuse a request that could not be planned."""
        observer, self._planned = self._planned, None
        self.refuse(what, reason, Refusal.MODEL, observer)

    def _accepted(self, what: str, leg: ReferenceLeg) -> None:
        # the new leg replaces the leg that was followed
        before, self._followed, self._planned = self._followed, self._planned, None
        if before is not None:
            before.ended(None, f"replaced by {what}")
        if self._followed is not None:
            self._followed.accepted(leg)
        self.on_accepted(what, leg)
