"""launch/*.launch.py: the started nodes for given arguments, with `launch` if it is installed, or
with stand-ins.
"""

import ast
import importlib.util
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import launch_stand_in
import pytest
import yaml

from nh_control import scenarios
from nh_control.mechanics.parameters import Declaration, declarations, parameter
from nh_control.scenarios import discovery

ROOT = Path(__file__).parents[1]
LAUNCH_FILES = {
    path.name.removesuffix(".launch.py"): path
    for path in sorted((ROOT / "launch").glob("*.launch.py"))
}
ANY = ("scenario", "hil", "multi", "ros2_control")
NAMED = [name for name in LAUNCH_FILES if name not in ANY]
SOME = ("snakeboard", "quadrotor_payload", "urdf")
EVERY = [name if name in SOME else pytest.param(name, marks=pytest.mark.slow) for name in NAMED]
BRINGUP = ROOT / "nh_control" / "ros" / "bringup.py"

HAS_LAUNCH = all(importlib.util.find_spec(name) for name in ("launch", "launch_ros"))
OURS = ("arguments", "bringup", "controllers", "viewers")
"""Modules that import `launch`."""


@pytest.fixture(autouse=True, scope="module")
def launch_packages():
    """Stand-ins for launch and launch_ros if these are not installed."""
    import nh_control.ros

    if HAS_LAUNCH:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        there = discovery.installed()  # looked for once
        patch.setattr(discovery, "installed", lambda: there)
        for name, module in launch_stand_in.modules().items():
            patch.setitem(sys.modules, name, module)
        yield
    for name in OURS:
        sys.modules.pop(f"nh_control.ros.{name}", None)
        vars(nh_control.ros).pop(name, None)


def calls(path):
    """Return all calls in a file as (name of the function, its first arguments that are
    constants).
    """
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    names = [getattr(node.func, "id", getattr(node.func, "attr", "")) for node in nodes]
    return [
        (name, [argument.value for argument in node.args if isinstance(argument, ast.Constant)])
        for name, node in zip(names, nodes)
    ]


@pytest.mark.parametrize("name", LAUNCH_FILES)
def test_launch_file_defines_its_entry_point_and_describes_the_scenario_of_its_name(name):
    tree = ast.parse(LAUNCH_FILES[name].read_text())
    assert "generate_launch_description" in {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef)
    }
    assert ast.get_docstring(tree)
    ((scenario, *_),) = [
        constants for function, constants in calls(LAUNCH_FILES[name]) if function == "description"
    ]
    assert scenario == ("" if name in ANY else name)
    assert name in ANY or name in scenarios.names()
    own = ROOT / "config" / f"{name}.rviz"
    assert name in ("hil", "multi", "ros2_control") or own.is_file()


def test_launch_starts_executables_that_exist():
    setup = (ROOT / "setup.py").read_text()
    started = [constants[0] for function, constants in calls(BRINGUP) if function == "own"]
    assert set(started) == {"plant", "tracker", "composed", "display", "shadow", "view"}
    for executable in started:
        assert f'"{executable}": "nh_control.ros.nodes.start:{executable}"' in setup


class Started(dict):
    """Replaces launch_ros.actions.Node and stores its arguments."""


def description(name):
    """Return the launch description of a launch file, loaded as `ros2 launch` does."""
    spec = importlib.util.spec_from_file_location("launch_file", LAUNCH_FILES[name])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.generate_launch_description()


_KNOWN = {}


def once(of_scenario):
    """Return a function that loads each scenario once for all tests."""

    def known(scenario):
        if id(scenario) not in _KNOWN:
            _KNOWN[id(scenario)] = scenario, of_scenario(scenario)
        return list(_KNOWN[id(scenario)][1])

    return known


OTHERS = ("ros2bag", "robot_state_publisher", "rviz2", "tf2_ros")


@pytest.fixture
def packages():
    """The packages installed besides this one: all, unless a test removes some."""
    return list(OTHERS)


@pytest.fixture
def launched_all(monkeypatch, packages, tmp_path):
    """Return f(scenario, **launch arguments) -> keyword arguments of all Nodes, recordings with
    the executable 'record'.
    """
    from launch.actions import DeclareLaunchArgument

    from launch import LaunchContext
    from nh_control.ros import arguments, bringup, viewers

    for module in (arguments, bringup):
        monkeypatch.setattr(module, "of_scenario", once(module.of_scenario))
    monkeypatch.setattr(viewers, "Node", Started)
    monkeypatch.setattr(viewers, "LogInfo", lambda msg: Started(executable=msg))
    monkeypatch.setattr(viewers, "launch_config", SimpleNamespace(log_dir=str(tmp_path)))
    for module in (bringup, viewers):
        monkeypatch.setattr(module, "get_packages_with_prefixes", lambda: dict.fromkeys(packages))
    monkeypatch.setattr(
        bringup, "ExecuteProcess", lambda **options: Started(executable="record", **options)
    )
    monkeypatch.setattr(bringup, "OpaqueFunction", lambda function: function)

    def run(name, **arguments):
        context = LaunchContext()
        context.launch_configurations.update(arguments)
        actions = description(name).entities
        while callable(actions[-1]):
            *declared, start = actions
            for argument in declared:
                assert isinstance(argument, DeclareLaunchArgument)
                argument.execute(context)
            actions = start(context)
        return actions

    return run


