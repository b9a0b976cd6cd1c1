"""The simulated plant: a discrete system with sensors and actuators, which advances in substeps
and always has a finite state.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from nh_control.control.damping import damping_or_idle
from nh_control.control.joint_servo import JointServo
from nh_control.control.target_motion import Target, TargetMotion
from nh_control.discrete.contact_forces import ContactForce, ContactReadout
from nh_control.discrete.plant_steps import convert, last_step, with_external, without_external
from nh_control.discrete.results import SolvedStep, StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.loop.faults import FaultLines
from nh_control.loop.plant_faults import PlantFaults
from nh_control.loop.sensing import Measurement, Sensors
from nh_control.loop.wrenches import Wrenches
from nh_control.numerics.compiled import wait_for_compiler
from nh_control.numerics.expressions import Vector, all_finite
from nh_control.scenarios import PlantOptions, Scenario
from nh_control.scenarios.disturbance import DisturbanceForces


class SimulatedPlant:
    """A plant with a period `h` (s) that consists of `substeps` steps of `dsys`. The inputs are
    constant over the period.

    With a `servo`, commands are joint positions or velocities. `motion` defines how these targets
    move between commands, and the servo's inner loop computes the inputs in every substep.
    Commands and measurements of the state pass through `faults`. A target that a fault has changed
    does not move. The `sensors` produce the `measurements` that arrive at the present step.
    External forces come from the `wrenches` and from the `disturbance`, which has inputs for the
    targets of both. `advance` either succeeds or leaves the state unchanged. The `configuration`
    (nq) and the trivialized `velocity` (nw) belong to the present `state` (nx). Raises ValueError
    for an initial state that is not finite.
    """

    def __init__(
        self,
        dsys: DiscreteSystem,
        initial: np.ndarray,
        substeps: int = 1,
        disturbance: DisturbanceForces | None = None,
        faults: PlantFaults | None = None,
        wrenches: Wrenches | None = None,
        servo: JointServo | None = None,
        sensors: Sensors | None = None,
    ):
        if not np.isfinite(initial).all():
            raise ValueError(f"initial state must be finite, got {np.asarray(initial).tolist()}")
        self.dsys, self.substeps = dsys, substeps
        self._disturbance, self.faults = disturbance, faults or PlantFaults(dsys)
        self.wrenches, self.servo, self._sensors = wrenches, servo, sensors
        self.motion = TargetMotion()
        self._readouts: dict[DiscreteSystem, ContactReadout] = {}
        self.initial = np.array(initial, dtype=float)
        self.reset()
        self._prepare()

    def _prepare(self) -> None:
        """Compile and load all functions before the run with a trial step that is undone."""
        try:
            self.advance(self.open_loop_commands)
            self.contacts, self.energy, self.constraint_residual  # noqa: B018
        except (StepFailed, ArithmeticError):
            pass  # the run reports the failure if its first step fails as well
        else:
            self.reset()
        wait_for_compiler()

    def reset(self) -> None:
        """Return to the initial state at step 0."""
        self.place(self.initial, 0)

    def place(self, state: np.ndarray, step: int) -> None:
        """Continue from another state (nx) at the given step. Raises ValueError for a wrong length
        and for numbers that are not finite.
        """
        state = np.array(state, dtype=float)
        if state.shape != self.initial.shape or not np.isfinite(state).all():
            raise ValueError(
                f"expected a state of {self.initial.size} finite numbers, got {state.tolist()}"
            )
        self.step = step
        self._set(state)
        self.inputs = self.idle
        self._applied = self.dsys.idle(state)
        self._target: np.ndarray | None = None
        self.motion.clear()
        self.external: dict[str, np.ndarray] = {}
        self.faults.start(step, self.configuration, self.velocity, self.inputs)
        if self._sensors is not None:
            self._sensors.reset()
        self._sense()

    def _sense(self) -> None:
        """Collect the measurements that arrive at the present step."""
        self.measurements: list[Measurement] = []
        if self._sensors is not None:
            self.measurements = self._sensors.measure(
                self.step, self.configuration, self.velocity, self._applied
            )

    def _set(
        self,
        state: np.ndarray,
        before: np.ndarray | None = None,
        solved: SolvedStep | None = None,
    ) -> None:
        """Set the state, the state before the last substep, and the solution of that substep."""
        self.configuration, self.velocity = (
            self.dsys.configuration(state),
            self.dsys.velocity(state),
        )
        self._before, self._solved, self.state = before, solved, state

    def advance(self, u: Vector) -> None:
        """Advance by one period under the commands u. Raises StepFailed, or ArithmeticError if the
        next state is not finite.
        """
        commands = np.asarray(u, dtype=float)
        # commands -> faulty actuators -> external forces -> servo or substeps
        output = self.faults.inputs(self.step, commands)
        if output is not None and output.value is not None:
            commands = output.value
        inputs = commands
        external: dict[str, np.ndarray] = {}
        if self._disturbance is not None:
            forces = self._disturbance(self.step)
            if self.wrenches is not None:
                self.wrenches.add(self.step, self._disturbance.named(forces))
            inputs = with_external(self.dsys, commands, forces)
            external = self._disturbance.named(forces)
        before, solved, commands, inputs = self._moved(commands, inputs)
        state = solved.x1
        if not all_finite(state):
            # nothing can fail after this point, so the state changes completely or not at all
            raise ArithmeticError(f"{self.dsys}: the next state is not finite: {state.tolist()}")
        self._set(state, before, solved)
        self.inputs, self._applied, self.external = commands, inputs, external
        if output is not None:
            self.faults.advanced(self.step, output)
        self.step += 1
        self.faults.measure(self.step, self.configuration, self.velocity)
        self._sense()

    def _moved(
        self, commands: np.ndarray, inputs: np.ndarray
    ) -> tuple[np.ndarray, SolvedStep, np.ndarray, np.ndarray]:
        """Return the state before the last substep, the solution of that substep, the commands to
        record, and the inputs (dsys.nu) that acted. The `inputs` are those computed from the
        `commands`.
        """
        if self.servo is None:
            before, solved = last_step(self.dsys, self.state, inputs, self.substeps)
            return before, solved, commands, inputs
        self._target = commands
        target = partial(self._moving_target, commands)
        before, solved, inputs = self.servo.advance(
            self.dsys, self.state, target, inputs, self.substeps
        )
        return before, solved, self.commanded(inputs), inputs

    def _moving_target(self, commands: np.ndarray, t: float) -> Target:
        """Return the servo's targets at time t (s) in the present step."""
        return self.motion.at(self.step * self.substeps * self.dsys.h + t, commands)

    @property
    def command_limits(self) -> np.ndarray:
        """Lower and upper command limits (n, 2). They are infinite with a servo, which respects
        its input limits itself.
        """
        limits = self.commanded(self.dsys.system.input_bounds)
        # a servo's commands are targets, and input limits do not apply to targets
        return limits if self.servo is None else np.full_like(limits, np.inf) * [-1, 1]

    @property
    def forces(self) -> np.ndarray:
        """The inputs of the plant's model in the last step, without external forces."""
        return self.commanded(self._applied)

    @property
    def monitors(self) -> tuple[Any, ...]:
        """Additional parts of the plant that report on themselves."""
        return ()

    @property
    def actuators(self) -> np.ndarray:
        """Outputs of flight controllers in the last step; empty without flight controllers."""
        return np.empty(0)

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names of the outputs in `actuators`."""
        return ()

    @property
    def rotor_thrusts(self) -> np.ndarray:
        """Thrusts (N) of the rotors that the outputs in `actuators` command."""
        return np.empty(0)

    @property
    def link(self) -> str:
        """A line of text about the links to flight controllers, or "" without them."""
        return ""

    def close(self) -> None:
        """End the processes that belong to the plant. This plant has none."""

    @property
    def before(self) -> np.ndarray:
        """The state (nx) before the last substep, or the present one if there has been no substep
        since `place`.
        """
        return self.state if self._before is None else self._before

    @property
    def applied(self) -> np.ndarray:
        """The inputs (dsys.nu) in the last step, including external forces. Before the first step,
        all forces are zero.
        """
        return self._applied

    @property
    def measured_step(self) -> int:
        """The last step whose measurement was not lost. Commands answer that measurement."""
        return self.faults.measured_step

    @property
    def measured(self) -> tuple[np.ndarray, np.ndarray]:
        """The measured configuration and velocity at step `measured_step`."""
        return self.faults.measured

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the disturbance's targets."""
        return () if self._disturbance is None else self._disturbance.names

    def prepare(self, dsys: DiscreteSystem) -> None:
        """Compile and load all functions of a system for `change_disturbance`, while the plant
        runs in another thread. Raises StepFailed if a step of the system fails.
        """
        # evaluate every function once: this compiles and loads it
        x0 = convert(self.state, self.dsys, dsys)
        u = dsys.idle(x0)
        x1 = dsys.step(x0, u)
        dsys.velocity(x1), dsys.energy(x1), dsys.constraint_residual(x0, x1)
        if dsys.method.contacts is not None:
            self._readout(dsys)(x0, u)
        wait_for_compiler()

    def change_disturbance(
        self, dsys: DiscreteSystem, disturbance: DisturbanceForces | None
    ) -> None:
        """Replace the disturbance. `dsys` is the system with the forces of the new disturbance. If
        it differs from the present system, call `prepare` first. The configuration and the
        velocity are unchanged.
        """
        before, self.dsys, self._disturbance = self.dsys, dsys, disturbance
        if dsys is not before:
            state = convert(self.state, before, dsys)
            self._set(state)
            self._applied = with_external(dsys, self.inputs, np.zeros(self._external))
            self.initial = convert(self.initial, before, dsys)
            self._readouts.pop(before, None)
            if self._sensors is not None:
                self._sensors.change_plant(dsys)

    def change_faults(self, lines: FaultLines) -> None:
        """Replace the faults from now on."""
        self.faults.change(lines, self.step, self.configuration, self.velocity, self.inputs)

    @property
    def idle(self) -> np.ndarray:
        """Commands with zero forces that hold the prescribed coordinates."""
        return self.commanded(self.dsys.idle(self.state))

    @property
    def open_loop_commands(self) -> np.ndarray:
        """Commands without a controller: `idle` or, with a servo, the last target. Before the
        first target, a servo holds the present configuration.
        """
        if self.servo is None:
            return self.idle
        if self._target is None:
            return self.servo.rest(self.dsys, self.configuration)
        return self._target

    @property
    def damping(self) -> np.ndarray:
        """Commands that damp the motion as far as possible, or `idle` if this is impossible."""
        # the damping forces use the plant's inputs, not the external ones
        damping = damping_or_idle(self.dsys, self.state, external=self._external)
        return self.commanded(damping)

    def commanded(self, values: np.ndarray) -> np.ndarray:
        """Return the rows of `values` (dsys.nu, ...) that belong to commands, without those for
        external forces.
        """
        return without_external(self.dsys, values, self._external)

    @property
    def _external(self) -> int:
        """Number of external forces in the disturbance."""
        return 0 if self._disturbance is None else self._disturbance.n

    @property
    def energy(self) -> float:
        """Energy in J."""
        return self.dsys.energy(self.state)

    @property
    def contacts(self) -> dict[str, ContactForce]:
        """Contacts in the last substep by name. Empty without contacts or if there has been no
        substep since `place`.
        """
        if self._before is None or self._solved is None or self.dsys.method.contacts is None:
            return {}
        return self._readout(self.dsys).solved(self._before, self._applied, self._solved.z)

    def _readout(self, dsys: DiscreteSystem) -> ContactReadout:
        """Return the contact readout of a system. Its construction takes longer than a step."""
        if dsys not in self._readouts:
            self._readouts[dsys] = ContactReadout(dsys)
        return self._readouts[dsys]

    @property
    def newton_iterations(self) -> int:
        """Newton iterations in the last substep; 0 if there has been no substep since `place`."""
        return 0 if self._solved is None else self._solved.newton_iterations

    @property
    def constraint_residual(self) -> float:
        """Largest residual of the discrete constraints in the last substep; 0 without constraints
        or if there has been no substep since `place`.
        """
        if self._before is None:
            return 0.0
        return float(
            np.abs(self.dsys.constraint_residual(self._before, self.state)).max(initial=0.0)
        )


def make_plant(
    scenario: Scenario,
    model: DiscreteSystem,
    dsys: DiscreteSystem,
    start: np.ndarray,
    options: PlantOptions,
    wrenches: Wrenches | None = None,
    servo: JointServo | None = None,
) -> SimulatedPlant:
    """Create the plant for a run of a scenario. `dsys` must be `scenario.plant(model, options)`.
    The plant starts from the model's state `start` (nx) and has the scenario's sensors and the
    disturbances and faults in the options. Raises UnknownName and ValueError for options that do
    not fit the scenario.
    """
    return SimulatedPlant(
        dsys,
        convert(start, model, dsys),
        options.substeps,
        scenario.disturbance(model, options) if options.disturbances else None,
        PlantFaults(model, options.faults),
        wrenches,
        servo,
        Sensors(scenario.sensors, dsys, model.h) if scenario.sensors else None,
    )
