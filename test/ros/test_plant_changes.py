"""Changes of a plant while it runs, without nodes."""

import types

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.discrete.results import StepFailed
from nh_control.loop.backup_tracker import BackupTracker
from nh_control.loop.simulated_plant import SimulatedPlant
from nh_control.ros.runtime.plant_changes import PlantChanges
from nh_control.ros.runtime.selected_model import Model
from nh_control.scenarios import PlantOptions

SCENARIO = scenarios.get("snakeboard")


def setup(backup):
    options = PlantOptions()
    return types.SimpleNamespace(options=options, always=(), last_step=len, backup=backup)


def test_another_reference_gives_the_next_run_its_start_and_its_length():
    dsys, planned = SCENARIO.model(), []
    model = Model(SCENARIO, dsys, SCENARIO.reference(dsys))
    plant = SimulatedPlant(dsys, model.reference.states[0])
    loop = types.SimpleNamespace(plant=plant, plan=lambda *run: planned.append(run))
    backup = BackupTracker(SCENARIO, dsys, model.reference)
    changes = PlantChanges(model, loop, setup(backup), ["perturb.position"]).changes
    (start,) = [change for change in changes if "reference" in change.names]
    assert set(start.names) == {"reference", "perturb.position"}
    do = start.prepare({"reference": "forward", "perturb.position": 0.3})
    assert not planned
    do()
    ((initial, last_step),) = planned
    other = SCENARIO.reference(dsys, "forward")
    assert last_step == len(other) != len(model.reference)
    backup.place(0, 0)
    assert backup.prepare().reference.name == "forward"
    odd = dsys.local(other.states[0], initial)
    assert np.abs(odd).max() == pytest.approx(0.3)
    with pytest.raises(ValueError, match="choose one of: parking, forward"):
        start.prepare({"reference": "flying", "perturb.position": 0.0})


def test_a_plant_that_cannot_step_with_a_new_disturbance_is_refused():
    """Before anything changes: a plant that runs would fail in its next step."""
    dsys = SCENARIO.model()
    model = Model(SCENARIO, dsys, SCENARIO.reference(dsys))
    plant = SimulatedPlant(dsys, model.reference.states[0])
    loop, backup = types.SimpleNamespace(plant=plant), BackupTracker(SCENARIO, dsys, None)
    changes = PlantChanges(model, loop, setup(backup), []).changes
    (disturb,) = [change for change in changes if "disturb" in change.names]
    push = {"disturb": ["base_link:constant:1,0,0"]}
    assert disturb.prepare(push).func == plant.change_disturbance
    fast = np.zeros(dsys.system.space.nw) + 1e200  # from here no step is possible
    plant.place(dsys.state(dsys.configuration(plant.state), fast), 0)
    with pytest.raises((StepFailed, ValueError), match="not finite"):
        disturb.prepare(push)
    assert plant.dsys is dsys
