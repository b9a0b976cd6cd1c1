"""launch/*.launch.py: the started nodes for given arguments, with `launch` if it is installed, or
with stand-ins.
"""

import importlib.util
import json
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import launch_stand_in
import pytest
import yaml
from test_package import flat

from nh_control import scenarios
from nh_control.mechanics.parameters import Declaration, declarations
from nh_control.runs.settings import ORIGIN
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
EXAMPLES = ROOT / "resource" / "examples"

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
    """Return f(scenario, **launch arguments) -> keyword arguments of all Nodes and recordings."""
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


GIVEN = "speed_factor=2 integral=false plant_substeps=4 plant_m=1.1 perturb_seed=7 on_finish=exit"
LAUNCHES = (
    "snakeboard",
    "quadrotor_payload",
    "urdf",
    "snakeboard lockstep=True headless=True",
    "snakeboard headless=true on_finish=stay reference=/motions/pick.csv",
    "snakeboard composed=true rviz=false speed_factor=2.0",
    "snakeboard composed=true tracker=false use_robot_state_publisher=false",
    f"snakeboard lockstep=true {GIVEN}",
    "quadrotor_payload plant_lengths=[0.7,0.9] perturb_tilt=0.5 reference=free:theta=1.0 "
    "disturb=payload:gust:1,-2,0,start=3+quad1:constant:0,0,1",
    "snakeboard namespace=/test record=true bag=run shadow=true view=true",
    "quadrotor_payload namespace=/test record=true",
    "snakeboard record=true clock=none",
    "snakeboard plant=false clock=global",
    "scenario scenario=+snakeboard namespace=+one+ duration_s=+3 speed_factor=++",
    "scenario scenario=snakeboard shadow=true plant_m=1.5 step_s=0.005",
    "scenario scenario=urdf base=floating",
    "scenario scenario=EXAMPLES/underwater_vehicle.py",
    "hil scenario=snakeboard shadow=true plant_m=1.5 hardware_noise=0.01 disarm_error=0.5",
    "multi scenario=snakeboard robots=left+right record=true",
    "cart_pole plant_m_cart=0.5",
    "snakeboard rviz=false",
    "snakeboard headless=true record=true",
    "snakeboard headless=true tracker=false",
    "snakeboard headless=true plant=false",
    "snakeboard headless=true shadow=true",
    "snakeboard headless=true view=true",
    "snakeboard rviz=false use_robot_state_publisher=false",
)
"""Launch files with their arguments; + is a space."""


