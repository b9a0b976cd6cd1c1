"""Methods that move momenta by the coadjoint action: orbits, energy, momenta, what they are
on R^n, and Lie-Poisson steps for Hamiltonians on g*.
"""

from __future__ import annotations

import casadi as ca
import lie_cases
import numpy as np
import pytest
from lie_motion import rotate
from refusals import refusal

from nh_control.geometry.groups import SE3Group, SO3Group
from nh_control.integrators import INTEGRATORS, lie_mean_value, lie_midpoint, mean_value, midpoint
from nh_control.integrators.coadjoint_orbits import RULES, lie_poisson_step
from nh_control.systems import cart_pole, pendulum
from nh_control.systems.marionette import marionette

METHODS = ("lie_midpoint", "lie_mean_value")
ALL = (*METHODS, "slgi_half")
ROUND_OFF = 1e-13
UP = np.array([0.0, 0.0, 1.0])


def gamma(states):
    """`Q^T e_z` of states (..., 4 + 3)."""
    return rotate(states[..., :4] * [1, -1, -1, -1], UP)


# --- coadjoint orbits ----------------------------------------------------------------------------


def casimirs(name, x):
    """What is constant on the coadjoint orbit, divided by the sizes of its factors: |Pi| on
    so(3)*, Pi . P and |P| on se(3)*; for the heavy top with Gamma for P, whose length is that of
    the quaternion.
    """
    if name == "rigid_body":
        return np.linalg.norm(x[:, 4:], axis=1)[:, None] / np.linalg.norm(x[0, 4:])
    turning, pushing = (x[:, 4:], gamma(x)) if name == "heavy_top" else (x[:, 7:10], x[:, 10:])
    sizes = [np.linalg.norm(a, axis=1) for a in (turning, pushing)]
    product = np.sum(turning * pushing, 1) / (sizes[0].max() * sizes[1].max())
    return np.stack([product, sizes[1] / sizes[1][0]], 1)


def off_orbit(name, method, h, steps):
    dsys = lie_cases.discrete(name, h, method)
    x, _ = lie_cases.random_point(dsys, np.random.default_rng(3))
    values = casimirs(name, dsys.simulate(x, np.zeros((steps, dsys.nu))).states)
    return np.abs(values - values[0]).max()


@pytest.mark.parametrize(
    "name, method",
    [
        *((name, method) for name in ("rigid_body", "body_in_fluid") for method in ALL),
        ("heavy_top", "lie_midpoint"),
        *(pytest.param("heavy_top", m, marks=pytest.mark.slow) for m in ALL[1:]),
    ],
)
def test_motions_stay_on_their_coadjoint_orbits(name, method):
    assert off_orbit(name, method, 0.1, 100) <= 2e-14


# --- energy and momenta -------------------------------------------------------------------------


def test_its_energy_is_the_work_of_the_inputs():
    dsys = lie_cases.discrete("planar_body", 0.1, "lie_mean_value")
    x, u = lie_cases.random_point(dsys, np.random.default_rng(1))
    work = dsys.h * u @ dsys.unknowns(x, u)
    gained = dsys.energy(dsys.step(x, u)) - dsys.energy(x)
    assert abs(gained - work) <= ROUND_OFF * 10 and abs(work) > 1e-3


def test_the_weight_turns_the_top_s_momentum_about_the_vertical_only():
    for method in METHODS:
        dsys = lie_cases.discrete("heavy_top", 0.1, method)
        x, _ = lie_cases.random_point(dsys, np.random.default_rng(2))
        x1 = dsys.step(x)
        change = rotate(x1[:4], x1[4:]) - rotate(x[:4], x[4:])
        assert abs(change[2]) <= ROUND_OFF and np.abs(change).max() > 1e-2


# --- other methods, and refusals -----------------------------------------------------------------


def test_on_vectors_they_are_the_rules_they_are_named_after():
    x, u = np.array([0.7, 1.3]), np.array([0.4])
    for one, other in (
        (lie_midpoint(pendulum(), 0.1), midpoint(pendulum(), 0.1)),
        (lie_mean_value(pendulum(), 0.1, points=5), mean_value(pendulum(), 0.1)),
    ):
        assert np.abs(one.step(x, u) - other.step(x, u)).max() <= ROUND_OFF


def test_what_they_cannot_take_they_name(snapshot):
    systems = lie_cases.system("pendulum_1"), lie_cases.system("top_on_a_joint")
    makers = lie_midpoint, lie_mean_value
    wrong = (
        *(lambda m=m, s=s: m(s, 0.1) for m in makers for s in systems),
        lambda: lie_midpoint(marionette(), 0.1),
        lambda: lie_mean_value(cart_pole(), 0.1),
        lambda: lie_poisson_step(SO3Group(), quartic, "rk4"),
        lambda: lie_poisson_step(SO3Group("cay"), quartic),
    )
    assert [refusal(make) for make in wrong] == snapshot
    assert INTEGRATORS["lie_midpoint"].takes(cart_pole())


