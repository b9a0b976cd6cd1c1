"""Parameters of a tracker that may change while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nh_control.control.trackers import Tracker, linear
from nh_control.loop.reference_sequence import ReferenceLeg, ReferenceSequence
from nh_control.mechanics.parameters import Declaration
from nh_control.ros.runtime.declared import WEIGHTS
from nh_control.ros.runtime.dynamic_parameters import Change
from nh_control.ros.runtime.parameters import Parameters
from nh_control.ros.runtime.selected_model import Model
from nh_control.runs.simulation import closed_loop

SMALLEST = 1e-12
"""Smallest weight of a quantity with a weight. Inputs need a weight, and a weight of 0 would erase
the other entries of its row, which could not be restored.
"""
GROWTH = 1e-6
"""Largest ratio of the remaining cost, `dx . P dx`, at the end of a reference and at its start,
when both are small: along a linear model it never grows.
"""
Prepared = Callable[[], None]


class TrackerChanges:
    """Changes of the weights of a sequence's trackers, `weights.<coordinate or input>`, and of the
    reference, at the next step. Gains are computed in the thread that sets the parameters, while
    states are answered.

    Another reference begins at the next step, or with the run if it is still at its first state,
    and again with every new run; `followed(leg)` is then called. A reference is refused if the
    model does not follow it from `present()`, the last state (nx), if there is one.
    """

    def __init__(
        self,
        model: Model,
        sequence: ReferenceSequence,
        parameters: Parameters,
        present: Callable[[], np.ndarray | None],
        followed: Callable[[ReferenceLeg], None],
    ):
        self._model, self._sequence, dsys = model, sequence, sequence.dsys
        self._present, self._followed = present, followed
        self._coordinates, self._inputs = linear(sequence.trackers[0]).weighted, dsys.inputs
        names = *self._coordinates, *self._inputs
        weights = dict(zip(names, np.concatenate(linear(sequence.trackers[0]).diagonal_weights)))
        for name, weight in weights.items():
            least = SMALLEST if weight > 0 else 0.0
            text = f"LQR weight of {name}, in local coordinates"
            parameters.declare(
                Declaration(
                    WEIGHTS + name,
                    float(weight),
                    description=text,
                    at_least=least,
                    changeable=True,
                )
            )
        given = {WEIGHTS + name: parameters[WEIGHTS + name] for name in names}
        self._reference = model.reference.name
        self._weights = {WEIGHTS + name: float(weight) for name, weight in weights.items()}
        self._prepare({"reference": self._reference, **given})()
        self.changes = (Change(("reference", *given), self._prepare),)

    def _prepare(self, values: Mapping[str, Any]) -> Prepared:
        """Prepare other weights and another reference together."""
        weights = {name: values[name] for name in self._weights}
        name = values["reference"] or next(iter(self._model.scenario.references))
        others = self._weighted(weights) if weights != self._weights else []
        first = self._sequence.trackers[0]
        wanted = (
            self._along(name, next((new for old, new in others if old is first), first))
            if name != self._reference
            else None
        )

        def change() -> None:
            self._sequence.exchange(others)
            self._weights, self._reference = weights, name
            if wanted is not None:
                make = self._model.scenario.make_guidance
                guidance = make(self._sequence.dsys, wanted.reference)
                self._followed(self._sequence.begin(wanted, guidance))

        return change

    def _weighted(self, values: Mapping[str, float]) -> list[tuple[Tracker, Tracker]]:
        """Pairs of present and new trackers."""
        state = {i: values[WEIGHTS + name] for i, name in enumerate(self._coordinates)}
        inputs = {i: values[WEIGHTS + name] for i, name in enumerate(self._inputs)}
        old = {id(tracker): tracker for tracker in self._sequence.trackers}.values()
        return [(tracker, tracker.with_weights(state, inputs)) for tracker in old]

    def _along(self, name: str, tracker: Tracker) -> Tracker:
        """The tracker along the reference of this name; raises ValueError or StepFailed if it is
        unknown, is no motion of the model, or cannot be reached from the present state.
        """
        tracker = tracker.with_reference(self._model.scenario.reference(self._sequence.dsys, name))
        x = self._present()
        if x is None:
            return tracker
        run = closed_loop(self._sequence.dsys, linear(tracker), x, len(tracker.reference))
        if run.failure is not None:
            raise ValueError(f"reference {name!r} cannot be followed from here: {run.failure}")
        P = linear(tracker).gains.P
        first, last = (float(run.errors[k] @ P[k] @ run.errors[k]) for k in (0, -1))
        if not last <= first + GROWTH:
            raise ValueError(
                f"reference {name!r} cannot be followed from here: by the model the weighted "
                f"error dx . P dx grows from {first:.3g} to {last:.3g}; bring the plant closer to "
                f"its start"
            )
        return tracker
