"""Free motions from an initial state that the user chooses. They are available as references in
every scenario.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.mechanics.consistent_states import satisfy_constraints
from nh_control.scenarios.names import UnknownName

FREE, DURATION = "free", "duration"
FREE_S = 2.0
"""Default duration (s) of a free motion."""
SYNTAX = "free[:NAME=VALUE,...]"
"""Name of the reference: the initial coordinates and velocities that are changed, and a
`duration`.
"""


def is_free(reference: str, declared: Collection[str] = ()) -> bool:
    """Whether a reference is a free motion. This is False for names that the scenario has
    `declared`.
    """
    return reference.partition(":")[0] == FREE and reference not in declared


def lasting(reference: str, duration_s: float) -> str:
    """Add the duration `duration_s` to the name of a free motion. The name is unchanged if it
    already contains a duration, if `duration_s` is 0, or if the reference is not a free motion.
    """
    if not is_free(reference) or not duration_s or f"{DURATION}=" in reference:
        return reference
    return f"{reference}{',' if ':' in reference else ':'}{DURATION}={duration_s!r}"


def free_motion(
    model: DiscreteSystem, reference: str, declared: Callable[[DiscreteSystem], Trajectory] | None
) -> Trajectory:
    """The motion without forces that the name `reference` describes. Prescribed coordinates stay
    at rest.

    The initial state is that of the reference `declared`, with the changes in the name. If there
    is no such reference, the system starts at rest at the origin of the space, or at the nominal
    configuration if it has holonomic constraints. The coordinates that the name does not mention
    are then adjusted to satisfy these constraints. Raises UnknownName, NotConsistent, ValueError
    and StepFailed.
    """
    system, space = model.system, model.system.space
    constrained = system.n_holonomic_constraints > 0
    q = np.array(system.nominal_configuration if constrained else space.origin)
    v = np.zeros(space.nw)
    if declared is not None:
        start = declared(model).states[0]
        q, v = model.configuration(start).copy(), model.velocity(start).copy()
    values = _values(reference, (*space.names, *space.velocity_names, DURATION))
    duration_s = values.pop(DURATION, FREE_S)
    for name, value in values.items():
        if name in space.names:
            q[space.names.index(name)] = value
        else:
            v[space.velocity_names.index(name)] = value
    if constrained:
        # Coordinates in the name keep their values, and the others are corrected to satisfy the
        # constraints.
        fixed = {*values, *system.prescribed}.intersection(space.tangent_names)
        q = satisfy_constraints(system, q, sorted(fixed))
    x = model.state(q, v)
    steps = max(1, round(duration_s / model.h))
    return replace(model.simulate(x, np.tile(model.idle(x), (steps, 1))), name=reference)


def _values(reference: str, names: tuple[str, ...]) -> dict[str, float]:
    """Parse the values in the name of a free motion."""
    values: dict[str, float] = {}
    body = reference.partition(":")[2]
    for part in body.split(",") if body else ():
        name, _, text = (piece.strip() for piece in part.partition("="))
        if name not in names:
            raise UnknownName(f"start of {reference!r},", name, names)
        try:
            values[name] = float(text)
        except ValueError:
            values[name] = math.nan
        if not math.isfinite(values[name]) or (name == DURATION and values[name] <= 0):
            raise ValueError(
                f"reference {reference!r}: {name} must be a finite number"
                f"{' > 0' if name == DURATION else ''}, got {text!r}; write {SYNTAX}"
            )
    return values