# --- Hamiltonians on g* --------------------------------------------------------------------------

TOP = lie_cases.MILD_TOP


def top_energy(mu):
    """The heavy top's Hamiltonian of (Pi, Gamma) on se(3)*."""
    spin = ca.dot(mu[:3] ** 2, 1 / ca.DM(lie_cases.inertia(TOP))) / 2
    return spin + TOP.M * TOP.g * TOP.l * ca.dot(mu[3:], ca.DM(TOP.chi))


def quartic(mu):
    """Nothing special on so(3)*, not quadratic."""
    return ca.dot(mu**2, ca.DM([1.0, 0.5, 0.4])) / 2 + mu[0] ** 3 * mu[1] / 5 + mu[2]


HAMILTONIANS = {"top": (SE3Group(), top_energy), "quartic": (SO3Group(), quartic)}
STARTS = {"top": np.array([0.2, 1.1, -0.4, 0.48, -0.6, 0.64]), "quartic": np.array([0.5, 1, -0.7])}


def poisson(name, mu):
    """Matrix of the brackets {mu_i, mu_j} up to sign."""
    hat = np.cross(np.eye(3), mu[:3])
    if name == "quartic":
        return hat
    other = np.cross(np.eye(3), mu[3:])
    return np.block([[hat, other], [other, np.zeros((3, 3))]])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", HAMILTONIANS)
def test_steps_on_the_dual_stay_on_the_orbit(name, rule):
    group, hamiltonian = HAMILTONIANS[name]
    step, mu = lie_poisson_step(group, hamiltonian, rule), STARTS[name]
    path = np.vstack([mu, step.mapaccum(300)(mu, np.full((1, 300), 0.05)).full().T])
    m = ca.SX.sym("m", group.dim)
    energy = ca.Function("energy", [m], [hamiltonian(m)])(path.T).full()[0]
    if name == "top":
        kept = np.stack([np.sum(path[:, :3] * path[:, 3:], 1), np.sum(path[:, 3:] ** 2, 1)])
    else:
        kept = np.sum(path**2, 1)[None]
    assert np.abs(kept - kept[:, :1]).max() <= 2e-14
    drift = np.ptp(energy)
    assert drift <= 1e-12 if rule == "mean_value" else 1e-6 < drift < 0.1
    assert np.ptp(path[:, 0]) > 0.3


@pytest.mark.parametrize("name", HAMILTONIANS)
def test_euler_poincare_steps_are_poisson_maps(name):
    """`D B(mu) D^T = B(mu1)`, D the step's derivative; the others' are not."""
    group, hamiltonian = HAMILTONIANS[name]
    defects = {}
    for rule in RULES:
        step = lie_poisson_step(group, hamiltonian, rule)
        slope = step.factory("slope", ["mu", "h"], ["mu1", "jac:mu1:mu"])
        mu1, d = (value.full() for value in slope(STARTS[name], 0.1))
        after = poisson(name, mu1[:, 0])
        defects[rule] = np.abs(d @ poisson(name, STARTS[name]) @ d.T - after).max()
    assert defects["euler_poincare"] <= ROUND_OFF
    assert min(defects["midpoint"], defects["mean_value"]) > 1e-6


def test_the_mean_value_on_se3_is_that_of_the_top_on_so3():
    """Reduction commutes with the step: (Pi, Gamma) of the step on T*SO(3)."""
    dsys = lie_cases.discrete("heavy_top", 0.05, "lie_mean_value")
    x, _ = lie_cases.random_point(dsys, np.random.default_rng(6))
    x1, step = dsys.step(x), lie_poisson_step(SE3Group(), top_energy, "mean_value")
    mu1 = step(np.concatenate([x[4:], gamma(x)]), 0.05).full()[:, 0]
    np.testing.assert_allclose(mu1, [*x1[4:], *gamma(x1)], rtol=0, atol=ROUND_OFF)


@pytest.mark.parametrize("rule", RULES)
def test_second_order_on_the_dual(rule):
    """Of (Pi, Gamma), against the equations of the top by hand."""
    start = np.array([0.5, -0.4, 0.6, 0.3, 0.2, 1.1, -0.4])
    start[:4] /= np.linalg.norm(start[:4])
    end = lie_cases.motion("heavy_top").solve(start, [0.0, 0.5])[-1]
    exact, mu = (np.concatenate([y[4:], gamma(y)]) for y in (end, start))
    step, errors = lie_poisson_step(SE3Group(), top_energy, rule), []
    for n in (20, 40, 80, 160):
        path = step.mapaccum(n)(mu, np.full((1, n), 0.5 / n)).full()
        errors.append(np.abs(path[:, -1] - exact))
    slopes = -np.polyfit(np.log([20, 40, 80, 160]), np.log(errors), 1)[0]
    assert np.abs(slopes - 2).max() <= 0.1, slopes
