"""What an experiment is made of and what its result says, on a pendulum that hangs: references
take no time to find, and every number is known.
"""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from nh_control import Trajectory, scenarios
from nh_control.discrete.plant_steps import advance
from nh_control.discrete.results import Conditioning, StepFailed
from nh_control.loop.fault_effects import FaultEffect
from nh_control.runs import simulation
from nh_control.runs import summary as summary_module
from nh_control.runs.experiment import Experiment, Result
from nh_control.runs.simulation import closed_loop
from nh_control.runs.summary import STOPPED, TURNED, _factor, summarize, table
from nh_control.scenarios import PlantOptions, UnknownName, disturbance, fault

STEPS = 50


def hanging(steps):
    """At rest for some steps."""
    return lambda dsys: Trajectory(
        dsys.h, np.zeros((steps + 1, 2)), np.zeros((steps, 1)), name="hanging"
    )


SWING = replace(
    scenarios.get("pendulum_swing_up"),
    references={"hanging": hanging(STEPS), "nothing": hanging(0)},
)
H = SWING.step_s


def made(reference="", perturbation=None, integral=False, duration_s=0.0, **options):
    return Experiment.make(
        SWING, reference, options=PlantOptions(**options), perturbation=perturbation,
        integral=integral, duration_s=duration_s,
    )  # fmt: skip


def moved(angle=0.2, momentum=0.3):
    return replace(SWING.perturbation, angle=angle, momentum=momentum)


def result(experiment, **how):
    return Result(experiment, experiment.run(), experiment.run(feedback=False), 1.5, **how)


# --- experiments ---------------------------------------------------------------------------------


def test_a_run_has_a_step_at_least():
    for arguments in ({"duration_s": H / 2}, {"reference": "nothing"}):
        with pytest.raises(ValueError, match="the step is longer than the run"):
            made(**arguments)
    assert (made(duration_s=0.51 * H).steps, made().steps) == (1, STEPS)


def test_invalid_options_of_the_plant_are_refused_at_construction():
    with pytest.raises(ValueError, match="parameter m must be 1 numbers as in 1.0, got"):
        made(parameters={"m": (1.0,)})
    with pytest.raises(UnknownName, match="nowhere"):
        made(faults=(fault.parse("nowhere:bias=1"),))
    with pytest.raises(ValueError, match="perturbation must be a"):
        made(perturbation=scenarios.get("snakeboard").perturbation)


def test_a_plant_starts_with_the_configuration_and_velocity_of_the_model():
    e = made(parameters={"m": 2.0})
    e = replace(e, x0=e.model.state([0.2], [0.4]))
    loop = e.run()
    np.testing.assert_allclose(loop.trajectory.states[0], e.x0, atol=1e-14)
    assert loop.energy[0] == pytest.approx(e.plant.energy(e.plant.state([0.2], [0.4])), rel=1e-12)
    assert loop.energy[0] != pytest.approx(e.model.energy(e.x0), rel=1e-3)


def test_a_plant_makes_its_steps_under_commands_and_pushes():
    """The plant makes three steps in one step of the model, under the disturbance of this step."""
    push = disturbance.parse("theta:gust:0.5,start=0.0,duration=0.0")
    e = made(perturbation=moved(), substeps=3, disturbances=(push,))
    loop = e.run()
    u = np.r_[loop.trajectory.inputs[0], 0.5]
    x0 = e.plant.state(e.model.configuration(e.x0), e.model.velocity(e.x0))
    _, x1 = advance(e.plant, x0, u, 3)
    np.testing.assert_allclose(loop.trajectory.states[1], x1, atol=1e-12)
    with pytest.raises(ValueError, match=r"disturbance must have shape \(50, 1\), got \(50, 2\)"):
        closed_loop(e.plant, e.tracker, x0, STEPS, disturbance=np.zeros((STEPS, 2)))
    with pytest.raises(ValueError, match=r"disturbance must have shape \(50, 1\), got \(49, 1\)"):
        closed_loop(e.plant, e.tracker, x0, STEPS, disturbance=np.zeros((STEPS - 1, 1)))


def test_substeps_are_one_unless_it_is_said():
    e = made(perturbation=moved())
    plain = closed_loop(e.plant, e.tracker, e.x0, 5).trajectory.states
    np.testing.assert_allclose(plain, e.run().trajectory.states[:6], atol=1e-12)