@pytest.fixture
def launched(launched_all):
    """Return f(scenario, **launch arguments) -> {executable: keyword arguments of its Node}."""

    def run(name="snakeboard", **arguments):
        return {action["executable"]: action for action in launched_all(name, **arguments)}

    return run


def inline(action):
    """Return the parameters of a node that override its parameter file."""
    return action["parameters"][-1]


@pytest.mark.parametrize(
    ("name", "models"),
    [
        ("snakeboard", {"robot_state_publisher"}),
        ("quadrotor_payload", set()),
        ("urdf", {"robot_state_publisher"}),
    ],
)
def test_default_starts_everything_but_the_recording(launched, name, models):
    actions = launched(name)
    assert set(actions) == {"plant", "tracker", "display", "rviz2"} | models
    assert inline(actions["plant"]) == {}
    assert actions["plant"]["parameters"][:-1] == [n for n in [scenarios.get(name).nodes] if n]
    assert Path(actions["rviz2"]["arguments"][1]) == ROOT / "config" / f"{name}.rviz"
    assert {executable for executable, action in actions.items() if "on_exit" in action} == {
        "plant",
        "tracker",
        "display",
    }


@pytest.mark.parametrize(
    ("arguments", "executables"),
    [
        ({"headless": "true"}, {"plant", "tracker"}),
        ({"headless": "true", "record": "true"}, {"plant", "tracker", "record"}),
        ({"rviz": "false"}, {"plant", "tracker", "display", "robot_state_publisher"}),
        ({"rviz": "false", "use_robot_state_publisher": "false"}, {"plant", "tracker", "display"}),
        ({"headless": "true", "tracker": "false"}, {"plant"}),
        ({"headless": "true", "plant": "false"}, {"tracker"}),
        ({"headless": "true", "shadow": "true"}, {"plant", "tracker", "shadow"}),
        ({"headless": "true", "view": "true"}, {"plant", "tracker", "view"}),
    ],
)
def test_switches(launched, arguments, executables):
    assert set(launched(**arguments)) == executables


@pytest.mark.parametrize("packages", [[]], ids=["nothing"])
def test_missing_packages_are_omitted_with_a_message_or_refused(launched, packages):
    warnings = [f"WARNING: {name} is not installed" for name in OTHERS[1:3]]
    started = list(launched())
    assert started[:3] == ["plant", "tracker", "display"]
    assert [text.split(":")[0] + ":" + text.split(":")[1] for text in started[3:]] == warnings
    with pytest.raises(ValueError, match="'record': ros2bag is not installed"):
        launched(record="true")


def test_yes_may_be_written_as_python_does(launched):
    actions = launched(lockstep="True", headless="True")
    assert set(actions) == {"plant", "tracker"}
    assert inline(actions["plant"])["lockstep"] is True


TYPED = {
    "snakeboard": (
        {
            "speed_factor": "2",
            "lockstep": "true",
            "integral": "false",
            "plant_substeps": "4",
            "plant_m": "1.1",
            "perturb_seed": "7",
            "on_finish": "exit",
        },
        {
            "speed_factor": 2.0,
            "lockstep": True,
            "integral": False,
            "plant.substeps": 4,
            "plant.parameters.m": 1.1,
            "perturb.seed": 7,
            "on_finish": "exit",
        },
    ),
    "quadrotor_payload": (
        {
            "plant_lengths": "[0.7, 0.9]",
            "disturb": "payload:gust:1,-2,0,start=3 quad1:constant:0,0,1",
            "perturb_tilt": "0.5",
            "reference": "circle",
        },
        {
            "plant.parameters.lengths": [0.7, 0.9],
            "disturb": ["payload:gust:1,-2,0,start=3", "quad1:constant:0,0,1"],
            "perturb.tilt": 0.5,
            "reference": "circle",
        },
    ),
}


@pytest.mark.parametrize("name", TYPED)
def test_given_arguments_become_typed_inline_parameters(launched, name):
    given, expected = TYPED[name]
    actions = launched(name, **given)
    for executable in ("plant", "tracker", "display"):
        got = inline(actions[executable])
        assert got == expected
        assert {parameter: type(value) for parameter, value in got.items()} == {
            parameter: type(value) for parameter, value in expected.items()
        }


def test_the_display_leaves_transforms_to_a_robot_state_publisher(launched):
    told = {"transforms": False}
    assert told in launched("snakeboard")["display"]["parameters"]
    own = launched("snakeboard", use_robot_state_publisher="false")["display"]
    assert told not in own["parameters"] + launched("cart_pole")["display"]["parameters"]


def test_plant_and_tracker_may_run_in_one_process(launched):
    started = launched("snakeboard", composed="true", speed_factor="2.0", rviz="false")
    assert started.keys() & {"plant", "tracker", "composed"} == {"composed"}
    assert inline(started["composed"])["speed_factor"] == 2.0
    assert "composed" not in launched("snakeboard", composed="true", tracker="false")


