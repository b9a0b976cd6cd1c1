"""Outputs `y = c(q, v, u)` that a system declares: their values and derivatives, in filters, in
python-control and through actuators; the IMU against the motion's derivatives.
"""

from dataclasses import replace

import casadi as ca
import differences
import numpy as np
import pytest
from refusals import refusal
from scipy.integrate import solve_ivp

import nh_control as nh
from nh_control import scenarios
from nh_control.control.estimation import Belief, KalmanFilter
from nh_control.geometry import quaternion
from nh_control.geometry.rotations import SO3
from nh_control.mechanics.actuators import with_lag
from nh_control.mechanics.external_forces import on_coordinates, with_external_forces
from nh_control.mechanics.imu import Imu
from nh_control.mechanics.outputs import Output
from nh_control.mechanics.reduced import ReducedEquations
from nh_control.systems import pendulum
from nh_control.systems.quadrotor_payload import split_configuration
from nh_control.systems.rigid_body import rigid_body

TIP = Output("tip", lambda q, v, u, p: [p.l * ca.sin(q[0]), -p.l * ca.cos(q[0])], ("x", "z"), "m")
POWER = Output("power", lambda q, v, u, p: u[0] * v[0], units="W")


def watched(*outputs):
    return replace(pendulum(), outputs=outputs or (TIP, POWER))


def test_outputs_have_names_units_and_values():
    d = nh.midpoint(watched(), 0.01)
    x = d.state([0.3], [2.0])
    both, tip = d.outputs(), d.outputs("tip")
    length = d.system.parameters.l
    assert both.names == ("tip_x", "tip_z", "power") and both.units == ("m", "m", "W")
    wanted = [length * np.sin(0.3), -length * np.cos(0.3), 3.0]
    assert both(x, [1.5]) == pytest.approx(wanted, abs=1e-14)
    assert tip(x) == pytest.approx(wanted[:2], abs=1e-14)
    assert both.takes_inputs and not tip.takes_inputs
    path = d.simulate(x, np.full((3, 1), 0.5))
    assert both(path.states, [0.5]).shape == (4, 3)
    assert both(path.states[:3], path.inputs)[2] == pytest.approx(both(path.states[2], [0.5]))
    longer = d.with_parameters(l=2 * length).outputs("tip")
    assert longer(x)[0] == pytest.approx(2 * wanted[0])


def test_derivatives_of_outputs_are_exact():
    d = nh.midpoint(watched(), 0.01)
    x, u, o = d.state([0.3], [2.0]), np.array([1.5]), d.outputs()
    C, D = o.linearize(x, u)
    numeric = differences.jacobian(lambda z: o(d.retract(x, z[:2]), u + z[2:]), 3, 1e-2)
    assert np.hstack([C, D]) == pytest.approx(numeric, abs=1e-9)


def attitude_of(p):
    """A body with an attitude sensor, in SO3, and a gyroscope."""
    return replace(
        rigid_body(),
        outputs=(
            Output("attitude", lambda q, v, u, p: q, space=SO3()),
            Output("gyro", lambda q, v, u, p: v, ("x", "y", "z"), "rad/s"),
        ),
    )


def test_an_attitude_is_linearized_in_its_space():
    d = nh.midpoint(attitude_of(None), 0.02)
    x = d.state([0.8, 0.6, 0.0, 0.0], [0.3, -0.2, 0.5])
    o = d.outputs("attitude", "gyro")
    C, D = o.linearize(x, np.zeros(3))
    assert C.shape == (6, 6) and not D.any()
    y = o(x)
    change = differences.jacobian(lambda e: o.space.local(y, o(d.retract(x, e))), 6, 1e-2)
    assert pytest.approx(change, abs=1e-9) == C


def test_a_filter_of_accelerations_needs_the_inputs_that_act():
    d = nh.midpoint(watched(POWER), 0.01)
    kalman = KalmanFilter(d, np.eye(2), np.eye(1), "power")
    belief = Belief(d.state([0.3], [1.0]), np.eye(2))
    with pytest.raises(ValueError, match=r"depend on the inputs \('torque',\); pass"):
        kalman.update(belief, [1.0])
    assert kalman.innovation(belief, [2.5], [2.0]).value == pytest.approx([0.5])
    with pytest.raises(ValueError, match="measurements of NAME_update depend on the state alone"):
        nh.export_c(d, kalman=kalman)
    with pytest.raises(ValueError, match="the smoother takes configurations"):
        nh.smooth(kalman, belief, 1, [None, [1.0]])