def started(actions, folder):
    """The keyword arguments of all nodes, a line each, without places on this machine."""

    def plain(value):
        if isinstance(value, dict):
            return {plain(key): plain(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [plain(one) for one in value]
        if hasattr(value, "value"):
            return f"robot {value.value.partition('name=')[2].partition('>')[0]}"
        if isinstance(value, str | Path):
            value = "PID" if value == str(os.getpid()) else str(value)
            return value.replace(str(ROOT), "ROOT").replace(str(folder), "FOLDER")
        return "a function" if callable(value) else value

    return [json.dumps(plain(action), sort_keys=True) for action in actions]


def arguments_of(words):
    """Name of a launch file, and its arguments."""
    name, *given = words.replace("EXAMPLES", str(EXAMPLES)).split()
    pairs = (one.replace("+", " ").split("=", 1) for one in given)
    return name, dict(pairs)


@pytest.mark.parametrize("words", LAUNCHES)
def test_a_launch_starts_these_nodes(launched_all, words, tmp_path, snapshot):
    name, given = arguments_of(words)
    assert started(launched_all(name, **given), tmp_path) == snapshot


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("quadrotor_payload plant_substeps=2.5", "'plant_substeps': expected .* got '2.5'"),
        ("quadrotor_payload speed_factor=fast", "'speed_factor': expected .* got 'fast'"),
        ("quadrotor_payload plant_lengths=[0.6;0.8]", "'plant_lengths': expected .*0.6;0.8"),
        ("snakeboard speed_factor=-1", "'speed_factor': expected a finite number >= 0, got '-1'"),
        ("snakeboard params_file=missing.yaml", "'params_file': no such file 'missing.yaml'"),
        ("snakeboard rviz=no_way", 'value "no_way" is not valid. Valid options are'),
        ("snakeboard lockstep=no_way", 'value "no_way" is not valid. Valid options are'),
        ("snakeboard plant_integrator=no_way", 'value "no_way" is not valid. Valid options are'),
        ("snakeboard fallback=no_way", 'value "no_way" is not valid. Valid options are'),
        ("urdf urdf=/none.urdf", "none.urdf"),
        ("scenario scenario=unicycle", "unknown scenario 'unicycle'"),
        ("scenario scenario=snakeboard perturb_swing=0.1", "choose one of .*perturb_position"),
        ("scenario scenario=cart_pole plant_mass=0.1", "'plant_mass'.*plant_m_cart"),
        ("scenario scenario=snakeboard urdf=robot.urdf", "takes no robot"),
        ("cart_pole plant_payload_mass=0.5", "'plant_payload_mass'.*plant_m_cart"),
        ("multi scenario=snakeboard robots=a+a", "different names"),
        ("multi scenario=snakeboard robots=0", "got '0'"),
        ("multi scenario=snakeboard robots=-1", "got '-1'"),
        ("multi scenario=snakeboard robots=a/b", "got 'a/b'"),
        ("multi scenario=snakeboard robots=2+a", "got '2 a'"),
        ("multi scenario=snakeboard robots=", "got ''"),
        ("multi scenario=snakeboard spacing=far", "'spacing': expected a number"),
    ],
)
def test_what_cannot_be_launched_is_refused_before_the_start(launched, words, error):
    name, given = arguments_of(words)
    with pytest.raises((ValueError, RuntimeError, FileNotFoundError), match=error):
        launched(name, **given)


@pytest.mark.parametrize("name", ["snakeboard", "hil", "multi"])
def test_arguments_are_declared_with_defaults_choices_and_meanings(launched_all, name, snapshot):
    """Those of a parameter are empty by default: the value in params_file applies."""
    declared = [one for one in description(name).entities if hasattr(one, "default_value")]
    said = [f"{a.name} = {text(a.default_value)!r} {a.choices or ''}: {text(a.description)}"
            for a in declared]  # fmt: skip
    assert said == snapshot


def text(value):
    """A text that `launch` keeps as substitutions."""
    return value if isinstance(value, str) else "".join(one.text for one in value)


@pytest.mark.parametrize("packages", [[]], ids=["nothing"])
def test_missing_packages_are_omitted_with_a_message_or_refused(launched, packages):
    warnings = [f"WARNING: {name} is not installed" for name in OTHERS[1:3]]
    started = list(launched())
    assert started[:3] == ["plant", "tracker", "display"]
    assert [text.split(":")[0] + ":" + text.split(":")[1] for text in started[3:]] == warnings
    with pytest.raises(ValueError, match="'record': ros2bag is not installed"):
        launched(record="true")


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


@pytest.mark.parametrize("name", EVERY)
def test_every_parameter_of_the_file_except_the_scenario_has_an_argument(name):
    """The scenario is fixed by the launch file's name."""
    from nh_control.ros import bringup
    from nh_control.ros.runtime.declared import HARDWARE
    from nh_control.ros.runtime.parameter_file import parameter_file

    parameters = yaml.safe_load(parameter_file(scenarios.get(name)))["/**"]["ros__parameters"]
    offered = {argument.entry.name for argument in bringup.parameters(scenarios.get(name))}
    of_hardware = {spec.name for spec in HARDWARE}
    robot = set() if name == "urdf" else {*ORIGIN[1:]}
    assert offered == set(flat(parameters)) - {"scenario"} - of_hardware - robot


# --- hardware ------------------------------------------------------------------------------------


