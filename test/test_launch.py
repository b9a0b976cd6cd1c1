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
from nh_control.runs.settings import ROBOT
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


@pytest.fixture(autouse=True)
def handler_of_interrupts():
    """A launch replaces Python's handler of SIGINT; tests that follow need it."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


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
        ("multi", "'scenario' is missing: give scenario:=NAME with one of .*snakeboard"),
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
def test_the_launch_file_of_a_scenario_starts_that_scenario(launched, name):
    actions = launched(name)
    for node in ("plant", "tracker", "display"):
        assert inline(actions[node])["scenario"] == name


@pytest.mark.parametrize("name", EVERY)
def test_rviz_shows_topics_of_the_robots_namespace(launched, name):
    arguments = launched(name, namespace="one")["rviz2"]["arguments"]
    shown = yaml.safe_load(Path(arguments[1]).read_text())["Visualization Manager"]
    topics = [
        value["Value"]
        for item in (*shown["Displays"], *shown["Tools"])
        for key, value in item.items()
        if key.endswith("Topic")
    ]
    assert topics and all(topic.startswith("/one/") for topic in topics)
    assert Path(arguments[1]).name == f"{name}.rviz"


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
            == {
                "scenario": "urdf",
                "urdf": str(file),
                "base": "fixed",
                **given,
                **dict.fromkeys(accepts.keys() & given, True),
            }
        )
        assert (
            actions["robot_state_publisher"]["parameters"][0]["robot_description"].value
            == file.read_text()
        )
        view = yaml.safe_load(Path(actions["rviz2"]["arguments"][1]).read_text())
        assert view["Visualization Manager"]["Global Options"]["Fixed Frame"] == frame


@pytest.mark.parametrize("name", EVERY)
def test_every_parameter_of_the_file_except_the_scenario_has_an_argument(name):
    """The scenario is fixed by the launch file's name."""
    from nh_control.ros import bringup
    from nh_control.ros.runtime.declared import HARDWARE
    from nh_control.ros.runtime.parameter_file import parameter_file

    parameters = yaml.safe_load(parameter_file(scenarios.get(name)))["/**"]["ros__parameters"]
    offered = {argument.entry.name for argument in bringup.parameters(scenarios.get(name))}
    of_hardware = {spec.name for spec in HARDWARE}
    others = set() if name == "urdf" else set(ROBOT)
    others |= {"scenario"} if scenarios.get(name).flight else {"scenario", "autopilot"}
    assert offered == set(flat(parameters)) - of_hardware - others


# --- hardware ------------------------------------------------------------------------------------


def test_a_file_of_parameters_wins_over_the_scenario_and_loses_against_arguments(
    launched, tmp_path
):
    file = tmp_path / "mine.yaml"
    file.write_text("/**: {ros__parameters: {fallback: zero}}")
    plant = launched(params_file=str(file), speed_factor="2")["plant"]
    chosen = {"scenario": "snakeboard", "speed_factor": 2.0}
    assert plant["parameters"] == [{"fallback": "wait"}, str(file), chosen]
    without = launched(tracker="false")["plant"]["parameters"]
    # nobody whom it could wait for comes back
    assert without == [{"fallback": "damp"}, {"scenario": "snakeboard"}]


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
    assert actions["plant"]["parameters"][:-1] == [{**scenario.nodes, "fallback": "wait"}]


# --- several robots ------------------------------------------------------------------------------


def test_rviz_shows_every_robot_in_its_frames(launched_all):
    (viewer,) = [
        action
        for action in launched_all("multi", scenario="snakeboard", robots="3")
        if action["executable"] == "rviz2"
    ]
    arguments = viewer["arguments"]
    manager = yaml.safe_load(Path(arguments[1]).read_text())["Visualization Manager"]
    assert manager["Global Options"]["Fixed Frame"] == "world"
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
    publisher = actions["robot_state_publisher"]
    assert publisher["parameters"][0]["frame_prefix"] == prefix
    assert publisher["parameters"][0]["publish_frequency"] == 50.0
    assert ("remappings" in publisher) == ("clock" not in given)
    assert ("remappings" in actions["rviz2"]) == ("clock" not in given)


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
        return options["on_exit"](event, context)

    return _Exits(), ended


def test_the_last_of_several_robots_ends_the_launch(exits):
    made, ended = exits
    first, second = made.of("plant"), made.of("plant")
    assert (len(ended(first)), len(ended(second))) == (0, 1)


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
        ("tracker", {"again": dict}, 1, False),
        ("recording", {"again": dict}, 1, False),
        ("tracker", {"again": dict}, -signal.SIGKILL, True),
    ],
)
def test_a_process_that_fails_is_reported(exits, name, options, code, shutdown):
    """A process that ends by itself, or with the launch, is not started again."""
    made, ended = exits
    with pytest.raises(RuntimeError, match=f"the {name} ended with exit code {code:d}"):
        ended(made.of(name, **options), code, shutdown=shutdown)


@pytest.mark.parametrize(
    ("name", "options", "code"),
    [
        ("display", {"required": False}, 1),
        ("display", {"required": False, "again": dict}, 1),
        ("tracker", {"again": dict}, -signal.SIGKILL),
    ],
)
def test_failures_that_do_not_end_the_launch_are_reported_at_its_end_once(
    exits, name, options, code
):
    made, ended = exits
    other, plant = made.of(name, **options), made.of("plant")
    assert len(ended(other, code)) == (2 if code < 0 else 0)
    with pytest.raises(RuntimeError, match=f"the {name} ended with exit code {code:d}"):
        ended(plant)
    assert len(ended(plant)) == 1


