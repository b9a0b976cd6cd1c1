"""What hardware is commanded when it may not be tracked any more."""

from __future__ import annotations

from enum import Enum

import numpy as np

from nh_control.control.damping import damping_or_idle
from nh_control.discrete.system import DiscreteSystem


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
        self._heard: np.ndarray | None = None
        self._sent: np.ndarray | None = None

    def heard(self, x: np.ndarray, sent: np.ndarray | None = None) -> None:
        """The last state was x (nx), and the input (nu) was sent for it, if it was armed."""
        self._heard = x
        if sent is not None:
            self._sent = sent

    def command(self, fresh: bool) -> np.ndarray | None:
        """Input (nu) for the last state; one that is not `fresh` cannot be damped."""
        if self.kind is Kind.NONE or self._heard is None:
            return None
        if self.kind is Kind.HOLD:
            return self._sent
        if self.kind is Kind.DAMP and fresh:
            return damping_or_idle(self._dsys, self._heard)
        return self._dsys.idle(self._heard)
