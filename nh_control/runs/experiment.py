"""One closed-loop run of a scenario: its settings, built and checked, and its result, in this
process or over ROS.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from nh_control.control.trackers import Tracker
from nh_control.discrete.contact_forces import ContactTable
from nh_control.discrete.plant_steps import convert
from nh_control.discrete.system import DiscreteSystem
from nh_control.loop.fault_effects import FaultEffect, effects
from nh_control.loop.faults import FaultLines
from nh_control.loop.sensed_state import SensedState
from nh_control.loop.simulated_plant import make_plant
from nh_control.loop.wire_format import MessageStates
from nh_control.mechanics.parameters import declarations
from nh_control.numerics.files import write_npz
from nh_control.runs.contacts import contacts_of
from nh_control.runs.design import Design
from nh_control.runs.experiment_checks import (
    checked_perturbation,
    require_estimate,
    require_sizes,
    require_step,
)
from nh_control.runs.local_run import LocalRun
from nh_control.runs.option_values import values_of
from nh_control.runs.outputs import OutputValues, outputs_of
from nh_control.runs.room import LINEARIZED, SIMULATED, require_room
from nh_control.runs.settings import RunSettings
from nh_control.runs.simulation import ClosedLoop, closed_loop
from nh_control.scenarios import MpcOptions, PlantOptions, Scenario, error_metrics, mpc_tracker
from nh_control.scenarios.disturbance import DisturbanceForces
from nh_control.scenarios.free_motion import lasting
from nh_control.scenarios.joint_motion import reference_label
from nh_control.scenarios.sensor import SENSORS, STATE


@dataclass(frozen=True)
class Experiment:
    """A scenario's tracker about a reference on a plant that starts at `x0` (a state of the
    model), for `steps` steps of the model.
    """

    scenario: Scenario
    model: DiscreteSystem
    plant: DiscreteSystem
    tracker: Tracker
    integrator: str
    options: PlantOptions
    perturbation: Any
    x0: np.ndarray
    steps: int
    mpc: MpcOptions | None = None
    estimate: str = STATE
    design: Design = Design()

    @staticmethod
    def make(
        scenario: Scenario,
        reference: str = "",
        integrator: str = "",
        step_s: float = 0.0,
        options: PlantOptions = PlantOptions(),
        perturbation: Any = None,
        integral: bool = False,
        duration_s: float = 0.0,
        mpc: MpcOptions | None = None,
        estimate: str = STATE,
    ) -> Experiment:
        """Build the run of these names and numbers, with a predictive tracker for options `mpc`,
        else with LQR. "", 0 and None stand for the scenario's defaults, 0 s for the reference's
        length. The tracker gets the state, or, with the `estimate` "sensors", a filter's estimate
        from the scenario's sensors, see `SensedState`.

        Raises UnknownName with the valid names, ValueError, and StepFailed if the reference cannot
        be simulated.
        """
        model = scenario.model(integrator, step_s)
        require_sizes(scenario, options.parameters)
        plant = scenario.plant(model, options)
        require_step(scenario, model.h)
        reference = lasting(reference or next(iter(scenario.references)), duration_s)
        target = scenario.reference(model, reference)
        require_room(model, len(target), LINEARIZED)
        if not len(target) or 0 < duration_s <= model.h / 2:
            raise ValueError(f"{model}: the step is longer than the run; choose a smaller step")
        tracker: Tracker = (
            scenario.tracker(model, target, integral)
            if mpc is None
            else mpc_tracker(scenario, model, target, mpc, integral)
        )
        perturbation = checked_perturbation(scenario, model.system, perturbation)
        x0 = scenario.perturb(model, target.states[0], perturbation)
        lines = FaultLines.of(options.faults, model)  # refused before anything runs
        require_estimate(scenario, estimate, lines)
        steps = tracker.steps(duration_s)
        require_room(model, steps, SIMULATED)
        how = (integrator, options, perturbation, x0, steps, mpc, estimate)
        return Experiment(scenario, model, plant, tracker, *how)

    @property
    def labels(self) -> tuple[str, str]:
        """Names of the scenario, or its robot, and of the reference in titles and folders."""
        reference = reference_label(self.tracker.reference.name)
        return self.scenario.label or self.scenario.name, reference

    @property
    def integral(self) -> bool:
        """Whether the tracker estimates a disturbance."""
        return self.tracker.disturbance_gain > 0

    @property
    def settings(self) -> RunSettings:
        """The settings from which `build` makes this experiment; no default is left open."""
        values = {
            "reference": self.tracker.reference.name,
            "duration_s": self.steps * self.model.h,
            "integrator": self.integrator,
            "step_s": self.model.h,
            "integral": self.integral,
            "estimate": self.estimate,
            "model_parameters": self.design.parameters,
            "weight_factors": self.design.weights,
            "perturb": {d.name: d.value for d in declarations(self.perturbation)},
        }
        options = values_of(self.options, self.mpc)
        return RunSettings.of({**self.scenario.origin, **values, **options})

    @cached_property
    def plant_parameters(self) -> Any:
        """Physical parameters of the plant."""
        return self.scenario.plant_parameters(self.options)

    @cached_property
    def faults(self) -> FaultLines:
        """The faults of sensors and actuators."""
        return FaultLines.of(self.options.faults, self.model)

    @cached_property
    def external(self) -> DisturbanceForces:
        """The external forces of the disturbances."""
        return self.scenario.disturbance(self.model, self.options)

    @cached_property
    def disturbance(self) -> np.ndarray:
        """The external forces in every step, (steps, plant.nu - model.nu)."""
        return self.external.rows(self.steps)

    def run(
        self,
        feedback: bool = True,
        progress: Callable[[int], None] | None = None,
        stop: Callable[[], bool] = lambda: False,
        by_messages: bool = False,
    ) -> ClosedLoop:
        """Simulate in this process. Before step k (in native loops every some hundred steps) it
        calls `progress(k)` and `stop()`; if `stop` returns True the run ends early. Runs with
        faults, from sensors, and `by_messages` are made by the loop of the nodes, and have the
        bits of a run in lock-step; in others the tracker gets the plant's states without the
        round-off of messages, in native code.
        """

        def watch(k: int) -> bool:
            if progress is not None:
                progress(k)
            return stop()

        if by_messages:
            self.scenario.require_messages(self.model.system)
        if self.options.faults or by_messages or (feedback and self.estimate == SENSORS):
            return self._local_run(feedback, watch)
        return closed_loop(
            self.plant,
            self.tracker,
            convert(self.x0, self.model, self.plant),
            self.steps,
            substeps=self.options.substeps,
            feedback=feedback,
            disturbance=self.disturbance,
            watch=watch,
        )

    def _local_run(self, feedback: bool, watch: Callable[[int], bool]) -> ClosedLoop:
        """Run by the loop of the nodes."""
        s, model, target = self.scenario, self.model, self.tracker.target(0)
        plant = make_plant(s, model, self.plant, self.x0, self.options)
        messages = MessageStates(s, model, self.plant, self.plant_parameters, target)
        is_sensed = feedback and self.estimate == SENSORS
        return LocalRun(
            plant,
            self.tracker,
            self.steps,
            messages=messages if s.has_messages else None,
            sensed=SensedState(s.sensors, s.sensing, model) if is_sensed else None,
            feedback=feedback,
            watch=watch,
        ).run()

    def without_faults(self) -> Experiment:
        """The same experiment without faults of sensors and actuators."""
        return replace(self, options=replace(self.options, faults=()))


@dataclass(frozen=True)
class Result:
    """Result of a run: the closed `loop`, the `open_loop` from the same start for comparison (or
    None), the wall time `wall_s`, the reason `stopped` of an early end ("" without one), and
    `ros`, numbers of a run over ROS (None in this process).
    """

    experiment: Experiment
    loop: ClosedLoop
    open_loop: ClosedLoop | None
    wall_s: float
    feedback: bool = True
    stopped: str = ""
    ros: dict | None = None

    @cached_property
    def targets(self) -> np.ndarray:
        """Reference states (N + 1, nx) at the nodes of the run, the last one held past the
        reference's end.
        """
        states = self.experiment.tracker.reference.states
        return states[np.minimum(np.arange(len(self.loop.trajectory.states)), len(states) - 1)]

    @cached_property
    def feedforward(self) -> np.ndarray:
        """Reference inputs (N, nu). Past the reference's end they hold its last state, or are zero
        forces that keep prescribed coordinates: damping is feedback.
        """
        tracker, steps = self.experiment.tracker, len(self.loop.trajectory)
        inputs, end = tracker.reference.inputs, tracker.reference.states[-1]
        after = inputs[-1] if tracker.hold else tracker.dsys.idle(end)
        return np.vstack([inputs[:steps], np.tile(after, (max(0, steps - len(inputs)), 1))])

    @cached_property
    def error_parts(self) -> list[error_metrics.Part]:
        """The configuration's tracking error in parts: positions, headings, attitudes, directions,
        coordinates.
        """
        model, nq = self.experiment.model, self.experiment.model.system.space.nq
        return error_metrics.error_parts(
            self.experiment.scenario,
            model.system.space,
            self.loop.trajectory.states[:, :nq],
            self.targets[:, :nq],
        )

    @cached_property
    def monitored(self) -> np.ndarray:
        """Values of the scenario's monitor before every step of the plant, (N, values); raises
        ValueError for a scenario without one.
        """
        e, inputs = self.experiment, self.loop.trajectory.inputs
        model, monitor, parameters = e.model, e.scenario.monitor, e.plant_parameters
        if monitor is None:
            raise ValueError(f"{e.scenario.name} monitors nothing")
        rows = [
            monitor.values(
                parameters, model.configuration(x), model.velocity(x), u, e.external.named(w)
            )
            for x, u, w in zip(self.loop.trajectory.states, inputs, e.disturbance)
        ]
        return np.array(rows).reshape(len(inputs), len(monitor.names))

    @cached_property
    def outputs(self) -> OutputValues:
        """The plant's declared outputs at the nodes."""
        e, path = self.experiment, self.loop.trajectory
        return outputs_of(e.plant, e.model, path, e.disturbance)

    @cached_property
    def contacts(self) -> ContactTable | None:
        """The plant's contacts and grips in every step, None without them."""
        e = self.experiment
        return contacts_of(e.plant, e.model, self.loop.trajectory, e.disturbance)

    @cached_property
    def fault_effects(self) -> tuple[FaultEffect, ...]:
        """Effects of every fault, faults of sensors first."""
        loop, e = self.loop, self.experiment
        commands = loop.trajectory.inputs if loop.commands is None else loop.commands
        return effects(e.faults, e.model, loop.trajectory.states, commands)

    @cached_property
    def without_faults(self) -> ClosedLoop | None:
        """The same run in this process without faults, None if there are none."""
        e = self.experiment
        return e.without_faults().run(self.feedback) if e.options.faults else None

    @cached_property
    def manifold_residual(self) -> np.ndarray | None:
        """Distance (N + 1) of the configurations' numbers from the manifold, None for a flat
        space.
        """
        space = self.experiment.model.system.space
        return error_metrics.manifold_residual(space, self.loop.trajectory.states[:, : space.nq])

    def configuration_error(self, loop: ClosedLoop | None = None) -> np.ndarray:
        """Norm (N + 1) of the configuration's part of the tracking error; lengths in m, angles in
        rad. Coordinates without weight, like the turns of a wheel, are not tracked and do not
        count.
        """
        space = self.experiment.model.system.space
        tracked = self.experiment.scenario.tracked(space)
        return error_metrics.norms((loop or self.loop).errors[:, : space.nv][:, tracked])

    def _repr_html_(self) -> str:
        """The page of the run in a notebook."""
        import nh_control  # hands out the room above, which draws

        return str(nh_control.view.result_in_a_notebook(self))

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of `save` by name: times, states, inputs, errors, saturated, energy,
        constraint, monitored values, contacts, reference and open loop.
        """
        model, loop = self.experiment.model, self.loop
        arrays = {
            "times": loop.trajectory.times,
            "states": loop.trajectory.states,
            "inputs": loop.trajectory.inputs,
            "errors": loop.errors,
            "saturated": loop.saturated,
            "energy": loop.energy,
            "constraint": loop.constraint,
            "reference_states": self.targets,
            "reference_inputs": self.feedforward,
            "reference_energy": model.energies(self.targets),
            "state_names": np.array(model.state_names),
            "error_names": np.array(model.state_space.tangent_names),
            "input_names": np.array(model.inputs),
            **self.outputs.arrays,
        }
        if self.experiment.scenario.monitor is not None:
            arrays["monitored"] = self.monitored
        if self.contacts is not None:
            arrays |= self.contacts.arrays
        if loop.commands is not None:
            arrays["commands"] = loop.commands
        if self.open_loop is not None:
            arrays["open_loop_states"] = self.open_loop.trajectory.states
            arrays["open_loop_errors"] = self.open_loop.errors
        return arrays

    @property
    def description(self) -> dict[str, Any]:
        """Plain values from which the run can be made again: the settings and the outcome."""
        outcome = {"feedback": self.feedback, "stopped": self.stopped, "wall_s": self.wall_s}
        return {**self.experiment.settings.to_dict(), **outcome}

    def save(self, path: str | Path) -> None:
        """Write `arrays` and, as JSON, the `description`, whole or not at all, as .npz."""
        write_npz(path, **self.arrays, description=np.array(json.dumps(self.description)))
