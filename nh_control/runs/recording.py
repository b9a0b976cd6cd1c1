"""Reads a run from a recording of the plant's topics (states, inputs and diagnostics) without
ROS.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.highlevel import AnyReader, AnyReaderError
from rosbags.typesys import Stores, get_typestore

from nh_control.control.input_history import NANOSECONDS
from nh_control.discrete.plant_steps import advance
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.loop.faults import through_actuators
from nh_control.loop.wire_format import unwrap
from nh_control.runs import topics
from nh_control.runs.decoding import RecordingError as RecordingError
from nh_control.runs.decoding import StateDecoder, chosen, command
from nh_control.runs.experiment import Experiment, Result
from nh_control.runs.measured_run import MeasuredRun
from nh_control.runs.settings import EXTERNAL
from nh_control.runs.simulation import ClosedLoop
from nh_control.scenarios import Scenario

COUNTS = (
    "missed_steps",
    "commands_accepted",
    "commands_clipped",
    "commands_rejected",
    "fallback_steps",
    "held_steps",
)
JITTER = ("jitter_mean_us", "jitter_p99_us", "jitter_max_us")


@dataclass(frozen=True)
class Recording:
    """Configurations (N + 1, nq), velocities (N + 1, nw) and inputs (N, nu) at the steps 0 ... N.

    The nodes in `known` were recorded, and the `missing` other nodes are interpolated.
    `n_repeated_commands` is the number of commands that were not recorded; each of them repeats
    the previous command. `last_command` is the step of the last recorded command, or -1 without
    commands. The recording contains `n_command_messages` command messages. `wall_s` is the wall
    time (s) from the first step to the last, without pauses. `diagnostics` contains the last
    values of the plant's diagnostics. `motors` and `thrusts` (N, n) are the flight controllers'
    motor commands and the rotor thrusts at the end of each step.
    """

    q: np.ndarray
    v: np.ndarray
    inputs: np.ndarray
    missing: int
    wall_s: float
    diagnostics: dict[str, str]
    known: tuple[int, ...]
    n_repeated_commands: int
    last_command: int
    n_command_messages: int
    motors: np.ndarray | None = None
    thrusts: np.ndarray | None = None


def read(folder: Path, scenario: Scenario, model: DiscreteSystem) -> Recording:
    """Read the last run in a rosbag2 folder, with the true states if they were recorded along with
    the measured ones. Raises RecordingError.
    """
    return _collected(folder, scenario, model, measured=False).recording(folder)


def read_measured(folder: Path, scenario: Scenario, model: DiscreteSystem) -> MeasuredRun:
    """Read the measurements of the last run in a rosbag2 folder. Raises RecordingError."""
    return _collected(folder, scenario, model, measured=True).measured(folder)


def _collected(folder: Path, scenario: Scenario, model: DiscreteSystem, measured: bool) -> _Reader:
    reader, states = _Reader(scenario, model), topics.states(scenario)
    try:
        with AnyReader([folder], default_typestore=get_typestore(Stores.LATEST)) as bag:
            connections = (
                [c for c in bag.connections if topics.TRUTH not in c.topic]
                if measured
                else _true_where_recorded(bag.connections, states)
            )
            names = chosen(connections, reader.topics)
            for connection, received_ns, data in bag.messages():
                if connection.topic in names:
                    handle = reader.topics[names[connection.topic]]
                    handle(bag.deserialize(data, connection.msgtype), received_ns)
    except (AnyReaderError, OSError) as error:
        raise RecordingError(f"{folder}: {error}") from error
    return reader


def _true_where_recorded(connections: Iterable[Any], states: Collection[str]) -> list[Any]:
    """Return the connections without measured states if true states were recorded, and without the
    true values of other topics.
    """
    recorded = list(connections)
    true = any(topics.TRUTH in connection.topic for connection in recorded)
    return [
        connection
        for connection in recorded
        if (topics.TRUTH in connection.topic)
        == (true and connection.topic.rsplit("/", 1)[-1] in states)
    ]


@dataclass
class _Node:
    """The parts of the configuration and velocity at a step that messages on `topics` contain. The
    first message was received at `received_ns`.
    """

    q: np.ndarray
    v: np.ndarray
    received_ns: int
    topics: set[str] = field(default_factory=set)


class _Reader:
    """Collects messages by the step of their stamp. In each topic, step 0 after a later step
    starts a new run.

    The order is certain only within a topic: messages of different topics that were received at
    the same simulation time may come in any order.
    """

    def __init__(self, scenario: Scenario, model: DiscreteSystem):
        self._scenario, self._model, self._space = scenario, model, model.system.space
        self._decoder = StateDecoder(scenario, self._space)
        self._states = self._decoder.topics
        self.topics = {topic: self._reader_of(topic) for topic in self._states} | {
            "joint_commands": self._command,
            topics.MOTORS: self._motor,
            "diagnostics": self._diagnostic,
        }
        self._diagnostics: dict[str, str] = {}
        self._runs = {topic: (0, 0) for topic in self._states}  # run number and last step
        self._nodes: dict[tuple[int, int], _Node] = {}
        self._commands: dict[int, list[float]] = {}
        self._command_messages = 0
        self._motors: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def _step(self, header: Any) -> int:
        return round((header.stamp.sec + header.stamp.nanosec / NANOSECONDS) / self._model.h)

    def _reader_of(self, topic: str) -> Callable[[Any, int], None]:
        def read(message: Any, received_ns: int) -> None:
            k = self._step(message.header)
            run, last = self._runs[topic]
            # step 0 after a later step: a new run begins in this topic
            run += k == 0 < last
            self._runs[topic] = run, k
            node = self._nodes.setdefault(
                (run, k), _Node(np.zeros(self._space.nq), np.zeros(self._space.nw), received_ns)
            )
            self._decoder.read(topic, message, node.q, node.v)
            node.topics.add(topic)

        return read

    def _command(self, message: Any, _: object) -> None:
        self._command_messages += 1
        u = command(message, self._model.inputs)
        if u is not None:
            k = self._step(message.header)
            if k == 0:
                # the commands so far belong to an earlier run
                self._commands.clear()
            self._commands[k] = u

    def _motor(self, message: Any, _: object) -> None:
        k = self._step(message.header) - 1  # the step that led to this state
        if k < 0:
            self._motors.clear()
        else:
            self._motors[k] = np.array(message.position), np.array(message.effort)

    def _diagnostic(self, message: Any, _: object) -> None:
        for status in message.status:
            if status.name.endswith("simulation"):
                self._diagnostics = {
                    "message": status.message,
                    **{pair.key: pair.value for pair in status.values},
                }

    def recording(self, folder: Path) -> Recording:
        """Return the collected motion. Missing nodes are interpolated, and missing inputs repeat
        the previous ones.
        """
        nodes, known, q, v = self._last_run(folder)
        if known[0] != 0:
            raise RecordingError(
                f"{folder}: the start of the run is missing, the first recorded step is {known[0]}"
            )
        if np.isnan(v).any():
            raise RecordingError(
                f"{folder}: the states have no velocities; record {topics.TRUTH}... as well, or "
                f"run the plant with publish_velocities:=true"
            )
        steps, inputs = np.arange(known[-1] + 1), self._inputs(known[-1])
        # from the second node, because the first state is published before the run begins
        wall_s = (nodes[known[-1]].received_ns - nodes[known[1]].received_ns) / NANOSECONDS
        wall_s -= float(self._diagnostics.get("paused_s", 0.0))
        v = np.column_stack([np.interp(steps, known, column) for column in v.T])
        motors, thrusts = self._flown(known[-1])
        return Recording(
            self._interpolated(known, q),
            v,
            inputs,
            len(steps) - len(known),
            wall_s,
            self._diagnostics,
            tuple(known),
            len([k for k in range(known[-1]) if k not in self._commands]),
            max(self._commands, default=-1),
            self._command_messages,
            motors=motors,
            thrusts=thrusts,
        )

    def _flown(self, steps: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return the motor commands and rotor thrusts (steps, n). Missing values repeat the
        previous ones. Both are None if nothing was recorded.
        """
        if not self._motors:
            return None, None
        latest, rows = self._motors[min(self._motors)], []
        for k in range(steps):
            latest = self._motors.get(k, latest)
            # a missing message repeats the previous one
            rows.append(latest)
        motors, thrusts = zip(*rows)
        return np.array(motors), np.array(thrusts)

    def measured(self, folder: Path) -> MeasuredRun:
        """Return the collected motion without lost nodes."""
        _, known, q, _ = self._last_run(folder)
        return MeasuredRun(np.array(known), q, self._inputs(known[-1]))

    def _last_run(
        self, folder: Path
    ) -> tuple[dict[int, _Node], list[int], np.ndarray, np.ndarray]:
        """Return nodes by step, the steps of all complete states, and their q and v."""
        # the last run that has begun in all topics
        last = min(run for run, _ in self._runs.values())
        nodes = {
            k: node
            for (run, k), node in self._nodes.items()
            if run == last and node.topics == set(self._states)
        }
        known = sorted(nodes)
        if len(known) < 2:
            raise RecordingError(
                f"{folder}: expected the states of at least two steps of a run, got {len(known)}"
            )
        q, v = (np.array([getattr(nodes[k], name) for k in known]) for name in "qv")
        if self._scenario.body is not None:
            # messages carry the heading up to whole turns
            heading, _ = self._scenario.body.place(self._space)
            for before, after in zip(q, q[1:]):
                after[heading] = unwrap(after[heading], before[heading])
        return nodes, known, q, v

    def _inputs(self, steps: int) -> np.ndarray:
        """Return the commands (steps, nu). A missing command repeats the previous one."""
        inputs, latest = np.zeros((steps, self._model.nu)), [0.0] * self._model.nu
        for k in range(steps):
            inputs[k] = latest = self._commands.get(k, latest)
        return inputs

    def _interpolated(self, known: list[int], q: np.ndarray) -> np.ndarray:
        """Return the configurations at all steps, interpolated along the space's retraction
        between the configurations q (nodes, nq) at the known steps.
        """
        out = [q[0]]
        # q_k = retract(q0, (k - start) / (end - start) local(q0, q1))
        for start, end, q0, q1 in zip(known, known[1:], q, q[1:]):
            out += [
                self._space.retract(q0, (k - start) / (end - start) * self._space.local(q0, q1))
                for k in range(start + 1, end)
            ] + [q1]
        return np.array(out)


