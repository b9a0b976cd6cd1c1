"""What a recording of the plant's topics says about a run: states, inputs and diagnostics, read
without ROS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.highlevel import AnyReader, AnyReaderError
from rosbags.typesys import Stores, get_typestore
from transforms3d.quaternions import quat2mat

from nh_control.discrete.plant import advance
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.runs import topics
from nh_control.runs.experiment import Experiment, Result
from nh_control.runs.faults import through_actuators
from nh_control.runs.simulation import ClosedLoop
from nh_control.scenarios import BodyState, Scenario

NANOSECONDS = 1e9
COUNTS = (
    "missed_steps",
    "commands_accepted",
    "commands_clipped",
    "commands_rejected",
    "fallback_steps",
)
JITTER = ("jitter_mean_us", "jitter_p99_us", "jitter_max_us")


class RecordingError(RuntimeError):
    """A recording does not hold a run; the message says what is missing."""


@dataclass(frozen=True)
class Recording:
    """Configurations (N + 1, nq), velocities (N + 1, nw) and inputs (N, nu) of steps 0 ... N,
    `missing` of whose nodes had to be interpolated, seconds of wall time `wall_s` from the first
    step to the last, and the last values of the plant's diagnostics."""

    q: np.ndarray
    v: np.ndarray
    inputs: np.ndarray
    missing: int
    wall_s: float
    diagnostics: dict[str, str]


def read(folder: Path, scenario: Scenario, model: DiscreteSystem) -> Recording:
    """Read the last run in a rosbag2 folder; raises RecordingError."""
    reader, states = _Reader(scenario, model), topics.states(scenario)
    try:
        with AnyReader([folder], default_typestore=get_typestore(Stores.LATEST)) as bag:
            place = _place(connection.topic for connection in bag.connections)
            for connection, received_ns, data in bag.messages():
                name = connection.topic.rsplit("/", 1)[-1]
                if name in states and not connection.topic.endswith(place + name):
                    continue
                handle = reader.topics.get(name)
                if handle is not None:
                    handle(bag.deserialize(data, connection.msgtype), received_ns)
    except (AnyReaderError, OSError) as error:
        raise RecordingError(f"{folder}: {error}") from error
    return reader.recording(folder)


def _place(recorded: Iterable[str]) -> str:
    """Where the states are: the true ones, if there are any, else those that were measured."""
    return topics.TRUTH if any(topics.TRUTH in topic for topic in recorded) else ""


@dataclass
class _Node:
    """Configuration and velocity at a step, as far as the messages on `topics` have given them,
    the first one received at `received_ns`.
    """

    q: np.ndarray
    v: np.ndarray
    received_ns: int
    topics: set[str] = field(default_factory=set)


