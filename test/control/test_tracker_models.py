"""LQR trackers on models of different integrators stabilize the same snakeboard."""

from dataclasses import replace

import numpy as np
import pytest

from nh_control.control import lqr
from nh_control.runs.experiment import Experiment
from nh_control.runs.tracker_models import TrackerModel, track
from nh_control.scenarios import PlantOptions, get

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
    """Errors of the coordinates that have a weight, and the motion over the middle third of the
    reference, whose steps are not alike.
    """

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