def closed_loop(recording: Recording, experiment: Experiment) -> ClosedLoop:
    """Return the recorded run as the simulation would have returned it. The constraint residual is
    that of the last substep before a recorded state.
    """
    model, plant, tracker = experiment.model, experiment.plant, experiment.tracker
    states = np.array([model.measured_state(q, v) for q, v in zip(recording.q, recording.v)])
    plant_states = [plant.measured_state(q, v) for q, v in zip(recording.q, recording.v)]
    commands = recording.inputs
    # the plant applied the commands after the actuators' faults
    inputs = through_actuators(experiment.faults, model.idle(states[0]), commands)
    trajectory = Trajectory(
        model.h, states, inputs, model.state_names, model.inputs, tracker.reference.name, model
    )
    errors = np.array([tracker.error(k, x) for k, x in enumerate(states)])
    # recorded commands are clipped, so a saturated one is exactly at its limit
    lower, upper = tracker.limits.T
    saturated = (commands <= lower) | (commands >= upper)
    energy = np.array([plant.energy(x) for x in plant_states])
    return ClosedLoop(
        trajectory,
        errors,
        saturated,
        energy,
        _constraint(experiment, plant_states, inputs),
        commands=commands if experiment.options.faults else None,
        motors=recording.motors,
        forces=_forces(recording, experiment),
        link=recording.diagnostics.get("link", ""),
    )