def test_spaces_around_an_argument_are_ignored(launched):
    given = {"namespace": " one ", "duration_s": " 3", "speed_factor": "  "}
    plant = launched("scenario", scenario=" snakeboard", **given)["plant"]
    assert inline(plant) == {"scenario": "snakeboard", "duration_s": 3.0}
    assert plant["namespace"] == "one"


def test_a_headless_launch_ends_with_the_reference_by_default(launched):
    assert inline(launched(headless="true")["plant"]) == {"on_finish": "exit"}
    assert inline(launched(headless="true", on_finish="stay")["plant"]) == {"on_finish": "stay"}


def test_the_plant_waits_for_the_recording(launched):
    assert inline(launched(record="true")["plant"]) == dict.fromkeys(
        ["wait_for", "heard_by"], ["rosbag2_recorder"]
    )


@pytest.mark.parametrize(
    ("name", "state"),
    [("snakeboard", "joint_states"), ("quadrotor_payload", "multi_dof_joint_states")],
)
def test_namespace_reaches_nodes_recording_and_rviz(launched, name, state):
    actions = launched(name, namespace="/test", record="true", bag="run")
    assert all(
        action["namespace"] == "test"
        for executable, action in actions.items()
        if executable != "record"
    )
    command = actions["record"]["cmd"]
    assert command[command.index("--output") + 1] == "run"
    assert f"/test/{state}" in command
    assert "/clock" in command
    assert "/test/clock" in command
    remapped = set(actions["rviz2"]["remappings"])
    assert {("/clock", "clock"), ("/markers", "markers"), (f"/{state}", state)} <= remapped


@pytest.mark.parametrize("name", EVERY)
def test_every_topic_that_rviz_shows_is_remapped_into_the_namespace(launched, name):
    remapped = {source for source, _ in launched(name)["rviz2"]["remappings"]}
    assert rviz_topics(name) <= remapped


def rviz_topics(name):
    """Return all topics that an rviz configuration names."""
    root = yaml.safe_load((ROOT / "config" / f"{name}.rviz").read_text())["Visualization Manager"]
    entries = [
        value
        for item in (*root["Displays"], *root["Tools"])
        for key, value in item.items()
        if key.endswith("Topic")
    ]
    return {entry["Value"] for entry in entries}


@pytest.mark.parametrize(
    ("argument", "text"),
    [("plant_substeps", "2.5"), ("speed_factor", "fast"), ("plant_lengths", "[0.6; 0.8]")],
)
def test_a_wrong_number_names_the_argument(launched, argument, text):
    with pytest.raises(ValueError, match="launch argument") as refused:
        launched("quadrotor_payload", **{argument: text})
    assert f"'{argument}': expected" in str(refused.value) and f"got '{text}'" in str(
        refused.value
    )


def test_a_robot_file_reaches_nodes_robot_model_and_rviz(launched, tmp_path):
    from nh_control.scenarios.urdf import DEFAULT

    file = tmp_path / "robot.urdf"
    file.write_text(DEFAULT.read_text().replace("base_link", "pelvis"))
    accepts = {"accept_any_inertia": "true"}
    for given, frame in (({}, "pelvis"), ({"base": "floating"}, "world"), (accepts, "pelvis")):
        actions = launched("urdf", urdf=str(file), **given)
        assert (
            inline(actions["plant"])
            == inline(actions["tracker"])
            == {"urdf": str(file), **given, **dict.fromkeys(accepts.keys() & given, True)}
        )
        assert (
            actions["robot_state_publisher"]["parameters"][0]["robot_description"].value
            == file.read_text()
        )
        view = actions["rviz2"]["arguments"]
        assert view[view.index("--fixed-frame") + 1] == frame


def test_an_invalid_robot_file_is_refused_before_the_start(launched, tmp_path):
    with pytest.raises(FileNotFoundError):
        launched("urdf", urdf=str(tmp_path / "none.urdf"))


def test_a_missing_parameter_file_is_named(launched):
    with pytest.raises(ValueError, match="'params_file': no such file 'missing.yaml'"):
        launched(params_file="missing.yaml")


@pytest.mark.parametrize(
    "argument", ["rviz", "lockstep", "plant_integrator", "on_finish", "fallback"]
)
def test_a_wrong_choice_lists_the_valid_ones(launched, argument):
    with pytest.raises(
        RuntimeError,
        match=f'"{argument}" provided value "nonsense" is not valid. Valid options are',
    ):
        launched(**{argument: "nonsense"})


@pytest.mark.parametrize("reference", ["/motions/pick.csv", "free:theta=1.0"])
def test_a_trajectory_in_a_file_and_a_free_motion_can_be_launched(launched, reference):
    """The nodes know their names: the launch file offers no choice."""
    assert inline(launched(reference=reference)["tracker"])["reference"] == reference


def test_every_possible_integrator_can_be_chosen(monkeypatch):
    """Registered ones that fit, too, for the model and for the plant."""
    from nh_control.ros import arguments
    from nh_control.scenarios import Scenario

    usable = {"midpoint": None, "of_somebody": None}
    monkeypatch.setattr(Scenario, "usable_integrators", lambda self, system: usable)
    given = arguments.of_scenario(scenarios.get("pendulum_swing_up"))
    offered = {argument.entry.name: argument.entry.choices for argument in given}
    assert offered["integrator"] == offered["plant.integrator"] == ("midpoint", "of_somebody")


