"""The snakeboard and the car on wet ground. LQR tracks their maneuvers while the wheels may skid.

A reference is simulated with slip, but with the inputs from the scenario without slip. The wheels
therefore roll as far as friction allows. A patch of ice is a disturbance of the target "ground".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.integrators import nonholonomic_midpoint
from nh_control.mechanics.system import System
from nh_control.scenarios.car import CAR
from nh_control.scenarios.scenario import Scenario
from nh_control.scenarios.snakeboard import SNAKEBOARD
from nh_control.systems.wet_ground import (
    WetCarParameters,
    WetSnakeboardParameters,
    wet_car,
    wet_snakeboard,
)


def as_if_rolling(dry: Scenario, name: str, dsys: DiscreteSystem) -> Trajectory:
    """The motion with the inputs of a reference from the scenario without slip."""
    model = dry.model(step_s=dsys.h)
    rolling = dry.reference(model, name)
    x = rolling.states[0]
    start = dsys.state(model.configuration(x), model.velocity(x))
    return dsys.simulate(start, rolling.inputs)


def on_wet_ground(
    dry: Scenario,
    title: str,
    make_system: Callable[[Any], System],
    parameters: Any,
    references: Iterable[str],
    weights: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> Scenario:
    """A variant of a scenario with rolling wheels, in which the wheels may skid. It supports some
    of the scenario's references.
    """
    return replace(
        dry,
        name=f"wet_{dry.name}",
        title=title,
        parameters=parameters,
        make_system=make_system,
        integrators={"midpoint": nonholonomic_midpoint},
        references={name: partial(as_if_rolling, dry, name) for name in references},
        weights=weights,
        constraints={},
    )


_BOARD = np.diag([0.1, 1.0, 10.0, 10.0, 10.0, 0.1, 0.1, 0.1, 1.0, 0.1])
_CAR = np.diag([0.0, 1.0, 10.0, 5.0, 5.0, 0.0, 0.05, 2e-6, 2e-6, 2e-6])

WET_SNAKEBOARD = on_wet_ground(
    SNAKEBOARD,
    "Snakeboard on wet ground",
    wet_snakeboard,
    WetSnakeboardParameters(),
    ("slalom", "parking", "forward"),
    (_BOARD, 1e-2 * np.eye(2), 100 * _BOARD),
)
WET_CAR = on_wet_ground(
    CAR,
    "Car on wet ground",
    wet_car,
    WetCarParameters(),
    ("lane_change", "parking", "figure_eight"),
    (_CAR, np.diag([1e-6, 1e-3]), 10 * _CAR),
)
