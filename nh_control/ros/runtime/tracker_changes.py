"""Changes to a tracker's parameters while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nh_control.control.controller import ControllerTracker
from nh_control.control.trackers import Tracker, linear
from nh_control.loop.reference_sequence import ReferenceLeg, ReferenceSequence
from nh_control.mechanics.parameters import Declaration
from nh_control.ros.runtime.declared import WEIGHTS
from nh_control.ros.runtime.dynamic_parameters import Change
from nh_control.ros.runtime.parameters import Parameters
from nh_control.ros.runtime.selected_model import Model
from nh_control.runs.simulation import closed_loop

SMALLEST = 1e-12
"""Lower bound on weights that are initially positive. Inputs need a positive weight, and a weight
of 0 would erase the other entries of its row, and these could not be restored.
"""
GROWTH = 1e-6
"""Maximum increase in the remaining cost, `dx . P dx`, from the beginning of a reference to its
end. With a linear model, the cost never increases.
"""
Prepared = Callable[[], None]


class TrackerChanges:
    """Changes to the weights `weights.<coordinate or input>` of a sequence's trackers, and to the
    reference. The changes take effect at the next step. The thread that sets the parameters
    computes the gains while states are answered.

    A new reference begins at the next step, or with the run if the run is still at its first
    state. Then `followed(leg)` is called. The reference begins again with every new run. A
    reference is refused if the model cannot follow it from the last state `present()` (nx), if
    there is a last state.
    """

    def __init__(
        self,
        model: Model,
        sequence: ReferenceSequence,
        parameters: Parameters,
        present: Callable[[], np.ndarray | None],
        followed: Callable[[ReferenceLeg], None],
    ):
        self._model, self._sequence = model, sequence
        self._present, self._followed = present, followed
        first = sequence.trackers[0]
        self._coordinates: tuple[str, ...] = ()
        self._inputs: tuple[str, ...] = ()
        weights: dict[str, float] = {}
        # a user's controller has no LQR weights
        if not isinstance(first, ControllerTracker):
            self._coordinates, self._inputs = linear(first).weighted, sequence.dsys.inputs
            values = np.concatenate(linear(first).diagonal_weights).tolist()
            weights = dict(zip((*self._coordinates, *self._inputs), values))
        for name, weight in weights.items():
            least = SMALLEST if weight > 0 else 0.0
            text = f"LQR weight of {name}, in local coordinates"
            parameters.declare(
                Declaration(
                    WEIGHTS + name,
                    weight,
                    description=text,
                    at_least=least,
                    changeable=True,
                )
            )
        overrides = {WEIGHTS + name: parameters[WEIGHTS + name] for name in weights}
        self._reference = model.reference.name
        self._weights = {WEIGHTS + name: weight for name, weight in weights.items()}
        self._prepare({"reference": self._reference, **overrides})()
        self.changes = (Change(("reference", *overrides), self._prepare),)

    def _prepare(self, values: Mapping[str, Any]) -> Prepared:
        """Prepare changes to the weights and the reference together."""
        weights = {name: values[name] for name in self._weights}
        name = values["reference"] or next(iter(self._model.scenario.references))
        others = self._weighted(weights) if weights != self._weights else []
        first = self._sequence.trackers[0]
        # the tracker along the new reference also has the new weights
        followed = (
            self._along(name, next((new for old, new in others if old is first), first))
            if name != self._reference
            else None
        )

        def change() -> None:
            self._sequence.exchange(others)
            self._weights, self._reference = weights, name
            if followed is not None:
                make = self._model.scenario.make_guidance
                guidance = make(self._sequence.dsys, followed.reference)
                self._followed(self._sequence.begin(followed, guidance))

        return change

    def _weighted(self, values: Mapping[str, float]) -> list[tuple[Tracker, Tracker]]:
        """Pairs of each current tracker and its replacement with these weights."""
        state = {i: values[WEIGHTS + name] for i, name in enumerate(self._coordinates)}
        inputs = {i: values[WEIGHTS + name] for i, name in enumerate(self._inputs)}
        # several legs may share a tracker, which is replaced once
        old = {id(tracker): tracker for tracker in self._sequence.trackers}.values()
        return [
            (tracker, tracker.with_weights(state, inputs))
            for tracker in old
            if not isinstance(tracker, ControllerTracker)
        ]

    def _along(self, name: str, tracker: Tracker) -> Tracker:
        """The tracker along the reference with this name. Raises ValueError or StepFailed if the
        reference is unknown, is not a motion of the model, or cannot be reached from the current
        state.
        """
        reference = self._model.scenario.reference(self._sequence.dsys, name)
        tracker = tracker.with_reference(reference)
        # as long as there is no state, every reference of the model is accepted
        x = self._present()
        if x is None:
            return tracker
        # simulate the tracker along the new reference from the current state
        run = closed_loop(self._sequence.dsys, linear(tracker), x, len(tracker.reference))
        if run.failure is not None:
            raise ValueError(f"reference {name!r} cannot be followed from here: {run.failure}")
        # the remaining cost dx . P dx at the beginning and at the end of the predicted run
        P = linear(tracker).gains.P
        first, last = (float(run.errors[k] @ P[k] @ run.errors[k]) for k in (0, -1))
        if not last <= first + GROWTH:
            raise ValueError(
                f"reference {name!r} cannot be followed from here: in the model the weighted "
                f"error dx . P dx grows from {first:.3g} to {last:.3g}; bring the plant closer to "
                f"the start of the reference"
            )
        return tracker
