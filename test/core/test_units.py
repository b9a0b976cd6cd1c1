"""The same system in other units takes the same steps and is judged alike by all solvers."""

from dataclasses import dataclass
from functools import partial

import casadi as ca
import numpy as np
import pytest

from nh_control.control import equilibrium
from nh_control.geometry.rotations import SE3
from nh_control.geometry.spaces import Rn
from nh_control.integrators import INTEGRATORS, midpoint
from nh_control.integrators.index_one import RATE, index_one
from nh_control.mechanics.consistent_states import (
    NotConsistent,
    consistent_velocity,
    minimize_potential_energy,
    satisfy_constraints,
)
from nh_control.mechanics.system import System
from nh_control.multibody import (
    Body,
    Damper,
    Distance,
    JointDamper,
    JointInput,
    JointSpring,
    Multibody,
    Point,
    Spring,
    floating,
    prismatic,
    revolute,
    spherical,
)
from nh_control.multibody.tree_engine import TreeEngine
from nh_control.systems import SnakeboardParameters, snakeboard
from nh_control.systems.chaplygin_sleigh import ChaplyginSleighParameters, chaplygin_sleigh

H, STEPS = 0.1, 3


@dataclass(frozen=True)
class Units:
    """How many of the new units are in 1 kg, 1 m and 1 s."""

    kg: float
    m: float
    s: float

    @property
    def newton(self) -> float:
        return self.kg * self.m / self.s**2


SI = Units(1.0, 1.0, 1.0)
OTHERS = {
    "mg, mm, ms": Units(1e6, 1e3, 1e3),
    "t, km, h": Units(1e-3, 1e-3, 1 / 3600),
    "ug, um, s": Units(1e9, 1e6, 1.0),
    "kg of 1 mg, m of 1 mm": Units(1e-6, 1e-3, 1.0),
}
ALL = {"SI": SI} | OTHERS
FEW = {name: ALL[name] for name in ("SI", "mg, mm, ms", "t, km, h")}
EACH = [FEW, pytest.param(ALL, marks=pytest.mark.slow)]
"""Small and large units in the default tests, all in the slow ones."""


class Motion:
    """A system in some units and where it starts, in these units: (q, v, u) in SI, and how many
    units are in one of SI, number by number of configuration, its changes and inputs.
    """

    def __init__(self, units, system, phase, of_q, of_d=None, of_u=()):
        self.units, self.system = units, system
        self.of_q, self.of_u = np.array(of_q), np.array(of_u)
        self.of_d = self.of_q if of_d is None else np.array(of_d)
        q, v, u = map(np.array, phase)
        self.q, self.v, self.u = q * self.of_q, v * self.of_d / units.s, u * self.of_u

    def discrete(self, method="midpoint", h=H):
        """By a method, whose rates are numbers in units of time."""
        make = INTEGRATORS[method].make
        if method == "rkmk4_baumgarte":
            rate = RATE / self.units.s
            make = partial(index_one, baumgarte=(rate, rate))
        return make(self.system, h * self.units.s)


def sleigh(n: Units) -> Motion:
    system = chaplygin_sleigh(ChaplyginSleighParameters(m=n.kg, I=n.kg * n.m**2, a=n.m))
    phase = [0.4, 0.3, -0.2], [0.9, 0.7, 0.9], [0.5, -0.3]
    return Motion(n, system, phase, [1, n.m, n.m], of_u=[n.newton * n.m, n.newton])


def cart(n: Units) -> Motion:
    """A pendulum on a cart: a length and an angle."""
    m, length, g = n.kg, 0.8 * n.m, 9.81 * n.m / n.s**2

    def lagrangian(q, v):
        x, y = v[0] + length * ca.cos(q[1]) * v[1], length * ca.sin(q[1]) * v[1]
        return m * (2 * v[0] ** 2 + x**2 + y**2) / 2 + m * g * length * ca.cos(q[1])

    return Motion(n, System("cart", Rn("x", "angle"), lagrangian), ([0.2, 0.7], [0.5, -1.1], []),
                  [n.m, 1])  # fmt: skip


