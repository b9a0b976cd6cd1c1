"""launch/*.launch.py: always that they compile and are complete; with `launch` installed, what they start for which arguments."""
import ast
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAUNCH_FILES = sorted((ROOT / "launch").glob("*.launch.py"))
SNAKEBOARD = ROOT / "launch" / "snakeboard.launch.py"

HAS_LAUNCH = all(importlib.util.find_spec(name) for name in ("launch", "launch_ros"))
needs_launch = pytest.mark.skipif(not HAS_LAUNCH, reason="launch and launch_ros come with a ROS installation, they are not on PyPI")


@pytest.mark.parametrize("path", LAUNCH_FILES, ids=lambda path: path.name)
def test_launch_file_compiles_and_defines_its_entry_point(path):
    tree = ast.parse(path.read_text(), filename=str(path))
    compile(tree, str(path), "exec")
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert "generate_launch_description" in functions
    assert ast.get_docstring(tree)


@pytest.mark.parametrize("path", LAUNCH_FILES, ids=lambda path: path.name)
def test_launch_file_starts_executables_that_exist(path):
    setup = (ROOT / "setup.py").read_text()
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    started = [
        call.args[0].value
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "nh_control" and isinstance(call.args[0], ast.Constant)
    ]
    assert started
    for executable in started:
        assert f'"{executable} = nh_control.ros.{executable}:main"' in setup


class Started(dict):
    """Stands in for launch_ros.actions.Node: keeps the arguments it was given."""


@pytest.fixture
def launched(monkeypatch):
    """Return f(**launch arguments) -> {executable: keyword arguments of its Node}, recordings under 'record'."""
    from launch import LaunchContext
    from launch.actions import DeclareLaunchArgument

    spec = importlib.util.spec_from_file_location("snakeboard_launch", SNAKEBOARD)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "Node", Started)
    monkeypatch.setattr(module, "ExecuteProcess", lambda **options: Started(executable="record", **options))

    def run(**arguments):
        context = LaunchContext()
        context.launch_configurations.update(arguments)
        for entity in module.generate_launch_description().entities:
            if isinstance(entity, DeclareLaunchArgument):
                entity.execute(context)
        return {action["executable"]: action for action in module.start(context)}

    return run


def inline(action):
    """Parameters of a node that win over its parameter file."""
    return action["parameters"][-1]


@needs_launch
def test_default_starts_everything_but_the_recording(launched):
    actions = launched()
    assert set(actions) == {"plant", "tracker", "display", "robot_state_publisher", "rviz2"}
    assert inline(actions["plant"]) == {}
    assert Path(actions["plant"]["parameters"][0]).is_file()
    assert {name for name, action in actions.items() if "on_exit" in action} == {"plant", "tracker"}


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
    ],
)
def test_switches(launched, arguments, executables):
    assert set(launched(**arguments)) == executables


@needs_launch
def test_given_arguments_become_typed_inline_parameters(launched):
    actions = launched(
        speed_factor="2", lockstep="true", integral="false", plant_substeps="4", plant_m="1.1", perturb_seed="7", on_finish="exit"
    )
    expected = {
        "speed_factor": 2.0,
        "lockstep": True,
        "integral": False,
        "plant.substeps": 4,
        "plant.parameters.m": 1.1,
        "perturb.seed": 7,
        "on_finish": "exit",
    }
    for executable in ("plant", "tracker", "display"):
        got = inline(actions[executable])
        assert got == expected
        assert {name: type(value) for name, value in got.items()} == {name: type(value) for name, value in expected.items()}


@needs_launch
def test_headless_ends_with_the_maneuver_unless_told_otherwise(launched):
    assert inline(launched(headless="true")["plant"]) == {"on_finish": "exit"}
    assert inline(launched(headless="true", on_finish="stay")["plant"]) == {"on_finish": "stay"}


@needs_launch
def test_the_plant_waits_for_the_recording(launched):
    assert inline(launched(record="true")["plant"]) == {"wait_for": ["rosbag2_recorder"]}


@needs_launch
def test_namespace_reaches_nodes_recording_and_rviz(launched):
    actions = launched(namespace="/board", record="true", bag="run")
    assert all(action["namespace"] == "board" for name, action in actions.items() if name != "record")
    command = actions["record"]["cmd"]
    assert command[command.index("--output") + 1] == "run"
    assert "/board/joint_states" in command
    assert "/clock" in command
    assert ("/markers", "markers") in actions["rviz2"]["remappings"]


@needs_launch
@pytest.mark.parametrize(("argument", "text"), [("plant_substeps", "2.5"), ("speed_factor", "fast")])
def test_a_wrong_number_names_the_argument(launched, argument, text):
    with pytest.raises(ValueError, match=f"'{argument}': expected .* got '{text}'"):
        launched(**{argument: text})


@needs_launch
def test_a_missing_parameter_file_is_named(launched):
    with pytest.raises(ValueError, match="'params_file': no such file 'missing.yaml'"):
        launched(params_file="missing.yaml")


@needs_launch
@pytest.mark.parametrize("argument", ["rviz", "lockstep", "reference", "plant_integrator", "on_finish", "fallback"])
def test_a_wrong_choice_lists_the_valid_ones(launched, argument):
    with pytest.raises(RuntimeError, match=f'"{argument}" provided value "nonsense" is not valid. Valid options are'):
        launched(**{argument: "nonsense"})


@needs_launch
def test_every_parameter_of_the_file_but_the_scenario_has_an_argument(launched):
    """The launch file offers what the parameter file holds; the scenario is fixed by the launch file's name."""
    yaml = pytest.importorskip("yaml")
    spec = importlib.util.spec_from_file_location("snakeboard_launch", SNAKEBOARD)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    parameters = yaml.safe_load((ROOT / "config" / "snakeboard.yaml").read_text())["/**"]["ros__parameters"]
    assert {parameter for _, parameter, *_ in module.PARAMETERS} == set(flat(parameters)) - {"scenario"}


def flat(parameters, prefix=""):
    """Return {dotted name: value} of nested parameters."""
    out = {}
    for name, value in parameters.items():
        out.update(flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value})
    return out
