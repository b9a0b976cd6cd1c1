"""Springs of joints by splines, constant wrenches, and lengths of lines through points: by the
linear-time kernel, by generated equations, and by hand.
"""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from differences import derivative
from random_trees import (
    assert_derivatives,
    assert_the_same,
    both_ways,
    not_worth_compiling,
    random_tree,
    with_followers,
)
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

import nh_control as nh
from nh_control.integrators import midpoint
from nh_control.multibody import (
    Body,
    ConstantWrench,
    Element,
    Multibody,
    NonlinearJointSpring,
    Point,
    TapeMeasure,
    Wrench,
    fixed,
    prismatic,
    revolute,
)
from nh_control.multibody.constraints import Constraint
from nh_control.multibody.tree_engine import TreeEngine

KNOTS = np.array([-2.0, -0.9, -0.3, 0.1, 0.8, 1.7])
FORCE = nh.Spline(KNOTS, [-30.0, -6.0, -2.0, 0.4, 9.0, 40.0], slopes=[9.0, *[np.nan] * 5])


def softening(scale=1.0, offset=0.0):
    return NonlinearJointSpring("b0", FORCE, scale, offset)


def wrenches(rng, frames, axes=("body", "world")):
    return [
        ConstantWrench(Point(frame, rng.normal(size=3) / 3), *rng.normal(size=(2, 3)), axes=a)
        for frame in frames
        for a in axes
    ]


@pytest.mark.parametrize(
    "kinds, elements, forcing",
    [
        ([0], [softening()], "symmetric"),
        ([1, 0], [softening(-1.6, 0.2)], "left"),
        pytest.param([1, 2], [softening(0.4)], "symmetric", marks=pytest.mark.slow),
    ],
)
def test_nonlinear_springs_step_as_generated(kinds, elements, forcing):
    """Beside linear springs, with a follower of the joint."""
    rng = np.random.default_rng(0)
    free = with_followers(random_tree(kinds, rng), 1, rng)
    model = replace(free, elements=[*elements, *free.elements])
    tree, generated = both_ways(model, forcing=forcing)
    assert_the_same(tree, generated, rng)
    x, u = generated.state(model.configuration(), model.velocity()), np.ones(generated.nu)
    lam = rng.normal(size=generated.ndx)
    ours, theirs = tree.hessian(x, u, lam), generated.hessian(x, u, lam)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10 * np.abs(theirs).max())
    assert tree.energy(x) == pytest.approx(generated.energy(x), rel=1e-12)


@pytest.mark.parametrize(
    "kinds, axes",
    [([0, 1], ("body", "world")), pytest.param([4, 0], ("body",), marks=pytest.mark.slow)],
)
def test_constant_wrenches_step_as_generated(kinds, axes):
    """Beside wrenches that are inputs, on followers and on a fixed frame."""
    rng = np.random.default_rng(1)
    free = with_followers(random_tree(kinds, rng), 1, rng)
    own = wrenches(rng, ["b0", "m0"], axes)
    inputs = [Wrench("w", "b1", components=("force_x",)), *free.inputs]
    tree, generated = both_ways(replace(free, elements=[*own, *free.elements], inputs=inputs))
    assert_the_same(tree, generated, rng)


def test_derivatives_of_a_large_tree_by_differences():
    rng = np.random.default_rng(2)
    free = random_tree([5, *rng.integers(0, 2, 6)], rng)
    names = ["b1", "b3", "b6"]
    springs = [NonlinearJointSpring(name, FORCE, 1.0 + k, 0.1) for k, name in enumerate(names)]
    elements = [*springs, *wrenches(rng, names), *free.elements]
    dsys = not_worth_compiling(midpoint(replace(free, elements=elements).system, 0.01))
    assert isinstance(dsys.engine, TreeEngine)
    space = dsys.system.space
    q = space.retract(space.origin, rng.normal(size=space.nv) / 3)
    x = dsys.measured_state(q, rng.normal(size=space.nw) / 5)
    assert_derivatives(dsys, x, rng.normal(size=dsys.nu), rng, 1e-4)


def mass_on_a_spring():
    """A mass of 2 kg on a rail whose spring pulls with -2 f(1.5 q - 0.2)."""
    spring = NonlinearJointSpring("m", FORCE, 1.5, -0.2)
    return Multibody("rail", [prismatic("m", axis="x")], [Body("m", 2.0)], [spring])