@pytest.mark.parametrize("name", EVERY)
def test_every_parameter_of_the_file_except_the_scenario_has_an_argument(name):
    """The launch file offers what the parameter file holds; the scenario is fixed by the launch
    file's name.
    """
    from nh_control.ros import bringup
    from nh_control.ros.runtime.declared import HARDWARE
    from nh_control.ros.runtime.parameter_file import parameter_file

    parameters = yaml.safe_load(parameter_file(scenarios.get(name)))["/**"]["ros__parameters"]
    offered = {argument.entry.name for argument in bringup.parameters(scenarios.get(name))}
    of_hardware = {spec.name for spec in HARDWARE}
    robot = set() if name == "urdf" else {"urdf", "base", "accept_any_inertia"}
    assert offered == set(flat(parameters)) - {"scenario"} - of_hardware - robot


def flat(parameters, prefix=""):
    """Return {dotted name: value} of nested parameters."""
    out = {}
    for name, value in parameters.items():
        out.update(
            flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
        )
    return out


# --- hardware ------------------------------------------------------------------------------------


def test_hardware_replaces_the_plant(launched):
    actions = launched("hil", scenario="snakeboard", hardware_noise="0.01", disarm_error="0.5")
    assert set(actions) == {"tracker", "display", "rviz2", "robot_state_publisher"}
    *files, given = actions["tracker"]["parameters"]
    assert files == [{"fallback": "damp"}, {"source": "hardware"}]
    assert given == {"scenario": "snakeboard", "hardware.noise": 0.01, "disarm.error": 0.5}
    assert actions["rviz2"]["parameters"] == [{"use_sim_time": False}]


def test_a_shadow_compares_the_plant_or_the_hardware_with_the_model(launched):
    given = {"shadow": "true", "plant_m": "1.5", "step_s": "0.005"}
    actions = launched("scenario", scenario="snakeboard", **given)
    assert set(launched("scenario", scenario="snakeboard")) == set(actions) - {"shadow"}
    assert inline(actions["plant"])["plant.parameters.m"] == 1.5
    assert inline(actions["shadow"]) == {"scenario": "snakeboard", "step_s": 0.005}
    assert actions["shadow"]["parameters"][:-1] == actions["plant"]["parameters"][:-1]
    actions = launched("hil", scenario="snakeboard", **given)
    assert actions["shadow"]["parameters"][:-1] == [{"fallback": "damp"}, {"source": "hardware"}]
    assert inline(actions["shadow"])["plant.parameters.m"] == 1.5


def test_hardware_has_an_argument_for_each_of_its_parameters():
    from nh_control.ros import arguments
    from nh_control.ros.runtime.declared import HARDWARE

    offered = {argument.entry.name for argument in arguments.of_hardware()}
    assert offered == {spec.name for spec in HARDWARE} - {"source"}


def test_a_file_of_parameters_wins_over_the_scenario_and_loses_against_arguments(
    launched, tmp_path
):
    file = tmp_path / "mine.yaml"
    file.write_text("/**: {ros__parameters: {fallback: zero}}")
    plant = launched(params_file=str(file), speed_factor="2")["plant"]
    assert plant["parameters"] == [{"fallback": "damp"}, str(file), {"speed_factor": 2.0}]


# --- any scenario --------------------------------------------------------------------------------

EXAMPLES = ROOT / "resource" / "examples"


@pytest.mark.parametrize("name", ["snakeboard", "quadrotor_payload"])
def test_the_general_launch_file_starts_the_same_nodes(launched, name):
    general, own = launched("scenario", scenario=name), launched(name)
    assert set(general) == set(own)
    for executable in ("plant", "tracker", "display"):
        assert general[executable]["parameters"][0] == own[executable]["parameters"][0]
        assert inline(general[executable]) == {"scenario": name}
    assert general["rviz2"]["arguments"] == own["rviz2"]["arguments"]


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_a_user_s_file_determines_the_arguments_of_its_launch(launched, name):
    robots = {"upkie": "upkie_description", "jvrc1": "jvrc_description"}
    package = {**robots, "ur5e_around_ball": "airo_models"}.get(name)
    if package:
        reason = "needs the robot: pip install -e '.[urdf-test]'"
        pytest.importorskip(package, reason=reason)
    file = EXAMPLES / f"{name}.py"
    scenario = scenarios.get(str(file))
    errors = [d.name for d in declarations(scenario.no_perturbation) if not d.is_integer]
    numbers = [d.name for d in declarations(scenario.parameters)]
    reference = list(scenario.references)[-1]
    target = list(scenario.targets(scenario.make_system(scenario.parameters)).values())[-1]
    push = f"{target.name}:constant:" + ",".join(["0.1"] * target.n)
    given = {"reference": reference, f"perturb_{errors[0]}": "0.2", "disturb": push}
    given |= {f"plant_{numbers[0]}": "1.5", "headless": "true", "speed_factor": "0"}
    actions = launched("scenario", scenario=str(file), **given)
    assert set(actions) == {"plant", "tracker"}
    assert inline(actions["plant"]) == {
        "scenario": scenario.origin["scenario"],
        "reference": reference,
        f"perturb.{errors[0]}": 0.2,
        "disturb": [push],
        f"plant.parameters.{numbers[0]}": 1.5,
        "on_finish": "exit",
        "speed_factor": 0.0,
    }
    assert actions["plant"]["parameters"][:-1] == [n for n in [scenario.nodes] if n]


