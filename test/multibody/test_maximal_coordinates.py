"""Maximal coordinates: joints as constraints, against the same systems in joint coordinates."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from refusals import said
from transforms3d.euler import euler2mat
from transforms3d.quaternions import mat2quat

from nh_control import multibody as mb
from nh_control.integrators import midpoint
from nh_control.mechanics.consistent_states import satisfy_constraints
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.multibody.joint_types import Revolute
from nh_control.systems import linkages

TILT = euler2mat(0.3, -0.8, 0.5)
TENSOR = TILT @ np.diag([0.3, 0.4, 0.2]) @ TILT.T
AXIS = (1.0, -2.0, 0.5)
PITCH = 0.3
JOINTS = {
    "spherical": (mb.spherical, 3),
    "revolute": (mb.revolute, 1, AXIS),
    "prismatic": (mb.prismatic, 1, AXIS),
    "helical": (mb.helical, 1, AXIS),
    "universal": (mb.universal, 2, ("x", (0.2, 1.0, 0.0))),
    "cylindrical": (mb.cylindrical, 2, AXIS),
    "planar": (mb.planar, 3, AXIS),
}
"""Joints, their degrees of freedom, and their axes."""


def joined(kind, name, parent, **where):
    """The frames of a joint of a kind."""
    make, _, *ways = JOINTS[kind]
    where |= {"pitch": PITCH} if kind == "helical" else {}
    made = make(name, parent, *ways, **where)
    return made if isinstance(made, tuple) else (made,)


def chain(kind):
    """Two bodies in a row on joints of a kind, with a spring and a wrench between points."""
    return mb.Multibody(
        f"two_{kind}",
        frames=[
            mb.fixed("wall", position=(0.1, 0.2, 0.3), rotation=TILT),
            *joined(kind, "inner", "wall", position=(0.3, 0.0, 0.1), rotation=TILT.T @ TILT.T),
            mb.fixed("flange", "inner", position=(0.0, 0.2, 0.0), rotation=TILT),
            *joined(kind, "outer", "flange", position=(0.2, 0.1, -0.2)),
        ],
        bodies=[
            mb.Body("inner", 1.5, center=(0.1, 0.0, -0.2), inertia=TENSOR),
            mb.Body("flange", 0.3, center=(0.0, 0.1, 0.0)),
            mb.Body("outer", 0.8, center=(0.0, 0.3, 0.1), inertia=TENSOR / 3),
        ],
        elements=[mb.Spring("wall", mb.Point("outer", (0.1, 0.0, 0.0)), 20.0, rest_length=0.3)],
        inputs=[mb.Wrench("wind", mb.Point("outer", (0.1, 0.2, 0.3)), axes="world")],
    )


def moving(model, seed=3):
    rng = np.random.default_rng(seed)
    space = model.space
    q = space.retract(space.origin, rng.uniform(-0.8, 0.8, space.nv))
    return q, rng.normal(size=space.nw)


def rate_of_transferred_velocity(model, maximal, q, v, u, s=1e-4):
    """V' of the motion in joint coordinates, by a central difference."""
    a = ContinuousSystem(model.system).acceleration(q, v, u)
    space, velocities = model.space, []
    for t in (s, -s):
        there = space.retract(q, t * v + t**2 / 2 * a)
        velocities.append(mb.maximal_state(model, there, v + t * a, maximal)[1])
    return (velocities[0] - velocities[1]) / (2 * s)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.slow) if kind in ("revolute", "spherical") else kind
        for kind in JOINTS
    ],
)
def test_joints_as_constraints_give_the_motion_of_joint_coordinates(kind):
    model = chain(kind)
    maximal = mb.maximal_coordinates(model, {"inner": "SE3", "outer": "SO3xR3"})
    q, v = moving(model)
    q1, v1 = mb.maximal_state(model, q, v, maximal)
    assert (
        maximal.system.n_holonomic_constraints == 12 - 2 * JOINTS[kind][1] == 12 - model.space.nv
    )
    system = maximal.system
    slope = system.value(system.mechanics.holonomic_jacobian(system.symbols[0]), q1)
    assert np.linalg.svd(slope, compute_uv=False)[-1] > 1e-2
    assert max(np.abs(h).max() for h in maximal.constraint_residuals(q1).values()) < 1e-14
    np.testing.assert_allclose(slope @ v1, 0, atol=1e-13)
    for frame in ("inner", "flange", "outer"):
        np.testing.assert_allclose(maximal.point(q1, frame), model.point(q, frame), atol=1e-14)
    u = np.random.default_rng(1).normal(size=6)
    expected = rate_of_transferred_velocity(model, maximal, q, v, u)
    found = ContinuousSystem(system).acceleration(q1, v1, u)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_fixed_joint_and_its_constraint_allow_no_motion():
    weld = mb.JointConstraint(
        "weld", "fixed", mb.Point(mb.WORLD, (1.0, 0.0, 0.0)), "box", rotation=TILT
    )
    model = mb.Multibody(
        "held", [mb.floating("box")], [mb.Body("box", 1.0, inertia=TENSOR)], constraints=[weld]
    )
    q = np.array([*mat2quat(TILT), 1.0, 0.0, 0.0])
    assert np.abs(model.constraint_residuals(q)["weld"]).max() < 1e-14
    slope = model.system.value(
        model.system.mechanics.holonomic_jacobian(model.system.symbols[0]), q
    )
    assert slope.shape == (6, 6) and np.linalg.matrix_rank(slope) == 6


