"""What a plant publishes: states, sensors, contacts, the start of its reference, diagnostics."""

from __future__ import annotations

from rclpy.node import Node

from nh_control.loop.plant_report import OutputMonitor, PlantReport, RotationMonitor
from nh_control.loop.simulation_loop import Mode, SimulationLoop
from nh_control.ros.messages.codec_publisher import CodecPublisher
from nh_control.ros.messages.contact_publisher import ContactPublisher
from nh_control.ros.messages.diagnostics import Diagnostics
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
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.parameters import Parameters
from nh_control.ros.runtime.plant_setup import PlantSetup
from nh_control.ros.runtime.process import Exit
from nh_control.ros.runtime.selected_model import Model, frame_prefix
from nh_control.runs.node_process import STEP_FAILED
from nh_control.runs.topics import TRUTH


class PlantOutput:
    """The output of a `SimulationLoop` on topics and in the log; it ends the process where the
    parameters say so.
    """

    def __init__(
        self,
        node: Node,
        inbox: Inbox,
        model: Model,
        setup: PlantSetup,
        parameters: Parameters,
        exit_: Exit,
    ):
        self._node, self._inbox, self._exit, self._model = node, inbox, exit_, model
        self._parameters, self._backup, self._shown = parameters, setup.backup, -1
        self._plant = plant = setup.plant
        scenario, self._stamp = model.scenario, model.clock.stamp
        prefix = frame_prefix(node, parameters)
        self._reference_start = ReferenceStartPublisher(node)  # discovered before the states
        shown, true = (
            codecs(scenario, plant.dsys, velocities, setup.parameters, prefix)
            for velocities in (parameters["publish_velocities"], True)
        )
        self._clock = CLOCKS[parameters["clock"]]
        self._states = StatePublisher(node, shown, self._clock)
        self._truth = CodecPublisher(node, true, TRUTH, UNSENT)
        self._sensors = SensorPublisher(node, scenario, plant, self._stamp, prefix)
        self._monitor = OutputMonitor(scenario.monitor, setup.parameters)
        self._contacts = ContactPublisher(node, scenario, plant, self._stamp, prefix)
        self._rotations = RotationMonitor(plant.dsys.system.space, model.dsys.h)
        self.latency = CommandLatency(node)

    def report(self, loop: SimulationLoop, what: str) -> Diagnostics:
        """Publish diagnostics of the loop, as the status `what`, from now on."""
        self._loop = loop
        wrenches = [] if self._plant.wrenches is None else [self._plant.wrenches]
        monitors = self._monitor, self._rotations, self.latency, self._contacts
        self._diagnostics = Diagnostics(
            self._node,
            self._inbox,
            what,
            self._model.scenario.name,
            PlantReport(loop, *monitors, *wrenches).make,
            lambda: second_clock(self._node, self._clock),
        )
        return self._diagnostics

    # The output of the loop ----------------------------------------------------------------------

    def publish(self) -> None:
        """Publish the measured and the true state; if the measurement is lost, only the time."""
        plant, measured_step = self._plant, self._plant.measured_step
        q, v, now = plant.configuration, plant.velocity, self._stamp(plant.step)
        # step == self._shown: published before, and now again for late subscribers
        if plant.step in (measured_step, self._shown):
            measured_q, measured_v = plant.measured
            stamp = now if measured_step == plant.step else self._stamp(measured_step)
            self.latency.published(measured_step)
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

    def placed(self) -> None:
        """Publish the reference's start before a state that does not follow from the last one."""
        self._backup.place(self._plant.step, self._loop.start_step)
        self._reference_start.deliver(self._stamp(self._loop.start_step))

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