def test_rviz_views_a_user_s_file_from_its_frame(launched):
    file = EXAMPLES / "underwater_vehicle.py"
    actions = launched("scenario", scenario=str(file))
    assert set(actions) == {"plant", "tracker", "display", "rviz2"}
    view = actions["rviz2"]["arguments"]
    parent = scenarios.get(str(file)).visual_model().parent
    assert view[view.index("--fixed-frame") + 1] == parent
    assert Path(view[1]) == ROOT / "config" / "scenario.rviz"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"scenario": "unicycle"}, "unknown scenario 'unicycle'"),
        ({"scenario": "snakeboard", "perturb_swing": "0.1"}, "choose one of .*perturb_position"),
        ({"scenario": "cart_pole", "plant_mass": "0.1"}, "'plant_mass'.*plant_m_cart"),
        ({"scenario": "snakeboard", "urdf": "robot.urdf"}, "takes no robot"),
    ],
)
def test_arguments_that_a_scenario_lacks_are_refused_before_the_start(launched, arguments, error):
    with pytest.raises(ValueError, match=error):
        launched("scenario", **arguments)


def test_a_scenario_s_launch_file_refuses_arguments_of_other_scenarios(launched):
    with pytest.raises(ValueError, match="'plant_payload_mass'.*plant_m_cart"):
        launched("cart_pole", plant_payload_mass="0.5")
    assert inline(launched("cart_pole", plant_m_cart="0.5")["plant"]) == {
        "plant.parameters.m_cart": 0.5
    }


def test_the_general_launch_file_accepts_a_robot_file(launched):
    actions = launched("scenario", scenario="urdf", base="floating")
    assert inline(actions["plant"]) == {"scenario": "urdf", "base": "floating"}
    assert "robot_state_publisher" in actions


# --- several robots ------------------------------------------------------------------------------


def test_several_robots_have_separate_namespaces_frames_and_clocks_and_one_rviz(launched_all):
    actions = launched_all("multi", scenario="snakeboard", robots="left right", record="true")
    by_robot = {
        name: [action["executable"] for action in actions if action.get("namespace") == name]
        for name in ("left", "right")
    }
    own = ["plant", "tracker", "display", "robot_state_publisher", "static_transform_publisher"]
    assert by_robot == {"left": [*own, "rviz2"], "right": own}
    (command,) = [action["cmd"] for action in actions if action["executable"] == "record"]
    wanted = {"/left/joint_states", "/right/joint_states", "/left/clock", "/tf", "/diagnostics"}
    assert wanted <= set(command) and command.count("/clock") == 1
    models = [one for one in actions if one["executable"] == "robot_state_publisher"]
    assert [one["parameters"][0]["frame_prefix"] for one in models] == ["left/", "right/"]
    assert all(one["remappings"] == [("/clock", "clock")] for one in models)
    places = [one for one in actions if one["executable"] == "static_transform_publisher"]
    assert places[1]["arguments"][::2] == ["--y", "--frame-id", "--child-frame-id"]
    assert [one["arguments"][1::2] for one in places] == [
        ["0", "world", "left/odom"],
        ["3", "world", "right/odom"],
    ]


def test_rviz_shows_every_robot_in_its_frames(launched_all):
    (viewer,) = [
        action
        for action in launched_all("multi", scenario="snakeboard", robots="3")
        if action["executable"] == "rviz2"
    ]
    arguments = viewer["arguments"]
    assert arguments[arguments.index("--fixed-frame") + 1] == "world"
    manager = yaml.safe_load(Path(arguments[1]).read_text())["Visualization Manager"]
    groups = [one for one in manager["Displays"] if one["Class"] == "rviz_common/Group"]
    assert [group["Name"] for group in groups] == ["robot1", "robot2", "robot3"]
    for group in groups:
        shown = {one["Class"].split("/")[1]: one for one in group["Displays"]}
        assert shown["RobotModel"]["TF Prefix"] == group["Name"]
        assert shown["RobotModel"]["Description Topic"]["Value"] == (
            f"/{group['Name']}/robot_description"
        )
        assert shown["MarkerArray"]["Topic"]["Value"] == f"/{group['Name']}/markers"
    common = {one["Class"].split("/")[1] for one in manager["Displays"]}
    assert common == {"Grid", "TF", "Group"}


