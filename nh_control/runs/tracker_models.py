"""One plant, tracked by LQR on models of several integrators, to compare their closed loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from nh_control.control import LqrTracker, lqr
from nh_control.discrete.plant_steps import convert
from nh_control.discrete.system import DiscreteSystem
from nh_control.runs.simulation import closed_loop
from nh_control.scenarios import PlantOptions, Scenario


@dataclass(frozen=True)
class TrackerModel:
    """Result of a tracker on one integrator's model. The errors of the configuration are the
    largest ones in the local coordinates that have a weight: at the start, over the run, at its
    end, and their `rms` over the second half of the run. `saturated` is the number of saturated
    steps, and `eigenvalues` are those of the model's closed loop over the middle third of the
    reference.
    """

    integrator: str
    start: float
    largest: float
    final: float
    rms: float
    saturated: int
    eigenvalues: np.ndarray

    def difference(self, other: TrackerModel) -> float:
        """Largest distance between the eigenvalues of both, matched one to one; a model with more
        memory has further ones.
        """
        few, many = sorted((self.eigenvalues, other.eigenvalues), key=len)
        distances = np.abs(few[:, None] - many[None, :])
        return float(distances[linear_sum_assignment(distances)].max())


def track(
    scenario: Scenario,
    integrators: Sequence[str],
    reference: str = "",
    options: PlantOptions = PlantOptions(),
    step_s: float = 0.0,
) -> list[TrackerModel]:
    """Closed loops of one plant, by default the scenario's own integrator, with trackers on models
    by `integrators`, from the scenario's initial error.

    Raises UnknownName, ValueError, and StepFailed if a closed loop leaves the model's domain.
    """
    own = scenario.model(step_s=step_s)
    plant = scenario.plant(own, options)
    return [
        _one(scenario, name, reference, plant, options.substeps, step_s) for name in integrators
    ]


def _one(
    scenario: Scenario,
    integrator: str,
    reference: str,
    plant: DiscreteSystem,
    substeps: int,
    step_s: float,
) -> TrackerModel:
    model = scenario.model(integrator, step_s)
    target = scenario.reference(model, reference)
    tracker = scenario.tracker(model, target)
    x0 = scenario.perturb(model, target.states[0], scenario.perturbation)
    run = closed_loop(plant, tracker, convert(x0, model, plant), len(target), substeps)
    weighted = scenario.tracked(model.system.space)
    errors = np.abs(run.errors[:, : model.system.space.nv][:, weighted]).max(axis=1)
    return TrackerModel(
        integrator=integrator,
        start=float(errors[0]),
        largest=float(errors.max()),
        final=float(errors[-1]),
        rms=float(np.sqrt(np.mean(errors[len(errors) // 2 :] ** 2))),
        saturated=int(run.saturated.any(axis=1).sum()),
        eigenvalues=_closed_loop_eigenvalues(tracker),
    )


def _closed_loop_eigenvalues(tracker: LqrTracker) -> np.ndarray:
    A, B = lqr.linearize_along(tracker.dsys, tracker.reference)
    steps, K = len(A), tracker.gains.K
    transition = np.eye(tracker.dsys.ndx)
    for k in range(steps // 3, 2 * steps // 3):
        transition = (A[k] - B[k] @ K[k]) @ transition
    return np.linalg.eigvals(transition)