def test_a_failed_run_ends_with_its_last_state_and_names_the_step(monkeypatch):
    def run(self, watch):
        for _ in range(4):
            self.k += 1
            self._record.states[self.k] = self._record.plant_states[self.k] = [self.k, 0.0]
        raise StepFailed("arm", 0.1, "no luck", 1.0, 1.0, 25, Conditioning(1.0, 1.0, 1.0))

    monkeypatch.setattr(simulation.ClosedLoopRunner, "run", run)
    loop = made().run()
    assert loop.failure.step == 4 and len(loop.trajectory) == len(loop.saturated) == 4
    assert loop.trajectory.states[:, 0].tolist()[1:] == [1, 2, 3, 4]
    assert len(loop.errors) == len(loop.energy) == 5


def test_faults_do_not_enable_feedback():
    e = made(perturbation=moved(), faults=(fault.parse("noise=0.1"),))
    assert not e.run(feedback=False).trajectory.inputs.any()
    assert e.run().trajectory.inputs.any()
    opened = Result(e, e.run(feedback=False), None, 0.0, feedback=False)
    assert not opened.without_faults.trajectory.inputs.any()
    assert Result(e, e.run(), None, 0.0).without_faults.trajectory.inputs.any()


def test_effects_of_faults_are_on_the_commands_before_them():
    e = made(perturbation=moved(), faults=(fault.parse("commands:bias=0.25"),))
    found = result(e)
    np.testing.assert_allclose(found.loop.trajectory.inputs - found.loop.commands, 0.25)
    lower, upper = e.tracker.limits.T
    at_limits = (found.loop.commands <= lower) | (found.loop.commands >= upper)
    np.testing.assert_array_equal(found.loop.saturated, at_limits)
    assert not at_limits.all()
    (effect,) = found.fault_effects
    assert (effect.changed, effect.largest) == (STEPS, pytest.approx(0.25))


@pytest.mark.parametrize("integral", [True, False])
def test_a_tracker_that_estimates_says_so(integral):
    e = made(integral=integral)
    assert e.integral is integral and summarize(result(e))["integral"] is integral


# --- results -------------------------------------------------------------------------------------


@pytest.mark.parametrize("hold", [True, False])
@pytest.mark.parametrize("steps", [3, 7])
def test_after_a_reference_its_end_is_the_target(hold, steps):
    """The input there holds the target, or is zero."""
    states, inputs = np.arange(6.0)[:, None], 10 + np.arange(5.0)[:, None]
    reference = SimpleNamespace(states=states, inputs=inputs)
    dsys = SimpleNamespace(idle=lambda x: -x)
    tracker = SimpleNamespace(reference=reference, hold=hold, dsys=dsys)
    run = Trajectory(0.1, np.zeros((steps + 1, 1)), np.zeros((steps, 1)))
    found = Result(SimpleNamespace(tracker=tracker), SimpleNamespace(trajectory=run), None, 0.0)
    k = np.arange(steps + 1)
    assert found.targets.ravel().tolist() == np.minimum(k, 5).tolist()
    after = [14.0 if hold else -5.0] * 2
    assert found.feedforward.ravel().tolist() == [10, 11, 12, 13, 14, *after][:steps]


def test_the_monitored_output_is_the_plant_s_in_every_step():
    seen = []

    def values(*told):
        seen.append(told)
        return np.array([1.0, 2.0])

    e = SimpleNamespace(
        model=SimpleNamespace(configuration=lambda x: x[:1], velocity=lambda x: x[1:]),
        scenario=SimpleNamespace(
            monitor=SimpleNamespace(values=values, names=("a", "b")), parameters="the model's"
        ),
        plant_parameters="the plant's",
        external=SimpleNamespace(named=lambda w: {"push": w[0]}),
        disturbance=np.array([[5.0], [6.0]]),
    )
    run = Trajectory(0.1, np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]]), np.array([[7.0], [8.0]]))
    found = Result(e, SimpleNamespace(trajectory=run), None, 0.0).monitored
    assert found.tolist() == [[1, 2], [1, 2]]
    assert [(p, q[0], v[0], u[0], w) for p, q, v, u, w in seen] == [
        ("the plant's", 1.0, 2.0, 7.0, {"push": 5.0}),
        ("the plant's", 3.0, 4.0, 8.0, {"push": 6.0}),
    ]


def test_tracking_errors_belong_to_the_requested_loop():
    tracked = np.array([True, False, True])
    e = SimpleNamespace(
        model=SimpleNamespace(system=SimpleNamespace(space=SimpleNamespace(nv=3))),
        scenario=SimpleNamespace(tracked=lambda space: tracked),
    )
    mine, other = (
        SimpleNamespace(errors=np.array([[3.0, 9.0, 4.0, 9.0]]) * size) for size in (1.0, 2.0)
    )
    found = Result(e, mine, None, 0.0)
    assert found.configuration_error().tolist() == [5.0]
    assert found.configuration_error(other).tolist() == [10.0]


