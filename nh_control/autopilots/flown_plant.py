"""A simulated plant with craft that flight controllers fly."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import casadi as ca
import numpy as np
from transforms3d.quaternions import quat2mat

from nh_control.autopilots.ardupilot import ArduPilot
from nh_control.autopilots.autopilot import Autopilot, AutopilotFailed, Setpoint, Waypoint
from nh_control.autopilots.betaflight import Betaflight
from nh_control.autopilots.px4 import Px4
from nh_control.autopilots.sensors import CraftSensors
from nh_control.discrete.plant_steps import convert, last_step
from nh_control.discrete.results import SolvedStep
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.loop.plant_faults import PlantFaults
from nh_control.loop.simulated_plant import SimulatedPlant
from nh_control.loop.wrenches import Wrenches
from nh_control.scenarios import PlantOptions, Scenario
from nh_control.scenarios.craft_sensors import SensorErrors
from nh_control.scenarios.disturbance import DisturbanceForces
from nh_control.scenarios.flight import POSITION, AutopilotOptions, Craft, Flight
from nh_control.systems.rotors import Airframe

FAILSAFE_S = 0.1
"""Simulated time without an answer after which the motors stop. Until then, they keep their last
commands.
"""
ARM_S, ARMED_S, SETTLE_S = 60.0, 3.0, 0.5
"""Maximum simulated times until a flight controller can be armed and until its motors spin, and
the time for which craft are held at their initial positions with the thrust of the first command.
"""
LONGEST_S = 0.002
"""Maximum simulated time between two samples."""
CHECKED_EVERY = 50
"""Number of samples between two checks while the flight controllers are being armed."""


class FlownPlant(SimulatedPlant):
    """A plant whose commands are a thrust and body rates for each craft. In every substep, each
    flight controller receives a sample of its craft's sensors. Its motor commands drive the
    rotors, whose thrusts are the model's inputs.

    Craft are held at their initial positions while the flight controllers are armed, and for
    SETTLE_S after each `place`, with the thrust of the first command. Without an answer, motors
    keep their commands. After FAILSAFE_S they stop, as with electronic speed controllers that lose
    their signal, and the run continues. With `waypoints` for each step and craft, the flight
    controllers' position control follows the waypoints, commands are ignored, and the last
    waypoints apply after the end. Raises AutopilotFailed if a flight controller cannot be started
    or armed.
    """

    def __init__(
        self,
        dsys: DiscreteSystem,
        initial: np.ndarray,
        substeps: int,
        autopilots: Sequence[Autopilot],
        airframe: Airframe,
        crafts: Sequence[Craft],
        limits: np.ndarray,
        disturbance: DisturbanceForces | None = None,
        faults: PlantFaults | None = None,
        wrenches: Wrenches | None = None,
        noise: float = 1.0,
        seed: int = 0,
        waypoints: Sequence[Sequence[Waypoint]] = (),
    ):
        self._waypoints = waypoints
        self.autopilots, self.airframe = tuple(autopilots), airframe
        self._crafts, self._limits = tuple(crafts), limits
        self._noise, self._seed = noise, seed
        self._craft_sensors = self._sensors_of(dsys)
        self._samples, self._is_held = 0, True
        self._reported: dict[str, int] = {}
        self._released_at = 0.0
        self.motors = np.zeros((len(self._crafts), airframe.n))
        """The current motor commands."""
        self._thrusts = np.zeros_like(self.motors)
        super().__init__(dsys, initial, substeps, disturbance, faults, wrenches)
        try:
            for autopilot in self.autopilots:
                autopilot.start()
            self._arm()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        """Compile and load all functions without taking a step, because no flight controller runs
        yet.
        """
        self.prepare(self.dsys)

    def _sensors_of(self, dsys: DiscreteSystem) -> CraftSensors:
        return CraftSensors(
            dsys, self._crafts, SensorErrors(), factor=self._noise, seed=self._seed
        )

    def place(self, state: np.ndarray, step: int) -> None:
        super().place(state, step)
        self._is_held = True

    def change_disturbance(
        self, dsys: DiscreteSystem, disturbance: DisturbanceForces | None
    ) -> None:
        if dsys is not self.dsys:
            # the new sensors have no measurements yet, so hold and release the craft again
            self._craft_sensors = self._sensors_of(dsys)
            self._is_held = True
        super().change_disturbance(dsys, disturbance)

    def _moved(
        self, commands: np.ndarray, inputs: np.ndarray
    ) -> tuple[np.ndarray, SolvedStep, np.ndarray, np.ndarray]:
        # when a run starts or restarts, the rotors must have the thrust of the first command
        if self._is_held:
            self._hold(self._setpoints(commands))
        setpoints = self._setpoints(commands)
        x, acting = self.state, inputs.copy()
        acting[: 4 * len(self._crafts)] = self._applied[: 4 * len(self._crafts)]
        for _ in range(self.substeps):
            # sample, motor commands, rotor thrusts, step
            q, v = self.dsys.configuration(x), self.dsys.velocity(x)
            self._craft_sensors.measure(self._samples, q, v, acting)
            self._exchange(q, v, setpoints, armed=True)
            acting[: 4 * len(self._crafts)] = self._turn_rotors()
            before, solved = last_step(self.dsys, x, acting, 1)
            x = solved.x1
        return before, solved, self.idle if self._waypoints else commands, acting

    def _setpoints(self, commands: np.ndarray) -> list[Setpoint]:
        """The flight controllers' setpoints for the commands (4 n). Thrusts are converted to
        collective motor commands by the nominal thrust curve.
        """
        if self._waypoints:
            return self._still(self.step)
        frame, rows = self.airframe, commands.reshape(-1, 4)
        # fraction of the full thrust, f / (n f_max)
        parts = np.clip(rows[:, 0] / (frame.n * frame.max_thrust), 0.0, 1.0)
        return [Setpoint(float(u), row[1:]) for u, row in zip(frame.command_of(parts), rows)]

    def _still(self, step: int) -> list[Setpoint]:
        """Setpoints without thrusts and rates, but with the waypoints of a step."""
        if not self._waypoints:
            return [Setpoint(0.0, np.zeros(3))] * len(self._crafts)
        waypoints = self._waypoints[min(step, len(self._waypoints) - 1)]
        return [Setpoint(0.0, np.zeros(3), waypoint, self._is_held) for waypoint in waypoints]

    def _exchange(
        self, q: np.ndarray, v: np.ndarray, setpoints: Sequence[Setpoint], armed: bool
    ) -> None:
        """Send samples to all flight controllers, and then receive their answers."""
        h = self.dsys.h
        samples = self._craft_sensors.samples(self._samples * h, q, v)
        self._samples += 1
        # send to all before waiting, so that they compute in parallel
        for autopilot, sample, setpoint in zip(self.autopilots, samples, setpoints):
            autopilot.send(sample, setpoint, armed)
        for i, autopilot in enumerate(self.autopilots):
            motors = autopilot.receive()
            if motors is not None:
                # motors that stop in flight show that the flight controller has disarmed
                stopped = not (self._is_held or motors.any() or autopilot.link.disarmed)
                if stopped:
                    reason = autopilot.refusal or "without a reason"
                    at = self._samples * h - self._released_at
                    autopilot.link.disarmed = f"disarmed after {at:.2f} s: {reason}"
                self.motors[i] = motors
            # the speed controllers' failsafe
            elif autopilot.link.in_a_row * h >= FAILSAFE_S:
                self.motors[i] = 0.0

    def _turn_rotors(self) -> np.ndarray:
        """The craft's mean thrusts and torques (4 n) over the next substep."""
        wrenches = []
        for i, (f, u) in enumerate(zip(self._thrusts, self.motors)):
            # each rotor has a first-order lag, and the mean thrust acts over the substep
            self._thrusts[i], mean = self.airframe.advance(f, u, self.dsys.h)
            wrenches.append(self.airframe.matrix @ mean)
        return np.concatenate(wrenches)

    def _held_exchange(self, setpoints: Sequence[Setpoint], armed: bool) -> None:
        """Exchange samples and answers for craft that are held at rest."""
        # held craft do not move, whatever velocity the state contains
        q, rest = self.configuration, np.zeros_like(self.velocity)
        self._craft_sensors.hold(q, rest, self.dsys.idle(self.state))
        self._exchange(q, rest, setpoints, armed)
        self._turn_rotors()

    def _hold(self, setpoints: Sequence[Setpoint]) -> None:
        """Hold the craft with the thrusts in the setpoints, and then release them."""
        still = [replace(setpoint, rates=np.zeros(3)) for setpoint in setpoints]
        for _ in range(round(SETTLE_S / self.dsys.h)):
            self._held_exchange(still, armed=True)
        q, v = self.configuration, self.velocity
        self._applied[: 4 * len(self._crafts)] = self._turn_rotors()
        self._craft_sensors.start(q, v, self._applied)
        self._is_held, self._released_at = False, self._samples * self.dsys.h

    def _arm(self) -> None:
        """Arm all flight controllers. Raises AutopilotFailed with the reasons why they cannot be
        armed.
        """
        still = self._still(self.step)

        def until(done: Callable[[], str], armed: bool, longest_s: float) -> None:
            reason = "no sample was sent"
            for k in range(round(longest_s / self.dsys.h)):
                self._held_exchange(still, armed)
                if k % CHECKED_EVERY == CHECKED_EVERY - 1 and not (reason := done()):
                    return
            raise AutopilotFailed(f"not armed within {longest_s:g} s of simulated time: {reason}")

        def refused() -> str:
            ended = [pilot.link.ended for pilot in self.autopilots if pilot.link.ended]
            if ended:
                raise AutopilotFailed("; ".join(ended))
            return "; ".join(f"{a.name}: {r}" for a in self.autopilots if (r := a.refusal))

        def stopped() -> str:
            names = [pilot.name for pilot in self.autopilots if not pilot.spinning]
            return f"motors of {', '.join(names)} do not spin" if names else ""

        # first wait until nothing prevents arming, and then switch it on
        until(refused, False, ARM_S)
        until(stopped, True, ARMED_S)

    @property
    def idle(self) -> np.ndarray:
        """Commands with zero thrusts and rates."""
        return np.zeros(4 * len(self._crafts))

    @property
    def damping(self) -> np.ndarray:
        """Commands with the last thrusts and zero rates."""
        commands = np.array(self.inputs)
        # columns of a command: the thrust, then three body rates
        for column in range(1, 4):
            commands[column::4] = 0.0
        return commands

    @property
    def command_limits(self) -> np.ndarray:
        return self._limits

    @property
    def actuators(self) -> np.ndarray:
        return self.motors.ravel().copy()

    @property
    def actuator_names(self) -> tuple[str, ...]:
        motors = range(1, self.airframe.n + 1)
        return tuple(f"{craft.name}_motor{i}" for craft in self._crafts for i in motors)

    @property
    def rotor_thrusts(self) -> np.ndarray:
        return self._thrusts.ravel().copy()

    @property
    def link(self) -> str:
        return "; ".join(f"{pilot.name}: {pilot.link.summary}" for pilot in self.autopilots)

    @property
    def monitors(self) -> tuple[FlownPlant, ...]:
        return (self,)

    def report(self) -> tuple[dict[str, object], str]:
        """The state of the links, and warnings about losses since the last report."""
        values: dict[str, object] = {"link": self.link}
        warnings = []
        for pilot in self.autopilots:
            name, link = pilot.name, pilot.link
            values |= {
                f"{name}: samples": link.sent,
                f"{name}: lost": link.lost,
                f"{name}: lost in a row": link.in_a_row,
            }
            if link.exchanges:
                values[f"{name}: exchange_us"] = float(np.median(link.exchanges)) * 1e6
            new = link.lost - self._reported.get(name, 0)
            self._reported[name] = link.lost
            if link.disarmed:
                warnings.append(f"{name}: {link.disarmed}")
            if link.ended:
                warnings.append(f"{name}: {link.ended}; its motors do not turn")
            elif new:
                warnings.append(f"{name}: {new} samples without an answer")
        return values, ", ".join(warnings)

    def close(self) -> None:
        """End the flight controllers."""
        for autopilot in self.autopilots:
            autopilot.close()


