"""A discrete trajectory: states at the nodes, inputs between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Trajectory:
    """States x_0 ... x_N (N + 1, nx) at times k h and the inputs u_0 ... u_{N-1} (N, nu) that were
    held between them.

    Arrays are read-only. Raises ValueError where shapes disagree, h is not positive or a value is
    not finite.
    """

    h: float
    states: np.ndarray
    inputs: np.ndarray
    state_names: tuple[str, ...] = ()
    input_names: tuple[str, ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        for field in ("states", "inputs"):
            value = np.array(getattr(self, field), dtype=float, order="C")
            if value.ndim != 2 or not np.isfinite(value).all():
                raise ValueError(
                    f"Trajectory {self.name!r}: {field} must be a finite 2-d array, got shape "
                    f"{value.shape}"
                )
            value.setflags(write=False)
            object.__setattr__(self, field, value)
        if not (np.isfinite(self.h) and self.h > 0):
            raise ValueError(f"Trajectory {self.name!r}: step h must be positive, got {self.h}")
        if len(self.states) != len(self.inputs) + 1:
            raise ValueError(
                f"Trajectory {self.name!r}: {len(self.states)} states need "
                f"{len(self.states) - 1} inputs, got {len(self.inputs)}"
            )

    def __repr__(self) -> str:
        states, inputs = self.states.shape[1], self.inputs.shape[1]
        return (
            f"Trajectory({self.name!r}, {len(self)} steps of {self.h:g} s, {states} states, "
            f"{inputs} inputs)"
        )

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def times(self) -> np.ndarray:
        """Times of the nodes in s, (N + 1)."""
        return self.h * np.arange(len(self) + 1)

    @property
    def duration(self) -> float:
        """Length in s."""
        return self.h * len(self)