def test_arrays_are_saved_under_their_names(tmp_path):
    found = result(made(perturbation=moved(), duration_s=(STEPS + 5) * H))
    found.save(tmp_path / "run.npz")
    saved, loop, model = np.load(tmp_path / "run.npz"), found.loop, found.experiment.model
    expected = {
        "times": H * np.arange(STEPS + 6),
        "states": loop.trajectory.states,
        "inputs": loop.trajectory.inputs,
        "errors": loop.errors,
        "saturated": loop.saturated,
        "energy": loop.energy,
        "constraint": loop.constraint,
        "reference_states": np.zeros((STEPS + 6, 2)),
        "reference_inputs": np.zeros((STEPS + 5, 1)),
        "reference_energy": model.energies(np.zeros((STEPS + 6, 2))),
        "open_loop_states": found.open_loop.trajectory.states,
        "open_loop_errors": found.open_loop.errors,
    }
    for name, array in expected.items():
        np.testing.assert_allclose(saved[name], array, atol=1e-12, err_msg=name)
    assert saved["inputs"].any() and not np.array_equal(loop.errors, found.open_loop.errors)
    for name, names in (
        ("state_names", model.state_names),
        ("error_names", model.state_space.tangent_names),
        ("input_names", model.inputs),
    ):
        assert saved[name].tolist() == list(names)
    names = {"state_names", "error_names", "input_names", "description"}
    assert set(saved.files) == {*expected, *names}
    assert json.loads(str(saved["description"])) == json.loads(json.dumps(found.description))


def test_states_and_errors_have_distinct_names():
    """They differ on manifolds."""
    model = SimpleNamespace(
        state_names=("w", "x"),
        state_space=SimpleNamespace(tangent_names=("turn",)),
        inputs=("u",),
        energies=lambda states: none,
    )
    run = Trajectory(0.1, np.zeros((2, 2)), np.zeros((1, 1)))
    none = np.zeros(1)
    loop = SimpleNamespace(
        trajectory=run, errors=none, saturated=none, energy=none, constraint=none
    )
    loop.commands, scenario = None, SimpleNamespace(monitor=None)
    found = Result(SimpleNamespace(model=model, scenario=scenario), loop, None, 0.0)
    outputs = SimpleNamespace(arrays={})
    found.__dict__.update(targets=none, feedforward=none, outputs=outputs, contacts=None)
    saved = found.arrays
    assert saved["state_names"].tolist() == ["w", "x"]
    assert saved["error_names"].tolist() == ["turn"] and saved["input_names"].tolist() == ["u"]


# --- summaries -----------------------------------------------------------------------------------


def rows(summary):
    made = table(summary)
    labels, texts = made.columns
    styles = [row.style for row in made.rows]
    return {
        label.strip(): (str(text), style)
        for label, text, style in zip(labels.cells, texts.cells, styles, strict=True)
    }


@pytest.fixture(scope="module")
def run():
    """A run with another plant, a disturbance and a sensor fault."""
    return result(
        made(
            perturbation=moved(), integral=True, parameters={"m": 1.5}, substeps=2,
            disturbances=(disturbance.parse("theta:gust:0.1,start=0.2"),),
            faults=(fault.parse("theta:bias=0.01"),),
        )
    )  # fmt: skip


def test_a_summary_says_what_was_asked_for(run):
    told, e = summarize(run), run.experiment
    assert (told["model"], told["plant"]) == (str(e.model), str(e.plant))
    assert told["plant_parameters"]["m"] == 1.5 and told["plant_substeps"] == 2
    assert (told["perturbation"]["angle"], told["perturbation"]["momentum"]) == (0.2, 0.3)
    assert told["disturbances"] == ["theta:gust:0.1,start=0.2,duration=0.0"]
    assert (told["step_s"], told["wall_s"], told["reference_steps"]) == (e.model.h, 1.5, STEPS)
    assert told["turn_per_step_max_rad"] is None and told["manifold_residual_max"] is None
    assert (told["feedback"], told["stopped"], told["ros"]) == (True, None, None)


def test_errors_are_summed_up(run):
    total, told = run.configuration_error(), summarize(run)["error"]
    clean = run.configuration_error(run.without_faults)
    assert told["largest"] == total.max() > total[-1]
    assert told["rms"] == pytest.approx(np.linalg.norm(total) / len(total) ** 0.5)
    assert told["without_faults"] == {
        "initial": clean[0], "final": clean[-1], "largest": clean.max(),
        "rms": pytest.approx(np.linalg.norm(clean) / len(clean) ** 0.5),
    }  # fmt: skip
    errors = run.loop.errors.copy()
    errors[0] = 0.0
    still = replace(run, loop=replace(run.loop, errors=errors))
    assert summarize(still)["error"]["reduction"] is None  # and not 0 times smaller