@pytest.mark.parametrize("space", ["SE3", "SO3xR3"])
def test_mass_matrices_are_constant_in_both_spaces(space):
    """Also where a frame's origin is not its centre of mass, and several bodies move with it."""
    system = mb.maximal_coordinates(chain("revolute"), space).system
    q, v, _ = system.symbols
    mass = ca.hessian(system.lagrangian_at(q, v), v)[0]
    assert not ca.depends_on(mass, q)


def test_velocities_are_in_the_axes_of_the_spaces():
    model = linkages.box_top()
    q = np.array([*mat2quat(TILT)])
    omega = np.array([0.3, -1.0, 2.0])
    arm = np.array([0.5, 0.0, 0.0])
    for space, expected in (
        ("SE3", np.cross(omega, arm)),
        ("SO3xR3", TILT @ np.cross(omega, arm)),
    ):
        maximal = mb.maximal_coordinates(model, space)
        q1, v1 = mb.maximal_state(model, q, omega, maximal)
        np.testing.assert_allclose(v1, [*omega, *expected], atol=1e-15)
        np.testing.assert_allclose(q1[4:], TILT @ arm, atol=1e-15)


def test_reactions_carry_the_weight_and_balance_the_motion():
    """Newton's and Euler's equations of every body under the reactions that are reported."""
    model = chain("revolute")
    maximal = mb.maximal_coordinates(model, "SO3xR3")
    q, v = mb.maximal_state(model, *moving(model), maximal)
    u = np.zeros(6)
    a = ContinuousSystem(maximal.system).acceleration(q, v, u)
    reactions = mb.joint_reactions(maximal, q, v, u)
    outer = maximal.spatial_inertias[1]
    spring_at = maximal.point(q, mb.Point("outer", (0.1, 0.0, 0.0)))
    line = maximal.point(q, "wall") - spring_at
    spring = 20.0 * (1 - 0.3 / np.linalg.norm(line)) * line
    force, torque = reactions["outer"]
    expected = outer.mass * (a[9:12] + [0, 0, 9.81]) - spring
    np.testing.assert_allclose(force, expected, atol=1e-10)
    turn, centre = maximal.pose(q, "outer").rotation, maximal.point(q, "outer_center")
    omega = v[6:9]
    moment = outer.inertia @ a[6:9] + np.cross(omega, outer.inertia @ omega)
    expected = turn @ moment - np.cross(spring_at - centre, spring)
    expected -= np.cross(maximal.point(q, "outer") - centre, force)
    np.testing.assert_allclose(torque, expected, atol=1e-10)
    assert abs(torque @ turn @ np.array(AXIS)) < 1e-10  # a free axis takes no torque


