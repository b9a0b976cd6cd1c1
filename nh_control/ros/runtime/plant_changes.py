"""Changes to a plant's parameters while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from nh_control.discrete.plant_steps import convert
from nh_control.loop.command_validator import Fallback
from nh_control.loop.faults import FaultLines
from nh_control.loop.simulation_loop import SimulationLoop
from nh_control.ros.runtime.declared import PERTURBATION
from nh_control.ros.runtime.dynamic_parameters import Change
from nh_control.ros.runtime.plant_setup import PlantSetup
from nh_control.ros.runtime.selected_model import Model
from nh_control.scenarios import disturbance, fault

Prepared = Callable[[], None]


class PlantChanges:
    """Changes to a plant's `setup`. The speed, fallback, servo, faults and disturbances change at
    the next step. The initial `errors` and the reference change at the next reset.
    """

    def __init__(
        self,
        model: Model,
        loop: SimulationLoop,
        setup: PlantSetup,
        errors: Sequence[str],
    ):
        self._model, self._loop, self._setup = model, loop, setup
        self.changes = (
            Change(("speed_factor",), self._speed),
            Change(("fallback",), self._fallback),
            Change(("servo.bandwidth",), self._bandwidth),
            Change(("fault",), self._faults),
            Change(("disturb",), self._disturbances),
            Change(("reference", *errors), self._start),
        )

    def _speed(self, values: Mapping[str, Any]) -> Prepared:
        return partial(self._loop.pacer.set_speed, values["speed_factor"])

    def _fallback(self, values: Mapping[str, Any]) -> Prepared:
        # the tracker's gains are computed here, not in the loop
        fallback = Fallback(values["fallback"])
        if fallback is Fallback.TRACKER:
            self._setup.backup.prepare()
        return partial(self._loop.set_fallback, fallback)

    def _bandwidth(self, values: Mapping[str, Any]) -> Prepared:
        # the servo may be replaced meanwhile, so it is looked up when the change takes effect
        plant, bandwidth = self._loop.plant, values["servo.bandwidth"]

        def change() -> None:
            if plant.servo is not None:
                plant.servo = replace(plant.servo, bandwidth=bandwidth)

        return change

    def _faults(self, values: Mapping[str, Any]) -> Prepared:
        faults = [fault.parse(text) for text in values["fault"]]
        return partial(self._loop.plant.change_faults, FaultLines.of(faults, self._model.dsys))

    def _disturbances(self, values: Mapping[str, Any]) -> Prepared:
        """Prepare new disturbances. New targets require a new plant, which is compiled and tested
        here.
        """
        scenario, model = self._model.scenario, self._model.dsys
        disturbances = (*self._setup.always, *map(disturbance.parse, values["disturb"]))
        options = replace(self._setup.options, disturbances=disturbances)
        forces = scenario.disturbance(model, options) if disturbances else None
        plant = self._loop.plant
        if plant.targets == (() if forces is None else forces.names):
            return partial(plant.change_disturbance, plant.dsys, forces)
        dsys = scenario.plant(model, options)
        plant.prepare(dsys)
        return partial(plant.change_disturbance, dsys, forces)

    def _start(self, values: Mapping[str, Any]) -> Prepared:
        scenario, model = self._model.scenario, self._model.dsys
        # the next reset starts from the new initial error and the new reference
        errors = {
            name.removeprefix(PERTURBATION): value
            for name, value in values.items()
            if name != "reference"
        }
        perturbation = type(scenario.perturbation)(**errors)
        reference = scenario.reference(model, values["reference"])
        x0 = scenario.perturb(model, reference.states[0], perturbation)
        last_step = self._setup.last_step(reference)

        def change() -> None:
            self._loop.plan(convert(x0, model, self._loop.plant.dsys), last_step)
            self._setup.backup.plan(reference)

        return change