class _Reader:
    """Collects messages by the step their stamp names; in every topic step 0 after a later one
    starts a new run.

    Only within a topic is the order certain: messages of different topics that were received at
    the same simulation time may come in any order.
    """

    def __init__(self, scenario: Scenario, model: DiscreteSystem):
        self._scenario, self._model, self._space = scenario, model, model.system.space
        self._joints = {
            j.name: (
                self._space.names.index(j.coordinate),
                self._space.velocity_names.index(f"{j.coordinate}_dot"),
                j.sign,
            )
            for j in scenario.joints
        }
        readers = {
            "joint_states": self._joint_state,
            "odom": self._odometry,
            "multi_dof_joint_states": self._multi_dof,
        }
        self._states = {topic: readers[topic] for topic in topics.states(scenario)}
        self.topics = {topic: self._reader_of(topic) for topic in self._states} | {
            "joint_commands": self._command,
            "diagnostics": self._diagnostic,
        }
        self._diagnostics: dict[str, str] = {}
        self._runs = {topic: (0, 0) for topic in self._states}  # number of the run and last step
        self._nodes: dict[tuple[int, int], _Node] = {}
        self._commands: dict[int, list[float]] = {}

    def _step(self, header: Any) -> int:
        return round((header.stamp.sec + header.stamp.nanosec / NANOSECONDS) / self._model.h)

    def _reader_of(self, topic: str) -> Callable[[Any, int], None]:
        def read(message: Any, received_ns: int) -> None:
            k = self._step(message.header)
            run, last = self._runs[topic]
            run += k == 0 < last
            self._runs[topic] = run, k
            node = self._nodes.setdefault(
                (run, k), _Node(np.zeros(self._space.nq), np.zeros(self._space.nw), received_ns)
            )
            self._states[topic](message, node)
            node.topics.add(topic)

        return read

    def _joint_state(self, message: Any, node: _Node) -> None:
        for name, position, velocity in zip(message.name, message.position, message.velocity):
            if name in self._joints:
                coordinate, rate, sign = self._joints[name]
                node.q[coordinate], node.v[rate] = sign * position, sign * velocity

    def _heading(self) -> int:
        """Where the planar body's heading stands in configurations."""
        if self._scenario.body is None:
            raise RecordingError(f"the scenario {self._scenario.name!r} has no planar body")
        return self._space.names.index(self._scenario.body.coordinates[0])

    def _odometry(self, message: Any, node: _Node) -> None:
        i = self._heading()
        pose, twist, o = message.pose.pose, message.twist.twist, message.pose.pose.orientation
        yaw = np.arctan2(2 * (o.w * o.z + o.x * o.y), o.w**2 + o.x**2 - o.y**2 - o.z**2)
        node.q[i : i + 3] = yaw, pose.position.x, pose.position.y
        node.v[i : i + 3] = twist.angular.z, twist.linear.x, twist.linear.y

    def _multi_dof(self, message: Any, node: _Node) -> None:
        """Twists are in the axes of the body, as in nav_msgs/Odometry."""
        if self._scenario.from_bodies is None:
            raise RecordingError(f"the scenario {self._scenario.name!r} has no bodies in space")
        bodies = []
        for name, transform, twist in zip(message.joint_names, message.transforms, message.twist):
            position, linear, angular = (
                np.array([v.x, v.y, v.z])
                for v in (transform.translation, twist.linear, twist.angular)
            )
            turn = transform.rotation
            wxyz = np.array([turn.w, turn.x, turn.y, turn.z])
            bodies.append(
                BodyState(
                    name, message.header.frame_id, position, wxyz, quat2mat(wxyz) @ linear, angular
                )
            )
        q, v = self._scenario.from_bodies(bodies)
        node.q[: len(q)], node.v[: len(v)] = q, v

    def _command(self, message: Any, _: object) -> None:
        values = dict(zip(message.name, message.effort))
        if set(values) == set(self._model.inputs):
            k = self._step(message.header)
            if k == 0:
                self._commands.clear()
            self._commands[k] = [values[name] for name in self._model.inputs]

    def _diagnostic(self, message: Any, _: object) -> None:
        for status in message.status:
            if status.name.endswith("simulation"):
                self._diagnostics = {
                    "message": status.message,
                    **{pair.key: pair.value for pair in status.values},
                }

    def recording(self, folder: Path) -> Recording:
        """What was collected; nodes between recorded ones are interpolated, inputs held."""
        last = min(run for run, _ in self._runs.values())
        nodes = {
            k: node
            for (run, k), node in self._nodes.items()
            if run == last and node.topics == self._states.keys()
        }
        known = sorted(nodes)
        if len(known) < 2 or known[0] != 0:
            raise RecordingError(
                f"{folder}: no run, it has the states of {len(known)} steps, the first one "
                f"{known[0] if known else 'none'}"
            )
        q, v = (np.array([getattr(nodes[k], name) for k in known]) for name in "qv")
        if self._scenario.body is not None:
            i = self._heading()
            q[:, i] = np.unwrap(q[:, i])
        steps = np.arange(known[-1] + 1)
        inputs, held = np.zeros((known[-1], self._model.nu)), [0.0] * self._model.nu
        for k in steps[:-1]:
            inputs[k] = held = self._commands.get(int(k), held)
        wall_s = (nodes[known[-1]].received_ns - nodes[known[1]].received_ns) / NANOSECONDS
        v = np.column_stack([np.interp(steps, known, column) for column in v.T])
        return Recording(
            self._interpolated(known, q),
            v,
            inputs,
            len(steps) - len(known),
            wall_s,
            self._diagnostics,
        )

    def _interpolated(self, known: list[int], q: np.ndarray) -> np.ndarray:
        """Configurations at all steps from those (nodes, nq) at the known ones, along the space's
        retraction.
        """
        out = [q[0]]
        for start, end, q0, q1 in zip(known, known[1:], q, q[1:]):
            out += [
                self._space.retract(q0, (k - start) / (end - start) * self._space.local(q0, q1))
                for k in range(start + 1, end)
            ] + [q1]
        return np.array(out)


