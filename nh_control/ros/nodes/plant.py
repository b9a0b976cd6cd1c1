"""The plant node: a scenario's simulated plant behind topics, with real-time pacing, lock-step,
services and diagnostics.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState

from nh_control.control.joint_servo import JointServo, joint_servo
from nh_control.control.tracking import run_steps
from nh_control.discrete.plant import convert
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.loop.backup_tracker import BackupTracker
from nh_control.loop.clocks import Pacer
from nh_control.loop.command_validator import (
    CommandNames,
    CommandValidator,
    Fallback,
    Rejection,
)
from nh_control.loop.plant_report import OutputMonitor, PlantReport, RotationMonitor
from nh_control.loop.simulated_plant import SimulatedPlant, make_plant
from nh_control.loop.simulation_loop import Mode, Options, SimulationLoop
from nh_control.loop.wrenches import Wrenches, bounds, none_yet
from nh_control.mechanics.external_forces import ForceTarget, in_space
from nh_control.mechanics.parameters import declarations
from nh_control.ros.messages import conversions
from nh_control.ros.messages.cdr import Template
from nh_control.ros.messages.codec_publisher import CodecPublisher
from nh_control.ros.messages.contact_publisher import ContactPublisher
from nh_control.ros.messages.diagnostics import Diagnostics
from nh_control.ros.messages.entities import Entities
from nh_control.ros.messages.plant_control import PlantControl, WrenchInterface
from nh_control.ros.messages.reference_start import ReferenceStartPublisher
from nh_control.ros.messages.sensor_publisher import SensorPublisher
from nh_control.ros.messages.state_codecs import codecs
from nh_control.ros.messages.state_publisher import (
    CLOCKS,
    UNSENT,
    CommandLatency,
    StatePublisher,
    second_clock,
)
from nh_control.ros.runtime import process
from nh_control.ros.runtime.declared import EFFORT, PERTURBATION, PLANT, PLANT_PARAMETERS
from nh_control.ros.runtime.dynamic_parameters import DynamicParameters
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.model import Model, frame_prefix
from nh_control.ros.runtime.parameters import Parameters
from nh_control.ros.runtime.plant_changes import PlantChanges
from nh_control.ros.runtime.subscribers import wait_delivered
from nh_control.runs.node_process import STEP_FAILED
from nh_control.runs.topics import TRUTH
from nh_control.scenarios import PlantOptions, disturbance, fault
from nh_control.scenarios.driven_joints import driven_joints
from nh_control.scenarios.names import UnknownName
from nh_control.scenarios.user_code import located

QUEUE = 10


class Plant:
    """Publishes states and clock, and takes commands. It is the output of a `SimulationLoop`,
    which decides about time, order and validity of the steps.
    """

    def __init__(self, node: Node, inbox: Inbox, exit_: process.Exit):
        self._node, self._inbox, self._exit = node, inbox, exit_
        self._parameters, self._shown = Parameters(node, PLANT), -1
        self._model = model = Model.of(self._parameters)
        self._clock = model.clock
        self._backup = BackupTracker(model.scenario, model.dsys, model.reference)
        self._loop = self._make_loop()
        plant, prefix = self._loop.plant, frame_prefix(node, self._parameters)
        self._reference_start = ReferenceStartPublisher(node)  # discovered before the states
        shown, true = (
            codecs(model.scenario, plant.dsys, velocities, self._plant_parameters, prefix)
            for velocities in (self._parameters["publish_velocities"], True)
        )
        clock = CLOCKS[self._parameters["clock"]]
        self._states = StatePublisher(node, shown, clock)
        self._truth = CodecPublisher(node, true, TRUTH, UNSENT)
        scenario, stamp = model.scenario, self._clock.stamp
        self._sensors = SensorPublisher(node, scenario, plant, stamp, prefix)
        self._monitor = OutputMonitor(scenario.monitor, self._plant_parameters)
        self._contacts = ContactPublisher(node, scenario, plant, stamp, prefix)
        self._rotations = RotationMonitor(plant.dsys.system.space, model.dsys.h)
        wrenches = [] if plant.wrenches is None else [plant.wrenches]
        self._latency = CommandLatency(node)
        watched = self._monitor, self._rotations, self._latency, self._contacts
        self._report = PlantReport(self._loop, *watched, *wrenches)
        self._diagnostics = Diagnostics(
            node,
            inbox,
            "simulation",
            model.scenario.name,
            self._report.make,
            lambda: second_clock(node, clock),
        )
        self._command = Template(conversions.command_message(self._model.dsys.inputs))
        inbox.subscribe(JointState, "joint_commands", self._on_command, QUEUE, raw=True)
        for one in wrenches:
            WrenchInterface(node, inbox, self._loop, one)
        PlantControl(node, inbox, self._loop, self._parameters)
        self._end_standard_control = self._begin_standard_control()
        errors = [PERTURBATION + one.name for one in declarations(scenario.no_perturbation)]
        changes = PlantChanges(
            model, self._loop, self._options, errors, self._last_step, self._backup, self._pulled
        )
        self._live = DynamicParameters(node, inbox, self._parameters, changes.changes)
        self._log_start()

    def work(self) -> None:
        """Run the loop."""
        self._loop.run()

    def close(self) -> None:
        """End the actions, and wait until the last messages have arrived."""
        self._end_standard_control()
        self._live.close()
        self._diagnostics.publish()
        wait_delivered(self._node.publishers)

    def _make_loop(self) -> SimulationLoop:
        p, model = self._parameters, self._model
        try:
            last_step = self._last_step(model.reference)
            run = Options(p["lockstep"], p["wait_for_tracker"], last_step)
            with located(model.scenario.file):
                plant = self._make_plant()
                if p["fallback"] == Fallback.TRACKER:
                    self._backup.prepare()
        except (ValueError, StepFailed) as error:
            raise process.UsageError(str(error)) from error
        limits = plant.commanded(plant.dsys.system.input_bounds)
        validator = CommandValidator(
            self._command_names(plant),
            limits if plant.servo is None else np.full_like(limits, np.inf) * [-1, 1],
            self._clock,
            1 if p["lockstep"] else p["command_timeout_steps"],
            Fallback(p["fallback"]),
            p["lockstep"],
        )
        validator.fallback_inputs = {
            Fallback.ZERO: lambda: plant.idle,
            Fallback.DAMP: lambda: plant.damping,
            Fallback.TRACKER: lambda: self._backup.command(plant, self._loop.start_step),
        }
        if plant.servo is not None:
            validator.interface = self._interface
            kinds = (Fallback.ZERO, Fallback.DAMP, Fallback.TRACKER)
            validator.fallback_inputs = dict.fromkeys(kinds, lambda: plant.open_loop_commands)
        pacer = Pacer(model.dsys.h, p["speed_factor"])
        return SimulationLoop(plant, validator, pacer, run, self._inbox, self)

    def _command_names(self, plant: SimulatedPlant) -> CommandNames:
        dsys, joints = self._model.dsys, self._model.scenario.joints
        driven = driven_joints(joints, plant.dsys.system, dsys.system.nu)
        if plant.servo is not None:
            signs = {joint.name: joint.sign for joint in joints}
            driven = tuple(replace(one, gain=signs[one.name]) for one in driven)
            names = [one.name for one in sorted(driven, key=lambda one: one.input)]
            return CommandNames(names, driven, signs)
        return CommandNames(dsys.inputs, driven, [joint.name for joint in joints])

    def _begin_standard_control(self) -> Callable[[], None]:
        """Offer the standard services for simulators if their package is installed; returns the
        function that ends them.
        """
        node, scenario, loop = self._node, self._model.scenario, self._loop
        try:
            from nh_control.ros.messages.standard_control import StandardControl
        except ModuleNotFoundError as missing:
            if missing.name != "simulation_interfaces":
                raise
            text = "simulation_interfaces is not installed: only the services ~/pause, ~/step, ..."
            node.get_logger().info(text)
            return lambda: None
        prefix = frame_prefix(node, self._parameters)
        entities = Entities(scenario, loop.plant.dsys, self._plant_parameters, prefix)
        quit_ = self._exit.request
        return StandardControl(node, self._inbox, loop, entities, scenario.title, quit_).close

    def _last_step(self, reference: Trajectory) -> int:
        p, model = self._parameters, self._model
        if p["on_finish"] == "continue":
            return sys.maxsize
        return run_steps(model.dsys, reference, p["duration_s"], model.holds(reference))

    def _make_plant(self) -> SimulatedPlant:
        p, model, scenario = self._parameters, self._model, self._model.scenario
        targets = self._wrench_targets()
        self._pulled = none_yet(targets)
        other = p.declare_changed(PLANT_PARAMETERS, scenario.parameters)
        perturbation = type(scenario.perturbation)(
            **p.declare_fields(PERTURBATION, scenario.no_perturbation, read_only=False)
        )
        self._options = options = PlantOptions(
            p["plant.integrator"],
            p["plant.substeps"],
            other,
            (*self._pulled, *map(disturbance.parse, p["disturb"])),
            tuple(fault.parse(text) for text in p["fault"]),
        )
        dsys = scenario.plant(model.dsys, options)
        self._plant_parameters = scenario.plant_parameters(options)
        start = scenario.perturb(model.dsys, model.reference.states[0], perturbation)
        x0 = convert(start, model.dsys, dsys)
        wrenches = None
        if targets:
            largest = bounds(dsys, x0, targets, model.dsys.system.nu, p["wrench.acceleration"])
            wrenches = Wrenches(targets, largest, model.dsys.h)
        servo = self._make_servo(dsys)
        return make_plant(scenario, model.dsys, dsys, start, options, wrenches, servo)

    def _make_servo(self, plant: DiscreteSystem) -> JointServo | None:
        """The inner loop of the joints, if commands are positions or velocities."""
        self._interface, model = self._parameters["command_interface"], self._model
        if self._interface == EFFORT:
            return None
        joints, nu = model.scenario.joints, model.dsys.system.nu
        coordinates = {joint.name: joint.coordinate for joint in joints}
        driven = driven_joints(joints, plant.system, nu)
        pairs = [(coordinates[one.name], one.input) for one in driven]
        return joint_servo(plant, pairs, self._interface, self._parameters["servo.bandwidth"], nu)

    def _wrench_targets(self) -> list[ForceTarget]:
        """The targets of wrenches; raises UnknownName."""
        known = in_space(self._model.scenario.targets(self._model.dsys.system))
        for name in self._parameters["wrench.targets"]:
            if name not in known:
                raise UnknownName("target of wrenches", name, known)
        return [known[name] for name in dict.fromkeys(self._parameters["wrench.targets"])]

    def _log_start(self) -> None:
        p, loop = self._parameters, self._loop
        speed = (
            f"{p['speed_factor']:g} x real time" if p["speed_factor"] else "as fast as possible"
        )
        commands = (
            "commands without end"
            if p["on_finish"] == "continue"
            else f"{loop.options.last_step} commands"
        )
        self._node.get_logger().info(
            f"plant: {loop.plant.dsys}, {loop.plant.substeps} step(s) per command; model: "
            f"{self._model.dsys}; reference {self._model.reference.name!r}; {commands}, "
            f"{speed}{', lock-step' if p['lockstep'] else ''}"
        )
        if not (p["speed_factor"] or p["lockstep"]):
            self._node.get_logger().warning(
                "as fast as possible, commands come too late; lockstep:=true waits for them"
            )

    # In the working thread -----------------------------------------------------------------------

    def publish(self) -> None:
        """Publish the measured and the true state; if the measurement is lost, only the time."""
        plant, measured_step = self._loop.plant, self._loop.plant.measured_step
        q, v, now = plant.configuration, plant.velocity, self._clock.stamp(plant.step)
        # step == self._shown: published before, and now again for late subscribers
        if plant.step in (measured_step, self._shown):
            measured_q, measured_v = plant.measured
            stamp = now if measured_step == plant.step else self._clock.stamp(measured_step)
            self._latency.published(measured_step)
            self._states.publish(measured_q.tolist(), measured_v.tolist(), stamp, now)
        else:
            self._states.publish_time(now)
        self._shown = plant.step
        self._sensors.publish()
        if self._truth.has_subscribers:
            self._truth.publish(q.tolist(), v.tolist(), now)
        self._monitor.observe(plant.step, q, v, plant.inputs, plant.external)
        self._rotations.observe(v)
        self._contacts.publish()

    def _on_command(self, data: bytes) -> None:
        try:
            message = self._command.decode(data)
        except conversions.ConversionError as reason:
            self._loop.validator.refuse(Rejection.UNREADABLE, str(reason))
        else:
            self._loop.command(*conversions.read_command(message, self._interface))
            self._latency.accepted(self._loop.validator)

    def placed(self) -> None:
        """Publish the reference's start before a state that does not follow from the last one."""
        if self._loop.plant.step == self._loop.start_step:
            self._backup.start()
        self._reference_start.deliver(self._clock.stamp(self._loop.start_step))

    def missing(self) -> str:
        """The reason why nodes of the parameter `wait_for` do not receive the states yet, "" if
        they do.
        """
        others = [
            self._diagnostics.publisher,
            *self._truth.publishers,
            *self._sensors.publishers,
            *self._contacts.publishers,
        ]
        return self._states.missing(self._parameters["wait_for"], others)

    def late_subscribers(self) -> bool:
        """Whether there are new subscribers to the states."""
        late = self._states.late_subscribers(), self._sensors.late_subscribers()
        return any(late)

    def changed(self) -> None:
        """Report and log the mode; end the process where the parameters say so."""
        loop = self._loop
        self._diagnostics.publish()
        reason = f": {loop.reason}" if loop.reason else ""
        on_finish = self._parameters["on_finish"]
        text = f"{loop.mode.value} at step {loop.plant.step}{reason}"
        log = self._node.get_logger()
        if loop.mode is Mode.FAILED:
            log.error(text)
            if on_finish != "stay":
                self._exit.request(code=STEP_FAILED)
        else:  # rclpy wants one severity per line of code
            log.info(text)
        if loop.mode is Mode.FINISHED:
            pacing = loop.pacer.statistics()
            log.info(
                f"{pacing.rate_hz:.1f} steps/s; missed steps {pacing.missed}; jitter mean "
                f"{pacing.jitter_mean_s * 1e6:.0f} us, 99 % {pacing.jitter_p99_s * 1e6:.0f} us, "
                f"max {pacing.jitter_max_s * 1e6:.0f} us; commands rejected "
                f"{loop.validator.rejected.total()}"
            )
            if on_finish == "exit":
                self._exit.request()


main = partial(process.run, "plant", Plant)
"""Run the node, `main(args)`; returns the exit code."""

if __name__ == "__main__":
    sys.exit(main())
