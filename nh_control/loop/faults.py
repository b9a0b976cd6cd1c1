"""Faults in a closed loop: a line for measurements and a line for commands."""

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
"""Memory of a line: for each fault, its last input values and its last output value."""


class MeasurementSignal:
    """A signal that concatenates configuration and velocity (nq + nw), with local coordinates (nv
    + nw).
    """

    def __init__(self, space: Space):
        self._space, self.n = space, space.nv + space.nw

    def retract(self, x: np.ndarray, d: np.ndarray) -> np.ndarray:
        """Move `x` by the local coordinates `d` (n)."""
        nq, nv = self._space.nq, self._space.nv
        return np.concatenate([self._space.retract(x[:nq], d[:nv]), x[nq:] + d[nv:]])

    def local(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the local coordinates (n) that move `x` to `y`."""
        nq = self._space.nq
        return np.concatenate([self._space.local(x[:nq], y[:nq]), y[nq:] - x[nq:]])

    def rest(self, before: np.ndarray) -> np.ndarray:
        """Return `before`: a sensor without a signal repeats its last value."""
        return before

    def mixed(self, x: np.ndarray, y: np.ndarray, of_y: np.ndarray) -> np.ndarray:
        """Return `x` with the local coordinates (n) of `y` where the mask `of_y` (n) is true."""
        nq, nv = self._space.nq, self._space.nv
        if of_y[:nv].all() or not of_y[:nv].any():  # y may be too far away for local coordinates
            # all or none of the configuration's coordinates change, so no local coordinates are
            # needed
            q = (y if of_y[:nv].any() else x)[:nq]
            return np.concatenate([q, np.where(of_y[nv:], y[nq:], x[nq:])])
        return self.retract(x, np.where(of_y, self.local(x, y), 0.0))


class CommandSignal:
    """A signal that contains inputs (n): the forces, then the values of prescribed coordinates."""

    def __init__(self, n: int, forces: int):
        self.n, self._forces = n, forces

    def retract(self, x: np.ndarray, d: np.ndarray) -> np.ndarray:
        """Return x + d."""
        return x + d

    def local(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return y - x."""
        return y - x

    def rest(self, before: np.ndarray) -> np.ndarray:
        """Return zero forces; the prescribed coordinates keep their values."""
        return np.concatenate([np.zeros(self._forces), before[self._forces :]])

    def mixed(self, x: np.ndarray, y: np.ndarray, of_y: np.ndarray) -> np.ndarray:
        """Return `x` with the values of `y` where the mask `of_y` (n) is true."""
        return np.where(of_y, y, x)


@dataclass(frozen=True)
class FaultOutput:
    """Output of a line at one step: its `value`, or None if it is lost; the `values` before each
    fault and after the last one; and the `memory` of the line for the next step.
    """

    value: np.ndarray | None
    values: tuple[np.ndarray | None, ...]
    memory: LineMemory


class Line:
    """Faults in series that act on a signal with a time step of h s. Each fault changes the local
    coordinates where its mask (n) in `masks` is true.

    A value that is lost or that a fault makes infinite becomes None or, with `holds`, the last
    output. The line has no state: `start` and `through` return its memory.
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
        # a fault is seeded with its text, so its random values do not depend on the other faults
        self.seeds = [tuple(f"{fault.target}:{fault.kind}".encode()) for fault in faults]

    def start(self, before: np.ndarray) -> LineMemory:
        """Return the memory of a line whose input has been `before` for a long time."""
        return tuple(((before,) * fault.effect.memory(self.h), before) for fault in self.faults)

    def through(self, k: int, value: np.ndarray, memory: LineMemory) -> FaultOutput:
        """Return the output for the input `value` at step k."""
        now: np.ndarray | None = value
        values, after = [now], []
        for i, (past, before) in enumerate(memory):
            if now is not None:
                # newest first: the present input, then the remembered ones
                inputs = (now, *past)
                now = self._through_fault(i, k, inputs, before)
                past, before = inputs[: len(past)], before if now is None else now
            values.append(now)
            after.append((past, before))
        return FaultOutput(now, tuple(values), tuple(after))

    def _through_fault(
        self, i: int, k: int, inputs: tuple[np.ndarray, ...], before: np.ndarray
    ) -> np.ndarray | None:
        effect = self.faults[i].effect
        if not effect.active(k, self.h):
            return inputs[0]
        with np.errstate(over="ignore", invalid="ignore"):  # infinite values are lost below
            output = effect.apply(
                FaultContext(k, self.h, self.signal, inputs, before, self.seeds[i])
            )
            if output is not None:
                output = self.signal.mixed(inputs[0], output, self._masks[i])
        if output is None or not np.isfinite(output).all():
            return before if self._holds else None
        return output

    def change(self, i: int, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the change from `x` to `y` by fault i, in the local coordinates of its mask."""
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
        """Return the lines for the given faults of a model. Raises UnknownName for a target that
        does not exist or that its fault cannot affect.
        """
        space, inputs = model.system.space, model.inputs
        measured = _places([*space.tangent_names, *space.velocity_names], MEASUREMENTS)
        # the signal is (configuration, velocity): its first nv coordinates are positions
        measured[POSITIONS] = np.arange(space.nv + space.nw) < space.nv
        measured[VELOCITIES] = ~measured[POSITIONS]
        commanded = _places(inputs, COMMANDS)
        for fault in faults:
            _check(fault, measured, commanded)
        sensors = [fault for fault in faults if fault.target in measured]
        actuators = [fault for fault in faults if fault.target not in measured]
        return FaultLines(
            Line(
                sensors,
                [measured[f.target] for f in sensors],
                MeasurementSignal(space),
                model.h,
                False,
            ),
            Line(
                actuators,
                [commanded[f.target] for f in actuators],
                CommandSignal(model.nu, model.system.nu),
                model.h,
                True,
            ),
        )


def _places(names: Sequence[str], all_: str) -> dict[str, np.ndarray]:
    """Return the mask (n) of each name, and a mask of all names under the name `all_`."""
    identity = np.eye(len(names), dtype=bool)
    return {all_: np.ones(len(names), dtype=bool), **dict(zip(names, identity))}


def _check(
    fault: Fault, measured: dict[str, np.ndarray], commanded: dict[str, np.ndarray]
) -> None:
    effect = fault.effect
    groups = [name for name in (MEASUREMENTS, COMMANDS) if effect.of_all_only]
    valid = groups or [*([] if effect.of_inputs_only else measured), *commanded]
    if fault.target not in valid:
        raise UnknownName(f"target of the fault {str(fault)!r},", fault.target, valid)


def through_actuators(lines: FaultLines, before: np.ndarray, commands: np.ndarray) -> np.ndarray:
    """Return the inputs (N, nu) that the actuators apply for the given commands (N, nu). `before`
    (nu) is the command before the first one.
    """
    outputs = line_outputs(lines.commands, before, commands)
    out = [output.value for output in outputs if output.value is not None]  # no value is lost
    return np.reshape(out, np.shape(commands))


def line_outputs(
    line: Line, before: np.ndarray, values: Iterable[np.ndarray]
) -> list[FaultOutput]:
    """Return a line's outputs for the input values at steps 0, 1, ..."""
    memory, out = line.start(before), []
    for k, value in enumerate(values):
        out.append(line.through(k, value, memory))
        memory = out[-1].memory
    return out
