"""LQR trackers on models of different integrators stabilize the same snakeboard."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from nh_control.control import lqr
from nh_control.discrete.trajectory import Trajectory
from nh_control.runs import tracker_models
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


def test_what_is_told_of_a_tracker_is_that_of_its_closed_loop():
    """A pendulum that is held beside its rest, where all steps are alike."""

    def resting(model):
        return model.simulate(model.state([0.0], [0.0]), np.zeros((30, 1)))

    swing = replace(get("pendulum_swing_up"), references={"rest": resting})
    (found,) = track(swing, ("midpoint",))
    experiment = Experiment.make(swing)
    loop = experiment.run()
    errors = np.abs(loop.errors[:, 0])
    assert (found.start, found.final) == (errors[0], errors[-1])
    assert found.largest == errors.max() and found.saturated == loop.saturated.sum()
    assert found.rms == pytest.approx(np.sqrt(np.mean(errors[len(errors) // 2 :] ** 2)))
    A, B = lqr.linearize_along(experiment.model, experiment.tracker.reference)
    closed = np.eye(2)
    for k in range(len(A) // 3, 2 * len(A) // 3):
        closed = (A[k] - B[k] @ experiment.tracker.gains.K[k]) @ closed
    assert np.sort(np.abs(found.eigenvalues)) == pytest.approx(
        np.sort(np.abs(np.linalg.eigvals(closed)))
    )


def test_the_plant_is_the_one_that_is_asked_for(monkeypatch):
    class Made(Exception):
        pass

    def closed_loop(plant, tracker, x0, steps, substeps):
        raise Made(plant, tracker.dsys, x0, steps, substeps)

    def resting(model):
        return model.simulate(model.state([0.0], [0.0]), np.zeros((30, 1)))

    swing = replace(get("pendulum_swing_up"), references={"other": None, "rest": resting})
    options = PlantOptions("", 3, {"m": 2.0})
    monkeypatch.setattr(tracker_models, "closed_loop", closed_loop)
    with pytest.raises(Made) as made:
        track(swing, ("midpoint",), "rest", options, 0.05)
    plant, model, x0, steps, substeps = made.value.args
    assert (plant.system.parameters.m, model.system.parameters.m) == (2.0, 1.0)
    assert (model.h, plant.h, steps, substeps) == (0.05, 0.05 / 3, 30, 3)
    expected = swing.perturb(model, np.zeros(2), swing.perturbation)
    assert plant.configuration(x0) == pytest.approx(model.configuration(expected))
    assert plant.velocity(x0) == pytest.approx(model.velocity(expected))


def test_what_is_told_is_of_what_has_a_weight_and_of_the_middle_third(monkeypatch):
    """Where steps are not alike, so that their order counts."""
    rng = np.random.default_rng(3)
    A, B, K = rng.normal(size=(9, 3, 3)), rng.normal(size=(9, 3, 2)), rng.normal(size=(9, 2, 3))
    errors = rng.normal(size=(10, 3))
    saturated = np.array([[True, True], [False, True], [False, False]])
    dsys = SimpleNamespace(ndx=3, system=SimpleNamespace(space=SimpleNamespace(nv=2)))
    tracker = SimpleNamespace(dsys=dsys, reference=range(9), gains=SimpleNamespace(K=K))
    scenario = SimpleNamespace(
        model=lambda *_, **__: dsys,
        reference=lambda *_: Trajectory(0.1, np.zeros((10, 3)), np.zeros((9, 2))),
        tracker=lambda *_: tracker,
        perturb=lambda *_: 0.0,
        perturbation=None,
        tracked=lambda space: np.array([False, True]),
        plant=lambda *_: None,
    )
    run = SimpleNamespace(errors=errors, saturated=saturated)
    monkeypatch.setattr(tracker_models, "closed_loop", lambda *_: run)
    monkeypatch.setattr(tracker_models, "convert", lambda *_: None)
    monkeypatch.setattr(tracker_models.lqr, "linearize_along", lambda *_: (A, B))
    (found,) = track(scenario, ("any",))
    size = np.abs(errors[:, 1])
    assert (found.start, found.largest, found.final) == (size[0], size.max(), size[-1])
    assert found.rms == pytest.approx(np.sqrt(np.mean(size[5:] ** 2))) and found.saturated == 2
    closed = [a - b @ k for a, b, k in zip(A, B, K)]
    expected = np.linalg.eigvals(closed[5] @ closed[4] @ closed[3])
    assert np.sort_complex(found.eigenvalues) == pytest.approx(np.sort_complex(expected))


def test_eigenvalues_are_matched_one_to_one_and_what_is_over_is_left_out():
    one, more = (
        TrackerModel("", 0, 0, 0, 0, 0, np.array(values))
        for values in ([0.5, 0.51], [0.9, 0.5, 2])
    )
    assert one.difference(more) == more.difference(one) == pytest.approx(0.39)


def test_a_scenarios_model_may_be_any_registered_integrator_that_takes_it():
    board = get("snakeboard")
    assert "gonzalez" in board.usable_integrators(board.make_system(board.parameters))
    assert board.model("spark_3").method.name != board.model().method.name
    with pytest.raises(ValueError, match="midpoint_order4 cannot take snakeboard.*velocity"):
        board.model("midpoint_order4")
    with pytest.raises(ValueError, match="unknown snakeboard integrator 'euler'.*midpoint"):
        board.model("euler")


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
