"""Errors of measured quantities and their derivatives, and what partial measurements tell."""

from dataclasses import dataclass

import casadi as ca
import numpy as np
import pytest

import nh_control as nh
from nh_control import scenarios
from nh_control.control.input_history import predict
from nh_control.control.measured_values import MeasuredValues
from nh_control.control.parameter_fit import with_values
from nh_control.mechanics.outputs import Output


@dataclass(frozen=True)
class Arm(nh.Parameters):
    """Numbers of a pendulum on a turning body."""

    l: float = nh.parameter(0.5, "m", "length")  # noqa: E741
    m: float = nh.parameter(0.8, "kg", "mass")


def arm():
    """A planar body with a pendulum; outputs that depend on parameters, velocity and force."""

    def tip(q, v, u, p):
        return ca.vertcat(q[1] + p.l * ca.sin(q[3]), q[2] - p.l * ca.cos(q[3]))

    def lagrangian(q, v, p):
        kinetic = (
            v[0] ** 2 / 4 + (1 + p.m) * (v[1] ** 2 + v[2] ** 2) / 2 + p.m * (p.l * v[3]) ** 2 / 2
        )
        return kinetic + p.m * p.l * v[1] * v[3] * ca.cos(q[3]) + 9.81 * p.m * p.l * ca.cos(q[3])

    def load(q, v, u, p):
        return p.m * p.l * v[3] + 2 * u[0]

    return nh.System(
        name="arm",
        space=nh.Product(nh.SE2(), nh.Rn("swing")),
        parameters=Arm(),
        lagrangian=lagrangian,
        inputs=("push",),
        force=lambda q, v, u, p: ca.vertcat(0, u[0], 0, 0),
        outputs=(Output("tip", tip, ("x", "y"), "m"), Output("load", load)),
    )


@pytest.mark.parametrize(
    ("names", "errors"),
    [
        (("theta", "x", "y", "swing"), ("theta", "forward", "side", "swing")),
        (("swing", "x"), ("swing", "x")),
        (("tip_y", "swing_dot", "load", "theta"), ("theta", "swing_dot", "tip_y", "load")),
    ],
)
def test_slopes_are_those_of_the_errors(names, errors):
    """Of steps with other initial states and parameters, at a state whose errors are zero."""
    dsys, u, parameters = nh.midpoint(arm(), 0.02), np.array([0.7]), ("l", "m")
    x0 = dsys.state([0.3, 0.2, -0.1, 0.8], [0.4, 0.5, -0.3, 1.2])
    measured = MeasuredValues(dsys, names)
    assert measured.error_names == errors
    values = with_values(dsys, parameters, [0.55, 0.9])
    lin = values.linearize(x0, u, parameters)
    X, S = lin.A, lin.P
    known = {
        **dict(zip(dsys.system.space.names, lin.x1)),
        **dict(zip(dsys.system.space.velocity_names, values.velocity(lin.x1))),
        **dict(zip(("tip_x", "tip_y", "load"), values.outputs()(lin.x1, u))),
    }
    y = np.array([known[name] for name in names])
    np.testing.assert_allclose(measured.errors(values, lin.x1, u, y), 0, atol=1e-13)

    def moved(dx, dp):
        other = with_values(dsys, parameters, [0.55 + dp[0], 0.9 + dp[1]])
        x = other.step(other.retract(x0, dx), u)
        return measured.errors(other, x, u, y)

    e, rest, same = 1e-6, np.zeros(dsys.ndx), np.zeros(2)
    by_x = [(moved(e * d, same) - moved(-e * d, same)) / (2 * e) for d in np.eye(dsys.ndx)]
    by_p = [(moved(rest, e * d) - moved(rest, -e * d)) / (2 * e) for d in np.eye(2)]
    slopes = measured.slopes(values, lin.x1, u, X, S, parameters)
    np.testing.assert_allclose(slopes[0], np.transpose(by_x), atol=1e-8)
    np.testing.assert_allclose(slopes[1], np.transpose(by_p), atol=1e-8)


