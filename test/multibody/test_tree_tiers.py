"""The kernel of trees with the functions of joints and contacts that are compiled, and with those
of CasADi's virtual machine: the same bits.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from random_trees import JOINTS, random_tree
from tiers import needs_compiler, with_compiler
from tree_models import constrained_tree, parametrized

import nh_control as nh
from nh_control.multibody import Body, Multibody, Point, planar, revolute
from nh_control.multibody.tree_engine import TreeEngine


def jointed(kinds):
    """A tree whose numbers are all parameters, and a configuration."""
    rng = np.random.default_rng(sum(kinds))
    model = parametrized(random_tree(kinds, rng))
    return model, model.space.retract(model.space.origin, rng.normal(size=model.space.nv))


def closed():
    """A tree with a floating and a ball joint under a string and on a plane."""
    return constrained_tree([5, 3], ["string", "plane"], np.random.default_rng(2))


def sled():
    """A body in a plane on two balls, with an arm."""
    ground = nh.Plane(normal_axis="y")
    balls = [
        nh.Contact(Point("sled", at), nh.Sphere(0.05), 0.3, ground=ground, name=name)
        for name, at in (("front", (0.2, -0.1, 0)), ("back", (-0.2, -0.1, 0)))
    ]
    frames = [planar("sled"), revolute("arm", "sled", position=(0.2, 0, 0))]
    slab = (0.002, 0.003, 0.0025)
    bodies = [Body("sled", 1.0, inertia=slab), Body("arm", 0.3, (0.15, 0, 0), slab)]
    model = Multibody("sled", frames, bodies, contacts=balls, gravity=(0, -9.81, 0))
    return model, np.array([0.0, 0.0, 0.151, 0.3])


DEFAULT = 2, 3
CASES = [
    *(
        pytest.param(
            lambda kind=kind: jointed([kind, 0]),
            id=f"joint {kind}",
            marks=() if kind in DEFAULT else pytest.mark.slow,
        )
        for kind in range(2, len(JOINTS))
    ),
    pytest.param(lambda: jointed([5, 3, 2, 3]), id="joints", marks=pytest.mark.slow),
    pytest.param(closed, id="constraints", marks=pytest.mark.slow),
    pytest.param(sled, id="contacts"),
]


def numbers(make):
    """All that the kernel computes of a motion, as bytes."""
    model, q = make()
    dsys = nh.midpoint(model.system, 0.01).prepare()
    assert isinstance(dsys.engine, TreeEngine)
    rng = np.random.default_rng(1)
    x = dsys.measured_state(q, rng.normal(size=dsys.system.space.nw))
    u = rng.normal(size=dsys.nu)
    states = dsys.simulate(x, np.tile(u, (3, 1))).states
    at = dsys.linearize(x, u, dsys.parameter_names if model.parameters else ())
    arrays = states, dsys.energy(states), dsys.velocity(states[-1]), at.A, at.B, at.P
    return [np.asarray(array).tobytes() for array in arrays]


@needs_compiler()
@pytest.mark.parametrize("make", CASES)
def test_trees_have_the_same_bits_in_both_tiers(make):
    virtual = numbers(make)
    with with_compiler():
        assert numbers(make) == virtual


def test_threads_have_functions_of_their_own():
    """The virtual machine's arrays belong to one thread, and native loops run side by side."""
    model, q = jointed([3, 5])
    dsys = nh.midpoint(model.system, 0.002)
    starts = [dsys.state(q, v) for v in np.random.default_rng(0).normal(size=(4, 9))]

    def end(x):
        return dsys.simulate(x, np.zeros((300, dsys.nu))).states[-1]

    alone = [end(x) for x in starts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(end, starts))
    np.testing.assert_array_equal(together, alone)
