"""Newton's tolerance at any scale, its failures and what they say, and its compiled twin."""

import re

import casadi as ca
import numpy as np
import pytest
from cases import METHODS, discrete, random_point, symmetric_top
from native_equations import equations_of
from tiers import with_compiler

from nh_control.discrete.engine import Engine
from nh_control.discrete.results import StepFailed
from nh_control.geometry.spaces import Rn
from nh_control.integrators import INTEGRATORS, midpoint
from nh_control.integrators.semi_implicit import si_dla
from nh_control.mechanics.system import System
from nh_control.numerics import newton
from nh_control.systems import gearbox, quadrotor_payload


def planar_chain(n: int, g: float = 9.8) -> System:
    """Chain of n links of unit length with unit masses at their ends, absolute angles from the
    downward vertical.
    """

    def lagrangian(q, v):
        x_dot = y_dot = y = total = 0
        for i in range(n):
            x_dot, y_dot, y = (
                x_dot + ca.cos(q[i]) * v[i],
                y_dot + ca.sin(q[i]) * v[i],
                y - ca.cos(q[i]),
            )
            total += (x_dot**2 + y_dot**2) / 2 - g * y
        return total

    return System(f"chain_{n}", Rn(*(f"theta_{i}" for i in range(n))), lagrangian)


def test_a_long_chain_steps_at_its_own_scale():
    """32 links with momenta of 700: round-off alone leaves residuals that an absolute tolerance
    would have to know of.
    """
    links = 32
    dsys, large = midpoint(planar_chain(links), 0.01), 0.78 * links**2
    x = dsys.state(np.linspace(0.3, 0.6, links), np.full(links, 1.35))
    assert 0.75 * large < np.abs(x[links:]).max() < large
    states = dsys.simulate(x, 150).states
    energy = [dsys.energy(s) for s in states[::10]]
    assert np.ptp(energy) <= 1e-4 * (max(energy) - dsys.energy(np.zeros(2 * links)))
    back = dsys.step(np.concatenate([states[-1][:links], -states[-1][links:]]))
    assert np.abs(back[:links] - states[-2][:links]).max() <= 1e-12
    assert np.abs(back[links:] + states[-2][links:]).max() <= 1e-12 * large


def bead(g=9.81) -> System:
    return System("bead", Rn("height"), lambda q, v: v[0] ** 2 / 2 - g * q[0])


@pytest.mark.parametrize("h", [1e-6, 0.1, 10.0])
def test_a_bead_falls_from_rest_at_the_origin(h):
    """State all zero: nothing but the solution itself sets the residual's scale. The midpoint rule
    is exact for constant gravity.
    """
    dsys = midpoint(bead(), h)
    states = dsys.simulate(np.zeros(2), 10).states
    t = h * np.arange(11)
    assert np.allclose(states[:, 0], -9.81 * t**2 / 2, rtol=1e-14, atol=0) and np.allclose(
        states[:, 1], -9.81 * t, rtol=1e-14, atol=0
    )


@pytest.mark.parametrize("offset", [1e3, 1e8])
def test_far_from_the_origin(offset):
    """Position counters that are large do not disturb a step: the snakeboard's momenta are those
    of a board at the origin, to the bit.
    """
    dsys = discrete("snakeboard", "dla", 0.1)
    x, u = random_point(dsys, np.random.default_rng(3))
    far = x.copy()
    far[[0, 3, 4]] += offset
    assert np.array_equal(dsys.step(far, u)[5:], dsys.step(x, u)[5:])


ROUND_OFF = {
    ("energy_collocation_4", 0.02): (
        [0.43464696766455263, -0.2272339644448968, 0.839340107936461, -0.23442466191054814],
        [-0.9459944082252361, -1.7751404934712385, 1.2808452984669982],
    ),
    ("energy_collocation_6", 0.02): (
        [0.8850623221223634, -0.40453247354432714, 0.22673608251647742, 0.04011125393900577],
        [-0.8754397900504867, 0.18222634751230782, 1.2808453008865643],
    ),
    ("variational_gauss_6", 0.02): (
        [0.02338559820498327, 0.2420899447901606, -0.5955146885613855, -0.7656421018568194],
        [-1.9377369055546387, 0.1290385495241723, 0.8597273896444683],
    ),
    ("mean_value", 0.05): (
        [-0.4108847365488361, 0.6526073555186324, 0.3706440767644756, -0.5175909013435037],
        [-0.16986135687887216, 2.1715380294887545, -1.3230768193219398],
    ),
    ("gonzalez", 0.02): (
        [0.3408146289621981, 0.5518671584369685, -0.5049841941463896, 0.5694549954003271],
        [-2.7357274292837976, -0.8976191854715525, -2.491590595321379],
    ),
}
"""States (q, rho) of a symmetric top and steps h (s) at which a row of the residual has terms that
are smaller than the round-off of all that it adds up.
"""


