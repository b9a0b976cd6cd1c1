"""External forces do the work of their components along every virtual displacement, and are inputs
between a system's own and its prescribed coordinates.
"""

import casadi as ca
import numpy as np
import pytest

from nh_control.geometry import quaternion
from nh_control.geometry.rotations import S2, SE3
from nh_control.geometry.spaces import SE2, Product, Rn
from nh_control.integrators import midpoint, nonholonomic_midpoint
from nh_control.mechanics.external_forces import (
    on_body,
    on_coordinates,
    on_planar_body,
    on_point,
    with_external_forces,
)
from nh_control.mechanics.system import System
from nh_control.systems import cart_pole, snakeboard

SPACE = Product(SE3("ship_"), SE2(), S2("link_"), Rn("slide"))
POSE = SPACE.factors[0]


def tip(q, p):
    """A point that every factor moves."""
    pose, (theta, x, y), link, slide = q[:7], ca.vertsplit(q[7:10]), q[10:13], q[13]
    arm = quaternion.rotate(pose[:4], ca.vertcat(ca.cos(theta), ca.sin(theta), 0.3))
    return pose[4:7] + p * arm + 0.7 * link + ca.vertcat(x, y, slide)


def body(q, p):
    """A body turned by the ship and by theta."""
    s, c = ca.sin(q[7]), ca.cos(q[7])
    about_z = ca.vertcat(ca.horzcat(c, -s, 0), ca.horzcat(s, c, 0), ca.horzcat(0, 0, 1))
    return tip(q, p), quaternion.matrix(q[:4]) @ about_z


def evaluate(target, q, w, p):
    symbol = ca.SX.sym("q", SPACE.nq)
    force = target.force(symbol, ca.SX(SPACE.nw, 1), ca.SX(w), p)
    return np.asarray(ca.Function("force", [symbol], [ca.densify(force)])(q))[:, 0]


def random_configuration(rng):
    return SPACE.retract(SPACE.origin, rng.uniform(-0.8, 0.8, SPACE.nv))


def displaced(q, direction, step=1e-6):
    return [SPACE.retract(q, sign * step * direction) for sign in (1, -1)], 2 * step


@pytest.mark.parametrize("seed", range(3))
def test_forces_and_wrenches_do_the_work_of_a_displacement_and_a_turn(seed):
    rng = np.random.default_rng(seed)
    q, w = random_configuration(rng), rng.normal(size=6)
    pose = ca.Function("pose", [s := ca.SX.sym("q", SPACE.nq)], list(body(s, 1.3)))
    frame = np.asarray(ca.DM(SPACE.frame(ca.SX(q))))
    wrench = evaluate(on_body(SPACE, "ship", body), q, w, 1.3)
    force = evaluate(on_point(SPACE, "tip", tip), q, w[:3], 1.3)
    for direction in np.eye(SPACE.nv):
        (ahead, behind), length = displaced(q, direction)
        (x1, r1), (x0, r0) = ([np.asarray(part) for part in pose(at)] for at in (ahead, behind))
        spin = (r1 @ r0.T - r0 @ r1.T) / 2
        turn = np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
        work = w[:3] @ (x1 - x0)[:, 0] / length
        assert force @ frame @ direction == pytest.approx(work, abs=1e-8)
        work += w[3:] @ turn / length
        assert wrench @ frame @ direction == pytest.approx(work, abs=1e-8)


def test_every_coordinate_has_a_force_dual_to_its_velocity():
    targets = on_coordinates(SPACE, prescribed=("slide",), units={"theta": "N m"})
    planar, direction = ("theta", "forward", "side"), ("link_x", "link_y", "link_z")
    assert tuple(t.name for t in targets) == (*POSE.tangent_names, *planar, *direction)
    units = ["N m"] * 3 + ["N"] * 3 + ["N m", "N", "N"] + ["N m"] * 3
    assert [t.units[0] for t in targets] == units
    for i, target in enumerate(targets):
        force = evaluate(target, SPACE.origin, [2.5], None)
        np.testing.assert_array_equal(force, 2.5 * np.eye(SPACE.nw)[i])


