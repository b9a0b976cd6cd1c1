"""The simulated plant: a discrete system that is advanced by some substeps and always has a finite
state, with its sensors and actuators.
"""

from __future__ import annotations

import numpy as np

from nh_control.control.damping import damping_or_idle
from nh_control.control.joint_servo import JointServo
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
    """A plant with a period `h` (s) of `substeps` steps of `dsys`, under inputs that are constant
    over the period.

    With a `servo`, commands are positions or velocities of joints; its inner loop computes the
    inputs in every substep. Commands and measurements of the state pass through `faults`; the
    `sensors` make the `measurements` that arrive at the present step. External forces come
    from the `wrenches` and from the `disturbance`, which has all their targets. `advance` either
    succeeds or leaves the state unchanged. `configuration` (nq) and `velocity` (nw), trivialized,
    belong to the present `state` (nx). Raises ValueError for an initial state that is not finite.
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
        self._readouts: dict[DiscreteSystem, ContactReadout] = {}
        self.initial = np.array(initial, dtype=float)
        self.reset()
        self._prepare()

    def _prepare(self) -> None:
        """Compile and load all functions before the run, by a step that is taken back."""
        try:
            self.advance(self.open_loop_commands)
            self.contacts, self.energy, self.constraint_residual  # noqa: B018
        except (StepFailed, ArithmeticError):
            pass  # the run reports it, if its own first step fails as well
        else:
            self.reset()
        wait_for_compiler()

    def reset(self) -> None:
        """Return to the initial state at step 0."""
        self.place(self.initial, 0)

    def place(self, state: np.ndarray, step: int) -> None:
        """Continue from another state (nx) at a step; raises ValueError for a wrong length and for
        numbers that are not finite.
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
        self.external: dict[str, np.ndarray] = {}
        self.faults.start(step, self.configuration, self.velocity, self.inputs)
        if self._sensors is not None:
            self._sensors.reset()
        self._sense()

    def _sense(self) -> None:
        """Take the measurements that arrive at the present step."""
        self.measurements: list[Measurement] = []
        if self._sensors is not None:
            seen = self.configuration, self.velocity
            self.measurements = self._sensors.measure(self.step, *seen, self._applied)

    def _set(
        self,
        state: np.ndarray,
        before: np.ndarray | None = None,
        solved: SolvedStep | None = None,
    ) -> None:
        """Take a state, with that before the last substep and its solution if there was one."""
        self.configuration, self.velocity = (
            self.dsys.configuration(state),
            self.dsys.velocity(state),
        )
        self._before, self._solved, self.state = before, solved, state

    def advance(self, u: Vector) -> None:
        """One period under the commands u; raises StepFailed, or ArithmeticError if the next state
        is not finite.
        """
        commands = np.asarray(u, dtype=float)
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
        if self.servo is None:
            before, solved = last_step(self.dsys, self.state, inputs, self.substeps)
        else:
            given = self.dsys, self.state, commands, inputs, self.substeps
            self._target = commands
            before, solved, inputs = self.servo.advance(*given)
            commands = self.commanded(inputs)
        state = solved.x1
        if not all_finite(state):
            raise ArithmeticError(f"{self.dsys}: the next state is not finite: {state.tolist()}")
        self._set(state, before, solved)
        self.inputs, self._applied, self.external = commands, inputs, external
        if output is not None:
            self.faults.advanced(self.step, output)
        self.step += 1
        self.faults.measure(self.step, self.configuration, self.velocity)
        self._sense()

    @property
    def before(self) -> np.ndarray:
        """The state (nx) before the last substep, the present one if there was none since
        `place`.
        """
        return self.state if self._before is None else self._before

    @property
    def applied(self) -> np.ndarray:
        """The inputs (dsys.nu) of the last step, with external forces; no forces before it."""
        return self._applied

    @property
    def measured_step(self) -> int:
        """The last step whose measurement was not lost, so that commands can answer it."""
        return self.faults.measured_step

    @property
    def measured(self) -> tuple[np.ndarray, np.ndarray]:
        """The measured configuration and velocity of step `measured_step`."""
        return self.faults.measured

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the targets of the disturbance."""
        return () if self._disturbance is None else self._disturbance.names

    def prepare(self, dsys: DiscreteSystem) -> None:
        """Compile and load all functions of a system for `change_disturbance`, while the plant
        runs in another thread. Raises StepFailed if it cannot make a step.
        """
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
        """Replace the disturbance. `dsys` is the system with its forces, which `prepare` knows if
        it is another one; configuration and velocity stay.
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
        """Set other faults from now on."""
        self.faults.change(lines, self.step, self.configuration, self.velocity, self.inputs)

    @property
    def idle(self) -> np.ndarray:
        """Commands of zero forces that hold the prescribed coordinates."""
        return self.commanded(self.dsys.idle(self.state))

    @property
    def open_loop_commands(self) -> np.ndarray:
        """Commands without a controller: `idle`, or, with a servo, the last target, or, before
        the first one, the present place.
        """
        if self.servo is None:
            return self.idle
        if self._target is None:
            return self.servo.rest(self.dsys, self.configuration)
        return self._target

    @property
    def damping(self) -> np.ndarray:
        """Commands that bring the motion to rest as far as they can, otherwise `idle`."""
        damping = damping_or_idle(self.dsys, self.state, external=self._external)
        return self.commanded(damping)

    def commanded(self, values: np.ndarray) -> np.ndarray:
        """The rows of values (dsys.nu, ...) for commands, without external forces."""
        return without_external(self.dsys, values, self._external)

    @property
    def _external(self) -> int:
        """Number of external forces of the disturbance."""
        return 0 if self._disturbance is None else self._disturbance.n

    @property
    def energy(self) -> float:
        """Energy in J."""
        return self.dsys.energy(self.state)

    @property
    def contacts(self) -> dict[str, ContactForce]:
        """Contacts of the last substep by name; none without them, and if there was no substep
        since `place`.
        """
        if self._before is None or self._solved is None or self.dsys.method.contacts is None:
            return {}
        return self._readout(self.dsys).solved(self._before, self._applied, self._solved.z)

    def _readout(self, dsys: DiscreteSystem) -> ContactReadout:
        """The readout of a system's contacts, which takes longer to make than a step."""
        if dsys not in self._readouts:
            self._readouts[dsys] = ContactReadout(dsys)
        return self._readouts[dsys]

    @property
    def newton_iterations(self) -> int:
        """Newton iterations of the last substep; 0 if there was none since `place`."""
        return 0 if self._solved is None else self._solved.newton_iterations

    @property
    def constraint_residual(self) -> float:
        """Largest residual of the discrete constraints over the last substep; 0 without
        constraints, and if there was no substep since `place`.
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
    """The plant of a scenario's run: `dsys`, which is `scenario.plant(model, options)`, from a
    state `start` (nx) of the model, with the disturbances and faults of the options and the
    scenario's sensors. Raises UnknownName and ValueError for options that do not fit.
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
