"""The simulated plant: a discrete system, advanced some substeps at a time, that is always at a
finite state; the faults of its sensors and actuators; and its own copy of the tracker.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nh_control.control.damping import damping_or_idle
from nh_control.control.tracking import LqrTracker
from nh_control.discrete.plant import advance, convert, with_external, without_external
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.numerics.expressions import Vector, all_finite
from nh_control.runs.fault_effects import Tally
from nh_control.runs.faults import FaultLines, FaultOutput
from nh_control.scenarios import Scenario
from nh_control.scenarios.disturbance import DisturbanceForces
from nh_control.scenarios.fault import Fault


class SimulatedPlant:
    """A plant whose period `h` (s) is made of `substeps` steps of `dsys`, under inputs held over
    the period.

    Commands do not reach the external forces of a `disturbance`, and go through `faults`, as
    measurements do. `advance` either
    succeeds as a whole or leaves the state as it was. Raises ValueError for an initial state that
    is not finite.
    """

    def __init__(
        self,
        dsys: DiscreteSystem,
        initial: np.ndarray,
        substeps: int = 1,
        disturbance: DisturbanceForces | None = None,
        faults: PlantFaults | None = None,
    ):
        if not np.isfinite(initial).all():
            raise ValueError(f"initial state must be finite, got {np.asarray(initial).tolist()}")
        self.dsys, self.substeps = dsys, substeps
        self._disturbance, self.faults = disturbance, faults
        self._moving: tuple[np.ndarray | None, np.ndarray] = None, np.empty(0)
        self.initial = np.array(initial, dtype=float)
        self.reset()
        self._prepare()

    def _prepare(self) -> None:
        """Have everything compiled and loaded before time counts, by a step that is taken back."""
        try:
            self.advance(self.idle)
        except (StepFailed, ArithmeticError):
            return  # the run reports it, if its own first step fails as well
        self.reset()

    def reset(self) -> None:
        """Back to the initial state at step 0."""
        self.place(self.initial, 0)

    def place(self, state: np.ndarray, step: int) -> None:
        """Go on from another state (nx) at a step; raises ValueError for one that is not finite or
        has another length.
        """
        state = np.array(state, dtype=float)
        if state.shape != self.initial.shape or not np.isfinite(state).all():
            raise ValueError(
                f"expected a state of {self.initial.size} finite numbers, got {state.tolist()}"
            )
        self.step, self.state, self._before = step, state, state
        self.inputs = self.idle
        self._applied = self.dsys.idle(state)
        self.external: dict[str, np.ndarray] = {}
        if self.faults is not None:
            self.faults.start(step, self.configuration, self.velocity, self.inputs)

    def advance(self, u: Vector) -> None:
        """One period under the inputs u, those that are no disturbance; raises StepFailed, or
        ArithmeticError if the next state is not finite.
        """
        commands = np.asarray(u, dtype=float)
        faults = self.faults
        output = faults.inputs(self.step, commands) if faults and faults.acting else None
        if output is not None and output.value is not None:
            commands = output.value
        inputs = commands
        external: dict[str, np.ndarray] = {}
        if self._disturbance is not None:
            forces = self._disturbance(self.step)
            inputs = with_external(self.dsys, commands, forces)
            external = self._disturbance.named(forces)
        before, state = advance(self.dsys, self.state, inputs, self.substeps)
        if not all_finite(state):
            raise ArithmeticError(f"{self.dsys}: the next state is not finite: {state.tolist()}")
        self.state, self._before = state, before
        self.inputs, self._applied, self.external = commands, inputs, external
        if faults and output is not None:
            faults.moved(self.step, output)
        if faults and faults.sensed:
            faults.measure(self.step + 1, self.configuration, self.velocity)
        self.step += 1

    @property
    def measured_step(self) -> int:
        """The last step whose measurement was not lost, so that commands can answer it."""
        faults = self.faults
        return self.step if faults is None or not faults.sensed else faults.measured_step

    @property
    def measured(self) -> tuple[np.ndarray, np.ndarray]:
        """Configuration and velocity that were measured at step `measured_step`."""
        faults = self.faults
        if faults is None or not faults.sensed:
            return self.configuration, self.velocity
        return faults.measured

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of what disturbances may push."""
        return () if self._disturbance is None else self._disturbance.names

    def change_disturbance(
        self, dsys: DiscreteSystem, disturbance: DisturbanceForces | None
    ) -> None:
        """Other disturbances from now on, which push `dsys`, at the same configuration and
        velocity.
        """
        if dsys is not self.dsys:
            self.state = self._before = convert(self.state, self.dsys, dsys)
            self.initial = convert(self.initial, self.dsys, dsys)
        self.dsys, self._disturbance = dsys, disturbance

    def change_faults(self, lines: FaultLines) -> None:
        """Other faults from now on."""
        if self.faults is not None:
            self.faults.change(lines, self.step, self.configuration, self.velocity, self.inputs)

    @property
    def idle(self) -> np.ndarray:
        """Inputs, those that are no disturbance, of no forces that leave prescribed coordinates
        where they are.
        """
        return self.commanded(self.dsys.idle(self.state))

    @property
    def damping(self) -> np.ndarray:
        """Inputs, those that are no disturbance, that bring the motion to rest as far as they can;
        `idle` where there are none.
        """
        damping = damping_or_idle(self.dsys, self.state, external=self._external)
        return self.commanded(damping)

    def commanded(self, values: np.ndarray) -> np.ndarray:
        """Rows of values (dsys.nu, ...) that belong to commands, not to a disturbance."""
        return without_external(self.dsys, values, self._external)

    @property
    def _external(self) -> int:
        """Number of the forces that are a disturbance."""
        return 0 if self._disturbance is None else self._disturbance.n

    @property
    def configuration(self) -> np.ndarray:
        """Configuration (nq)."""
        return self.dsys.configuration(self.state)

    @property
    def velocity(self) -> np.ndarray:
        """Velocity (nv), trivialized, computed once for a state."""
        state, velocity = self._moving
        if state is not self.state:
            velocity = self.dsys.velocity(self.state)
            self._moving = self.state, velocity
        return velocity

    @property
    def energy(self) -> float:
        """Energy in J."""
        return self.dsys.energy(self.state)

    @property
    def newton_iterations(self) -> int:
        """Iterations of Newton's method in the last substep, 0 before the first, from wherever."""
        if self._before is self.state:
            return 0
        return self.dsys.newton_iterations(self._before, self._applied)

    @property
    def constraint_residual(self) -> float:
        """Largest residual of the discrete constraints over the last substep; 0 before the first,
        from wherever, and without constraints.
        """
        if self._before is self.state:
            return 0.0
        return float(
            np.abs(self.dsys.constraint_residual(self._before, self.state)).max(initial=0.0)
        )


