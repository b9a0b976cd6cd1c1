"""What is judged of a system is judged alike in all units: condition numbers, constraints that
hold, equilibria.
"""

import numpy as np
import pytest
from interpreting import NATIVELY
from test_tree_units import TREES, H
from test_units import MOTIONS, OTHERS, SI, Units, by

from nh_control.discrete.results import Conditioning
from nh_control.integrators import INTEGRATORS, midpoint
from nh_control.mechanics.constraints import NotConsistent
from nh_control.systems import SnakeboardParameters, snakeboard
from nh_control.systems.chaplygin_sleigh import ChaplyginSleighParameters, chaplygin_sleigh


def require_same(found: dict[str, Conditioning]) -> None:
    numbers = np.array([[c.jacobian, c.mass, c.constraint] for c in found.values()])
    np.testing.assert_allclose(numbers, np.tile(numbers[0], (len(numbers), 1)), rtol=1e-9)


@pytest.mark.parametrize(
    "name, method",
    [
        ("rod", "midpoint"),
        pytest.param("cart", "midpoint", marks=pytest.mark.slow),
        pytest.param("sleigh", "energy_collocation_4", marks=pytest.mark.slow),
        pytest.param("top", "lie_midpoint", marks=pytest.mark.slow),
    ],
)
def test_condition_numbers_are_the_same_in_all_units(name, method, interpreted):
    found = {}
    for told, units in ({"SI": SI} | OTHERS).items():
        motion = MOTIONS[name](units)
        dsys = by(method, units)(motion.system, H * units.s)
        found[told] = dsys.conditioning(dsys.state(motion.q, motion.v), motion.u)
    require_same(found)


@NATIVELY
@pytest.mark.parametrize("name", ["held", "flying"])
def test_condition_numbers_of_a_tree_are_the_same_in_all_units(name, interpreted):
    """A floating body with an arm had one of M of 3e2 in m, of 1e8 in km."""
    found = {}
    for told, units in ({"SI": SI} | OTHERS).items():
        it = TREES[name](units)
        of_q, of_d, of_u = map(np.array, (it.of_q, it.of_d, it.of_u))
        dsys = midpoint(it.model.system, H / 4 * units.s)
        x = dsys.state(it.q * of_q, it.v * of_d / units.s)
        found[told] = dsys.conditioning(x, it.u * of_u)
    require_same(found)


@pytest.mark.native_twin_slow
@pytest.mark.parametrize("name", ["snakeboard", pytest.param("sleigh", marks=pytest.mark.slow)])
def test_condition_numbers_of_rolling_bodies_are_those_of_si(name, interpreted):
    found = {}
    for told, n in ({"SI": SI} | OTHERS).items():
        inertia = n.kg * n.m**2
        if name == "sleigh":
            system = chaplygin_sleigh(ChaplyginSleighParameters(m=n.kg, I=inertia, a=n.m))
            q, v = [0.4, 0.3 * n.m, 0.0], [0.9, 0.7 * n.m, 0.9 * n.m]
        else:
            own = SnakeboardParameters(m=n.kg, l=2 * n.m, I=inertia, J=1.2 * inertia)
            system = snakeboard(own)
            q, v = [0.2, 0.3, 0.4, 0.1 * n.m, 0.0], [0.3, -0.2, 0.1, 0.5 * n.m, 0.0]
        dsys = INTEGRATORS["nonholonomic_midpoint"].make(system, 0.02 * n.s)
        found[told] = dsys.conditioning(dsys.state(q, np.array(v) / n.s), np.zeros(dsys.nu))
    require_same(found)


@pytest.mark.native_twin_slow
@pytest.mark.parametrize("off, kept", [(0.0, True), (1e-9, True), (1e-6, False)])
def test_a_configuration_keeps_its_constraints_in_all_units(off, kept, interpreted):
    """One of 1 um on a rod of 1 um was taken for one that keeps it; of 1 km, one of few digits for
    one that does not.
    """
    for units in (SI, *OTHERS.values(), Units(1.0, 1e-6, 1.0)):
        motion = MOTIONS["rod"](units)
        dsys, q = midpoint(motion.system, H * units.s), motion.q.copy()
        q[:2] *= 1 + off
        if kept:
            dsys.state(q, motion.v)
            continue
        with pytest.raises(NotConsistent):
            dsys.state(q, motion.v)


def test_a_closed_tree_keeps_its_constraints_in_all_units(interpreted):
    for units in (SI, *OTHERS.values()):
        it = TREES["held"](units)
        dsys, of_q = midpoint(it.model.system, H / 4 * units.s), np.array(it.of_q)
        dsys.state(it.q * of_q, np.zeros(3))
        with pytest.raises(NotConsistent):
            dsys.state((np.array(it.q) + [0.0, 1e-6, 0.0]) * of_q, np.zeros(3))