def _forces(recording: Recording, experiment: Experiment) -> np.ndarray | None:
    """Return the plant's inputs (N, nu) that the rotors produced at the end of each step. Returns
    None without flight controllers; inputs that were not recorded are NaN.
    """
    flight, steps = experiment.scenario.flight, len(recording.inputs)
    if experiment.scenario.autopilot is None or flight is None:
        return None
    if recording.thrusts is None:
        return np.full_like(recording.inputs, np.nan)
    # forces = M thrusts for each craft, with the mixing matrix M of its airframe
    by_craft = recording.thrusts.reshape(steps, -1, flight.airframe.n)
    return (by_craft @ flight.airframe.matrix.T).reshape(steps, -1)


def _constraint(
    experiment: Experiment, states: list[np.ndarray], inputs: np.ndarray
) -> np.ndarray:
    """Return the constraint residual (N, m) of the last substep before every state of the plant
    except the first; NaN if the substeps before it fail.
    """
    plant, substeps = experiment.plant, experiment.options.substeps
    out = np.zeros((len(inputs), plant.system.n_velocity_constraints))
    for k, u in (
        enumerate(np.hstack([inputs, experiment.disturbance[: len(inputs)]]))
        if plant.system.n_velocity_constraints
        else ()
    ):
        try:
            out[k] = plant.constraint_residual(
                advance(plant, states[k], u, substeps)[0], states[k + 1]
            )
        except StepFailed:
            out[k] = np.nan
    return out