def nut(pitch=PITCH):
    """A nut on a vertical screw."""
    body = mb.Body("nut", 2.0, (0.1, 0.0, 0.2), (0.05, 0.04, 0.03))
    return mb.Multibody("screw", [mb.helical("nut", pitch=pitch)], [body])


@pytest.mark.parametrize("space", ["SE3", "SO3xR3"])
@pytest.mark.parametrize("pitch", [PITCH, -PITCH])
def test_a_screw_turns_a_force_along_its_axis_into_a_torque_about_it(space, pitch):
    """In any of its turns: (J + m pitch^2) q'' = -m g pitch, and the reaction has no power."""
    model, inertia = nut(pitch), 0.03 + 2.0 * 0.1**2
    maximal = mb.maximal_coordinates(model, space)
    q, v = mb.maximal_state(model, [40.0], [1.5], maximal)
    assert np.abs(maximal.constraint_residuals(q)["nut"]).max() < 1e-13
    k = maximal.kinematics(ca.SX(q), ca.SX(v))
    assert [float(of("nut")) for of in (k.coordinate, k.rate)] == pytest.approx([40.0, 1.5])
    force, torque = mb.joint_reactions(maximal, q, v)["nut"]
    fall = 9.81 * 2.0 * pitch**2 / (inertia + 2.0 * pitch**2)
    assert force[2] == pytest.approx(2.0 * (9.81 - fall), rel=1e-12)
    assert torque[2] == pytest.approx(-pitch * force[2], rel=1e-12)


def test_the_row_of_a_screw_is_the_displacement_that_its_angle_does_not_explain():
    """Of any turn."""
    maximal = mb.maximal_coordinates(nut(), "SE3")
    for turns in (-3, 0, 7):
        angle = 2 * np.pi * turns + 2.5
        rotation, along = euler2mat(0.0, 0.0, angle), PITCH * angle + 0.01
        center = rotation @ [0.1, 0.0, 0.2] + [0.0, 0.0, along]
        q = np.array([*mat2quat(rotation), *center])
        residual = maximal.constraint_residuals(q)["nut"]
        np.testing.assert_allclose(residual, [0, 0, 0, 0, 0.01], atol=1e-13)


def test_a_helical_joint_without_pitch_is_a_revolute_one():
    (joint,) = mb.maximal_coordinates(nut(0.0)).constraints
    assert joint.kind == "revolute"


def four_bar(kind, axis=(0.0, 1.0, 0.0)):
    """A linkage of three links about y, but for the last one's axis, closed by a pin of a kind."""
    frames = [
        mb.revolute("crank", axis="y"),
        mb.revolute("coupler", "crank", axis="y", position=(0.2, 0.0, 0.0)),
        mb.revolute("rocker", "coupler", axis=axis, position=(0.4, 0.0, 0.0)),
    ]
    bodies = [mb.Body(frame.name, 1.0, inertia=TENSOR) for frame in frames]
    ends = mb.Point(mb.WORLD, (0.5, 0.0, 0.0)), mb.Point("rocker", (0.3, 0.0, 0.0))
    pin = mb.JointConstraint("pin", kind, *ends, axis="y")
    return mb.Multibody("four_bar", frames, bodies, constraints=[pin])


FOLDED = {"crank": 0.4, "coupler": 1.0}


@pytest.mark.parametrize(("kind", "count"), [("revolute", 3), ("spherical", 1)])
def test_a_loop_with_more_rows_than_it_needs_moves_in_maximal_coordinates(kind, count):
    """A plane four-bar linkage: the last pin of the revolute joints need hold two rows only."""
    model = four_bar(kind)
    maximal = mb.maximal_coordinates(model)
    assert maximal.system.n_redundant == count
    closed = satisfy_constraints(model.system, model.configuration(FOLDED))
    q, v = mb.maximal_state(model, closed, model.velocity(), maximal)
    dsys = midpoint(maximal, 1e-3)
    run = dsys.simulate(dsys.state(q, v), np.zeros((100, dsys.nu)))
    end = dsys.configuration(run.states[-1])
    assert np.abs(end - q).max() > 5e-3
    held = maximal.system.value(maximal.system.holonomic(maximal.system.symbols[0]), end)
    np.testing.assert_allclose(held, 0, atol=1e-12)


