"""Faults in a closed loop: the lines of measurements and of commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.spaces import Space
from nh_control.scenarios.fault import (
    COMMANDS,
    MEASUREMENTS,
    POSITIONS,
    VELOCITIES,
    Fault,
    FaultContext,
)
from nh_control.scenarios.names import UnknownName

LineMemory: TypeAlias = "tuple[tuple[tuple[np.ndarray, ...], np.ndarray], ...]"
"""Memory of a line: for every fault its last input values and its last output value."""


class MeasurementSignal:
    """A signal of configuration and velocity, concatenated (nq + nw); local coordinates
    (nv + nw).
    """

    def __init__(self, space: Space):
        self._space, self.n = space, space.nv + space.nw

    def retract(self, x: np.ndarray, d: np.ndarray) -> np.ndarray:
        """`x` moved by the local coordinates `d` (n)."""
        nq, nv = self._space.nq, self._space.nv
        return np.concatenate([self._space.retract(x[:nq], d[:nv]), x[nq:] + d[nv:]])

    def local(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Local coordinates (n) that move `x` to `y`."""
        nq = self._space.nq
        return np.concatenate([self._space.local(x[:nq], y[:nq]), y[nq:] - x[nq:]])

    def rest(self, before: np.ndarray) -> np.ndarray:
        """The value `before`: a sensor that has no signal keeps its last value."""
        return before

    def mixed(self, x: np.ndarray, y: np.ndarray, of_y: np.ndarray) -> np.ndarray:
        """`x` with the local coordinates (n) of `y` where the mask `of_y` (n) is true."""
        nq, nv = self._space.nq, self._space.nv
        if of_y[:nv].all() or not of_y[:nv].any():  # y may be too far away for local coordinates
            q = (y if of_y[:nv].any() else x)[:nq]
            return np.concatenate([q, np.where(of_y[nv:], y[nq:], x[nq:])])
        return self.retract(x, np.where(of_y, self.local(x, y), 0.0))


