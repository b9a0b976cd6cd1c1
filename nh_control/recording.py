"""What a recording of the plant's topics says about a run: states, inputs and diagnostics, read without ROS."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rosbags.highlevel import AnyReader, AnyReaderError
from rosbags.typesys import Stores, get_typestore

from nh_control.discrete import DiscreteSystem, StepFailed
from nh_control.experiment import Experiment, Result
from nh_control.scenarios import Scenario
from nh_control.simulation import ClosedLoop, advance
from nh_control.trajectory import Trajectory

NANOSECONDS = 1e9
COUNTS = ("missed_steps", "commands_accepted", "commands_clipped", "commands_rejected", "fallback_steps")
JITTER = ("jitter_mean_us", "jitter_p99_us", "jitter_max_us")


class RecordingError(RuntimeError):
    """A recording does not hold a run; the message says what is missing."""


@dataclass(frozen=True)
class Recording:
    """Configurations (N + 1, nq), velocities (N + 1, nw) and inputs (N, nu) of steps 0 ... N, `missing` of whose nodes had to be interpolated,
    seconds of wall time `wall_s` from the first step to the last, and the last values of the plant's diagnostics."""

    q: np.ndarray
    v: np.ndarray
    inputs: np.ndarray
    missing: int
    wall_s: float
    diagnostics: dict[str, str]


def read(folder: Path, scenario: Scenario, model: DiscreteSystem) -> Recording:
    """Read the last run in a rosbag2 folder; raises RecordingError."""
    reader = _Reader(scenario, model)
    try:
        with AnyReader([folder], default_typestore=get_typestore(Stores.LATEST)) as bag:
            for connection, received_ns, data in bag.messages():
                handle = reader.topics.get(connection.topic.rsplit("/", 1)[-1])
                if handle is not None:
                    handle(bag.deserialize(data, connection.msgtype), received_ns)
    except (AnyReaderError, OSError) as error:
        raise RecordingError(f"{folder}: {error}") from error
    return reader.recording(folder)


class _Reader:
    """Collects messages by the step their stamp names; step 0 after a later one starts a new run."""

    def __init__(self, scenario: Scenario, model: DiscreteSystem):
        space = model.system.space
        self._h, self._inputs, self._sizes = model.h, model.inputs, (space.nq, space.nw)
        self._body = space.names.index(scenario.body.coordinates[0])
        self._joints = {j.name: (space.names.index(j.coordinate), j.sign) for j in scenario.joints}
        self.topics = {"joint_states": self._joint_state, "odom": self._odometry, "joint_commands": self._command, "diagnostics": self._diagnostic}
        self._diagnostics: dict[str, str] = {}
        self._clear()

    def _clear(self) -> None:
        self._jointed: dict[int, list] = {}
        self._placed: dict[int, list] = {}
        self._commands: dict[int, list] = {}
        self._received: dict[int, int] = {}

    def _step(self, header) -> int:
        return round((header.stamp.sec + header.stamp.nanosec / NANOSECONDS) / self._h)

    def _joint_state(self, message, received_ns: int) -> None:
        k = self._step(message.header)
        if k == 0 and len(self._jointed) > 1:
            self._clear()
        self._received[k] = received_ns
        self._jointed[k] = [(*self._joints[name], p, v) for name, p, v in zip(message.name, message.position, message.velocity) if name in self._joints]

    def _odometry(self, message, _) -> None:
        pose, twist = message.pose.pose, message.twist.twist
        o = pose.orientation
        yaw = np.arctan2(2 * (o.w * o.z + o.x * o.y), o.w**2 + o.x**2 - o.y**2 - o.z**2)
        self._placed[self._step(message.header)] = [yaw, pose.position.x, pose.position.y, twist.angular.z, twist.linear.x, twist.linear.y]

    def _command(self, message, _) -> None:
        values = dict(zip(message.name, message.effort))
        if set(values) == set(self._inputs):
            self._commands[self._step(message.header)] = [values[name] for name in self._inputs]

    def _diagnostic(self, message, _) -> None:
        for status in message.status:
            if status.name.endswith("simulation"):
                self._diagnostics = {"message": status.message, **{pair.key: pair.value for pair in status.values}}

    def recording(self, folder: Path) -> Recording:
        """What was collected; nodes between recorded ones are interpolated, inputs held."""
        known = sorted(self._jointed.keys() & self._placed.keys())
        if len(known) < 2 or known[0] != 0:
            raise RecordingError(f"{folder}: no run, it has the states of {len(known)} steps, the first one {known[0] if known else 'none'}")
        nq, nw = self._sizes
        q, v, i = np.zeros((len(known), nq)), np.zeros((len(known), nw)), self._body
        for row, k in enumerate(known):
            for coordinate, sign, position, velocity in self._jointed[k]:
                q[row, coordinate], v[row, coordinate] = sign * position, sign * velocity
            q[row, i : i + 3], v[row, i : i + 3] = self._placed[k][:3], self._placed[k][3:]
        q[:, i] = np.unwrap(q[:, i])
        steps = np.arange(known[-1] + 1)
        q, v = (np.column_stack([np.interp(steps, known, column) for column in table.T]) for table in (q, v))
        inputs, last = np.zeros((known[-1], len(self._inputs))), np.zeros(len(self._inputs))
        for k in steps[:-1]:
            inputs[k] = last = self._commands.get(int(k), last)
        wall_s = (self._received[known[-1]] - self._received[known[1]]) / NANOSECONDS
        return Recording(q, v, inputs, len(steps) - len(known), wall_s, self._diagnostics)