def test_parameters_of_a_target_are_those_of_the_system_that_is_pushed():
    def tip(q, p):
        return ca.vertcat(p.l * ca.sin(q[0]), 0, -p.l * ca.cos(q[0]))

    long = cart_pole().with_parameters(l=2.0)
    pendulum = System(
        "pendulum", Rn("angle"), lambda q, v, p: (p.l * v[0]) ** 2 / 2, parameters=long.parameters
    )
    pushed = with_external_forces(pendulum, [on_point(Rn("angle"), "tip", tip)])
    plant = midpoint(pushed, 0.01)
    for l in (2.0, 0.5):
        x = plant.with_parameters(l=l).step([0.0, 0.0], [3.0, 0.0, 0.0])
        assert x[1] == pytest.approx(0.01 * 3.0 * l, rel=1e-3)


def test_a_force_on_the_cart_is_the_same_as_its_actuator_and_on_both_adds_up():
    system = cart_pole()
    disturbed = with_external_forces(system, on_coordinates(system.space)[:1])
    assert disturbed.inputs == ("force", "x_external")
    assert np.isinf(disturbed.input_bounds[1]).all() and disturbed.input_bounds[0, 1] == 15.0
    own, plant = midpoint(system, 0.01), midpoint(disturbed, 0.01)
    x = own.state([0.1, 2.0], [0.3, -0.5])
    np.testing.assert_allclose(plant.step(x, [2.0, 1.5]), own.step(x, [3.5]), atol=1e-14)
    np.testing.assert_array_equal(plant.step(x, [2.0, 0.0]), own.step(x, [2.0]))


def test_a_planar_body_is_pushed_in_the_axes_of_the_ground():
    """Free directions only: the push's part along the admissible velocities changes rho."""
    system = snakeboard()
    target = on_planar_body(system.space, "board", lambda q, p: q[2:5])
    plant = nonholonomic_midpoint(with_external_forces(system, [target]), 0.001)
    assert plant.inputs[2:] == ("board_force_x", "board_force_y", "board_torque_z")
    theta, phi, l = 0.7, 0.4, system.parameters.l
    x = plant.state([0.0, phi, theta, 0.0, 0.0], np.zeros(5))
    push, torque = np.array([0.3, -0.2]), 0.15
    forward = push @ [np.cos(theta), np.sin(theta)]
    expected = np.sin(phi) * torque - l * np.cos(phi) * forward
    rho = plant.step(x, [0.0, 0.0, *push, torque])[-1]
    assert rho / plant.h == pytest.approx(expected, rel=1e-5)


def test_prescribed_coordinates_stay_the_last_inputs():
    lifted = System(
        name="lifted",
        space=Rn("x", "hand"),
        lagrangian=lambda q, v: (v[0] ** 2 + v[1] ** 2 - (q[0] - q[1]) ** 2) / 2,
        prescribed=("hand",),
        inputs=("push",),
        force=lambda q, v, u: ca.vertcat(u, 0),
        input_limits=np.array([[-1.0, 1.0], [-2.0, 2.0]]),
    )
    targets = on_coordinates(lifted.space, lifted.prescribed)
    plant = midpoint(with_external_forces(lifted, targets), 0.1)
    assert plant.inputs == ("push", "x_external", "hand")
    np.testing.assert_array_equal(plant.system.input_bounds[[0, 2], 1], [1.0, 2.0])
    nominal = midpoint(lifted, 0.1)
    x = nominal.state([0.0, 0.0], [0.0, 0.0])
    np.testing.assert_allclose(
        plant.step(x, [0.2, 0.3, 0.1]), nominal.step(x, [0.5, 0.1]), atol=1e-15
    )
