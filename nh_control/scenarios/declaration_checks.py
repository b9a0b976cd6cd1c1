"""Checks of a scenario's declarations after its system is built."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry.spaces import SE2, Rn
from nh_control.mechanics.system import System
from nh_control.scenarios.shown import Body, Joint, factors


def require_whole_state(
    scenario: str,
    system: System,
    joints: Sequence[Joint],
    body: Body | None,
    bodies: tuple[np.ndarray, np.ndarray],
) -> None:
    """Raise ValueError unless messages carry every coordinate and every velocity: those of joints,
    of the planar body, and configuration and velocity of `bodies` in space. Several may show one.
    """
    names, space = [joint.name for joint in joints], system.space
    if len(set(names)) < len(names):
        raise ValueError(f"scenario {scenario}: names of joints must differ, got {names}")
    in_q, in_v = np.zeros(space.nq, dtype=bool), np.zeros(space.nw, dtype=bool)
    parts = [(joint.place(space), 1) for joint in joints]
    parts += [] if body is None else [(body.place(space), 3)]
    for (i, j), n in parts:
        in_q[i : i + n] = in_v[j : j + n] = True
    in_q[: len(bodies[0])] = in_v[: len(bodies[1])] = True
    for what, named, carried in (
        ("coordinates", space.names, in_q),
        ("velocities", space.velocity_names, in_v),
    ):
        if lacking := [name for name, there in zip(named, carried) if not there]:
            raise ValueError(
                f"scenario {scenario}: messages of the state lack the {what} {lacking}, and nodes "
                f"would not know them; declare {_remedy(system, lacking[0])}"
            )


def _remedy(system: System, name: str) -> str:
    """The declaration that shows the coordinate or velocity of this name."""
    part = next(f for f, _, _ in factors(system.space) if name in f.names + f.velocity_names)
    if isinstance(part, Rn):
        unit = ", unit='A'" if name in system.first_order else ""
        return f"joints=(..., Joint({name!r}, {name!r}{unit})), each with its unit"
    if isinstance(part, SE2):
        return f"body=Body('base_link', 'odom', {part.names})"
    return (
        "to_bodies(parameters, q, v) and its inverse from_bodies(bodies), whose configuration and "
        "velocity are as long as the space's up to there"
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
