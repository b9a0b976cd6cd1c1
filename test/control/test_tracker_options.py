"""What a tracker is told is kept, by what is made of it, too; bounds of what it may be told; how
long it may run.
"""

from dataclasses import replace

import numpy as np
import pytest

import nh_control as nh
from nh_control.control import LqrTracker, lqr
from nh_control.control.reference_tracker import input_limits
from nh_control.control.run_length import rests_at_end, run_steps
from nh_control.discrete.trajectory import Trajectory
from nh_control.runs.experiment import Experiment
from nh_control.runs.tracker_models import TrackerModel, track
from nh_control.scenarios import PlantOptions, get
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
    """Also along another reference and with other weights."""
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
        ([[1, -1], [0, 1]], r"rows \(lower, upper\) with lower <= upper, got"),
        ([[np.nan, 1], [0, 1]], r"rows \(lower, upper\) with lower <= upper, got"),
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
        ((Q, R, Q), {"hold": True}, "hold.*omit Qf"),
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
    with pytest.raises(ValueError, match="cannot compensate a disturbance"):
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


# --- LQR trackers on models of different integrators stabilize the same snakeboard ---


MODELS = ("rdp_exp", "gni_implicit", "spark_2", "gonzalez")


@pytest.mark.slow
def test_trackers_on_every_kind_of_model_stabilize_one_plant():
    options = PlantOptions(integrator="midpoint", substeps=4)
    found = track(get("snakeboard"), ("midpoint", *MODELS), options=options, step_s=0.02)
    for one in found:
        assert one.start == pytest.approx(0.1) and one.final < 1e-3 and one.largest < 0.2
        assert np.abs(one.eigenvalues).max() < 0.95
        assert one.difference(found[0]) < 5e-4
    gni = next(one for one in found if one.integrator == "gni_implicit")
    assert len(gni.eigenvalues) == len(found[0].eigenvalues) + 2
    alone = [one for one in found if one.integrator != "gni_implicit"]
    assert max(np.abs(one.eigenvalues).max() for one in alone) < 0.4


@pytest.mark.parametrize(
    ("name", "reference", "options"),
    [
        ("pendulum_swing_up", "falling", PlantOptions("", 3, {"m": 2.0})),
        ("differential_drive", "slalom", PlantOptions()),
    ],
)
def test_what_is_told_of_a_tracker_is_that_of_its_closed_loop(name, reference, options):
    """Of weighted coordinates, over the middle third of the reference."""

    def falling(model):
        return model.simulate(model.state([2.5], [3.0]), np.zeros((31, 1)))

    scenario = get(name)
    if reference == "falling":
        scenario = replace(scenario, references={"other": None, "falling": falling}, hold=False)
    (found,) = track(scenario, ("midpoint",), reference, options, 0.05)
    experiment = Experiment.make(scenario, reference, "midpoint", 0.05, options)
    loop, tracker = experiment.run(), experiment.tracker
    tracked = scenario.tracked(experiment.model.system.space)
    errors = np.abs(loop.errors[:, : len(tracked)][:, tracked]).max(axis=1)
    assert (found.start, found.final) == pytest.approx((errors[0], errors[-1]))
    assert found.largest == pytest.approx(errors.max())
    assert found.saturated == loop.saturated.any(axis=1).sum()
    assert found.rms == pytest.approx(np.sqrt(np.mean(errors[len(errors) // 2 :] ** 2)))
    A, B = lqr.linearize_along(experiment.model, tracker.reference)
    closed = np.eye(experiment.model.ndx)
    for k in range(len(A) // 3, 2 * len(A) // 3):
        closed = (A[k] - B[k] @ tracker.gains.K[k]) @ closed
    wanted = np.sort_complex(np.linalg.eigvals(closed))
    np.testing.assert_allclose(np.sort_complex(found.eigenvalues), wanted, rtol=1e-6, atol=1e-9)


def test_eigenvalues_are_matched_one_to_one_and_what_is_over_is_left_out():
    one, more = (
        TrackerModel("", 0, 0, 0, 0, 0, np.array(values))
        for values in ([0.5, 0.51], [0.9, 0.5, 2])
    )
    assert one.difference(more) == more.difference(one) == pytest.approx(0.39)


def test_models_of_other_integrators_have_a_plant_and_a_tracker_of_their_own():
    """The tracker of a model with more memory has weights for (q, rho) alone."""
    board = get("snakeboard")
    model = board.model("gni_implicit", 0.05)
    assert board.plant(model).method.name == model.method.name
    tracker = board.tracker(model, board.reference(model, "forward"))
    assert tracker.gains.K.shape[1:] == (2, model.ndx) and model.ndx == 10


@pytest.mark.slow
@pytest.mark.parametrize("name", ["satellite", "quadrotor_payload"])
def test_trackers_on_models_on_lie_groups_steer_one_plant_alike(name):
    """The payload's path is harder: there the error is the model's, O(h^2) or O(h^4)."""
    options = PlantOptions(integrator="midpoint", substeps=4)
    step_s = {"satellite": 0.1, "quadrotor_payload": 0.04}[name]
    variational, slgi, rkmk = track(
        get(name), ("midpoint", "slgi_half", "rkmk4"), options=options, step_s=step_s
    )
    for one in (variational, slgi, rkmk):
        assert one.final < 3e-3 * one.start and one.largest < 1.01 * one.start
        assert one.difference(variational) < 2e-2
    if name == "quadrotor_payload":
        assert rkmk.rms < 0.1 * min(variational.rms, slgi.rms) and slgi.rms < 2e-4
    else:
        assert slgi.rms == pytest.approx(variational.rms, rel=0.02)
        assert rkmk.rms == pytest.approx(slgi.rms, rel=1e-3)
