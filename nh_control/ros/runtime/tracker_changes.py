"""What of a tracker may change while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from nh_control.control.reference_sequence import ReferenceSequence
from nh_control.ros.runtime.live import Change
from nh_control.ros.runtime.parameters import WEIGHTS, Parameters, Spec

SMALLEST = 1e-12
"""Least of what has a weight: inputs need one, and what a weight of 0 would erase of the others of
its row could not come back.
"""


class TrackerChanges:
    """Changes of the weights of a sequence's trackers, `weights.<coordinate or input>`, at the
    next step. Gains are computed where the parameters are set, while states are answered.
    """

    def __init__(self, sequence: ReferenceSequence, parameters: Parameters):
        self._sequence, dsys = sequence, sequence.dsys
        self._coordinates, self._inputs = dsys.state_space.tangent_names, dsys.inputs
        names = *self._coordinates, *self._inputs
        weights = dict(zip(names, np.concatenate(sequence.trackers[0].diagonals)))
        for name, weight in weights.items():
            least = SMALLEST if weight > 0 else 0.0
            text = f"LQR weight of {name}, in local coordinates."
            parameters.declare(
                Spec(WEIGHTS + name, float(weight), text, minimum=least, read_only=False)
            )
        given = {WEIGHTS + name: parameters[WEIGHTS + name] for name in names}
        if any(given[WEIGHTS + name] != weight for name, weight in weights.items()):
            self._weights(given)()
        self.changes = (Change(tuple(given), self._weights),)

    def _weights(self, values: Mapping[str, Any]) -> Callable[[], None]:
        state = {i: values[WEIGHTS + name] for i, name in enumerate(self._coordinates)}
        inputs = {i: values[WEIGHTS + name] for i, name in enumerate(self._inputs)}
        old = {id(tracker): tracker for tracker in self._sequence.trackers}.values()
        return partial(
            self._sequence.exchange,
            [(tracker, tracker.weighted(state, inputs)) for tracker in old],
        )
