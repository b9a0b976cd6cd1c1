"""The nonholonomic systems against equations of motion by hand, their invariants, and the numbers
of celledoni2016.
"""

import by_hand
import casadi as ca
import numpy as np
import pytest

from nh_control import systems
from nh_control.integrators import nonholonomic_midpoint, rdp
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.mechanics.coordinates import in_coordinates
from nh_control.systems import ChaplyginSleighParameters
from nh_control.systems.chaotic_quartic import random_start

HAND = {
    "car": by_hand.car,
    "chaotic_quartic": by_hand.chaotic_quartic,
    "chaplygin_sleigh_contact": by_hand.sleigh_contact,
    "differential_drive": by_hand.differential_drive,
    "gearbox": by_hand.gearbox,
    "roller_racer": by_hand.roller_racer,
    "rolling_ball": by_hand.rolling_ball,
    "rolling_disk": by_hand.rolling_disk,
    "suslov": by_hand.suslov,
}
PLANAR = [name for name in HAND if name not in ("rolling_ball", "suslov")]


def start(system, seed):
    """Configuration and admissible velocity of order one, inputs of a fifth of their limits."""
    rng, space = np.random.default_rng(seed), system.space
    q = space.retract(space.origin, rng.uniform(-1, 1, space.nv))
    q_ = ca.SX.sym("q", space.nq)
    basis = ca.Function("basis", [q_], [system.numeric.mechanics.admissible_basis(q_)])
    v = np.asarray(basis(q)) @ rng.uniform(-1, 1, system.nrho)
    largest = np.nan_to_num(system.input_bounds[:, 1], posinf=2.0)
    return q, v, largest * rng.uniform(-0.2, 0.2, system.nu)


def energy(system, q, v):
    at = ca.SX.sym("q", len(q)), ca.SX.sym("v", len(v))
    return float(ca.Function("energy", at, [system.numeric.mechanics.energy(*at)])(q, v))


@pytest.mark.parametrize("name", HAND)
def test_equations_of_motion(name):
    """Accelerations of the derived equations equal those of bodies in inertial coordinates."""
    system = getattr(systems, name)()
    derived, hand = ContinuousSystem(system), HAND[name](system.parameters)
    for seed in range(5):
        q, v, u = start(system, seed)
        want = hand.rate(q, v, u)[system.space.nq :]
        got = derived.acceleration(q, v, u)
        assert np.abs(got - want).max() <= 1e-11 * (1 + np.abs(want).max())


SYMMETRIC = [
    name
    for name in systems.__all__
    if name in (*HAND, "chaplygin_sleigh", "snakeboard") and getattr(systems, name)().symmetry
]


@pytest.mark.parametrize("name, last", [
    ("car", np.pi / 2), ("snakeboard", np.pi / 2), ("roller_racer", np.arccos(-0.1 / 0.5)),
])  # fmt: skip
def test_models_hold_up_to_where_their_axles_are_aligned(name, last):
    system = getattr(systems, name)()
    place = {"car": 1, "snakeboard": 1, "roller_racer": 0}[name]
    for sign in (1, -1):
        for angle, holds in ((0.999 * last, True), (1.001 * last, False)):
            q = sign * angle * np.eye(system.space.nq)[place]
            assert (system.value(system.domain_at(system.symbols[0]), q) > 0).all() == holds


@pytest.mark.parametrize("name", SYMMETRIC)
def test_the_reduced_method_takes_every_system_with_a_symmetry(name):
    """RDP with the exponential is the nonholonomic midpoint rule, so the symmetry declared is the
    system's own: of the plane, of the ball's places, of the body's rotations.
    """
    system = getattr(systems, name)()
    one, other = rdp(system, 0.02, "exp"), nonholonomic_midpoint(system, 0.02)
    q, v, u = start(system, 3)
    x = one.state(q, v)
    want = other.step(x, u)
    assert np.abs(one.step(x, u) - want).max() <= 1e-11 * (1 + np.abs(want).max())


@pytest.mark.parametrize("name", [*PLANAR, "snakeboard"])
def test_in_coordinates_the_accelerations_are_the_same(name):
    system = getattr(systems, name)()
    plain = in_coordinates(system)
    q, v, u = start(system, 4)
    body, flat = ContinuousSystem(system), ContinuousSystem(plain)
    rate = np.concatenate([v, body.acceleration(q, v, u)])
    n, step = len(q), 1e-6
    ahead, behind = (
        rates(system, q + s * rates(system, q, v), v + s * rate[n:]) for s in (step, -step)
    )
    want = (ahead - behind) / (2 * step)
    got = flat.acceleration(q, rates(system, q, v), u)
    assert np.abs(got - want).max() <= 1e-7 * (1 + np.abs(want).max())


def rates(system, q, v):
    """Rates of the coordinates for body velocities, the pose last if there is one."""
    if "omega" not in system.space.velocity_names:
        return v
    return np.concatenate([v[:-2], by_hand.turn(q[-3], v[-2], v[-1])])


def test_coordinates_are_refused_on_rotations():
    with pytest.raises(ValueError, match="suslov: only planar poses .* \\['SO3'\\]"):
        in_coordinates(systems.suslov())


@pytest.mark.parametrize("sign", [1, -1])
def test_the_sleigh_of_the_paper_turns_round(sign):
    """J = 8, a = m = 1, rho = (+-0.001, -0.6): the exact solution of (22) is rho = 0.6 (sech,
    tanh), and the skate goes forwards in the end.
    """
    system = systems.chaplygin_sleigh_contact(ChaplyginSleighParameters(m=1.0, I=8.0, a=1.0))
    rho = np.array([sign * 1e-3, -0.6])
    size, c = np.linalg.norm(rho), 1 / 9
    begin, end = np.arctanh(-0.6 / size) / (c * size), 240.0
    late = c * size * end + c * size * begin
    q, v = np.array([0.1, -5.0, 0.0]), np.array([rho[0] / 3, rho[1], 0.0])
    want = size * np.array([sign / np.cosh(late), np.tanh(late)])
    assert want[1] > 0.59
    dsys = nonholonomic_midpoint(system, 0.5)
    x = dsys.state(q, v)
    assert np.abs(x[3:] - rho).max() <= 1e-15
    assert np.abs(dsys.simulate(x, np.zeros((480, 2))).states[-1][3:] - want).max() <= 1e-5


def test_random_starts_of_the_chaotic_system_have_the_energy_of_the_paper():
    system, rng = systems.chaotic_quartic(), np.random.default_rng(0)
    starts = [random_start(rng) for _ in range(20)]
    assert np.abs([energy(system, *s) - 3.06 for s in starts]).max() <= 1e-13
    assert max(abs(v[0] + q[1:4] @ v[4:]) for q, v in starts) <= 1e-14
    assert np.std([q[0] for q, _ in starts]) > 0.3
    with pytest.raises(ValueError, match="energy must be positive, got 0"):
        random_start(rng, 0)
