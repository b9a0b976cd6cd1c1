"""A closed-loop run of a scenario: an experiment, which is built from checked settings, and its
result. The result has the same form for runs in this process and over ROS.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from nh_control.control.controller import ControllerLike
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
from nh_control.runs.controllers import make_tracker
from nh_control.runs.design import Design
from nh_control.runs.experiment_checks import (
    checked_perturbation,
    require_estimate,
    require_sizes,
    require_step,
)
from nh_control.runs.kept_constraints import KeptConstraint, kept_constraints
from nh_control.runs.local_run import LocalRun
from nh_control.runs.memory import LINEARIZED, SIMULATED, require_memory
from nh_control.runs.option_values import values_of
from nh_control.runs.outputs import OutputValues, outputs_of
from nh_control.runs.settings import EXTERNAL, LQR, RunSettings
from nh_control.runs.simulation import ClosedLoop, closed_loop
from nh_control.scenarios import BodyState, MpcOptions, PlantOptions, Scenario, error_metrics
from nh_control.scenarios.constraints import ALL, ScenarioConstraint, chosen
from nh_control.scenarios.disturbance import DisturbanceForces
from nh_control.scenarios.free_motion import lasting
from nh_control.scenarios.joint_motion import reference_label
from nh_control.scenarios.sensor import SENSORS, STATE


@dataclass(frozen=True)
class Experiment:
    """A scenario's tracker, its reference, and a plant that starts at `x0` (a state of the model)
    and runs for `steps` steps of the model.
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
    controller: str = LQR

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
        controller: str | ControllerLike = LQR,
    ) -> Experiment:
        """Build a run from the given names and numbers. The tracker is predictive if `mpc` options
        are passed. Otherwise it is the user's `controller` (a name as in `RunSettings`, or a
        `Controller`) or LQR. "", 0 and None stand for the scenario's defaults; a duration of 0 s
        stands for the length of the reference. The tracker receives the state or, with the
        `estimate` "sensors", a filter's estimate from the scenario's sensors (see `SensedState`).

        Raises UnknownName with the valid names, ValueError, and StepFailed if the reference cannot
        be simulated.
        """
        model = scenario.model(integrator, step_s)
        require_sizes(scenario, options.parameters)
        plant = scenario.plant(model, options)
        require_step(scenario, model.h)
        reference = lasting(reference or next(iter(scenario.references)), duration_s)
        target = scenario.reference(model, reference)
        # check this before computing the gains, which need most of the memory
        require_memory(model, len(target), LINEARIZED)
        if not len(target) or 0 < duration_s <= model.h / 2:
            raise ValueError(f"{model}: the step is longer than the run; choose a smaller step")
        controller, tracker = make_tracker(scenario, model, target, controller, mpc, integral)
        perturbation = checked_perturbation(scenario, model.system, perturbation)
        x0 = scenario.perturb(model, target.states[0], perturbation)
        lines = FaultLines.of(options.faults, model)  # refuse invalid faults before the run
        require_estimate(scenario, estimate, lines)
        steps = tracker.steps(duration_s)
        require_memory(model, steps, SIMULATED)
        return Experiment(
            scenario,
            model,
            plant,
            tracker,
            integrator=integrator,
            options=options,
            perturbation=perturbation,
            x0=x0,
            steps=steps,
            mpc=mpc,
            estimate=estimate,
            controller=controller,
        )

    @property
    def labels(self) -> tuple[str, str]:
        """Names of the scenario (or its robot) and of the reference, for titles and folders."""
        reference = reference_label(self.tracker.reference.name)
        return self.scenario.label or self.scenario.name, reference

    @property
    def integral(self) -> bool:
        """Whether the tracker estimates a disturbance."""
        return self.tracker.disturbance_gain > 0

    @property
    def settings(self) -> RunSettings:
        """The settings from which `build` creates this experiment, with all defaults filled in."""
        values = {
            "reference": self.tracker.reference.name,
            "duration_s": self.steps * self.model.h,
            "integrator": self.integrator,
            "step_s": self.model.h,
            "integral": self.integral,
            "estimate": self.estimate,
            "controller": self.controller,
            "model_parameters": self.design.parameters,
            "weight_factors": self.design.weights,
            "perturb": {d.name: d.value for d in declarations(self.perturbation)},
        }
        options = values_of(self.options, self.mpc)
        return RunSettings.of({**self.scenario.origin, **values, **options})

    @cached_property
    def plant_parameters(self) -> Any:
        """The plant's physical parameters."""
        return self.scenario.plant_parameters(self.options)

    @cached_property
    def faults(self) -> FaultLines:
        """The sensor and actuator faults."""
        return FaultLines.of(self.options.faults, self.model)

    @cached_property
    def external(self) -> DisturbanceForces:
        """The external forces from the disturbances."""
        return self.scenario.disturbance(self.model, self.options)

    @cached_property
    def disturbance(self) -> np.ndarray:
        """The external forces (steps, plant.nu - model.nu) in every step."""
        return self.external.rows(self.steps)

    def bodies(self, states: np.ndarray) -> list[tuple[BodyState, ...]]:
        """Return the plant's bodies in space for each of the model's states (N, nx). There are
        none in scenarios without such bodies.
        """
        to_bodies = self.scenario.to_bodies
        if to_bodies is None:
            return [()] * len(states)
        q, v = self.model.configuration(states), self.model.velocity(states)
        return [to_bodies(self.plant_parameters, q_k, v_k) for q_k, v_k in zip(q, v)]

    def run(
        self,
        feedback: bool = True,
        progress: Callable[[int], None] | None = None,
        stop: Callable[[], bool] = lambda: False,
        by_messages: bool = False,
    ) -> ClosedLoop:
        """Simulate in this process. Raises ValueError for feedback from an external controller.

        `progress(k)` and `stop()` are called before step k (in native loops, every few hundred
        steps). The run ends early if `stop` returns True. Runs with faults, with sensor estimates,
        or `by_messages` use the nodes' loop and are bitwise identical to runs in lock-step. In
        other runs, which use native code, the tracker receives the plant's states without the
        round-off in messages.
        """

        def watch(k: int) -> bool:
            if progress is not None:
                progress(k)
            return stop()

        if feedback and self.controller == EXTERNAL:
            raise ValueError(
                f"{self.scenario.name}: the external controller answers messages of nodes, which "
                "`nh_control run` and `study` start"
            )
        if by_messages:
            self.scenario.require_messages(self.model.system)
        flown = self.scenario.autopilot is not None
        if flown or self.options.faults or by_messages or (feedback and self.estimate == SENSORS):
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
        """Run with the nodes' loop."""
        s, model, target = self.scenario, self.model, self.tracker.target(0)
        make: Callable[..., Any] = make_plant
        if s.autopilot is not None:
            from nh_control.autopilots.flown_plant import make_flown_plant

            make = partial(make_flown_plant, reference=self.tracker.reference)
        plant = make(s, model, self.plant, self.x0, self.options)
        messages = MessageStates(s, model, self.plant, self.plant_parameters, target)
        is_sensed = feedback and self.estimate == SENSORS
        try:
            return LocalRun(
                plant,
                self.tracker,
                self.steps,
                messages=messages if s.has_messages else None,
                sensed=SensedState(s.sensors, s.sensing, model) if is_sensed else None,
                feedback=feedback,
                watch=watch,
            ).run()
        finally:
            plant.close()

    def without_faults(self) -> Experiment:
        """Return the same experiment without sensor and actuator faults."""
        return replace(self, options=replace(self.options, faults=()))


