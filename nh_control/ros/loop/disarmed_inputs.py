"""What hardware is commanded when it may not be tracked any more."""

from __future__ import annotations

from enum import Enum

import numpy as np

from nh_control.control.damping import damping_or_idle
from nh_control.discrete.system import DiscreteSystem


class DisarmCommand(str, Enum):
    """Nothing; no force (what is moved at will stays); the last command; or forces that bring the
    motion to rest as far as they can.
    """

    NONE = "none"
    ZERO = "zero"
    HOLD = "hold"
    DAMP = "damp"


class DisarmedInputs:
    """Commands of a kind after a disarming; before any state or command there is none."""

    def __init__(self, dsys: DiscreteSystem, kind: DisarmCommand):
        self._dsys, self.kind = dsys, DisarmCommand(kind)
        self._state: np.ndarray | None = None
        self._input: np.ndarray | None = None

    def update(self, x: np.ndarray, sent: np.ndarray | None = None) -> None:
        """The last state was x (nx), and the input (nu) was sent for it, if it was armed."""
        self._state = x
        if sent is not None:
            self._input = sent

    def command(self, fresh: bool) -> np.ndarray | None:
        """Input (nu) for the last state; one that is not `fresh` cannot be damped."""
        if self.kind is DisarmCommand.NONE or self._state is None:
            return None
        if self.kind is DisarmCommand.HOLD:
            return self._input
        if self.kind is DisarmCommand.DAMP and fresh:
            return damping_or_idle(self._dsys, self._state)
        return self._dsys.idle(self._state)
