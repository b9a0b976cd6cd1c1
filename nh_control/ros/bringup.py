"""What the files in launch/ share: a scenario's launch arguments, and the nodes, recording and
rviz that they ask for.

Every argument that becomes a node parameter is empty by default and then keeps the value of
`params_file`; given, it wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from launch import LaunchDescription
from nh_control import scenarios
from nh_control.runs import topics
from nh_control.scenarios import Scenario

BOOL = ("true", "false")
GLOBAL_TOPICS = ("/clock", "/diagnostics", "/tf", "/tf_static")


@dataclass(frozen=True)
class Argument:
    """A launch argument with its text's default and choices; if it becomes the node parameter
    `parameter`, that is of type `kind`.
    """

    name: str
    description: str
    default: str = ""
    choices: tuple[str, ...] | None = None
    parameter: str = ""
    kind: type = str

    def declare(self) -> DeclareLaunchArgument:
        """The action that declares it."""
        choices, description = self.choices, self.description
        if self.parameter:
            choices, description = (
                choices and ("", *choices),
                f"{description}; empty = as in params_file",
            )
        return DeclareLaunchArgument(
            self.name, default_value=self.default, choices=choices, description=description
        )

    def value(self, text: str):
        """The parameter's value that the text stands for; raises ValueError that names the
        argument.
        """
        if self.kind is bool:
            return text == "true"
        try:
            return (
                [float(part) for part in text.strip("[]").split(",")]
                if self.kind is tuple
                else self.kind(text)
            )
        except ValueError:
            expected = {int: "an integer", float: "a number", tuple: "numbers like [1.0, 2.0]"}[
                self.kind
            ]
            raise ValueError(
                f"launch argument '{self.name}': expected {expected}, got '{text}'"
            ) from None


def description(name: str, config: Path, urdf: Path | None = None) -> LaunchDescription:
    """The launch description of the scenario `name`, with `<name>.yaml` and `<name>.rviz` from the
    folder `config`, and a robot model if there is a URDF.
    """
    scenario = scenarios.get(name)
    arguments = [*options(scenario, config, urdf is not None), *parameters(scenario)]

    def start(context):
        text = {
            argument.name: LaunchConfiguration(argument.name).perform(context).strip()
            for argument in arguments
        }
        chosen = scenarios.get(name, text.get("urdf", ""), text.get("base") or "fixed")
        return actions(chosen, config, urdf, arguments, text)

    return LaunchDescription(
        [*(argument.declare() for argument in arguments), OpaqueFunction(function=start)]
    )


def options(scenario: Scenario, config: Path, has_model: bool) -> list[Argument]:
    """What to start."""
    model = (
        [
            Argument(
                "use_robot_state_publisher",
                "publish the URDF and its joint transforms",
                "true",
                BOOL,
            )
        ]
        if has_model
        else []
    )
    return [
        Argument(
            "params_file",
            "YAML file with the nodes' parameters",
            str(config / f"{scenario.name}.yaml"),
        ),
        Argument("namespace", "namespace of the nodes and of their relative topics"),
        Argument(
            "plant",
            "simulate the plant; false = real hardware or another simulator answers the commands",
            "true",
            BOOL,
        ),
        Argument(
            "tracker",
            "run the LQR tracker; false = plug in a controller of your own",
            "true",
            BOOL,
        ),
        Argument(
            "headless",
            "plant and tracker only, ending with the reference unless on_finish says otherwise",
            "false",
            BOOL,
        ),
        Argument("rviz", "start rviz2", "true", BOOL),
        *model,
        Argument(
            "record",
            "record the run with `ros2 bag record` as MCAP; the plant starts when it listens",
            "false",
            BOOL,
        ),
        Argument(
            "bag",
            "folder of the recording, must not exist; empty = rosbag2_<date> in the current "
            "folder",
        ),
    ]


def parameters(scenario: Scenario) -> list[Argument]:
    """Arguments that become node parameters: all that make sense for the scenario."""

    def of(
        parameter: str, kind: type, text: str, choices: Sequence[str] | None = None
    ) -> Argument:
        name = parameter.replace("plant.parameters", "plant").replace(".", "_")
        return Argument(
            name,
            text,
            choices=BOOL if kind is bool else choices and tuple(choices),
            parameter=parameter,
            kind=kind,
        )

    swinging = [
        of("perturb.swing", float, "initial swing of the links [rad]"),
        of("perturb.tilt", float, "initial tilt of the quadrotors [rad]"),
    ]
    wind = [
        of("wind.force", tuple, "constant force on the payload [N], e.g. [2.0, 0.0, 0.0]"),
        of("wind.start_s", float, "time at which the wind begins [s]"),
        of("wind.duration_s", float, "how long the wind blows [s], 0 = for ever after"),
    ]
    robot = [
        of("urdf", str, "URDF file of the robot"),
        of(
            "base",
            str,
            "whether the robot's root link is fixed or floating",
            ("fixed", "floating"),
        ),
    ]
    return [
        *(robot if scenario.name == "urdf" else []),
        of("reference", str, "motion to track", scenario.references),
        of(
            "integrator",
            str,
            "integrator of the tracker's model and of the reference",
            scenario.integrators,
        ),
        of("step_s", float, "step of the model [s]"),
        of("integral", bool, "integral action of the tracker"),
        of("plant.integrator", str, "integrator of the plant", scenario.integrators),
        of("plant.substeps", int, "plant steps in a step of the model"),
        *(
            of(
                f"plant.parameters.{field.name}",
                type(getattr(scenario.parameters, field.name)),
                f"physical parameter {field.name} of the plant",
            )
            for field in fields(scenario.parameters)
        ),
        of("perturb.position", float, "initial position error [m]"),
        of("perturb.heading", float, "initial heading error [rad]"),
        of("perturb.momentum", float, "initial momentum error, as a fraction"),
        *(swinging if scenario.to_bodies is not None else []),
        of(
            "perturb.seed",
            int,
            "-1 = exactly these errors, >= 0 = a random direction of that size",
        ),
        *(wind if scenario.make_windy_system is not None else []),
        of("speed_factor", float, "simulated over real time, 0 = as fast as possible"),
        of("lockstep", bool, "wait in each step for the command that answers its state"),
        of("duration_s", float, "length of the run [s], 0 = the reference's"),
        of(
            "on_finish",
            str,
            "exit = the plant ends after the run, and the launch with it; continue = it does not "
            "end",
            ("stay", "exit", "continue"),
        ),
        of("wait_for_tracker", bool, "start when the first state has been answered"),
        of(
            "fallback",
            str,
            "what the plant applies while no command is fresh",
            ("hold", "zero", "stop"),
        ),
        of("command_timeout_steps", int, "steps for which a command stays fresh"),
        of(
            "publish_velocities",
            bool,
            "false = positions only; the tracker reconstructs the momentum",
        ),
        of("rate_hz", float, "highest rate of the markers [Hz]"),
    ]


def relative_topics(scenario: Scenario) -> list[str]:
    """Topics of the scenario's nodes in their namespace."""
    return (
        [topic for topic in topics.recorded(scenario) if not topic.startswith("/")]
        + topics.odometry(scenario)
        + ["robot_description"]
    )