def closed_loop(recording: Recording, experiment: Experiment) -> ClosedLoop:
    """The recorded run as the simulation would have returned it; the constraint residual is that of the last substep before a recorded state."""
    model, plant, tracker = experiment.model, experiment.plant, experiment.tracker
    states = np.array([model.state(q, v) for q, v in zip(recording.q, recording.v)])
    at = [plant.state(q, v) for q, v in zip(recording.q, recording.v)]
    trajectory = Trajectory(model.h, states, recording.inputs, model.state_names, model.inputs, tracker.reference.name)
    errors = np.array([model.local(tracker.target(k), x) for k, x in enumerate(states)])
    lower, upper = tracker.limits.T
    saturated = (recording.inputs <= lower) | (recording.inputs >= upper)
    energy = np.array([plant.energy(x) for x in at])
    constraint = np.zeros((len(trajectory), plant.system.m))
    for k, u in enumerate(recording.inputs):
        try:
            constraint[k] = plant.constraint_residual(advance(plant, at[k], u, experiment.options.substeps - 1), at[k + 1])
        except StepFailed:
            constraint[k] = np.nan
    return ClosedLoop(trajectory, errors, saturated, energy, constraint)


def result(recording: Recording, experiment: Experiment, wall_s: float, stopped: str = "") -> Result:
    """The result of a run over ROS, with the simulation in one process of the same run to compare with; `stopped` says why it ended early, if it did."""
    loop, simulated = closed_loop(recording, experiment), experiment.run()
    both = min(len(loop.trajectory), len(simulated.trajectory)) + 1
    values = recording.diagnostics
    ros = {
        "rate_hz": (len(loop.trajectory) - 1) / recording.wall_s if recording.wall_s > 0 else 0.0,
        **{key: int(values.get(key, 0)) for key in COUNTS},
        **{key: float(values.get(key, 0.0)) for key in JITTER},
        "states_missing_in_recording": recording.missing,
        "difference_to_simulation": float(np.abs(loop.trajectory.states[:both] - simulated.trajectory.states[:both]).max()),
        "last_status": values.get("message", ""),
    }
    done = len(loop.trajectory)
    if stopped or done < experiment.steps:
        stopped = f"after {done} of {experiment.steps} steps: {stopped or 'the recording ends'}; last status of the plant: {ros['last_status'] or 'none'}"
    return Result(experiment, loop, experiment.run(feedback=False), wall_s, True, stopped, ros)