@dataclass(frozen=True)
class Result:
    """The result of a run: the closed `loop`; the `open_loop` from the same initial state for
    comparison, or None; the wall time `wall_s`; the reason why the run `stopped` early, or ""; and
    `ros`, the numbers of a run over ROS, or None for a run in this process.
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
        """Reference states (N + 1, nx) at the nodes of the run. After the reference has ended, its
        last state is repeated.
        """
        states = self.experiment.tracker.reference.states
        # after the reference has ended, its last state remains the target
        return states[np.minimum(np.arange(len(self.loop.trajectory.states)), len(states) - 1)]

    @cached_property
    def bodies(self) -> list[tuple[BodyState, ...]]:
        """The plant's bodies in space at the nodes."""
        return self.experiment.bodies(self.loop.trajectory.states)

    @cached_property
    def target_bodies(self) -> list[tuple[BodyState, ...]]:
        """The plant's bodies in the `targets`."""
        return self.experiment.bodies(self.targets)

    @cached_property
    def target_energies(self) -> np.ndarray:
        """The model's energies (N + 1) in the `targets`."""
        return self.experiment.model.energies(self.targets)

    @cached_property
    def feedforward(self) -> np.ndarray:
        """Reference inputs (N, nu). After the reference has ended, they hold its last state or are
        zero forces with constant prescribed coordinates, because damping is feedback.
        """
        tracker, steps = self.experiment.tracker, len(self.loop.trajectory)
        inputs, end = tracker.reference.inputs, tracker.reference.states[-1]
        # after the reference has ended: the input that holds its last state, or none
        after = inputs[-1] if tracker.hold else tracker.dsys.idle(end)
        return np.vstack([inputs[:steps], np.tile(after, (max(0, steps - len(inputs)), 1))])

    @cached_property
    def error_parts(self) -> list[error_metrics.Part]:
        """The tracking error of the configuration, split into positions, headings, attitudes,
        directions and coordinates.
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
        """Values (N, values) of the scenario's monitor before every step of the plant. Raises
        ValueError for a scenario without a monitor.
        """
        e, inputs = self.experiment, self.loop.acting
        model, monitor, parameters = e.model, e.scenario.monitor, e.plant_parameters
        if monitor is None:
            raise ValueError(f"{e.scenario.name} has no monitor")
        states, forces = self.loop.trajectory.states[: len(inputs)], e.disturbance[: len(inputs)]
        q, v = model.configuration(states), model.velocity(states)
        if monitor.takes_tables:
            return monitor.values(parameters, q, v, inputs, e.external.named(forces))
        rows = [
            monitor.values(parameters, q_k, v_k, u_k, e.external.named(w_k))
            for q_k, v_k, u_k, w_k in zip(q, v, inputs, forces)
        ]
        return np.array(rows).reshape(len(inputs), len(monitor.names))

    @cached_property
    def outputs(self) -> OutputValues:
        """The plant's declared outputs at the nodes."""
        e, path = self.experiment, self.loop.trajectory
        # outputs depend on the inputs that acted, not on the commands of flight controllers
        acting = replace(path, inputs=self.loop.acting)
        return outputs_of(e.plant, e.model, acting, e.disturbance)

    @cached_property
    def contacts(self) -> ContactTable | None:
        """The plant's contacts and grips in every step; None without contacts."""
        e = self.experiment
        return contacts_of(e.plant, e.model, self.loop.trajectory, e.disturbance)

    @cached_property
    def fault_effects(self) -> tuple[FaultEffect, ...]:
        """Effects of all faults, with the sensor faults first."""
        loop, e = self.loop, self.experiment
        commands = loop.trajectory.inputs if loop.commands is None else loop.commands
        return effects(e.faults, e.model, loop.trajectory.states, commands)

    @cached_property
    def without_faults(self) -> ClosedLoop | None:
        """The same run in this process without faults. None if there are no faults, for an
        external controller, and for flight controllers, whose runs take as long as real flights.
        """
        e = self.experiment
        flown = e.scenario.autopilot is not None
        if not e.options.faults or flown or (self.feedback and e.controller == EXTERNAL):
            return None
        return e.without_faults().run(self.feedback)

    @cached_property
    def declared_constraints(self) -> dict[str, ScenarioConstraint]:
        """The scenario's constraints by name. With a predictive tracker, these are only the
        constraints that the tracker satisfies; otherwise, they are all constraints that apply
        along the run's reference.
        """
        e = self.experiment
        names = (ALL,) if e.mpc is None else e.mpc.constraints
        return chosen(e.scenario.constraints, e.tracker.reference.name, names)

    @cached_property
    def kept_constraints(self) -> dict[str, KeptConstraint]:
        """The `declared_constraints` with their values on the tracker's model."""
        return kept_constraints(
            self.experiment.model, self.declared_constraints, self.loop.trajectory
        )

    @cached_property
    def manifold_residual(self) -> np.ndarray | None:
        """Distance (N + 1) of each configuration from the manifold, or None for a flat space."""
        space = self.experiment.model.system.space
        return error_metrics.manifold_residual(space, self.loop.trajectory.states[:, : space.nq])

    def configuration_error(self, loop: ClosedLoop | None = None) -> np.ndarray:
        """Return the norm (N + 1) of the configuration part of the tracking error, with lengths in
        m and angles in rad. Coordinates without weight, such as the rotation of a wheel, are not
        tracked and do not count.
        """
        space = self.experiment.model.system.space
        tracked = self.experiment.scenario.tracked(space)
        return error_metrics.norms((loop or self.loop).errors[:, : space.nv][:, tracked])

    def _repr_html_(self) -> str:
        """Return the run's page for a notebook."""
        import nh_control  # its lazy names reach `view`, which this subpackage may not import

        return str(nh_control.view.result_in_a_notebook(self))

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays that `save` writes, by name: times, states, inputs, errors, saturated,
        energy, constraint, monitored values, contacts, reference and open loop.
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
            "reference_energy": self.target_energies,
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
        if loop.motors is not None and loop.forces is not None:
            arrays |= {"motors": loop.motors, "forces": loop.forces}
        if self.open_loop is not None:
            arrays["open_loop_states"] = self.open_loop.trajectory.states
            arrays["open_loop_errors"] = self.open_loop.errors
        return arrays

    @property
    def description(self) -> dict[str, Any]:
        """Plain values from which the run can be repeated: the settings and the outcome."""
        outcome = {"feedback": self.feedback, "stopped": self.stopped, "wall_s": self.wall_s}
        return {**self.experiment.settings.to_dict(), **outcome}

    def save(self, path: str | Path) -> None:
        """Write `arrays` and the `description` (as JSON) as .npz, completely or not at all."""
        write_npz(path, **self.arrays, description=np.array(json.dumps(self.description)))