def rod(n: Units) -> Motion:
    """A weight at the end of a rod, by its place, and a wheel that it drives."""
    m, length, g, stiff = n.kg, 0.8 * n.m, 9.81 * n.m / n.s**2, n.newton * n.m

    def lagrangian(q, v):
        spring = stiff * (q[2] - q[0] / length) ** 2
        spin = m * length**2 * v[2] ** 2
        return (m * ca.sumsqr(v[:2]) + spin - spring) / 2 - m * g * q[1]

    hold = lambda q: ca.sumsqr(q[:2]) - length**2
    system = System("rod", Rn("x", "y", "angle"), lagrangian, holonomic_constraint=hold)
    q = [0.8 * np.sin(0.6), -0.8 * np.cos(0.6), 0.1]
    return Motion(n, system, (q, [np.cos(0.6), np.sin(0.6), 0.4], []), [n.m, n.m, 1])


FIRST, SECOND, END = np.array([[0.3, 0.1, -0.2], [0.4, -0.2, 0.1], [-0.1, 0.5, 0.3]])


def tree(n: Units, frames, *elements, inputs, constraints=()) -> System:
    inertia = n.kg * n.m**2 * np.array([0.03, 0.05, 0.04])
    bodies = [
        Body(frame.name, (1 + k / 2) * n.kg, n.m * SECOND / 4, inertia)
        for k, frame in enumerate(frames)
    ]
    gravity = (0.0, 0.0, -9.81 * n.m / n.s**2)
    inputs = [JointInput(name) for name in inputs]
    return Multibody("tree", frames, bodies, elements, inputs, constraints, gravity=gravity).system


def chain(n: Units, held: bool) -> Motion:
    """Two joints that turn and one between them that slides, with springs and dampers. Its end
    hangs by a spring and a damper, or by a rod.
    """
    torque, stiff = n.newton * n.m, n.newton / n.m
    frames = [
        revolute("a", "world", "y"),
        prismatic("b", "a", (1.0, 0.5, 0.2), position=n.m * FIRST),
        revolute("c", "b", (0.2, 1.0, 0.3), position=n.m * SECOND),
    ]
    end, at = Point("c", n.m * END), Point("world", -n.m * END)
    elements = [
        *(JointSpring("a", 3 * torque, 0.2), JointDamper("a", 0.3 * torque * n.s)),
        *(JointSpring("b", 40 * stiff, 0.1 * n.m), JointDamper("b", 0.5 * stiff * n.s)),
    ]
    # as long as the phase below has it
    rods = [Distance("rod", end, at, 1.1306006030865072 * n.m)] if held else []
    if not held:
        elements += [Spring(end, at, 5 * stiff, 0.4 * n.m), Damper(end, at, 0.7 * stiff * n.s)]
    system = tree(n, frames, *elements, inputs=("a", "b"), constraints=rods)
    phase = [0.4, 0.1, -0.6], [0.7, -0.4, 1.1], [0.5, -0.3]
    return Motion(n, system, phase, [1.0, n.m, 1.0], of_u=[torque, n.newton])


def flying(n: Units) -> Motion:
    """A body free on SE(3) with an arm on a ball joint."""
    frames = [floating("base"), spherical("arm", "base", position=n.m * SECOND)]
    frames.append(prismatic("rod", "arm", "x", position=n.m * END))
    system = tree(n, frames, JointSpring("rod", 30 * n.newton / n.m), inputs=("rod",))
    q = [0.5, -0.5, 0.5, 0.5, 0.3, -0.2, 0.9, 0.8, 0.0, 0.6, 0.0, 0.1]
    v = [0.6, -0.3, 0.4, 0.8, -0.2, 0.3, -0.5, 0.9, 0.2, 0.1]
    of_q = [1.0] * 4 + [n.m] * 3 + [1.0] * 4 + [n.m]
    of_d = [1.0] * 3 + [n.m] * 3 + [1.0] * 3 + [n.m]
    return Motion(n, system, (q, v, [0.4]), of_q, of_d, [n.newton])


