"""The settings of a run: one declaration for the command, nodes, studies and files."""

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from nh_control import scenarios
from nh_control.cli import main
from nh_control.command import arguments, options, run_scenario
from nh_control.command.usage import UsageError
from nh_control.mechanics.parameters import NODES, PROCESS, Declaration
from nh_control.runs import launcher
from nh_control.runs.build import build
from nh_control.runs.output import RESULTS
from nh_control.runs.saved_results import stored
from nh_control.runs.settings import ORIGIN, SETTINGS, MpcSettings, RunSettings, short_name
from nh_control.scenarios import disturbance, fault, free_motion
from nh_control.scenarios.sensor import ESTIMATES
from nh_control.scenarios.urdf import DEFAULT
from nh_control.studies import command, make_study
from nh_control.studies.worker import Worker


def test_texts_name_the_syntax_and_kinds_that_are_read():
    """The settings import no scenarios, so they repeat these words."""
    for name, kind in (("disturb", disturbance), ("fault", fault)):
        text = SETTINGS[name].description
        assert kind.SYNTAX in text and all(one in text for one in kind.KINDS), name
    assert fault.EXAMPLE in SETTINGS["fault"].description
    assert free_motion.SYNTAX in SETTINGS["reference"].description
    assert SETTINGS["estimate"].choices == ESTIMATES
    assert {
        "disturb": disturbance.SYNTAX.partition("[,")[0],
        "fault": fault.SYNTAX.partition("[,")[0],
    } == options.SHOWN


def test_settings_are_imported_without_numerics_and_ros():
    program = "import sys, nh_control.runs.settings; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert not {"numpy", "casadi", "rclpy", "yaml", "nh_control.scenarios"} & {
        *done.stdout.split()
    }


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"step_s": -1.0}, "'step_s' must be a finite number >= 0, got -1.0 s"),
        ({"mpc.iterations": 0}, "'mpc.iterations' must be an integer >= 1, got 0"),
        ({"plant.substeps": 1.5}, "'plant.substeps' must be an integer >= 1, got 1.5"),
        ({"controller": "pid"}, "'controller' must be lqr, mpc, external, .*, got 'pid'"),
        ({"controller": "a.py:B", "integral": True}, "'integral' is for lqr and mpc"),
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


# --- everything that one place can set, the others can -------------------------------------------

SCENARIO = scenarios.get("cart_pole")
VALUES = {
    "reference": "short_track",
    "duration_s": 0.5,
    "integrator": "midpoint",
    "step_s": 0.01,
    "model_parameters": {"m_pole": 0.2},
    "integral": True,
    "controller": "mpc",
    "mpc.horizon_s": 0.3,
    "mpc.iterations": 2,
    "mpc.constraints": ["track", "pole"],
    "mpc.late": 0.1,
    "mpc.seed": 4,
    "weight_factors": {"theta": 2.0},
    "open_loop": True,
    "estimate": "sensors",
    "plant.integrator": "midpoint",
    "plant.substeps": 3,
    "plant.parameters": {"m_cart": 1.1},
    "perturb": {"position": 0.25, "angle": 0.0, "momentum": 0.2, "seed": 2},
    "disturb": ["x:gust:1.0,start=0.1,duration=0.2"],
    "fault": ["positions:noise=0.1,seed=3", "commands:delay=0.005"],
    "speed_factor": 2.0,
    "lockstep": True,
    "answer_timeout_s": 3.0,
    "domain": 7,
    "display": False,
    "view": True,
    "record": False,
}
"""A value that is not the default for every setting of a run."""


def test_the_values_are_those_of_all_settings():
    assert VALUES.keys() == SETTINGS.keys() - set(ORIGIN)
    assert all(SETTINGS[name].value != value for name, value in VALUES.items())


def expected(without):
    """Return the settings with all values of a place."""
    own = {n: value for n, value in VALUES.items() if SETTINGS[n].only != without}
    return RunSettings.of({"scenario": "cart_pole", **own})


def words():
    """Return (setting, words of its option) for all values."""
    for name, value in VALUES.items():
        option = f"--{short_name(SETTINGS[name]).replace('_', '-')}"
        if name == "perturb":
            yield name, [f"--perturb-{key}={one}" for key, one in value.items()]
        elif isinstance(value, bool):
            yield name, [option if value else f"--no-{option[2:]}"]
        elif isinstance(value, dict):
            yield name, [w for key, one in value.items() for w in (option, f"{key}={one}")]
        else:
            several = value if isinstance(value, list) else [value]
            yield name, [word for one in several for word in (option, str(one))]


def parsed(command, given):
    """Return the settings of a command's words."""
    return options.settings(arguments.parse([command, "cart_pole", *given]))


@pytest.mark.parametrize(("command", "without"), [("simulate", NODES), ("run", PROCESS)])
def test_every_setting_is_an_option(command, without, capsys):
    given = [w for name, some in words() for w in some if SETTINGS[name].only != without]
    assert parsed(command, given) == expected(without)
    for name, some in words():
        if SETTINGS[name].only == without:
            with pytest.raises(UsageError, match="does not accept"):
                parsed(command, some)


def live(given):
    """Return arguments, and those of the command that shows their run live."""
    args = arguments.parse(given)
    again = shlex.split(run_scenario.live_command(args))
    assert again[:2] == ["nh_control", "run"]
    return args, arguments.parse(again[1:])


