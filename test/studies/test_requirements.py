"""Requirements of studies: what they say of runs and of the study, what is refused, and what a
continuous integration server gets.
"""

import json
from xml.etree import ElementTree

import numpy as np
import pytest
from command import ROOT
from in_process_workers import InProcess

from nh_control.command import run_study
from nh_control.studies import Study, make_study, run_indices
from nh_control.studies.requirements import Requirement

SCENARIO = f"{ROOT / 'test' / 'studies' / 'trapped.py'}:SCENARIO"
VALUES = {
    "final_error": lambda: 0.02,
    "error": lambda: np.array([0.3, 0.1]),
    "error.theta": lambda: np.array([-0.3, 0.1]),
    "effort": lambda: np.array([[4.0, -6.0], [2.0, 3.0]]),
    "state.arm-1": lambda: np.array([1.0, 2.0, 3.0]),
}


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("final_error < 0.05", True),
        ("max(abs(error.theta)) < 0.3", False),
        ("max(error.theta) < 0.2 and min(error.theta) > -0.4", True),
        ("error.theta.max == 0.3", True),  # the largest size, not the largest value
        ("effort.max < 5", False),
        ("effort.max < 5 or not final_error > 1", True),
        ("0 < final(error.theta) < 0.2", True),
        ("0 < error.theta.final < 0.05", False),
        ("rms(error) ** 2 * 2 - 0.1 > -1e-12", True),
        ("final_error < 2.5 %", True),
        ("final_error*100 <= 150%", False),
        ('state["arm-1"].mean == 2', True),
        ("mean(effort) / 0 > 1", True),
    ],
)
def test_conditions_have_their_usual_meaning(text, met):
    requirement = Requirement(text)
    requirement.check_names(VALUES)
    assert not requirement.of_study and requirement.outcome(VALUES).met is met


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("success >=", "cannot be read; write it as in 'success >= 95 %'"),
        ("final_error", "'final_error' is not a comparison"),
        ("1 < 2", "names no quantity"),
        ("__import__('os').system('x') < 1", "not one of the functions abs, max"),
        ("effort.__class__ < 1", r"unknown 'effort.__class__'"),
        ("[e for e in effort] < 1", "is not a value"),
        ("final_error != 1", "expected a comparison with <, <=, >, >= or =="),
        ("max(effort, error) < 1", "of one value"),
        ("final_eror < 1", r"unknown 'final_eror' \(did you mean 'final_error'\?\), choose from"),
        ("success > 0.9 and final_error < 1", "write two requirements"),
        ("effort < 5", "effort is a series of 4 numbers; compare max\\(abs\\(effort\\)\\)"),
        ("(" * 300 + "1", "cannot be read"),
        ("final_error < " + "1+" * 400 + "1", "at most 500"),
    ],
)
def test_other_texts_are_refused_with_the_names_and_functions(text, message):
    with pytest.raises(ValueError, match=message):
        requirement = Requirement(text)
        requirement.check_names(VALUES)
        requirement.outcome(VALUES)


def test_what_a_condition_depends_on_is_told():
    outcome = Requirement("max(abs(error.theta)) < 0.1 and effort.max < 9").outcome(VALUES)
    assert outcome.reason == "max(abs(error.theta)) = 0.3; effort.max = 6"


def study(*require, **more):
    data = {"scenario": SCENARIO, "set": {"duration": "0.1"}, "require": list(require)}
    return make_study({**data, "vary": {"perturb.angle": "0.1,0.2,0.4,2.5"}, **more})


def test_requirements_of_runs_define_success_and_all_must_meet_them_unless_one_says_how_many():
    """The angles are 0.1, 0.2 and 0.4 rad; the run at 2.5 rad fails."""
    one = study("max(abs(error.theta)) < 0.3", "effort.max < 100")
    assert [r.text for r in one.requirements if r.of_study] == ["success >= 100 %"]
    runs = run_indices(one, range(4))
    assert [run.success for run in runs] == [True, True, False, False]
    assert runs[2].missed.startswith("max(abs(error.theta)) < 0.3: max(abs(error.theta)) = 0.4")
    assert runs[3].failure and not runs[3].missed
    known = one.settings.model.system.space.tangent_names
    assert known == ("theta",)
    assert len(study("success >= 50 %").requirements) == 1
    with pytest.raises(ValueError, match=r"unknown 'error.thet' \(did you mean 'error.theta'"):
        study("max(abs(error.thet)) < 1")
    values = run_study_values(one)
    for text in ("error.angle.max", "state.p_theta.max", "effort.max", "energy.final", "time.max"):
        assert np.isfinite(Requirement(f"{text} < 1e9").outcome(values).met)
    np.testing.assert_allclose(values["error.angle"](), np.abs(values["error.theta"]()))


def run_study_values(one):
    from nh_control.runs.experiment import Result
    from nh_control.studies import quantities
    from nh_control.studies.metrics import METRICS
    from nh_control.studies.worker import Worker

    experiment = Worker(one).experiment(one.values(0))
    result = Result(experiment, experiment.run(True), None, 0.0)
    values = quantities.values(result, METRICS)
    examples = quantities.examples(experiment.scenario, experiment.model, METRICS)
    steps = len(values["effort"]())
    for name, example in examples.items():
        numbers, ones = np.asarray(values[name]()), np.asarray(example())
        lengths = {quantities.STEPS: steps, quantities.STEPS + 1: steps + 1}
        assert numbers.shape == tuple(lengths.get(n, n) for n in ones.shape), name
    return values


