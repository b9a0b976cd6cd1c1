"""Mechanisms with loops: redundant constraints move as independent ones, rows that say more are
refused, and a step that cannot close its loop says so.
"""

from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from differences import derivative, second_derivative
from linkages import bead, sling
from refusals import refusal
from scipy.linalg import null_space

import nh_control as nh
from nh_control.benchmarks.bricard import bricard
from nh_control.benchmarks.four_bars import linkage
from nh_control.integrators import INTEGRATORS
from nh_control.mechanics.consistent_states import satisfy_constraints
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.multibody import (
    Body,
    Coincident,
    Distance,
    JointConstraint,
    Multibody,
    Point,
    PointOnPlane,
    floating,
    prismatic,
    revolute,
    universal,
)
from nh_control.multibody.maximal import joint_reactions

A, B = Point("coupler", (1.0, 0.0, 0.0)), Point("rocker", (0.0, 0.0, -0.5))


def four_bar(*constraints, base="world"):
    """A parallelogram in the plane x, z of its base, 1 m wide, on cranks of 0.5 m."""
    frames = [
        revolute("crank", base, axis="y"),
        revolute("coupler", "crank", axis="y", position=(0, 0, -0.5)),
        revolute("rocker", base, axis="y", position=(1, 0, 0)),
    ]
    bodies = [
        Body("crank", 1.0, (0, 0, -0.25), (0.03, 0.03, 0.01)),
        Body("coupler", 2.0, (0.5, 0, 0), (0.01, 0.2, 0.2)),
        Body("rocker", 1.0, (0, 0, -0.25), (0.03, 0.03, 0.01)),
    ]
    if base == "hull":
        frames.insert(0, floating("hull", space="SO3xR3"))
        bodies.append(Body("hull", 5.0, inertia=(0.3, 0.3, 0.3)))
    return Multibody("bars", frames, bodies, constraints=constraints)


def windows(hinged):
    """Two coupled four-bars of 1 m, upright at the origin."""
    model = linkage()
    if not hinged:
        return model
    pins = [JointConstraint(p.name, "revolute", p.a, p.b, axis="z") for p in model.constraints]
    return replace(model, constraints=pins)


