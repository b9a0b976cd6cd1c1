"""Elements of joints and bodies against laws by hand: springs by splines, dry friction, constant
wrenches, lengths of lines through points, and masses that are scaled.
"""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from differences import derivative
from random_trees import assert_derivatives
from refusals import said
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

import nh_control as nh
from nh_control import multibody as mb
from nh_control.integrators import midpoint
from nh_control.multibody.constraints import Constraint

KNOTS = np.array([-2.0, -0.9, -0.3, 0.1, 0.8, 1.7])
FORCE = nh.Spline(KNOTS, [-30.0, -6.0, -2.0, 0.4, 9.0, 40.0], slopes=[9.0, *[np.nan] * 5])
SPRING = mb.NonlinearJointSpring("m", FORCE, 1.5, -0.2)


def rail(*elements):
    """A mass of 2 kg on a rail."""
    return mb.Multibody("rail", [mb.prismatic("m", axis="x")], [mb.Body("m", 2.0)], elements)


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
        dsys = midpoint(rail(SPRING).system, t / steps)
        run = dsys.simulate(dsys.state([1.5], [0.3]), steps=steps)
        errors.append(run.states[-1] - [exact[0], 2.0 * exact[1]])
    assert np.abs(errors[1]).max() < 2e-3
    np.testing.assert_allclose(errors[0], 4 * np.array(errors[1]), rtol=0.1)
    assert np.ptp(run.states[:, 0]) > 2.0


@pytest.mark.parametrize("count", [1, 2])
def test_the_energy_of_nonlinear_springs_is_the_integral_of_their_forces(count):
    dsys = midpoint(rail(*[SPRING] * count).system, 0.01)
    for q in (-2.0, 0.4, 1.9):
        slope = derivative(lambda e, q=q: dsys.energy(dsys.state([q + e], [0.0])), 1e-3)
        assert slope == pytest.approx(count * float(FORCE(1.5 * q - 0.2)), rel=1e-9)


@pytest.mark.parametrize("axes", ["body", "world", "spatial"])
def test_the_generalized_force_of_a_constant_wrench_is_its_power(axes):
    """On two hinges in a row, against power by hand from poses at two near configurations."""
    frames = [mb.revolute("a", axis="y"), mb.revolute("b", "a", axis="x", position=(0.3, 0, -1))]
    at, torque, force = np.array([0.2, -0.1, 0.4]), np.array([1.0, 2, 3]), np.array([-2, 0.5, 1])
    wrench = mb.ConstantWrench(mb.Point("b", at), torque, force, axes)
    bodies = [mb.Body(f, 1.0, (0, 0, -0.5), (0.1, 0.1, 0.1)) for f in "ab"]
    model = mb.Multibody("m", frames, bodies, [wrench])
    q, e = np.array([0.4, -0.7]), 1e-6
    own = model.system.generalized_force(ca.SX(q), ca.SX.zeros(2), ca.SX(0, 1))
    varied = mb.Multibody("m", frames, bodies, inputs=[mb.Wrench("w", mb.Point("b", at), axes)])
    same = varied.system.generalized_force(ca.SX(q), ca.SX.zeros(2), ca.DM([*torque, *force]))
    np.testing.assert_allclose(ca.DM(own), ca.DM(same), rtol=0, atol=1e-14)
    pose = model.pose(q, "b")
    if axes == "body":
        torque, force = pose.rotation @ torque, pose.rotation @ force
    at_point = np.zeros(3) if axes == "spatial" else pose.position + pose.rotation @ at
    for generalized, d in zip(np.asarray(ca.DM(own))[:, 0], np.eye(2)):
        after, before = (model.pose(q + s * e * d, "b") for s in (1, -1))
        spin = (after.rotation - before.rotation) @ pose.rotation.T / (2 * e)
        omega = [spin[2, 1] - spin[1, 2], spin[0, 2] - spin[2, 0], spin[1, 0] - spin[0, 1]]
        fixed_in_body = pose.rotation.T @ (at_point - pose.position)
        moved = [p.position + p.rotation @ fixed_in_body for p in (after, before)]
        power = torque @ np.array(omega) / 2 + force @ (moved[0] - moved[1]) / (2 * e)
        assert generalized == pytest.approx(power, abs=1e-8)