@pytest.fixture
def command(call, monkeypatch, tmp_path):
    """Return f(*words) -> (exit code, stderr, the JSON) of the study of four angles."""
    monkeypatch.setattr(run_study, "worker_pool", lambda *_: InProcess())

    def run(*words):
        vary = ("--set", "duration=0.1")
        if "--vary" not in words:
            vary += ("--vary", "perturb.angle=0.1,0.2,0.4,2.5")
        more = ("--json", "--no-plots", "--junit", "junit.xml", "--output", "o", "--overwrite")
        done = call("study", SCENARIO, *vary, *words, *more)
        return done.returncode, done.stderr, json.loads(done.stdout or "{}")

    return run


def test_unmet_requirements_end_with_1_and_are_in_the_junit_file(command, tmp_path):
    junitparser = pytest.importorskip("junitparser", reason="needs junitparser: extra 'test'")

    def suites():
        xml = junitparser.JUnitXml.fromfile(str(tmp_path / "junit.xml"))
        return {suite.name: suite for suite in xml}

    each = ("--require", "max(abs(error.theta)) < 0.3")
    code, err, told = command(*each)
    assert code == 1
    assert "not met: success >= 100 % (success = 0.5)" in err
    assert told["requirements"] == [
        {"text": "success >= 100 %", "met": False, "reason": "success = 0.5"}
    ]
    assert told["success"]["requirements"] == [each[1]] and told["success"]["count"] == 2
    found = suites()
    assert found["trapped.requirements"].failures == 1
    runs = found["trapped.runs"]
    assert (runs.tests, runs.failures, runs.skipped) == (4, 2, 0)
    (failure,) = [*runs][2].result
    assert "max(abs(error.theta)) = 0.4" in failure.message
    assert "nh_control simulate" in failure.text and "--perturb-angle=0.4" in failure.text
    code, err, told = command(*each, "--require", "success >= 50 %", "--require", "runs >= 4")
    assert code == 0 and "not met" not in err
    found = suites()
    assert found["trapped.requirements"].tests == 2
    assert found["trapped.requirements"].failures == found["trapped.runs"].failures == 0
    assert found["trapped.runs"].skipped == 2
    assert ElementTree.parse(tmp_path / "junit.xml").getroot().tag == "testsuites"


def test_a_study_whose_runs_all_fail_says_why_and_has_failures_in_junit(command, tmp_path):
    code, err, told = command("--set", "perturb.angle=2.5", "--vary", "m=1,2")
    assert code == 1 and told["failed"]["count"] == told["runs"]
    assert "2 runs failed, such as run 0: " + told["failures"][0]["reason"] in err
    suites = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert [suite.get("failures") for suite in suites] == ["0", "2"]


def test_the_old_option_of_success_says_what_replaces_it(command):
    code, err, told = command("--success", "0.15")
    assert code == 0 and told["success"]["final_error_at_most"] == 0.15
    assert "--success is deprecated: use --require 'final_error <= 0.15'" in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("efort.max < 5", "unknown 'efort.max' (did you mean 'effort"),
        ("sucess > 0.9", "unknown 'sucess' (did you mean 'success'?), choose from success, "),
        ("abs(error) < 0.1", "abs(error) is a series of 101 numbers; compare max(abs(error)), "),
        ("max(error * effort) < 1", "have shapes (101,) and (100, 1), expected equal shapes"),
    ],
)
def test_a_wrong_requirement_is_refused_before_the_runs(command, text, message, tmp_path):
    code, err, _ = command("--require", text)
    assert code == 2 and message in " ".join(err.split())
    assert not (tmp_path / "o").exists()


# Noise -------------------------------------------------------------------------------------------


def test_points_that_are_drawn_have_noise_of_their_own_unless_asked_otherwise():
    data = {"scenario": SCENARIO, "vary": {"m": "1:2"}, "fault": "noise=0.01", "points": "4"}
    own, same = make_study(data), make_study({**data, "same_noise": "true"})
    seeds = [own.values(i)["fault.noise.seed"] for i in range(4)]
    assert len(set(seeds)) == 4 and seeds == [own.run_seed(i) for i in range(4)]
    assert seeds == [make_study(data).values(i)["fault.noise.seed"] for i in range(4)]
    assert [same.values(i) for i in range(4)] == [{"m": same.point(i)[0]} for i in range(4)]
    assert own.point(2) == same.point(2)
    grid = make_study({**data, "vary": {"m": "1,2"}, "points": "0"})
    assert "fault.noise.seed" not in grid.values(0)
    other = make_study({**data, "seed": "1"})
    assert other.run_seed(0) != own.run_seed(0)


def test_a_fault_with_its_usual_target_is_the_same_setting():
    """`fault.positions:noise` is `fault.noise`: positions are what noise acts on."""
    data = {"scenario": SCENARIO, "points": "3"}
    long = make_study({**data, "vary": {"fault.positions:noise": "0:0.1"}})
    short = make_study({**data, "vary": {"fault.noise": "0:0.1"}})
    assert long == short and isinstance(long, Study)
    assert "fault.noise" in long.values(0)
    both = {"fault.velocities:noise": "0:0.1", "fault.positions:noise.seed": "1,2"}
    with_both = make_study({**data, "vary": both, "fault": "noise=0.01"})
    assert set(with_both.values(0)) == {
        "fault.velocities:noise", "fault.noise.seed", "fault.velocities:noise.seed",
    }  # fmt: skip
