"""launch/*.launch.py: always that they compile and are complete; with `launch` installed, what
they start for which arguments.
"""

import ast
import importlib.util
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from nh_control import scenarios
from nh_control.mechanics.parameters import declarations

ROOT = Path(__file__).parents[1]
LAUNCH_FILES = {
    path.name.removesuffix(".launch.py"): path
    for path in sorted((ROOT / "launch").glob("*.launch.py"))
}
ANY = ("scenario", "hil", "multi")
NAMED = [name for name in LAUNCH_FILES if name not in ANY]
BRINGUP = ROOT / "nh_control" / "ros" / "bringup.py"

HAS_LAUNCH = all(importlib.util.find_spec(name) for name in ("launch", "launch_ros"))
needs_launch = pytest.mark.skipif(
    not HAS_LAUNCH,
    reason="launch and launch_ros come with a ROS installation, they are not on PyPI",
)


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
    for suffix in ("yaml", "rviz"):
        assert name in ("hil", "multi") or (ROOT / "config" / f"{name}.{suffix}").is_file()


def test_launch_starts_executables_that_exist():
    setup = (ROOT / "setup.py").read_text()
    started = [constants[0] for function, constants in calls(BRINGUP) if function == "own"]
    assert set(started) == {"plant", "tracker", "display", "shadow"}
    for executable in started:
        assert f'"{executable} = nh_control.ros.nodes.start:{executable}"' in setup


class Started(dict):
    """Stands in for launch_ros.actions.Node: keeps the arguments it was given."""


def description(name):
    """Return the launch description of a launch file, loaded as `ros2 launch` does."""
    spec = importlib.util.spec_from_file_location("launch_file", LAUNCH_FILES[name])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.generate_launch_description()


OTHERS = ("ros2bag", "robot_state_publisher", "rviz2", "tf2_ros")


@pytest.fixture
def packages():
    """What is installed beside this package: all, unless a test says otherwise."""
    return list(OTHERS)


@pytest.fixture
def launched_all(monkeypatch, packages, tmp_path):
    """Return f(scenario, **launch arguments) -> keyword arguments of all Nodes, recordings with
    the executable 'record'.
    """
    from launch.actions import DeclareLaunchArgument

    from launch import LaunchContext
    from nh_control.ros import bringup, viewers

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
    """Parameters of a node that win over its parameter file."""
    return action["parameters"][-1]


@needs_launch
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
    assert Path(actions["plant"]["parameters"][0]) == ROOT / "config" / f"{name}.yaml"
    assert Path(actions["rviz2"]["arguments"][1]) == ROOT / "config" / f"{name}.rviz"
    assert {executable for executable, action in actions.items() if "on_exit" in action} == {
        "plant",
        "tracker",
        "display",
    }


@needs_launch
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
    ],
)
def test_switches(launched, arguments, executables):
    assert set(launched(**arguments)) == executables


@needs_launch
@pytest.mark.parametrize("packages", [[]], ids=["nothing"])
def test_packages_that_are_missing_are_left_out_with_a_word_or_refused(launched, packages):
    warnings = [f"WARNING: {name} is not installed" for name in OTHERS[1:3]]
    started = list(launched())
    assert started[:3] == ["plant", "tracker", "display"]
    assert [text.split(":")[0] + ":" + text.split(":")[1] for text in started[3:]] == warnings
    with pytest.raises(ValueError, match="'record': ros2bag is not installed"):
        launched(record="true")


@needs_launch
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


@needs_launch
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


@needs_launch
def test_headless_ends_with_the_reference_unless_told_otherwise(launched):
    assert inline(launched(headless="true")["plant"]) == {"on_finish": "exit"}
    assert inline(launched(headless="true", on_finish="stay")["plant"]) == {"on_finish": "stay"}


@needs_launch
def test_the_plant_waits_for_the_recording(launched):
    assert inline(launched(record="true")["plant"]) == {"wait_for": ["rosbag2_recorder"]}


@needs_launch
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


@needs_launch
@pytest.mark.parametrize("name", NAMED)
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