def crane():
    """A trolley, and a hook on a cable over a pulley that is fixed to the world."""
    frames = [
        mb.prismatic("trolley", axis="x"),
        mb.fixed("pulley", position=(0.0, 0.0, 2.0)),
        mb.prismatic("x", axis="x"),
        mb.prismatic("hook", "x", axis="z"),
    ]
    return mb.Multibody("crane", frames, [mb.Body("trolley", 3.0), mb.Body("hook", 1.0)])


CABLE = mb.TapeMeasure(("trolley", "pulley", mb.Point("hook", (0, 0, 0.1))))


def test_a_tape_measures_the_line_through_its_points():
    model, q, v = crane(), np.array([1.5, 0.4, -0.3]), np.array([0.2, -1.0, 0.7])
    points = [model.point(q, point) for point in CABLE.points]
    by_hand = sum(np.linalg.norm(b - a) for a, b in zip(points, points[1:]))
    length, rate = CABLE.measure(model, q, v)
    assert length == pytest.approx(by_hand, abs=1e-15)
    along = derivative(lambda e: CABLE.measure(model, q + e * v, v)[0], 1e-3)
    assert rate == pytest.approx(along, abs=1e-12)


class Cable(mb.Element):
    """A cable with a nonlinear tension."""

    tension = nh.Spline([0.0, 2.0, 3.0, 5.0], [0.0, 0.0, 40.0, 300.0])

    def potential(self, k):
        return self.tension.antiderivative()(CABLE.length(k))


class Inextensible(Constraint):
    """A cable of 4 m."""

    def residual(self, k):
        return CABLE.length(k) - 4.0


def test_elements_and_constraints_are_made_of_a_tape_and_a_spline():
    dsys = midpoint(replace(crane(), elements=[Cable()]).system, 0.02)
    x = dsys.state([1.5, 0.4, -1.2], [0.2, -1.0, 0.7])
    assert_derivatives(dsys, x, np.zeros(0), np.random.default_rng(0), 1e-3)
    tied = replace(crane(), constraints=[Inextensible("cable")])
    dsys = midpoint(tied.system, 0.02)
    run = dsys.simulate(dsys.state([1.5, 0.0, 2.0 - (4.0 - 2.5) - 0.1], np.zeros(3)), steps=20)
    lengths = [CABLE.measure(tied, x[:3], np.zeros(3))[0] for x in run.states]
    np.testing.assert_allclose(lengths, 4.0, rtol=0, atol=1e-13)
    assert abs(run.states[-1, 0] - 1.5) > 0.1


class Tabulated(mb.Element):
    table = ca.interpolant("table", "bspline", [KNOTS.tolist()], FORCE(KNOTS).tolist())

    def potential(self, k):
        return self.table(k.coordinate("m"))


MASS, FRICTION, SMOOTH = 2.0, 3.0, 0.1
LINK = """<link name="{}"><inertial><mass value="2"/>
<inertia ixx="0.3" ixy="0" ixz="0" iyy="0.3" iyz="0" izz="0.3"/></inertial></link>"""
GRIPPER = f"""<robot name="gripper"><link name="base"/>{LINK.format("a")}{LINK.format("b")}
<joint name="lead" type="continuous"><parent link="base"/><child link="a"/>
<dynamics friction="0.5"/></joint>
<joint name="follow" type="continuous"><parent link="base"/><child link="b"/>
<mimic joint="lead" multiplier="-2"/><dynamics friction="0.25" damping="0.1"/></joint></robot>"""


def sled(*frictions, **options):
    """A mass whose joint has friction of these coefficients and smoothings."""
    frictions = [mb.JointFriction("sled", *f) for f in frictions or [(FRICTION, SMOOTH)]]
    frames, bodies, inputs = (
        [mb.prismatic("sled")],
        [mb.Body("sled", MASS)],
        [mb.JointInput("sled")],
    )
    return mb.Multibody("sled", frames, bodies, frictions, inputs, **options)


def test_a_sled_stops_after_the_distance_of_the_law():
    """M v dv/dx = -F v / sqrt(v^2 + s^2), so x = M/F times the integral of sqrt(v^2 + s^2)."""
    v = 1.5
    root = np.hypot(v, SMOOTH)
    expected = MASS / FRICTION / 2 * (v * root + SMOOTH**2 * np.arcsinh(v / SMOOTH))
    errors, coarse = [], midpoint(sled().system, 0.04)
    for h in (0.04, 0.02, 0.01):
        model = coarse.with_step(h)
        run = model.simulate(model.state([0.0], [v]), np.zeros((round(4.0 / h), 1)))
        assert np.abs(run.velocities[-1]).max() <= 1e-6
        errors.append(abs(run.states[-1, 0] - expected))
    assert errors[-1] <= 1e-5 and errors[0] / errors[1] > 3.5 and errors[1] / errors[2] > 3.5


