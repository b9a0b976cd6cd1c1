"""A recording of hardware given to a tracker again."""

from dataclasses import replace

import numpy as np
import pytest

from nh_control.loop.hardware_estimate import FilteredState
from nh_control.loop.hardware_tracker import HardwareTracker, Timing
from nh_control.loop.reference_sequence import ReferenceSequence
from nh_control.runs.measurements import Measurements
from nh_control.runs.tracker_replay import replay

MS = 10**6


class Told(HardwareTracker):
    """A tracker that keeps what it was `told`, with times in ms."""

    def __init__(self, cart):
        dsys, tracker = cart
        self.told = []
        super().__init__(ReferenceSequence(tracker), FilteredState(dsys, 1e-3, 1.0), Timing())

    def add_input(self, u, now_ns):
        if np.any(u):  # that after a stop is the tracker's own
            self.told.append(("sent", float(u[0]), now_ns // MS))
        super().add_input(u, now_ns)

    def start(self, time_ns):
        self.told.append(("start", time_ns // MS))
        super().start(time_ns)

    def stop(self, now_ns):
        self.told.append(("stop", now_ns // MS))
        super().stop(now_ns)

    def answer(self, time_ns, q, v, now_ns):
        self.told.append(("state", time_ns // MS, float(q[0]), now_ns // MS))
        return super().answer(time_ns, q, v, now_ns)


@pytest.fixture
def tracker(cart):
    return Told(cart)


def recorded():
    """Four states that came 5 ms after their stamps, and answers to the second and third."""
    times = np.array([100, 110, 120, 130]) * MS
    q = 0.01 * np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0]])
    u, sent = np.array([[2.1], [3.2]]), np.array([117, 127]) * MS
    return Measurements(times, times + 5 * MS, q, np.zeros((4, 2)), u, sent, times[1:3].copy())


STATES = [("state", 100 + 10 * k, 0.01 * (k + 1), 105 + 10 * k) for k in range(4)]
STATE_COLUMNS = "times_ns", "received_ns", "q", "v"
SENT = [("sent", 2.1, 117), ("sent", 3.2, 127)]


def test_a_recording_is_given_to_a_tracker_as_it_was_received(tracker):
    states = recorded()
    found = replay(tracker, states)
    assert tracker.told == [
        STATES[0], ("start", 110), STATES[1], SENT[0], STATES[2], SENT[1], STATES[3],
    ]  # fmt: skip
    assert found.replayed.shape == (4, 1) and found.errors.shape == (4, 4)
    np.testing.assert_array_equal(found.replayed, [one.command.u for one in found.answers])
    np.testing.assert_array_equal(found.errors, [one.command.error for one in found.answers])
    np.testing.assert_array_equal(found.recorded, [[np.nan], [2.1], [3.2], [np.nan]])
    np.testing.assert_array_equal(found.difference, found.replayed[1:3] - states.u)
    assert found.stopped == "" and found.refused == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        # a recorder that missed the first answered states does not move the reference
        (
            lambda m: {name: getattr(m, name)[2:] for name in STATE_COLUMNS},
            [SENT[0], ("start", 110), STATES[2], SENT[1], STATES[3]],
        ),
        # the tracker said when references started
        (
            lambda m: {"started_ns": np.array([90, 125]) * MS},
            [("start", 90), *STATES[:2], SENT[0], STATES[2], SENT[1], ("stop", 125),
             ("start", 125), STATES[3]],
        ),
        # what was sent as a state came acts after it
        (
            lambda m: {"sent_ns": m.received_ns[1:3]},
            [STATES[0], ("start", 110), STATES[1], ("sent", 2.1, 115), STATES[2],
             ("sent", 3.2, 125), STATES[3]],
        ),
        # without commands the reference starts with the first state
        (
            lambda m: {"u": m.u[:0], "sent_ns": m.sent_ns[:0], "answered_ns": m.sent_ns[:0]},
            [("start", 100), *STATES],
        ),
    ],
    ids=["missed states", "known starts", "sent at once", "no commands"],
)  # fmt: skip
def test_references_start_and_inputs_act_as_they_did(tracker, change, told):
    found = replay(tracker, replace(recorded(), **change(recorded())))
    assert tracker.told == told
    assert found.difference.shape == (np.isfinite(found.recorded).sum(), 1)


def test_what_a_tracker_refuses_is_left_out_and_a_failure_ends_it(tracker):
    states = recorded()
    states.times_ns[1] = states.times_ns[0]
    states.answered_ns[0] = states.times_ns[2]
    states.u[1] = 1e200  # under which the model fails
    found = replay(tracker, states)
    assert found.refused == ["stamped 0 s before the last state"]
    assert found.stopped.startswith("the model cannot follow the states: cart_pole")
    np.testing.assert_array_equal(found.recorded, [[np.nan], [1e200]])
    assert len(found.replayed) == 2