MOTIONS = {
    "sleigh": sleigh,
    "cart": cart,
    "rod": rod,
    "tied": lambda n: chain(n, held=False),
    "held": lambda n: chain(n, held=True),
    "flying": flying,
}


def numbers(name: str, method: str, units: Units) -> tuple[np.ndarray, np.ndarray]:
    """Configuration and velocity after some steps, and A and B there of a tree, in SI."""
    it = MOTIONS[name](units)
    is_tree = name in ("tied", "held", "flying")
    dsys = it.discrete(method, H / 4 if is_tree else H)
    assert isinstance(dsys.engine, TreeEngine) == is_tree
    x = dsys.state(it.q, it.v)
    for _ in range(STEPS):
        x = dsys.step(x, it.u)
    phase = dsys.configuration(x) / it.of_q, dsys.velocity(x) * units.s / it.of_d
    lin, of_rho = dsys.linearize(x, it.u), units.kg * units.m**2 / units.s / it.of_d
    of_dx = np.concatenate([it.of_d, of_rho])
    slopes = np.hstack([lin.A * of_dx, lin.B * it.of_u]) / of_dx[:, None] if is_tree else 0.0
    return np.concatenate(phase), np.asarray(slopes)


FAR = {"units of 1e-25 s": Units(1.0, 1.0, 1e25), "units of 1e25 s": Units(1.0, 1.0, 1e-25)}


@pytest.mark.parametrize("several", EACH, ids=len)
@pytest.mark.parametrize(
    "name, method",
    [
        ("cart", "gonzalez_kinetic"),
        ("rod", "midpoint"),
        ("rod", "rkmk4_baumgarte"),
        *((name, "midpoint") for name in ("tied", "held", "flying")),
    ],
)
def test_the_same_system_in_other_units_takes_the_same_steps(name, method, several):
    """The laws say so of all methods; here with multipliers, rates and norms that have units, and
    of trees. A state's velocity was that of a step of 1e-30 s, however short the steps.
    """
    phase, slopes = numbers(name, method, SI)
    for told, units in (several | (FAR if name == "tied" or several is ALL else {})).items():
        found, others = numbers(name, method, units)
        np.testing.assert_allclose(found, phase, rtol=1e-12, atol=1e-12, err_msg=told)
        tolerance = 1e-12 * np.abs(slopes).max()
        np.testing.assert_allclose(others, slopes, rtol=0, atol=tolerance, err_msg=told)


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9])
def test_a_body_falls_without_turning(scale):
    """The slopes of `v x p` by v cancel: what is left of it is the round-off of terms that these
    slopes do not tell of.
    """
    body = System(
        "body",
        SE3(),
        lambda q, v: (
            scale * (ca.dot(ca.DM([1.0, 2.0, 3.0]), v[:3] ** 2) + ca.sumsqr(v[3:]) - 19.62 * q[6])
        ),
    )
    dsys, rng = midpoint(body, 0.05), np.random.default_rng(0)
    for k in range(5):
        q = body.space.retract(body.space.origin, rng.normal(size=6))
        x = dsys.state(q, (k % 2) * np.concatenate([np.zeros(3), rng.normal(size=3)]))
        run = dsys.simulate(x, 3)
        assert np.abs(dsys.velocity(run.states[-1])[:3]).max() <= 1e-14
        assert max(dsys.newton_iterations(x) for x in run.states) <= 5


@pytest.mark.parametrize("units", ["t, km, h", "kg of 1 mg, m of 1 mm"])
def test_the_momentum_of_a_cyclic_coordinate_is_no_row_of_its_own_round_off(units):
    """Its rate is zero, but for what the elimination left, and the only term of its row: steps
    took 24 iterations, to the smallest numbers that there are, or found no end.
    """
    motion = cart(OTHERS[units])
    dsys = motion.discrete("energy_collocation_4")
    x = dsys.state(motion.q, motion.v)
    for _ in range(STEPS):
        assert dsys.newton_iterations(x) <= 8
        x = dsys.step(x)


@dataclass(frozen=True)
class Trap:
    size: float = 1.0


