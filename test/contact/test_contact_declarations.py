"""What contacts are declared as, and what is refused, by name and with the remedy."""

import casadi as ca
import numpy as np
import pytest
from bodies import ball, body, box, gripped_snakeboard, point

import nh_control as nh
from nh_control.integrators import INTEGRATORS
from nh_control.multibody import Body, floating


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"friction": -1.0}, "friction must be >= 0"),
        ({"friction": float("nan")}, "friction must be"),
        ({"restitution": 1.5}, "restitution must be from 0 to 1"),
        ({"friction": 0.5}, "point\\(q\\).*or slip\\(q\\)"),
    ],
)
def test_a_unilateral_constraint_names_what_is_wrong(options, remedy):
    with pytest.raises(ValueError, match=remedy):
        nh.UnilateralConstraint("floor", gap=lambda q: q[1], **options)


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"gap": lambda q: q}, "gap\\(q\\) must be one number"),
        ({"point": lambda q: q.T, "friction": 0.1}, "point\\(q\\) must have shape"),
        ({"slip": lambda q: ca.SX(1, 3), "friction": 0.1}, "slip\\(q\\) must have shape"),
    ],
)
def test_shapes_of_a_systems_contacts_are_checked(options, remedy):
    given = {"gap": lambda q: q[1], **options}
    with pytest.raises(ValueError, match=remedy):
        nh.System(
            "point",
            nh.Rn("x", "z"),
            lambda q, v: ca.sumsqr(v) / 2,
            contacts=(nh.UnilateralConstraint("floor", **given),),
        )


def test_contacts_have_no_friction_and_no_restitution_unless_told():
    plain = nh.UnilateralConstraint("floor", gap=lambda q: q[1])
    assert (plain.friction, plain.restitution, plain.surface_velocity) == (0.0, 0.0, ())


@pytest.mark.parametrize("rows", [(), (0, 1, 2), (0, 0), (-1,)])
def test_a_grip_has_one_or_two_rows(rows):
    with pytest.raises(ValueError, match="one or two different rows"):
        nh.Grip(rows, load=1.0, friction=0.5)


@pytest.mark.parametrize(
    ("grips", "remedy"),
    [
        ((nh.Grip((2,), 1.0, 0.5),), "has 2 rows"),
        ((nh.Grip((0,), 1.0, 0.5), nh.Grip((0, 1), 1.0, 0.5)), "same row"),
    ],
)
def test_grips_hold_rows_that_there_are(grips, remedy):
    from dataclasses import replace

    with pytest.raises(ValueError, match=remedy):
        replace(nh.systems.snakeboard(), grips=grips)


def test_gripped_rows_leave_the_momenta_whole():
    system = gripped_snakeboard(1.0).system
    assert system.n_velocity_constraints == 0 and system.nrho == 5


@pytest.mark.parametrize("smoothing", [0.0, -1.0, np.inf])
def test_the_smoothing_is_positive(smoothing):
    with pytest.raises(ValueError, match="smoothing.*positive"):
        point(0.1, 0.5).with_smoothing(smoothing)


KNOWING = ("midpoint", "nonholonomic_midpoint")


@pytest.mark.parametrize("name", KNOWING)
def test_two_integrators_take_contacts(name):
    assert INTEGRATORS[name].takes(ball().system)


@pytest.mark.parametrize("name", [name for name in INTEGRATORS if name not in KNOWING])
def test_other_integrators_refuse_contacts(name):
    system = ball().system
    assert not INTEGRATORS[name].takes(system)
    with pytest.raises(ValueError, match="contacts"):
        INTEGRATORS[name](system, 0.01)


def test_a_method_made_directly_refuses_contacts_too():
    with pytest.raises(ValueError, match="use midpoint"):
        INTEGRATORS["rk4"].make(ball().system, 0.01)


def test_forces_need_contacts():
    free = nh.midpoint(nh.systems.pendulum(), 0.01)
    with pytest.raises(ValueError, match="declares no contacts"):
        nh.contact_forces(free, free.state([0.1], [0]), [0])


@pytest.mark.parametrize(
    ("made", "remedy"),
    [
        (lambda: nh.Sphere(0.0), "radius must be positive"),
        (lambda: nh.BoxCorners((1, -1, 1)), "size must be positive"),
        (lambda: nh.Plane(surface_velocity=(0, 0, 1)), "must lie in the plane"),
        (lambda: nh.Contact("body", shape="mesh.stl"), "meshes are not known"),
        (lambda: body(nh.Sphere(0.1), friction=-0.1), "friction must be"),
    ],
)
def test_shapes_and_grounds_are_checked(made, remedy):
    with pytest.raises(ValueError, match=remedy):
        made()


def test_contacts_name_known_frames_and_differ():
    def model(*contacts):
        return nh.Multibody(
            "two", [floating("a")], [Body("a", 1.0, inertia=(1, 1, 1))], contacts=contacts
        )

    with pytest.raises(ValueError, match="unknown frame"):
        model(nh.Contact("b", nh.Sphere(0.1)))
    with pytest.raises(ValueError, match="names of contacts must differ"):
        model(nh.Contact("a", nh.Sphere(0.1)), nh.Contact("a", nh.Corner()))


def test_a_plane_and_a_flat_height_field_are_the_same_ground():
    runs = []
    for ground in (nh.Plane(), nh.HeightField(lambda x, y: 0 * x)):
        dsys = body(nh.Sphere(0.1), ground=ground)
        x = dsys.state([1, 0, 0, 0, 0, 0, 0.12], [0, 3, 1, 1, 0, 0])
        runs.append(dsys.simulate(x, steps=30).states)
    assert runs[0] == pytest.approx(runs[1], abs=1e-9)


def test_a_ball_rolls_down_a_tilted_plane_and_its_height_field():
    slope, ends = 0.3, []
    tilted = nh.Plane((-np.sin(slope), 0, np.cos(slope)))
    for ground in (tilted, nh.HeightField(lambda x, y: np.tan(slope) * x)):
        dsys = body(nh.Sphere(0.1), friction=1.0, ground=ground)
        start = 0.1 * np.array([-np.sin(slope), 0, np.cos(slope)]) * (1 + 1e-7)
        x = dsys.state([1, 0, 0, 0, *start], np.zeros(6))
        ends.append(dsys.simulate(x, steps=50).states[-1, 4:7])
    moved = 9.81 * np.sin(slope) * 5 / 14 * 0.5**2
    for end in ends:
        assert np.linalg.norm(end - start) == pytest.approx(moved, rel=1e-4)


def test_a_composition_refuses_contacts():
    with pytest.raises(ValueError, match="has contacts"):
        ball().composed([1.5, -0.5], "back")


def test_friction_and_restitution_of_a_model_are_parameters_by_name():
    dsys = box(parameters=("body_friction", "body_restitution"))
    assert dsys.parameter_names == ("body_friction", "body_restitution", "smoothing", "h")
    changed = dsys.with_parameters(body_friction=0.2).with_smoothing(1e-6)
    assert changed.parameter_values == pytest.approx([0.2, 0, 1e-6, 0.01])
    with pytest.raises(ValueError, match="friction must be"):
        dsys.with_parameters(body_friction=-0.2)
