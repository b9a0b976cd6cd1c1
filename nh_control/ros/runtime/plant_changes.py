"""Parameters of a plant that may change while it runs."""

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
    """Changes of a plant's `setup`: of speed, fallback, faults and disturbances at the next step;
    of the initial `errors` and of the reference at the next reset.
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
            Change(("fault",), self._faults),
            Change(("disturb",), self._disturbances),
            Change(("reference", *errors), self._start),
        )

    def _speed(self, values: Mapping[str, Any]) -> Prepared:
        return partial(self._loop.pacer.set_speed, values["speed_factor"])

    def _fallback(self, values: Mapping[str, Any]) -> Prepared:
        fallback = Fallback(values["fallback"])
        if fallback is Fallback.TRACKER:
            self._setup.backup.prepare()

        def change() -> None:
            self._loop.validator.fallback = fallback

        return change

    def _faults(self, values: Mapping[str, Any]) -> Prepared:
        faults = [fault.parse(text) for text in values["fault"]]
        return partial(self._loop.plant.change_faults, FaultLines.of(faults, self._model.dsys))

    def _disturbances(self, values: Mapping[str, Any]) -> Prepared:
        """Prepare other disturbances. New targets need another plant, which is compiled and tried
        here.
        """
        scenario, model = self._model.scenario, self._model.dsys
        given = (*self._setup.always, *map(disturbance.parse, values["disturb"]))
        options = replace(self._setup.options, disturbances=given)
        forces = scenario.disturbance(model, options) if given else None
        plant = self._loop.plant
        if plant.targets == (() if forces is None else forces.names):
            return partial(plant.change_disturbance, plant.dsys, forces)
        dsys = scenario.plant(model, options)
        plant.prepare(dsys)
        return partial(plant.change_disturbance, dsys, forces)

    def _start(self, values: Mapping[str, Any]) -> Prepared:
        scenario, model = self._model.scenario, self._model.dsys
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
