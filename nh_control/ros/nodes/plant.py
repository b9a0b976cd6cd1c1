"""The plant node. It simulates a scenario's plant in real time or in lock-step, and provides
topics, services and diagnostics.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

from rclpy.node import Node

from nh_control.loop.clocks import Pacer
from nh_control.loop.simulation_loop import SimulationLoop
from nh_control.mechanics.parameters import declarations
from nh_control.ros.messages.entities import Entities
from nh_control.ros.messages.plant_control import (
    CommandReader,
    PlantControl,
    WrenchInterface,
)
from nh_control.ros.messages.plant_output import PlantOutput
from nh_control.ros.runtime import process
from nh_control.ros.runtime.declared import PERTURBATION, PLANT
from nh_control.ros.runtime.dynamic_parameters import DynamicParameters
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.parameters import Parameters
from nh_control.ros.runtime.plant_changes import PlantChanges
from nh_control.ros.runtime.plant_setup import PlantSetup
from nh_control.ros.runtime.selected_model import Model, frame_prefix
from nh_control.ros.runtime.subscribers import wait_delivered


class Plant:
    """Publishes states and the clock, and receives commands, for a `SimulationLoop`. The loop
    determines the time, order and validity of the steps.
    """

    def __init__(self, node: Node, inbox: Inbox, exit_: process.Exit):
        self._node, self._parameters = node, Parameters(node, PLANT)
        # create the model and the plant first, because the topics depend on them
        parameters, self._model = self._parameters, Model.of(self._parameters)
        model, setup = self._model, PlantSetup(self._model, parameters)
        self.output = PlantOutput(node, inbox, model, setup, parameters, exit_)
        pacer = Pacer(model.dsys.h, parameters["speed_factor"])
        self.loop = SimulationLoop(
            setup.plant, setup.validator, pacer, setup.run, inbox, self.output
        )
        # the loop's inputs: commands, wrenches, services, and changed parameters
        self.diagnostics = self.output.report(self.loop, "simulation")
        CommandReader(node, inbox, self.loop, self.output.latency, setup.kinds)
        if setup.plant.wrenches is not None:
            WrenchInterface(node, inbox, self.loop, setup.plant.wrenches)
        PlantControl(node, inbox, self.loop, parameters)
        self._end_standard_control = self._begin_standard_control(inbox, setup, exit_)
        fields = declarations(model.scenario.no_perturbation)
        errors = [PERTURBATION + field.name for field in fields]
        changes = PlantChanges(model, self.loop, setup, errors)
        self._live = DynamicParameters(node, inbox, parameters, changes.changes)
        self._log_start()

    def work(self) -> None:
        """Run the loop."""
        self.loop.run()

    def close(self) -> None:
        """End the actions, and wait until the last messages have arrived."""
        # the last messages must arrive before the topics are destroyed
        self._end_standard_control()
        self._live.close()
        self.diagnostics.publish()
        self.loop.plant.close()
        wait_delivered(self._node.publishers)

    def _begin_standard_control(
        self, inbox: Inbox, setup: PlantSetup, exit_: process.Exit
    ) -> Callable[[], None]:
        """Offer the standard services for simulators if their package is installed, and return the
        function that ends them.
        """
        node, scenario = self._node, self._model.scenario
        try:
            from nh_control.ros.messages.standard_control import StandardControl
        except ModuleNotFoundError as missing:
            if missing.name != "simulation_interfaces":
                raise
            text = "simulation_interfaces is not installed: only the services ~/pause, ~/step, "
            node.get_logger().info(text + "... are available")
            return lambda: None
        prefix = frame_prefix(node, self._parameters)
        entities = Entities(scenario, setup.plant.dsys, setup.parameters, prefix)
        return StandardControl(
            node, inbox, self.loop, entities, scenario.title, exit_.request
        ).close

    def _log_start(self) -> None:
        parameters, loop = self._parameters, self.loop
        speed = (
            f"{parameters['speed_factor']:g} x real time"
            if parameters["speed_factor"]
            else "as fast as possible"
        )
        commands = (
            "no limit on commands"
            if parameters["on_finish"] == "continue"
            else f"{loop.options.last_step} commands"
        )
        self._node.get_logger().info(
            f"plant: {loop.plant.dsys}, {loop.plant.substeps} step(s) per command; model: "
            f"{self._model.dsys}; reference {self._model.reference.name!r}; {commands}, "
            f"{speed}{', lock-step' if parameters['lockstep'] else ''}"
        )
        if not (parameters["speed_factor"] or parameters["lockstep"]):
            self._node.get_logger().warning(
                "at full speed, commands arrive too late; with lockstep:=true the plant waits for "
                "them"
            )
        autopilot = self._model.scenario.autopilot
        if (
            autopilot is not None
            and autopilot.kind == "betaflight"
            and 0 < parameters["speed_factor"] < 1
        ):
            self._node.get_logger().warning(
                "below real time, Betaflight's clock keeps running between steps, so it flies "
                "worse; use speed_factor:=1, or lockstep:=true with speed_factor:=0"
            )


main = partial(process.run, "plant", Plant)
"""`main(args)` runs the node and returns the exit code."""

if __name__ == "__main__":
    sys.exit(main())
