"""What a robot's recording says, message by message: which parts make a state, when, and which
inputs acted.
"""

import numpy as np
import pytest

pytest.importorskip("rosbags", reason="needs rosbags: install the extra 'ros'")
import recorded_messages
from recorded_messages import joint_state, stamp, write
from transforms3d.quaternions import axangle2quat

from nh_control import scenarios
from nh_control.control.motion_table import MeasuredMotion
from nh_control.runs import measurements
from nh_control.runs.decoding import RecordingError

BOARD = scenarios.get("snakeboard")
MODEL = BOARD.model()
NAMES = ["front_truck_joint", "rear_truck_joint", "rotor_joint"]
MS = 10**6


def joints(ms, position=0.0, velocity=(3.0, 2.0, 1.0), names=NAMES):
    return joint_state(ms * MS, names, [position] * len(names), velocity)


def odometry(ms, x=0.0, wxyz=(1.0, 0.0, 0.0, 0.0), known=True):
    twist = (6.0, 7.0, 0.0), (0.0, 0.0, 8.0)
    return recorded_messages.odometry(ms * MS, (x, 5.0, 0.0), wxyz, *twist, known)


def command(ms, efforts=(1.0, 2.0), names=None):
    names = reversed(MODEL.inputs) if names is None else names
    return joint_state(ms * MS, names, effort=efforts)


@pytest.fixture
def read(tmp_path):
    """Return f([(topic, message, received in ms)]) -> Measurements."""
    folders = (tmp_path / f"{k}" for k in range(9))

    def read(recorded):
        folder = next(folders)
        write(folder, [(f"/robot/{topic}", one, ms * MS) for topic, one, ms in recorded])
        return measurements.read(folder, BOARD, MODEL)

    return read


def states(steps, beside=2.0, began=0.0, lost=()):
    """Joints every 10 ms, and the body `beside` ms later (or earlier); all arrive 4 ms later."""
    found = []
    for k in steps:
        at = began + 10.0 * k
        body = odometry(at + beside, float(k), axangle2quat([0, 0, 1], 1.5 * k))
        moving = joints(at, 0.1 * k, velocity=(3.0, 2.0, 1.0 + k))
        both = [("joint_states", moving, at + 4), ("odom", body, at + beside + 4)]
        found += [one for one in sorted(both, key=lambda one: one[2]) if (one[0], k) not in lost]
    return found


def test_a_state_has_the_time_of_its_newest_message(read):
    told = states(range(4), began=1000.0)
    told[3:3] = [("joint_commands", command(1002.0), 1009.0), ("tf", stamp(0), 1009.5)]
    told.append(("joint_commands", command(1022.0, (3.0, 4.0)), 1029.0))
    told.append(("joint_commands", command(1030.0, (9.0,), names=[MODEL.inputs[0]]), 1031.0))
    found = read(sorted(told, key=lambda one: one[2]))
    assert (found.times_ns / MS).tolist() == [1002, 1012, 1022, 1032] and len(found) == 4
    assert (found.received_ns / MS).tolist() == [1006, 1016, 1026, 1036]
    np.testing.assert_allclose(found.times_s, [0, 0.01, 0.02, 0.03], atol=1e-12)
    np.testing.assert_allclose(found.q[:, 2], 1.5 * np.arange(4), atol=1e-12)
    np.testing.assert_allclose(found.q[:, 0], 0.1 * np.arange(4), atol=1e-15)
    assert found.q[:, 3].tolist() == [0, 1, 2, 3] and found.v[:, 0].tolist() == [1, 2, 3, 4]
    assert found.v[0].tolist() == [1.0, found.v[0, 1], 8.0, 6.0, 7.0] and found.moving.all()
    assert found.u.tolist() == [[2.0, 1.0], [4.0, 3.0]]
    assert (found.sent_ns / MS).tolist() == [1009, 1029]
    assert (found.answered_ns / MS).tolist() == [1002, 1022]


def test_after_a_loss_messages_of_different_states_are_not_combined(read):
    found = read(states(range(6), beside=-2.0, began=1000.0, lost={("odom", 3)}))
    assert (found.times_ns / MS).tolist() == [1000, 1010, 1020, 1040, 1050]
    np.testing.assert_array_equal(found.q[:, 3], [0, 1, 2, 4, 5])


def test_stamps_that_jump_back_begin_anew(read):
    before = [*states(range(5), began=9000.0), ("joint_commands", command(9000.0), 9050.0)]
    found = read([*before, *states(range(3), began=1000.0)])
    assert (found.times_ns / MS).tolist() == [1002, 1012, 1022] and len(found.u) == 0
    assert found.u.shape == (0, 2)
    np.testing.assert_allclose(found.q[:, 2], [0.0, 1.5, 3.0], atol=1e-12)  # not near the last one


def start(s):
    return ("reference_start", stamp(s * 10**9 + 500), 1000.0 * s)


def test_reference_starts_of_earlier_runs_are_ignored(read):
    assert read(states(range(3))).started_ns.tolist() == []
    found = read([start(9), start(1), *states(range(3), began=1000.0), start(2)])
    assert found.started_ns.tolist() == [10**9 + 500, 2 * 10**9 + 500]
    again = [start(9), *states(range(3), began=9000.0), *states(range(3), began=1000.0), start(1)]
    assert read(again).started_ns.tolist() == [10**9 + 500]


def test_a_state_moves_where_all_its_parts_do(read):
    told = states(range(4))
    told[2] = ("joint_states", joints(10.0, velocity=[]), 14.0)
    told[5] = ("odom", odometry(22.0, 2.0, known=False), 26.0)
    assert read(told).moving.tolist() == [True, False, False, True]


def test_one_state_is_no_recording_of_a_robot(read):
    with pytest.raises(RecordingError, match="0: 1 states of snakeboard, on the topics joint_s"):
        read(states(range(1)))
    assert len(read(states(range(2)))) == 2


@pytest.mark.parametrize(
    ("actuation_s", "expected"),
    [
        (0.0, [[(0.0, 15), (1.0, 5)], [(1.0, 15), (2.0, 5)]]),
        (0.01, [[(0.0, 20)], [(0.0, 5), (1.0, 15)]]),
    ],
)
def test_inputs_act_from_when_they_were_sent_or_later(actuation_s, expected):
    times, sent = np.arange(3) * 20 * MS, np.array([15, 35]) * MS
    rows = np.zeros((3, 1))
    u = np.array([[1.0], [2.0]])
    found = MeasuredMotion(times, ("x",), rows, sent, u).acting_inputs(np.zeros(1), actuation_s)
    told = [[(u[0], round(1e3 * seconds, 6)) for u, seconds in piece] for piece in found]
    assert told == expected