@pytest.mark.parametrize(
    "method, h",
    [pytest.param(*case, marks=[pytest.mark.slow] * case[0].endswith("_6")) for case in ROUND_OFF],
)
def test_a_step_whose_residual_cannot_shrink_further_is_taken(method, h):
    """The residual of such a row jumps up and down by its round-off, with new factors and old
    ones. The step is as accurate as those from states 1e-15 away.
    """
    dsys, x = INTEGRATORS[method](symmetric_top(), h), np.concatenate(ROUND_OFF[method, h])
    x1, rng = dsys.step(x), np.random.default_rng(0)
    near = [dsys.step(x + 1e-15 * rng.normal(size=7)) for _ in range(5)]
    assert np.abs(near - x1).max() <= 2e-14
    if "energy" in INTEGRATORS[method].preserves:
        assert abs(dsys.energy(x1) - dsys.energy(x)) <= 1e-14


@pytest.mark.parametrize("speed", [0.0, 1e-300, 1e-15, 1e-8])
@pytest.mark.parametrize("method", ["dla", "rdp-exp-exact-0.5", "rdp-cay-exact-0.5"])
def test_a_push_from_rest_or_nearly(method, speed):
    """At rest the constraint rows have no size, near rest a tiny one, and the first iterate makes
    them grow: neither must stop Newton.
    """
    dsys = discrete("snakeboard", method, 0.1)
    x = dsys.state(
        [0.0, 0.3, 0.0, 0.0, 0.0], speed * np.array([1.0, 1.0, np.sin(0.3), -2 * np.cos(0.3), 0.0])
    )
    u = np.array([5.0, -3.0])
    x1 = dsys.step(x, u)
    assert np.allclose(x1[5:7], x[5:7] + 0.1 * u, rtol=0, atol=1e-15) and np.abs(x1[3]) > 1e-4
    assert np.abs(dsys.constraint_residual(x, x1)).max() <= 1e-15


def unstable(k: float) -> System:
    """L = (v^2 + k q^2) / 2: the midpoint rule with h = 1 divides by 1 - k / 4."""
    return System("saddle", Rn("q"), lambda q, v: (v[0] ** 2 + k * q[0] ** 2) / 2)


def explosive() -> System:
    """L = v^2 / 2 + exp(q): with h = 4 no next position balances the exponential."""
    return System("explosive", Rn("q"), lambda q, v: v[0] ** 2 / 2 + ca.exp(q[0]))


def rooted() -> System:
    """L = v^2 / 2 + sqrt(q)^3: not defined below zero."""
    return System("rooted", Rn("q"), lambda q, v: v[0] ** 2 / 2 + ca.sqrt(q[0]) ** 3)


def failure(dsys, x, u=()) -> StepFailed:
    with pytest.raises(StepFailed) as caught:
        dsys.step(x, u)
    return caught.value


@pytest.mark.parametrize(
    "make, x, reason",
    [
        (lambda: midpoint(unstable(4.0), 1.0), [1.0, 0.5], newton.SINGULAR),
        (lambda: midpoint(rooted(), 0.1), [-0.5, -1.0], newton.NOT_FINITE),
        (lambda: INTEGRATORS["rk4"].make(rooted(), 0.1), [0.1, -5.0], newton.NOT_FINITE),
    ],
    ids=["singular", "out of the domain", "explicit, out of the domain"],
)
def test_a_step_that_fails_says_why(make, x, reason):
    """Of an explicit one it is the new state that is not finite."""
    error = failure(make(), x)
    assert error.reason == newton.REASONS[reason]
    assert reason != newton.SINGULAR or error.condition > 1e15