@needs_launch
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


@needs_launch
def test_a_robot_of_a_file_reaches_nodes_robot_model_and_rviz(launched, tmp_path):
    from nh_control.scenarios.urdf import DEFAULT

    file = tmp_path / "robot.urdf"
    file.write_text(DEFAULT.read_text().replace("base_link", "pelvis"))
    for given, frame in (({}, "pelvis"), ({"base": "floating"}, "world")):
        actions = launched("urdf", urdf=str(file), **given)
        assert (
            inline(actions["plant"]) == inline(actions["tracker"]) == {"urdf": str(file), **given}
        )
        assert (
            actions["robot_state_publisher"]["parameters"][0]["robot_description"].value
            == file.read_text()
        )
        view = actions["rviz2"]["arguments"]
        assert view[view.index("--fixed-frame") + 1] == frame


@needs_launch
def test_a_file_that_is_no_robot_is_refused_before_anything_starts(launched, tmp_path):
    with pytest.raises(FileNotFoundError):
        launched("urdf", urdf=str(tmp_path / "none.urdf"))


@needs_launch
def test_a_missing_parameter_file_is_named(launched):
    with pytest.raises(ValueError, match="'params_file': no such file 'missing.yaml'"):
        launched(params_file="missing.yaml")


@needs_launch
@pytest.mark.parametrize(
    "argument", ["rviz", "lockstep", "reference", "plant_integrator", "on_finish", "fallback"]
)
def test_a_wrong_choice_lists_the_valid_ones(launched, argument):
    with pytest.raises(
        RuntimeError,
        match=f'"{argument}" provided value "nonsense" is not valid. Valid options are',
    ):
        launched(**{argument: "nonsense"})


@needs_launch
@pytest.mark.parametrize("name", NAMED)
def test_every_parameter_of_the_file_but_the_scenario_has_an_argument(name):
    """The launch file offers what the parameter file holds; the scenario is fixed by the launch
    file's name.
    """
    from nh_control.ros import bringup

    parameters = yaml.safe_load((ROOT / "config" / f"{name}.yaml").read_text())["/**"][
        "ros__parameters"
    ]
    offered = {argument.parameter for argument in bringup.parameters(scenarios.get(name))}
    assert offered == set(flat(parameters)) - {"scenario"}
    assert {
        f"plant.parameters.{field.name}" for field in fields(scenarios.get(name).parameters)
    } <= offered


def flat(parameters, prefix=""):
    """Return {dotted name: value} of nested parameters."""
    out = {}
    for name, value in parameters.items():
        out.update(
            flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
        )
    return out


# --- hardware ------------------------------------------------------------------------------------


@needs_launch
def test_hardware_takes_the_place_of_the_plant(launched):
    actions = launched("hil", scenario="snakeboard", hardware_noise="0.01", disarm_error="0.5")
    assert set(actions) == {"tracker", "display", "rviz2", "robot_state_publisher"}
    *files, given = actions["tracker"]["parameters"]
    assert [Path(file).name for file in files] == ["snakeboard.yaml", "hardware.yaml"]
    assert given == {"scenario": "snakeboard", "hardware.noise": 0.01, "disarm.error": 0.5}
    assert actions["rviz2"]["parameters"] == [{"use_sim_time": False}]


@needs_launch
def test_a_shadow_compares_the_plant_or_the_hardware_with_the_model(launched):
    given = {"shadow": "true", "plant_m": "1.5", "step_s": "0.005"}
    actions = launched("scenario", scenario="snakeboard", **given)
    assert set(launched("scenario", scenario="snakeboard")) == set(actions) - {"shadow"}
    assert inline(actions["plant"])["plant.parameters.m"] == 1.5
    assert inline(actions["shadow"]) == {"scenario": "snakeboard", "step_s": 0.005}
    assert actions["shadow"]["parameters"][:-1] == actions["plant"]["parameters"][:-1]
    actions = launched("hil", scenario="snakeboard", **given)
    files = [Path(file).name for file in actions["shadow"]["parameters"][:-1]]
    assert files == ["snakeboard.yaml", "hardware.yaml"]
    assert inline(actions["shadow"])["plant.parameters.m"] == 1.5


