"""A plant that goes on with its own copy of the tracker when no other answers."""

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.loop.backup_tracker import BackupTracker
from nh_control.loop.plant_faults import PlantFaults
from nh_control.loop.simulated_plant import SimulatedPlant
from nh_control.scenarios import PlantOptions, fault
from nh_control.scenarios.quadrotor_payload import PayloadPerturbation

PAYLOAD = scenarios.get("quadrotor_payload")
LOST, STEPS = 100, 400
"""The step after which nothing answers, and the last one (4 s)."""


@pytest.fixture(scope="module")
def model():
    return PAYLOAD.model()


def flown(model, fallback, faults=()):
    """The payload's largest distance from its reference after the tracker was lost, in m."""
    reference = PAYLOAD.reference(model, "line")
    tracker = PAYLOAD.tracker(model, reference)
    options = PlantOptions(parameters={"payload_mass": 0.5})
    start = PAYLOAD.perturb(model, reference.states[0], PayloadPerturbation(position=0.1))
    dsys = PAYLOAD.plant(model, options)
    plant = SimulatedPlant(dsys, start, faults=PlantFaults(model, tuple(map(fault.parse, faults))))
    backup, far = BackupTracker(PAYLOAD, model, reference), 0.0
    for k in range(STEPS):
        if k < LOST:
            u = tracker.command(k, plant.state).u
        elif fallback == "tracker":
            u = backup.command(plant)
        plant.advance(u)
        if k > LOST:
            target = model.configuration(tracker.target(k + 1))[:3]
            far = max(far, np.linalg.norm(plant.configuration[:3] - target))
    return far


def test_it_keeps_a_payload_in_the_air_which_falls_under_the_last_command(model):
    """Noise of the sensors reaches it, and measurements that are lost are answered by the last."""
    clean = flown(model, "tracker")
    assert clean < 0.1 and flown(model, "hold") > 1.0
    noisy = flown(model, "tracker", ("noise=0.002,seed=1", "dropout=0.2"))
    assert noisy < 0.2 and noisy != clean


def test_it_follows_another_reference_from_the_next_start_on(model):
    hover, line = (PAYLOAD.reference(model, name) for name in ("hover", "line"))
    backup = BackupTracker(PAYLOAD, model, hover)
    first = backup.prepare()
    assert first is backup.prepare() and first.reference is hover
    backup.plan(line)
    assert backup.prepare() is first
    backup.place(19, 20)
    assert backup.prepare() is first
    backup.place(20, 20)
    assert backup.prepare().reference is line
    plant = SimulatedPlant(model, line.states[30])
    plant.place(line.states[30], 50)
    np.testing.assert_allclose(backup.command(plant), line.inputs[30], atol=1e-6)
