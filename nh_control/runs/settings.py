"""The settings of a run, declared once. Options of the command, parameters of nodes, launch
arguments, the settings of a study, and the files of a run follow from these fields.

A setting has one name, that of the node's parameter, with a dot after its group: `mpc.horizon_s`.
Its option (`--mpc-horizon`) and its name in a study (`mpc_horizon`) leave the unit out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, ClassVar

from nh_control.mechanics.parameters import NODES, PROCESS, Declaration, declared, setting

LQR, MPC = "lqr", "mpc"
AUTO = "auto"
"""Stands for the constraints of the reference."""
GROUPS = ("plant", "mpc")
ORIGIN = ("scenario", "urdf", "base", "accept_any_inertia", "wheels")
"""Settings that say what the scenario is."""


class _Group:
    """A dataclass of settings that checks its values; raises ValueError."""

    prefix: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for entry in _of_group(self.prefix):
            name = entry.name.removeprefix(self.prefix)
            object.__setattr__(self, name, entry.check(getattr(self, name)))


@dataclass(frozen=True)
class PlantSettings(_Group):
    """How the simulated plant differs from the tracker's model."""

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
        0.0, "how far it plans", unit="s", at_least=0.0, by_default="the scenario's horizon"
    )
    iterations: int = setting(3, "interior-point iterations in a step", at_least=1)
    constraints: list[str] = setting(
        [AUTO],
        "names of the scenario's constraints that it keeps; auto are those of the reference, "
        "empty is none",
    )
    late: float = setting(
        0.0, "share of plans that count as late, to see what becomes of the motion", at_least=0.0
    )
    seed: int = setting(0, "seed with which these are drawn", at_least=0)


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
        False, "use inertias of that robot that no body can have as they are"
    )
    wheels: str = setting(
        "",
        "links of that robot that roll on the ground without slipping, LINK,LINK:sideways,"
        "LINK:all: those behind a colon slip sideways or in all directions",
    )

    # Reference and model
    reference: str = setting(
        "",
        "motion to track: one of the scenario's references, a joint trajectory, FILE.csv or "
        "FILE.yaml, or free[:NAME=VALUE,...], without forces from these coordinates and "
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
        {}, "physical parameter of the model, and of a plant without its own"
    )

    # Tracker
    integral: bool = setting(
        False, "estimate a constant disturbance of the momenta and compensate it"
    )
    controller: str = setting(
        LQR,
        "tracker: lqr, linear feedback; or mpc, which plans ahead within the limits of inputs and "
        "the scenario's constraints in every step",
        choices=(LQR, MPC),
    )
    mpc: MpcSettings = field(default_factory=MpcSettings)
    weight_factors: Mapping[str, Any] = setting(
        {}, "factor on the weight of a coordinate of the error, or of an input"
    )
    open_loop: bool = setting(False, "apply the reference's inputs without feedback", only=PROCESS)

    # Sensors
    estimate: str = setting(
        "state",
        "states that the tracker gets: the plant's, or what a filter makes of the measurements of "
        "the scenario's sensors alone",
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
    speed_factor: float = setting(
        1.0,
        "simulated seconds per wall second; 1 is real time, 0 = as fast as possible",
        at_least=0.0,
        changeable=True,
        only=NODES,
    )
    lockstep: bool = setting(
        False,
        "wait, at every step, for the command that answers its state; the tracker, for every plan",
        only=NODES,
    )

    # Nodes beside plant and tracker
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
        if self.controller != MPC and self.mpc != MpcSettings():
            raise ValueError(
                "options of mpc are for the predictive tracker: add --controller mpc, or "
                "controller=mpc in a study"
            )

    def __getitem__(self, name: str) -> Any:
        """The value of the setting of this name."""
        group, _, own = name.rpartition(".")
        return getattr(getattr(self, group) if group else self, own)

    @staticmethod
    def of(values: Mapping[str, Any]) -> RunSettings:
        """The settings with these values by name, such as `mpc.horizon_s`, or nested as `to_dict`
        returns them, and defaults else. Other names do not count, nor do empty texts of lists.
        Lists of numbers become tuples.
        """
        nested = {group: dict(values.get(group, {})) for group in GROUPS}
        own = {name: value for name, value in values.items() if name not in GROUPS}
        for name in [name for name in own if name.partition(".")[0] in GROUPS]:
            group, _, inner = name.partition(".")
            nested[group][inner] = own.pop(name)
        return RunSettings(
            plant=PlantSettings(**_known(PlantSettings, nested["plant"])),
            mpc=MpcSettings(**_known(MpcSettings, nested["mpc"])),
            **_known(RunSettings, own),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values by name, nested, as JSON and YAML store them."""
        return asdict(self)


SETTINGS: Mapping[str, Declaration] = {entry.name: entry for entry in declared(RunSettings)}
"""All settings of a run by name."""


def short_name(entry: Declaration) -> str:
    """The name of a setting in a study, and with dashes of its option: without the unit, and for
    one value of several: `mpc.horizon_s` is `mpc_horizon`, `mpc.constraints` `mpc_constraint`.
    """
    name = entry.name.removesuffix("_s") if entry.unit == "s" else entry.name
    several = entry.is_list or isinstance(entry.value, Mapping)
    return (name.removesuffix("s") if several else name).replace(".", "_")


OPTIONS: Mapping[str, Declaration] = {
    short_name(entry): entry
    for entry in SETTINGS.values()
    if entry.name not in (*ORIGIN, "disturb", "fault")
    and entry.only != NODES
    and not isinstance(entry.value, Mapping)
}
"""The options of `nh_control simulate` that a study fixes or varies, by their names there; several
texts have spaces between them.
"""


@cache
def _of_group(prefix: str) -> tuple[Declaration, ...]:
    """The settings of a group itself, by their prefix."""
    of_prefix = [entry for entry in SETTINGS.values() if entry.name.startswith(prefix)]
    return tuple(entry for entry in of_prefix if "." not in entry.name.removeprefix(prefix))


def _known(group: type[_Group], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the group's settings; lists of numbers in its mappings as tuples."""
    names = {entry.name.removeprefix(group.prefix) for entry in _of_group(group.prefix)}
    return {name: _plain(value) for name, value in values.items() if name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: tuple(v) if isinstance(v, list) else v for k, v in value.items()}
    return [text for text in value if text] if isinstance(value, list | tuple) else value