@pytest.mark.parametrize(
    ("given", "prefix"),
    [({}, "one/"), ({"frame_prefix": "a_"}, "a_"), ({"clock": "global"}, "one/")],
)
def test_a_robot_in_a_namespace_is_shown_in_its_frames_and_time(launched, given, prefix):
    actions = launched(namespace="one", **given)
    arguments = actions["rviz2"]["arguments"]
    assert arguments[arguments.index("--fixed-frame") + 1] == f"{prefix}odom"
    manager = yaml.safe_load(Path(arguments[1]).read_text())["Visualization Manager"]
    assert manager["Views"]["Current"]["Target Frame"] == f"{prefix}odom"
    (model,) = [one for one in manager["Displays"] if one["Name"] == "Snakeboard"]
    assert model["TF Prefix"] == prefix.rstrip("/")
    publisher = actions["robot_state_publisher"]
    assert publisher["parameters"][0]["frame_prefix"] == prefix
    assert publisher["parameters"][0]["publish_frequency"] == 50.0
    assert ("remappings" in publisher) == ("clock" not in given)
    assert (("/clock", "clock") in actions["rviz2"]["remappings"]) == ("clock" not in given)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"robots": "a a"}, "different names"),
        ({"robots": "0"}, "got '0'"),
        ({"robots": "-1"}, "got '-1'"),
        ({"robots": "a/b"}, "got 'a/b'"),
        ({"robots": "2 a"}, "got '2 a'"),
        ({"robots": ""}, "got ''"),
        ({"spacing": "far"}, "'spacing': expected a number"),
    ],
)
def test_invalid_robots_are_refused(launched, given, error):
    with pytest.raises(ValueError, match=error):
        launched("multi", scenario="snakeboard", **given)


def test_the_last_of_several_robots_ends_the_launch():
    from launch.events.process import ProcessExited

    from launch import LaunchContext
    from nh_control.ros.bringup import _Exits

    def ended(options, code=0):
        event = ProcessExited(
            action=None, name="x", cmd=[], cwd=None, env=None, pid=1, returncode=code
        )
        return options["on_exit"](event, LaunchContext())

    exits = _Exits()
    first, second = exits.of("plant"), exits.of("plant")
    assert ended(first) == []
    assert len(ended(second)) == 1
    exits = _Exits()
    first, second = exits.of("plant"), exits.of("plant")
    with pytest.raises(RuntimeError, match="exit code 2"):
        ended(first, 2)
    again = _Exits().of("tracker", comes_back=True)
    assert ended(again, -9) == []  # killed: it comes back
    with pytest.raises(RuntimeError, match="exit code 1"):
        ended(again, 1)


@pytest.fixture
def exits():
    """Return f(options, code, shutdown) -> actions after the end of a process."""
    from launch.events.process import ProcessExited

    from launch import LaunchContext
    from nh_control.ros.bringup import _Exits

    def ended(options, code=0, shutdown=False):
        event = ProcessExited(
            action=None, name="x", cmd=[], cwd=None, env=None, pid=1, returncode=code
        )
        context = LaunchContext()
        if shutdown:
            context._set_is_shutdown(True) if HAS_LAUNCH else setattr(context, "is_shutdown", True)
        return options["on_exit"](event, context)

    return _Exits(), ended


def test_a_failed_display_sets_the_exit_code_only(exits):
    made, ended = exits
    display, plant = made.of("display", required=False), made.of("plant")
    assert ended(display, 1) == []
    with pytest.raises(RuntimeError, match="the display ended with exit code 1"):
        ended(plant)
    assert len(ended(plant)) == 1  # told once


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (0, ""),
        (-signal.SIGINT, ""),
        (-signal.SIGTERM, ""),
        (255, ""),  # asyncio does not know it
        (-signal.SIGKILL, "-9"),
        (3, "3"),
    ],
)
def test_a_process_ended_by_the_launch_has_not_failed(exits, code, text):
    made, ended = exits
    plant = made.of("plant")
    if not text:
        ended(plant, code, shutdown=True)
        return
    with pytest.raises(RuntimeError, match=f"exit code {text}"):
        ended(plant, code, shutdown=True)


def test_failures_during_the_end_of_the_launch_are_reported(exits):
    made, ended = exits
    with pytest.raises(RuntimeError, match="the plant ended with exit code -15"):
        ended(made.of("plant"), -signal.SIGTERM)
    with pytest.raises(RuntimeError, match="the plant ended with exit code 255"):
        ended(made.of("plant"), 255)
    with pytest.raises(RuntimeError, match="the display ended with exit code 1"):
        ended(made.of("display", required=False), 1, shutdown=True)


def test_a_killed_tracker_restarts_and_is_reported_at_the_end(exits):
    made, ended = exits
    tracker, plant = made.of("tracker", comes_back=True), made.of("plant")
    assert tracker["respawn"] is True and 0.1 <= tracker["respawn_delay"] <= 1.0
    assert "respawn" not in plant
    assert ended(tracker, -signal.SIGKILL) == []
    with pytest.raises(RuntimeError, match="the tracker ended with exit code -9"):
        ended(plant)


def test_nodes_know_their_launch(launched):
    """They end with it, however it ends."""
    import os

    from nh_control.runs.node_process import PARENT

    for name, action in launched(record="true", shadow="true").items():
        own = name in ("plant", "tracker", "shadow", "display", "record")
        assert (action.get("additional_env") == {PARENT: str(os.getpid())}) is own
        assert ("respawn" in action) is (name == "tracker")
        assert action["output"] == "screen"
        assert name == "record" or action["package"] == {
            "rviz2": "rviz2", "robot_state_publisher": "robot_state_publisher"
        }.get(name, "nh_control")  # fmt: skip


