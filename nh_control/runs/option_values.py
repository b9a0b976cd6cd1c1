"""Options of plant and predictive tracker from the settings of a run, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from nh_control.runs.settings import LQR, MPC, RunSettings
from nh_control.scenarios import MpcOptions, PlantOptions, disturbance, fault


def plant_options(settings: RunSettings) -> PlantOptions:
    """The differences between plant and model; raises UnknownName, ValueError."""
    return PlantOptions(
        integrator=settings.plant.integrator,
        substeps=settings.plant.substeps,
        parameters=settings.plant.parameters,
        disturbances=tuple(map(disturbance.parse, settings.disturb)),
        faults=tuple(map(fault.parse, settings.fault)),
    )


def mpc_options(settings: RunSettings) -> MpcOptions | None:
    """The options of the predictive tracker, None of LQR."""
    return None if settings.controller == LQR else MpcOptions.of(asdict(settings.mpc))


def values_of(options: PlantOptions, mpc: MpcOptions | None) -> dict[str, Any]:
    """The settings that these options stand for, by name."""
    values = {} if mpc is None else asdict(mpc)
    return {
        "controller": LQR if mpc is None else MPC,
        **{f"mpc.{name}": value for name, value in values.items()},
        "plant.integrator": options.integrator,
        "plant.substeps": options.substeps,
        "plant.parameters": dict(options.parameters),
        "disturb": [str(disturbance) for disturbance in options.disturbances],
        "fault": [str(fault) for fault in options.faults],
    }
