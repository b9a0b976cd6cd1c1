"""The plant's contacts in a run."""

from __future__ import annotations

import numpy as np

from nh_control.discrete.contact_forces import ContactReadout, ContactTable
from nh_control.discrete.plant_steps import convert, with_external
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory


def contacts_of(
    plant: DiscreteSystem, model: DiscreteSystem, path: Trajectory, external: np.ndarray
) -> ContactTable | None:
    """Return the plant's contacts and grips in every step of the model's path or, with substeps,
    in the first substep of each step. The contacts are computed with the plant's parameters and
    the `external` forces (N, k). Returns None for a plant without contacts.
    """
    if plant.method.contacts is None:
        return None
    steps = len(path.inputs)
    states = [convert(x, model, plant) for x in path.states[:steps]]
    inputs = [with_external(plant, u, w) for u, w in zip(path.inputs, external)]
    return ContactReadout(plant).table(
        np.reshape(states, (steps, plant.nx)), np.reshape(inputs, (steps, plant.nu))
    )


def contact_numbers(table: ContactTable) -> dict:
    """Return, for each contact, the largest normal force and friction force, the smallest gap and
    margin, and the number of steps in which the contact slides. An undefined number is None.
    """
    if not len(table.normal):
        return {}
    # |friction| over both tangents
    friction = np.linalg.norm(table.friction, axis=2)
    numbers = table.normal.max(axis=0), friction.max(axis=0), table.gap.min(axis=0)
    rows = zip(table.names, *numbers, table.margin.min(axis=0), table.slides.sum(axis=0))
    return {
        name: {
            "normal_max_N": float(normal),
            "friction_max_N": float(rubbing),
            # a grip has no gap, and a contact that never closes has no margin: both are infinite
            "gap_min_m": float(gap) if np.isfinite(gap) else None,
            "margin_min": float(margin) if np.isfinite(margin) else None,
            "steps_sliding": int(steps),
        }
        for name, normal, rubbing, gap, margin, steps in rows
    }


def contact_text(c: dict) -> str:
    """Describe a contact's largest forces, its smallest gap and its smallest friction margin."""
    parts = [f"normal force max {c['normal_max_N']:.3g} N"] if c["normal_max_N"] else []
    if c["gap_min_m"] is not None:
        parts.append(f"least gap {c['gap_min_m']:.1e} m")
    if c["margin_min"] is not None:
        friction = f"friction max {c['friction_max_N']:.3g} N, least margin {c['margin_min']:.0%}"
        slides = f", slides in {c['steps_sliding']} steps" if c["steps_sliding"] else ""
        parts.append(friction + slides)
    return ", ".join(parts)