def _lost_commands(recording: Recording) -> int:
    """Return the number of commands that the plant received but the recording does not contain."""
    values = recording.diagnostics
    got = sum(int(values.get(f"commands_{which}", 0)) for which in ("accepted", "rejected"))
    return max(0, got - recording.n_command_messages)


def result(
    recording: Recording, experiment: Experiment, wall_s: float, stopped: str = ""
) -> Result:
    """Return the result of a run over ROS. It is compared with a simulation of the same run in one
    process, unless the controller is external. `stopped` is the reason why the run stopped early,
    if it did.
    """
    loop, difference = closed_loop(recording, experiment), None
    flown = experiment.scenario.autopilot is not None  # a second flight would take as long
    if experiment.controller != EXTERNAL and not flown:
        simulated = experiment.run(by_messages=True)
        # compare the nodes that both runs reached
        both = min(len(loop.trajectory), len(simulated.trajectory)) + 1
        states, expected = loop.trajectory.states[:both], simulated.trajectory.states[:both]
        difference = float(np.abs(states - expected).max())
    values = recording.diagnostics
    ros = {
        "rate_hz": (len(loop.trajectory) - 1) / recording.wall_s if recording.wall_s > 0 else 0.0,
        **{key: int(values.get(key, 0)) for key in COUNTS},
        **{key: float(values.get(key, 0.0)) for key in JITTER},
        "states_missing_in_recording": recording.missing,
        "commands_missing_in_recording": _lost_commands(recording),
        "last_command_step": recording.last_command,
        "difference_to_simulation": difference,
        "last_status": values.get("message", ""),
    }
    done = len(loop.trajectory)
    if stopped or done < experiment.steps:
        stopped = (
            f"after {done} of {experiment.steps} steps: {stopped or 'the recording ends'}; "
            f"last status of the plant: {ros['last_status'] or 'none'}"
        )
    opened = None if flown else experiment.run(feedback=False)
    feedback = experiment.model.nu > 0
    return Result(experiment, loop, opened, wall_s, feedback, stopped, ros)