def make_autopilots(
    options: AutopilotOptions, flight: Flight, crafts: Sequence[Craft]
) -> list[Autopilot]:
    """The flight controllers of the craft, one instance for each. Raises AutopilotFailed."""
    if options.kind == "betaflight":
        if len(crafts) > 1 and not options.isolated:
            raise AutopilotFailed(
                f"{len(crafts)} firmware processes use the same ports, so each needs its own "
                "network namespace: leave out isolated=0"
            )
        return [
            Betaflight(craft.name, flight.tuning, isolated=options.isolated) for craft in crafts
        ]
    host, port = options.host, options.port
    if options.kind == "px4":
        return [Px4(craft.name, i, host, port) for i, craft in enumerate(crafts)]
    guided = options.setpoints == POSITION
    return [ArduPilot(craft.name, i, host, port, guided) for i, craft in enumerate(crafts)]


def waypoints_of(
    reference: Trajectory, model: DiscreteSystem, crafts: Sequence[Craft], start: np.ndarray
) -> list[list[Waypoint]]:
    """The waypoints of all craft at a reference's nodes, relative to the craft's positions in the
    model's state `start`.
    """
    space, parameters = model.system.space, model.system.parameters
    q, v = ca.SX.sym("q", space.nq), ca.SX.sym("v", space.nw)
    rows = [
        ca.vertcat(
            craft.position(q, parameters), craft.velocity(q, v, parameters), craft.attitude(q)
        )
        for craft in crafts
    ]
    of_crafts = ca.Function("of_crafts", [q, v], [ca.horzcat(*rows)])

    # position, velocity and attitude, with one row for each craft
    def at(x: np.ndarray) -> np.ndarray:
        return np.asarray(of_crafts(model.configuration(x), model.velocity(x))).T

    def waypoint(values: np.ndarray, origin: np.ndarray) -> Waypoint:
        nose = quat2mat(values[6:])[:, 0]  # forward axis in the world, for the yaw
        return Waypoint(values[:3] - origin[:3], values[3:6], float(np.arctan2(nose[1], nose[0])))

    origins = at(start)
    return [
        [waypoint(values, origin) for values, origin in zip(at(x), origins)]
        for x in reference.states
    ]