@pytest.mark.parametrize(
    ("given", "simulated"),
    [({}, True), ({"clock": "none"}, False), ({"plant": "false"}, False),
     ({"clock": "global"}, True)],
)  # fmt: skip
def test_viewers_use_the_clock_of_a_plant(launched, given, simulated):
    actions = launched(**given)
    assert actions["rviz2"]["parameters"] == [{"use_sim_time": simulated}]
    assert actions["robot_state_publisher"]["parameters"][1] == {"use_sim_time": simulated}


def test_a_recording_contains_each_topic_of_a_run_once(launched):
    from nh_control.runs import topics

    scenario = scenarios.get("quadrotor_payload")
    command = launched("quadrotor_payload", record="true")["record"]["cmd"]
    assert command[:5] == ["ros2", "bag", "record", "--storage", "mcap"]
    recorded = command[command.index("--topics") + 1 :]
    own = {topic if topic.startswith("/") else f"/{topic}" for topic in topics.recorded(scenario)}
    odometry = {f"/{topic}" for topic in topics.odometry(scenario)}
    assert odometry and own | odometry | {"/tf", "/tf_static", "/robot_description"} <= set(
        recorded
    )
    assert len(recorded) == len(set(recorded)) and "--output" not in command


def test_defaults_start_a_simulation_and_rviz_and_no_recording():
    from nh_control.ros import arguments

    offered = {a.name: a.declare().default_value for a in arguments.options(True)}
    assert offered == {
        "params_file": "",
        "namespace": "",
        "plant": "true",
        "tracker": "true",
        "composed": "false",
        "shadow": "false",
        "headless": "false",
        "rviz": "true",
        "view": "false",
        "use_robot_state_publisher": "true",
        "record": "false",
        "bag": "",
    }
    of_nodes = arguments.parameters(scenarios.get("snakeboard"))
    assert {a.declare().default_value for a in of_nodes} == {""}


@pytest.mark.parametrize(
    ("default", "text", "value"),
    [(False, "True", True), ((0.0, 0.0), "[1, 2.5]", [1.0, 2.5]), ([], " a  b ", ["a", "b"])],
)
def test_texts_become_values(default, text, value):
    """With lists for several numbers, as launch_ros takes them."""
    from nh_control.ros.arguments import Argument

    made = Argument(Declaration("x", default)).value(text)
    assert made == value and type(made) is type(value)


def test_a_value_out_of_range_is_refused_before_the_start(launched):
    said = "'speed_factor': expected a finite number >= 0, got '-1'"
    with pytest.raises(ValueError, match=said):
        launched(speed_factor="-1")


@dataclass(frozen=True)
class Numbers:
    """Parameters of a scenario."""

    count: int = parameter(2, "", "how many")
    lengths: tuple = parameter((1.0, 2.0), "m", "of the links")
    g: float = 9.81


def test_numbers_of_a_scenario_are_arguments_of_their_kind_with_their_units():
    from nh_control.ros import arguments

    numbers = SimpleNamespace(
        make_system=lambda parameters: None, targets=lambda system: {}, references={},
        usable_integrators=lambda system: {}, parameters=Numbers(), no_perturbation=Numbers(),
    )  # fmt: skip
    offered = arguments.of_scenario(numbers)
    made = [one for one in offered if one.entry.name.startswith("plant.parameters.")]
    assert [one.name for one in made] == ["plant_count", "plant_lengths", "plant_g"]
    assert [one.entry.name for one in made][1] == "plant.parameters.lengths"
    assert [type(one.entry.value) for one in made] == [int, tuple, float]
    assert [one.declare().description.partition(";")[0] for one in made] == [
        "How many", "Of the links in m", "G of Numbers"
    ]  # fmt: skip


def test_arguments_of_single_robots_and_plants_are_not_declared_for_others():
    from nh_control.ros import bringup

    names = {
        launch: {one.name for one in description(launch).entities[:-1]}
        for launch in ("scenario", "hil", "multi")
    }
    own = {"namespace", "frame_prefix", "clock", "state_file"}
    assert names["scenario"] - names["multi"] == own == set(bringup.BY_ROBOT)
    assert names["multi"] - names["scenario"] == {"robots", "spacing"}
    assert names["scenario"] - names["hil"] == {"plant"}
    assert {"hardware_armed", "disarm_error"} < names["hil"] - names["scenario"]


def test_an_argument_of_a_parameter_may_be_empty():
    from nh_control.ros.arguments import Argument, argument

    plain = argument("rviz", "start rviz2", True).declare()
    entries = (
        Declaration("on", "a", description="whether", choices=("a", "b")),
        Declaration("speed", 0.0, description="how fast", by_default="the scenario's"),
    )
    choice, free = (Argument(entry, is_parameter=True).declare() for entry in entries)
    assert list(plain.choices) == ["true", "True", "false", "False"]
    assert plain.default_value == "true" and "as in params_file" not in plain.description
    assert list(choice.choices) == ["", "a", "b"] and not free.choices
    assert choice.description == "Whether; empty = as in params_file, else a"
    assert free.description == "How fast; empty = as in params_file, else the scenario's"


