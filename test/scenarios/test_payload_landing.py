"""A payload is put down on the ground and picked up again by its quadrotors, under LQR."""

import numpy as np
import pytest
from own_scenarios import EXAMPLES

from nh_control import scenarios
from nh_control.runs.experiment import Experiment, Result
from nh_control.scenarios import PlantOptions


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [{}, {"payload_mass": 0.45}], ids=["as known", "heavier"])
def test_a_payload_is_landed_and_picked_up(parameters):
    scenario = scenarios.get(f"{EXAMPLES / 'payload_landing.py'}:PAYLOAD_LANDING")
    error = type(scenario.perturbation)(position=0.1)
    experiment = Experiment.make(
        scenario, options=PlantOptions(parameters=parameters), perturbation=error
    )
    result = Result(experiment, experiment.run(), None, 0.0)
    assert result.loop.failure is None
    ground, heights = result.contacts, result.loop.trajectory.states[:, 2]
    landed = ground.normal[:, 0] > 0.1
    assert 100 < landed.sum() < 500 and heights.min() > 0  # for a while, never below the ground
    assert np.abs(np.diff(landed.astype(int))).sum() <= 6  # not as a ball that bounces
    assert ground.gap[landed, 0] == pytest.approx(1e-6 / ground.normal[landed, 0], rel=1e-6)
    assert heights[-1] == pytest.approx(1.0, abs=0.1)
    assert result.configuration_error()[-1] < (0.2 if parameters else 0.02)
