"""Replays a recording to a hardware tracker, and compares its answers with the recorded
commands.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nh_control.discrete.results import StepFailed
from nh_control.loop.hardware_tracker import Answer, HardwareTracker, StateRefused
from nh_control.runs.measurements import Measurements


@dataclass(frozen=True)
class TrackerReplay:
    """The answers; the `recorded` inputs (n, nu) for the same states, NaN if there are none; the
    reasons why states were refused; and the reason why the replay stopped early, or "".
    """

    answers: list[Answer]
    recorded: np.ndarray
    refused: list[str]
    stopped: str = ""

    @property
    def replayed(self) -> np.ndarray:
        """The inputs (n, nu) that the tracker would send."""
        return np.array([answer.command.u for answer in self.answers])

    @property
    def errors(self) -> np.ndarray:
        """Tracking errors (n, ndx)."""
        return np.array([answer.command.error for answer in self.answers])

    @property
    def difference(self) -> np.ndarray:
        """Difference between replayed and recorded inputs (k, nu), for states with both."""
        both = np.isfinite(self.recorded).all(axis=1)
        return (self.replayed - self.recorded)[both]


def replay(tracker: HardwareTracker, measured: Measurements) -> TrackerReplay:
    """Pass the recorded states to a tracker at the times when they were received. The recorded
    inputs are the inputs that act. The reference starts at the recorded start time. In old
    recordings, which do not contain a start time, the reference starts with the first answered
    state, even if that state was not recorded, or with the first state if none was answered.
    """
    sent = dict(zip(measured.answered_ns.tolist(), measured.u))
    starts = measured.started_ns.tolist() or [min(sent, default=int(measured.times_ns[0]))]
    idle = tracker.sequence.dsys.nu * [np.nan]
    commands = iter(zip(measured.sent_ns.tolist(), measured.u))
    command = next(commands, None)
    answers, recorded, refused, stopped = [], [], [], ""
    rows = zip(measured.times_ns.tolist(), measured.received_ns.tolist())
    for (time_ns, now_ns), q, v in zip(rows, measured.q, measured.v):
        # inputs that were sent before this state arrived
        while command is not None and command[0] < now_ns:
            tracker.add_input(command[1], command[0])
            command = next(commands, None)
        # start, or restart, the reference as the recorded tracker did
        while starts and time_ns >= starts[0]:
            if tracker.start_ns is not None:
                tracker.stop(starts[0])
            tracker.start(starts.pop(0))
        try:
            answers.append(tracker.answer(time_ns, q, v, now_ns))
        except StateRefused as reason:
            refused.append(str(reason))
            continue
        except StepFailed as failure:
            stopped = f"the model cannot follow the states: {failure}"
            break
        recorded.append(sent.get(time_ns, idle))
    table = np.array(recorded, dtype=float).reshape(-1, tracker.sequence.dsys.nu)
    return TrackerReplay(answers, table, refused, stopped)
