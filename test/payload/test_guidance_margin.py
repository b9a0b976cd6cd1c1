"""A goal in flight is reached as fast as the margin of the inputs allows, where the acceleration
does not bind.
"""

import numpy as np
import pytest
from test_payload_guidance import guidance, model


@pytest.mark.slow
def test_a_goal_uses_the_inputs_up_to_the_margin():
    lower, upper = model(2).system.input_bounds.T
    lengths = []
    for margin in (0.39, 0.42):
        new = guidance(acceleration=1e3, margin=margin).to_goal(480, [4.0, 0.0, 1.0]).reference
        used = (np.abs(2 * new.inputs - lower - upper) / (upper - lower)).max()
        assert 0.95 * margin < used <= 1.005 * margin
        lengths.append(len(new))
    assert lengths[1] < 0.9 * lengths[0]