def test_a_push_below_friction_creeps_and_one_above_accelerates():
    """At F v / sqrt(v^2 + s^2) = push, v = s push / sqrt(F^2 - push^2)."""
    model, push = midpoint(sled().system, 0.01), 0.8 * FRICTION
    run = model.simulate(model.state([0.0], [0.0]), np.full((800, 1), push))
    creep = SMOOTH * push / np.sqrt(FRICTION**2 - push**2)
    np.testing.assert_allclose(run.velocities[-1], creep, rtol=1e-6)
    run = model.simulate(model.state([0.0], [0.0]), np.full((800, 1), 2 * FRICTION))
    np.testing.assert_allclose(run.velocities[-1], 8.0 * FRICTION / MASS, rtol=0.02)


@pytest.mark.parametrize("part, turns_back", [(0.99, False), (4.0, True)])
def test_a_step_turns_a_slow_joint_back_only_beyond_the_bound(part, turns_back):
    for forcing, back in (("symmetric", turns_back), ("left", False)):
        model = midpoint(sled().system, part * 2 * MASS * SMOOTH / FRICTION, forcing)
        run = model.simulate(model.state([0.0], [1e-3]), np.zeros((40, 1)))
        assert bool((run.velocities < 0).any()) == back
        assert back != turns_back or abs(run.velocities[-1, 0]) < 1e-4


def test_friction_of_a_file_acts_and_that_of_a_mimic_on_the_joint_it_follows():
    model = mb.load_urdf(GRIPPER, friction_velocity=0.2)
    (friction,) = (e for e in model.elements if isinstance(e, mb.JointFriction))
    assert friction == mb.JointFriction("lead", 1.0, 0.2)
    robot, rest = mb.Robot(model), mb.Robot(mb.load_urdf(GRIPPER.replace("friction=", "rough=")))
    state = [0.3], [0.4], [0.0]
    more = robot.inverse_dynamics(*state) - rest.inverse_dynamics(*state)
    np.testing.assert_allclose(more, 0.4 / np.hypot(0.4, 0.2), rtol=1e-12)


def test_two_frictions_of_one_joint_add_up():
    """By generated equations: the kernel has one velocity for every joint."""
    halves = [(FRICTION / 2, smooth) for smooth in (SMOOTH, 2 * SMOOTH)]
    model = midpoint(sled(*halves).system, 0.01)
    force = -sum(f / np.hypot(1, smooth) for f, smooth in halves)
    x = model.step(model.state([0.0], [1.0]), [0.0])
    np.testing.assert_allclose(x[1] / MASS, 1.0 + 0.01 * force / MASS, rtol=1e-5)


def test_scaled_masses_are_those_of_every_function():
    heavy = sled(mass_scale=1.5)
    np.testing.assert_allclose(heavy.mass_matrix([0.0]), [[1.5 * MASS]])
    changed = midpoint(sled(parameters=("mass_scale",)).system, 0.01)
    changed = changed.with_parameters(mass_scale=1.5)
    x = changed.state([0.0], [0.7])
    np.testing.assert_allclose(x[1], 1.5 * MASS * 0.7)
    expected = midpoint(heavy.system, 0.01).step(x, [2.0])
    np.testing.assert_array_equal(changed.step(x, [2.0]), expected)


def changed_scale(scale):
    return midpoint(sled(parameters=("mass_scale",)).system, 0.01).with_parameters(
        mass_scale=scale
    )


WRONG = [
    lambda: mb.NonlinearJointSpring("m", np.sin),
    lambda: mb.NonlinearJointSpring("m", FORCE, 0.0),
    lambda: mb.ConstantWrench("m", axes="hybrid"),
    lambda: mb.ConstantWrench("m", force=(1, 2)),
    lambda: rail(mb.ConstantWrench("n")),
    lambda: rail(Tabulated()),
    lambda: mb.TapeMeasure(("hook",)),
    lambda: sled((-1.0, 0.1)),
    lambda: sled((1.0, 0.0)),
    lambda: sled((np.nan, 0.1)),
    *(
        lambda make=make, scale=scale: make(scale)
        for make in (changed_scale, lambda scale: sled(mass_scale=scale))
        for scale in (0.0, -1.0, np.inf)
    ),
]


def test_wrong_elements_are_refused(snapshot):
    assert said(WRONG) == snapshot
