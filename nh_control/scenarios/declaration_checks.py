"""Checks of a scenario's declarations, which run once its system has been built."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry.spaces import SE2, Rn
from nh_control.mechanics.system import System
from nh_control.scenarios.shown import Joint, PlanarBody, factors


def require_whole_state(
    scenario: str,
    system: System,
    joints: Sequence[Joint],
    body: PlanarBody | None,
    bodies: tuple[np.ndarray, np.ndarray],
) -> None:
    """Raise ValueError unless messages contain every coordinate and every velocity. The messages
    describe the joints, the planar body, and the spatial `bodies` (with their configurations and
    velocities). A coordinate may appear in more than one of these.
    """
    names, space = [joint.name for joint in joints], system.space
    if len(set(names)) < len(names):
        raise ValueError(f"scenario {scenario}: names of joints must differ, got {names}")
    in_q, in_v = np.zeros(space.nq, dtype=bool), np.zeros(space.nw, dtype=bool)
    parts = [(joint.place(space), 1) for joint in joints]
    parts += [] if body is None else [(body.place(space), 3)]
    for (i, j), n in parts:
        in_q[i : i + n] = in_v[j : j + n] = True
    # Spatial bodies come first in configurations and in velocities.
    in_q[: len(bodies[0])] = in_v[: len(bodies[1])] = True
    for what, named, carried in (
        ("coordinates", space.names, in_q),
        ("velocities", space.velocity_names, in_v),
    ):
        if lacking := [name for name, there in zip(named, carried) if not there]:
            raise ValueError(
                f"scenario {scenario}: messages of the state lack the {what} {lacking}, which "
                f"nodes need; declare {_remedy(system, lacking[0])}"
            )


def _remedy(system: System, name: str) -> str:
    """The declaration to add for the coordinate or velocity with the given name."""
    part = next(f for f, _, _ in factors(system.space) if name in f.names + f.velocity_names)
    if isinstance(part, Rn):
        unit = ", unit='A'" if name in system.first_order else ""
        return f"joints=(..., Joint({name!r}, {name!r}{unit})), each with its unit"
    if isinstance(part, SE2):
        return f"body=PlanarBody('base_link', 'odom', {part.names})"
    return (
        "to_bodies(parameters, q, v) and its inverse from_bodies(bodies), which returns the "
        "configuration and velocity up to this part of the space"
    )


def checked_reference(where: str, reference: object, model: DiscreteSystem) -> Trajectory:
    """Return the `reference` that a function of the scenario created. Raises ValueError unless it
    is a trajectory with the model's numbers of states and inputs.
    """
    if not isinstance(reference, Trajectory):
        raise ValueError(f"{where}: the function must return a Trajectory, got {reference!r}")
    shape = reference.states.shape[1], reference.inputs.shape[1]
    if shape != (model.nx, model.nu):
        raise ValueError(
            f"{where}: it has {shape[0]} states and {shape[1]} inputs, expected {model.nx} and "
            f"{model.nu}, as in {model}"
        )
    return reference
