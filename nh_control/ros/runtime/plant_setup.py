"""The simulated plant that a node's parameters select, and checks for its commands."""

from __future__ import annotations

import sys
from dataclasses import replace

from nh_control.autopilots.flown_plant import make_flown_plant
from nh_control.control.joint_servo import JointServo, joint_servo
from nh_control.control.run_length import run_steps
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
from nh_control.scenarios.driven_joints import driven_joints, joint_efforts, target_kinds
from nh_control.scenarios.names import UnknownName
from nh_control.scenarios.user_code import located


class PlantSetup:
    """The `plant` that the parameters select for a model, with its `options` and `parameters`, the
    loop options `run`, the command `validator` and the `backup` tracker. `kinds` gives the kinds
    of a servo's targets by joint name, and `efforts` computes the efforts that the inputs exert on
    all joints. The zero disturbances `always` keep the wrench targets in the plant. Raises
    UsageError.
    """

    def __init__(self, model: Model, parameters: Parameters):
        self._model, self._settings = model, parameters
        self.backup = BackupTracker(model.scenario, model.dsys, model.reference)
        try:
            last_step = self.last_step(model.reference)
            # loop options
            names = "lockstep", "wait_for_tracker", "answer_timeout_s"
            lockstep, waits, timeout_s = (self._settings[name] for name in names)
            self.run = Options(lockstep, waits, last_step, timeout_s)
            with located(model.scenario.file):
                self.plant = self._make_plant()
                if self._settings["fallback"] == Fallback.TRACKER:
                    self.backup.prepare()
        except (ValueError, StepFailed, ConnectionError, PermissionError) as error:
            raise UsageError(str(error)) from error
        self.validator = self._make_validator()

    def last_step(self, reference: Trajectory) -> int:
        """Number of steps in a run along a reference. Raises ValueError."""
        if self._settings["on_finish"] == "continue":
            return sys.maxsize
        # otherwise the length follows from the reference or from the parameter `duration_s`
        duration_s, holds = self._settings["duration_s"], self._model.holds(reference)
        return run_steps(self._model.dsys, reference, duration_s, holds)

    def _make_plant(self) -> SimulatedPlant:
        settings, scenario, model = self._settings, self._model.scenario, self._model.dsys
        targets = self._wrench_targets()
        self.always = none_yet(targets)
        changed = settings.declare_changed(PLANT_PARAMETERS, scenario.parameters)
        perturbation = type(scenario.perturbation)(
            **settings.declare_fields(PERTURBATION, scenario.no_perturbation, read_only=False)
        )
        # forces of zero at the wrench targets, so that the plant is compiled with these inputs
        self.options = options = PlantOptions(
            settings["plant.integrator"],
            settings["plant.substeps"],
            changed,
            (*self.always, *map(disturbance.parse, settings["disturb"])),
            tuple(fault.parse(text) for text in settings["fault"]),
        )
        dsys = scenario.plant(model, options)
        self.parameters = scenario.plant_parameters(options)
        # the state in which the run starts: the reference's first state with the initial errors
        start = scenario.perturb(model, self._model.reference.states[0], perturbation)
        wrenches = None
        if targets:
            x0, acceleration = convert(start, model, dsys), settings["wrench.acceleration"]
            # bounds on wrenches, from the accelerations that they cause in the initial state
            largest = bounds(dsys, x0, targets, model.system.nu, acceleration)
            wrenches = Wrenches(targets, largest, model.h)
        self._driven = driven_joints(scenario.joints, dsys.system, model.system.nu)
        names = [joint.name for joint in self._driven]
        # without a servo, commands are model inputs
        interface = settings["command_interface"]
        self.kinds = {} if interface == EFFORT else target_kinds(interface, names)
        self.efforts = joint_efforts(scenario.joints, dsys.system, model.system.nu)
        servo = self._make_servo(dsys)
        if scenario.autopilot is not None:
            reference = self._model.reference
            return make_flown_plant(scenario, model, dsys, start, options, reference, wrenches)
        return make_plant(scenario, model, dsys, start, options, wrenches, servo)

    def _make_servo(self, plant: DiscreteSystem) -> JointServo | None:
        """The joints' servo loop, if commands are positions or velocities."""
        if self._settings["command_interface"] == EFFORT:
            return None
        # each driven joint controls one coordinate with one input
        coordinates = {joint.name: joint.coordinate for joint in self._model.scenario.joints}
        pairs = [(coordinates[joint.name], joint.input) for joint in self._driven]
        kinds, nu = [self.kinds[joint.name] for joint in self._driven], self._model.dsys.system.nu
        return joint_servo(plant, pairs, kinds, self._settings["servo.bandwidth"], nu)

    def _wrench_targets(self) -> list[ForceTarget]:
        """The wrench targets. Raises UnknownName."""
        known = in_space(self._model.scenario.targets(self._model.dsys.system))
        for name in self._settings["wrench.targets"]:
            if name not in known:
                raise UnknownName("target of wrenches", name, known)
        return [known[name] for name in dict.fromkeys(self._settings["wrench.targets"])]

    def _make_validator(self) -> CommandValidator:
        settings, plant, backup = self._settings, self.plant, self.backup
        validator = CommandValidator(
            self._command_names(),
            plant.command_limits,
            self._model.clock,
            1 if settings["lockstep"] else settings["command_timeout_steps"],
            Fallback(settings["fallback"]),
            settings["lockstep"],
            own_clock=plant.servo is not None,
        )
        # computing these inputs takes time, so they are evaluated only when a fallback applies
        validator.fallback_inputs = {
            Fallback.ZERO: lambda: plant.idle,
            Fallback.DAMP: lambda: plant.damping,
            Fallback.TRACKER: lambda: backup.command(plant),
        }
        if plant.servo is not None:
            validator.interface = settings["command_interface"]
            # with a servo, these fallbacks hold the last targets
            kinds = (Fallback.ZERO, Fallback.DAMP, Fallback.TRACKER)
            validator.fallback_inputs = dict.fromkeys(kinds, lambda: plant.open_loop_commands)
        return validator

    def _command_names(self) -> CommandNames:
        dsys, joints = self._model.dsys, self._model.scenario.joints
        if self.plant.servo is not None:
            # targets are joint positions, whose signs may differ from those of the coordinates
            signs = {joint.name: joint.sign for joint in joints}
            driven = tuple(replace(joint, gain=signs[joint.name]) for joint in self._driven)
            return CommandNames(list(self.kinds), driven, signs)
        return CommandNames(dsys.inputs, self._driven, [joint.name for joint in joints])