class CommandSignal:
    """A signal of inputs (n): first the forces, then the values of prescribed coordinates."""

    def __init__(self, n: int, forces: int):
        self.n, self._forces = n, forces

    def retract(self, x: np.ndarray, d: np.ndarray) -> np.ndarray:
        """x + d."""
        return x + d

    def local(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """y - x."""
        return y - x

    def rest(self, before: np.ndarray) -> np.ndarray:
        """Zero forces; the prescribed coordinates keep their values."""
        return np.concatenate([np.zeros(self._forces), before[self._forces :]])

    def mixed(self, x: np.ndarray, y: np.ndarray, of_y: np.ndarray) -> np.ndarray:
        """`x` with the values of `y` where the mask `of_y` (n) is true."""
        return np.where(of_y, y, x)


@dataclass(frozen=True)
class FaultOutput:
    """Output of a line at one step: its `value`, None if it is lost; the `values` before every
    fault and after the last one; and the `memory` of the line for the next step.
    """

    value: np.ndarray | None
    values: tuple[np.ndarray | None, ...]
    memory: LineMemory


class Line:
    """Faults in series that act on a signal in steps of h s; each fault changes the local
    coordinates where its mask (n) in `masks` is true.

    A value that is lost, or that a fault makes infinite, becomes None, or with `holds` the last
    output. The line itself has no state: `start` and `through` return its memory.
    """

    def __init__(
        self,
        faults: Sequence[Fault],
        masks: Sequence[np.ndarray],
        signal: MeasurementSignal | CommandSignal,
        h: float,
        holds: bool,
    ):
        self.faults, self.h = tuple(faults), h
        self._masks, self._holds = masks, holds
        self.signal: MeasurementSignal | CommandSignal = signal
        self.seeds = [tuple(f"{fault.target}:{fault.kind}".encode()) for fault in faults]

    def start(self, before: np.ndarray) -> LineMemory:
        """The memory of a line whose input has been `before` for a long time."""
        return tuple(((before,) * fault.effect.memory(self.h), before) for fault in self.faults)

    def through(self, k: int, value: np.ndarray, memory: LineMemory) -> FaultOutput:
        """The output for the input `value` at step k."""
        now: np.ndarray | None = value
        values, after = [now], []
        for i, (past, before) in enumerate(memory):
            if now is not None:
                came = (now, *past)
                now = self._one(i, k, came, before)
                past, before = came[: len(past)], before if now is None else now
            values.append(now)
            after.append((past, before))
        return FaultOutput(now, tuple(values), tuple(after))

    def _one(
        self, i: int, k: int, came: tuple[np.ndarray, ...], before: np.ndarray
    ) -> np.ndarray | None:
        effect = self.faults[i].effect
        if not effect.active(k, self.h):
            return came[0]
        with np.errstate(over="ignore", invalid="ignore"):  # what is infinite is lost below
            made = effect.apply(FaultContext(k, self.h, self.signal, came, before, self.seeds[i]))
            if made is not None:
                made = self.signal.mixed(came[0], made, self._masks[i])
        if made is None or not np.isfinite(made).all():
            return before if self._holds else None
        return made

    def change(self, i: int, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Change from `x` to `y` by the i-th fault, in the local coordinates of its mask."""
        return self.signal.local(x, y)[self._masks[i]]


@dataclass(frozen=True)
class FaultLines:
    """The line from the sensors to the controller and the line from the controller to the
    actuators.
    """

    measurements: Line
    commands: Line

    @staticmethod
    def of(faults: Sequence[Fault], model: DiscreteSystem) -> FaultLines:
        """The lines of the faults of a model; raises UnknownName for a target that does not exist
        or that its fault cannot have.
        """
        space, inputs = model.system.space, model.inputs
        seen = _places([*space.tangent_names, *space.velocity_names], MEASUREMENTS)
        seen[POSITIONS] = np.arange(space.nv + space.nw) < space.nv
        seen[VELOCITIES] = ~seen[POSITIONS]
        moved = _places(inputs, COMMANDS)
        for fault in faults:
            _check(fault, seen, moved)
        sensors = [fault for fault in faults if fault.target in seen]
        actuators = [fault for fault in faults if fault.target not in seen]
        return FaultLines(
            Line(
                sensors,
                [seen[f.target] for f in sensors],
                MeasurementSignal(space),
                model.h,
                False,
            ),
            Line(
                actuators,
                [moved[f.target] for f in actuators],
                CommandSignal(model.nu, model.system.nu),
                model.h,
                True,
            ),
        )


def _places(names: Sequence[str], all_: str) -> dict[str, np.ndarray]:
    """Masks (n) of every name and of all."""
    one = np.eye(len(names), dtype=bool)
    return {all_: np.ones(len(names), dtype=bool), **dict(zip(names, one))}


def _check(fault: Fault, seen: dict[str, np.ndarray], moved: dict[str, np.ndarray]) -> None:
    effect = fault.effect
    groups = [name for name in (MEASUREMENTS, COMMANDS) if effect.of_all_only]
    valid = groups or [*([] if effect.of_inputs_only else seen), *moved]
    if fault.target not in valid:
        raise UnknownName(f"target of the fault {str(fault)!r},", fault.target, valid)


def through_actuators(lines: FaultLines, before: np.ndarray, commands: np.ndarray) -> np.ndarray:
    """Inputs (N, nu) that the actuators apply for commands (N, nu); `before` (nu) is the command
    before the first one.
    """
    outputs = line_outputs(lines.commands, before, commands)
    out = [output.value for output in outputs if output.value is not None]  # none is lost
    return np.reshape(out, np.shape(commands))


def line_outputs(
    line: Line, before: np.ndarray, values: Iterable[np.ndarray]
) -> list[FaultOutput]:
    """The outputs of a line for input values at steps 0, 1, ..."""
    memory, out = line.start(before), []
    for k, value in enumerate(values):
        out.append(line.through(k, value, memory))
        memory = out[-1].memory
    return out