def test_a_mass_on_a_nonlinear_spring_moves_as_its_table_says():
    """Through several knots and beyond the last one, against SciPy's cubic spline."""
    table = CubicSpline(KNOTS, FORCE(KNOTS), bc_type=((1, 9.0), (2, 0.0)))

    def force(q):
        """The table, and its parabola beyond the ends."""
        x = 1.5 * q - 0.2
        end = np.clip(x, KNOTS[0], KNOTS[-1])
        return sum(table(end, k) * (x - end) ** k / (1, 1, 2)[k] for k in range(3))

    start, t = [1.5, 0.3], 1.2
    exact = solve_ivp(
        lambda _, y: [y[1], -force(y[0]) / 2.0], (0, t), start, "DOP853", rtol=1e-12, atol=1e-12
    ).y[:, -1]
    errors = []
    for steps in (200, 400):
        dsys = midpoint(mass_on_a_spring().system, t / steps)
        run = dsys.simulate(dsys.state([1.5], [0.3]), steps=steps)
        errors.append(run.states[-1] - [exact[0], 2.0 * exact[1]])
    assert np.abs(errors[1]).max() < 2e-3
    np.testing.assert_allclose(errors[0], 4 * np.array(errors[1]), rtol=0.1)
    assert np.ptp(run.states[:, 0]) > 2.0


def test_the_energy_of_a_nonlinear_spring_is_the_integral_of_its_force():
    dsys = midpoint(mass_on_a_spring().system, 0.01)
    for q in (-2.0, 0.4, 1.9):
        slope = derivative(lambda e, q=q: dsys.energy(dsys.state([q + e], [0.0])), 1e-3)
        assert slope == pytest.approx(float(FORCE(1.5 * q - 0.2)), rel=1e-9)


def test_two_nonlinear_springs_of_one_joint_add_up():
    """The kernel takes one; the step is generated for both."""
    spring = NonlinearJointSpring("m", FORCE)
    rail = replace(mass_on_a_spring(), elements=[spring, spring])
    dsys = midpoint(rail.system, 0.01)
    assert not isinstance(dsys.engine, TreeEngine)
    force = derivative(lambda e: dsys.energy(dsys.state([0.4 + e], [0.0])), 1e-3)
    assert force == pytest.approx(2 * float(FORCE(0.4)), rel=1e-9)


@pytest.mark.parametrize("axes", ["body", "world", "spatial"])
def test_the_generalized_force_of_a_constant_wrench_is_its_power(axes):
    """On two hinges in a row, against power by hand from poses at two neighboring configurations.

    A wrench in the axes of the frame, of the world at the point, and of the world at its origin.
    """
    frames = [revolute("a", axis="y"), revolute("b", "a", axis="x", position=(0.3, 0, -1))]
    at, torque, force = np.array([0.2, -0.1, 0.4]), np.array([1.0, 2, 3]), np.array([-2, 0.5, 1])
    wrench = ConstantWrench(Point("b", at), torque, force, axes)
    bodies = [Body(f, 1.0, (0, 0, -0.5), (0.1, 0.1, 0.1)) for f in "ab"]
    model = Multibody("m", frames, bodies, [wrench])
    q, e = np.array([0.4, -0.7]), 1e-6
    own = model.system.generalized_force(ca.SX(q), ca.SX.zeros(2), ca.SX(0, 1))
    pose = model.pose(q, "b")
    if axes == "body":
        torque, force = pose.rotation @ torque, pose.rotation @ force
    at_point = np.zeros(3) if axes == "spatial" else pose.position + pose.rotation @ at
    for generalized, d in zip(np.asarray(ca.DM(own))[:, 0], np.eye(2)):
        after, before = (model.pose(q + s * e * d, "b") for s in (1, -1))
        spin = (after.rotation - before.rotation) @ pose.rotation.T / (2 * e)
        omega = (
            np.array([spin[2, 1] - spin[1, 2], spin[0, 2] - spin[2, 0], spin[1, 0] - spin[0, 1]])
            / 2
        )
        fixed_in_body = pose.rotation.T @ (at_point - pose.position)
        moved = [p.position + p.rotation @ fixed_in_body for p in (after, before)]
        power = torque @ omega + force @ (moved[0] - moved[1]) / (2 * e)
        assert generalized == pytest.approx(power, abs=1e-8)


