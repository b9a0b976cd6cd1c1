"""The plant node: a scenario's simulated plant behind topics, with real-time pacing, lock-step,
services and diagnostics.
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
    """Publishes states and clock, and takes commands, for a `SimulationLoop`, which decides about
    time, order and validity of the steps.
    """

    def __init__(self, node: Node, inbox: Inbox, exit_: process.Exit):
        self._node, self._parameters = node, Parameters(node, PLANT)
        p, self._model = self._parameters, Model.of(self._parameters)
        model, setup = self._model, PlantSetup(self._model, p)
        self.output = PlantOutput(node, inbox, model, setup, p, exit_)
        pacer = Pacer(model.dsys.h, p["speed_factor"])
        self.loop = SimulationLoop(
            setup.plant, setup.validator, pacer, setup.run, inbox, self.output
        )
        self.diagnostics = self.output.report(self.loop, "simulation")
        CommandReader(node, inbox, self.loop, self.output.latency, p["command_interface"])
        if setup.plant.wrenches is not None:
            WrenchInterface(node, inbox, self.loop, setup.plant.wrenches)
        PlantControl(node, inbox, self.loop, p)
        self._end_standard_control = self._begin_standard_control(inbox, setup, exit_)
        errors = [PERTURBATION + one.name for one in declarations(model.scenario.no_perturbation)]
        changes = PlantChanges(model, self.loop, setup, errors)
        self._live = DynamicParameters(node, inbox, p, changes.changes)
        self._log_start()

    def work(self) -> None:
        """Run the loop."""
        self.loop.run()

    def close(self) -> None:
        """End the actions, and wait until the last messages have arrived."""
        self._end_standard_control()
        self._live.close()
        self.diagnostics.publish()
        wait_delivered(self._node.publishers)

    def _begin_standard_control(
        self, inbox: Inbox, setup: PlantSetup, exit_: process.Exit
    ) -> Callable[[], None]:
        """Offer the standard services for simulators if their package is installed; returns the
        function that ends them.
        """
        node, scenario = self._node, self._model.scenario
        try:
            from nh_control.ros.messages.standard_control import StandardControl
        except ModuleNotFoundError as missing:
            if missing.name != "simulation_interfaces":
                raise
            text = "simulation_interfaces is not installed: only the services ~/pause, ~/step, ..."
            node.get_logger().info(text)
            return lambda: None
        prefix = frame_prefix(node, self._parameters)
        entities = Entities(scenario, setup.plant.dsys, setup.parameters, prefix)
        return StandardControl(
            node, inbox, self.loop, entities, scenario.title, exit_.request
        ).close

    def _log_start(self) -> None:
        p, loop = self._parameters, self.loop
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


main = partial(process.run, "plant", Plant)
"""Run the node, `main(args)`; returns the exit code."""

if __name__ == "__main__":
    sys.exit(main())
