"""The forces of contacts and grips in a step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.system import DiscreteSystem


class ContactForce(NamedTuple):
    """Mean force of a contact over a step: along the normal (N, 0 of a grip) and along its
    tangents (k, N).
    """

    normal: float
    friction: np.ndarray


def contact_forces(
    dsys: DiscreteSystem, x: ArrayLike, u: ArrayLike = ()
) -> dict[str, ContactForce]:
    """Forces `impulse / h` of the step from the state x (nx) under the input u (nu), by the names
    of contacts and, as `grip_1`, ..., of grips.

    They act at the step's first node, so that the first step of a body that is put down at rest
    has half of its weight. Raises ValueError for a system without contacts, and as `step` does.
    """
    contacts, system = dsys.method.contacts, dsys.system
    if contacts is None:
        raise ValueError(f"{dsys}: the system declares no contacts and no grips")
    impulses = dsys.unknowns(x, u)[contacts.first :]
    names = [contact.name for contact in system.contacts]
    names += [f"grip_{i + 1}" for i in range(len(system.grips))]
    return {
        name: ContactForce(
            float(impulses[block.normal] / dsys.h) if block.normal >= 0 else 0.0,
            impulses[block.tangent : block.tangent + block.k] / dsys.h,
        )
        for name, block in zip(names, contacts.blocks)
    }
