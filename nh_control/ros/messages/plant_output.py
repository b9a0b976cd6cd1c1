"""The output of a plant: states, sensors, contacts, the reference's start time, and
diagnostics.
"""

from __future__ import annotations

from functools import partial

from rclpy.node import Node

from nh_control.loop.clocks import NANOSECONDS
from nh_control.loop.plant_report import OutputMonitor, PlantReport, RotationMonitor
from nh_control.loop.simulation_loop import Mode, SimulationLoop
from nh_control.ros.messages.codec_publisher import CodecPublisher
from nh_control.ros.messages.contact_publisher import ContactPublisher
from nh_control.ros.messages.diagnostics import Diagnostics
from nh_control.ros.messages.motor_publisher import MotorPublisher
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
from nh_control.runs.node_process import NO_ANSWER, STEP_FAILED
from nh_control.runs.topics import TRUTH


class PlantOutput:
    """The output of a `SimulationLoop` on topics and in the log. It ends the process if the
    parameters require that.
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
        # the measured state may lack velocities, but the true state has them
        shown, true = (
            codecs(scenario, plant.dsys, velocities, setup.parameters, prefix, efforts=True)
            for velocities in (parameters["publish_velocities"], True)
        )
        self._efforts = setup.efforts
        self._clock = CLOCKS[parameters["clock"]]
        self._states = StatePublisher(node, shown, self._clock)
        self._truth = CodecPublisher(node, true, TRUTH, UNSENT)
        self._sensors = SensorPublisher(node, scenario, plant, self._stamp, prefix)
        self._motors = MotorPublisher(node, plant, self._stamp)
        self._monitor = OutputMonitor(scenario.monitor, setup.parameters)
        self._contacts = ContactPublisher(node, scenario, plant, self._stamp, prefix)
        self._rotations = RotationMonitor(plant.dsys.system.space, model.dsys.h)
        self.latency = CommandLatency(node)

    def report(self, loop: SimulationLoop, what: str) -> Diagnostics:
        """Start publishing the loop's diagnostics, as the status `what`."""
        self._loop = loop
        wrenches = [] if self._plant.wrenches is None else [self._plant.wrenches]
        monitors = [self.latency, self._contacts, *wrenches, *self._plant.monitors]
        tables = self._monitor, self._rotations
        self._diagnostics = Diagnostics(
            self._node,
            self._inbox,
            what,
            self._model.scenario.name,
            PlantReport(loop, monitors, tables).begin,
            lambda: second_clock(self._node, self._clock),
        )
        return self._diagnostics

    # The output of the loop ----------------------------------------------------------------------

    def publish(self) -> None:
        """Publish the measured and the true state. If the measurement is lost, publish the time
        in place of the measured state.
        """
        plant, measured_step = self._plant, self._plant.measured_step
        q, v, now = plant.configuration, plant.velocity, self._stamp(plant.step)
        efforts = partial(self._efforts, q, v, plant.inputs)
        # if plant.step == self._shown, publish the state again for late subscribers
        if plant.step in (measured_step, self._shown):
            measured_q, measured_v = plant.measured
            # a delayed measurement keeps the stamp of its step
            stamp = now if measured_step == plant.step else self._stamp(measured_step)
            self.latency.published(measured_step)
            self._states.publish(measured_q.tolist(), measured_v.tolist(), stamp, now, efforts)
        else:
            self._states.publish_time(now)
        self._shown = plant.step
        self._sensors.publish()
        self._motors.publish()
        if self._truth.has_subscribers:
            self._truth.publish(q.tolist(), v.tolist(), now, efforts())
        self._monitor.observe(plant.step, q, v, plant.forces, plant.external)
        self._rotations.observe(v)
        self._contacts.publish()

    def placed(self) -> None:
        """Publish the reference's start time before a state that does not continue the last
        one.
        """
        self._backup.place(self._plant.step, self._loop.start_step)
        self._reference_start.deliver(self._stamp(self._loop.start_step))

    def missing(self) -> str:
        """The reason why nodes in the parameter `wait_for` do not receive the states yet, or "" if
        they do.
        """
        # all publishers whose subscribers might miss messages from the first step
        others = [
            self._diagnostics.publisher,
            *self._truth.publishers,
            *self._sensors.publishers,
            *self._contacts.publishers,
            *self._motors.publishers,
        ]
        return self._states.missing(self._parameters["wait_for"], others)

    def has_controller(self) -> bool:
        """Whether a node publishes commands."""
        return self._node.count_publishers("joint_commands") > 0

    def waits(self, text: str, over: bool) -> None:
        """Log a long wait for a command, with the expected message, and log when the wait is
        over.
        """
        log = self._node.get_logger()
        if over:
            log.info(text)
        else:
            log.warning(f"{text}. {self._expected()}")

    def _expected(self) -> str:
        """The topic, domain and contents of the missing command."""
        node, validator = self._node, self._loop.validator
        topic, step = node.resolve_topic_name("joint_commands"), self._plant.measured_step
        # names help to find a controller that publishes to another domain or topic
        publishers = node.get_publishers_info_by_topic(topic)
        names = sorted(
            f"{info.node_namespace.rstrip('/')}/{info.node_name}" for info in publishers
        )
        heard = f"{', '.join(names)} publishes there" if names else "no node publishes there"
        for reason, example in validator.examples.items():
            heard += f"; rejected, {reason.value}: {example}"
        return (
            f"Topic {topic}, DDS domain {node.context.get_domain_id()}: {heard}. Expected "
            f"sensor_msgs/msg/JointState with the stamp of the state, "
            f"{self._stamp(step) / NANOSECONDS:.9f} s, name {list(validator.names.inputs)} and "
            f"their {self._parameters['command_interface']}"
        )

    def late_subscribers(self) -> bool:
        """Whether there are new subscribers to the states."""
        late = self._states.late_subscribers(), self._sensors.late_subscribers()
        return any(late)

    def changed(self) -> None:
        """Report and log the mode, and end the process if the parameters require that."""
        loop = self._loop
        self._diagnostics.publish()
        reason = f": {loop.reason}" if loop.reason else ""
        on_finish = self._parameters["on_finish"]
        text = f"{loop.mode.value} at step {loop.plant.step}{reason}"
        log = self._node.get_logger()
        if loop.mode is Mode.FAILED:
            log.error(text)
            if on_finish != "stay":
                self._exit.request(code=STEP_FAILED if loop.failure is not None else NO_ANSWER)
        else:  # rclpy allows one severity per line of code
            log.info(text)
        if loop.mode is Mode.FINISHED:
            # a summary of the run's timing
            pacing = loop.pacer.statistics()
            *_, p99 = pacing.jitter_percentiles_s
            log.info(
                f"{pacing.rate_hz:.1f} steps/s; missed steps {pacing.missed}; jitter mean "
                f"{pacing.jitter_mean_s * 1e6:.0f} us, 99 % {p99 * 1e6:.0f} us, "
                f"max {pacing.jitter_max_s * 1e6:.0f} us; commands rejected "
                f"{loop.validator.rejected.total()}"
            )
            if on_finish == "exit":
                self._exit.request()
