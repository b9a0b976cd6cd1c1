"""Checks of a scenario's declarations after its system is built."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry.space import Space
from nh_control.scenarios.names import UnknownName


def require_coordinates(named: Iterable[tuple[str, str]], space: Space) -> None:
    """Raise UnknownName for the first pair (what, name) with a name that is no coordinate of the
    space.
    """
    for what, name in named:
        if name not in space.names:
            raise UnknownName(f"coordinate of {what},", name, space.names)


def require_first_order_shown(
    scenario: str, first_order: Iterable[str], shown: Collection[str] | None
) -> None:
    """Raise ValueError for first-order coordinates that are not among the coordinates `shown` by
    joints: messages would not contain the whole state. None if there are no messages.
    """
    hidden = [name for name in first_order if shown is not None and name not in shown]
    if hidden:
        raise ValueError(
            f"scenario {scenario}: messages of the state lack the first-order coordinates "
            f"{hidden}; show them beside the joints, each with its unit: "
            f"joints=(..., Joint({hidden[0]!r}, {hidden[0]!r}, unit='A'))"
        )


def checked_reference(where: str, made: object, model: DiscreteSystem) -> Trajectory:
    """The reference that a scenario's function has returned; raises ValueError unless it is a
    trajectory with the model's states and inputs.
    """
    if not isinstance(made, Trajectory):
        raise ValueError(f"{where}: the function must return a Trajectory, got {made!r}")
    shape = made.states.shape[1], made.inputs.shape[1]
    if shape != (model.nx, model.nu):
        raise ValueError(
            f"{where}: it has {shape[0]} states and {shape[1]} inputs, expected {model.nx} and "
            f"{model.nu} as {model} has"
        )
    return made
