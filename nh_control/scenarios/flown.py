"""Scenarios with a flight controller. The inputs of their models are thrusts and body rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from nh_control.control.projection import project_trajectory
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.mechanics.system import System
from nh_control.scenarios.craft_sensors import with_craft_sensors
from nh_control.scenarios.flight import LARGEST_RATE, AutopilotOptions, Flight
from nh_control.scenarios.scenario import Scenario
from nh_control.systems.rate_commands import angular_velocity_columns, with_rate_commands


def flown(scenario: Scenario, autopilot: str) -> Scenario:
    """The scenario with its craft flown by an autopilot (see `AutopilotOptions.parse`). In the new
    scenario, the model's inputs are commanded rates instead of torques, and the plant is that of
    the original scenario, which is stored as `behind`. If `autopilot` is empty, the scenario is
    returned unchanged. Raises ValueError for scenarios without craft.
    """
    if not autopilot:
        return scenario
    flight = scenario.flight
    if flight is None:
        raise ValueError(
            f"the scenario {scenario.name} declares no flight: --autopilot flies quadrotor and "
            "quadrotor_payload"
        )
    # This raises an error for invalid options and for rotors that the airframe does not have.
    AutopilotOptions.parse(autopilot).airframe(flight.airframe)

    def make_system(parameters: Any) -> System:
        return with_rate_commands(
            scenario.make_system(parameters), flight.time_constant, LARGEST_RATE
        )

    def with_sensors(parameters: Any) -> System:
        system = scenario.make_system(parameters)
        return with_craft_sensors(system, flight.crafts(system))

    n = len(flight.crafts(scenario.system))
    thrust, rate = flight.weights
    Q, _, _ = scenario.weights
    return replace(
        scenario,
        make_system=make_system,
        references={name: _commanded(scenario, flight, name) for name in flight.references},
        weights=(Q, np.diag([thrust, rate, rate, rate] * n), None),
        disturbance_gain=flight.disturbance_gain,
        guidance=None,
        constraints={},
        behind=replace(scenario, make_system=with_sensors),
        source={**scenario.source, "autopilot": autopilot},
    )


def _commanded(
    scenario: Scenario, flight: Flight, name: str
) -> Callable[[DiscreteSystem], Trajectory]:
    """The scenario's reference with the given name, as a motion with commanded rates."""

    def make(model: DiscreteSystem) -> Trajectory:
        system = scenario.make_system(model.system.parameters)
        of_wrenches = next(iter(scenario.integrators.values()))(system, model.h)
        motion = scenario.reference(of_wrenches, name)
        inputs = motion.inputs.copy()
        v = np.array([of_wrenches.velocity(x) for x in motion.states])
        middle, parameters = (v[1:] + v[:-1]) / 2, system.parameters
        inertia = np.array([parameters.Jx, parameters.Jy, parameters.Jz])
        for i, column in enumerate(angular_velocity_columns(system)):
            # In the rate loop, J omega' + omega x J omega = tau and omega' = (c - omega) / T
            # determine the command c.
            omega, torques = middle[:, column : column + 3], slice(4 * i + 1, 4 * i + 4)
            free = inputs[:, torques] - np.cross(omega, inertia * omega)
            inputs[:, torques] = omega + flight.time_constant * free / inertia
        q = motion.states[:, : system.space.nq]
        desired = Trajectory(
            model.h, model.state(q, v), inputs, model.state_names, model.inputs, name, model
        )
        # The lag changes the motion slightly. Projection makes the motion feasible for the model.
        n = model.ndx
        return project_trajectory(model, desired, np.eye(n), 1e-3 * np.eye(model.nu))

    return make