def test_constraints_that_are_nearly_dependent_are_taken():
    """An axis a thousandth of a radian out of the others' direction."""
    model = four_bar("spherical", axis=(0.0, 1.0, 1e-3))
    start = model.configuration(FOLDED), model.velocity()
    q, v = mb.maximal_state(model, *start, mb.maximal_coordinates(model))
    assert len(q) == 21 and not v.any()


class Own(Revolute):
    """A joint that the package does not know."""


def with_own_joint():
    *frames, last = CHAIN.frames
    return replace(CHAIN, frames=[*frames, replace(last, joint=Own(last.joint.axis))])


def in_a_row(**last):
    """Two joints without a body between them."""
    frames = [mb.revolute("a"), mb.revolute("b", "a", "x", position=(0.0, 0.0, 1.0))]
    return mb.Multibody("two", [*frames, mb.revolute("c", "b", **{"axis": "y"} | last)], BODIES)


def bound(kind, **ways):
    return mb.JointConstraint("c", kind, "inner", "outer", **ways)


CHAIN = chain("revolute")
REFUSED = [
    lambda: mb.maximal_coordinates(CHAIN, "SE2"),
    lambda: mb.maximal_coordinates(CHAIN, {"leg": "SE3"}),
    lambda: mb.floating("x", space="R6"),
    lambda: bound("screw"),
    lambda: bound("universal", axis="x", second_axis="x"),
    lambda: bound("helical"),
    lambda: bound("helical", pitch=np.inf),
    lambda: bound("revolute", pitch=0.1),
    lambda: mb.helical("nut", pitch=np.nan),
    lambda: mb.maximal_coordinates(with_own_joint()),
    lambda: mb.maximal_coordinates(in_a_row(position=(0.0, 0.0, 0.1))),
    lambda: mb.maximal_coordinates(in_a_row(axis="x")),
    lambda: mb.maximal_coordinates(in_a_row(mimic=mb.Mimic("a"))),
]


def test_what_has_no_maximal_coordinates_is_refused(snapshot):
    assert said(REFUSED) == snapshot


BODIES = [mb.Body(name, 1.0, inertia=TENSOR) for name in "ac"]


def test_joints_that_form_a_universal_joint_may_have_a_rotation_between_them():
    turned = {"position": (0.1, 0.3, 0.0), "rotation": euler2mat(0.2, 0.4, -0.9)}
    frames = [
        mb.revolute("a", axis=AXIS, rotation=TILT),
        mb.fixed("flange", "a", position=(0.2, 0.0, 0.1), rotation=TILT),
        mb.revolute("b", "flange", "x", **turned),
        mb.revolute("c", "b", "y", rotation=euler2mat(-0.5, 0.1, 0.7)),
    ]
    model = mb.Multibody("turned", frames, BODIES, gravity=(1.0, -2.0, 3.0))
    maximal = mb.maximal_coordinates(model)
    assert maximal.gravity == model.gravity
    assert maximal.constraints[1].kind == "universal"
    q1, v1 = mb.maximal_state(model, *moving(model), maximal)
    for residual in maximal.constraint_residuals(q1).values():
        assert np.abs(residual).max() < 1e-14
    system = maximal.system
    slope = system.value(system.mechanics.holonomic_jacobian(system.symbols[0]), q1)
    assert np.abs(slope @ v1).max() < 1e-13