def test_a_spatial_wrench_as_an_input_is_the_constant_one():
    """On one hinge."""
    model = Multibody("m", [revolute("a", axis="y")], [Body("a", 1.0, (0, 0, -1))])
    torque, force = (0.3, -1.0, 0.2), (2.0, 0.1, 0.7)
    at = Point("a", (0.1, 0.2, -0.5))
    constant = midpoint(
        replace(model, elements=[ConstantWrench(at, torque, force, "spatial")]).system, 0.1
    )
    varied = midpoint(replace(model, inputs=[Wrench("w", at, "spatial")]).system, 0.1)
    x = constant.state([0.3], [0.2])
    np.testing.assert_allclose(
        constant.step(x), varied.step(x, [*torque, *force]), rtol=0, atol=1e-14
    )


def crane():
    """A trolley, and a hook on a cable over a pulley that is fixed to the world."""
    return Multibody(
        "crane",
        [
            prismatic("trolley", axis="x"),
            fixed("pulley", position=(0.0, 0.0, 2.0)),
            prismatic("x", axis="x"),
            prismatic("hook", "x", axis="z"),
        ],
        [Body("trolley", 3.0), Body("hook", 1.0)],
    )


CABLE = TapeMeasure(("trolley", "pulley", Point("hook", (0, 0, 0.1))))


def test_a_tape_measures_the_line_through_its_points():
    model, q, v = crane(), np.array([1.5, 0.4, -0.3]), np.array([0.2, -1.0, 0.7])
    points = [model.point(q, point) for point in CABLE.points]
    by_hand = sum(np.linalg.norm(b - a) for a, b in zip(points, points[1:]))
    length, rate = CABLE.measure(model, q, v)
    assert length == pytest.approx(by_hand, abs=1e-15)
    along = derivative(lambda e: CABLE.measure(model, q + e * v, v)[0], 1e-3)
    assert rate == pytest.approx(along, abs=1e-12)
    with pytest.raises(ValueError, match="two or more points"):
        TapeMeasure(("hook",))


class Cable(Element):
    """A cable with a nonlinear tension."""

    tension = nh.Spline([0.0, 2.0, 3.0, 5.0], [0.0, 0.0, 40.0, 300.0])

    def potential(self, k):
        return self.tension.antiderivative()(CABLE.length(k))


class Inextensible(Constraint):
    """A cable of 4 m."""

    def residual(self, k):
        return CABLE.length(k) - 4.0


def test_elements_and_constraints_are_made_of_a_tape_and_a_spline():
    model = replace(crane(), elements=[Cable()])
    dsys, rng = midpoint(model.system, 0.02), np.random.default_rng(0)
    x = dsys.state([1.5, 0.4, -1.2], [0.2, -1.0, 0.7])
    assert_derivatives(dsys, x, np.zeros(0), rng, 1e-3)
    tied = replace(crane(), constraints=[Inextensible("cable")])
    q = [1.5, 0.0, 2.0 - (4.0 - 2.5) - 0.1]
    tied_system = midpoint(tied.system, 0.02)
    run = tied_system.simulate(tied_system.state(q, np.zeros(3)), steps=20)
    lengths = [CABLE.measure(tied, x[:3], np.zeros(3))[0] for x in run.states]
    np.testing.assert_allclose(lengths, 4.0, rtol=0, atol=1e-13)
    assert abs(run.states[-1, 0] - 1.5) > 0.1


def test_a_table_of_casadi_in_an_element_is_refused_with_the_remedy():
    table = ca.interpolant("table", "bspline", [KNOTS.tolist()], FORCE(KNOTS).tolist())

    class Tabulated(Element):
        def potential(self, k):
            return table(k.coordinate("m"))

    with pytest.raises(ValueError, match=r"Tabulated calls the function 'table'.*nh\.Spline"):
        replace(mass_on_a_spring(), elements=[Tabulated()])


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: NonlinearJointSpring("m", np.sin), "must be a Spline"),
        (lambda: NonlinearJointSpring("m", FORCE, 0.0), "scale must not be zero"),
        (lambda: ConstantWrench("m", axes="hybrid"), "one of body, world, spatial"),
        (lambda: ConstantWrench("m", force=(1, 2)), "three"),
        (lambda: replace(mass_on_a_spring(), elements=[ConstantWrench("n")]), "unknown frame"),
    ],
)
def test_wrong_elements_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