def test_the_message_names_system_numbers_and_remedy():
    error = failure(midpoint(explosive(), 4.0), [1.0, 0.0])
    assert error.residual > 0 and error.error > newton.TOLERANCE and np.isfinite(error.condition)
    assert 0 < error.iterations <= newton.MAX_ITERATIONS
    assert error.step is None and error.time is None
    text = str(error)
    for part in (
        "explosive by midpoint, h = 4 s",
        error.reason,
        f"residual {error.residual:.1e}",
        f"relative {error.error:.1e}",
        f"{error.iterations} Newton iterations",
        f"condition number {error.condition:.1e}",
        "h = 4",
        "reduce h",
    ):
        assert part in text, part


def test_the_message_names_the_longest_step_that_is_solved():
    """Within a twentieth of the longest one: steps of that length are solved, longer ones fail."""
    dsys, x = midpoint(explosive(), 4.0), [1.0, 0.0]
    found = re.search(
        r"reduce h \(the longest step with a solution from here is (\S+) s\)",
        str(failure(dsys, x)),
    )
    longest = float(found[1])
    dsys.with_step(0.95 * longest).step(x)
    failure(dsys.with_step(1.1 * longest), x)
    assert dsys.h == 4.0
    failure(dsys, x)


def test_smooth_steps_take_few_iterations():
    """With links that swing, factors at z = 0 shrink the error to a hundredth an iteration: at the
    first guess new ones are taken.
    """
    system = quadrotor_payload()
    dsys, rng = midpoint(system, 0.01), np.random.default_rng(3)
    q = system.space.retract(system.space.origin, 0.4 * rng.normal(size=system.space.nv))
    x = dsys.state(q, 1.5 * rng.normal(size=system.space.nw))
    counts = []
    for _ in range(20):
        counts.append(dsys.newton_iterations(x, np.zeros(8)))
        x = dsys.step(x, np.zeros(8))
    assert max(counts) <= 5, counts


@pytest.mark.parametrize("method", ["dla", "rdp-exp-exact-0.5"])
def test_steering_beyond_a_right_angle_fails(method):
    """At phi = pi/2 the wheels' constraints lose rank, and beyond it the model is no snakeboard:
    the step across must fail, not pass.
    """
    dsys = discrete("snakeboard", method, 0.01)
    x = dsys.state(
        [0.0, 1.3, 0.0, 0.0, 0.0], [0.5, 1.0, -0.8 * np.sin(1.3), 1.6 * np.cos(1.3), 0.0]
    )
    with pytest.raises(StepFailed) as caught:
        dsys.simulate(x, np.zeros((60, 2)))
    assert abs(caught.value.time - (np.pi / 2 - 1.3)) <= 0.02


def test_a_step_out_of_the_domain_says_where_it_ends_and_nothing_of_newtons_iteration():
    dsys = discrete("snakeboard", "dla", 0.1)
    x = dsys.state([0.0, 1.5, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0])
    text = str(failure(dsys, x, [0.0, 0.0]))
    assert "at phi = 1.6, must be positive" in text and "(domain = -0.029" in text
    assert not any(word in text for word in ("residual", "condition", "iterations"))


@pytest.mark.parametrize(
    "call", [lambda d, x: d.linearize(x), lambda d, x: d.hessian(x, (), [1.0, 0.0])]
)
def test_steps_that_fail_or_are_singular_have_no_derivatives(call):
    """A step that solves (zero is a solution) may not be differentiable."""
    for dsys, x in (
        (midpoint(explosive(), 4.0), [1.0, 0.0]),
        (midpoint(unstable(4.0), 1.0), [0, 0]),
    ):
        with pytest.raises(StepFailed):
            call(dsys, x)


@pytest.mark.parametrize(
    "function, derivative, start, outcomes",
    [
        (lambda z: z**2 - 2, lambda z: 2 * z, 1.0, {newton.CONVERGED}),
        (lambda z: np.arctan(z), lambda z: 1 / (1 + z**2), 20.0, {newton.CONVERGED}),
        (lambda z: z**2 + 1, lambda z: 2 * z, 0.0, {newton.SINGULAR}),
        (lambda z: z**2 + 1, lambda z: 2 * z, 1.3, {newton.STALLED, newton.EXHAUSTED}),
        (lambda z: np.log(z - 3), lambda z: 1 / (z - 3), 1.0, {newton.NOT_FINITE}),
    ],
)
def test_newton_by_itself(function, derivative, start, outcomes):
    """Including the arctangent far from its root, which diverges without the line search."""
    equation = equations_of(lambda y: function(y + start), lambda y: derivative(y + start))
    status = equation.solve()
    assert status in outcomes
    if status == newton.CONVERGED:
        assert equation.work.info[1] <= newton.ACCEPT
        assert np.abs(function(equation.work.z + start)).max() <= 1e-14