def test_inputs_have_their_own_units(run, monkeypatch):
    monkeypatch.setattr(summary_module, "input_units", lambda *_: ("N", "m"))
    inputs = np.tile([1.0, -2.0], (STEPS, 1))
    trajectory = SimpleNamespace(inputs=inputs)
    two = SimpleNamespace(
        experiment=SimpleNamespace(
            tracker=SimpleNamespace(limits=np.array([[-1.0, 1.0], [0.0, np.inf]])),
            scenario=None,
            model=SimpleNamespace(system=None),
        ),
        loop=SimpleNamespace(trajectory=trajectory, saturated=np.tile([True, False], (STEPS, 1))),
    )
    assert [summary_module._input(two, i) for i in (0, 1)] == [
        {"max": 1.0, "limits": [-1.0, 1.0], "unit": "N", "saturated_steps": STEPS},
        {"max": 2.0, "limits": [0.0, None], "unit": "m", "saturated_steps": 0},
    ]


def test_the_table_contains_settings_and_results(run):
    told = summarize(run)
    said = rows(told)
    error, clean, part = told["error"], told["error"]["without_faults"], None
    assert said["control"][0] == "LQR with disturbance estimate"
    assert said["disturbance"][0] == told["disturbances"][0]
    (effect,) = told["faults"]
    assert said["fault"][0] == f"theta:bias=0.01: {FaultEffect(**effect)}"
    factor = _factor(error["reduction"])
    assert said["tracking error"][0] == (
        f"{error['initial']:.3g} -> {error['final']:.3g} rad, {factor}"
    )
    (part,) = error["parts"].values()
    assert said["theta"][0] == (
        f"{part['initial']:.3g} -> {part['final']:.3g} rad, largest {part['largest']:.3g}, rms "
        f"{part['rms']:.3g}"
    )
    assert said["with faults"][0] == (
        f"largest {error['largest']:.3g}, rms {error['rms']:.3g} rad; without them "
        f"{clean['initial']:.3g} -> {clean['final']:.3g} rad, largest {clean['largest']:.3g}, rms "
        f"{clean['rms']:.3g}"
    )
    energy = told["energy_J"]
    assert said["energy"][0] == (
        f"{energy['initial']:.4g} -> {energy['final']:.4g} J (reference ends with "
        f"{energy['reference_final']:.4g} J)"
    )
    assert said["wall time"][0] == "1.50 s" and "rate" not in said
    assert not any(style for _, style in said.values())


def test_what_went_wrong_is_red(run):
    told = {**summarize(run), "stopped": "at once", "turn_per_step_max_rad": 3.3}
    said = rows({**told, "manifold_residual_max": 1e-3, "constraint_residual_max_m": 2e-3})
    assert said[STOPPED] == ("at once", "red") and said[TURNED][1] == "red"
    assert "3.3" in said[TURNED][0]
    assert said["distance from manifold"][0] == "max 1.0e-03"
    assert said["constraint residual"][0] == "max 2.0e-03 m"
    assert TURNED not in rows({**told, "turn_per_step_max_rad": 3.0})


def test_the_table_has_what_the_nodes_say(run):
    ros = {
        "rate_hz": 99.5, "missed_steps": 1, "jitter_mean_us": 10.0, "jitter_p99_us": 20.0,
        "jitter_max_us": 30.0, "commands_accepted": 4, "commands_rejected": 5,
        "fallback_steps": 6, "held_steps": 7, "difference_to_simulation": 1e-9,
    }  # fmt: skip
    said = rows({**summarize(run), "ros": ros})
    assert [said[name][0] for name in ("rate", "jitter", "commands", "against simulation")] == [
        "99.5 steps/s, 1 missed",
        "10 / 20 / 30 us (mean / 99 % / max)",
        "4 accepted, 5 rejected, 7 steps under an earlier state's, 6 with the fallback",
        "largest difference to the run in one process 1.0e-09",
    ]
    assert "jitter" not in rows({**summarize(run), "ros": {**ros, "jitter_max_us": 0.0}})


@pytest.mark.parametrize(
    ("reduction", "said"),
    [
        (2.5, "2.50 times smaller"),
        (0.25, "4.00 times larger"),
        (1.0, "1.00 times smaller"),
        (12345.0, "12,345 times smaller"),
        (2e6, "2.0e+06 times smaller"),
        (9e12, "9.0e+12 times smaller"),
        (1e13, "down to round-off"),
        (1e-14, "up from round-off"),
    ],
)
def test_how_much_smaller_an_error_became(reduction, said):
    assert _factor(reduction) == said
