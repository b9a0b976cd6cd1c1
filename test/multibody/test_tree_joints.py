"""The short functions of joints that turn against those derived for any joint."""

import numpy as np
import pytest

from nh_control.integrators import midpoint
from nh_control.multibody import Body, Multibody, floating, revolute
from nh_control.multibody.joint_functions import JointFunctions
from nh_control.multibody.joint_types import Floating, Spherical
from nh_control.multibody.rotation_joints import functions_of

SO3_JOINTS = [
    Spherical("cay"),
    Floating(configuration_space="SO3xR3"),
    pytest.param(Spherical(), marks=pytest.mark.slow),
    pytest.param(Floating("cay", configuration_space="SO3xR3"), marks=pytest.mark.slow),
]


@pytest.mark.parametrize("joint", SO3_JOINTS, ids=str)
def test_functions_of_rotation_joints_equal_general_ones(joint):
    """Also without any turn, and for steps of four radians."""
    rng = np.random.default_rng(0)
    for general, short in zip(JointFunctions(joint), functions_of(joint)):
        for rate in (0.0, 1.0, 40.0):
            args = [rng.normal(size=short.size_in(k)[0]) for k in range(short.n_in())]
            args[0][:4] /= np.linalg.norm(args[0][:4])
            if len(args) > 1:
                args[1:3] = rate * args[1] / np.linalg.norm(args[1]), 0.1
            found, expected = short.call(args), general.call(args)
            for one, other in zip(found, expected, strict=True):
                size = 1.0 + np.abs(other).max()
                np.testing.assert_allclose(one, other, rtol=0, atol=1e-13 * size)


def test_momentum_of_a_free_tree_is_kept_to_round_off():
    """A bias of a tenth of a unit in the last place would give 4e-13 here."""
    frames = [
        floating("base", space="SO3xR3"),
        revolute("arm", "base", "x", position=(0.1, 0.2, 0.3)),
    ]
    bodies = [Body(name, 1.0, (0.1, 0.2, -0.1), (0.1, 0.12, 0.15)) for name in ("base", "arm")]
    dsys = midpoint(Multibody("free", frames, bodies, gravity=(0, 0, 0)).system, 0.01)
    x = dsys.state(dsys.system.space.origin, [1.0, -0.6, 0.8, 0.3, 0.9, -0.4, 0.7])
    before, after = (state[11:14] for state in dsys.simulate(x, 20_000).states[[0, -1]])
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-13 * np.abs(before).max())