class BackupTracker:
    """Commands of the scenario's LqrTracker along a reference of the model, for what the plant
    measures; it knows of no goals. Gains are computed by `prepare`, or with the first command.
    """

    def __init__(self, scenario: Scenario, model: DiscreteSystem, reference: Trajectory):
        self._scenario, self._model = scenario, model
        self._reference = self._next = reference
        self._tracker: LqrTracker | None = None

    def prepare(self) -> LqrTracker:
        """Have the gains ready; raises ValueError for a system that cannot be made to track."""
        if self._tracker is None:
            self._tracker = self._scenario.tracker(self._model, self._reference)
        return self._tracker

    def plan(self, reference: Trajectory) -> None:
        """Another reference from the next start on."""
        self._next = reference

    def start(self) -> None:
        """The reference starts."""
        if self._next is not self._reference:
            self._reference, self._tracker = self._next, None

    def command(self, plant: SimulatedPlant, start_step: int) -> np.ndarray:
        """Input (nu) of the model for the plant's last measurement, where the reference started at
        step `start_step`.
        """
        x = self._model.measured_state(*plant.measured)
        return self.prepare().command(plant.measured_step - start_step, x).u


class PlantFaults:
    """What the plant of a `model` shows and does through faults, as the loop in one process has
    them. They may change between two steps; then their counts start anew.

    `measured` is the last measurement (configuration, velocity) that was not lost, of step
    `measured_step`.
    """

    def __init__(self, model: DiscreteSystem, faults: Sequence[Fault] = ()):
        self.lines = FaultLines.of(faults, model)
        self.measured_step = 0

    @property
    def sensed(self) -> bool:
        """Whether there are any between the plant and what is measured."""
        return bool(self.lines.measurements.faults)

    @property
    def acting(self) -> bool:
        """Whether there are any between the commands and the plant."""
        return bool(self.lines.commands.faults)

    def start(self, k: int, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> None:
        """A run starts, or goes on, at step k with configuration q (nq) and velocity v (nw), as if
        these had been there before under the inputs u (nu). This state is never lost.
        """
        self.change(self.lines, k, q, v, u)
        if self.sensed:
            self.measure(k, q, v)

    def change(
        self, lines: FaultLines, k: int, q: np.ndarray, v: np.ndarray, u: np.ndarray
    ) -> None:
        """Other faults from step k on, as if its state had been there before."""
        self.lines, self.measured_step, self.measured = lines, k, (q, v)
        self._sensed = lines.measurements.start(np.concatenate([q, v]))
        self._acted = lines.commands.start(u)
        self._tallies = Tally(lines.measurements), Tally(lines.commands)

    def inputs(self, k: int, u: np.ndarray) -> FaultOutput:
        """What the actuators make of the commands u (nu) at step k."""
        return self.lines.commands.through(k, u, self._acted)

    def moved(self, k: int, output: FaultOutput) -> None:
        """The plant has made step k with it."""
        self._acted = output.memory
        self._tallies[1].add(k, output)

    def measure(self, k: int, q: np.ndarray, v: np.ndarray) -> None:
        """The plant has come to step k at configuration q (nq) and velocity v (nw)."""
        output = self.lines.measurements.through(k, np.concatenate([q, v]), self._sensed)
        self._sensed = output.memory
        self._tallies[0].add(k, output)
        if output.value is not None:
            self.measured_step, self.measured = k, (output.value[: len(q)], output.value[len(q) :])

    def report(self) -> dict[str, str]:
        """What every fault has done, by name."""
        effects = [effect for tally in self._tallies for effect in tally.effects()]
        return {f"fault {effect.fault}": str(effect) for effect in effects}
