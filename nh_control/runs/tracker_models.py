"""Compares closed loops of one plant, tracked by LQR with models that use different
integrators.
"""

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
    """The result of a tracker whose model uses one integrator. The configuration errors are the
    largest errors in the weighted local coordinates at the beginning, over the whole run, and at
    the end; `rms` covers the second half of the run. `saturated` is the number of saturated steps.
    `eigenvalues` are the eigenvalues of the model's closed loop over the middle third of the
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
        """Return the largest distance between the eigenvalues of both models, matched one to one.
        The additional eigenvalues of a model with more memory are ignored.
        """
        few, many = sorted((self.eigenvalues, other.eigenvalues), key=len)
        # the assignment with the smallest sum of distances
        distances = np.abs(few[:, None] - many[None, :])
        return float(distances[linear_sum_assignment(distances)].max())


def track(
    scenario: Scenario,
    integrators: Sequence[str],
    reference: str = "",
    options: PlantOptions = PlantOptions(),
    step_s: float = 0.0,
) -> list[TrackerModel]:
    """Run closed loops of one plant, which by default uses the scenario's integrator, with
    trackers whose models use the given `integrators`. Every run starts with the scenario's initial
    error.

    Raises UnknownName, ValueError, and StepFailed if a closed loop leaves the model's domain.
    """
    plant = scenario.plant(scenario.model(step_s=step_s), options)
    return [
        _track_one(scenario, name, reference, plant, options.substeps, step_s)
        for name in integrators
    ]


def _track_one(
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
    # the same initial error for every model
    x0 = scenario.perturb(model, target.states[0], scenario.perturbation)
    run = closed_loop(plant, tracker, convert(x0, model, plant), len(target), substeps)
    # coordinates without weight are not tracked
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
    # product of A_k - B_k K_k over the middle third, away from the effects of both ends
    transition = np.eye(tracker.dsys.ndx)
    for k in range(steps // 3, 2 * steps // 3):
        transition = (A[k] - B[k] @ K[k]) @ transition
    return np.linalg.eigvals(transition)
