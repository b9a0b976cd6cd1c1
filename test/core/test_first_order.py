"""First-order coordinates beside (q, v): currents, lags, integrators. Their rates, order, exact
derivatives, LQR and loops, against SciPy and closed formulas.
"""

from dataclasses import dataclass, replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from refusals import refusal
from scipy.integrate import solve_ivp

import nh_control as nh
from nh_control.integrators import INTEGRATORS
from nh_control.mechanics.actuators import DcMotor, with_actuators, with_dc_motors, with_lag
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.mechanics.external_forces import on_coordinates, with_external_forces
from nh_control.systems import pendulum, snakeboard


@dataclass(frozen=True)
class Motor(nh.Parameters):
    inertia: float = nh.parameter(0.05, "kg m^2")
    weight: float = nh.parameter(0.6, "N m")
    damping: float = nh.parameter(0.01, "N m s")
    resistance: float = nh.parameter(1.0, "ohm")
    inductance: float = nh.parameter(0.05, "H")
    constant: float = nh.parameter(0.3, "N m/A")


PENDULUM = dict(
    name="motor_pendulum",
    space=nh.Rn("theta", "current"),
    lagrangian=lambda q, v, p: p.inertia * v[0] ** 2 / 2 - p.weight * ca.cos(q[0]),
    inputs=("voltage",),
    input_units=("V",),
    force=lambda q, v, u, p: [p.constant * q[1] - p.damping * v[0], 0],
    first_order=("current",),
    first_order_units=("A",),
    first_order_rate=lambda q, v, u, p: (
        (u[0] - p.resistance * q[1] - p.constant * v[0]) / p.inductance
    ),
    parameters=Motor(),
)
"""A pendulum whose motor has a current: the angle is 0 upright."""


def motor_pendulum():
    return nh.System(**PENDULUM)


def scipy_motor(u, start, duration, p=Motor()):
    """(theta, theta', current) after `duration`, from equations by hand."""

    def rates(t, y):
        theta, omega, i = y
        torque = p.constant * i - p.damping * omega + p.weight * np.sin(theta)
        voltage = u - p.resistance * i - p.constant * omega
        return [omega, torque / p.inertia, voltage / p.inductance]

    run = solve_ivp(rates, (0, duration), start, method="DOP853", rtol=1e-13, atol=1e-14)
    return run.y[:, -1]


@cache
def motor_errors(method):
    """|(theta, theta', current) - SciPy's| after 0.4 s, a row for each number of steps."""
    system, rows = motor_pendulum(), []
    exact = scipy_motor(2.0, [0.4, 0.3, 0.1], 0.4)
    for steps in (20, 40, 80):
        d = INTEGRATORS[method](system, 0.4 / steps)
        x = d.state([0.4, 0.1], [0.3, 0.0])
        for _ in range(steps):
            x = d.step(x, [2.0])
        rows.append(np.abs([x[0], d.velocity(x)[0], x[1]] - exact))
    return np.array(rows)


@pytest.mark.parametrize("method", ["midpoint", "midpoint_order4", "rk4", "implicit_midpoint"])
def test_a_motor_driven_pendulum_agrees_with_scipy_to_the_methods_order(method):
    errors = motor_errors(method)
    slopes = np.log2(errors[:-1] / errors[1:])
    order = INTEGRATORS[method].order
    assert (slopes > order - 0.25).all(), slopes
    assert (errors[-1] < {2: 3e-4, 4: 1e-7}[order]).all(), errors[-1]


def test_a_lag_is_the_midpoint_rule_of_its_equation():
    """`w1 = w0 + h (u - w_mid) / tau`, exactly, whatever the pendulum does."""
    tau, h, u = 0.07, 0.02, 0.8
    d = nh.midpoint(with_lag(pendulum(), {"torque": tau}), h)
    x, w = d.state([0.5, 0.1], [0.0, 0.0]), 0.1
    assert d.state_names == ("theta", "torque_actual", "p_theta")
    for _ in range(10):
        x = d.step(x, [u])
        w = ((1 - h / (2 * tau)) * w + h / tau * u) / (1 + h / (2 * tau))
        assert x[1] == pytest.approx(w, rel=1e-14)
    exact = u + (0.1 - u) * np.exp(-10 * h / tau)
    assert x[1] == pytest.approx(exact, abs=2e-3)


def test_equilibrium_finds_the_current_that_holds_the_weight():
    p, d = Motor(), nh.midpoint(motor_pendulum(), 0.01)
    x, u = nh.equilibrium(d, d.state([0.3, 0.0], [0.0, 0.0]), [0.0], ["theta"])
    current = -p.weight * np.sin(0.3) / p.constant
    assert x == pytest.approx([0.3, current, 0.0], abs=1e-9)
    assert u == pytest.approx([p.resistance * current], abs=1e-9)


