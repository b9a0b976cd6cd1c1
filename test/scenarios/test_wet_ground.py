"""Snakeboard and car on wet ground: they roll as far as friction allows, skid on ice, and LQR
brings them back.
"""

from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from differences import jacobian

import nh_control as nh
from nh_control import scenarios
from nh_control.mechanics.external_forces import with_external_forces
from nh_control.runs.experiment import Experiment, Result
from nh_control.scenarios import MpcOptions, PlantOptions
from nh_control.scenarios.disturbance import parse
from nh_control.systems import WetCarParameters, wet_car, wet_snakeboard

GUSTS = {
    "wet_snakeboard": ("slalom", "ground:gust:0.95,start=3,duration=1"),
    "wet_car": ("lane_change", "ground:gust:0.9,start=2,duration=1"),
}

BOARD_FIRST = ["wet_snakeboard", pytest.param("wet_car", marks=pytest.mark.slow)]


@cache
def reference(name, one):
    scenario = scenarios.get(name)
    return scenario.reference(scenario.model(), one)


def run(name, disturbed=True, duration_s=0.0, **parameters):
    one, gust = GUSTS[name]
    disturbances = (parse(gust),) if disturbed else ()
    options = PlantOptions(disturbances=disturbances, parameters=parameters)
    return Experiment.make(scenarios.get(name), one, duration_s=duration_s, options=options)


def errors(experiment, **options):
    loop = experiment.run(**options)
    return Result(experiment, loop, None, 0.0).configuration_error()


@pytest.mark.parametrize("name", BOARD_FIRST)
def test_references_are_those_of_wheels_that_do_not_slip(name):
    dry, one = scenarios.get(name.removeprefix("wet_")), GUSTS[name][0]
    rolling, motion = dry.reference(dry.model(), one), reference(name, one)
    assert np.array_equal(rolling.inputs, motion.inputs)
    assert rolling.states[:, :5] == pytest.approx(motion.states[:, :5], abs=1e-3)


@pytest.mark.parametrize("name", BOARD_FIRST)
def test_lqr_brings_wheels_back_that_skidded_on_ice(name):
    calm, icy = errors(run(name, disturbed=False)), errors(run(name))
    gust = parse(GUSTS[name][1]).signal
    h = scenarios.get(name).step_s
    before, during = round(gust.start / h), round((gust.start + gust.duration) / h) + 5
    assert icy[: before + 1] == pytest.approx(calm[: before + 1], abs=1e-12)
    assert icy[during] > 5 * calm[during]
    assert len(icy) == len(calm) and icy[-1] < icy[during] / 5 and icy[-1] < 0.03
    assert errors(run(name), feedback=False)[-1] > 100 * icy[-1]


@pytest.mark.slow
def test_a_predictive_tracker_plans_through_grips():
    """After ice it comes back as LQR does."""
    one, gust = GUSTS["wet_car"]
    options = PlantOptions(disturbances=(parse(gust),))
    scenario = scenarios.get("wet_car")
    error = errors(Experiment.make(scenario, one, options=options, mpc=MpcOptions()))
    assert len(error) == len(errors(run("wet_car"))) and error[-1] < 0.05 < error.max()


def test_forces_of_wheels_are_within_the_friction_of_the_plant():
    experiment = run("wet_snakeboard", disturbed=False, duration_s=3.0, friction=0.2)
    plant, bound, found = experiment.plant, 0.2 * 9.81 / 2, []
    path = experiment.run().trajectory
    for x, u in zip(path.states[:-1:5], path.inputs[::5]):
        forces = nh.contact_forces(plant, x, u).values()
        found += [float(abs(force.friction[0])) for force in forces]
    assert max(found) <= bound and max(found) == pytest.approx(bound, rel=1e-3)


def test_ice_is_a_smaller_friction_for_a_time_also_after_forces_on_other_targets():
    system = wet_snakeboard()
    dsys, targets = nh.midpoint(system, 0.01), scenarios.get("wet_snakeboard").targets(system)
    x, u = dsys.state(np.zeros(5), [0.3, -0.2, 0.1, 0.5, 0.2]), np.array([0.5, -0.3])
    for names, still in ((["ground"], []), (["base_link", "ground"], [0, 0, 0])):
        chosen = [targets[name] for name in names]
        icy = nh.midpoint(with_external_forces(system, chosen), 0.01)
        assert icy.system.inputs[-1] == "ground_friction_loss"
        for loss, left in ((0.0, 1.0), (0.7, 0.3), (2.0, 1e-3)):
            other = dsys.with_parameters(friction=0.8 * left)
            assert icy.step(x, [*u, *still, loss]) == pytest.approx(other.step(x, u), abs=1e-12)


def test_ice_at_a_place_is_in_the_derivatives():
    slippery = replace(
        wet_snakeboard(), smoothing=1e-3, friction_factor=lambda q, u, p: 0.2 + 0.1 * ca.tanh(q[3])
    )
    dsys = nh.midpoint(slippery, 0.01)
    x, u = dsys.state([0, 0.1, 0, 0.2, 0], [0.3, -0.2, 0.1, 0.5, 0.2]), np.zeros(2)
    lin = dsys.linearize(x, u)
    found = jacobian(lambda dx: dsys.local(lin.x1, dsys.step(dsys.retract(x, dx), u)), 10, 1e-5)
    assert np.abs(lin.A[5:, 3]).max() > 1e-4  # the board's x is felt
    assert np.abs(lin.A - found).max() < 1e-7


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="between the axles"):
        wet_car(WetCarParameters(b=2.6))
    with pytest.raises(ValueError, match="friction_factor"):
        replace(wet_snakeboard(), friction_factor=lambda q, u, p: q)
