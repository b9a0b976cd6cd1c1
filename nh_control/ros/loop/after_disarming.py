"""What hardware is commanded when it may not be tracked any more."""

from __future__ import annotations

from enum import Enum

import numpy as np

from nh_control.control.damping import damping_input
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.ros.loop.simulated_plant import DAMPING_S


class Kind(str, Enum):
    """Nothing; no force (what is moved at will stays); the last command; or forces that bring the
    motion to rest as far as they can.
    """

    NONE = "none"
    ZERO = "zero"
    HOLD = "hold"
    DAMP = "damp"


class AfterDisarming:
    """Commands of a kind after a disarming; before any state or command there is none."""

    def __init__(self, dsys: DiscreteSystem, kind: Kind):
        self._dsys, self.kind = dsys, Kind(kind)
        self._last: np.ndarray | None = None
        self._still: np.ndarray | None = None

    def sent(self, u: np.ndarray, x: np.ndarray) -> None:
        """The input u (nu) was sent for the state x (nx) while armed."""
        self._last, self._still = u, self._dsys.idle(x)

    def at(self, x: np.ndarray) -> np.ndarray | None:
        """Input (nu) at the state x (nx)."""
        self._still = self._dsys.idle(x)
        if self.kind is not Kind.DAMP:
            return self.unheard()
        try:
            return damping_input(self._dsys, x, DAMPING_S)
        except (StepFailed, np.linalg.LinAlgError):
            return self._still

    def unheard(self) -> np.ndarray | None:
        """Input (nu) while no state comes: none can be damped then."""
        if self.kind is Kind.NONE:
            return None
        return self._last if self.kind is Kind.HOLD else self._still
