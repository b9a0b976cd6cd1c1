"""States of a plant as its messages carry them, in one process."""

from __future__ import annotations

from typing import Any

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.runs.decoding import StateDecoder, unwrap
from nh_control.scenarios import Scenario


class MessageStates:
    """States of the model as a tracker makes them of its plant's messages, with configuration and
    velocity: in lock-step the same bits. `parameters` are the plant's, `first` is where the model
    should be at first (nx). For one run.
    """

    def __init__(
        self,
        scenario: Scenario,
        model: DiscreteSystem,
        plant: DiscreteSystem,
        parameters: Any,
        first: np.ndarray,
    ):
        self._decoder = StateDecoder(scenario, model.system.space)
        self._model, self._plant, self._parameters = model, plant, parameters
        self._q = model.configuration(first)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The model's state (nx) of the plant's state x (plant.nx), after those before."""
        seen = self._plant.configuration(x), self._plant.velocity(x)
        q, v = self._decoder.carried(self._parameters, *seen)
        if (i := self._decoder.heading) is not None:
            q[i] = unwrap(q[i], self._q[i])
        self._q = q
        return self._model.measured_state(q, v)
