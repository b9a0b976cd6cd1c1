"""What is judged of a system is judged alike in all units: condition numbers, constraints that
hold, equilibria.
"""

import casadi as ca
import numpy as np
import pytest
from test_tree_units import TREES, H
from test_units import MOTIONS, OTHERS, SI, Units, by

from nh_control.control import equilibrium
from nh_control.discrete.results import Conditioning
from nh_control.geometry.spaces import Rn
from nh_control.integrators import midpoint
from nh_control.mechanics.consistent_states import (
    NotConsistent,
    minimize_potential_energy,
    satisfy_constraints,
)
from nh_control.mechanics.system import System


def require_same(found: dict[str, Conditioning]) -> None:
    numbers = np.array([[c.jacobian, c.mass, c.constraint] for c in found.values()])
    np.testing.assert_allclose(numbers, np.tile(numbers[0], (len(numbers), 1)), rtol=1e-9)


@pytest.mark.parametrize(
    "name, method",
    [
        ("rod", "midpoint"),
        ("sleigh", "nonholonomic_midpoint"),
        pytest.param("cart", "midpoint", marks=pytest.mark.slow),
        pytest.param("sleigh", "energy_collocation_4", marks=pytest.mark.slow),
        pytest.param("top", "lie_midpoint", marks=pytest.mark.slow),
    ],
)
def test_condition_numbers_are_the_same_in_all_units(name, method):
    found = {}
    for told, units in ({"SI": SI} | OTHERS).items():
        motion = MOTIONS[name](units)
        dsys = by(method, units)(motion.system, H * units.s)
        found[told] = dsys.conditioning(dsys.state(motion.q, motion.v), motion.u)
    require_same(found)


@pytest.mark.parametrize("name", ["held", "flying"])
def test_condition_numbers_of_a_tree_are_the_same_in_all_units(name):
    """A floating body with an arm had one of M of 3e2 in m, of 1e8 in km."""
    found = {}
    for told, units in ({"SI": SI} | OTHERS).items():
        it = TREES[name](units)
        of_q, of_d, of_u = map(np.array, (it.of_q, it.of_d, it.of_u))
        dsys = midpoint(it.model.system, H / 4 * units.s)
        x = dsys.state(it.q * of_q, it.v * of_d / units.s)
        found[told] = dsys.conditioning(x, it.u * of_u)
    require_same(found)


@pytest.mark.parametrize("off, kept", [(0.0, True), (1e-9, True), (1e-6, False)])
def test_a_configuration_keeps_its_constraints_in_all_units(off, kept):
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


def test_a_closed_tree_keeps_its_constraints_in_all_units():
    for units in (SI, *OTHERS.values()):
        it = TREES["held"](units)
        dsys, of_q = midpoint(it.model.system, H / 4 * units.s), np.array(it.of_q)
        dsys.state(it.q * of_q, np.zeros(3))
        with pytest.raises(NotConsistent):
            dsys.state((np.array(it.q) + [0.0, 1e-6, 0.0]) * of_q, np.zeros(3))


MICRO = {"pg, um, s": Units(1e-12, 1e-6, 1.0), "t, km, h": Units(1e3, 1e3, 3600.0)}
"""Systems of these sizes, in SI units."""


@pytest.mark.parametrize("name", MICRO)
def test_an_equilibrium_is_found_to_all_digits_in_the_scale_of_its_system(name):
    """A slider on a spring that hangs from a pendulum; without the scale a motion of 1e-10 m or
    1e-10 kg m/s counts as none.
    """
    n = MICRO[name]
    g, energy = 9.81 * n.m / n.s**2, n.newton * n.m

    def lagrangian(q, v):
        kinetic = n.kg * (v[0] ** 2 + (n.m * v[1]) ** 2) / 2
        spring = 3 * n.newton / n.m * (q[0] - 0.4 * n.m * q[1]) ** 2 / 2
        return kinetic - spring - energy * (q[1] ** 2 - q[1]) - n.kg * g * 0.1 * q[0]

    dsys = midpoint(System("slider", Rn("x", "angle"), lagrangian), H * n.s)
    scale = {"x": n.m, "p_x": n.kg * n.m / n.s, "p_angle": energy * n.s}
    x, _ = equilibrium(dsys, [n.m, 0.3, 0, 0], [], scale=scale)
    # 3 (x - 0.4 a) = -0.981,  1.2 (x - 0.4 a) = 2 a - 1
    a = (1 - 0.4 * 0.981) / 2
    np.testing.assert_allclose(x[:2] / [n.m, 1], [0.4 * a - 0.327, a], rtol=1e-9)


@pytest.mark.parametrize("name", MICRO)
def test_constraints_are_met_to_all_digits_in_the_scale_of_their_system(name):
    n = MICRO[name]
    motion = MOTIONS["rod"](n)
    scale = {"x": n.m, "y": n.m}
    q = satisfy_constraints(motion.system, motion.q * [1.3, 1.3, 1.0], scale=scale)
    np.testing.assert_allclose(q / motion.of_q, motion.q / motion.of_q, atol=1e-9)
    rest = minimize_potential_energy(motion.system, q, scale=scale)
    np.testing.assert_allclose(rest / motion.of_q, [0, -0.8, 0], atol=1e-9)


@pytest.mark.parametrize("size", [1e-20, 1.0, 1e20])
def test_rows_of_constraints_may_have_any_units(size):
    rows = ca.DM([[1.0, 0.5, 0.0], [0.0, size, -2 * size]])
    space = Rn("x", "y", "z")
    system = System("rows", space, lambda q, v: ca.sumsqr(v), velocity_constraint=lambda q: rows)
    assert len(system.numeric.mechanics.elimination.dependent) == 2
    with pytest.raises(ValueError, match=r"rows \[1\].*drop dependent rows"):
        System(
            "rows",
            space,
            lambda q, v: ca.sumsqr(v),
            velocity_constraint=lambda q: ca.vertcat(rows[0, :], size * rows[0, :]),
        )


@pytest.mark.parametrize("scale, words", [({"w": 1.0}, "choose of"), ({"x": 0.0}, "positive")])
def test_a_scale_that_is_none_is_refused(scale, words):
    motion = MOTIONS["rod"](SI)
    with pytest.raises(ValueError, match=words):
        satisfy_constraints(motion.system, motion.q, scale=scale)
