"""The settings of a run, declared once. Command options, node parameters, launch arguments, study
settings, and the files of a run are derived from these fields.

A setting has the name of the node parameter, with a dot after its group, as in `mpc.horizon_s`.
Its option (`--mpc-horizon`) and its name in a study (`mpc_horizon`) omit the unit.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from nh_control.mechanics.parameters import NODES, PROCESS, Declaration, declared, setting

LQR, MPC, EXTERNAL = "lqr", "mpc", "external"
AUTO = "auto"
"""The value that selects the constraints of the reference."""
GROUPS = ("plant", "mpc")
ROBOT = ("urdf", "base", "accept_any_inertia", "wheels")
"""Settings for the robot in the scenario urdf."""
ORIGIN = ("scenario", *ROBOT, "autopilot")
"""Settings that determine the scenario."""


class _Group:
    """A dataclass of settings that checks its values. Raises ValueError."""

    prefix: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for entry in _of_group(self.prefix):
            name = entry.name.removeprefix(self.prefix)
            # the dataclass is frozen: store the checked value without its guard
            object.__setattr__(self, name, entry.check(getattr(self, name)))


@dataclass(frozen=True)
class PlantSettings(_Group):
    """Differences between the simulated plant and the tracker's model."""

    prefix: ClassVar[str] = "plant."

    integrator: str = setting("", "integrator of the plant", by_default="the model's")
    substeps: int = setting(
        1, "steps of the plant's integrator in one step of the model", at_least=1
    )
    parameters: Mapping[str, Any] = setting(
        {}, "physical parameter of the plant; commas separate several numbers"
    )


@dataclass(frozen=True)
class MpcSettings(_Group):
    """Settings of the predictive tracker."""

    prefix: ClassVar[str] = "mpc."

    horizon_s: float = setting(
        0.0,
        "time that mpc plans ahead",
        unit="s",
        at_least=0.0,
        by_default="the scenario's horizon",
    )
    iterations: int = setting(3, "interior-point iterations in a step", at_least=1)
    constraints: list[str] = setting(
        [AUTO],
        "names of the scenario's constraints that mpc satisfies; auto selects those of the "
        "reference, empty none",
    )
    late: float = setting(
        0.0, "share of the plans of mpc that count as late, to study their effect", at_least=0.0
    )
    seed: int = setting(0, "seed of the random choice of late plans", at_least=0)