def test_all_but_the_plant_are_started_again_after_a_signal_has_killed_them(launched, exits):
    _, ended = exits
    actions = launched(shadow="true", view="true")
    for name in ("tracker", "display", "view", "shadow"):
        killed = actions[name]
        for _ in range(2):  # and their successors
            told, restart = ended(killed, -signal.SIGKILL)
            assert told.msg == f"the {name} was killed by signal 9 and is restarted"
            (again,) = restart.actions
            assert 0.1 <= restart.period <= 1.0
            assert {**again, "on_exit": None} == {**killed, "on_exit": None}
            killed = again
    with pytest.raises(RuntimeError, match="the plant ended with exit code -9"):
        ended(actions["plant"], -signal.SIGKILL)


def test_a_recorder_that_comes_back_records_into_another_folder_and_says_so(
    launched, exits, tmp_path
):
    _, ended = exits
    first, folders = str(tmp_path / "run"), []
    killed = launched(record="true", bag=first, headless="true")["record"]
    for _ in range(3):
        folder = killed["cmd"][killed["cmd"].index("--output") + 1]
        Path(folder).mkdir()
        folders.append(folder)
        told, restart = ended(killed, -signal.SIGKILL)
        (killed,) = restart.actions
        assert told.msg.endswith(f"is restarted in {killed['cmd'][6]}")
    assert folders == [first, f"{first}_2", f"{first}_3"]
    unnamed = launched(record="true", headless="true")["record"]
    told, restart = ended(unnamed, -signal.SIGKILL)
    assert "another folder" in told.msg and "--output" not in restart.actions[0]["cmd"]


def test_the_end_of_plant_or_tracker_ends_the_launch_but_not_of_viewers(launched, exits):
    _, ended = exits
    actions = launched(shadow="true")
    names = ("display", "shadow", "plant", "tracker")
    ends = {name: len(ended(actions[name])) for name in names}
    assert ends == {"display": 0, "shadow": 0, "plant": 1, "tracker": 1}


# --- ros2_control --------------------------------------------------------------------------------

CONTROL = (
    "controller_manager",
    "joint_state_topic_hardware_interface",
    "robot_state_publisher",
    "joint_trajectory_controller",
    "forward_command_controller",
    "pid_controller",
    "bicycle_steering_controller",
    "pkg_a",
    "pkg_b",
)


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
    waits = ["--switch-timeout", "60", "--service-call-timeout", "60"]  # the plant starts slowly
    assert spawner["arguments"] == [*names, "--param-file", file, *waits]
    stated = yaml.safe_load(Path(file).read_text())
    assert stated["joint_trajectory_controller"]["ros__parameters"]["joints"] == ["cart_joint"]


def test_controllers_are_those_asked_for_and_the_first_one_is_active(controlled):
    names = "effort_controller, pid_controller"
    plant, _, _, first, others = controlled(scenario="cart_pole", controllers=names)
    assert plant["parameters"][0]["command_interface"] == "effort"
    assert first["arguments"][:2] == ["joint_state_broadcaster", "effort_controller"]
    assert others["arguments"][:2] == ["pid_controller", "--inactive"]
    plant, *_ = controlled(scenario="car", controllers="bicycle_steering_controller")
    kinds = "rear_wheels_joint:velocity,steering_joint:position"
    assert plant["parameters"][0]["command_interface"] == kinds


def test_a_file_has_controllers_of_any_names(controlled, tmp_path):
    file = tmp_path / "own.yaml"
    types = {"mine": "pkg_a/One", "yours": "pkg_b/Two", "joint_state_broadcaster": "j/J"}
    content = {name: {"type": kind} for name, kind in types.items()} | {"update_rate": 100}
    file.write_text(yaml.safe_dump({"controller_manager": {"ros__parameters": content}}))
    given = {"scenario": "cart_pole", "controllers_file": str(file)}
    *_, first, others = controlled(**given)
    assert first["arguments"][:2] == ["joint_state_broadcaster", "mine"]
    assert others["arguments"][0] == "yours"
    *_, only = controlled(**given, controllers="yours", interface="velocity")
    assert only["arguments"][:2] == ["joint_state_broadcaster", "yours"]
    with pytest.raises(ValueError, match="unknown controller in .*own.yaml 'theirs'"):
        controlled(**given, controllers="theirs")
    file.write_text("controller_manager: {}")
    with pytest.raises(ValueError, match="has no controllers; expected controller_manager"):
        controlled(**given)


def test_the_tracker_commands_by_a_controller_of_efforts(controlled):
    *_, spawner = controlled(tracker="true", interface="effort")
    ended = lambda code: spawner["on_exit"](SimpleNamespace(returncode=code), None)  # noqa: E731
    assert ended(1) == []
    (tracker,) = ended(0)  # an armed tracker needs the states of the broadcaster
    given, sim_time = tracker["parameters"]
    assert given["hardware.command_array"] == "effort_controller/commands"
    assert given["source"] == "hardware" and sim_time == {"use_sim_time": True}


def test_a_tracker_needs_efforts_and_ros2_control_its_packages(controlled, monkeypatch):
    from nh_control.ros import controllers

    for interface in ("position", "velocity"):
        with pytest.raises(ValueError, match="set interface:=effort"):
            controlled(tracker="true", interface=interface)
    monkeypatch.setattr(controllers, "get_packages_with_prefixes", dict)
    with pytest.raises(ValueError, match="install controller_manager, joint_state_topic"):
        controlled()
