"""What differs between the runs of a rollout: forces given and drawn, together and alone, numbers
of runs, parameters; and where the nodes that are kept stand in time.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from nh_control.control.rollout import Rollouts, _require_nothing_for_loops, _rows
from nh_control.control.run_data import ExternalForces, RunSystems, number_of_runs
from nh_control.discrete.trajectory import Trajectory


class Named(SimpleNamespace):
    def __str__(self):
        return self.name


PLANT, MODEL = Named(name="plant", nu=5), Named(name="model", nu=3)
GIVEN = np.arange(8.0).reshape(4, 2)


def drawn(run, seed, deviations, steps=4):
    rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(run + 1)[run])
    return np.array(deviations) * rng.standard_normal((steps, len(deviations)))


def test_forces_are_what_is_given_and_noise_by_the_seed_and_the_run():
    none = ExternalForces.of(PLANT, MODEL, 4, None, None, 0)
    assert none.runs is None and none.steps == 4
    np.testing.assert_array_equal(none(7), np.zeros((4, 2)))
    all_ = ExternalForces.of(PLANT, MODEL, 4, GIVEN, None, 0)
    assert all_.runs is None
    np.testing.assert_array_equal(all_(3), GIVEN)
    each = ExternalForces.of(PLANT, MODEL, 4, np.stack([GIVEN, 10 * GIVEN, -GIVEN]), None, 0)
    assert (each.runs, each.steps) == (3, 4)
    np.testing.assert_array_equal(each(1), 10 * GIVEN)
    deviations = [0.5, 2.0]
    for seed in (0, 3):
        both = ExternalForces.of(PLANT, MODEL, 4, np.stack([GIVEN, -GIVEN]), deviations, seed)
        for run, given in enumerate((GIVEN, -GIVEN)):
            np.testing.assert_allclose(both(run), given + drawn(run, seed, deviations))
        alone = ExternalForces.of(PLANT, MODEL, 4, None, deviations, seed)
        np.testing.assert_allclose(alone(5), drawn(5, seed, deviations))
    one = ExternalForces.of(PLANT, MODEL, 4, GIVEN, [0.0, 2.0], 1)(0)
    assert (one[:, 0] == GIVEN[:, 0]).all() and (one[:, 1] != GIVEN[:, 1]).all()


@pytest.mark.parametrize("shape", [(4, 3), (3, 2), (2,), (1, 1, 4, 2), (2, 3, 2)])
def test_disturbances_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match=r"disturbances must have shape \(runs, 4, 2\) or \(4, 2"):
        ExternalForces.of(PLANT, MODEL, 4, np.zeros(shape), None, 0)


@pytest.mark.parametrize("noise", [[0.1], [0.1, -1e-9], [0.1, np.nan], 0.1, [[0.1, 0.1]]])
def test_noise_must_be_standard_deviations(noise):
    with pytest.raises(ValueError, match="noise must be 2 standard deviations"):
        ExternalForces.of(PLANT, MODEL, 4, None, noise, 0)


def test_a_plant_may_have_as_many_inputs_as_the_model_and_no_fewer():
    assert ExternalForces.of(MODEL, MODEL, 4, None, None, 0)(0).shape == (4, 0)
    with pytest.raises(ValueError, match="model has fewer inputs than .* plant"):
        ExternalForces.of(MODEL, PLANT, 4, None, None, 0)


def test_all_arguments_agree_on_the_number_of_runs():
    assert number_of_runs(PLANT, {"x0s": None, "inputs": None}) == 1
    assert number_of_runs(PLANT, {"x0s": None, "inputs": 7, "parameters": 7}) == 7
    with pytest.raises(ValueError, match="must agree, got 7 of inputs, 1 of parameters$"):
        number_of_runs(PLANT, {"x0s": None, "inputs": 7, "parameters": 1})


def test_without_parameters_of_its_own_a_run_has_the_system_that_is_given():
    systems = RunSystems.of(PLANT, None)
    assert systems.runs is None and systems(4) is PLANT
    system = SimpleNamespace(parameter_names=("m", "l[0]", "l[1]"), parameter_values=np.ones(3))
    plant = Named(name="plant", system=system)
    assert RunSystems.of(plant, np.ones((6, 3))).runs == 6
    for wrong in (np.ones((6, 2)), np.ones(3), np.ones((1, 6, 3))):
        with pytest.raises(ValueError, match=r"parameters must have shape \(runs, 3\)"):
            RunSystems.of(plant, wrong)
    for wrong in ({"l": np.ones(6)}, {"l": np.ones((6, 3))}, {"m": 1.0}, {"m": np.ones((6, 2))}):
        with pytest.raises(ValueError, match=r"must have shape \(runs"):
            RunSystems.of(plant, wrong)
    column = RunSystems.of(plant, {"m": [[2.0], [3.0]]}).values
    assert column.tolist() == [[2.0, 1.0, 1.0], [3.0, 1.0, 1.0]]


@pytest.mark.parametrize(
    "given", [(np.zeros((4, 2)), None, 1), (None, [0.1, 0.1], 1), (None, None, 2)]
)
def test_arguments_of_closed_loops_are_refused_in_open_loop(given):
    _require_nothing_for_loops(PLANT, None, None, 1)
    with pytest.raises(ValueError, match="are for runs under a controller"):
        _require_nothing_for_loops(PLANT, *given)


def test_inputs_of_every_run_have_their_shape_and_are_finite():
    rows = np.ones((2, 4, 5))
    np.testing.assert_array_equal(_rows(PLANT, rows, None, 3), rows)
    assert _rows(PLANT, rows, None, 1) is not rows
    for wrong, steps, every in (
        (np.ones((2, 4, 4)), None, 1),
        (np.ones((1, 2, 4, 5)), None, 1),
        (rows, 4, 1),
        (rows, None, 0),
    ):
        with pytest.raises(ValueError, match=r"inputs of every run must have shape \(runs, rows"):
            _rows(PLANT, wrong, steps, every)
    rows[1, 3, 4] = np.nan
    with pytest.raises(ValueError, match="inputs must be finite"):
        _rows(PLANT, rows, None, 1)


def test_recorded_nodes_have_times_and_failed_runs_their_end():
    """Seven of ten steps, of which every third node is kept: two whole rows."""
    dsys = Named(name="carts", nx=2, nu=1, h=0.1, state_names=("a", "b"), inputs=("push",))
    runs = Rollouts.empty(dsys, (3, 4), 3, 2)
    assert len(runs) == 3 and np.isnan(runs.states).all() and not runs.saturated.any()
    np.testing.assert_allclose(runs.times, [0.0, 0.3, 0.6, 0.9, 1.2])
    for values in (runs.states, runs.inputs):
        values[:] = 1.0
    runs.saturated[:] = True
    runs.ended(0, 12, None)
    runs.ended(2, 7, ValueError("why"))
    assert runs.succeeded.tolist() == [True, True, False] and runs.steps.tolist() == [12, 0, 7]
    assert str(runs.failures[2]) == "why"
    assert repr(runs) == "Rollouts(carts, 3 runs of 12 steps, 1 failed)"
    finite = np.isfinite(runs.states[..., 0]).sum(axis=1)
    assert finite.tolist() == [5, 5, 3] and runs.saturated[2, :, 0].tolist() == [1, 1, 0, 0]
    assert np.isfinite(runs.inputs[2, :, 0]).tolist() == [True, True, False, False]
    part = runs.trajectory(2)
    assert isinstance(part, Trajectory) and (part.name, len(part), part.states.shape) == (
        "run 2",
        2,
        (3, 2),
    )
    assert part.h == pytest.approx(0.3) and part.input_names == ("push",)
