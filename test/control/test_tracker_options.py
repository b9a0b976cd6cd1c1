"""What a tracker is told is kept, by what is made of it, too; bounds of what it may be told; how
long it may run.
"""

import numpy as np
import pytest

import nh_control as nh
from nh_control.control import LqrTracker
from nh_control.control.tracking import input_limits, rests_at_end, run_steps
from nh_control.discrete.trajectory import Trajectory
from nh_control.systems import pendulum

H = 0.05
Q, R = np.diag([3.0, 2.0]), np.array([[0.1]])


@pytest.fixture
def model():
    return nh.midpoint(pendulum(), H)


def rest(steps=6, angle=0.0, name="rest"):
    return Trajectory(H, np.tile([angle, 0.0], (steps + 1, 1)), np.zeros((steps, 1)), name=name)


def carts():
    """Two carts; the second one is nobody's business."""
    return nh.System(
        name="carts",
        space=nh.Rn("first", "second"),
        lagrangian=lambda q, v: (v[0] ** 2 + v[1] ** 2) / 2,
        inputs=("push", "pull"),
        force=lambda q, v, u: u,
        input_limits=[[-3.0, 4.0], [-5.0, 6.0]],
    )


@pytest.mark.parametrize("gain", [pytest.param(0.0, marks=pytest.mark.slow), 0.4])
def test_trackers_made_from_another_keep_its_options(gain):
    """Limits, the disturbance gain, what is held and without what, along another reference and
    with other weights.
    """
    model = nh.midpoint(carts(), H)
    still = Trajectory(H, np.zeros((5, 4)), np.zeros((4, 2)))
    moved = Trajectory(H, np.tile([1.0, 0.0, 0.0, 0.0], (5, 1)), np.zeros((4, 2)))
    options = dict(
        limits=[[-0.5, 0.25], [-1.0, 1.0]],
        disturbance_gain=gain,
        hold=True,
        excluded=("second", "p_second"),
    )
    weights = np.diag([3.0, 0.0, 2.0, 0.0]), np.eye(2)
    tracker = LqrTracker(model, still, *weights, **options)
    other = np.diag([5.0, 0.0, 2.0, 0.0]), np.diag([1.0, 7.0])
    for made, reference, (Q, R) in (
        (tracker.with_reference(moved), moved, weights),
        (tracker.with_weights({0: 5.0}, {1: 7.0}), still, other),
        (tracker.with_reference(moved).with_weights({0: 5.0}, {1: 7.0}), moved, other),
    ):
        expected = LqrTracker(model, reference, Q, R, **options)
        assert (made.hold, made.disturbance_gain) == (True, gain)
        np.testing.assert_array_equal(made.limits, options["limits"])
        np.testing.assert_array_equal(made.reference.states, reference.states)
        x, memory, wanted = np.array([0.7, -0.3, 0.2, 0.1]), None, None
        for k in (0, 1, 9):
            one, two = made.command(k, x, memory), expected.command(k, x, wanted)
            np.testing.assert_allclose(one.u, two.u, rtol=1e-9)
            assert one.saturated.tolist() == two.saturated.tolist()
            memory, wanted, x = one.memory, two.memory, x + 0.01
        assert (memory is None) == (gain == 0.0)
        assert not made.gains.K[:, 1].any() and made.gains.K[:, 0].any()
    finite = LqrTracker(model, still, *weights, Qf=np.diag([9.0, 0.0, 1.0, 0.0]))
    expected = LqrTracker(model, moved, *weights, Qf=np.diag([9.0, 0.0, 1.0, 0.0]))
    np.testing.assert_allclose(finite.with_reference(moved).gains.K, expected.gains.K)


