"""A scenario for ros2_control: its URDF with the element `<ros2_control>`, and the parameters of
controllers. The controllers command the plant through joint_state_topic_hardware_interface.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from nh_control.control.joint_servo import POSITION, VELOCITY
from nh_control.mechanics.system import System
from nh_control.scenarios.controllers import (
    CONTROLLERS,
    DEFAULTS,
    EFFORT,
    INTERFACES,
    base_commands,
)
from nh_control.scenarios.driven_joints import DrivenJoint, driven_joints, target_kinds
from nh_control.scenarios.joint_limits import joint_limits
from nh_control.scenarios.names import UnknownName
from nh_control.scenarios.robot_description import robot_description, take_inertia_from_root
from nh_control.scenarios.scenario import Scenario

PLUGIN = "joint_state_topic_hardware_interface/JointStateTopicSystem"
COMMANDS, STATES = "robot_joint_commands", "robot_joint_states"
"""Topics between the hardware interface and the plant."""
BROADCASTER = "joint_state_broadcaster"
FASTEST_HZ = 1000


class RosControl:
    """The ros2_control controllers for a scenario's plant, with `names` from CONTROLLERS.

    The controllers command the `interface`, which is one of INTERFACES for all joints that are
    driven by one input each, or a kind for each of these joints (see `target_kinds`). The default
    is the interface of the first controller. Without `names`, DEFAULTS determines the controller
    for the interface.

    `commands` contains the interfaces by joint. Raises UnknownName, and ValueError for a scenario
    with an input that does not drive a joint or for controllers that do not command the interface.
    """

    def __init__(self, scenario: Scenario, interface: str = "", names: Sequence[str] = ()):
        system = scenario.system
        self.scenario = scenario
        self._driven = [joint.name for joint in joints_of_inputs(scenario, system)]
        for name in names:
            if name not in CONTROLLERS:
                raise UnknownName("controller", name, CONTROLLERS)
        if names and not interface:
            first = CONTROLLERS[names[0]]
            # Vehicle controllers determine the interface of each wheel.
            self.commands = (
                base_commands(scenario, names[0])
                if first.base is not None
                else self._parsed(first.interfaces[0])
            )
        else:
            self.commands = self._parsed(interface or POSITION)
        self.names = tuple(names) or tuple(filter(None, [DEFAULTS.get(self._common)]))
        for name in self.names:
            self._require(name)

    def _parsed(self, interface: str) -> dict[str, tuple[str, ...]]:
        if interface in INTERFACES:
            return dict.fromkeys(self._driven, tuple(interface.split("+")))
        return {name: (kind,) for name, kind in target_kinds(interface, self._driven).items()}

    @property
    def _common(self) -> str:
        """The interface of all joints, or "" if the joints have different interfaces."""
        kinds = {"+".join(kinds) for kinds in self.commands.values()}
        return kinds.pop() if len(kinds) == 1 else ""

    def _require(self, name: str) -> None:
        """Raise ValueError if the controller does not command the selected interfaces."""
        controller = CONTROLLERS[name]
        if controller.base is None:
            # Joint controllers command the same interface of all joints.
            fits, remedy = self._common in controller.interfaces, controller.interfaces[0]
        else:
            commands = base_commands(self.scenario, name)
            fits = commands == self.commands
            remedy = ",".join(f"{joint}:{kinds[0]}" for joint, kinds in commands.items())
        if not fits:
            raise ValueError(
                f"{name} does not command {self._common or self.command_interface}: use "
                f"interface:={remedy}"
            )

    @property
    def command_interface(self) -> str:
        """The plant's parameter `command_interface`, which contains the first interface of each
        joint.
        """
        if self._common:
            return self._common.split("+")[0]
        return ",".join(f"{name}:{kinds[0]}" for name, kinds in self.commands.items())

    def parameters(self) -> dict[str, Any]:
        """The parameters of the controller manager and its controllers, by node."""
        limits = joint_limits(self.scenario)
        driven = {name: limits[name] for name in self._driven}
        manager: dict[str, Any] = {
            # One update for each step of the plant, up to FASTEST_HZ.
            "update_rate": min(FASTEST_HZ, round(1 / self.scenario.step_s)),
            BROADCASTER: {"type": f"{BROADCASTER}/JointStateBroadcaster"},
        }
        nodes = {"controller_manager": {"ros__parameters": manager}}
        for name in self.names:
            controller = CONTROLLERS[name]
            manager[name] = {"type": controller.plugin}
            parameters = controller.make(self.scenario, self._common, driven)
            nodes[name] = {"ros__parameters": parameters}
        return nodes

    def urdf(self, namespace: str = "") -> str:
        """The URDF of the scenario with its hardware interface. Each joint has the state
        interfaces position, velocity and effort, and the command interfaces in `commands`. The
        topics are in `namespace`.
        """
        robot = ElementTree.fromstring(robot_description(self.scenario))
        take_inertia_from_root(robot)
        name = f"{self.scenario.name}_plant"
        control = SubElement(robot, "ros2_control", name=name, type="system")
        hardware = SubElement(control, "hardware")
        SubElement(hardware, "plugin").text = PLUGIN
        # An empty namespace would produce two slashes.
        prefix = f"/{namespace}/".replace("//", "/")
        for name, value in (
            ("joint_commands_topic", prefix + COMMANDS),
            ("joint_states_topic", prefix + STATES),
            ("trigger_joint_command_threshold", "-1"),
        ):
            _parameter(hardware, name, value)
        start = _start(self.scenario)
        for joint in self.scenario.joints:
            element = SubElement(control, "joint", name=joint.name)
            for kind in self.commands.get(joint.name, ()):
                SubElement(element, "command_interface", name=kind)
            position = SubElement(element, "state_interface", name=POSITION)
            # The state interface starts with the initial state of the reference.
            _parameter(position, "initial_value", f"{start[joint.name]:.12g}")
            for kind in (VELOCITY, EFFORT):
                SubElement(element, "state_interface", name=kind)
        ElementTree.indent(robot)
        return ElementTree.tostring(robot, encoding="unicode", xml_declaration=True) + "\n"


def joints_of_inputs(scenario: Scenario, system: System) -> tuple[DrivenJoint, ...]:
    """The joints that are driven by one input each, in the order of the inputs. Raises ValueError
    if there are no such joints, or if an input does not drive exactly one joint.
    """
    driven = driven_joints(scenario.joints, system, system.nu)
    if not driven or len(driven) < system.nu:
        raise ValueError(
            f"{scenario.name}: in ros2_control every input must drive exactly one joint; "
            f"{len(driven)} of {system.nu} inputs do"
        )
    return driven


def _start(scenario: Scenario) -> dict[str, float]:
    """The positions of the joints in the first state of the default reference."""
    model = scenario.model()
    q = model.configuration(scenario.reference(model).states[0])
    names = model.system.space.names
    return {j.name: j.sign * float(q[names.index(j.coordinate)]) for j in scenario.joints}


def _parameter(parent: Element, name: str, value: str) -> None:
    SubElement(parent, "param", name=name).text = value
