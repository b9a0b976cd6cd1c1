"""Launch the snakeboard: plant, tracker, display, robot model, rviz and, on request, a recording.

Every argument that becomes a node parameter is empty by default and then keeps the value of `params_file`; given, it wins.
"""
from dataclasses import fields
from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from nh_control import scenarios

CONFIG = Path(__file__).parents[1] / "config"  # beside launch/, in the source tree and installed alike
SCENARIO = scenarios.get("snakeboard")
BOOL = ("true", "false")

# name, default, choices, description
OPTIONS = (
    ("params_file", str(CONFIG / "snakeboard.yaml"), None, "YAML file with the nodes' parameters"),
    ("namespace", "", None, "namespace of the nodes and of their relative topics"),
    ("plant", "true", BOOL, "simulate the board; false = real hardware or another simulator answers the commands"),
    ("tracker", "true", BOOL, "run the LQR tracker; false = plug in a controller of your own"),
    ("headless", "false", BOOL, "plant and tracker only, ending with the maneuver unless on_finish says otherwise"),
    ("rviz", "true", BOOL, "start rviz2"),
    ("use_robot_state_publisher", "true", BOOL, "publish the URDF and its joint transforms"),
    ("record", "false", BOOL, "record the run with `ros2 bag record` as MCAP; the plant starts when it listens"),
    ("bag", "", None, "folder of the recording, must not exist; empty = rosbag2_<date> in the current folder"),
)

# name, node parameter, type, choices, description
PARAMETERS = (
    ("reference", "reference", str, tuple(SCENARIO.references), "maneuver to track"),
    ("integrator", "integrator", str, tuple(SCENARIO.integrators), "integrator of the tracker's model and of the reference"),
    ("step_s", "step_s", float, None, "step of the model [s]"),
    ("integral", "integral", bool, BOOL, "integral action of the tracker"),
    ("plant_integrator", "plant.integrator", str, tuple(SCENARIO.integrators), "integrator of the plant"),
    ("plant_substeps", "plant.substeps", int, None, "plant steps in a step of the model"),
    *(
        (f"plant_{field.name}", f"plant.parameters.{field.name}", float, None, f"physical parameter {field.name} of the plant")
        for field in fields(SCENARIO.parameters)
    ),
    ("perturb_position", "perturb.position", float, None, "initial position error [m]"),
    ("perturb_heading", "perturb.heading", float, None, "initial heading error [rad]"),
    ("perturb_momentum", "perturb.momentum", float, None, "initial momentum error, as a fraction"),
    ("perturb_seed", "perturb.seed", int, None, "-1 = exactly these errors, >= 0 = a random direction of that size"),
    ("speed_factor", "speed_factor", float, None, "simulated over real time, 0 = as fast as possible"),
    ("lockstep", "lockstep", bool, BOOL, "wait in each step for the command that answers its state"),
    ("duration_s", "duration_s", float, None, "length of the run [s], 0 = the reference's"),
    ("on_finish", "on_finish", str, ("stay", "exit"), "exit = the plant ends after the run, and the launch with it"),
    ("wait_for_tracker", "wait_for_tracker", bool, BOOL, "start when the first state has been answered"),
    ("fallback", "fallback", str, ("hold", "zero", "stop"), "what the plant applies while no command is fresh"),
    ("command_timeout_steps", "command_timeout_steps", int, None, "steps for which a command stays fresh"),
    ("publish_velocities", "publish_velocities", bool, BOOL, "false = positions only; the tracker reconstructs the momentum"),
    ("rate_hz", "rate_hz", float, None, "highest rate of the markers [Hz]"),
)

TOPICS = ("joint_states", "joint_commands", "odom", "reference", "markers", "robot_description")
GLOBAL_TOPICS = ("/clock", "/diagnostics", "/tf", "/tf_static")


def convert(name, kind, text):
    """Return a launch argument's text as its type; raise ValueError that names the argument."""
    if kind is bool:
        return text == "true"
    try:
        return kind(text)
    except ValueError:
        expected = {int: "an integer", float: "a number"}[kind]
        raise ValueError(f"launch argument '{name}': expected {expected}, got '{text}'") from None


def recording(namespace, folder):
    """Return the process that records the topics of the nodes in `namespace`."""
    prefix = f"/{namespace}/" if namespace else "/"
    output = ["--output", folder] if folder else []
    topics = [prefix + topic for topic in TOPICS] + list(GLOBAL_TOPICS)
    return ExecuteProcess(cmd=["ros2", "bag", "record", "--storage", "mcap", *output, "--topics", *topics], output="screen")


def start(context):
    """Return the actions that the arguments ask for."""
    text = {name: LaunchConfiguration(name).perform(context).strip() for name, *_ in OPTIONS + PARAMETERS}
    wanted = {name: text[name] == "true" for name, _, choices, _ in OPTIONS if choices is BOOL}
    if not Path(text["params_file"]).is_file():
        raise ValueError(f"launch argument 'params_file': no such file '{text['params_file']}'")
    inline = {parameter: convert(name, kind, text[name]) for name, parameter, kind, *_ in PARAMETERS if text[name]}
    if wanted["headless"]:
        inline.setdefault("on_finish", "exit")
    if wanted["record"]:
        inline["wait_for"] = ["rosbag2_recorder"]
    shown = not wanted["headless"]
    namespace = text["namespace"].strip("/")
    sim_time = {"use_sim_time": wanted["plant"]}

    def nh_control(executable, **options):
        parameters = [text["params_file"], inline]
        return Node(package="nh_control", executable=executable, namespace=namespace, parameters=parameters, output="screen", **options)

    actions = []
    if wanted["record"]:
        actions.append(recording(namespace, text["bag"]))
    if wanted["plant"]:
        actions.append(nh_control("plant", on_exit=Shutdown(reason="the plant ended")))
    if wanted["tracker"]:
        actions.append(nh_control("tracker", on_exit=Shutdown(reason="the tracker ended")))
    if shown:
        actions.append(nh_control("display"))
    if shown and wanted["use_robot_state_publisher"]:
        urdf = ParameterValue((CONFIG / "urdf" / "snakeboard.urdf").read_text(), value_type=str)
        actions.append(
            Node(
                package="robot_state_publisher",
                executable="robot_state_publisher",
                namespace=namespace,
                parameters=[{"robot_description": urdf, "publish_frequency": 50.0}, sim_time],
                output="screen",
            )
        )
    if shown and wanted["rviz"]:
        actions.append(
            Node(
                package="rviz2",
                executable="rviz2",
                namespace=namespace,
                arguments=["--display-config", str(CONFIG / "snakeboard.rviz")],
                parameters=[sim_time],
                remappings=[("/" + topic, topic) for topic in TOPICS],
                output="screen",
            )
        )
    return actions


def generate_launch_description():
    """Return the launch description: the arguments, then what they ask for."""
    options = [
        DeclareLaunchArgument(name, default_value=default, choices=choices, description=description)
        for name, default, choices, description in OPTIONS
    ]
    parameters = [
        DeclareLaunchArgument(
            name,
            default_value="",
            choices=choices and ("", *choices),
            description=f"{description}; empty = as in params_file",
        )
        for name, _, _, choices, description in PARAMETERS
    ]
    return LaunchDescription([*options, *parameters, OpaqueFunction(function=start)])