def test_a_weight_of_nothing_gets_the_new_one_beside_what_couples_it(model):
    """Also the last weight, that of the end, which is larger already."""
    end = np.array([[4.0, 0.0], [0.0, 6.0]])
    tracker = LqrTracker(model, rest(), np.diag([0.0, 2.0]), R, end)
    expected = LqrTracker(model, rest(), np.diag([5.0, 2.0]), R, np.diag([9.0, 6.0]))
    np.testing.assert_allclose(tracker.with_weights({0: 5.0}, {}).gains.P, expected.gains.P)


def test_limits_are_the_system_s_unless_they_are_given():
    model = nh.midpoint(carts(), H)
    assert input_limits(model).tolist() == [[-3.0, 4.0], [-5.0, 6.0]]
    still = Trajectory(H, np.zeros((5, 4)), np.zeros((4, 2)))
    tracker = LqrTracker(model, still, 100 * np.eye(4), np.eye(2))
    command = tracker.command(0, [-9.0, 9.0, 0.0, 0.0])
    assert command.u.tolist() == [4.0, -5.0] and command.saturated.all()
    assert input_limits(model, [(-1, 1), (0, 0)]).tolist() == [[-1.0, 1.0], [0.0, 0.0]]
    for wrong, words in (
        *((np.zeros(shape), r"shape \(2, 2\), got") for shape in (2, (2, 3), (1, 2))),
        ([[1, -1], [0, 1]], r"rows \(lower, upper\), lower <= upper, got"),
        ([[np.nan, 1], [0, 1]], r"rows \(lower, upper\), lower <= upper, got"),
    ):
        with pytest.raises(ValueError, match=words):
            input_limits(model, wrong)


@pytest.mark.parametrize(
    ("weights", "options", "words"),
    [
        *(
            ((Q, R), {"disturbance_gain": gain}, r"disturbance_gain must lie in \[0, 1\], got")
            for gain in (-0.01, 1.01, np.nan)
        ),
        ((Q, R, Q), {"hold": True}, "hold.*give no Qf"),
        ((Q, 0 * R), {}, "R must be positive definite"),
        ((Q, 0 * R), {"disturbance_gain": 0.2}, "R must be positive definite"),
    ],
)
def test_what_a_tracker_may_not_be_told(model, weights, options, words):
    for gain in (0.0, 1.0):
        LqrTracker(model, rest(), Q, R, disturbance_gain=gain)
    with pytest.raises(ValueError, match=words):
        LqrTracker(model, rest(), *weights, **options)


def test_a_system_without_inputs_is_commanded_nothing():
    free = nh.midpoint(nh.System("free", nh.Rn("x"), lambda q, v: v[0] ** 2 / 2), H)
    tracker = LqrTracker(free, free.simulate([0.0, 0.0], (), steps=3), np.eye(2), np.eye(0))
    command = tracker.command(1, [0.3, 0.0])
    assert command.u.shape == (0,) and command.error.tolist() == [0.3, 0.0]
    with pytest.raises(ValueError, match="nothing can compensate a disturbance"):
        LqrTracker(free, tracker.reference, np.eye(2), np.eye(0), disturbance_gain=0.2)


def test_a_run_has_whole_steps_at_least_one_and_none_beyond_an_end_in_motion(model):
    moving = model.simulate([0.0, 1.0], np.zeros((6, 1)))
    assert rests_at_end(model, rest()) and not rests_at_end(model, moving)
    slow = Trajectory(H, np.tile([1e-5, 0.0], (3, 1)), np.zeros((2, 1)))
    assert not rests_at_end(model, slow)  # it moves by some 2e-5 a step
    for reference, hold in ((rest(), False), (rest(), True), (moving, True)):
        assert run_steps(model, reference, hold=hold) == 6
        found = [run_steps(model, reference, t, hold) for t in (0.01, 0.14, 0.16, 0.3, 1.0)]
        assert found == [1, 3, 3, 6, 20]
    assert [run_steps(model, moving, t) for t in (0.0, 0.01, 0.3, 0.32)] == [6, 1, 6, 6]
    with pytest.raises(ValueError, match=r" 0\.3 s.* not 0\.35 s"):
        run_steps(model, moving, 0.35)
