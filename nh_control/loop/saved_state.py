"""A plant's state at a step, in memory or in a file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.loop.simulation_loop import SimulationLoop


@dataclass(frozen=True)
class SavedState:
    """A state (nx), its step, and the step at which its reference started."""

    state: np.ndarray
    step: int
    start_step: int

    @staticmethod
    def of(loop: SimulationLoop) -> SavedState:
        """Return the present state of a loop."""
        return SavedState(loop.plant.state, loop.plant.step, loop.start_step)

    def restore(self, loop: SimulationLoop) -> None:
        """Let a loop continue from this state at its step. Raises ValueError."""
        loop.place(self.state, self.step, self.start_step)

    def write(self, path: Path, dsys: DiscreteSystem) -> None:
        """Write a JSON file that can be edited, with the configuration and the velocity by name.
        Raises OSError.
        """
        space = dsys.system.space
        q, v = dsys.configuration(self.state), dsys.velocity(self.state)
        content = {
            "system": str(dsys),
            "step": self.step,
            "reference_start": self.start_step,
            "configuration": dict(zip(space.names, q.tolist())),
            "velocity": dict(zip(space.velocity_names, v.tolist())),
            # the exact state, which configuration and velocity determine only up to round-off
            "state": self.state.tolist(),
        }
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

    @staticmethod
    def read(path: Path, dsys: DiscreteSystem) -> SavedState:
        """Read a file written by `write`. If it does not contain `state`, the state is computed
        from the configuration and the velocity. Missing steps are 0. Raises OSError, and
        ValueError with the file's name for all other errors.
        """
        text = path.read_text(encoding="utf-8")
        try:
            content = json.loads(text)
            _require(isinstance(content, dict), "an object", content)
            step, start_step = (_step(content, key) for key in ("step", "reference_start"))
            state = _numbers(content["state"]) if "state" in content else _by_name(content, dsys)
            _require(
                len(state) == dsys.nx,
                f"a state of {dsys.nx} numbers of {dsys}",
                f"{len(state)} of {content.get('system')}",
            )
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: {error}") from error
        return SavedState(state, step, start_step)


def _by_name(content: dict, dsys: DiscreteSystem) -> np.ndarray:
    """Return the state (nx) for a configuration and a velocity given by name."""
    space = dsys.system.space
    numbers = []
    for key, names in (("configuration", space.names), ("velocity", space.velocity_names)):
        values: Any = content.get(key)
        valid = isinstance(values, dict) and set(values) == set(names)
        _require(valid, f"'{key}' with {', '.join(names)}", values)
        numbers.append(_numbers([values[name] for name in names]))
    q, v = numbers
    return dsys.state(q, v)


def _step(content: dict, key: str) -> int:
    value: Any = content.get(key, 0)
    # `type() is` because a bool is an int
    _require(type(value) is int and value >= 0, f"'{key}', a step >= 0", value)
    return int(value)


def _numbers(values: Any) -> np.ndarray:
    numbers = np.array(values, dtype=float)
    _require(numbers.ndim == 1 and bool(np.isfinite(numbers).all()), "finite numbers", values)
    return numbers


def _require(condition: bool, expected: str, got: object) -> None:
    if not condition:
        raise ValueError(f"expected {expected}, got {got!r}")
