"""The order table of `nh.convergence`."""

import casadi as ca
import matplotlib
import numpy as np
import pytest
from refusals import refusal

import nh_control as nh
from nh_control.integrators import INTEGRATORS
from nh_control.studies.convergence import fitted_order

PENDULUM = nh.System(
    "pendulum",
    nh.Rn("angle"),
    lambda q, v: v[0] ** 2 / 2 + 9.81 * ca.cos(q[0]),
    inputs=("torque",),
    force=lambda q, v, u: u,
)
STEPS = (32, 64, 128)
START = {"q": [1.0], "v": [0.2], "duration": 0.8}


def own(system, h):
    """A method in a function: the midpoint rule under another name."""
    return nh.midpoint(system, h)


@pytest.fixture(scope="module")
def found():
    return nh.convergence(PENDULUM, [own, "midpoint_order4", "rk4"], STEPS, **START)


def test_orders_are_those_of_the_methods_in_configuration_and_velocity(found):
    assert list(found.errors) == ["own", "midpoint_order4", "rk4"]
    for name, order in {"own": 2, "midpoint_order4": 4, "rk4": 4}.items():
        one = found.errors[name]
        assert abs(one.configuration_order - order) < 0.1, name
        assert abs(one.velocity_order - order) < 0.1, name
        assert found.orders[name] == one.configuration_order
    assert found.uncertainty[0] < 1e-12 < found.errors["own"].configuration[-1]


def test_an_error_is_the_distance_from_the_end_of_the_motion(found):
    """Against a run of order 8 whose steps are much finer."""
    fine = INTEGRATORS["midpoint_order8"].make(PENDULUM, 0.8 / 200)
    end = fine.simulate(fine.state([1.0], [0.2]), [0.0], steps=200).states[-1]
    for steps, error in zip(STEPS, found.errors["own"].configuration):
        run = nh.midpoint(PENDULUM, 0.8 / steps)
        x = run.simulate(run.state([1.0], [0.2]), [0.0], steps=steps).states[-1]
        assert error == pytest.approx(abs(x[0] - end[0]), rel=1e-6)


def test_the_table_has_every_step_method_and_order(found):
    lines = found.table().splitlines()
    assert lines[0].split() == ["steps", "h", "(s)", "own", "midpoint_order4", "rk4"]
    assert [line.split()[0] for line in lines[1:-1]] == ["32", "64", "128"]
    own_error = found.errors["own"].configuration
    second = lines[2].split()
    assert float(second[1]) == 0.0125 and float(second[2]) == pytest.approx(own_error[1], rel=0.01)
    assert float(second[3]) == pytest.approx(np.log2(own_error[0] / own_error[1]), abs=0.01)
    assert lines[-1].split()[2:] == [f"{order:.2f}" for order in found.orders.values()]
    assert "error of the velocity" in str(found) and "pendulum, 0.8 s" in str(found)
    with pytest.raises(ValueError, match="configuration.*velocity.*got 'momentum'"):
        found.table("momentum")


def test_errors_below_the_accuracy_of_the_reference_are_not_fitted():
    h, errors = np.array([0.4, 0.2, 0.1, 0.05]), np.array([1e-2, 1e-4, 1e-6, 3e-6])
    assert fitted_order(h, errors, 1e-5) == pytest.approx(np.log2(100))
    assert np.isnan(fitted_order(h, errors, 1e-3))
    assert fitted_order(h, np.append(np.nan, errors[1:]), 2e-6) == pytest.approx(
        fitted_order(h[[1, 3]], errors[[1, 3]], 0.0)
    )


def test_a_step_that_fails_leaves_a_gap_and_its_reason():
    """A step of 10 rad about the end of a rod, in Cartesian coordinates."""
    rod = nh.System(
        "rod",
        nh.Rn("x", "y"),
        lambda q, v: ca.sumsqr(v) / 2 - 9.81 * q[1],
        holonomic_constraint=lambda q: ca.sumsqr(q) - 1,
    )
    start = {"q": [0.0, -1.0], "v": [10.0, 0.0], "duration": 1.0}
    found = nh.convergence(rod, "midpoint", (1, 100, 200), **start)
    assert np.isnan(found.errors["midpoint"].configuration[0])
    assert ("midpoint", 1) in found.failures and "midpoint, 1 steps:" in str(found)
    assert " -" in found.table().splitlines()[1]


def test_inputs_are_held_in_turn():
    """With the inputs in the other order the motion is another one, of the same order."""
    u = np.array([[3.0], [-1.0]])
    runs = [nh.convergence(PENDULUM, own, STEPS, **START, u=one) for one in (u, u[::-1])]
    assert all(abs(run.orders["own"] - 2) < 0.1 for run in runs)
    model = nh.midpoint(PENDULUM, 0.8 / 128)
    ends = [
        model.simulate(model.state([1.0], [0.2]), run.motion.u, every=64).states[-1]
        for run in runs
    ]
    assert abs(ends[0][0] - ends[1][0]) > 0.1


def test_what_does_not_fit_is_refused(snapshot):
    def call(methods="midpoint", steps=STEPS, **changes):
        return nh.convergence(PENDULUM, methods, steps, **{**START, **changes})

    for steps in ((), (0, 1), (4, 2), (1.5, 3.0), (4, 4)):
        with pytest.raises(ValueError, match="increasing numbers of steps"):
            call(steps=steps)
    wrong = (
        lambda: call(u=np.ones((3, 1))),
        lambda: call(["rdp_exp"]),
        lambda: call({"half": 0.5}),
        lambda: call({"one": lambda system, h: 1}),
        lambda: call([own, own]),
        lambda: call([]),
        lambda: call(q=[1.0, 2.0]),
    )
    assert [refusal(make) for make in wrong] == snapshot
    assert "no integrator 'midpont', choose from: midpoint" in refusal(lambda: call("midpont"))


def test_the_figure_has_the_errors_and_orders(found):
    matplotlib.use("agg")
    from matplotlib import pyplot

    left, right = found.plot()
    curve = left.get_lines()[0]
    assert np.array_equal(curve.get_xdata(), found.h)
    assert np.array_equal(curve.get_ydata(), found.errors["own"].configuration)
    assert np.array_equal(
        right.get_lines()[1].get_ydata(), found.errors["midpoint_order4"].velocity
    )
    labels = [text.get_text() for text in left.get_legend().get_texts()]
    assert labels[0] == f"own, {found.orders['own']:.2f}"
    _, axes = pyplot.subplots(1, 3)
    with pytest.raises(ValueError, match="plot needs 2 axes.*got 3"):
        found.plot(axes)
    assert found.plot(axes[:2])[0] is axes[0]
    pyplot.close("all")
