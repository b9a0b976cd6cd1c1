"""The settings of a run: one declaration for the command, nodes, studies and files."""

import json
from dataclasses import replace

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.cli import main
from nh_control.mechanics.parameters import Declaration
from nh_control.runs.build import build
from nh_control.runs.output import RESULTS
from nh_control.runs.results_file import stored
from nh_control.runs.settings import SETTINGS, MpcSettings, RunSettings, short_name
from nh_control.scenarios import disturbance, fault, free_motion
from nh_control.scenarios.sensor import ESTIMATES


def test_texts_name_the_syntax_and_kinds_that_are_read():
    """The settings import no scenarios, so they repeat these words."""
    for name, kind in (("disturb", disturbance), ("fault", fault)):
        text = SETTINGS[name].description
        assert kind.SYNTAX in text and all(one in text for one in kind.KINDS), name
    assert fault.EXAMPLE in SETTINGS["fault"].description
    assert free_motion.SYNTAX in SETTINGS["reference"].description
    assert SETTINGS["estimate"].choices == ESTIMATES


def test_settings_are_imported_without_numerics_and_ros():
    import subprocess
    import sys

    program = "import sys, nh_control.runs.settings; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert not {"numpy", "casadi", "rclpy", "yaml", "nh_control.scenarios"} & {
        *done.stdout.split()
    }


def test_short_names_leave_out_the_unit_and_name_one_value():
    assert [short_name(SETTINGS[name]) for name in ("step_s", "mpc.horizon_s")] == [
        "step", "mpc_horizon",
    ]  # fmt: skip
    assert short_name(SETTINGS["plant.parameters"]) == "plant_parameter"
    assert short_name(SETTINGS["mpc.constraints"]) == "mpc_constraint"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"step_s": -1.0}, "'step_s' must be a finite number >= 0, got -1.0 s"),
        ({"mpc.iterations": 0}, "'mpc.iterations' must be an integer >= 1, got 0"),
        ({"plant.substeps": 1.5}, "'plant.substeps' must be an integer >= 1, got 1.5"),
        ({"controller": "pid"}, "'controller' must be one of lqr, mpc, got 'pid'"),
        ({"integral": 1}, "'integral' must be true or false, got 1"),
        ({"disturb": [1]}, "'disturb' must be a list of strings"),
        ({"mpc.late": 0.5}, "add --controller mpc"),
    ],
)
def test_values_out_of_range_are_refused_by_name(values, message):
    with pytest.raises(ValueError, match=message):
        RunSettings.of(values)


def test_plain_values_make_the_same_settings():
    settings = RunSettings.of(
        {"step_s": 1, "plant": {"parameters": {"lengths": [1.0, 2.0]}}, "mpc.seed": 3,
         "controller": "mpc", "fault": ["", "noise=0.1"], "somebody's": 1}
    )  # fmt: skip
    assert settings.step_s == 1.0 and type(settings.step_s) is float
    assert settings.plant.parameters == {"lengths": (1.0, 2.0)}
    assert settings.mpc == MpcSettings(seed=3) and settings.fault == ["noise=0.1"]
    assert RunSettings.of(json.loads(json.dumps(settings.to_dict()))) == settings


def test_a_text_is_read_as_its_declared_kind():
    for default, text, value in (
        (False, "true", True), (1, "3", 3), (0.5, "3", 3.0), ("", "a b", "a b"),
        ([], " a  b ", ["a", "b"]), ((1.0,), "[1, 2.5]", (1.0, 2.5)),
    ):  # fmt: skip
        read = Declaration("x", default).read(text)
        assert read == value and type(read) is type(value)
    for default, text in ((False, "yes"), (1, "1.5"), (0.5, "much"), ((1.0,), "1,,2")):
        with pytest.raises(ValueError, match="'x' must be .*, got '"):
            Declaration("x", default).read(text)


def test_results_of_the_last_release_are_read(tmp_path):
    """They named some settings differently, and had no controller."""
    folder, given = tmp_path / "run", ["--controller", "mpc", "--mpc-horizon", "0.1"]
    given += ["--plant-parameter", "m_cart=1.1", "--fault", "dropout=0.1", "--duration", "0.1"]
    assert main(["simulate", "cart_pole", *given, "--no-plots", "--output", str(folder)]) == 0
    result = stored(folder)
    now = result.settings
    assert now.controller == "mpc" and now.plant.parameters == {"m_cart": 1.1}
    told = dict(result.description)
    plant = told.pop("plant")
    earlier = {
        "origin": {"scenario": told.pop("scenario")},
        "perturbation": told.pop("perturb"),
        "disturbances": told.pop("disturb"),
        "faults": told.pop("fault"),
        **{f"plant_{name}": value for name, value in plant.items()},
    }
    for name in ("controller", "urdf", "base", "accept_any_inertia"):
        del told[name]
    assert replace(result, description={**told, **earlier}).settings == now
    lqr = {**told, **earlier, "mpc": None}
    assert replace(result, description=lqr).settings == replace(
        now, controller="lqr", mpc=MpcSettings()
    )
    with np.load(folder / RESULTS) as saved:
        assert json.loads(str(saved["description"]))["plant"] == plant


def test_weights_and_the_model_of_a_tracker_are_settings():
    board = scenarios.get("snakeboard")
    plain = build(RunSettings())
    heavy = build(RunSettings(weight_factors={"psi": 4.0}, model_parameters={"m": 1.2}), board)
    assert heavy.model.system.parameters.m == heavy.plant_parameters.m == 1.2
    assert (heavy.scenario.weights[0] != plain.scenario.weights[0]).any()
    assert heavy.settings.weight_factors == {"psi": 4.0}
    assert build(heavy.settings).settings == heavy.settings
    for values, message in (
        ({"weight_factors": {"wheel": 2.0}}, "snakeboard weight 'wheel', choose one of"),
        ({"weight_factors": {"psi": -1.0}}, "weight of psi must be a finite number >= 0, got -1"),
        ({"model_parameters": {"mass": 1.0}}, "snakeboard parameter 'mass', choose one of"),
        ({"perturb": {"tilt": 1.0}}, "snakeboard initial error 'tilt', choose one of"),
    ):
        with pytest.raises(ValueError, match=message):
            build(RunSettings(**values), board)
