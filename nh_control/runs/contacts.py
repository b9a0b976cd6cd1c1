"""The contacts of the plant over a run."""

from __future__ import annotations

import numpy as np

from nh_control.discrete.contact_forces import ContactReadout, ContactTable
from nh_control.discrete.plant_steps import convert, with_external
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory


def contacts_of(
    plant: DiscreteSystem, model: DiscreteSystem, path: Trajectory, external: np.ndarray
) -> ContactTable | None:
    """Contacts and grips of the plant in every step of the model's path (of substeps in the
    first), with its parameters and its `external` forces (N, k); None for a plant without.
    """
    if plant.method.contacts is None:
        return None
    steps = len(path.inputs)
    states = [convert(x, model, plant) for x in path.states[:steps]]
    inputs = [with_external(plant, u, w) for u, w in zip(path.inputs, external)]
    table = np.reshape(states, (steps, plant.nx)), np.reshape(inputs, (steps, plant.nu))
    return ContactReadout(plant).table(*table)


def contact_numbers(table: ContactTable) -> dict:
    """Largest normal force and friction of every contact, its least gap and margin, and the number
    of steps in which it slides; None where a number does not exist.
    """
    if not len(table.normal):
        return {}
    friction = np.linalg.norm(table.friction, axis=2)
    numbers = table.normal.max(axis=0), friction.max(axis=0), table.gap.min(axis=0)
    rows = zip(table.names, *numbers, table.margin.min(axis=0), table.slides.sum(axis=0))
    return {
        name: {
            "normal_max_N": float(normal),
            "friction_max_N": float(rubbing),
            "gap_min_m": float(gap) if np.isfinite(gap) else None,
            "margin_min": float(margin) if np.isfinite(margin) else None,
            "steps_sliding": int(steps),
        }
        for name, normal, rubbing, gap, margin, steps in rows
    }


def contact_text(c: dict) -> str:
    """A contact's largest forces, least gap and margin of its friction cone."""
    parts = [f"normal force max {c['normal_max_N']:.3g} N"] if c["normal_max_N"] else []
    if c["gap_min_m"] is not None:
        parts.append(f"least gap {c['gap_min_m']:.1e} m")
    if c["margin_min"] is not None:
        friction = f"friction max {c['friction_max_N']:.3g} N, least margin {c['margin_min']:.0%}"
        slides = f", slides in {c['steps_sliding']} steps" if c["steps_sliding"] else ""
        parts.append(friction + slides)
    return ", ".join(parts)
