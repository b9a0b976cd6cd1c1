"""The short functions of joints that turn against those derived for any joint."""

import numpy as np
import pytest

from nh_control.multibody.frames import Floating, Spherical
from nh_control.multibody.tree_joints import JointFunctions
from nh_control.multibody.tree_turning import functions_of

SO3_JOINTS = [
    Spherical(),
    Spherical("cay"),
    Floating(configuration_space="SO3xR3"),
    Floating("cay", configuration_space="SO3xR3"),
]


@pytest.mark.parametrize("joint", SO3_JOINTS, ids=str)
@pytest.mark.parametrize("rate", [0.0, 1.0, 40.0])
def test_short_functions_equal_general_ones(joint, rate):
    """Also without any turn, and for steps of four radians or so."""
    rng = np.random.default_rng(int(rate))
    for general, short in zip(JointFunctions(joint), functions_of(joint)):
        args = [rng.normal(size=short.size_in(k)[0]) for k in range(short.n_in())]
        args[0][:4] /= np.linalg.norm(args[0][:4])
        if len(args) > 1:
            args[1:3] = rate * args[1] / np.linalg.norm(args[1]), 0.1
        found, expected = short.call(args), general.call(args)
        for one, other in zip(found, expected, strict=True):
            size = 1.0 + np.abs(other).max()
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-13 * size)
