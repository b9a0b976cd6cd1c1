"""Scenarios whose references lead into obstacles and beyond limits: linear feedback follows them
there, the predictive tracker does not.
"""

import numpy as np
import pytest
from own_scenarios import EXAMPLES
from urdf_robots import robot_file

from nh_control.runs.experiment import Experiment, Result
from nh_control.scenarios import MpcOptions, PlantOptions, disturbance, get
from nh_control.scenarios.constraints import OBSTACLES

CASES = {
    ("cart_pole", "short_track"): ("short_track", -0.1, 0.3),
    ("acrobot", "tight_elbow"): ("tight_elbow", -0.19, 0.5),
    ("quadrotor", "straight"): ("windows", -1.8, 1.45),
    ("car", "tight_parking"): ("parked_cars", -0.04, 0.1),
    ("snakeboard", "pillars"): ("pillars", -0.1, 0.4),
    ("bicycle", "tight_steering"): ("tight_steering", -0.015, 0.3),
    ("ballbot", "circle"): ("lean", -0.02, 2.0),
    ("satellite", "slew_past_sun"): ("sun", -0.09, 0.15),
    ("quadrotor_payload", "windows"): ("windows", -0.07, 0.2),
    ("quadrotor_payload", "spheres"): ("spheres", -0.04, 0.1),
}
"""The constraint, the margin that LQR stays below, and the largest error of the other."""
WITHOUT_OBSTACLES = {("acrobot", "tight_elbow"), ("bicycle", "tight_steering")}
CHEAP = ("cart_pole", "short_track")
CLOSE = 4e-3
"""Violation (m, rad) of a soft constraint that real-time iterations leave."""


def run(scenario, reference, mpc, **options):
    rest = scenario.no_perturbation
    experiment = Experiment.make(scenario, reference, perturbation=rest, mpc=mpc, **options)
    return Result(experiment, experiment.run(), None, 0.0)


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=() if c == CHEAP else pytest.mark.slow) for c in CASES]
)
def test_the_predictive_tracker_keeps_what_the_reference_does_not(case):
    (name, reference), (constraint, beyond, largest) = case, CASES[case]
    linear, predictive = (run(get(name), reference, mpc) for mpc in (None, MpcOptions()))
    assert linear.kept_constraints[constraint].margins.min() < beyond
    kept = predictive.kept_constraints
    assert min(one.margins.min() for one in kept.values()) > -CLOSE
    assert predictive.configuration_error().max() < largest
    assert not predictive.loop.saturated.any() and predictive.loop.failure is None


def test_obstacles_are_drawn_along_their_references_only():
    bent = ("acrobot", "tight_elbow"), ("bicycle", "tight_steering"), ("ballbot", "circle")
    for name, reference in CASES.keys() - {*bent}:
        scenario = get(name)
        shapes = scenario.visual_model(reference=reference).shapes
        drawn = [shape for shape in shapes if shape.frame == OBSTACLES]
        assert drawn and scenario.visual_model(reference="").shapes == shapes[: -len(drawn)]
        visual = scenario.visual_model(reference=reference)
        q = scenario.make_system(scenario.parameters).space.origin
        np.testing.assert_array_equal(
            visual.poses(scenario.parameters, q)[OBSTACLES].rotation, np.eye(3)
        )


@pytest.mark.slow
def test_a_robot_moves_its_tool_around_a_ball_in_its_way():
    robot_file("ur5e")  # skips without its package
    arm = get(str(EXAMPLES / "ur5e_around_ball.py"))
    linear, around, predictive = (
        run(arm, reference, mpc)
        for reference, mpc in (("across", None), ("around", None), ("across", MpcOptions()))
    )
    margins = [one.kept_constraints["ball"].margins.min() for one in (linear, around, predictive)]
    assert margins[0] < -0.05 and margins[1] > 0.0199 and margins[2] > -1e-4
    for one in (around, predictive):
        assert one.kept_constraints["joint_ranges"].margins.min() > 1
        assert one.configuration_error()[-1] < 0.005 and not one.loop.saturated.any()


@pytest.mark.slow
def test_a_truck_with_trailers_is_parked_between_obstacles():
    """In reverse: the reference stays away from them; MPC does where the reference does not."""
    truck = get(str(EXAMPLES / "truck_with_trailers.py"))
    margins, errors = {}, {}
    for reference, mpc in (
        ("between_obstacles", None),
        ("least_effort", None),
        ("least_effort", MpcOptions()),
    ):
        made = run(truck, reference, mpc)
        kept = made.kept_constraints
        margins[reference, mpc is None] = kept["obstacles"].margins.min()
        assert kept["angles"].margins.min() > 0.1 and not made.loop.saturated.any()
        model, end = made.experiment.model, made.loop.trajectory.states[-1]
        errors[reference, mpc is None] = np.abs(model.configuration(end)).max()
    assert margins["between_obstacles", True] > 0.14 and errors["between_obstacles", True] < 1e-3
    assert margins["least_effort", True] < -0.2
    assert margins["least_effort", False] > -CLOSE and errors["least_effort", False] < 0.05


@pytest.mark.slow
def test_trailers_that_start_bent_are_parked_with_a_short_horizon():
    """Beyond it the cost is LQR's along the reference: with Qf there the truck jackknifes."""
    truck = get(str(EXAMPLES / "truck_with_trailers.py"))
    made = Experiment.make(truck, "parking", mpc=MpcOptions(horizon_s=1.0))
    result = Result(made, made.run(), None, 0.0)
    assert result.configuration_error()[0] > 0.1 and result.configuration_error()[-1] < 1e-4
    assert not result.loop.saturated.any()


@pytest.mark.slow
def test_links_at_30_degrees_stay_taut_in_wind_along_them():
    """4 N for 1 s along x, which linear feedback answers with slack links."""
    gust = PlantOptions(disturbances=(disturbance.parse("payload:gust:4,0,0,start=1,duration=1"),))
    tensions, errors = [], []
    for mpc in (None, MpcOptions(iterations=2)):
        made = run(
            get("quadrotor_payload"), "taut_hover", mpc, options=gust, integral=True, step_s=0.02
        )
        tensions.append(made.monitored.min())
        errors.append(made.configuration_error().max())
    assert tensions[0] < -1 and tensions[1] > 0.2 and errors[1] < 0.8 * errors[0]