def test_external_forces_leave_the_rates_alone():
    """They are further inputs, which the rates do not see."""
    system = with_lag(pendulum(), {"torque": 0.1})
    whole = replace(system, first_order_rate=lambda q, v, u, p: (u - q[-1:]) / 0.1)
    targets = on_coordinates(system.space, system.first_order)
    assert [target.name for target in targets] == ["theta"]
    pushed = nh.midpoint(with_external_forces(whole, targets), 0.02)
    plain = nh.midpoint(system, 0.02)
    x = plain.state([0.5, 0.1], [0.2, 0.0])
    assert pushed.step(x, [0.7, 0.0]) == pytest.approx(plain.step(x, [0.7]), abs=1e-15)
    assert pushed.step(x, [0.7, 1.0])[1] == pytest.approx(plain.step(x, [0.7])[1], abs=1e-15)


def test_a_motor_equals_the_declared_system():
    p = Motor()
    bare = nh.System(
        "bare",
        nh.Rn("theta"),
        lambda q, v: p.inertia * v[0] ** 2 / 2 - p.weight * ca.cos(q[0]),
        inputs=("torque",),
        force=lambda q, v, u: u - p.damping * v,
    )
    motor = DcMotor(p.resistance, p.inductance, p.constant, gear=1.0, voltage_limit=12.0)
    made = with_dc_motors(bare, {"torque": motor})
    assert made.inputs == ("torque_voltage",) and made.first_order == ("torque_current",)
    assert made.input_bounds.tolist() == [[-12.0, 12.0]]
    x = [0.4, 0.1, 0.3 * p.inertia]
    one, other = (nh.midpoint(s, 0.02).step(x, [2.0]) for s in (made, motor_pendulum()))
    assert one == pytest.approx(other, abs=1e-15)


def test_a_gear_multiplies_torque_and_divides_speed():
    """Statics and the kinetic energy of the rotor: n K i, n^2 J."""
    motor = DcMotor(gear=20.0, rotor_inertia=1e-4, friction=1e-3, inductance=0.01)
    system = with_dc_motors(snakeboard(), {"steer_torque": motor})
    assert system.inputs == ("rotor_torque", "steer_torque_voltage")
    assert system.input_units == ("N m", "V")
    system, plain = system.numeric, snakeboard().numeric
    q, v, u = (ca.DM(np.linspace(0.1, 0.6, n)) for n in (6, 6, 2))
    steer = plain.space.names.index("phi")
    more = system.lagrangian_at(q, v) - plain.lagrangian_at(q[:5], v[:5])
    force = system.generalized_force(q, v, u)
    assert float(more) == pytest.approx(20.0**2 * 1e-4 * float(v[steer]) ** 2 / 2)
    wanted = 20.0 * 0.1 * float(q[5]) - 20.0**2 * 1e-3 * float(v[steer])
    assert float(force[steer]) == pytest.approx(wanted)


def test_methods_that_would_not_move_them_refuse_by_name():
    system = motor_pendulum()
    for name, one in INTEGRATORS.items():
        if one.takes(system):
            assert one(system, 0.01).method.first_order, name
        else:
            assert "first-order coordinates ('current',)" in one.reason(system)
            with pytest.raises(ValueError, match=system.name):  # whatever refuses it first
                one.make(system, 0.01)
    with pytest.raises(ValueError, match="no accelerations; use ReducedEquations"):
        ContinuousSystem(system).acceleration([0.0, 0.0], [0.0, 0.0], [0.0])


REFUSED = {
    "a rate that is missing": dict(first_order_rate=None),
    "a rate of nothing": dict(first_order=(), first_order_units=()),
    "a text": dict(first_order="current"),
    "another place": dict(space=nh.Rn("current", "theta")),
    "another size": dict(first_order_rate=lambda q, v, u, p: [q[1], q[0]]),
    "units": dict(first_order_units=("A", "V")),
    "inertia": dict(lagrangian=lambda q, v, p: ca.sumsqr(v)),
    "a rate of its rate": dict(first_order_rate=lambda q, v, u, p: v[1]),
    "a constraint of values": dict(holonomic_constraint=lambda q, p: q[1]),
    "a constraint of rates": dict(
        space=nh.Rn("theta", "other", "current"),
        lagrangian=lambda q, v, p: ca.sumsqr(v[:2]),
        force=None,
        inputs=(),
        input_units=(),
        first_order_rate=lambda q, v, u, p: q[0],
        velocity_constraint=lambda q, p: ca.SX([[1.0, 0.0, 2.0]]),
    ),
    "no force for its input": dict(force=None),
}


def test_what_does_not_fit_is_refused(snapshot):
    make = lambda changes: nh.System(**{**PENDULUM, **changes})
    assert {case: refusal(lambda: make(changes)) for case, changes in REFUSED.items()} == snapshot


def test_actuators_refuse_what_they_cannot_drive(snapshot):
    squared, lagged = (
        replace(pendulum(), force=lambda q, v, u, *p: u**2),
        with_lag(pendulum(), {"torque": 0.1}),
    )
    effort = lambda q, v, w, u, *p: ca.vertcat(w, w)
    rate = lambda q, v, w, u, *p: w
    wrong = (
        lambda: with_lag(pendulum(), {"tork": 0.1}),
        lambda: with_lag(pendulum(), {"torque": 0.0}),
        lambda: with_lag(lagged, {"torque": 0.1}),
        lambda: with_dc_motors(squared, {"torque": DcMotor()}),
        lambda: with_actuators(pendulum(), ["w"], rate, effort, ["u"]),
    )
    assert [refusal(make) for make in wrong] == snapshot