def test_a_file_of_parameters_wins_over_the_scenario_and_loses_against_arguments(
    launched, tmp_path
):
    file = tmp_path / "mine.yaml"
    file.write_text("/**: {ros__parameters: {fallback: zero}}")
    plant = launched(params_file=str(file), speed_factor="2")["plant"]
    assert plant["parameters"] == [{"fallback": "damp"}, str(file), {"speed_factor": 2.0}]


# --- any scenario --------------------------------------------------------------------------------


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


# --- several robots ------------------------------------------------------------------------------


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
    ("default", "text", "value"),
    [(False, "True", True), ((0.0, 0.0), "[1, 2.5]", [1.0, 2.5]), ([], " a  b ", ["a", "b"])],
)
def test_texts_become_values(default, text, value):
    """With lists for several numbers, as launch_ros takes them."""
    from nh_control.ros.arguments import Argument

    made = Argument(Declaration("x", default)).value(text)
    assert made == value and type(made) is type(value)


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


@pytest.fixture
def exits():
    """Return f(options, code, shutdown) -> how many actions follow the end of a process."""
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
        return len(options["on_exit"](event, context))

    return _Exits(), ended


def test_the_last_of_several_robots_ends_the_launch(exits):
    made, ended = exits
    first, second = made.of("plant"), made.of("plant")
    assert (ended(first), ended(second)) == (0, 1)


@pytest.mark.parametrize("code", [0, -signal.SIGINT, -signal.SIGTERM, 255])
def test_a_process_that_the_launch_ends_has_not_failed(exits, code):
    """Popen.send_signal takes the exit code of a process that has just ended: 255."""
    made, ended = exits
    ended(made.of("plant"), code, shutdown=True)


@pytest.mark.parametrize(
    ("name", "options", "code", "shutdown"),
    [
        ("plant", {}, -signal.SIGINT, False),
        ("plant", {}, -signal.SIGTERM, False),
        ("plant", {}, 255, False),
        ("plant", {}, -signal.SIGKILL, True),
        ("plant", {}, 3, True),
        ("display", {"required": False}, 1, True),
        ("tracker", {"comes_back": True}, 1, False),
    ],
)
def test_a_process_that_fails_is_reported(exits, name, options, code, shutdown):
    """A tracker that ends by itself is not started again."""
    made, ended = exits
    with pytest.raises(RuntimeError, match=f"the {name} ended with exit code {code:d}"):
        ended(made.of(name, **options), code, shutdown=shutdown)


@pytest.mark.parametrize(
    ("name", "options", "code"),
    [("display", {"required": False}, 1), ("tracker", {"comes_back": True}, -signal.SIGKILL)],
)
def test_failures_that_do_not_end_the_launch_are_reported_at_its_end_once(
    exits, name, options, code
):
    made, ended = exits
    other, plant = made.of(name, **options), made.of("plant")
    assert ended(other, code) == 0
    with pytest.raises(RuntimeError, match=f"the {name} ended with exit code {code:d}"):
        ended(plant)
    assert ended(plant) == 1


def test_only_a_tracker_that_comes_back_is_started_again(exits):
    made, _ = exits
    tracker = made.of("tracker", comes_back=True)
    assert tracker["respawn"] is True and 0.1 <= tracker["respawn_delay"] <= 1.0
    assert "respawn" not in made.of("plant")


def test_the_end_of_plant_or_tracker_ends_the_launch_but_not_of_viewers(launched, exits):
    _, ended = exits
    actions = launched(shadow="true")
    ends = {name: ended(actions[name]) for name in ("display", "shadow", "plant", "tracker")}
    assert ends == {"display": 0, "shadow": 0, "plant": 1, "tracker": 1}


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


def test_a_tracker_needs_efforts_and_ros2_control_its_packages(controlled, monkeypatch):
    from nh_control.ros import controllers

    for interface in ("position", "velocity"):
        with pytest.raises(ValueError, match="give interface:=effort"):
            controlled(tracker="true", interface=interface)
    monkeypatch.setattr(controllers, "get_packages_with_prefixes", dict)
    with pytest.raises(ValueError, match="install controller_manager, joint_state_topic"):
        controlled()