def test_what_is_missing_has_no_error_and_unknown_quantities_are_refused():
    dsys = nh.midpoint(arm(), 0.02)
    x, u = dsys.state([0.3, 0.2, -0.1, 0.8], np.zeros(4)), np.zeros(1)
    measured = MeasuredValues(dsys, ("theta", "x", "y", "swing", "load"))
    errors = measured.errors(dsys, x, u, np.array([0.3, np.nan, -0.1, 0.9, np.nan]))
    np.testing.assert_allclose(errors, [np.nan, np.nan, np.nan, 0.1, np.nan], atol=1e-12)
    with pytest.raises(ValueError, match=r"no quantity 'tip_z' \(did you mean 'tip_[xy]'\?\)"):
        MeasuredValues(dsys, ("tip_z",))


def test_outputs_alone_tell_the_parameters_without_the_state():
    """The tip of the pendulum, from a start that the fit does not know, at uneven times."""
    dsys = nh.midpoint(arm(), 0.02)
    true, rng = dsys.with_parameters(l=0.6, m=1.0), np.random.default_rng(0)
    x, outputs = true.state([0.0, 0.0, 0.0, 0.8], np.zeros(4)), true.outputs()
    time_s, rows = 0.0, []
    for k in range(60):
        u, duration_s = np.array([3 * np.sin(0.4 * k)]), rng.uniform(0.01, 0.03)
        tip = outputs(x, u)[:2] + 1e-4 * rng.normal(size=2)
        rows.append([time_s, *tip, u[0]])
        x, time_s = predict(true, x, [(u, duration_s)]), time_s + duration_s
    table = dict(zip(("time", "tip_x", "tip_y", "push"), np.transpose(rows)))
    found = nh.identify(dsys, table, ["l", "m"], start={"swing": 0.5}, segment_s=1.2)
    assert (np.abs(found.values - [0.6, 1.0]) < 3 * found.deviations).all()
    assert (found.deviations < 0.01).all()
    assert [*found.noise.values()] == pytest.approx([1e-4, 1e-4], rel=0.4)


@pytest.mark.slow
@pytest.mark.parametrize("measured", [("x", "theta"), ("theta",), ("x", "theta_dot")])
def test_stated_deviations_hold_of_partial_measurements_at_uneven_times(measured):
    """Errors over 30 seeds by their stated covariance; 90 degrees of freedom of a chi-squared. The
    angle alone tells little, so that its noise is smaller: deviations are those of a linear model.
    """
    model = scenarios.get("cart_pole").model()
    names, truth, ratios, within = ("m_cart", "m_pole", "l"), np.array([1.1, 0.33, 0.48]), [], []
    true = with_values(model, names, truth)
    noise = {"x": 5e-4, "theta": 2e-3 if "x" in measured else 5e-4, "theta_dot": 1e-2}
    for seed in range(30):
        rng = np.random.default_rng(seed)
        x, time_s, rows = true.state([0.0, 0.4], np.zeros(2)), 0.0, []
        for k in range(200):
            u, duration_s = np.array([6 * np.sin(0.31 * k)]), rng.uniform(0.004, 0.024)
            seen = {"x": x[0], "theta": x[1], "theta_dot": true.velocity(x)[1]}
            values = [seen[name] + noise[name] * rng.normal() for name in measured]
            rows.append([time_s, *values, u[0]])
            x, time_s = predict(true, x, [(u, duration_s)]), time_s + duration_s
        table = dict(zip(("time", *measured, "force"), np.transpose(rows)))
        found = nh.identify(model, table, names, measured=measured)
        error = found.values - truth
        ratios.append(error @ np.linalg.solve(found.covariance, error) / 3)
        within += (np.abs(error) < 2 * found.deviations).tolist()
    print(measured, np.mean(ratios), np.mean(within))
    assert 0.6 < np.mean(ratios) < 1.5
    assert np.mean(within) > 0.86