def actions(
    scenario: Scenario,
    config: Path,
    urdf: Path | None,
    arguments: list[Argument],
    text: dict[str, str],
) -> list:
    """The actions that the arguments' texts ask for."""
    wanted = {
        argument.name: text[argument.name] == "true"
        for argument in arguments
        if argument.choices is BOOL and not argument.parameter
    }
    if not Path(text["params_file"]).is_file():
        raise ValueError(f"launch argument 'params_file': no such file '{text['params_file']}'")
    inline = {
        a.parameter: a.value(text[a.name]) for a in arguments if a.parameter and text[a.name]
    }
    if wanted["headless"]:
        inline.setdefault("on_finish", "exit")
    if wanted["record"]:
        inline["wait_for"] = ["rosbag2_recorder"]
    namespace, sim_time, shown = (
        text["namespace"].strip("/"),
        {"use_sim_time": wanted["plant"]},
        not wanted["headless"],
    )

    def node(package: str, executable: str, given: list, **more) -> Node:
        return Node(
            package=package,
            executable=executable,
            namespace=namespace,
            parameters=given,
            output="screen",
            **more,
        )

    def nh_control(executable: str, **more) -> Node:
        return node("nh_control", executable, [text["params_file"], inline], **more)

    started = []
    if wanted["record"]:
        started.append(_recording(scenario, namespace, text["bag"]))
    if wanted["plant"]:
        started.append(nh_control("plant", on_exit=Shutdown(reason="the plant ended")))
    if wanted["tracker"]:
        started.append(nh_control("tracker", on_exit=Shutdown(reason="the tracker ended")))
    if shown:
        started.append(nh_control("display"))
    if shown and urdf is not None and wanted["use_robot_state_publisher"]:
        model = {
            "robot_description": ParameterValue(
                Path(text.get("urdf") or urdf).read_text(encoding="utf-8"), value_type=str
            ),
            "publish_frequency": 50.0,
        }
        started.append(node("robot_state_publisher", "robot_state_publisher", [model, sim_time]))
    if shown and wanted["rviz"]:
        view = ["--display-config", str(config / f"{scenario.name}.rviz")]
        view += (
            ["--fixed-frame", scenario.visual(scenario.parameters).parent]
            if scenario.visual
            else []
        )
        started.append(
            node(
                "rviz2",
                "rviz2",
                [sim_time],
                arguments=view,
                remappings=[("/" + topic, topic) for topic in relative_topics(scenario)],
            )
        )
    return started


def _recording(scenario: Scenario, namespace: str, folder: str) -> ExecuteProcess:
    """The process that records the topics of the nodes in `namespace`."""
    prefix = f"/{namespace}/" if namespace else "/"
    output = ["--output", folder] if folder else []
    recorded = [prefix + topic for topic in relative_topics(scenario)] + list(GLOBAL_TOPICS)
    return ExecuteProcess(
        cmd=["ros2", "bag", "record", "--storage", "mcap", *output, "--topics", *recorded],
        output="screen",
    )