def test_springs_dampers_and_inputs_on_joints_are_kept():
    model = mb.Multibody(
        "arm",
        frames=[
            mb.prismatic("slide", axis=AXIS, rotation=TILT),
            mb.revolute("arm", "slide", axis=AXIS, position=(0.2, 0.1, 0.0), coordinate="elbow"),
            mb.helical("nut", "arm", axis=AXIS[::-1], position=(0.1, 0.0, 0.3), pitch=PITCH),
        ],
        bodies=[
            mb.Body("slide", 1.5, center=(0.1, 0.0, -0.2), inertia=TENSOR),
            mb.Body("arm", 0.8, center=(0.0, 0.3, 0.1), inertia=TENSOR / 3),
            mb.Body("nut", 0.5, center=(0.1, 0.2, 0.0), inertia=TENSOR / 4),
        ],
        elements=[
            mb.JointSpring("slide", 30.0, rest=0.2),
            mb.JointSpring("elbow", 2.0, rest=-0.4),
            mb.JointSpring("nut", 1.5, rest=8.6),
            mb.JointDamper("slide", 0.7),
            mb.JointDamper("elbow", 0.3),
            mb.JointDamper("nut", 0.2),
        ],
        inputs=[mb.JointInput("elbow", limit=4.0), mb.JointInput("slide"), mb.JointInput("nut")],
    )
    maximal = mb.maximal_coordinates(model, {"slide": "SO3xR3"})
    inputs = "elbow_torque", "slide_force", "nut_torque"
    assert maximal.system.inputs == model.system.inputs == inputs
    q, v, u = np.array([0.3, -0.5, 9.0]), np.array([0.8, 1.5, -0.6]), np.array([1.2, -3.0, 0.7])
    q1, v1 = mb.maximal_state(model, q, v, maximal)
    k = maximal.kinematics(ca.SX(q1), ca.SX(v1))
    for name, coordinate, rate in zip(("slide", "elbow", "nut"), q, v):
        assert float(k.coordinate(name)) == pytest.approx(coordinate, abs=1e-14)
        assert float(k.rate(name)) == pytest.approx(rate, abs=1e-14)
    expected = rate_of_transferred_velocity(model, maximal, q, v, u)
    found = ContinuousSystem(maximal.system).acceleration(q1, v1, u)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_rate_of_a_prismatic_constraint_is_the_rate_of_its_displacement():
    """There the constraints hold no more than roughly."""
    frames = [mb.revolute("arm", axis=AXIS), mb.prismatic("slide", "arm", axis=AXIS[::-1])]
    bodies = [mb.Body(name, 1.0, (0.1, 0.0, 0.2), TENSOR) for name in ("arm", "slide")]
    model = mb.Multibody("reach", frames, bodies, inputs=[mb.JointInput("slide")])
    maximal = mb.maximal_coordinates(model)
    space, random = maximal.system.space, np.random.default_rng(3)
    q, _ = mb.maximal_state(model, np.array([0.7, 0.3]), np.zeros(2), maximal)
    q, v = space.retract(q, 0.1 * random.normal(size=space.nv)), random.normal(size=space.nv)

    def way(t):
        return float(maximal.kinematics(space.retract(q, t * v), v).coordinate("slide"))

    found = float(maximal.kinematics(q, v).rate("slide"))
    assert found == pytest.approx((way(1e-5) - way(-1e-5)) / 2e-5, rel=1e-8)


def test_coordinates_without_a_constraint_are_refused():
    frames = [mb.spherical("arm"), *mb.cylindrical("hand", "arm", position=(0.3, 0.0, 0.0))]
    bodies = [mb.Body(name, 1.0, inertia=TENSOR) for name in ("arm", "hand")]
    model = mb.Multibody("arm", frames, bodies, elements=[mb.JointDamper("hand", 0.1)])
    with pytest.raises(ValueError, match=r"\['hand'\] cannot mimic, be prescribed or carry"):
        mb.maximal_coordinates(model)
    massless = [mb.revolute("arm"), mb.prismatic("hand", "arm", axis="x")]
    model = mb.Multibody("reach", massless, [mb.Body("hand", 1.0, (0.3, 0.0, 0.0), TENSOR)])
    with pytest.raises(ValueError, match="no body on 'arm', between the joints of"):
        mb.maximal_coordinates(model)