def test_robots_are_side_by_side_at_the_requested_distance():
    from nh_control.ros.viewers import Robot, robots

    assert robots({"robots": "a, b c", "spacing": "0.5"}) == [
        Robot("a", "a/", 0.0), Robot("b", "b/", 0.5), Robot("c", "c/", 1.0)
    ]  # fmt: skip
    assert [one.namespace for one in robots({"robots": "2", "spacing": "1"})] == [
        "robot1", "robot2"
    ]  # fmt: skip
    for given, prefix in (("auto", "r/"), ("", "r/"), ("x_", "x_")):
        assert robots({"namespace": "/r/", "frame_prefix": given}) == [Robot("r", prefix)]
    assert robots({"namespace": "", "frame_prefix": "auto"}) == [Robot("", "")]


def test_views_follow_the_frames_of_the_first_robot():
    from nh_control.ros.viewers import Robot, view

    looks = lambda name: {"Target Frame": name}  # noqa: E731
    given = {
        "Visualization Manager": {
            "Displays": [],
            "Views": {
                "Current": looks("<Fixed Frame>"),
                "Saved": [looks("base_link"), looks("<Fixed Frame>"), looks("odom")],
            },
        }
    }
    for shown in ([Robot("a", "a/")], [Robot("a", "a/", 0.0), Robot("b", "b/", 3.0)]):
        views = view(given, shown)["Visualization Manager"]["Views"]
        assert views["Current"] == looks("<Fixed Frame>")
        found = [one["Target Frame"] for one in views["Saved"]]
        assert found == ["a/base_link", "<Fixed Frame>", "a/odom"]


def test_launch_handles_an_interrupt_unless_another_handler_does():
    from nh_control.ros.bringup import _leave_interrupts_to_launch

    before = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _leave_interrupts_to_launch()
        signal.raise_signal(signal.SIGINT)  # raises nothing
        own = signal.getsignal(signal.SIGINT)
        _leave_interrupts_to_launch()
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_end_of_plant_or_tracker_ends_the_launch_but_not_of_viewers(launched, exits):
    _, ended = exits
    actions = launched(shadow="true")
    ends = {name: len(ended(actions[name])) for name in ("display", "shadow", "plant", "tracker")}
    assert ends == {"display": 0, "shadow": 0, "plant": 1, "tracker": 1}


def test_arguments_have_the_choices_and_types_of_their_parameters():
    pytest.importorskip("rcl_interfaces", reason="needs ROS messages: install the extra 'ros'")
    from nh_control.ros import arguments
    from nh_control.ros.runtime.declared import ALL

    offered = (*arguments.robot(), *arguments.of_all(), *arguments.of_hardware())
    for argument in offered:
        entry = ALL[argument.entry.name]
        assert argument.entry == entry
        choices = arguments.BOOL if isinstance(entry.value, bool) else entry.choices
        assert {*(argument.declare().choices or ())} - {""} == set(choices), argument.name


# --- ros2_control --------------------------------------------------------------------------------

CONTROL = ("controller_manager", "joint_state_topic_hardware_interface", "robot_state_publisher")


@pytest.fixture
def controlled(monkeypatch, tmp_path, launched_all):
    """Return f(**launch arguments) -> keyword arguments of all Nodes."""
    from nh_control.ros import controllers

    monkeypatch.setattr(controllers, "OpaqueFunction", lambda function: function)
    monkeypatch.setattr(controllers, "launch_config", SimpleNamespace(log_dir=str(tmp_path)))
    found = lambda: dict.fromkeys(CONTROL)  # noqa: E731
    monkeypatch.setattr(controllers, "get_packages_with_prefixes", found)
    return lambda **given: launched_all("ros2_control", **given)


def test_a_plant_behind_ros2_control(controlled):
    plant, model, manager, spawner = controlled(scenario="cart_pole")
    assert [plant["executable"], manager["executable"]] == ["plant", "ros2_control_node"]
    (given,) = plant["parameters"]
    assert given["command_interface"] == "position" and given["clock"] == "global"
    renamed = dict(plant["remappings"])
    urdf = model["parameters"][0]["robot_description"].value
    assert f">/{renamed['joint_states']}<" in urdf and f">/{renamed['joint_commands']}<" in urdf
    file, sim_time = manager["parameters"]
    assert sim_time == {"use_sim_time": True} == model["parameters"][1]
    names = ["joint_state_broadcaster", "joint_trajectory_controller"]
    assert spawner["arguments"] == [*names, "--param-file", file]
    stated = yaml.safe_load(Path(file).read_text())
    assert stated["joint_trajectory_controller"]["ros__parameters"]["joints"] == ["cart_joint"]


def test_the_tracker_commands_by_a_controller_of_efforts(controlled):
    *_, tracker = controlled(tracker="true", interface="effort", controllers_file="own.yaml")
    given, sim_time = tracker["parameters"]
    assert given["hardware.command_array"] == "effort_controller/commands"
    assert given["source"] == "hardware" and sim_time == {"use_sim_time": True}
    with pytest.raises(ValueError, match="give interface:=effort"):
        controlled(tracker="true")


def test_ros2_control_that_is_not_installed_is_told(controlled, monkeypatch):
    from nh_control.ros import controllers

    monkeypatch.setattr(controllers, "get_packages_with_prefixes", dict)
    with pytest.raises(ValueError, match="install controller_manager, joint_state_topic"):
        controlled()
