"""The simulated plant and the checks of its commands that a node's parameters select."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from nh_control.control.joint_servo import JointServo, joint_servo
from nh_control.control.tracking import run_steps
from nh_control.discrete.plant_steps import convert
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.loop.backup_tracker import BackupTracker
from nh_control.loop.command_validator import CommandNames, CommandValidator, Fallback
from nh_control.loop.simulated_plant import SimulatedPlant, make_plant
from nh_control.loop.simulation_loop import Options
from nh_control.loop.wrenches import Wrenches, bounds, none_yet
from nh_control.mechanics.external_forces import ForceTarget, in_space
from nh_control.ros.runtime.declared import EFFORT, PERTURBATION, PLANT_PARAMETERS
from nh_control.ros.runtime.parameters import Parameters
from nh_control.ros.runtime.process import UsageError
from nh_control.ros.runtime.selected_model import Model
from nh_control.scenarios import PlantOptions, disturbance, fault
from nh_control.scenarios.driven_joints import driven_joints
from nh_control.scenarios.names import UnknownName
from nh_control.scenarios.user_code import located


class PlantSetup:
    """The `plant` of a model that parameters select, with its `options` and `parameters`, the
    `run` of its loop, the `validator` of its commands and its `backup` tracker. The disturbances
    `always` keep the targets of wrenches in the plant. Raises UsageError.
    """

    def __init__(self, model: Model, parameters: Parameters):
        self._model, self._p = model, parameters
        self.backup = BackupTracker(model.scenario, model.dsys, model.reference)
        try:
            last_step = self.last_step(model.reference)
            self.run = Options(self._p["lockstep"], self._p["wait_for_tracker"], last_step)
            with located(model.scenario.file):
                self.plant = self._make_plant()
                if self._p["fallback"] == Fallback.TRACKER:
                    self.backup.prepare()
        except (ValueError, StepFailed) as error:
            raise UsageError(str(error)) from error
        self.validator = self._make_validator()

    def last_step(self, reference: Trajectory) -> int:
        """Number of steps of a run along a reference; raises ValueError."""
        if self._p["on_finish"] == "continue":
            return sys.maxsize
        duration_s, holds = self._p["duration_s"], self._model.holds(reference)
        return run_steps(self._model.dsys, reference, duration_s, holds)

    def _make_plant(self) -> SimulatedPlant:
        p, scenario, model = self._p, self._model.scenario, self._model.dsys
        targets = self._wrench_targets()
        self.always = none_yet(targets)
        changed = p.declare_changed(PLANT_PARAMETERS, scenario.parameters)
        perturbation = type(scenario.perturbation)(
            **p.declare_fields(PERTURBATION, scenario.no_perturbation, read_only=False)
        )
        self.options = options = PlantOptions(
            p["plant.integrator"],
            p["plant.substeps"],
            changed,
            (*self.always, *map(disturbance.parse, p["disturb"])),
            tuple(fault.parse(text) for text in p["fault"]),
        )
        dsys = scenario.plant(model, options)
        self.parameters = scenario.plant_parameters(options)
        start = scenario.perturb(model, self._model.reference.states[0], perturbation)
        wrenches = None
        if targets:
            x0, acceleration = convert(start, model, dsys), p["wrench.acceleration"]
            largest = bounds(dsys, x0, targets, model.system.nu, acceleration)
            wrenches = Wrenches(targets, largest, model.h)
        servo = self._make_servo(dsys)
        return make_plant(scenario, model, dsys, start, options, wrenches, servo)

    def _make_servo(self, plant: DiscreteSystem) -> JointServo | None:
        """The inner loop of the joints, if commands are positions or velocities."""
        interface, joints = self._p["command_interface"], self._model.scenario.joints
        if interface == EFFORT:
            return None
        nu = self._model.dsys.system.nu
        coordinates = {joint.name: joint.coordinate for joint in joints}
        driven = driven_joints(joints, plant.system, nu)
        pairs = [(coordinates[joint.name], joint.input) for joint in driven]
        return joint_servo(plant, pairs, interface, self._p["servo.bandwidth"], nu)

    def _wrench_targets(self) -> list[ForceTarget]:
        """The targets of wrenches; raises UnknownName."""
        known = in_space(self._model.scenario.targets(self._model.dsys.system))
        for name in self._p["wrench.targets"]:
            if name not in known:
                raise UnknownName("target of wrenches", name, known)
        return [known[name] for name in dict.fromkeys(self._p["wrench.targets"])]

    def _make_validator(self) -> CommandValidator:
        p, plant, backup = self._p, self.plant, self.backup
        limits = plant.commanded(plant.dsys.system.input_bounds)
        validator = CommandValidator(
            self._command_names(),
            limits if plant.servo is None else np.full_like(limits, np.inf) * [-1, 1],
            self._model.clock,
            1 if p["lockstep"] else p["command_timeout_steps"],
            Fallback(p["fallback"]),
            p["lockstep"],
        )
        validator.fallback_inputs = {
            Fallback.ZERO: lambda: plant.idle,
            Fallback.DAMP: lambda: plant.damping,
            Fallback.TRACKER: lambda: backup.command(plant),
        }
        if plant.servo is not None:
            validator.interface = p["command_interface"]
            kinds = (Fallback.ZERO, Fallback.DAMP, Fallback.TRACKER)
            validator.fallback_inputs = dict.fromkeys(kinds, lambda: plant.open_loop_commands)
        return validator

    def _command_names(self) -> CommandNames:
        dsys, joints = self._model.dsys, self._model.scenario.joints
        driven = driven_joints(joints, self.plant.dsys.system, dsys.system.nu)
        if self.plant.servo is not None:
            signs = {joint.name: joint.sign for joint in joints}
            driven = tuple(replace(joint, gain=signs[joint.name]) for joint in driven)
            names = [joint.name for joint in sorted(driven, key=lambda joint: joint.input)]
            return CommandNames(names, driven, signs)
        return CommandNames(dsys.inputs, driven, [joint.name for joint in joints])