def test_an_iteration_is_exhausted_only_far_from_a_solution():
    """From z = 16 to 22 Newton's method for exp(z) = 1 takes about as many steps, whose last ones
    begin anywhere above or below ACCEPT.
    """
    outcomes = set()
    for start in np.linspace(16, 22, 121):
        shifted = lambda y, start=start: np.exp(y + start)
        equation = equations_of(lambda y, f=shifted: f(y) - 1, shifted)
        outcomes.add(status := equation.solve())
        assert status == newton.CONVERGED or equation.work.info[1] > newton.ACCEPT
    assert outcomes == {newton.CONVERGED, newton.EXHAUSTED}


def outcome(dsys, x, u):
    try:
        return None, dsys.step(x, u)
    except StepFailed as error:
        return error.reason, np.array([error.iterations])


def once(engine, routine, status, work) -> int:
    """No other start than zero is tried."""
    return status


def hard_points(dsys):
    """States and inputs far from rest."""
    points = [random_point(dsys, np.random.default_rng(seed)) for seed in range(40)]
    return [
        (np.where(np.arange(dsys.nx) < dsys.system.space.nq, x, 5 * x), 3 * u) for x, u in points
    ]


@pytest.mark.parametrize(
    "system, method",
    [
        ("pendulum", "midpoint"),
        pytest.param("sleigh", "rdp-cay-exact-0.5", marks=pytest.mark.slow),
        pytest.param("snakeboard", "dla", marks=pytest.mark.slow),
    ],
)
def test_compiled_code_succeeds_and_fails_alike_where_steps_are_hard(system, method, monkeypatch):
    """Steps so long that the line search works and some fail: the same bits and reasons."""
    virtual = METHODS[method](discrete(system, method, 0.1).system, 2.5)
    points = hard_points(virtual)
    monkeypatch.setattr(Engine, "solve_by_continuation", once)
    expected = [outcome(virtual, x, u) for x, u in points]
    assert 5 < sum(reason is None for reason, _ in expected) < 40
    with with_compiler():
        compiled = METHODS[method](virtual.system, 2.5).prepare()
    for (x, u), (reason, x1) in zip(points, expected):
        compiled_reason, compiled_x1 = outcome(compiled, x, u)
        assert compiled_reason == reason
        np.testing.assert_array_equal(compiled_x1, x1)


@pytest.mark.parametrize("angle", [0.0, 200.0, 1e4])
def test_steps_after_many_turns_are_those_of_the_first(angle):
    """The sizes of rows with a large angle in them say nothing about how far they are from zero;
    shrinking them alike led the line search nowhere beyond 163 rad.
    """
    dsys, rng = si_dla(gearbox(), 0.1), np.random.default_rng(0)
    turns = 2 * np.pi * np.round(angle / (2 * np.pi))
    for _ in range(40):
        q, v = rng.normal(size=3), rng.normal(size=3)
        near, far = (dsys.step(dsys.state(q + [0, 0, a], v), [0.0]) for a in (0.0, turns))
        off = far - near - [0, 0, turns, 0, 0]
        assert np.abs(off).max() <= 1e-12 * max(1.0, turns / 100)


def test_zero_is_reached_from_either_side():
    """A residual that vanishes together with all its terms: a board that is stopped within one
    step.
    """
    dsys = discrete("snakeboard", "dla", 0.1)
    x = dsys.state(np.zeros(5), [0.0, 0.3, 0.0, 0.0, 0.0])
    impulse = np.array([0.0, -x[6] / 0.1])
    x1 = dsys.step(x, impulse)
    assert np.abs(x1[[0, 2, 3, 4]]).max() <= 1e-15 and abs(x1[6]) <= 1e-15
    assert np.isfinite(dsys.step(x1, np.zeros(2))).all()