TRAP = System(
    "trap",
    Rn("x", "y"),
    lambda q, v, p: (
        ca.sumsqr(v) / 2 + p.size**3 / ca.sqrt(p.size**2 + ca.dot(ca.DM([1, 2]), q**2))
    ),
    parameters=Trap(),
)
"""A weight by a trap: in kg and s momenta have the unit of length, so that Gonzalez' norm is the
same in all units of length."""


@pytest.mark.parametrize("method", ["gonzalez", "itoh_abe", "itoh_abe_symmetrized"])
@pytest.mark.parametrize("pace", [1.0, 1e-3])
def test_differences_of_energy_know_no_units(pace, method):
    """Steps of so many lengths: what was near, and the least change, were in m."""
    ends, errors = [], []
    for length in (1.0, 1e-9, 1e-14, 1e9):
        dsys = INTEGRATORS[method].make(TRAP.with_parameters(size=length), pace)
        x = dsys.state([0.3 * length, -0.8 * length], [0.9 * length, 0.5 * length])
        states = dsys.simulate(x, 5).states
        ends.append(states[-1] / length)
        energies = dsys.energies(states)
        errors.append(np.ptp(energies) / np.abs(energies[0]))
    assert max(errors) <= 1e-14
    np.testing.assert_allclose(ends[1:], np.tile(ends[0], (3, 1)), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kg, m", [(1.0, 1.0), (1e-9, 1e-6), (1e6, 1e3)])
def test_a_regular_mass_matrix_is_one_in_all_units(kg, m):
    system = chaplygin_sleigh(ChaplyginSleighParameters(m=kg, I=kg * m**2, a=m))
    assert INTEGRATORS["gni"].takes(system) and INTEGRATORS["si_dla"].takes(system)
    tied = System(
        "tied",
        Rn("x", "y"),
        lambda q, v: kg * (v[0] + v[1]) ** 2 / 2,
        velocity_constraint=lambda q: ca.horzcat(1, -1),
    )
    assert "singular off its constraints" in INTEGRATORS["gni"].refuses(tied)


@pytest.mark.parametrize(
    "method, units",
    [
        pytest.param(method, units, marks=pytest.mark.slow if method in slow else ())
        for units, slow in (
            ("SI", ()), ("mg, mm, ms", ()), ("t, km, h", ("gonzalez_f", "gonzalez_r")),
            ("kg of 1 mg, m of 1 mm", ("gonzalez_f", "gonzalez_r")),
        )
        for method in ("gonzalez", "gonzalez_f", "gonzalez_r")
    ],
)  # fmt: skip
def test_rows_that_are_round_off_are_so_in_all_units(method, units):
    """A snakeboard's side velocity is zero, but for the round-off of what a Householder basis adds
    up in its row. Unknowns counted as a part of the largest one, whatever its unit.
    """
    n = ALL[units]
    own = SnakeboardParameters(m=n.kg, l=2 * n.m, I=n.kg * n.m**2, J=1.2 * n.kg * n.m**2)
    dsys = INTEGRATORS[method].make(snakeboard(own), 0.02 * n.s)
    of_q, rng = np.array([1, 1, 1, n.m, n.m]), np.random.default_rng(5)
    for _ in range(4):
        q, v = 0.3 * rng.normal(size=(2, 5))
        states = dsys.simulate(dsys.state(q * of_q, v * of_q / n.s), np.zeros((3, 2))).states
        if method != "gonzalez_f":  # its energy is that of another momentum
            assert np.ptp(dsys.energies(states)) <= 1e-11 * dsys.energy(states[0])
        slip = [dsys.constraint_residual(*pair) for pair in zip(states, states[1:])]
        assert np.abs(slip).max() <= 1e-12 * n.m


@pytest.mark.parametrize("name", ["sleigh", "cart"])
def test_configurations_that_a_step_joins_give_its_momenta_in_all_units(name):
    """The search ended where momenta changed by 1e-12, whatever their unit: at once."""
    for units in (*FEW.values(), Units(1e-9, 1e-6, 1.0)):
        motion = MOTIONS[name](units)
        dsys = motion.discrete("nonholonomic_midpoint")
        x = dsys.state(motion.q, motion.v)
        x1 = dsys.step(x, motion.u)
        ends = dsys.configuration(x), dsys.configuration(x1)
        joined = dsys.state_from_configurations(*ends, motion.u)
        np.testing.assert_allclose(dsys.velocity(joined), dsys.velocity(x1), rtol=1e-11)


@pytest.mark.parametrize("units", ALL)
def test_constraints_of_other_units_are_no_dependent_ones(units):
    """A length and an angle that are held: the condition number of both was 1e24 in um."""
    n = ALL[units]
    held = System(
        "held",
        Rn("x", "y", "angle"),
        lambda q, v: n.kg * (ca.sumsqr(v[:2]) + n.m**2 * v[2] ** 2) / 2,
        holonomic_constraint=lambda q: ca.vertcat(ca.sumsqr(q[:2]) - n.m**2, q[2] - q[1] / n.m),
    )
    v = consistent_velocity(held, [0.0, n.m, 1.0], np.array([n.m, n.m, 3.0]) / n.s)
    np.testing.assert_allclose(v * n.s / [n.m, n.m, 1.0], [1.0, 0.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("several", EACH, ids=len)
@pytest.mark.parametrize(
    "name, method",
    [
        ("rod", "midpoint"),
        ("sleigh", "nonholonomic_midpoint"),
        ("held", "midpoint"),
        ("flying", "midpoint"),
        pytest.param("sleigh", "energy_collocation_4", marks=pytest.mark.slow),
    ],
)
def test_condition_numbers_are_the_same_in_all_units(name, method, several):
    """A floating body with an arm had one of M of 3e2 in m, of 1e8 in km."""
    found = []
    for units in several.values():
        motion = MOTIONS[name](units)
        dsys = motion.discrete(method, H / 4)
        one = dsys.conditioning(dsys.state(motion.q, motion.v), motion.u)
        found.append([one.jacobian, one.mass, one.constraint])
    np.testing.assert_allclose(found, np.tile(found[0], (len(found), 1)), rtol=1e-9)


@pytest.mark.parametrize("name, moved", [("rod", [0.6, -0.8, 0.0]), ("held", [0.0, 1.0, 0.0])])
def test_a_configuration_keeps_its_constraints_in_all_units(name, moved):
    """One of 1 um on a rod of 1 um was taken for one that keeps it; of 1 km, one of few digits for
    one that does not.
    """
    for units in (*FEW.values(), Units(1.0, 1e-6, 1.0)):
        motion = MOTIONS[name](units)
        dsys = motion.discrete()
        for off in (0.0, 1e-9):
            dsys.state(motion.q + off * np.array(moved) * motion.of_q, motion.v)
        with pytest.raises(NotConsistent):
            dsys.state(motion.q + 1e-6 * np.array(moved) * motion.of_q, motion.v)


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
    motion = rod(n)
    scale = {"x": n.m, "y": n.m}
    q = satisfy_constraints(motion.system, motion.q * [1.3, 1.3, 1.0], scale=scale)
    np.testing.assert_allclose(q / motion.of_q, motion.q / motion.of_q, atol=1e-9)
    rest = minimize_potential_energy(motion.system, q, scale=scale)
    np.testing.assert_allclose(rest / motion.of_q, [0, -0.8, 0], atol=1e-9)
    for wrong, words in (({"w": 1.0}, "choose from"), ({"x": 0.0}, "positive")):
        with pytest.raises(ValueError, match=words):
            satisfy_constraints(motion.system, motion.q, scale=wrong)


@pytest.mark.parametrize("size", [1e-20, 1.0, 1e20])
def test_rows_of_constraints_may_have_any_units(size):
    rows = ca.DM([[1.0, 0.5, 0.0], [0.0, size, -2 * size]])

    def constrained(rows):
        space = Rn("x", "y", "z")
        return System("rows", space, lambda q, v: ca.sumsqr(v), velocity_constraint=lambda q: rows)

    assert len(constrained(rows).numeric.mechanics.elimination.dependent) == 2
    with pytest.raises(ValueError, match=r"rows \[1\].*drop dependent rows"):
        constrained(ca.vertcat(rows[0, :], size * rows[0, :]))
