"""What an experiment is made of and what its result says, on a pendulum that hangs: references
take no time to find, and every number is known.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

from nh_control import Trajectory, scenarios
from nh_control.discrete.plant_steps import advance
from nh_control.runs.experiment import Experiment, Result
from nh_control.runs.simulation import closed_loop
from nh_control.runs.summary import summarize, table
from nh_control.scenarios import MonitoredOutput, PlantOptions, UnknownName, disturbance, fault

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


# --- results -------------------------------------------------------------------------------------


@pytest.mark.parametrize("hold", [True, False])
@pytest.mark.parametrize("steps", [3, 7])
def test_after_a_reference_its_end_is_the_target(hold, steps):
    """The input there holds the target, or is zero."""

    torque = SWING.parameters.m * SWING.parameters.g * SWING.parameters.l * np.sin(0.5)

    def leaning(dsys):
        return dsys.simulate(dsys.state([0.5], [0.0]), np.full((5, 1), torque))

    scenario = replace(SWING, references={"leaning": leaning}, hold=hold)
    found = result(replace(Experiment.make(scenario), steps=steps))
    np.testing.assert_allclose(found.targets, [[0.5, 0.0]] * (steps + 1), atol=1e-12)
    inputs = [torque] * 5 + [torque if hold else 0.0] * 2
    assert found.feedforward.ravel().tolist() == inputs[:steps]


def test_the_monitored_output_is_the_plant_s_in_every_step():
    seen = []

    def values(parameters, q, v, u, w):
        seen.append((parameters.m, *q, *v, *u, w["theta"]))
        return np.array([1.0, 2.0])

    monitor = MonitoredOutput("gap", ("a", "b"), "m", values, 0.0, "too near")
    push = disturbance.parse("theta:gust:0.5,start=0.0,duration=0.02")
    e = made(perturbation=moved(), parameters={"m": 2.0}, disturbances=(push,), duration_s=3 * H)
    found = result(replace(e, scenario=replace(SWING, monitor=monitor)))
    assert found.monitored.tolist() == [[1.0, 2.0]] * 3
    path = found.loop.trajectory
    for k, told in enumerate(seen):
        x = path.states[k]
        push = 0.5 if k * H < 0.02 else 0.0
        state = *e.model.configuration(x), *e.model.velocity(x)
        assert told == (2.0, *state, *path.inputs[k], push)


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
    replace(found, open_loop=None).save(tmp_path / "alone.npz")
    lost = set(saved.files) - set(np.load(tmp_path / "alone.npz").files)
    assert lost == {"open_loop_states", "open_loop_errors"}


# --- summaries -----------------------------------------------------------------------------------


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
    assert told["integral"] is e.integral is True
    assert told["monitored"] == {} and told["constraint_residual_max_m"] is None
    assert summarize(result(made()))["integral"] is False


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


def rows(summary):
    """Labels and texts of the table of a summary, with the style of each row."""
    found = table(summary)
    labels, texts = found.columns
    styles = [row.style for row in found.rows]
    return [
        f"{label}: {text}" + f" ({style})" * bool(style)
        for label, text, style in zip(labels.cells, texts.cells, styles, strict=True)
    ]


def test_the_table_contains_settings_and_results(run, snapshot):
    """Of changed summaries, the rows that differ."""
    told = summarize(run)
    error, (torque,) = told["error"], told["inputs"].values()
    near = {"unit": "m", "warning": "too near", "min": 0.5}
    ros = {
        "rate_hz": 99.5, "missed_steps": 1, "jitter_mean_us": 10.0, "jitter_p99_us": 20.0,
        "jitter_max_us": 30.0, "commands_accepted": 4, "commands_rejected": 5,
        "fallback_steps": 6, "held_steps": 7, "difference_to_simulation": 1e-9,
    }  # fmt: skip
    limits = {"none": [None, None], "lower": [0.0, None], "upper": [None, 2.5]}
    changes = {
        "stopped": {"stopped": "at once", "turn_per_step_max_rad": 3.3, "steps_planned": 57},
        "residuals": {"manifold_residual_max": 1e-3, "constraint_residual_max_m": 2e-3,
                      "turn_per_step_max_rad": 3.0},
        "open loop": {"feedback": False, "plant_substeps": 1, "reference_steps": STEPS - 5},
        "failed open loop": {
            "error": {**error, "open_loop_final": None, "open_loop_stopped": "at step 4"}
        },
        "inputs": {"inputs": {n: {**torque, "limits": ends, "unit": None}
                              for n, ends in limits.items()}},
        "monitored": {"monitored": {f"{n} steps": {**near, "steps_with_warning": n}
                                    for n in range(3)}},
        "nodes": {"ros": ros},
        "nodes in time": {"ros": {**ros, "commands_rejected": 0, "fallback_steps": 0,
                                  "held_steps": 0}},
    }  # fmt: skip
    usual = rows(told)
    shown = {name: [row for row in rows({**told, **changed}) if row not in usual]
             for name, changed in changes.items()}  # fmt: skip
    factors = (None, 2.5, 0.25, 1.0, 12345.0, 2e6, 9e12, 1e13, 1e-14)
    reduced = ({**told, "error": {**error, "reduction": factor}} for factor in factors)
    shown["reductions"] = [row for some in reduced for row in rows(some) if "tracking" in row]
    assert {"usual": usual, **shown} == snapshot