def closed_loop(recording: Recording, experiment: Experiment) -> ClosedLoop:
    """The recorded run as the simulation would have returned it; the constraint residual is that
    of the last substep before a recorded state.
    """
    model, plant, tracker = experiment.model, experiment.plant, experiment.tracker
    states = np.array([model.measured_state(q, v) for q, v in zip(recording.q, recording.v)])
    at = [plant.measured_state(q, v) for q, v in zip(recording.q, recording.v)]
    commands = recording.inputs
    inputs = through_actuators(experiment.faults, model.idle(states[0]), commands)
    trajectory = Trajectory(
        model.h, states, inputs, model.state_names, model.inputs, tracker.reference.name
    )
    errors = np.array([tracker.error(k, x) for k, x in enumerate(states)])
    lower, upper = tracker.limits.T
    saturated = (commands <= lower) | (commands >= upper)
    energy = np.array([plant.energy(x) for x in at])
    return ClosedLoop(
        trajectory,
        errors,
        saturated,
        energy,
        _constraint(experiment, at, inputs),
        commands=commands if experiment.options.faults else None,
    )


def _constraint(experiment: Experiment, at: list[np.ndarray], inputs: np.ndarray) -> np.ndarray:
    """Constraint residual (N, m) of the last substep before every state of the plant but the
    first; NaN where the substeps before cannot be made.
    """
    plant, substeps = experiment.plant, experiment.options.substeps
    out = np.zeros((len(inputs), plant.system.m))
    for k, u in (
        enumerate(np.hstack([inputs, experiment.disturbance[: len(inputs)]]))
        if plant.system.m
        else ()
    ):
        try:
            out[k] = plant.constraint_residual(advance(plant, at[k], u, substeps)[0], at[k + 1])
        except StepFailed:
            out[k] = np.nan
    return out


def _carried(model: DiscreteSystem, states: np.ndarray) -> np.ndarray:
    """The states as messages carry them, by configurations and velocities, which do not know the
    impulses of holonomic constraints in the momenta.
    """
    return np.array(
        [model.measured_state(model.configuration(x), model.velocity(x)) for x in states]
    )


def result(
    recording: Recording, experiment: Experiment, wall_s: float, stopped: str = ""
) -> Result:
    """The result of a run over ROS, with the simulation in one process of the same run to compare
    with; `stopped` says why it ended early, if it did.
    """
    loop, simulated = closed_loop(recording, experiment), experiment.run()
    both = min(len(loop.trajectory), len(simulated.trajectory)) + 1
    values = recording.diagnostics
    ros = {
        "rate_hz": (len(loop.trajectory) - 1) / recording.wall_s if recording.wall_s > 0 else 0.0,
        **{key: int(values.get(key, 0)) for key in COUNTS},
        **{key: float(values.get(key, 0.0)) for key in JITTER},
        "states_missing_in_recording": recording.missing,
        "difference_to_simulation": float(
            np.abs(
                loop.trajectory.states[:both]
                - _carried(experiment.model, simulated.trajectory.states[:both])
            ).max()
        ),
        "last_status": values.get("message", ""),
    }
    done = len(loop.trajectory)
    if stopped or done < experiment.steps:
        stopped = (
            f"after {done} of {experiment.steps} steps: {stopped or 'the recording ends'}; "
            f"last status of the plant: {ros['last_status'] or 'none'}"
        )
    return Result(experiment, loop, experiment.run(feedback=False), wall_s, True, stopped, ros)