def stewart(tied):
    """A Stewart platform, 1 m above its base: six legs (universal, prismatic, spherical) that meet
    in pairs at three points of the platform. Where they are `tied`, the legs of a pair end in one
    another as well.
    """
    frames, constraints = [floating("platform", position=(0, 0, 1), space="SO3xR3")], []
    bodies = [Body("platform", 2.0, (0.05, 0.02, 0.1), (0.05, 0.06, 0.09))]
    for i in range(6):
        at, corner = np.pi / 6 * (2 * i + 1), np.pi / 3 * (2 * (i // 2) + 1)
        foot = np.array([np.cos(at), np.sin(at), 0.0])
        end = 0.5 * np.array([np.cos(corner), np.sin(corner), 0.0])
        leg, rod_i, length = f"leg_{i}", f"rod_{i}", np.linalg.norm(end + (0, 0, 1) - foot)
        z = (end + (0, 0, 1) - foot) / length
        x = np.cross((0, 1, 0), z) / np.linalg.norm(np.cross((0, 1, 0), z))
        axes = np.column_stack([x, np.cross(z, x), z])
        frames += universal(leg, position=foot, rotation=axes)
        frames.append(prismatic(rod_i, leg, axis="z", position=(0, 0, length)))
        bodies.append(Body(leg, 0.5, (0, 0, 0.2), (0.01, 0.01, 0.002)))
        bodies.append(Body(rod_i, 0.3, (0, 0, -0.2), (0.01, 0.01, 0.001)))
        constraints.append(Coincident(f"ball_{i}", rod_i, Point("platform", end)))
        if tied and i % 2:
            constraints.append(Coincident(f"pair_{i // 2}", f"rod_{i - 1}", rod_i))
    return Multibody("stewart", frames, bodies, constraints=constraints)


TUMBLING = {0: 1.5, 1: -1.0, 2: 0.8}
MECHANISMS = {
    "four-bar, ball joint": (
        lambda: four_bar(Coincident("pin", A, B)),
        lambda: four_bar(Coincident("pin", A, B, "xz")),
        1,
        {0: 1.0, 1: -1.0, 2: 1.0},
    ),
    "four-bar, hinge": (
        lambda: four_bar(JointConstraint("pin", "revolute", A, B, axis="y")),
        lambda: four_bar(Coincident("pin", A, B, "xz")),
        3,
        {0: 1.0, 1: -1.0, 2: 1.0},
    ),
    "four-bar that tumbles, ball joint": (
        lambda: four_bar(Coincident("pin", A, B), base="hull"),
        lambda: four_bar(
            PointOnPlane("pin_x", A, B, "x"), PointOnPlane("pin_z", A, B, "z"), base="hull"
        ),
        1,
        TUMBLING,
    ),
    "four-bar, a rod beside its pin": (
        lambda: four_bar(
            Coincident("pin", A, B, "xz"), Distance("rod", "crank", Point("crank", (0, 1, 0)), 1.0)
        ),
        lambda: four_bar(Coincident("pin", A, B, "xz")),
        1,
        {0: 1.0, 1: -1.0, 2: 1.0},
    ),
    "Bricard": (
        lambda: bricard("revolute"),
        lambda: bricard("cylindrical"),
        1,
        {},
    ),
    "Stewart platform": (lambda: stewart(True), lambda: stewart(False), 9, {}),
}
LARGE = "Bricard", "Stewart platform"
"""Whose generated equations take long to make."""
STEPS = {"Stewart platform": 40}
"""Steps of 0.01 s until it falls through its base."""


@cache
def models(mechanism):
    redundant, independent, count, rates = MECHANISMS[mechanism]
    return redundant(), independent(), count, rates


def start(model, rates):
    q = np.array(model.space.origin)
    v = np.zeros(model.space.nw)
    for place, rate in rates.items():
        v[place] = rate
    return q, v


@pytest.mark.parametrize(
    "mechanism, kernel",
    [
        pytest.param(name, kernel, marks=[pytest.mark.slow] * (name in LARGE and not kernel))
        for name in MECHANISMS
        for kernel in (True, False)
    ],
)
def test_a_mechanism_moves_as_with_an_independent_subset(mechanism, kernel):
    """Motion, velocities, A along the constraints, and the forces of the constraints."""
    *pair, count, rates = models(mechanism)
    systems = [model if kernel else replace(model.system, name="generated") for model in pair]
    h, steps = 0.01, STEPS.get(mechanism, 150)
    ours, other = (nh.midpoint(system, h) for system in systems)
    assert [dsys.system.n_redundant for dsys in (ours, other)] == [count, 0]
    q, v = start(pair[0], rates)
    runs = [dsys.simulate(dsys.state(q, v), np.zeros((steps, 0))).states for dsys in (ours, other)]
    (q1, v1), (q2, v2) = ((d.configuration(x), d.velocity(x)) for d, x in zip((ours, other), runs))
    np.testing.assert_allclose(q1, q2, rtol=0, atol=1e-10)
    np.testing.assert_allclose(v1, v2, rtol=0, atol=1e-9)
    slopes, forces, columns = [], [], []
    for dsys, x in zip((ours, other), (run[steps // 2] for run in runs)):
        system = dsys.system
        slopes.append(
            system.value(
                system.mechanics.holonomic_jacobian(system.symbols[0]), dsys.configuration(x)
            )
        )
        forces.append(slopes[-1].T @ dsys.multipliers(x))
        columns.append(dsys.linearize(x).A[: system.space.nv, : system.space.nv])
    along = null_space(slopes[1])
    np.testing.assert_allclose(forces[0], forces[1], rtol=0, atol=1e-10)
    np.testing.assert_allclose(columns[0] @ along, columns[1] @ along, rtol=0, atol=1e-10)
    acceleration = [ContinuousSystem(d.system).acceleration(q, v) for d in (ours, other)]
    np.testing.assert_allclose(*acceleration, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kernel", (True, False), ids=("kernel", "generated"))
@pytest.mark.parametrize("mechanism", ["four-bar that tumbles, ball joint", "Bricard"])
def test_derivatives_of_a_step_are_exact(mechanism, kernel):
    model, _, _, rates = models(mechanism)
    dsys = nh.midpoint(model if kernel else replace(model.system, name="generated"), 0.01)
    x = dsys.simulate(dsys.state(*start(model, rates)), np.zeros((20, 0))).states[-1]
    lin, rng = dsys.linearize(x), np.random.default_rng(0)
    lam, d = rng.normal(size=dsys.ndx), rng.normal(size=dsys.ndx)
    moved = lambda t: dsys.local(lin.x1, dsys.step(dsys.retract(x, t * d)))
    found = derivative(moved, 1e-3)
    np.testing.assert_allclose(lin.A @ d, found, rtol=0, atol=1e-8 * np.abs(found).max())
    bent = second_derivative(lambda t: lam @ moved(t), 4e-3)
    assert d @ dsys.hessian(x, (), lam) @ d == pytest.approx(bent, rel=1e-6)


def test_a_parallelogram_passes_its_stretched_positions():
    """Constraints lose rank there, nine times. It stays a parallelogram and keeps its energy."""
    dsys = nh.midpoint(models("four-bar, hinge")[0], 0.003)
    run = dsys.simulate(dsys.state(np.zeros(3), [12.0, -12.0, 12.0]), np.zeros((1000, 0)))
    assert run.states[-1, 0] > 9 * np.pi
    np.testing.assert_allclose(run.states[:, 0] + run.states[:, 1], 0, atol=1e-9)
    assert np.ptp(dsys.energies(run.states)) < 1e-4 * dsys.energy(run.states[0])


@pytest.mark.parametrize(
    "kernel", (True, pytest.param(False, marks=pytest.mark.slow)), ids=("kernel", "generated")
)
def test_coupled_four_bars_pass_the_positions_where_all_rods_are_aligned(kernel):
    """Ten half turns, in each of which constraints lose rank, as with independent rows."""
    q, signs, ends = np.zeros(5), np.array([1.0, 1.0, 1.0, -1.0, -1.0]), []
    for hinged in (True, False):
        model = windows(hinged)
        dsys = nh.midpoint(model if kernel else replace(model.system, name="generated"), 0.002)
        run = dsys.simulate(dsys.state(q, signs), np.zeros((500, 0)), every=10).states
        assert dsys.system.n_redundant == (6 if hinged else 0) and run[-1, 0] > 10 * np.pi
        np.testing.assert_allclose(run[:, :5] * signs, run[:, :1] * np.ones(5), atol=1e-9)
        assert np.ptp(dsys.energies(run)) < 1e-3
        ends.append(run[:, :5])
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-9)


def test_reactions_are_those_of_least_norm():
    model = models("four-bar, hinge")[0]
    q, v = np.zeros(3), np.array([1.0, -1.0, 1.0])
    system = model.system
    lam = ContinuousSystem(system).multipliers(q, v)
    slopes = system.value(system.mechanics.holonomic_jacobian(system.symbols[0]), q)
    np.testing.assert_allclose(null_space(slopes.T).T @ lam, 0, atol=1e-12)
    force, torque = joint_reactions(model, q, v)["pin"]
    assert np.abs(force[[0, 2]]).max() > 1 and abs(force[1]) <= 1e-12
    np.testing.assert_allclose(torque, 0, atol=1e-12)


def ring(**fields):
    return nh.System("ring", nh.Rn("x", "y", "z", "t"), lambda q, v: ca.sumsqr(v) / 2, **fields)


def test_rows_that_say_more_than_the_others_are_refused_by_name(snapshot):
    """Flat rows, and such that a velocity constraint or prescribed coordinates hold."""
    across, length = lambda q: ca.horzcat(1, -2, 0, 0), lambda q: ca.sumsqr(q[:2]) - 1
    beside = lambda q: ca.vertcat(q[2], q[0] - 2 * q[1] - 1)
    wrong = (
        {"holonomic_constraint": lambda q: length(q) ** 2},
        {"holonomic_constraint": lambda q: q[1] ** 2},
        {"velocity_constraint": across, "holonomic_constraint": beside},
        {"prescribed": ("t",), "holonomic_constraint": lambda q: ca.vertcat(length(q), q[3] - 1)},
    )
    assert [refusal(lambda: ring(**fields)) for fields in wrong] == snapshot


@pytest.mark.parametrize(
    "rows, count",
    [
        (lambda q: ca.vertcat(ca.sumsqr(q[:2]) - 1, ca.sumsqr(q[:2]) - 1), 1),
        (lambda q: ca.vertcat(ca.sumsqr(q[:2]) - 1, q[2], 1e3 * (ca.sumsqr(q[:2]) - 1)), 1),
        (lambda q: ca.vertcat(ca.sumsqr(q[:2]) - 1, q[2], ca.sumsqr(q[:3]) - 1), 1),
        (lambda q: ca.vertcat(0 * q[0], ca.sumsqr(q[:2]) - 1), 1),
        (lambda q: ca.vertcat(ca.sumsqr(q[:2]) - 1, q[2]), 0),
    ],
)
def test_rows_that_follow_from_others_are_counted(rows, count):
    system = ring(holonomic_constraint=rows)
    assert system.n_redundant == count
    assert (f"({count} redundant)" in repr(system)) == bool(count)


@pytest.mark.parametrize("method", ["rkmk4", "cf4", "gni_implicit", "spark_2", "gonzalez"])
def test_a_method_that_needs_independent_constraints_refuses_redundant_ones(method):
    system = models("four-bar, hinge")[0].system
    assert "redundant" in INTEGRATORS[method].reason(system)
    with pytest.raises(ValueError, match="redundant"):
        INTEGRATORS[method].make(system, 0.1)


@pytest.mark.parametrize("tilt", (0.1, 1e-5, 1e-7, 0.0))
def test_a_loss_of_rank_at_a_single_configuration_is_no_redundancy(tilt):
    """A plane that touches a sphere, in one point for a tilt of 0."""
    assert bead(tilt).n_redundant == 0


def test_the_crossing_of_two_branches_is_accepted():
    """Of `y (y - x) = 0`, at the nominal configuration."""
    system = nh.System(
        "crossing",
        nh.Rn("x", "y"),
        lambda q, v: ca.sumsqr(v) / 2,
        holonomic_constraint=lambda q: q[1] * (q[1] - q[0]),
    )
    model = nh.midpoint(system, 0.01)
    np.testing.assert_allclose(
        model.configuration(model.step(model.measured_state([1.0, 0.0], [2.0, 0.0]))), [1.02, 0]
    )


# Loops that lock ---------------------------------------------------------------------------------


ENGINES = pytest.mark.parametrize("kernel", (True, False), ids=("kernel", "generated"))


def driven_four_bar(crank, coupler, rocker):
    """A four-bar on a ground of 1 m, whose crank is driven; it hangs down at 0."""
    lengths = {"crank": crank, "coupler": coupler, "rocker": rocker}
    frames = [
        revolute("crank", axis="y"),
        revolute("coupler", "crank", axis="y", position=(0, 0, -crank)),
        revolute("rocker", axis="y", position=(1.0, 0, 0)),
    ]
    bodies = [
        Body(name, 1.0, (0, 0, -length / 2), (0.03, 0.03, 0.01))
        for name, length in lengths.items()
    ]
    ends = Point("coupler", (0, 0, -coupler)), Point("rocker", (0, 0, -rocker))
    pin = JointConstraint("pin", "revolute", *ends, axis="y")
    return Multibody("four_bar", frames, bodies, constraints=[pin], prescribed=["crank"])


def driven(model, kernel, start, rate):
    """Its steps, the state at the crank angle `start`, and inputs that turn the crank."""
    dsys = nh.midpoint(model if kernel else replace(model.system, name="generated"), 0.01)
    q = satisfy_constraints(dsys.system, [-1.0, 0.3, start])
    angles = start + rate * dsys.h * np.arange(1, 501)
    return dsys, dsys.measured_state(q, np.zeros(3)), angles[:, None]


@ENGINES
@pytest.mark.parametrize("rate", (2.0, -2.0))
def test_a_crank_turns_through_the_stretched_positions_of_its_rocker(kernel, rate):
    """A crank and rocker of Grashof: crank and coupler are aligned twice in a turn."""
    dsys, x, angles = driven(driven_four_bar(0.3, 0.9, 0.7), kernel, 0.0, rate)
    run = dsys.simulate(x, angles).states
    assert abs(run[-1, 2]) > 3 * np.pi
    opened = [dsys.system.mechanics.consistency(q, [])[0] for q in dsys.configuration(run[::50])]
    np.testing.assert_allclose(np.array(opened), 0, atol=1e-10)


@ENGINES
@pytest.mark.parametrize("rate", (2.0, -2.0))
def test_a_crank_that_drives_its_four_bar_into_a_dead_point_locks(kernel, rate):
    """At `2 asin(0.6)` the crank reaches as far as coupler and rocker together, 1.2 m."""
    dsys, x, angles = driven(driven_four_bar(1.0, 0.6, 0.6), kernel, -0.9, rate)
    with pytest.raises(nh.StepFailed, match="the mechanism is locked at crank = ") as failed:
        dsys.simulate(x, angles)
    dead = -np.pi / 2 + np.sign(rate) * 2 * np.arcsin(0.6)
    step = failed.value.step
    assert (angles[step - 1, 0] - dead) * rate < 0 < (angles[step, 0] - dead) * rate
    message = str(failed.value)
    assert f"at step {step} (t = {step * 0.01:g} s): the loop cannot close" in message
    assert ("JointConstraint 'pin'" if kernel else "of holonomic_constraint") in message
    assert message.endswith("change lengths so that the loop closes")


def test_a_failure_of_a_loop_that_closes_has_no_such_sentence():
    """A sling whose hand leaps away faster than the mass can follow along one line."""
    dsys = nh.midpoint(sling(), 0.1)
    x = dsys.measured_state([0.0, -0.5, 0.0, 0.0, 0.0], [100.0, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises(nh.StepFailed) as failed:
        dsys.step(x, [0.1, 0.0, 0.0])
    assert "cannot close" not in str(failed.value)


def test_a_triangle_that_is_stretched_says_at_which_length():
    """Two unit rods on a ground of 1.5 m, whose ends an actuator drives apart: to 3.5 m."""
    plant = nh.System(
        "triangle",
        nh.Rn("left", "right", "length"),
        lambda q, v: ca.sumsqr(v) / 2,
        holonomic_constraint=lambda q: (
            (1.5 + ca.sin(q[1]) - ca.sin(q[0])) ** 2
            + (ca.cos(q[1]) - ca.cos(q[0])) ** 2
            - (1.5 + q[2]) ** 2
        ),
        prescribed=("length",),
    )
    dsys = nh.midpoint(plant, 0.01)
    x = dsys.measured_state(np.zeros(3), [0.0, 0.0, 1.0])
    with pytest.raises(nh.StepFailed, match="locked at length = 2.01: .*rows .0.") as failed:
        dsys.simulate(x, 0.01 * np.arange(1, 400)[:, None])
    assert failed.value.step == 200


@ENGINES
def test_a_triangle_whose_sides_do_not_meet_says_which(kernel):
    """Rods of 1 m on a ground of 1.5 m, whose ends a third rod shall keep 4 m apart."""
    frames = [revolute("left", axis="y"), revolute("right", axis="y", position=(1.5, 0, 0))]
    bodies = [Body(name, 1.0, (0, 0, 0.5), (0.1, 0.1, 0.01)) for name in ("left", "right")]
    side = Distance("side", Point("left", (0, 0, 1)), Point("right", (0, 0, 1)), 4.0)
    model = Multibody("triangle", frames, bodies, constraints=[side])
    dsys = nh.midpoint(model if kernel else replace(model.system, name="generated"), 0.01)
    with pytest.raises(nh.StepFailed, match="cannot close, no configuration nearby") as failed:
        dsys.step(dsys.measured_state([0.0, 0.0], [0.0, 0.0]))
    assert ("Distance 'side'" if kernel else "of holonomic_constraint") in str(failed.value)