def payload_with_imu():
    scenario = scenarios.get("quadrotor_payload")
    system = scenario.make_system(scenario.parameters)

    def pose(q, p):
        payload, attitudes, links = split_configuration(q, p.n)
        return payload + p.lengths[0] * links[0], quaternion.matrix(attitudes[0])

    return replace(system, outputs=(Imu("imu", pose=pose),)), pose


def poses_along(system, pose, q, v, u, times):
    """Positions and rotations at times, by SciPy from (q, v) under the input u."""
    equations, found = ReducedEquations(system), []
    start, rates = equations.start(q, v), equations.rates(u)
    for t in times:
        w = start
        if t:
            run = solve_ivp(rates, (0, t), start, method="DOP853", rtol=1e-13, atol=1e-14)
            w = run.y[:, -1]
        at = ca.SX(ca.DM(equations.phase(w)[0]))
        f = ca.Function("pose", [], [ca.SX(part) for part in pose(at, system.parameters)])
        position, rotation = (np.asarray(part) for part in f().values())
        found.append((position[:, 0], rotation))
    return found


def test_the_imu_of_a_quadrotor_with_payload_shows_the_derivatives_of_its_motion():
    """To 1e-6 and better: angular velocity and acceleration by differences of order 8."""
    system, pose = payload_with_imu()
    d, tau = nh.midpoint(system, 0.01), 1e-3
    rng = np.random.default_rng(0)
    rest = d.state(system.nominal_configuration, np.zeros(system.space.nw))
    x, u = d.retract(rest, 0.2 * rng.normal(size=d.ndx)), rng.normal(size=d.nu)
    y = d.outputs("imu")(x, u)
    times = tau * np.arange(-4, 5)
    along = poses_along(system, pose, d.configuration(x), d.velocity(x), u, times)
    rotation = along[4][1]
    first = np.array([*(-c for c in reversed(differences.FIRST)), 0.0, *differences.FIRST]) / tau
    second = differences.SECOND
    second = np.array([*reversed(second[1:]), second[0], *second[1:]]) / tau**2
    turning = rotation.T @ np.tensordot(first, [R for _, R in along], 1)
    omega = turning[2, 1], turning[0, 2], turning[1, 0]
    acceleration = np.tensordot(second, [position for position, _ in along], 1)
    specific = rotation.T @ (acceleration + [0.0, 0.0, 9.81])
    assert y[:3] == pytest.approx(omega, abs=1e-9)
    assert y[3:] == pytest.approx(specific, abs=1e-8)


def test_an_imu_at_rest_shows_gravity_upwards():
    system = replace(
        rigid_body(), outputs=(Imu("imu", pose=lambda q, p: (ca.SX(3, 1), quaternion.matrix(q))),)
    )
    d = nh.midpoint(system, 0.01)
    upside_down = d.state([0.0, 1.0, 0.0, 0.0], [0.0] * 3)
    shown = d.outputs()(upside_down, [0.0] * 3)
    assert shown == pytest.approx([0, 0, 0, 0, 0, -9.81], abs=1e-14)


def test_outputs_that_do_not_fit_are_refused(snapshot):
    moved = replace(with_lag(pendulum(), {"torque": 0.1}), outputs=())
    sensor = Imu("imu", pose=lambda q, p: (ca.vertcat(q[1], 0, 0), ca.SX.eye(3)))
    wrong = (
        lambda: watched(Output("tip", lambda q, v, u, p: q, ("x", "z"))),
        lambda: watched(TIP, TIP),
        lambda: watched(Output("nothing")),
        lambda: Output("tip", components=("x", "z"), units=("m",)),
        lambda: Output("attitude", components=("x",), space=SO3()),
        lambda: nh.midpoint(watched(), 0.01).outputs("tipp"),
        lambda: nh.midpoint(pendulum(), 0.01).outputs(),
        lambda: nh.midpoint(replace(moved, outputs=(sensor,)), 0.01).outputs().takes_inputs,
    )
    assert [refusal(make) for make in wrong] == snapshot


def test_outputs_follow_through_actuators_and_external_forces():
    """Power is by the torque that acts, not by its command, nor by a force from outside."""
    slow = nh.midpoint(with_lag(watched(POWER), {"torque": 0.1}), 0.01)
    assert slow.outputs()(slow.state([0.3, 0.7], [2.0, 0.0]), [9.0]) == pytest.approx([1.4])
    system = watched(POWER)
    pushed = nh.midpoint(with_external_forces(system, on_coordinates(system.space)), 0.01)
    assert pushed.outputs()(pushed.state([0.3], [2.0]), [0.7, 5.0]) == pytest.approx([1.4])
