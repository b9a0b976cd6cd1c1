"""Converts a run's settings to the options of the plant and the predictive tracker, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from nh_control.runs.settings import MPC, RunSettings
from nh_control.scenarios import MpcOptions, PlantOptions, disturbance, fault


def plant_options(settings: RunSettings) -> PlantOptions:
    """Return the differences between the plant and the model. Raises UnknownName and
    ValueError.
    """
    return PlantOptions(
        integrator=settings.plant.integrator,
        substeps=settings.plant.substeps,
        parameters=settings.plant.parameters,
        disturbances=tuple(map(disturbance.parse, settings.disturb)),
        faults=tuple(map(fault.parse, settings.fault)),
    )


def mpc_options(settings: RunSettings) -> MpcOptions | None:
    """Return the options of the predictive tracker, or None for other controllers."""
    return MpcOptions.of(asdict(settings.mpc)) if settings.controller == MPC else None


def values_of(options: PlantOptions, mpc: MpcOptions | None) -> dict[str, Any]:
    """Return, by name, the settings that correspond to the given options."""
    # the inverse of `plant_options` and `mpc_options`
    values = {} if mpc is None else asdict(mpc)
    return {
        **{f"mpc.{name}": value for name, value in values.items()},
        "plant.integrator": options.integrator,
        "plant.substeps": options.substeps,
        "plant.parameters": dict(options.parameters),
        "disturb": [str(disturbance) for disturbance in options.disturbances],
        "fault": [str(fault) for fault in options.faults],
    }