@needs_launch
def test_hardware_has_an_argument_for_every_parameter_of_its_file():
    from nh_control.ros import arguments

    file = yaml.safe_load((ROOT / "config" / "hardware.yaml").read_text())
    stated = set(flat(file["/**"]["ros__parameters"])) - {"source"}
    assert {argument.parameter for argument in arguments.of_hardware()} == stated


# --- any scenario --------------------------------------------------------------------------------

EXAMPLES = ROOT / "resource" / "examples"


@needs_launch
@pytest.mark.parametrize("name", ["snakeboard", "quadrotor_payload"])
def test_the_general_launch_file_starts_what_the_scenarios_own_does(launched, name):
    general, own = launched("scenario", scenario=name), launched(name)
    assert set(general) == set(own)
    for executable in ("plant", "tracker", "display"):
        assert general[executable]["parameters"][0] == own[executable]["parameters"][0]
        assert inline(general[executable]) == {"scenario": name}
    assert general["rviz2"]["arguments"] == own["rviz2"]["arguments"]


@needs_launch
@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_a_file_of_ones_own_is_launched_with_arguments_that_follow_from_it(launched, name):
    file = EXAMPLES / f"{name}.py"
    scenario = scenarios.get(str(file))
    errors = [d.name for d in declarations(scenario.calm) if not d.is_integer]
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
    assert Path(actions["plant"]["parameters"][0]) == ROOT / "config" / "scenario.yaml"


@needs_launch
def test_rviz_looks_at_a_file_of_ones_own_from_its_frame(launched):
    file = EXAMPLES / "underwater_vehicle.py"
    actions = launched("scenario", scenario=str(file))
    assert set(actions) == {"plant", "tracker", "display", "rviz2"}
    view = actions["rviz2"]["arguments"]
    parent = scenarios.get(str(file)).visual_model().parent
    assert view[view.index("--fixed-frame") + 1] == parent
    assert Path(view[1]) == ROOT / "config" / "scenario.rviz"


@needs_launch
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"scenario": "unicycle"}, "unknown scenario 'unicycle'"),
        ({"scenario": "snakeboard", "perturb_swing": "0.1"}, "choose one of .*perturb_position"),
        ({"scenario": "cart_pole", "plant_mass": "0.1"}, "'plant_mass'.*plant_m_cart"),
        ({"scenario": "snakeboard", "urdf": "robot.urdf"}, "takes no robot"),
    ],
)
def test_what_a_scenario_does_not_have_is_refused_before_anything_starts(
    launched, arguments, error
):
    with pytest.raises(ValueError, match=error):
        launched("scenario", **arguments)


@needs_launch
def test_the_general_launch_file_takes_the_robot_of_a_file(launched):
    actions = launched("scenario", scenario="urdf", base="floating")
    assert inline(actions["plant"]) == {"scenario": "urdf", "base": "floating"}
    assert "robot_state_publisher" in actions


# --- several robots ------------------------------------------------------------------------------


@needs_launch
def test_several_robots_have_namespaces_frames_and_clocks_and_one_rviz(launched_all):
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
    assert [one["arguments"][1::2] for one in places] == [
        ["0", "world", "left/odom"],
        ["3", "world", "right/odom"],
    ]


@needs_launch
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


@needs_launch
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
    assert ("remappings" in publisher) == ("clock" not in given)
    assert (("/clock", "clock") in actions["rviz2"]["remappings"]) == ("clock" not in given)


@needs_launch
@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"robots": "a a"}, "different names"),
        ({"robots": "0"}, "got '0'"),
        ({"robots": "-1"}, "got '-1'"),
        ({"robots": "a/b"}, "got 'a/b'"),
        ({"spacing": "far"}, "'spacing': expected a number"),
    ],
)
def test_robots_that_cannot_be_are_refused(launched, given, error):
    with pytest.raises(ValueError, match=error):
        launched("multi", scenario="snakeboard", **given)


@needs_launch
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