@pytest.mark.parametrize(("command", "without"), [("simulate", NODES), ("run", PROCESS)])
def test_the_command_that_shows_a_run_live_repeats_it(command, without):
    """Only `simulate`, whose commands are never late, needs another setting: lock-step."""
    absent = ("open_loop", "view")
    given = [
        word
        for name, some in words()
        for word in some
        if name not in absent and SETTINGS[name].only != without
    ]
    args, again = live([command, "cart_pole", *given])
    usual = {"view": True} | ({"lockstep": True} if command == "simulate" else {})
    assert options.settings(again) == replace(options.settings(args), **usual)


@pytest.mark.parametrize(
    "given",
    [
        ("urdf", "--urdf", str(DEFAULT), "--base", "floating", "--accept-any-inertia"),
        ("quadrotor", "--autopilot", "betaflight:noise=2.0", "--perturb-seed", "3"),
        ("snakeboard", "--disturb", "boom:constant:-1", "--plant-parameter", "J=1.5"),
    ],
)
def test_the_live_command_names_robot_autopilot_and_all_values(given):
    args, again = live(["simulate", *given])
    assert again.scenario.origin == args.scenario.origin
    assert options.settings(again) == replace(options.settings(args), view=True, lockstep=True)


def test_no_live_command_is_shown_for_what_nodes_cannot_repeat():
    for given in (["simulate", "cart_pole", "--open-loop"], ["run", "cart_pole", "--view"]):
        assert run_scenario.live_command(arguments.parse(given)) == ""


def study_of_all():
    """Return a study with all values that simulate has."""
    fixed = {}
    for name, value in VALUES.items():
        entry = SETTINGS[name]
        prefix = {"model_parameters": "model.", "weight_factors": "weight.",
                  "plant.parameters": "", "perturb": "perturb."}.get(name)  # fmt: skip
        if prefix is not None:
            fixed |= {f"{prefix}{key}": str(one) for key, one in value.items()}
        elif entry.only != NODES and name not in ("disturb", "fault"):
            fixed[short_name(entry)] = (
                " ".join(value) if isinstance(value, list) else str(value).lower()
            )
    vary = {"mpc_seed": "4,5"}
    del fixed["mpc_seed"]
    lists = {name: VALUES[name] for name in ("disturb", "fault")}
    return make_study({"scenario": "cart_pole", "vary": vary, "set": fixed, **lists})


def test_every_setting_of_a_process_is_one_of_a_study_and_its_command_repeats_it():
    """Also estimates, constraints and weights, which studies or simulate lacked."""
    study = study_of_all()
    values = study.values(0)
    found = study.settings.run(values)
    assert replace(found, scenario="cart_pole") == expected(NODES)
    words = shlex.split(command(study, 0))
    assert words[:3] == ["nh_control", "simulate", "cart_pole"]
    assert parsed("simulate", words[3:]) == expected(NODES)


def test_every_setting_of_nodes_is_in_their_parameters_and_read_from_them(tmp_path):
    wanted = expected(PROCESS)
    experiment = SimpleNamespace(settings=wanted, scenario=SCENARIO,
                                 options=SimpleNamespace(faults=()))  # fmt: skip
    given = launcher.parameters(experiment, wanted, tmp_path)
    text = yaml.safe_dump(given)
    of_nodes = dict.fromkeys(launcher.NOT_OF_NODES)
    usual = {name: SETTINGS[name].value for name in of_nodes}
    assert RunSettings.of(yaml.safe_load(text)) == replace(wanted, **usual)
    pytest.importorskip("rcl_interfaces", reason="needs ROS messages: install the extra 'ros'")
    from nh_control.ros.runtime.declared import ALL

    of_scenario = ("parameters", "perturb", "model_parameters", "weight_factors")
    for name, value in given.items():
        inner = [f"{name}.{key}" for key in value] if isinstance(value, dict) else [name]
        assert all(one in ALL or one.rpartition(".")[2] in of_scenario or name in of_scenario
                   for one in inner), name  # fmt: skip


def test_runs_of_a_study_have_the_estimate_and_constraints_of_simulate():
    fixed = {"controller": "mpc", "mpc_horizon": "0.2", "duration": "0.2"}
    vary = {"mpc_constraint": "track,auto"}
    study = make_study({"scenario": "cart_pole", "vary": vary, "set": fixed})
    first = Worker(study).experiment(study.values(0))
    given = ["--controller", "mpc", "--mpc-horizon", "0.2", "--duration", "0.2"]
    same = build(parsed("simulate", [*given, "--mpc-constraint", "track"]), SCENARIO)
    assert first.mpc == same.mpc and first.mpc.constraints == ("track",)
    np.testing.assert_array_equal(first.run().trajectory.states, same.run().trajectory.states)
    arm = str(Path(__file__).parents[1] / "ros" / "sensing_arm.py")
    sensed = make_study({"scenario": arm, "vary": {"estimate": "state,sensors"},
                         "set": {"duration": "0.1"}})  # fmt: skip
    plain, estimated = (Worker(sensed).experiment(sensed.values(i)) for i in range(2))
    assert (plain.estimate, estimated.estimate) == ("state", "sensors")
    inputs = [one.run().trajectory.inputs for one in (plain, estimated)]
    assert np.abs(inputs[0] - inputs[1]).max() > 0
    same = build(sensed.settings.run(sensed.values(1)), scenarios.get(arm))
    np.testing.assert_array_equal(inputs[1], same.run().trajectory.inputs)
    unsensed = make_study({"scenario": "cart_pole", "vary": {"estimate": "sensors,state"}})
    assert "has no sensors" in Worker(unsensed).run(0).failure