def make_flown_plant(
    scenario: Scenario,
    model: DiscreteSystem,
    dsys: DiscreteSystem,
    start: np.ndarray,
    options: PlantOptions,
    reference: Trajectory,
    wrenches: Wrenches | None = None,
) -> FlownPlant:
    """The plant for a run of a scenario with an autopilot, as from `make_plant`. Its substeps are
    at most LONGEST_S long. Position setpoints come from the `reference`.
    """
    flight, autopilot = scenario.flight, scenario.autopilot
    if flight is None or autopilot is None:
        raise ValueError(f"{scenario.name} has no autopilot")
    waypoints: list[list[Waypoint]] = []
    if autopilot.setpoints == POSITION:
        waypoints = waypoints_of(reference, model, flight.crafts(model.system), start)
    # smallest integer n with h / n <= LONGEST_S; the margin allows for round-off in h / LONGEST_S
    crafts, more = flight.crafts(dsys.system), math.ceil(dsys.h / LONGEST_S - 1e-9)
    dsys = dsys.with_step(dsys.h / more)
    return FlownPlant(
        dsys,
        convert(start, model, dsys),
        options.substeps * more,
        make_autopilots(autopilot, flight, crafts),
        autopilot.airframe(flight.airframe),
        crafts,
        model.system.input_bounds,
        scenario.disturbance(model, options) if options.disturbances else None,
        PlantFaults(model, options.faults),
        wrenches,
        autopilot.noise,
        autopilot.seed,
        waypoints,
    )