@dataclass(frozen=True)
class RunSettings(_Group):
    """The settings of a run. Names of references, integrators and constraints, and values of the
    mappings, are checked when the run is built. Raises ValueError.
    """

    # Scenario
    scenario: str = setting(
        "snakeboard",
        "scenario: a name that `nh_control list` shows, path/to/file.py:NAME, or module:NAME",
    )
    urdf: str = setting(
        "", "URDF file of the robot of the scenario urdf", by_default="a double pendulum"
    )
    base: str = setting(
        "fixed",
        "whether the root link of that robot is fixed or floating",
        choices=("fixed", "floating"),
    )
    accept_any_inertia: bool = setting(
        False, "accept inertias of that robot that no rigid body can have"
    )
    wheels: str = setting(
        "",
        "links of that robot that roll on the ground without slipping, LINK,LINK:sideways,"
        "LINK:all: those with :sideways or :all may slip sideways or in all directions",
    )

    autopilot: str = setting(
        "",
        "flight controller of the craft in the scenario, betaflight, px4 or ardupilot, with "
        "options KIND:NAME=VALUE,... of rotor1, rotor2, ... (fractions of thrust), noise (a "
        "factor), seed, host, port, isolated (0 or 1), setpoints (rates, from our outer loop, or "
        "position, from the reference, for the outer loop of px4 and ardupilot)",
    )

    # Reference and model
    reference: str = setting(
        "",
        "motion to track: one of the scenario's references, a joint trajectory, FILE.csv or "
        "FILE.yaml, or free[:NAME=VALUE,...], a motion without forces from these coordinates and "
        "velocities",
        by_default="the scenario's first",
        changeable=True,
    )
    duration_s: float = setting(
        0.0, "simulated time", unit="s", at_least=0.0, by_default="the reference's length"
    )
    integrator: str = setting(
        "",
        "integrator of the tracker's model and of the reference",
        by_default="the scenario's first",
    )
    step_s: float = setting(
        0.0,
        "step of model, reference and commands",
        unit="s",
        at_least=0.0,
        by_default="the scenario's",
    )
    model_parameters: Mapping[str, Any] = setting(
        {}, "physical parameter of the model, and of a plant with no value of its own"
    )

    # Tracker
    integral: bool = setting(
        False, "estimate a constant disturbance of the momenta and compensate it"
    )
    controller: str = setting(
        LQR,
        "controller: lqr, linear feedback; mpc, which plans ahead in every step within the limits "
        "of inputs and the scenario's constraints; a controller in Python, path/to/file.py:NAME "
        "or module:NAME; or external, a process that answers the states of nodes with "
        "joint_commands",
    )
    mpc: MpcSettings = field(default_factory=MpcSettings)
    weight_factors: Mapping[str, Any] = setting(
        {}, "factor on the weight of a coordinate of the error, or of an input"
    )
    open_loop: bool = setting(False, "apply the reference's inputs without feedback", only=PROCESS)

    # Sensors
    estimate: str = setting(
        "state",
        "states that the tracker receives: the plant's, or the estimates of a filter from the "
        "measurements of the scenario's sensors alone",
        choices=("state", "sensors"),
    )

    # Plant, initial error, disturbances and faults
    plant: PlantSettings = field(default_factory=PlantSettings)
    perturb: Mapping[str, Any] = setting({}, "initial error")
    disturb: list[str] = setting(
        [],
        "external forces on bodies or coordinates, constant in each step of the model, "
        "TARGET:KIND:NUMBER[,NUMBER...][,NAME=VALUE...] with a KIND of constant, gust, sine, "
        "noise; `nh_control list SCENARIO` shows the targets",
        changeable=True,
    )
    fault: list[str] = setting(
        [],
        "faults of sensors and actuators, [TARGET:]KIND[=NUMBER][,NAME=VALUE...] with a KIND of "
        "noise, bias, quantization, delay, jitter, dropout, lag, saturation, dead_band, stuck, "
        "lost, e.g. delay=0.005 or positions:noise=0.001,seed=2; `nh_control list SCENARIO` "
        "explains them",
        changeable=True,
    )

    # Pacing of nodes
    answer_timeout_s: float = setting(
        0.0,
        "end the run if no command answers a state within this wall time",
        unit="s",
        at_least=0.0,
        by_default="30 s for an external controller, unlimited for others",
        only=NODES,
    )
    speed_factor: float = setting(
        1.0,
        "simulated seconds per wall second; 1 is real time, 0 means as fast as possible",
        at_least=0.0,
        changeable=True,
        only=NODES,
    )
    lockstep: bool = setting(
        False,
        "in each step, wait for the command that answers its state, and in the tracker for every "
        "plan",
        only=NODES,
    )

    domain: int = setting(
        -1,
        "DDS domain of the nodes, which rviz or your nodes may join; -1 is the one in "
        "ROS_DOMAIN_ID, or else one that no other run on this machine uses, which is printed",
        at_least=-1,
        only=NODES,
    )

    # Nodes next to plant and tracker
    display: bool = setting(
        True, "also run the display node: markers for rviz and Foxglove", only=NODES
    )
    view: bool = setting(
        False,
        "also serve a page with scene and plots for browsers, and print its address",
        only=NODES,
    )
    record: bool = setting(
        True, "record the run; without a recording there are no figures and no table", only=NODES
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.controller not in (LQR, MPC, EXTERNAL) and not is_user_controller(self.controller):
            raise ValueError(
                f"'controller' must be lqr, mpc, external, path/to/file.py:NAME or module:NAME, "
                f"got {self.controller!r}{_suggestion(self.controller)}"
            )
        if self.integral and self.controller not in (LQR, MPC):
            raise ValueError(
                f"'integral' is for lqr and mpc: the controller {self.controller} must estimate a "
                "disturbance itself"
            )
        if self.controller != MPC and self.mpc != MpcSettings():
            raise ValueError(
                "options of mpc are for the predictive tracker: add --controller mpc, or "
                "controller=mpc in a study"
            )

    def __getitem__(self, name: str) -> Any:
        """Return the value of the setting with this name."""
        group, _, field_name = name.rpartition(".")
        return getattr(getattr(self, group) if group else self, field_name)

    @staticmethod
    def of(values: Mapping[str, Any]) -> RunSettings:
        """Return the settings with the given values. The values are given by name, such as
        `mpc.horizon_s`, or nested, as `to_dict` returns them. Other settings have their default
        values. Unknown names and empty texts in lists are ignored. Lists of numbers become tuples.
        """
        # both spellings: {"mpc": {"late": ...}} and "mpc.late"
        nested = {group: dict(values.get(group, {})) for group in GROUPS}
        ungrouped = {name: value for name, value in values.items() if name not in GROUPS}
        for name in [name for name in ungrouped if name.partition(".")[0] in GROUPS]:
            group, _, inner = name.partition(".")
            nested[group][inner] = ungrouped.pop(name)
        return RunSettings(
            plant=PlantSettings(**_known(PlantSettings, nested["plant"])),
            mpc=MpcSettings(**_known(MpcSettings, nested["mpc"])),
            **_known(RunSettings, ungrouped),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values by name, nested, as JSON and YAML store them."""
        return asdict(self)


def is_user_controller(controller: str) -> bool:
    """Whether this is a controller in a file or module rather than one of nh_control."""
    place, colon, name = controller.rpartition(":")
    return bool(place and colon and name.isidentifier())


def _suggestion(file: str) -> str:
    """Return the names of a file's controllers as the end of a sentence, or "". The code is not
    executed.
    """
    path = Path(file).expanduser()
    if path.suffix != ".py" or not path.is_file():
        return ""
    try:
        # parse instead of import, which would execute the user's code
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return ""
    names = [
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        and any(
            isinstance(method, ast.FunctionDef) and method.name == "command"
            for method in node.body
        )
    ]
    return f", such as {' or '.join(f'{file}:{name}' for name in names)}" if names else ""


SETTINGS: Mapping[str, Declaration] = {entry.name: entry for entry in declared(RunSettings)}
"""All settings of a run by name."""


def short_name(entry: Declaration) -> str:
    """Return the name of a setting in a study. Written with dashes, this name is also that of the
    option. The unit is omitted, and a list of values has a name in the singular: `mpc_horizon` for
    `mpc.horizon_s`, `mpc_constraint` for `mpc.constraints`.
    """
    name = entry.name.removesuffix("_s") if entry.unit == "s" else entry.name
    several = entry.is_list or isinstance(entry.value, Mapping)
    return (name.removesuffix("s") if several else name).replace(".", "_")


def option_words(entry: Declaration, value: Any) -> list[str]:
    """Return the command-line words that set the option of a setting to a value."""
    name = short_name(entry).replace("_", "-")
    if isinstance(value, bool):
        # only a setting that is true by default has an option that switches it off
        return [f"--{name}"] if value else [f"--no-{name}"] * bool(entry.value)
    texts = list(value) if isinstance(value, (list, tuple)) else [str(value)]
    if isinstance(value, Mapping):
        texts = [
            f"{key}={','.join(map(repr, number)) if isinstance(number, tuple) else repr(number)}"
            for key, number in value.items()
        ]
    # a text with a leading minus would be taken for an option
    return [
        word
        for text in texts
        for word in ([f"--{name}={text}"] if text.startswith("-") else [f"--{name}", text])
    ]


OPTIONS: Mapping[str, Declaration] = {
    short_name(entry): entry
    for entry in SETTINGS.values()
    if entry.name not in (*ORIGIN, "disturb", "fault")
    and entry.only != NODES
    and not isinstance(entry.value, Mapping)
}
"""The options of `nh_control simulate` that a study fixes or varies, by their names in the study.
The texts in a list are separated by spaces.
"""


@cache
def _of_group(prefix: str) -> tuple[Declaration, ...]:
    """Return the settings of the group with the given prefix, without those of nested groups."""
    of_prefix = [entry for entry in SETTINGS.values() if entry.name.startswith(prefix)]
    return tuple(entry for entry in of_prefix if "." not in entry.name.removeprefix(prefix))


def _known(group: type[_Group], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the group's settings. Lists of numbers in mappings become tuples."""
    names = {entry.name.removeprefix(group.prefix) for entry in _of_group(group.prefix)}
    return {name: _plain(value) for name, value in values.items() if name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: tuple(v) if isinstance(v, list) else v for k, v in value.items()}
    return [text for text in value if text] if isinstance(value, list | tuple) else value
